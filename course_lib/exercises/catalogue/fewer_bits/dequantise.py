"""Dequantise a block of 4-bit weights."""

import torch

from course_lib.exercises.catalogue._shared import rounded_tensor


def dequantise(packed, scale, minimum):
    numbers = torch.cat([packed % 16, packed // 16], dim=1)  # (blocks, 32), 0 to 15
    return (minimum[:, None] + scale[:, None] * numbers).flatten()


def reference(packed, scale, minimum):
    numbers = torch.stack([packed & 15, packed >> 4], dim=1)  # (blocks, 2, 16)
    return (numbers * scale[:, None, None] + minimum[:, None, None]).reshape(-1)


def _case(blocks, seed):
    generator = torch.Generator().manual_seed(seed)
    scale, minimum = rounded_tensor(2, blocks, seed=seed + 1)
    return dict(
        packed=torch.randint(256, (blocks, 16), generator=generator),
        scale=scale.abs() + 0.1,
        minimum=minimum,
    )


_SMALL = torch.zeros(1, 16, dtype=torch.int64)
_SMALL[0, :3] = torch.tensor([0x21, 0x43, 0x0F])

NUMBERS = "torch.cat([packed % 16, packed // 16], dim=1)"
WEIGHTS = "(minimum[:, None] + scale[:, None] * numbers)"
MISTAKES = rf"""
{NUMBERS} -> torch.stack([packed % 16, packed // 16], dim=-1).flatten(1)
    You put the two numbers of a byte next to each other. The low half of byte i is weight i, its high half weight i +
    16: all low halves first.
{NUMBERS} -> torch.stack([packed // 16, packed % 16], dim=-1).flatten(1)
    You put the two numbers of a byte next to each other, the high one first. The low half of byte i is weight i, its
    high half weight i + 16: all low halves first.
{NUMBERS} -> torch.cat([packed // 16, packed % 16], dim=1)
    Low and high halves are exchanged: the low four bits are the weights 0 to 15.
{NUMBERS} -> torch.cat([packed & 240, packed % 16], dim=1)
    Low and high halves are exchanged, and the high ones are 16 times too large: packed % 16 and packed // 16.
packed // 16 -> packed & 240
    Your high halves are 16 times too large: shift them right by four bits, or divide by 16.
packed // 16 -> packed / 16
    packed / 16 keeps the low half as a fraction. Use // or >> 4.
packed // 16 -> packed
    The high numbers still contain the low half: they are packed // 16.
packed % 16 -> packed
    The low numbers still contain the high half: they are packed % 16.
{NUMBERS} -> torch.cat([packed % 15, packed // 15], dim=1)
{NUMBERS} -> torch.cat([packed % 8, packed // 8], dim=1)
packed % 16 -> packed % 15
packed % 16 -> packed % 8
packed // 16 -> packed // 15
packed // 16 -> packed // 8
packed // 16 -> packed // 16 % 8
    Four bits have 16 values: a byte is 16 · high + low.
packed % 16 -> packed & 16
    packed & 16 keeps a single bit, and one of the high half. The low half is packed & 15, or packed % 16.
packed // 16 -> packed % 16
    Your weights 16 to 31 are the low halves once more. They are the high halves: packed // 16.
packed % 16 -> packed // 16
    Your weights 0 to 15 are the high halves, as the weights 16 to 31. They are the low halves: packed % 16.
{NUMBERS} -> packed % 16
    Only 16 weights per block: the high halves of the bytes are missing.
{NUMBERS} -> packed // 16
    Only 16 weights per block: the low halves of the bytes are missing.
{NUMBERS} -> packed
    You use each byte as one number. It holds two, of four bits each.
dim=1 -> dim=0
    You concatenate low and high halves along the blocks, dim=0. Each block has 32 numbers: dim=1.
minimum[:, None] + ->
    The minimum is missing: w = minimum + scale · number.
minimum[:, None] + scale[:, None] * numbers -> scale[:, None] * numbers - minimum[:, None]
    You subtract the minimum. It is the weight that the number 0 stands for, so add it.
minimum[:, None] + scale[:, None] * numbers -> minimum[:, None] - scale[:, None] * numbers
    You subtract scale · number. Larger numbers stand for larger weights: w = minimum + scale · number.
minimum[:, None] + scale[:, None] * numbers -> scale[:, None] + minimum[:, None] * numbers
    Scale and minimum are exchanged: w = minimum + scale · number.
minimum[:, None] + scale[:, None] * numbers -> scale[:, None] * (numbers + minimum[:, None])
    You add the minimum before scaling. It is a weight already: w = minimum + scale · number.
minimum[:, None] + scale[:, None] * numbers -> scale[:, None] * (numbers - minimum[:, None])
    You subtract the minimum before scaling. It is a weight already: w = minimum + scale · number.
* numbers -> * (numbers - 8)
    You subtract 8, as the format Q4_0 does, which has no minimum. Here the numbers are 0 to 15.
* numbers -> * (numbers - 16 * (numbers > 7))
    You read the four bits as a signed number, -8 to 7. Here the numbers are 0 to 15.
* numbers -> * (numbers + 0.5)
    You add half a step. The number 0 stands for the minimum itself.
minimum[:, None] + scale[:, None] * numbers -> scale[:, None] * (numbers - 8)
    This is the format Q4_0, without a minimum. Here w = minimum + scale · number, and the numbers are 0 to 15.
scale[:, None] * numbers -> numbers / scale[:, None]
    You divide by the scale. Quantising divides; dequantising multiplies.
minimum[:, None] + scale[:, None] * numbers -> (numbers - minimum[:, None]) / scale[:, None]
    This is the other direction, from weight to number. w = minimum + scale · number.
scale[:, None] * numbers -> numbers
    The scale is missing: w = minimum + scale · number.
scale[:, None] * numbers -> scale[:, None] * numbers / 15
    You divide by 15. The scale is already the step from one number to the next.
scale[:, None] * numbers -> (scale[:, None] - minimum[:, None]) / 15 * numbers
    You take the scale for the largest weight. It is the step from one number to the next.
minimum[:, None] + scale[:, None] * numbers -> minimum[0] + scale[0] * numbers
    Every block has the scale and the minimum of the first one. Give each its own: scale[:, None].
scale[:, None] -> scale[0]
    Every block has the scale of the first one. Give each its own: scale[:, None].
minimum[:, None] -> minimum[0]
    Every block has the minimum of the first one. Give each its own: minimum[:, None].
minimum[:, None] + scale[:, None] * numbers -> minimum + scale * numbers
minimum[:, None] + scale[:, None] * numbers -> numbers * scale + minimum
    scale and minimum have one number per block, (blocks,), and the numbers are (blocks, 32). Write scale[:, None], so
    that it broadcasts along the 32 numbers.
{WEIGHTS}.flatten() -> {WEIGHTS}
    The values are right, in rows of 32. Return them in one row: flatten.
{WEIGHTS}.flatten() -> {WEIGHTS}.view(-1, 2, 16)
    The values are right, but the shape is (blocks, 2, 16). Return them in one row: flatten.
.flatten() -> .T.flatten()
    The order is mixed up between blocks: the 32 weights of a block follow each other.
.flatten() -> .view(-1, 2, 16).transpose(0, 1).flatten()
    The low halves of all blocks come first. A block's 32 weights follow each other: its 16 low halves, then its 16
    high halves.
{WEIGHTS} -> numbers
{WEIGHTS} -> numbers.float()
    These are the numbers, in the right order. Scale them and add the minimum.
torch.cat([packed % 16, packed // 16], dim=1) -> torch.cat([packed % 16, packed // 16], dim=0).view(len(scale), -1)
    You join the low bits of all blocks, and then the high bits. A block has its own low and high bits: dim=1.
"""

CASES = (
    dict(packed=_SMALL, scale=torch.tensor([2.0]), minimum=torch.tensor([-1.0])),
    _case(2, seed=1),
    _case(5, seed=4),
)
HINTS = """
A byte is 16 · high + low. How do you get the two numbers?
packed % 16 and packed // 16, each (blocks, 16). Concatenate them along dim=1: (blocks, 32).
scale[:, None] gives each block its own scale; flatten at the end.
"""
DIFFERENTIABLE = False
