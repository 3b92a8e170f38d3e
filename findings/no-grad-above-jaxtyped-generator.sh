#!/usr/bin/env bash
# Seen with torch 2.13.0, jaxtyping 0.3.11, beartype 0.23.1.
# Guess: @torch.no_grad() switches gradients off in a generator, whatever other decorators the generator has.
# Seen: above @jaxtyped, it does nothing: the checker's wrapper is no generator function, so no_grad covers the call that makes
# the generator and none of its steps. Below @jaxtyped, or without it, gradients are off. jaxtyping's import hook puts
# @jaxtyped below all decorators that stand there.
# Output, whether a result inside the generator requires a gradient: alone False, above jaxtyped True, below False
# Why it matters: a decoding loop that yields tokens builds its graph, and memory grows, only where annotations are checked.
set -euo pipefail
folder=${FINDINGS_ENV:-$(mktemp -d)}  # set it to use one environment for several of these
[ -n "${FINDINGS_ENV:-}" ] || trap 'rm -rf "$folder"' EXIT
[ -x "$folder/bin/python" ] || python3 -m venv "$folder"
"$folder/bin/pip" install -q torch==2.13.0 numpy jaxtyping==0.3.11 beartype==0.23.1
"$folder/bin/python" - <<'END'
import torch
from beartype import beartype
from jaxtyping import Float, jaxtyped
from torch import Tensor

layer = torch.nn.Linear(2, 2)
off, checked = torch.no_grad(), jaxtyped(typechecker=beartype)


def steps(x: Float[Tensor, "rows 2"]):
    yield layer(x).requires_grad


found = {
    name: next(generator(torch.ones(1, 2)))
    for name, generator in {
        "alone": off(steps), "above jaxtyped": off(checked(steps)), "below": checked(off(steps)),
    }.items()
}
print(found)
assert found == {"alone": False, "above jaxtyped": True, "below": False}
END
