"""The parameters of a LLaMA model."""

import torch


def llama_parameters(d_model, layers, heads, kv_heads, d_ff, vocabulary):
    kv = d_model * kv_heads // heads  # all key/value heads of a layer
    attention = 2 * d_model * d_model + 2 * d_model * kv
    block = attention + 3 * d_model * d_ff + 2 * d_model
    return layers * block + d_model + 2 * vocabulary * d_model


MISTAKES = r"""
d_model * kv_heads // heads -> d_model
    You count keys and values as if every query head had its own. With grouped-query attention their projections have
    kv_heads / heads of the columns.
d_model * kv_heads // heads -> d_model // heads
    You count a single key/value head. There are kv_heads of them, of d_model / heads components each.
kv_heads // heads -> heads // kv_heads
    Your ratio of heads is upside down: kv_heads is the smaller number, and makes the projections smaller.
d_model * kv_heads // heads -> d_model * kv_heads
    A key/value head has d_model / heads components, not d_model.
d_model * kv_heads // heads -> kv_heads
    You count one component for each key/value head. It has d_model / heads.
2 * d_model * kv -> d_model * kv
    You count only one of the key and value projections. There are two.
2 * d_model * d_model -> d_model * d_model
    You count only one of the query and output projections. There are two, each of d_model · d_model.
2 * d_model * d_model + 2 * d_model * kv -> 4 * d_model * kv
    Your projections of queries and output are as narrow as those of keys and values. They have all heads: d_model
    columns.
2 * d_model * d_model + 2 * d_model * kv -> d_model * d_model + 3 * d_model * kv
    One of your projections of queries and output is as narrow as those of keys and values. Both have all heads:
    d_model columns.
3 * d_model * d_ff -> 2 * d_model * d_ff
    Your FFN has two matrices. SwiGLU has three: gate, up and down.
3 * d_model * d_ff -> 3 * d_model * 4 * d_model
    Your FFN is 4 · d_model wide. Its width is d_ff.
3 * d_model * d_ff -> 2 * d_model * 4 * d_model
    This is the FFN of GPT-2: two matrices, 4 · d_model wide. SwiGLU has three, d_ff wide.
attention + 3 * d_model * d_ff -> attention
    The FFN is missing: three matrices of d_model · d_ff.
d_ff + 2 * d_model -> d_ff + 4 * d_model
+ block + d_model -> block + 2 * d_model
d_ff + 2 * d_model -> d_ff + 4 * d_model
block + d_model -> block + 2 * d_model
    You count a shift for each norm. RMSNorm has a scale only.
d_ff + 2 * d_model -> d_ff
+ block + d_model -> block
    The norms are missing: two for each block and one at the end, d_model parameters each.
d_ff + 2 * d_model -> d_ff
    The norms of the blocks are missing: two for each block, d_model parameters each.
d_ff + 2 * d_model -> d_ff + d_model
    You count one norm for each block. There are two: before the attention and before the FFN.
block + d_model -> block
    The final norm is missing: a pre-norm model has one after its last block.
layers * block + d_model -> layers * (block + d_model)
    You count the final norm for every layer. There is one, after the last block.
layers * block -> block
    You count one block. There are `layers` of them.
2 * vocabulary * d_model -> vocabulary * d_model
    You count one matrix of vocabulary · d_model. These models do not tie the LM head to the embedding, so there are
    two.
block + d_model + 2 * vocabulary * d_model -> block + d_model
    That is the count without embeddings. Asked are all parameters: with the embedding and the LM head.
2 * vocabulary * d_model -> 2 * vocabulary * d_model + vocabulary
    You count a bias of the LM head. The linear layers of LLaMA have none.
d_ff + 2 * d_model -> d_ff + 2 * d_model + 2 * d_model + 2 * kv + 2 * d_ff + d_model
    You count biases. The linear layers of LLaMA have none.
"""

CASES = (
    dict(
        d_model=torch.tensor([12]),
        layers=torch.tensor([1]),
        heads=torch.tensor([6]),
        kv_heads=torch.tensor([2]),
        d_ff=torch.tensor([5]),
        vocabulary=torch.tensor([7]),
    ),
    dict(  # 6,738,415,616 and 8,030,261,248
        d_model=torch.tensor([4096, 4096, 24]),
        layers=torch.tensor([32, 32, 3]),
        heads=torch.tensor([32, 32, 6]),
        kv_heads=torch.tensor([32, 8, 2]),
        d_ff=torch.tensor([11_008, 14_336, 100]),
        vocabulary=torch.tensor([32_000, 128_256, 50]),
    ),
)
HINTS = """
Write down the matrices of one block with their shapes. Which of them get narrower with fewer key/value heads?
Keys and values are projected to d_model * kv_heads / heads columns. The FFN has three matrices.
layers * (2·d² + 2·d·kv + 3·d·d_ff + 2·d) + d + 2·vocabulary·d, with kv = d * kv_heads // heads.
"""
DIFFERENTIABLE = False
