"""The generation explorer: a language model continues a text, token by token."""

import asyncio
import html
from collections.abc import Iterator

import ipywidgets
import matplotlib
import torch
from torch import Tensor

from course_lib import messages
from course_lib.checks import pretrained as checks
from course_lib.decoding import DecodingSession
from course_lib.decoding.sampling import sampler
from course_lib.inspection import weights_version
from course_lib.plots import figure
from course_lib.plots.style import STYLE
from course_lib.plots.words import drawable
from course_lib.pretrained import Tokenizer
from course_lib.transformer import DecoderOnly
from course_lib.validation import require_whole
from course_lib.widgets.code import recreatable
from course_lib.widgets.explorer import Explorer
from course_lib.widgets.live_figure import LiveFigure
from course_lib.widgets.next_token import (
    distribution_panel,
    filtered,
    processor_controls,
    require_processors,
    show_distribution,
)
from course_lib.widgets.token_names import token_names

_BARS, _LONGEST, _HEADING = 10, 200, 70


@recreatable
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
) -> "GenerationExplorer":
    """Let a language model continue a text; see each token arrive, and the distribution of the next one.

    Generate samples up to `length` tokens, beginning after the text; the same text, settings and seed give the
    same tokens again. Next token samples one more; Stop ends sampling. Temperature, top-k and top-p, in this order,
    may be changed meanwhile. With top-k 1 the most probable token is taken each time.

    The 10 most probable tokens are shown: a pale bar for the probability of the model, in it a filled bar for
    the probability with which the token is sampled. ␣ is a space, ↵ a new line.

    Args:
        model, tokenizer: from `load_smollm2`.
        text: initial content of the text box.
        temperature: above 0, at most 3.
        top_k: at most 20; 0 for all.
        top_p: above 0, at most 1.
        seed: from 0 to 999.
        length: the maximum number of new tokens, at most 200.
        title: the first words of the summary.
        approximate: as for `Explorer`.

    Raises:
        ValueError: for another kind of model or tokenizer, an empty text or one that exceeds the context,
            and numbers out of range.
    """
    require_processors(temperature, top_k, top_p)
    require_whole(0, seed=seed)
    require_whole(length=length)
    for name, number, most in (("seed", seed, 999), ("length", length, _LONGEST)):
        if number > most:
            raise ValueError(f"{name}={number} must be at most {most}")
    continuation = _Continuation(model, tokenizer)
    with matplotlib.rc_context(STYLE):
        fig, axes = figure(10.4, 4.0)
        bars = distribution_panel(axes, _BARS)
        live = LiveFigure(fig, [bars])

    def update(
        text: str, temperature: float, top_k: int, top_p: float, seed: int, length: int
    ) -> dict[str, str]:
        continuation.read(text, seed, length)
        continuation.processors = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
        count, new = len(continuation.generated), continuation.text()
        so_far = drawable((text + new).replace("\n", "↵"))
        facts = {
            "text": repr(text),
            "seed": str(seed),
            "generated": f"{count} token{'s' * (count > 1)}, {new!r}" if count else "nothing yet",
        }
        if continuation.ended:
            facts["generated"] += ", ended by the model"
        return facts | show_distribution(
            bars,
            lambda ids: token_names(tokenizer, ids),
            continuation.session.logits[0].float(),
            **continuation.processors,
            heading=("…" + so_far[-_HEADING:] if len(so_far) > _HEADING else so_far) + " …",
            count=_BARS,
        )

    controls = {
        "text": ipywidgets.Text(value=text, description="text"),
        **processor_controls(temperature, top_k, top_p),
        "seed": ipywidgets.IntSlider(seed, min=0, max=999, description="seed"),
        "length": ipywidgets.IntSlider(length, min=1, max=_LONGEST, description="length"),
    }
    return GenerationExplorer(
        title, controls, live, update, continuation, name="generation", approximate=approximate
    )


class _Continuation:
    """A text, the tokens generated after it, and the model's state after the last of them.

    Attributes:
        session: holds the logits of the next token.
        generated: ids of the tokens after the text.
        processors: arguments of `filtered`.
    """

    def __init__(self, model: DecoderOnly, tokenizer: Tokenizer) -> None:
        self._model, self._tokenizer = model, tokenizer
        self._read = None
        self.session: DecodingSession | None = None
        self.generated: list[int] = []
        self.processors: dict[str, float] = {}

    def read(self, text: str, seed: int, length: int) -> None:
        """Begin anew if the text, the seed or the weights are others.

        Raises:
            ValueError: for a text that is empty or, with `length` more tokens, too long.
        """
        checks.continue_text(self._model, self._tokenizer, text, max_length=length)
        now = text, seed, weights_version(self._model)
        if now != self._read:
            prompt = torch.tensor([self._tokenizer.encode(text)])
            prompt = prompt.to(self._model.lm_head.weight.device)
            self.session = DecodingSession(self._model, prompt)
            self._sample = sampler([self._filtered], seed, prompt.device)
            self._read, self.generated = now, []

    def forget(self) -> None:
        """Begin anew at the next `read`."""
        self._read = None

    @property
    def ended(self) -> bool:
        """Whether the last token ends the text."""
        return self.generated[-1:] == [self._tokenizer.eos_id]

    def text(self) -> str:
        """Return the text of the generated tokens, without a last character whose bytes are not complete."""
        ids = self.generated[:-1] if self.ended else self.generated
        return self._tokenizer.decode(ids).rstrip("\ufffd")

    @torch.no_grad()
    def step(self) -> None:
        """Sample one more token, and let the model read it."""
        token = self._sample(self.session.logits)  # (1,)
        self.session.step(token)
        self.generated.append(token.item())

    def _filtered(self, logits: Tensor) -> Tensor:
        return filtered(logits.float(), **self.processors)


class GenerationExplorer(Explorer):
    """The explorer of `generation_explorer`: an `Explorer` with buttons that generate text.

    In a notebook, the buttons generate in the background, so that other controls and Stop are heard; the same
    from code, in the foreground::

        explorer.generate()
        explorer.summary
    """

    def __init__(self, title, controls, figure, update, continuation, **options) -> None:
        self._continuation, self._run, self._task = continuation, None, None
        self._written = ipywidgets.HTML()
        super().__init__(title, controls, figure, update, **options)
        self.buttons = {
            name: ipywidgets.Button(description=name, layout=ipywidgets.Layout(width="auto"))
            for name in (messages.GENERATE, messages.NEXT_TOKEN, messages.STOP)
        }
        generate, one, stop = self.buttons.values()
        generate.on_click(lambda _: self._start_run(self._whole_text()))
        one.on_click(lambda _: self._start_run(self._tokens(1)))
        stop.on_click(lambda _: self.stop())
        stop.disabled = True
        row, picture, words = self.children
        row.children = [*row.children[:-1], *self.buttons.values(), row.children[-1]]
        self.children = [row, self._written, picture, words]
        self._write()

    def generate(self) -> None:
        """Begin after the text and sample as many tokens as the control says."""
        for _ in self._whole_text():
            pass

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
        yield from self._tokens(self.controls["length"].value)

    def _tokens(self, count: int) -> Iterator[None]:
        """Sample tokens and show each, until the text ends or something else is to be done."""
        self._run = run = object()
        try:
            self._show()  # after `forget`, this begins anew
            self._enable(running=True)
            session = self._continuation.session
            for _ in range(count):
                if self._continuation.ended:
                    break
                self._continuation.step()
                self._show()
                yield
                if self._run is not run or self._continuation.session is not session:
                    break
        except ValueError as problem:
            self._tell(messages.CANNOT_DRAW.format(reason=problem))
        else:
            self._tell(self.summary)
        finally:
            if self._run in (run, None):
                self._run = None
                self._enable(running=False)

    def _show(self) -> None:
        """Draw and write the text, without a word on the line that screen readers read out."""
        self.picture.refresh(self._describe(), self.code)
        self._write()

    def _enable(self, *, running: bool) -> None:
        generate, one, stop = self.buttons.values()
        generate.disabled = one.disabled = running
        stop.disabled = not running

    def _write(self) -> None:
        text, new = self.controls["text"].value, self._continuation.text()
        self._written.value = (
            f'<p role="group" aria-label="{messages.GENERATED_TEXT}" style="margin:4px 0; max-width:1040px; '
            f'line-height:1.5; white-space:pre-wrap; overflow-wrap:anywhere">{html.escape(text)}'
            f"<b>{html.escape(new)}</b></p>"
        )


async def _one_by_one(tokens: Iterator[None]) -> None:
    for _ in tokens:
        await asyncio.sleep(0.001)  # now clicks and moved sliders are heard
