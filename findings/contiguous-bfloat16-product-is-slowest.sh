#!/usr/bin/env bash
# Seen with torch 2.13.0, on a CPU of x86 without AVX-512 (the script asks for AVX2 and switches oneDNN off, so that others act alike).
# Guess: without instructions for bfloat16 its matrix products take somewhat longer than in float32, alike for all layouts; two contiguous
# matrices are the fast case.
# Seen: two contiguous matrices are the slowest case, by a wide margin: about 60 times the time of float32. The same numbers with the
# left one stored column by column take about 4 times that of float32, the copy included. The three products of a linear
# layer, with as many multiplications each, therefore differ: the gradient of its input takes longest. The likely reason: the
# kernel without oneDNN has one loop per layout, and for this one it reads with a stride in its innermost loop.
# Output (times that of float32): output 10, gradient of the input 62, gradient of the weight 5; input, left matrix by columns 4
# Why it matters: autocast to bfloat16 makes a training step on such a CPU many times slower, and backward far more so than forward.
set -euo pipefail
folder=${FINDINGS_ENV:-$(mktemp -d)}  # set it to use one environment for several of these
[ -n "${FINDINGS_ENV:-}" ] || trap 'rm -rf "$folder"' EXIT
[ -x "$folder/bin/python" ] || python3 -m venv "$folder"
"$folder/bin/pip" install -q torch==2.13.0 numpy
ONEDNN_MAX_CPU_ISA=AVX2 ATEN_CPU_CAPABILITY=avx2 "$folder/bin/python" - <<'END'
import time

import torch

torch.set_num_threads(1)
torch.backends.mkldnn.enabled = False
torch.manual_seed(0)
assert torch.backends.cpu.get_cpu_capability() == "AVX2"


def seconds(product):
    times = []
    for _ in range(7):
        start = time.process_time()
        product()
        times.append(time.process_time() - start)
    return min(times)


def measure(dtype):
    x, weight, gradient = (torch.randn(shape).to(dtype) for shape in ((256, 256), (512, 256), (256, 512)))
    by_columns = gradient.T.contiguous().T  # the same numbers in the same places
    assert torch.allclose((by_columns @ weight).float(), (gradient @ weight).float(), rtol=0.05, atol=0.5)
    return {
        "output": seconds(lambda: x @ weight.T),
        "gradient of the input": seconds(lambda: gradient @ weight),
        "gradient of the weight": seconds(lambda: gradient.T @ x),
        "input, left matrix by columns": seconds(lambda: gradient.T.contiguous().T @ weight),
    }


single, half = measure(torch.float32), measure(torch.bfloat16)
print("times that of float32:", {name: round(half[name] / single[name], 1) for name in half})
slow, fast = half["gradient of the input"], half["input, left matrix by columns"]
print(f"contiguous against left matrix by columns {slow / fast:.1f}, against output {slow / half['output']:.1f}")
assert slow > 10 * single["gradient of the input"] and slow > 4 * fast and slow > 2 * half["output"]
END
