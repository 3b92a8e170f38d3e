"""The logit-lens explorer: what each block of a language model would predict."""

import math
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from course_lib import messages
from course_lib.plots import MapPanel, figure
from course_lib.plots.words import width
from course_lib.topics.interpretability import residual_streams
from course_lib.topics.pretrained import Tokenizer
from course_lib.transformer import DecoderOnly
from course_lib.widgets.controls import Text
from course_lib.widgets.explorer import View, explorer, probability, remembered
from course_lib.widgets.token_names import quoted, read_tokens, token_names

_MOST_TOKENS, _ACROSS, _FOLLOWED = 64, 10, 5


class _Lens(NamedTuple):
    """What the stream after each block predicts; the first row is of the embeddings.

    `best` and `p` (depth, length): the most probable token and its probability; `final` (length, followed): the most
    probable tokens of the model, and `followed` and `ranks` (depth, length, followed) their probabilities and ranks.
    """

    names: list[str]
    best: Tensor
    p: Tensor
    final: Tensor
    followed: Tensor
    ranks: Tensor


def _counts(true: Bool[Tensor, "length vocabulary"]) -> Int[Tensor, "length"]:
    """Return how many are true in each row, in a tenth of the time that `sum` takes."""
    return torch.tensor([np.count_nonzero(row) for row in true.cpu().numpy()])


@torch.no_grad()
def _read(model: DecoderOnly, tokenizer: Tokenizer, text: str) -> _Lens:
    tokens = read_tokens(model, tokenizer, text, most=_MOST_TOKENS)
    streams = residual_streams(model, tokens)[:, 0]  # (depth, length, d_model)

    def logits(stream: Tensor) -> Tensor:
        return model.lm_head(model.norm(stream)).float()  # (length, vocabulary)

    count = min(_FOLLOWED, model.vocabulary_size)
    final = logits(streams[-1]).topk(count).indices  # (length, followed)
    best, p, followed, ranks = [], [], [], []
    for stream in streams:  # one after the other: all at once would be gigabytes
        z = logits(stream)
        now = z.softmax(dim=-1)
        most = now.max(dim=-1)
        best.append(most.indices)
        p.append(most.values)
        followed.append(now.gather(-1, final))
        each = z.gather(-1, final).T[..., None]  # (followed, length, 1); not p, where many are 0
        ranks.append(torch.stack([1 + _counts(z > one) for one in each], dim=-1))
    names = token_names(tokenizer, tokens[0].tolist())
    for word in token_names(tokenizer, torch.stack(best).unique().tolist()):
        width(word, 9)  # its outline is drawn now, and not while the position moves
    parts = (*map(torch.stack, (best, p)), final, *map(torch.stack, (followed, ranks)))
    return _Lens(names, *(part.cpu() for part in parts))


@explorer
def logit_lens_explorer(
    model: DecoderOnly,
    tokenizer: Tokenizer,
    text: str = "The capital of Japan is the city of",
    *,
    position: int = 63,
    title: str = "Logit lens",
    approximate: bool = False,
) -> View:
    """See the most probable next token after each block, at each position, as if no further block followed.

    Colours are its probability. Click a position, or move to it: beside the table are the ranks, after each block, of
    the 5 tokens that the whole model finds most probable there. Of a long text, at most 10 positions are shown at a time.

    Args:
        model, tokenizer: from `load_smollm2`.
        text: initial content of the text box, of 2 to 64 tokens.
        position: of the token whose successor is predicted; at most the last one is shown.
        title: the first words of the summary.
        approximate: as for `Explorer`.

    Raises:
        ValueError: for another kind of model, and a text of too few or too many tokens.
    """

    # moving the position does not read the text again
    read = remembered(model)(partial(_read, model, tokenizer))
    depth = len(read(text).best)
    blocks = ["emb.", *(str(n) for n in range(depth - 1))]

    fig, (left, right) = figure(10.4, 6.6, columns=2, width_ratios=(2, 1))
    left.set(title="most probable next token", xlabel="text", ylabel="after block")
    right.set(title="rank; colour: probability", xlabel="next token", ylabel="after block")
    table = MapPanel(
        left, name="probability", space=(0.08, 0.14, 0.17), text="token",
        chooses=(None, "position"),
    )  # fmt: skip
    # the names of the rows are as wide as on the left, where the map is wider
    course = MapPanel(right, name="probability", space=(0.15, 0.14, 0.17), text="rank", bar=False)

    def update(text: str, position: int) -> dict[str, str]:
        names, best, p, final, followed, ranks = read(text)
        position = min(position, len(names) - 1)
        pages = math.ceil(len(names) / _ACROSS)
        across = math.ceil(len(names) / pages)  # pages are equally long
        start = position // across * across  # a click does not turn the page
        end = min(start + across, len(names))
        shown = best[:, start:end].tolist()
        table.update(
            p[:, start:end],
            blocks,
            [f"{n} {names[n]}" for n in range(start, end)],
            cell=(None, position - start),
            first=(0, start),
            texts=[token_names(tokenizer, line) for line in shown],
            numbers=shown,
        )
        mine = followed[:, position]  # (depth, followed)
        called = token_names(tokenizer, final[position].tolist())
        course.update(
            mine,
            blocks,
            called,
            texts=[[f"{rank:,}" for rank in line] for line in ranks[:, position].tolist()],
        )
        settled = (best[:, position] == final[position, 0]).int().flip(0).cumprod(0).sum().item()
        return {
            "text": f"{quoted(text)}, {len(names)} tokens",
            "position": f"{position} {names[position]}",
            "the model predicts": ", ".join(
                f"{name!r} {probability(one)}"
                for name, one in zip(called, mine[-1].tolist(), strict=True)
            ),
            f"{called[0]!r} is most probable": f"after {f'block {now} and later' if (now := depth - 1 - settled) >= 0 else 'every block'}",
        }

    def limits(text: str, **_) -> dict[str, int]:
        return {"position": len(read(text).names) - 1}

    rule = Text(messages.RULE_OF_TEXTS.format(most=_MOST_TOKENS))
    panels, controls = [table, course], {"text": rule, "position": range(_MOST_TOKENS)}
    return View(
        title, panels, update, controls, "logit_lens", approximate=approximate, limits=limits
    )
