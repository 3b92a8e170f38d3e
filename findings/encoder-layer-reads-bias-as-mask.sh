#!/usr/bin/env bash
# Seen with torch 2.13.0, on a CPU.
# Guess: nn.TransformerEncoderLayer adds a mask of floats to the scores, in training and in eval mode, as its documentation says.
# Seen: in eval mode without gradients its fused path reads every float that is not 0 as "masked", so that a bias such as ALiBi's masks
# all keys but those with bias 0; no error, no warning. A mask of 0 and minus infinity gives the same in both readings.
# nn.MultiheadAttention adds the bias in both modes.
# Output: training mode and eval mode differ by up to 0.9; eval mode and the boolean mask `bias != 0` by less than 1e-6
# Why it matters: a model with a learned or linear bias is trained right and evaluated wrong.
set -euo pipefail
folder=${FINDINGS_ENV:-$(mktemp -d)}  # set it to use one environment for several of these
[ -n "${FINDINGS_ENV:-}" ] || trap 'rm -rf "$folder"' EXIT
[ -x "$folder/bin/python" ] || python3 -m venv "$folder"
"$folder/bin/pip" install -q torch==2.13.0 numpy
"$folder/bin/python" - <<'END'
import torch
from torch import nn

torch.manual_seed(0)
layer, x = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True), torch.randn(2, 5, 16)
positions = torch.arange(5)
bias = -(positions - positions[:, None]).abs() / 8
added, masked = layer(x, src_mask=bias), layer(x, src_mask=bias != 0)
with torch.no_grad():
    inferred = layer.eval()(x, src_mask=bias)
print("training mode and eval mode:", (inferred - added).abs().max().item())
print("eval mode and the boolean mask:", (inferred - masked).abs().max().item())
assert (inferred - added).abs().max() > 0.1 and torch.allclose(inferred, masked, atol=1e-6)
END
