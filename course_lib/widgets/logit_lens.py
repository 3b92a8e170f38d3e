"""The logit-lens explorer: what each block of a language model would predict."""

from functools import lru_cache
from typing import NamedTuple

import ipywidgets
import matplotlib
import torch
from torch import Tensor

from course_lib.inspection import weights_version
from course_lib.interpretability import residual_streams
from course_lib.plots import CellMapPanel, figure
from course_lib.plots.style import STYLE
from course_lib.plots.tokens import shortened
from course_lib.pretrained import Tokenizer
from course_lib.transformer import DecoderOnly
from course_lib.validation import require_whole
from course_lib.widgets.code import recreatable
from course_lib.widgets.explorer import Explorer, probability
from course_lib.widgets.live_figure import LiveFigure
from course_lib.widgets.token_names import read_tokens, token_names

_MOST_TOKENS, _ACROSS, _FOLLOWED = 64, 12, 5
_LONGEST = 7  # characters of a token in a cell


class _Lens(NamedTuple):
    """What the stream after each block predicts; the first row is of the embeddings.

    `best` and `p` (depth, length): the most probable token and its probability; `final` (length, followed): the most
    probable tokens of the model, and `followed` (depth, length, followed) their probabilities.
    """

    names: list[str]
    best: Tensor
    p: Tensor
    final: Tensor
    followed: Tensor


@torch.no_grad()
def _read(model: DecoderOnly, tokenizer: Tokenizer, text: str) -> _Lens:
    tokens = read_tokens(model, tokenizer, text, most=_MOST_TOKENS)
    streams = residual_streams(model, tokens)[:, 0]  # (depth, length, d_model)

    def distribution(stream: Tensor) -> Tensor:
        return model.lm_head(model.norm(stream)).float().softmax(dim=-1)  # (length, vocabulary)

    count = min(_FOLLOWED, model.vocabulary_size)
    final = distribution(streams[-1]).topk(count).indices  # (length, followed)
    best, p, followed = [], [], []
    for stream in streams:  # one after the other: all at once would be gigabytes
        now = distribution(stream)
        most = now.max(dim=-1)
        best.append(most.indices)
        p.append(most.values)
        followed.append(now.gather(-1, final))
    names = token_names(tokenizer, tokens[0].tolist())
    parts = (torch.stack(best), torch.stack(p), final, torch.stack(followed))
    return _Lens(names, *(part.cpu() for part in parts))


@recreatable
def logit_lens_explorer(
    model: DecoderOnly,
    tokenizer: Tokenizer,
    text: str = "The Eiffel Tower stands in the city of",
    *,
    position: int = 63,
    title: str = "Logit lens",
    approximate: bool = False,
) -> Explorer:
    """See the most probable next token after each block, at each position, as if no further block followed.

    Colours are its probability. Click a position, or move to it: beside the table are the probabilities, after each
    block, of the 5 tokens that the whole model finds most probable there. Of a long text, 12 positions are shown at a time.

    Args:
        model, tokenizer: from `load_smollm2`.
        text: initial content of the text box, of 2 to 64 tokens.
        position: of the token whose successor is predicted; at most the last one is shown.
        title: the first words of the summary.
        approximate: as for `Explorer`.

    Raises:
        ValueError: for another kind of model, and a text of too few or too many tokens.
    """
    require_whole(0, position=position)

    @lru_cache(maxsize=1)  # moving the position does not read the text again
    def read_once(text: str, version: int) -> _Lens:
        return _read(model, tokenizer, text)

    def read(text: str) -> _Lens:
        return read_once(text, weights_version(model))

    depth = len(read(text).best)
    blocks = ["in", *(str(n) for n in range(depth - 1))]

    with matplotlib.rc_context(STYLE):
        fig, (left, right) = figure(10.4, 6.6, columns=2, width_ratios=(1.75, 1))
        space = {"y_label": "after block", "left": 0.06, "below": 0.14}
        table = CellMapPanel(
            left,
            title="most probable next token",
            x_label="text",
            bar="probability",
            right=0.17,
            chooses=(None, "position"),
            **space,
        )
        course = CellMapPanel(right, title="probabilities here", x_label="next token", **space)
        live = LiveFigure(fig, [table, course])

    def update(text: str, position: int) -> dict[str, str]:
        names, best, p, final, followed = read(text)
        position = min(position, len(names) - 1)
        start = position // _ACROSS * _ACROSS  # of the page; a click does not turn it
        end = min(start + _ACROSS, len(names))
        table.update(
            p[:, start:end],
            blocks,
            [f"{n} {names[n]}" for n in range(start, end)],
            cell=(None, position - start),
            first=(0, start),
            texts=[
                [shortened(name, _LONGEST) for name in token_names(tokenizer, line)]
                for line in best[:, start:end].tolist()
            ],
        )
        mine = followed[:, position]  # (depth, followed)
        called = token_names(tokenizer, final[position].tolist())
        course.update(
            mine,
            blocks,
            called,
            texts=[
                [f"{one:.2f}" if one >= 0.005 else "" for one in line] for line in mine.tolist()
            ],
        )
        settled = (best[:, position] == final[position, 0]).int().flip(0).cumprod(0).sum().item()
        return {
            "text": f"{text!r}, {len(names)} tokens",
            "position": f"{position} {names[position]}",
            "the model predicts": ", ".join(
                f"{name!r} {probability(one)}"
                for name, one in zip(called, mine[-1].tolist(), strict=True)
            ),
            "most probable": f"from block {blocks[-settled]} on",
        }

    controls = {
        "text": ipywidgets.Text(value=text, description="text"),
        "position": ipywidgets.IntSlider(
            position, min=0, max=max(position, _MOST_TOKENS - 1), description="position"
        ),
    }
    return Explorer(
        title,
        controls,
        live,
        update,
        name="logit_lens",
        approximate=approximate,
        limits=lambda text, **_: {"position": len(read(text).names) - 1},
    )
