"""Right, search error, or not revealed."""

import torch


def search_outcomes(log_p_output, log_p_reference, exact):
    search = ~exact & (log_p_output < log_p_reference)  # (sentences,)
    others = ~exact & ~search  # (sentences,)
    return torch.stack([exact.sum(), search.sum(), others.sum()])  # (3,)


def reference(log_p_output, log_p_reference, exact):
    counts = [0, 0, 0]
    rows = zip(log_p_output.tolist(), log_p_reference.tolist(), exact.tolist(), strict=True)
    for output, reference, same in rows:
        counts[0 if same else 1 if reference > output else 2] += 1
    return torch.tensor(counts)


def _outcome_case(log_p_output, log_p_reference, exact):
    return dict(
        log_p_output=torch.tensor(log_p_output),
        log_p_reference=torch.tensor(log_p_reference),
        exact=torch.tensor(exact),
    )


LESS = "log_p_output < log_p_reference"
COUNTS = "[exact.sum(), search.sum(), others.sum()]"
MISTAKES = rf"""
{LESS} -> log_p_output > log_p_reference
    Your comparison is the wrong way round. The search missed the reference where the reference is *more* probable than
    the output.
{LESS} -> log_p_output >= log_p_reference
{COUNTS} -> [exact.sum(), others.sum(), search.sum()]
    Your search errors are the outputs at least as probable as the reference: the last two numbers are exchanged, or
    the comparison is the wrong way round.
{LESS} -> log_p_output <= log_p_reference
    You count a wrong output that is exactly as probable as the reference as a search error. A search error needs a
    text that is more probable than the output.
~exact & ({LESS}) -> log_p_output <= log_p_reference
    You count right outputs as search errors too: each is as probable as the reference, because it is the reference.
    Leave them out, and compare with <.
~exact & ~search -> ~search
    You count right outputs among the others too. The three numbers add up to the number of sentences.
~exact & ~search -> ~exact
    You count the search errors among the others too. The three numbers add up to the number of sentences.
{COUNTS} -> [search.sum(), others.sum(), exact.sum()]
    The right outputs come first, then the search errors, then the others.
.sum() => .float().mean()
    You return shares of the sentences. Count them: sum instead of mean.
{COUNTS} -> [exact, search, others]
    You return a value per sentence, (3, sentences). Sum over the sentences.
"""

CASES = (
    _outcome_case(  # with a tie
        [-2.0, -4.0, -3.0, -5.0], [-2.0, -3.0, -3.0, -6.0], [True, False, False, False]
    ),
    _outcome_case(
        [-6.0, -2.0, -3.0, -5.0, -1.0],
        [-4.0, -1.0, -2.0, -5.0, -1.0],
        [False, False, False, True, True],
    ),
    _outcome_case(
        [-1.0, -7.0, -6.0, -2.0, -9.0, -1.5],
        [-1.0, -5.0, -8.0, -2.0, -4.0, -3.0],
        [True, False, False, True, False, False],
    ),
)
HINTS = """
Which of the two log-probabilities is larger where the search has missed the reference?
Three masks of shape (sentences,): exact; ~exact & (log_p_output < log_p_reference); the rest.
torch.stack of the three sums.
"""
DIFFERENTIABLE = False  # fmt: skip
