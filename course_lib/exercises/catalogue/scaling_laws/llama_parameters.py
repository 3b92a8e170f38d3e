"""Exercise `llama_parameters` of notebook 11."""

from functools import partial

import torch

from course_lib.exercises.exercise import Case, Exercise, Mistake


def llama_parameters(d_model, layers, heads, kv_heads, d_ff, vocabulary):
    kv = d_model * kv_heads // heads  # all key/value heads of a layer
    attention = 2 * d_model * d_model + 2 * d_model * kv
    block = attention + 3 * d_model * d_ff + 2 * d_model
    return layers * block + d_model + 2 * vocabulary * d_model


def _count(
    d_model,
    layers,
    heads,
    kv_heads,
    d_ff,
    vocabulary,
    *,
    shared="kv",
    ffn=3,
    norm=1,
    final=1,
    matrices=2,
    biases=False,
):
    kv = {
        "kv": d_model * kv_heads // heads,
        "none": d_model,
        "one head": d_model // heads,
        "inverse": d_model * heads // kv_heads,
        "half": d_model * kv_heads // heads // 2,
    }[shared]
    attention = 2 * d_model * d_model + 2 * d_model * kv
    if shared == "output":
        attention = d_model * d_model
    block = attention + ffn * d_model * d_ff + 2 * norm * d_model
    if biases:
        block = block + 2 * d_model + 2 * kv + 2 * d_ff + d_model
    return layers * block + final * norm * d_model + matrices * vocabulary * d_model


EXERCISE = Exercise(
    name="llama_parameters",
    notebook="11_scaling_laws",
    title="The parameters of a LLaMA model",
    reference=_count,
    solution=llama_parameters,
    cases=(
        Case(
            d_model=torch.tensor([4]),
            layers=torch.tensor([1]),
            heads=torch.tensor([4]),
            kv_heads=torch.tensor([2]),
            d_ff=torch.tensor([5]),
            vocabulary=torch.tensor([7]),
        ),
        Case(  # 6,738,415,616 and 8,030,261,248
            d_model=torch.tensor([4096, 4096, 24]),
            layers=torch.tensor([32, 32, 3]),
            heads=torch.tensor([32, 32, 6]),
            kv_heads=torch.tensor([32, 8, 2]),
            d_ff=torch.tensor([11_008, 14_336, 100]),
            vocabulary=torch.tensor([32_000, 128_256, 50]),
        ),
    ),
    mistakes=(
        Mistake(
            "no_gqa",
            partial(_count, shared="none"),
            "You count keys and values as if every query head had its own. With grouped-query attention their "
            "projections have kv_heads / heads of the columns.",
        ),
        Mistake(
            "one_kv_head",
            partial(_count, shared="one head"),
            "You count a single key/value head. There are kv_heads of them, of d_model / heads components each.",
        ),
        Mistake(
            "gqa_inverse",
            partial(_count, shared="inverse"),
            "Your ratio of heads is upside down: kv_heads is the smaller number, and makes the projections smaller.",
        ),
        Mistake(
            "key_or_value",
            partial(_count, shared="half"),
            "You count the projection of the keys or that of the values. There are both.",
        ),
        Mistake(
            "two_ffn_matrices",
            partial(_count, ffn=2),
            "Your FFN has two matrices. SwiGLU has three: gate, up and down.",
        ),
        Mistake(
            "norm_with_shift",
            partial(_count, norm=2),
            "You count a shift for each norm. RMSNorm has a scale only.",
        ),
        Mistake(
            "no_norms",
            partial(_count, norm=0),
            "The norms are missing: two for each block and one at the end, d_model parameters each.",
        ),
        Mistake(
            "no_final_norm",
            partial(_count, final=0),
            "The final norm is missing: a pre-norm model has one after its last block.",
        ),
        Mistake(
            "tied",
            partial(_count, matrices=1),
            "You count one matrix of vocabulary · d_model. These models do not tie the LM head to the embedding, so "
            "there are two.",
        ),
        Mistake(
            "no_embeddings",
            partial(_count, matrices=0),
            "That is the count without embeddings. Asked are all parameters: with the embedding and the LM head.",
        ),
        Mistake(
            "biases",
            partial(_count, biases=True),
            "You count biases. The linear layers of LLaMA have none.",
        ),
        Mistake(
            "tied_two_matrices",
            partial(_count, matrices=1, ffn=2),
            "Your FFN has two matrices, but SwiGLU has three; and the LM head has a matrix of its own.",
        ),
    ),
    hints=(
        "Write down the matrices of one block with their shapes. Which of them get narrower with fewer key/value heads?",
        "Keys and values are projected to d_model * kv_heads / heads columns. The FFN has three matrices.",
        "layers * (2·d² + 2·d·kv + 3·d·d_ff + 2·d) + d + 2·vocabulary·d, with kv = d * kv_heads // heads.",
    ),
    differentiable=False,
)
