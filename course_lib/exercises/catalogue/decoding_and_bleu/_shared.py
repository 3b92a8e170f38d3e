"""Helpers of several exercises of notebook 09."""

import torch


def softmax_of_kept(logits, kept):
    """The probabilities of the kept tokens, renormalised to sum to 1."""
    return torch.softmax(logits.masked_fill(~kept, -torch.inf), dim=-1)


def kept_tokens(
    logits,
    p,
    *,
    keep=lambda ordered, p: ordered.cumsum(-1) - ordered < p,
    probabilities=lambda logits: torch.softmax(logits, -1),
    descending=True,
    back=lambda kept, order: kept.scatter(-1, order, kept),
):
    """Which tokens are kept: `keep` decides in sorted order, `back` restores the order of the vocabulary."""
    ordered, order = probabilities(logits).sort(dim=-1, descending=descending)
    return back(keep(ordered, p), order)


def keep_up_to_p(ordered, p):
    return ordered.cumsum(-1) <= p


def keep_up_to_p_and_first(ordered, p):
    return torch.cat(
        [torch.ones_like(ordered[..., :1]).bool(), keep_up_to_p(ordered, p)[..., 1:]], -1
    )


def keep_one_more(ordered, p):
    before = ordered.cumsum(-1) - ordered
    return torch.cat([torch.ones_like(before[..., :1]), before[..., :-1] < p], -1).bool()


def keep_crossing(ordered, p):
    return ordered.cumsum(-1) - ordered < p
