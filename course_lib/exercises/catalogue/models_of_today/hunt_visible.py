"""Bug hunt: which summaries a query sees."""

import torch


def visible(n, m):
    last = torch.arange(n // m) * m + m - 1  # last token of each block
    return last <= torch.arange(n)[:, None]


def reference(n, m):
    """Block by block: its summary holds tokens up to its last one, and must hold no later token than the query."""
    rows = [[(block + 1) * m - 1 <= i for block in range(n // m)] for i in range(n)]
    return torch.tensor(rows, dtype=torch.bool).view(n, n // m)


BUGS = """
torch.arange(n // m) -> torch.arange(-(-n // m))
    the last block, which has fewer than m tokens, has a summary here; it has one only when it is full
* m + m - 1 -> * m
    a query sees a summary from the first token of its block on: the summary holds tokens after the query
"""
MISTAKES = """
* m + m - 1 -> * m + m
    A query on the last token of a block does not see its summary. It may: all its tokens are there.
last <= torch.arange(n)[:, None] -> last < torch.arange(n)[:, None]
    A query on the last token of a block does not see its summary. It may: all its tokens are there.
last <= torch.arange(n)[:, None] -> last >= torch.arange(n)[:, None]
    Queries see the blocks after them. They may see those that end at or before them.
last <= torch.arange(n)[:, None] -> (last[:, None] <= torch.arange(n))
    Yours is (summary, query). The queries come first.
"""

CASES = (dict(n=3, m=2), dict(n=10, m=4), dict(n=12, m=3), dict(n=17, m=5))
HINTS = """
Write out n = 3 and m = 2: how many summaries are there, and which token is the last of each?
Block w holds the tokens w · m to w · m + m - 1. Tokens that fill no block have no summary.
"""
DIFFERENTIABLE = False
