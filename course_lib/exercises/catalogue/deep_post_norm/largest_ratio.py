"""How large may a residual branch be?"""

import torch


def largest_ratio(share, blocks):
    ratio = torch.sqrt(share ** (-1 / blocks) - 1)
    return ratio


MISTAKES = """
-1 / blocks -> -1 / (4 * blocks)
    Your exponent is four times too small. Of N blocks with two sums each the share is (1 + r²)^(-N).
-1 / blocks -> -2 / blocks
    You count one normalised sum per block. A block has two: attention and the FFN.
-1 / blocks -> -1 / (2 * blocks)
    Your factor of one sum is 1 / (1 + r²). That is the share of the variance; the share of x has a root.
-1 / blocks -> -1
    You count two sums in all. Each of the blocks has two.
-1 / blocks -> -2
    You count a single sum. Each of the blocks has two.
-1 / blocks -> 1 / blocks
    The sign of your exponent is wrong: the share is (1 + r²) to the power of minus the number of blocks.
torch.sqrt(share ** (-1 / blocks) - 1) -> share ** (-1 / blocks) - 1
    This is r². Take the root.
torch.sqrt(share ** (-1 / blocks) - 1) -> share ** (-1 / (2 * blocks)) - 1
    Your factor of one sum is 1 / (1 + r). Standard deviations of uncorrelated terms do not add, variances do: it is
    1 / √(1 + r²).
share ** (-1 / blocks) - 1) -> share ** (-1 / blocks))
    This is the root of 1 + r². Subtract 1 first.
share ** (-1 / blocks) - 1) -> (share**-2 - 1) / (2 * blocks))
    This is the answer for pre-norm blocks, where nothing is divided. Here every sum is normalised.
share ** (-1 / blocks) - 1) -> (1 / share - 1) / blocks)
    This holds only if share is close to 1. The exact answer contains the root of order `blocks` of 1 / share.
"""

CASES = (
    dict(share=torch.tensor([0.25]), blocks=2),
    dict(share=torch.tensor([0.5, 0.8]), blocks=100),
    dict(share=torch.tensor([0.1, 0.5, 0.9]), blocks=12),
)
HINTS = """
One normalised sum leaves 1 / √(1 + r²) of x. How many sums are there in so many blocks?
The share is (1 + r²) to the power of -blocks. Solve for r.
r² = share ** (-1 / blocks) - 1.
"""
DIFFERENTIABLE = False
