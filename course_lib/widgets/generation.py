"""The generation explorer: a language model continues a text, token by token."""

import asyncio
import html
import math
from collections.abc import Iterator
from functools import partial

import ipywidgets
import torch

from course_lib import messages
from course_lib.plots import figure
from course_lib.plots.words import drawable
from course_lib.topics.attention_maps import weights_version
from course_lib.topics.pretrained import Tokenizer
from course_lib.topics.pretrained.text import encode_prompt
from course_lib.transformer import DecoderOnly
from course_lib.transformer.decoding import DecodingSession
from course_lib.transformer.decoding.generate import next_token
from course_lib.widgets.controls import Text
from course_lib.widgets.explorer import Explorer, View, explorer, probability
from course_lib.widgets.next_token import (
    PROCESSOR_LABELS,
    PROCESSORS,
    distribution_panel,
    filtered,
    show_distribution,
)
from course_lib.widgets.token_names import quoted, token_names

_BARS, _LONGEST, _HEADING = 10, 200, 60
_TAKE = "take"  # what a click on a bar does


@explorer
def generation_explorer(
    model: DecoderOnly,
    tokenizer: Tokenizer,
    text: str = "The capital of France is",
    *,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    seed: int = 0,
    length: int = 40,
    title: str = "Text, token by token",
    approximate: bool = False,
) -> View:
    """Let a language model continue a text; see each token arrive, and the distribution of the next one.

    Generate samples up to `length` tokens, beginning after the text; the same text, settings and seed give the
    same tokens again. Next token samples one more, a click on a bar takes its token; Stop ends sampling. Temperature, top-k and top-p, in this order,
    and the length may be changed meanwhile. With top-k 1 the most probable token is taken each time.

    The 10 most probable tokens are shown: a pale bar for the probability of the model, in it a filled bar for
    the probability with which the token is sampled. ␣ is a space, ↵ a new line. In the text, the colour of a
    generated token is the stronger, the less probable the model found it.

    Args:
        model, tokenizer: from `load_smollm2`.
        text: initial content of the text box.
        temperature: 0.05 to 3.
        top_k: at most 20; 0 for all.
        top_p: 0.01 to 1.
        seed: from 0 to 999.
        length: the maximum number of new tokens, at most 200.
        title: the first words of the summary.
        approximate: as for `Explorer`.

    Raises:
        ValueError: for another kind of model or tokenizer, an empty text or one that exceeds the context.
    """
    continuation = _Continuation(model, tokenizer)
    fig, axes = figure(6.8, 4.0)
    bars = distribution_panel(axes, _BARS, chooses=_TAKE)
    axes.set_xlim(-0.27, 1.23)  # a narrow picture: the longest name and number need more of it

    def update(text: str, seed: int, length: int, **processors: float) -> dict[str, str]:
        continuation.read(text, seed, length)
        continuation.processors = processors
        count, new = len(continuation.generated), continuation.text()
        so_far = drawable((text + new).replace("\n", "↵"))
        said = f"{count} token{'s' * (count > 1)}, {quoted(new)}" if count else "nothing yet"
        said += ", ended by the model" * continuation.ended
        facts = {"text": quoted(text), "seed": str(seed), "generated": said}
        return facts | show_distribution(
            bars,
            lambda ids: token_names(tokenizer, ids),
            continuation.session.logits[0].float(),
            processors,
            ("…" + so_far[-_HEADING:] if len(so_far) > _HEADING else so_far) + " …",
        )

    rule = Text(messages.RULE_OF_PROMPTS)
    controls = {"text": rule, **PROCESSORS, "seed": range(1000), "length": range(1, _LONGEST + 1)}
    return View(
        title, [bars], update, controls, "generation", PROCESSOR_LABELS, approximate=approximate,
        shown_by=partial(GenerationExplorer, continuation),
    )  # fmt: skip


class _Continuation:
    """A text, the tokens generated after it, and the model's state after the last of them.

    Attributes:
        prompt: the text.
        session: holds the logits of the next token.
        generated: ids of the tokens after the text.
        pieces: what each of them adds to the text, and the probability that the model gave it.
        processors: arguments of `filtered`.
    """

    def __init__(self, model: DecoderOnly, tokenizer: Tokenizer) -> None:
        self._model, self._tokenizer = model, tokenizer
        self._read = None
        self.prompt = ""
        self.session: DecodingSession | None = None
        self.generated: list[int] = []
        self.pieces: list[tuple[str, float]] = []
        self.processors: dict[str, float] = {}

    def read(self, text: str, seed: int, length: int) -> None:
        """Begin anew if the text, the seed or the weights are others.

        Raises:
            ValueError: for a text that is empty or, with `length` more tokens, too long.
        """
        prompt = encode_prompt(self._model, self._tokenizer, text, length)
        now = text, seed, weights_version(self._model)
        if now != self._read:
            self.session = DecodingSession(self._model, prompt)
            self._generator = torch.Generator(prompt.device).manual_seed(seed)
            self._read, self.prompt, self.generated, self.pieces = now, text, [], []

    def forget(self) -> None:
        """Begin anew at the next `read`."""
        self._read = None

    @property
    def ended(self) -> bool:
        """Whether the last token ends the text."""
        return self.generated[-1:] == [self._tokenizer.eos_id]

    def text(self) -> str:
        """Return the text of the generated tokens, without a last character whose bytes are not complete."""
        return "".join(piece for piece, _ in self.pieces)

    @torch.no_grad()
    def step(self, rank: int | None = None) -> None:
        """Sample one more token, or take the one of this rank, 0 for the most probable; let the model read it."""
        logits, before = self.session.logits.float(), self.text()  # (1, token)
        if rank is None:
            token = next_token(logits, [partial(filtered, **self.processors)], self._generator)
        else:
            token = logits.softmax(dim=-1).argsort(descending=True, stable=True)[:, rank]  # (1,)
        p = logits[0].softmax(dim=-1)[token].item()
        self.session.step(token)
        self.generated.append(token.item())
        now = self._tokenizer.decode(self.generated).rstrip("\ufffd")
        self.pieces.append((now[len(before) :], p))


class GenerationExplorer(Explorer):
    """The explorer of `generation_explorer`: an `Explorer` with buttons that generate text.

    In a notebook, the buttons generate in the background, so that other controls and Stop are heard; the same
    from code, in the foreground::

        explorer.generate()
        explorer.take(1)
        explorer.summary
    """

    def __init__(self, continuation: "_Continuation", view: View, *arguments) -> None:
        self._continuation, self._run, self._task = continuation, None, None
        self._written = ipywidgets.HTML()
        super().__init__(view, *arguments)
        names = messages.GENERATE, messages.NEXT_TOKEN, messages.STOP
        auto = {"width": "auto"}
        self.buttons = {name: ipywidgets.Button(description=name, layout=auto) for name in names}
        generate, one, stop = self.buttons.values()
        generate.on_click(lambda _: self._start_run(self._whole_text()))
        one.on_click(lambda _: self._start_run(self._tokens(one=True)))
        stop.on_click(lambda _: self.stop())
        row, *above, picture, words = self.children
        *inputs, reset = row.children
        row.children = inputs
        buttons = ipywidgets.HBox([*self.buttons.values(), reset])
        picture.layout = ipywidgets.Layout(
            flex="1 1 520px", min_width="0", max_width="680px", margin="0 12px 0 0"
        )
        self._written.layout = ipywidgets.Layout(flex="1 1 240px")
        beside = ipywidgets.Layout(flex_flow="row wrap")  # tokens that arrive move no picture
        shown = ipywidgets.HBox([picture, self._written], layout=beside)
        self.children = [row, *above, buttons, shown, words]
        self._write()

    def generate(self) -> None:
        """Begin after the text and sample as many tokens as the control says."""
        for _ in self._whole_text():
            pass

    def take(self, rank: int) -> None:
        """Go on with the token of this rank, 0 for the most probable, as a click on its bar does."""
        for _ in self._tokens(rank=rank):
            pass

    def choose(self, **values: object) -> None:
        """Set several controls by name, and draw once; the number of a bar takes its token."""
        rank = values.pop(_TAKE, None)
        if rank is None:
            super().choose(**values)
        else:
            self.take(rank)

    def stop(self) -> None:
        """Sample no more."""
        self._run = None

    def refresh(self) -> None:
        """Draw the picture for the current values of the controls; begin anew if text or seed are others."""
        super().refresh()
        self._write()

    def reset(self) -> None:
        """Reset every control to its initial value, and begin anew."""
        self.stop()
        self._continuation.forget()
        super().reset()

    def _start_run(self, tokens: Iterator[None]) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # not in a notebook
            for _ in tokens:
                pass
        else:
            self._task = loop.create_task(_one_by_one(tokens))  # a reference keeps it alive

    def _whole_text(self) -> Iterator[None]:
        self._continuation.forget()
        yield from self._tokens()

    def _tokens(self, *, one: bool = False, rank: int | None = None) -> Iterator[None]:
        """Sample tokens, or one, or take that of a rank; show each, until the text ends or something else is to be done."""
        self._run = run = object()
        one = one or rank is not None
        try:
            self._show()  # after `forget`, this begins anew
            session, generated = self._continuation.session, self._continuation.generated
            while not self._continuation.ended and (
                one or len(generated) < self.controls["length"].value
            ):
                self._continuation.step(rank)
                self._show()
                yield
                if one or self._run is not run or self._continuation.session is not session:
                    break
        except ValueError as problem:
            self._tell(messages.CANNOT_DRAW.format(reason=problem))
        else:
            self._tell(self.summary)

    def _show(self) -> None:
        """Draw and write the text, without a word on the line that screen readers read out."""
        self.picture.refresh(self._describe(), self.code)
        self._write()

    def _write(self) -> None:
        tokens = ""
        for piece, p in self._continuation.pieces:
            shade = 0.05 * min(-math.log2(max(p, 1e-9)), 10)  # for each bit of surprisal
            tokens += (
                f'<span title="{probability(p)}" style="background:rgb(230 97 0 / {shade:.0%})">'
            )
            tokens += f"{html.escape(piece)}</span>"
        self._written.value = (
            f'<p role="group" aria-label="{messages.GENERATED_TEXT}" tabindex="0" style="display:flex; '
            f"flex-direction:column-reverse; margin:4px 0; min-height:5em; max-height:350px; overflow-y:auto; line-height:1.6; "
            f'white-space:pre-wrap; overflow-wrap:anywhere"><span style="margin-bottom:auto">{html.escape(self._continuation.prompt)}'
            f'<b>{tokens}</b></span></p><p class="course-picture-help">{messages.GENERATED_HELP}</p>'
        )


async def _one_by_one(tokens: Iterator[None]) -> None:
    for _ in tokens:
        await asyncio.sleep(0.001)  # now clicks and moved sliders are heard
