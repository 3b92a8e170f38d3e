"""How many offsets train each row of Shaw's table."""

import torch


def trained_offsets(length, clip):
    offsets = torch.arange(-(length - 1), length)  # every offset that occurs
    rows = offsets.clamp(-clip, clip) + clip
    return torch.bincount(rows, minlength=2 * clip + 1)  # (row,)


MISTAKES = """
return torch.bincount(rows, minlength=2 * clip + 1) -> counts = torch.bincount(rows, minlength=2 * clip + 1); counts[0] = counts[-1] = max(0, length - clip - 1); return counts
    Your end rows are one short. Offset clip itself trains the last row, too: length - clip offsets from there on.
return torch.bincount(rows, minlength=2 * clip + 1) -> counts = torch.ones(2 * clip + 1).long(); counts[0] = counts[-1] = length - clip; return counts
    That holds where the text is longer than the table. In a shorter one some rows are trained by no offset: their count is
    0, and none is negative.
torch.arange(-(length - 1), length) -> torch.arange(-length, length + 1)
    You count the offsets -length and length too. Among `length` tokens the farthest two are length - 1 apart.
torch.arange(-(length - 1), length) -> torch.arange(-(length - 1), length - 1)
    Your largest offset is missing: torch.arange excludes its end. The last key is length - 1 after the first query.
torch.arange(-(length - 1), length) -> torch.arange(-length, length)
    You count the offset -length too. Among `length` tokens the farthest two are length - 1 apart.
torch.arange(-(length - 1), length) -> torch.arange(length)
    You count only keys at and after the query. Without a causal mask, offsets are negative too.
torch.arange(-(length - 1), length) -> torch.arange(-(length - 1), 1)
    You count only keys at and before the query. Without a causal mask, offsets are positive too.
torch.arange(-(length - 1), length) -> (torch.arange(length) - torch.arange(length)[:, None]).flatten()
    You count pairs of positions. Count offsets: each once, however many pairs have it.
offsets.clamp(-clip, clip) -> offsets[offsets.abs() <= clip]
torch.bincount(rows, minlength=2 * clip + 1) -> torch.bincount(rows, minlength=2 * clip + 1).clamp(max=1)
    You count at most one offset for each row. The first and the last row are also used by every offset beyond the
    clip: count these too.
torch.bincount(rows, minlength=2 * clip + 1) -> torch.bincount(rows)
    Rows at the end that no offset uses are missing: there are always 2 * clip + 1 rows.
torch.bincount(rows, minlength=2 * clip + 1) -> (torch.bincount(rows, minlength=2 * clip + 1) + (clip == 0)) // (1 + (clip == 0))
    With a clip of 0 there is one row, the first and the last at once, and every offset trains it.
offsets.clamp(-clip, clip) -> offsets[(offsets.abs() < length - 1) | (offsets.abs() <= clip)].clamp(-clip, clip)
    The end rows lack an offset: the farthest one, length - 1 on either side, trains them too.
"""

CASES = (
    dict(length=2, clip=1),
    dict(length=4, clip=2),
    dict(length=3, clip=4),
    dict(length=5, clip=0),
    dict(length=16, clip=4),
    dict(length=16, clip=16),
)
HINTS = """
Which offsets occur among `length` tokens without a mask? Write them down for 4 tokens.
Row r of the table belongs to the offset r - clip; the first and the last row take all clipped ones as well.
torch.bincount(rows, minlength=…) counts how often each row occurs among offsets.clamp(-clip, clip) + clip.
"""
DIFFERENTIABLE = False
