"""One training of a translator: batches by tokens, a schedule, evaluation, checkpoints, averaged weights."""

import math
import platform
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from itertools import count, takewhile
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from course_lib.data.batching import TokenBatches
from course_lib.data.sentence_pairs import SPLITS, SentencePairs
from course_lib.data.subwords import Subwords
from course_lib.train import fused_cross_entropy, train_step
from course_lib.train.folder import RunFolder, write_weights
from course_lib.train.processes import Processes
from course_lib.train.scores import sacrebleu_scores, without_four_tokens
from course_lib.train.settings import Settings
from course_lib.train.translator import SubwordTranslator, positions_of
from course_lib.transformer import Transformer

_NAMED = 5  # places in a message
_NO_CLIPPING = 1e30  # a norm that no gradient has


class Shard(NamedTuple):
    """The pairs of a batch that one process takes; `tokens` counts what the whole batch predicts."""

    source: Tensor
    target: Tensor
    tokens: int


class Moment(NamedTuple):
    """What a callback sees after a step: losses are in nats per token; the held-out ones are None between."""

    step: int
    share: float  # of the budget
    loss: float
    tokens: int  # target tokens of this step
    seconds: float  # since the start of the run
    held_out_loss: float | None = None
    bleu: float | None = None
    chrf: float | None = None


class Run:
    """A training that can be stopped at any moment and continues as if it had not been.

    Step `n` depends on the settings, the weights before it and its number alone: its batches and its dropout are drawn
    from seeds made of the seed, `n` and the rank.

    Args:
        settings: of this run.
        pairs: the text; "val" is measured in training, "test" at the end.
        folder: for checkpoints and results.
        processes: that train together.
        resume: continue from the folder's checkpoint.
        compiled: whether to use `torch.compile`.
        make_model: from the settings and the size of the vocabulary to a model.

    Raises:
        ValueError: for what would stop the training later, as far as it can be known; nothing is written then.
    """

    def __init__(
        self,
        settings: Settings,
        pairs: SentencePairs,
        folder: RunFolder,
        processes: Processes,
        *,
        resume: bool = False,
        compiled: bool = False,
        make_model: Callable[[Settings, int], nn.Module] | None = None,
    ) -> None:
        self.settings = settings = settings.of(pairs)
        self.pairs, self.folder, self.processes = pairs, folder, processes
        folder.require_usable(resume)
        _require_sentences(pairs)
        resume = bool(processes.of_first(resume and folder.holds_a_run()))
        if resume:
            settings.require_same(Settings.read(folder.settings), folder.path)
        self.subwords = self._vocabulary(resume)
        try:
            torch.manual_seed(settings.seed)
            make = make_model or (lambda made, size: Transformer(made.model_config(size)))
            self.model = make(settings, len(self.subwords)).to(processes.device)
            self.translator = SubwordTranslator(self.model, self.subwords)
            self._trained = processes.wrapped(torch.compile(self.model) if compiled else self.model)
            self.optimizer = torch.optim.Adam(
                self.model.parameters(), lr=settings.lr, betas=(0.9, 0.98), fused=True
            )
            self.batches = TokenBatches(
                *self._fitting(), settings.tokens, world=processes.world, seed=settings.seed
            )
            self._try()
        except (RuntimeError, MemoryError) as error:  # PyTorch's, of memory, devices and compilers
            raise ValueError(f"such a run cannot be trained here: {error}") from error
        self.step, self.seconds, self.losses, self.measured = 0, 0.0, [], []
        self.stopping = False
        state = folder.load() if resume else None
        if state is not None:
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            for name in ("step", "seconds", "losses", "measured"):
                setattr(self, name, state[name])
        if processes.first:
            folder.start(settings, self.subwords)

    @property
    def share(self) -> float:
        """How much of the budget of steps or minutes is spent."""
        if self.settings.steps is not None:
            return self.step / self.settings.steps
        return self.processes.of_first(self.seconds / (60 * self.settings.minutes))

    def train(
        self,
        callback: Callable[[Moment], None] = lambda moment: None,
        *,
        save_seconds: float = 60.0,
    ) -> str:
        """Train until the budget is spent, or SIGINT or SIGTERM arrives; return "done" or "stopped".

        Args:
            callback: called after each step.
            save_seconds: between two checkpoints.
        """
        settings, first, before = self.settings, self.processes.first, 0.0
        started, saved = time.perf_counter() - self.seconds, time.perf_counter()
        with self._stopped_by_signals(), self._saved_at_the_end():
            while (share := self.share) < 1 and not self.processes.of_first(self.stopping):
                loss, tokens = self._step(self.step + 1, share)
                self.step += 1
                self.losses.append(loss)
                if first and int(100 * share) > max(int(100 * before), 99 - settings.average):
                    self.folder.save_for_average(self.model, self.step, settings.average)
                before = share
                self.seconds = time.perf_counter() - started
                moment = Moment(self.step, share, loss, tokens, self.seconds)
                if self.step % settings.evaluate_every == 0 and first:
                    self.folder.save_weights(self.model, self.step, settings.average)
                    moment = moment._replace(**self.evaluate(self.pairs.val))
                    self.measured.append(moment._asdict())
                    self.seconds = time.perf_counter() - started
                if first and time.perf_counter() - saved > save_seconds:
                    self.save()
                    saved = time.perf_counter()
                callback(moment)
        return "stopped" if share < 1 else "done"

    def save(self) -> None:
        """Write all that is needed to continue."""
        state = {name: getattr(self, name) for name in ("step", "seconds", "losses", "measured")}
        state |= {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        self.folder.save(state)

    def finish(self) -> dict[str, Any]:
        """Average the last weights, keep what translates the held-out sentences best, and test that.

        The weights are written first: nothing that is measured afterwards can cost them.

        Returns:
            What is written as the result: settings, losses, measurements, and BLEU and chrF of the test sentences, by
            greedy decoding and with a beam of 5, with sacreBLEU's signatures.
        """
        write_weights(self.model, self.folder.model)
        self.folder.save_for_average(self.model, self.step, self.settings.average)
        final = {name: one.detach().clone() for name, one in self.model.state_dict().items()}
        choices = {"last": self.evaluate(self.pairs.val)}
        # a shared matrix is there once
        self.model.load_state_dict(self.folder.average(), strict=False)
        choices["averaged"] = self.evaluate(self.pairs.val)
        best = max(choices, key=lambda name: (choices[name]["bleu"], choices[name]["chrf"]))
        if best == "last":
            self.model.load_state_dict(final)
        else:
            write_weights(self.model, self.folder.model)
        sources, references = zip(*self.pairs.test, strict=True)
        test = {}
        for name, beam in (("greedy", 1), ("beam 5", 5)):
            candidates = self.translator.all(sources, beam_size=beam)
            test[name] = sacrebleu_scores(candidates, references, self.settings.target)
        where = self.processes.device
        device = torch.cuda.get_device_name(where) if where.type == "cuda" else where.type
        result = {
            "settings": asdict(self.settings),
            "pairs": {split: len(getattr(self.pairs, split)) for split in SPLITS},
            "too long, for training": self.too_long,
            "parameters": sum(one.numel() for one in self.model.parameters()),
            "steps": self.step,
            "epochs": round(self.batches.epoch_of(self.step * self.settings.accumulation), 2),
            "minutes": round(self.seconds / 60, 2),
            "machine": f"{platform.machine()}, {torch.get_num_threads()} threads, {device}, "
            f"{self.processes.world} process(es), PyTorch {torch.__version__}",
            "val": choices,
            "kept": best,
            "test": test,
            "measured": self.measured,
            "loss": [
                round(some.mean().item(), 4)
                for some in torch.tensor(self.losses, dtype=torch.float64).split(100)
            ],
        }
        self.folder.write_result(result)
        return result

    @torch.no_grad()
    def evaluate(self, pairs: list[tuple[str, str]]) -> dict[str, float]:
        """Return the loss per token of these pairs, and BLEU and chrF of their greedy translations."""
        self.model.eval()
        encoded = self._encoded(pairs)
        longest = max(len(one) for side in encoded for one in side)
        batches = TokenBatches(*encoded, max(self.settings.tokens, longest))
        total = tokens = 0.0
        for number in takewhile(lambda number: batches.epoch_of(number) < 1, count()):
            batch = Shard(*batches[number], batches.target_tokens(number))
            total += self._mean_loss(self.model, batch, smoothing=0.0).item() * batch.tokens
            tokens += batch.tokens
        texts, references = zip(*pairs, strict=True)
        scores = sacrebleu_scores(self.translator.all(texts), references, self.settings.target)
        return {
            "held_out_loss": round(total / tokens, 4),
            "bleu": scores["score"],
            "chrf": scores["chrf"],
        }

    def _vocabulary(self, resume: bool) -> Subwords:
        """Return the subwords of the folder, or those that the first process learns."""
        if resume:
            return Subwords.read(self.folder.subwords)
        learned = None
        if self.processes.first:
            texts = (text for pair in self.pairs.train for text in pair)
            learned = Subwords.learned(texts, self.settings.vocabulary).to_str()
        return Subwords.from_str(self.processes.shared(learned))

    def _fitting(self) -> tuple[list[Tensor], list[Tensor]]:
        """Return the pairs for training, those over the limit that was asked for left out or cut, and named.

        Raises:
            ValueError: for pairs that do not fit into a batch, or have more tokens than the model has positions.
        """
        settings, world = self.settings, self.processes.world
        sides = self._encoded(self.pairs.train)
        limit = settings.skip_longer or settings.cut_longer
        self.too_long = {"left out": 0, "cut": 0}
        if limit is not None and (over := _longer_than(limit, sides)):
            done = "left out" if settings.skip_longer else "cut"
            self.too_long[done] = len(over)
            if done == "cut":
                sides = tuple([_cut(one, limit) for one in side] for side in sides)
            else:
                sides = tuple(
                    [one for n, one in enumerate(side) if n not in over] for side in sides
                )
            if self.processes.first:
                said = self._named("train", over)
                warnings.warn(f"{said} have more than {limit} tokens, and are {done}", stacklevel=2)
            if not sides[0]:
                raise ValueError(f"skip_longer={limit} leaves no pair for training")
        if over := _longer_than(settings.tokens // world, sides):
            room = f"tokens={settings.tokens}" + (f" for {world} processes" if world > 1 else "")
            most = settings.tokens // world
            raise ValueError(
                f"{self._named('train', over)} do not fit into {room}. Give more --tokens, leave such pairs out with "
                f"--skip-longer {most}, or cut them with --cut-longer {most}"
            )
        most = positions_of(self.model)
        for split in SPLITS if math.isfinite(most) else ():
            own = sides if split == "train" else self._encoded(getattr(self.pairs, split))
            if over := _longer_than(most, own):
                raise ValueError(
                    f"{self._named(split, over)} have more than the {most} positions of positions="
                    f"{settings.positions!r}. Choose other positions, or shorten these sentences"
                )
        return sides

    def _named(self, split: str, lengths: dict[int, int]) -> str:
        """Return how many pairs these are, and where the first of them stand, with their lengths."""
        pairs = getattr(self.pairs, split)
        first = list(lengths)[:_NAMED]
        places = self.pairs.places([pairs[n] for n in first], split)
        said = [f"{one} ({lengths[n]:,} tokens)" for one, n in zip(places, first, strict=True)]
        more = f", and {len(lengths) - _NAMED} more" if len(lengths) > _NAMED else ""
        return f"{len(lengths):,} of {len(pairs):,} pairs of {split} ({'; '.join(said)}{more})"

    def _try(self) -> None:
        """Compute the largest batch and one translation: what cannot work fails now, and not after an hour."""
        device, bfloat16 = self.processes.device.type, self.settings.precision == "bfloat16"
        if bfloat16 and self.processes.first and _computes_bfloat16_slowly(device):
            warnings.warn(
                "precision='bfloat16' is slower than float32 on this processor, which has no instructions for it "
                "(AVX-512): a training step took 10 to 19 times as long. Train with --precision float32",
                stacklevel=2,
            )
        self._trained.train()
        with torch.autocast(device, torch.bfloat16, enabled=bfloat16):
            loss = self._loss(self._trained, self._shard(self.batches.largest))
        loss.backward()
        self.optimizer.zero_grad()
        if not self.processes.first:
            return
        self.evaluate(self.pairs.val[:1])
        for split in ("val", "test"):
            references = [target for _, target in getattr(self.pairs, split)]
            if long := _longer_than(
                self.settings.tokens, self._encoded(getattr(self.pairs, split))
            ):
                warnings.warn(
                    f"{self._named(split, long)} have more than tokens={self.settings.tokens} tokens; the model was not trained "
                    f"on such, and each measurement takes long to translate them",
                    stacklevel=2,
                )
            if name := without_four_tokens(references, self.settings.target):
                warnings.warn(
                    f"no target sentence of {split} has four tokens as BLEU counts them (tok:{name}), so BLEU says little, "
                    f"or is 0: look at chrF",
                    stacklevel=2,
                )

    def _shard(self, number: int) -> Shard:
        """Return this process's share of a batch."""
        mine = self.batches.shard(number, self.processes.rank, self.processes.world)
        return Shard(*mine, self.batches.target_tokens(number))

    def _step(self, step: int, share: float) -> tuple[float, int]:
        settings, processes = self.settings, self.processes
        torch.manual_seed((settings.seed * 1_000_003 + step) * processes.world + processes.rank)
        for group in self.optimizer.param_groups:
            group["lr"] = settings.lr_at(step, share)
        first = (step - 1) * settings.accumulation
        shards = [self._shard(number) for number in range(first, first + settings.accumulation)]
        loss = train_step(
            self._trained,
            self.optimizer,
            self._loss,
            shards,
            max_grad_norm=settings.max_grad_norm or _NO_CLIPPING,
            token_count=lambda shard: shard.tokens,
            precision=settings.precision,
        )
        return loss, sum(shard.tokens for shard in shards)

    def _loss(self, model: nn.Module, shard: Shard) -> Tensor:
        """Return the mean over the tokens of the whole batch, with the gradient of this process's share.

        The gradients of the processes are averaged; that their mean is the gradient of the whole batch, each is
        multiplied by the number of processes.
        """
        mine = self._mean_loss(model, shard, self.settings.smoothing) * self.processes.world
        return mine + (self.processes.mean(mine.detach().clone()) - mine.detach())

    def _mean_loss(self, model: nn.Module, shard: Shard, smoothing: float) -> Tensor:
        source, target = (part.to(self.processes.device) for part in (shard.source, shard.target))
        logits, labels = model(source, target[:, :-1]), target[:, 1:]
        total = fused_cross_entropy(
            logits.flatten(0, 1),
            labels.flatten(),
            smoothing=smoothing,
            ignore_index=self.subwords.pad_id,
        )
        return total / shard.tokens

    def _encoded(self, pairs: list[tuple[str, str]]) -> tuple[list[Tensor], list[Tensor]]:
        sources, targets = zip(*pairs, strict=True)
        encode = self.subwords.encode_all
        return encode(sources, eos=True), encode(targets, bos=True, eos=True)

    @contextmanager
    def _saved_at_the_end(self) -> Iterator[None]:
        """Save however the training ends: a step is taken as a whole, or not at all."""
        try:
            yield
        finally:
            if self.processes.first:
                self.save()

    @contextmanager
    def _stopped_by_signals(self) -> Iterator[None]:
        """Let Ctrl-C, and the SIGTERM of a cluster, end the run after the step that is being taken."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def stop(*_) -> None:
            self.stopping = True

        before = {one: signal.signal(one, stop) for one in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)


def _require_sentences(pairs: SentencePairs) -> None:
    """Refuse data without a sentence to train, to choose or to test by."""
    counts = {split: len(getattr(pairs, split)) for split in SPLITS}
    for split, number in counts.items():
        if not number:
            said = ", ".join(f"{count:,} in {name!r}" for name, count in counts.items())
            table = (
                "Of a table, 2 % of the source sentences are held out for each of 'val' and 'test': give one of some "
                "hundred pairs, or a folder with files for each split"
            )
            advice = "Each of them needs one at least" if pairs.columns is None else table
            raise ValueError(
                f"{pairs.name} has no pair of sentences in {split!r}: there are {said}. {advice}"
            )


def _computes_bfloat16_slowly(device: str) -> bool:
    """Whether oneDNN, PyTorch's library for CPUs, has no products of bfloat16 for this processor."""
    mkldnn = torch.backends.mkldnn.is_available()  # elsewhere than on x86 nothing is known
    return device == "cpu" and mkldnn and not torch.ops.mkldnn._is_mkldnn_bf16_supported()


def _longer_than(limit: int, sides: tuple[list[Tensor], list[Tensor]]) -> dict[int, int]:
    """Return the pairs of which one side has more tokens, number → length of that side."""
    lengths = (max(map(len, pair)) for pair in zip(*sides, strict=True))
    return {number: length for number, length in enumerate(lengths) if length > limit}


def _cut(ids: Tensor, limit: int) -> Tensor:
    """Return the first tokens, and the one that ends the sentence."""
    return ids if len(ids) <= limit else torch.cat([ids[: limit - 1], ids[-1:]])
