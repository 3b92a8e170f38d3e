#!/usr/bin/env bash
# Seen with onnx 1.23.2, onnxruntime 1.32.0.
# Guess: onnx's ReferenceEvaluator computes what the operator's text says, so where a runtime differs from it, the runtime is wrong.
# Seen: of ONNX's Attention with a softcap, output mode 0 should be the product of queries and keys before it. onnxruntime returns
# that; the reference returns the capped scores, the same as in mode 1. The output of attention itself is the same in both.
# Output (scale 1, softcap 1, largest error of mode 0 against Q K^T): onnxruntime 0e+00, reference 4.6; reference against mode 1 0.0
# Why it matters: a plot of scores or a test of a converter that is compared with the reference takes the right one for the wrong.
set -euo pipefail
folder=${FINDINGS_ENV:-$(mktemp -d)}  # set it to use one environment for several of these
[ -n "${FINDINGS_ENV:-}" ] || trap 'rm -rf "$folder"' EXIT
[ -x "$folder/bin/python" ] || python3 -m venv "$folder"
"$folder/bin/pip" install -q onnx==1.23.2 onnxruntime==1.32.0 numpy
"$folder/bin/python" - <<'END'
import numpy as np
import onnxruntime
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

shape = (1, 1, 4, 8)
numbers = np.random.default_rng(0)
inputs = {name: numbers.standard_normal(shape).astype(np.float32) for name in "QKV"}


def scores_and_output(mode):
    node = helper.make_node(
        "Attention", ["Q", "K", "V"], ["Y", "", "", "scores"], scale=1.0, softcap=1.0, qk_matmul_output_mode=mode
    )
    graph = helper.make_graph(
        [node],
        "attention",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "QKV"],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("scores", "Y")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, inputs), ReferenceEvaluator(model).run(None, inputs)


raw = inputs["Q"] @ inputs["K"].swapaxes(-1, -2)
runtime, reference = scores_and_output(0)
_, capped = scores_and_output(1)
errors = [float(np.abs(one[0] - raw).max()) for one in (runtime, reference)]
same = float(np.abs(reference[0] - capped[0]).max())
print(f"onnxruntime {errors[0]:.0e}, reference {errors[1]:.1f}; reference against mode 1 {same:.1f}")
assert errors[0] < 1e-5 and errors[1] > 0.1 and same == 0 and np.allclose(runtime[1], reference[1], atol=1e-5)
END
