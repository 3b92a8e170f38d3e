"""Exercises and bug hunts of notebook 03."""

import math

import torch
import torch.nn.functional as F

from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.masks import masked_softmax, padding_mask

_NOTEBOOK = "03_seq2seq_with_attention"


def _drawn(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


# --- looks_at --------------------------------------------------------------------------------


def looks_at(weights, rows, columns):
    return weights[rows][:, columns].sum(dim=-1).mean()  # per row the share, then the mean


_MAP = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6], [0.25, 0.5, 0.25], [0.0, 0.1, 0.9]])

_LOOKS_AT = Exercise(
    name="looks_at",
    notebook=_NOTEBOOK,
    title="What share of the attention falls on some characters",
    reference=lambda weights, rows, columns: weights[rows][:, columns].sum(-1).mean(),
    solution=looks_at,
    cases=(
        Case(weights=_MAP, rows=[0, 1], columns=[1, 2]),
        Case(weights=_MAP, rows=[0, 2, 3], columns=[0, 1]),
        Case(
            weights=torch.softmax(_drawn(11, 20, seed=0), -1),
            rows=[0, 1, 2, 3],
            columns=[16, 17, 18, 19],
        ),
    ),
    mistakes=(
        Mistake(
            "mean_of_cells",
            lambda w, r, c: w[r][:, c].mean(),
            "You average over the characters looked at as well. A row's share is the sum of its weights on them; "
            "only over rows a mean is taken.",
        ),
        Mistake(
            "sum_of_rows",
            lambda w, r, c: w[r][:, c].sum(),
            "You add up the rows. The share lies between 0 and 1: take the mean over rows.",
        ),
        Mistake(
            "largest",
            lambda w, r, c: w[r][:, c].amax(-1).mean(),
            "You take the largest weight of each row. All weights on these characters count.",
        ),
        Mistake(
            "every_row",
            lambda w, r, c: w[:, c].sum(-1).mean(),
            "You average over all rows. Only those asked for count.",
        ),
        Mistake(
            "pairs",
            lambda w, r, c: w[r, c].sum() if len(r) == len(c) else w[r][:, c].diagonal().sum(),
            "weights[rows, columns] pairs the first row with the first column, and so on. Take the rows first, then "
            "the columns: weights[rows][:, columns].",
        ),
    ),
    hints=(
        "weights[rows] are the rows asked for. What does [:, columns] pick from them?",
        "Sum over the columns, then take the mean over the rows.",
        "weights[rows][:, columns].sum(dim=-1).mean().",
    ),
)


# --- gru_step --------------------------------------------------------------------------------


def gru_step(x, h, W, b, U, c):
    r_x, z_x, n_x = (x @ W.T + b).chunk(3, dim=-1)  # each (batch, hidden)
    r_h, z_h, n_h = (h @ U.T + c).chunk(3, dim=-1)
    r = torch.sigmoid(r_x + r_h)
    z = torch.sigmoid(z_x + z_h)
    n = torch.tanh(n_x + r * n_h)
    return (1 - z) * n + z * h


def _gru(x, h, W, b, U, c, *, order="rzn", candidate=torch.tanh, swap=False, reset="after"):
    from_x = dict(zip(order, (x @ W.T + b).chunk(3, -1), strict=True))
    from_h = dict(zip(order, (h @ U.T + c).chunk(3, -1), strict=True))
    r, z = (torch.sigmoid(from_x[gate] + from_h[gate]) for gate in "rz")
    n_h = from_h["n"]
    if reset == "before":
        size = h.shape[-1]
        n_h = (r * h) @ U[2 * size :].T + c[2 * size :]
    elif reset == "after":
        n_h = r * n_h
    n = candidate(from_x["n"] + n_h)
    return z * n + (1 - z) * h if swap else (1 - z) * n + z * h


def _resets_input_too(x, h, W, b, U, c):
    r_x, z_x, n_x = (x @ W.T + b).chunk(3, -1)
    r_h, z_h, n_h = (h @ U.T + c).chunk(3, -1)
    r, z = torch.sigmoid(r_x + r_h), torch.sigmoid(z_x + z_h)
    return (1 - z) * torch.tanh(r * (n_x + n_h)) + z * h


_GRU = Exercise(
    name="gru_step",
    notebook=_NOTEBOOK,
    title="One step of a GRU",
    reference=_gru,
    solution=gru_step,
    cases=(
        Case(
            x=_drawn(1, 3, seed=1),
            h=_drawn(1, 2, seed=2),
            W=_drawn(6, 3, seed=3),
            b=_drawn(6, seed=4),
            U=_drawn(6, 2, seed=5),
            c=_drawn(6, seed=6),
        ),
        Case(
            x=_drawn(4, 2, seed=7),
            h=_drawn(4, 5, seed=8),
            W=_drawn(15, 2, seed=9),
            b=_drawn(15, seed=10),
            U=_drawn(15, 5, seed=11),
            c=_drawn(15, seed=12),
        ),
    ),
    mistakes=(
        Mistake(
            "gates_swapped",
            lambda *a: _gru(*a, swap=True),
            "Your update gate is turned around: here z is how much of the old state stays. Bahdanau's paper has it "
            "the other way, and PyTorch has it this way.",
        ),
        Mistake(
            "reset_before",
            lambda *a: _gru(*a, reset="before"),
            "You reset the state before U_n multiplies it. That is the form of the papers. PyTorch multiplies first "
            "and resets what comes out.",
        ),
        Mistake(
            "no_reset",
            lambda *a: _gru(*a, reset="never"),
            "The reset gate does not reach the new state: n = tanh(n_x + r * n_h).",
        ),
        Mistake(
            "order",
            lambda *a: _gru(*a, order="zrn"),
            "r and z have changed places. The three parts are stacked in the order r, z, n.",
        ),
        Mistake(
            "no_state_bias",
            lambda x, h, W, b, U, c: _gru(x, h, W, b, U, torch.zeros_like(c)),
            "The bias c of the state's products is missing.",
        ),
        Mistake(
            "resets_input_too",
            _resets_input_too,
            "Your reset gate multiplies the input's part as well. It is for the state's part only: n_x + r * n_h.",
        ),
        Mistake(
            "sigmoid_candidate",
            lambda *a: _gru(*a, candidate=torch.sigmoid),
            "The new state n goes through a tanh, between -1 and 1. Only gates are sigmoids.",
        ),
        Mistake(
            "no_bend",
            lambda *a: _gru(*a, candidate=lambda n: n),
            "The tanh around the new state n is missing.",
        ),
    ),
    hints=(
        "x @ W.T + b is (batch, 3·hidden). .chunk(3, dim=-1) cuts it into the parts of r, z and n.",
        "Two gates: r and z are sigmoids of the sum of both parts. The new state: n = tanh(n_x + r * n_h).",
        "The result is (1 - z) * n + z * h.",
    ),
)


# --- forced_loss -----------------------------------------------------------------------------


def forced_loss(logits, target):
    wanted = target[:, 1:]  # the token behind each one that was read
    losses = F.cross_entropy(logits.transpose(1, 2), wanted, reduction="none")  # (batch, length)
    real = wanted != 0
    return losses[real].mean()


def _losses(logits, wanted):
    return F.cross_entropy(logits.transpose(1, 2), wanted, reduction="none")


def _forced(logits, target):
    return F.cross_entropy(logits.transpose(1, 2), target[:, 1:], ignore_index=0)


_FORCED = Exercise(
    name="forced_loss",
    notebook=_NOTEBOOK,
    title="The loss of teacher forcing, without the padding",
    reference=_forced,
    solution=forced_loss,
    cases=(
        Case(logits=_drawn(1, 2, 5, seed=13), target=torch.tensor([[1, 4, 2]])),
        Case(logits=_drawn(2, 3, 5, seed=14), target=torch.tensor([[1, 3, 4, 2], [1, 4, 2, 0]])),
        Case(
            logits=_drawn(2, 4, 6, seed=15),
            target=torch.tensor([[1, 3, 5, 4, 2], [1, 2, 0, 0, 0]]),
        ),
    ),
    mistakes=(
        Mistake(
            "not_shifted",
            lambda a, y: F.cross_entropy(a.transpose(1, 2), y[:, :-1], ignore_index=0),
            "You ask for the token that was just read. Copying it is easy and useless. Ask for the one behind it: "
            "target[:, 1:].",
        ),
        Mistake(
            "counts_padding",
            lambda a, y: F.cross_entropy(a.transpose(1, 2), y[:, 1:]),
            "Padding counts in your loss, so a model is rewarded for writing padding. Leave out the places where the "
            "wanted token is 0.",
        ),
        Mistake(
            "divides_by_all",
            lambda a, y: (_losses(a, y[:, 1:]) * (y[:, 1:] != 0)).mean(),
            "The losses of padding are 0 now, but the mean still counts their places. Divide by the number of real "
            "tokens.",
        ),
        Mistake(
            "mean_of_means",
            lambda a, y: (
                (_losses(a, y[:, 1:]) * (y[:, 1:] != 0)).sum(1) / (y[:, 1:] != 0).sum(1)
            ).mean(),
            "You average within each sequence and then over sequences, so a token of a short sequence counts more. "
            "Average over all tokens at once.",
        ),
        Mistake(
            "softmax_first",
            lambda a, y: F.cross_entropy(
                torch.softmax(a, -1).transpose(1, 2), y[:, 1:], ignore_index=0
            ),
            "You take a softmax first. F.cross_entropy takes the logits and does it itself.",
        ),
        Mistake(
            "view",
            lambda a, y: F.cross_entropy(
                a.reshape(a.shape[0], a.shape[2], a.shape[1]), y[:, 1:], ignore_index=0
            ),
            "A view or reshape does not swap axes, it deals the numbers out anew. Use logits.transpose(1, 2).",
        ),
        Mistake(
            "minus",
            lambda a, y: -F.cross_entropy(a.transpose(1, 2), y[:, 1:], ignore_index=0),
            "The sign is turned around. The loss is minus the log of the probability, so it is never negative.",
        ),
        Mistake(
            "sum",
            lambda a, y: F.cross_entropy(
                a.transpose(1, 2), y[:, 1:], ignore_index=0, reduction="sum"
            ),
            "You add up the losses. Take their mean, or the loss grows with the batch.",
        ),
        Mistake(
            "no_end",
            lambda a, y: F.cross_entropy(
                a.transpose(1, 2), y[:, 1:].masked_fill(y[:, 1:] == 2, 0), ignore_index=0
            ),
            "The end token is left out too. A model that never learns to end never stops writing.",
        ),
    ),
    hints=(
        "The model read target[:, :-1]. For each token it read, which one is wanted?",
        "F.cross_entropy wants the classes in axis 1: logits.transpose(1, 2) is (batch, vocabulary, length).",
        "F.cross_entropy(…, target[:, 1:], ignore_index=0) leaves padding out and takes the mean over the rest.",
    ),
)


# --- luong_step ------------------------------------------------------------------------------


def luong_step(state, memory, mask, W, W_c):
    scores = (state @ W)[:, None, :] @ memory.mT  # (batch, 1, source): s W h
    weights = masked_softmax(scores, mask)  # (batch, 1, source)
    context = (weights @ memory)[:, 0]  # (batch, memory_size)
    return torch.tanh(torch.cat([context, state], dim=-1) @ W_c.T)


def _luong(state, memory, mask, W, W_c, *, scale=1.0, order="cs", bend=torch.tanh, values=None):
    scores = (state @ W)[:, None, :] @ memory.mT * scale
    weights = masked_softmax(scores, mask)
    context = (weights @ (memory if values is None else values(memory, W)))[:, 0]
    parts = [context, state] if order == "cs" else [state, context]
    return bend(torch.cat(parts, dim=-1) @ W_c.T)


_LUONG = Exercise(
    name="luong_step",
    notebook=_NOTEBOOK,
    title="Luong's step: look with the current state, then combine",
    reference=_luong,
    solution=luong_step,
    cases=(
        Case(
            state=_drawn(1, 2, seed=16),
            memory=_drawn(1, 3, 2, seed=17),
            mask=torch.tensor([[[True, True, False]]]),
            W=_drawn(2, 2, seed=18),
            W_c=_drawn(2, 4, seed=19),
        ),
        Case(
            state=_drawn(3, 4, seed=20),
            memory=_drawn(3, 5, 4, seed=21),
            mask=padding_mask(torch.tensor([5, 2, 3])),
            W=_drawn(4, 4, seed=22),
            W_c=_drawn(6, 8, seed=23),
        ),
    ),
    mistakes=(
        Mistake(
            "scaled",
            lambda *a: _luong(*a, scale=1 / math.sqrt(a[0].shape[-1])),
            "You scale by √d. Luong's general score has no scale; its W can take any size.",
        ),
        Mistake(
            "no_W",
            lambda s, m, k, W, C: _luong(s, m, k, torch.eye(s.shape[-1], dtype=s.dtype), C),
            "That is Luong's dot score. The general score has a matrix: sᵀ W h.",
        ),
        Mistake(
            "upside_down",
            lambda s, m, k, W, C: _luong(s, m, ~k, W, C),
            "Your mask is turned around: you look at padding only. True means 'may attend'.",
        ),
        Mistake(
            "no_mask",
            lambda s, m, k, W, C: _luong(s, m, None, W, C),
            "You look at padding as well: the mask is not used.",
        ),
        Mistake(
            "transposed",
            lambda s, m, k, W, C: _luong(s, m, k, W.T, C),
            "Your W is transposed. The score is sᵀ W h: the state is multiplied from the left, state @ W.",
        ),
        Mistake(
            "state_first",
            lambda *a: _luong(*a, order="sc"),
            "You put the state in front of the context. The paper's order is [context; state].",
        ),
        Mistake(
            "no_tanh",
            lambda *a: _luong(*a, bend=lambda x: x),
            "The tanh around W_c [context; state] is missing.",
        ),
        Mistake(
            "projected_values",
            lambda *a: _luong(*a, values=lambda m, W: m @ W.T),
            "You average the projected states. W belongs to the score. The context averages the states themselves.",
        ),
    ),
    hints=(
        "The score of state s and memory h_j is sᵀ W h_j: (state @ W)[:, None, :] @ memory.mT is (batch, 1, source).",
        "masked_softmax(scores, mask) @ memory is (batch, 1, memory_size). Take the one query out with [:, 0].",
        "torch.tanh(torch.cat([context, state], dim=-1) @ W_c.T).",
    ),
)


# --- bahdanau_step ---------------------------------------------------------------------------


def bahdanau_step(state, word, memory, mask, W, U, v, A):
    together = (state @ W.T)[:, None, :] + memory @ U.T  # (batch, source, hidden)
    scores = torch.tanh(together) @ v  # (batch, source)
    weights = masked_softmax(scores, mask[:, 0])  # (batch, source)
    context = (weights[:, :, None] * memory).sum(dim=1)  # (batch, memory_size)
    return torch.tanh(torch.cat([state, word, context], dim=-1) @ A.T)


def _look(state, memory, mask, W, U, v):
    scores = torch.tanh((state @ W.T)[:, None, :] + memory @ U.T) @ v
    return (
        masked_softmax(scores, mask)[:, None, :]
        if mask is None
        else masked_softmax(scores[:, None], mask)
    )


def _bahdanau(
    state, word, memory, mask, W, U, v, A, *, query=None, values=None, order="syc", bend=torch.tanh
):
    weights = _look(state if query is None else query, memory, mask, W, U, v)
    context = (weights @ (memory if values is None else values))[:, 0]
    parts = {"s": state, "y": word, "c": context}
    return bend(torch.cat([parts[part] for part in order], dim=-1) @ A.T)


def _current_state_first(state, word, memory, mask, W, U, v, A):
    """Luong's order: move without a context, look with the new state, move again."""
    nothing = torch.zeros(len(state), memory.shape[-1], dtype=state.dtype)
    moved = torch.tanh(torch.cat([state, word, nothing], dim=-1) @ A.T)
    return _bahdanau(state, word, memory, mask, W, U, v, A, query=moved)


_BAHDANAU = Exercise(
    name="bahdanau_step",
    notebook=_NOTEBOOK,
    title="Bahdanau's step: look with the previous state, then move",
    reference=_bahdanau,
    solution=bahdanau_step,
    cases=(
        Case(
            state=_drawn(1, 2, seed=24),
            word=_drawn(1, 1, seed=25),
            memory=_drawn(1, 3, 2, seed=26),
            mask=torch.tensor([[[True, True, False]]]),
            W=_drawn(2, 2, seed=27),
            U=_drawn(2, 2, seed=28),
            v=torch.tensor([1.5, -1.0]),
            A=_drawn(2, 5, seed=29),
        ),
        Case(
            state=_drawn(3, 4, seed=30),
            word=_drawn(3, 2, seed=31),
            memory=_drawn(3, 6, 5, seed=32),
            mask=padding_mask(torch.tensor([6, 2, 4])),
            W=_drawn(5, 4, seed=33),
            U=_drawn(5, 5, seed=34),
            v=_drawn(5, seed=35),
            A=_drawn(4, 11, seed=36),
        ),
    ),
    mistakes=(
        Mistake(
            "projected_values",
            lambda s, y, m, k, W, U, v, A: _bahdanau(s, y, m, k, W, U, v, A, values=m @ U.T),
            "Your context averages the projected states U h. U belongs to the score. Average the states h themselves.",
        ),
        Mistake(
            "no_mask",
            lambda s, y, m, k, W, U, v, A: _bahdanau(s, y, m, None, W, U, v, A),
            "You look at padding as well: the mask is not used.",
        ),
        Mistake(
            "current_state",
            _current_state_first,
            "You look with a state that has already moved. That is Luong's order. Bahdanau's query is the previous "
            "state.",
        ),
        Mistake(
            "upside_down",
            lambda s, y, m, k, W, U, v, A: _bahdanau(s, y, m, ~k, W, U, v, A),
            "Your mask is turned around: you look at padding only. True means 'may attend'.",
        ),
        Mistake(
            "no_outer_tanh",
            lambda s, y, m, k, W, U, v, A: _bahdanau(s, y, m, k, W, U, v, A, bend=lambda x: x),
            "The tanh around A [state; word; context] is missing.",
        ),
        Mistake(
            "word_first",
            lambda s, y, m, k, W, U, v, A: _bahdanau(s, y, m, k, W, U, v, A, order="ysc"),
            "The order is state, word, context. You put the word first.",
        ),
        Mistake(
            "no_context",
            lambda s, y, m, k, W, U, v, A: _bahdanau(
                s, y, m, k, W, U, v, A, values=torch.zeros_like(m)
            ),
            "The context does not reach the new state.",
        ),
        Mistake(
            "no_tanh_in_score",
            lambda s, y, m, k, W, U, v, A: torch.tanh(
                torch.cat([s, y, (masked_softmax((m @ U.T @ v)[:, None], k) @ m)[:, 0]], dim=-1)
                @ A.T
            ),
            "There is no tanh in your score, so the state cancels in the softmax: every step looks at the same place.",
        ),
    ),
    hints=(
        "The score is vᵀ tanh(W s + U h_j): (state @ W.T)[:, None, :] + memory @ U.T is (batch, source, hidden).",
        "mask is (batch, 1, source); scores are (batch, source) or (batch, 1, source). Mind the axes.",
        "context = weights @ memory, then torch.tanh(torch.cat([state, word, context], dim=-1) @ A.T).",
    ),
)


# --- bug hunts -------------------------------------------------------------------------------


def context_of(state, memory, W, U, v):
    keys = memory @ U.T  # (batch, source, hidden): only for the scores
    scores = torch.tanh((state @ W.T)[:, None, :] + keys) @ v  # (batch, source)
    weights = torch.softmax(scores, dim=-1)  # (batch, source)
    return (weights[:, :, None] * memory).sum(dim=1)  # (batch, memory_size)


def _context(state, memory, W, U, v, *, values=None, dim=-1):
    scores = torch.tanh((state @ W.T)[:, None, :] + memory @ U.T) @ v
    weights = torch.softmax(scores, dim=dim)
    return (weights[:, :, None] * (memory if values is None else values)).sum(dim=1)


def _given_context(state, memory, W, U, v):
    memory = memory @ U.T
    scores = torch.tanh((state @ W.T)[:, None, :] + memory) @ v
    weights = torch.softmax(scores, dim=-1)
    return (weights[:, :, None] * memory).sum(dim=1)


_HUNT_CONTEXT = Exercise(
    name="hunt_context",
    notebook=_NOTEBOOK,
    title="Bug hunt: a context that is nowhere in the source",
    reference=_context,
    solution=context_of,
    cases=(
        Case(
            state=_drawn(1, 2, seed=37),
            memory=_drawn(1, 3, 2, seed=38),
            W=_drawn(2, 2, seed=39),
            U=_drawn(2, 2, seed=40),
            v=torch.tensor([1.0, -1.0]),
        ),
        Case(
            state=_drawn(2, 3, seed=41),
            memory=_drawn(2, 4, 5, seed=42),
            W=_drawn(5, 3, seed=43),
            U=_drawn(5, 5, seed=44),
            v=_drawn(5, seed=45),
        ),
    ),
    mistakes=(
        Mistake(
            "no_projection",
            lambda s, m, W, U, v: _context(s, m, W, torch.eye(len(U), dtype=U.dtype), v),
            "The context is made of states now, but the score lost its U. Keep the projection for the score, under "
            "another name.",
        ),
        Mistake(
            "over_the_batch",
            lambda s, m, W, U, v: _context(s, m, W, U, v, dim=0),
            "The values are right, but your softmax now runs over the batch.",
        ),
    ),
    hints=(
        "A context is an average of memory states. Can it be longer than the longest of them?",
        "Look at the name memory: what does it stand for in the first line, and what in the last?",
        "Call the projected states keys, and leave memory as it was.",
    ),
    given=_given_context,
)


def read_source(state, memory, lengths):
    scores = (state[:, None, :] @ memory.mT)[:, 0]  # (batch, source)
    places = torch.arange(memory.shape[1])  # (source,)
    scores = scores.masked_fill(places >= lengths[:, None], -torch.inf)  # padding behind the end
    weights = torch.softmax(scores, dim=-1)
    return (weights[:, :, None] * memory).sum(dim=1)


def _read(state, memory, mask=None):
    weights = masked_softmax(state[:, None, :] @ memory.mT, mask)
    return (weights @ memory)[:, 0]


def _scores_times(state, memory, lengths):
    scores = (state[:, None, :] @ memory.mT)[:, 0]
    scores = scores * (torch.arange(memory.shape[1]) < lengths[:, None])
    return (torch.softmax(scores, dim=-1)[:, :, None] * memory).sum(dim=1)


def _given_read(state, memory, lengths):
    scores = (state[:, None, :] @ memory.mT)[:, 0]
    weights = torch.softmax(scores, dim=-1)
    return (weights[:, :, None] * memory).sum(dim=1)


def _late(state, memory, lengths):
    weights = torch.softmax((state[:, None, :] @ memory.mT)[:, 0], dim=-1)
    weights = weights * (torch.arange(memory.shape[1]) < lengths[:, None])
    return (weights[:, :, None] * memory).sum(dim=1)


_HUNT_PADDING = Exercise(
    name="hunt_padding",
    notebook=_NOTEBOOK,
    title="Bug hunt: a date that depends on its neighbours",
    reference=lambda state, memory, lengths: _read(
        state, memory, padding_mask(lengths, memory.shape[1])
    ),
    solution=read_source,
    cases=(
        Case(
            state=_drawn(1, 2, seed=46),
            memory=_drawn(1, 3, 2, seed=47),
            lengths=torch.tensor([2]),
        ),
        Case(
            state=_drawn(3, 4, seed=48),
            memory=_drawn(3, 5, 4, seed=49),
            lengths=torch.tensor([5, 1, 3]),
        ),
    ),
    mistakes=(
        Mistake(
            "scores_to_zero",
            _scores_times,
            "A score of 0 hides nothing: exp(0) is 1, and padding still gets weight. Hidden scores must be -inf.",
        ),
        Mistake(
            "after_the_softmax",
            _late,
            "Padding gets no weight now, but the weights that are left no longer sum to 1. Hide before the softmax.",
        ),
        Mistake(
            "one_too_many",
            lambda s, m, n: _read(s, m, padding_mask((n + 1).clamp(max=m.shape[1]), m.shape[1])),
            "Off by one: the first place of padding is still seen. Place `length` is the first one behind the end.",
        ),
        Mistake(
            "one_too_few",
            lambda s, m, n: _read(s, m, padding_mask(n - 1, m.shape[1])),
            "Off by one: the last real token is hidden too.",
        ),
    ),
    hints=(
        "Which argument is never used?",
        "torch.arange(memory.shape[1]) >= lengths[:, None] is True at padding, shape (batch, source).",
        "scores.masked_fill(that, -torch.inf), before the softmax.",
    ),
    given=_given_read,
)

EXERCISES = (_HUNT_CONTEXT, _HUNT_PADDING, _LOOKS_AT, _GRU, _FORCED, _LUONG, _BAHDANAU)
