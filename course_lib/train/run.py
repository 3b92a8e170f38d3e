"""One training of a translator: batches by tokens, a schedule, evaluation, checkpoints, averaged weights."""

import platform
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from course_lib.data.batching import TokenBatches, pad
from course_lib.data.sentence_pairs import SentencePairs
from course_lib.data.subwords import Subwords
from course_lib.train import fused_cross_entropy, train_step
from course_lib.train.folder import RunFolder, write_weights
from course_lib.train.processes import Processes
from course_lib.train.settings import Settings
from course_lib.train.translator import SubwordTranslator
from course_lib.transformer import Transformer

_AT_ONCE = 100  # pairs whose held-out loss is computed together


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
        self.settings, self.pairs, self.folder, self.processes = settings, pairs, folder, processes
        if processes.first and not (resume and folder.holds_a_run()):
            texts = (text for pair in pairs.train for text in pair)
            folder.start(settings, Subwords.learned(texts, settings.vocabulary))
        processes.wait()
        self.subwords = Subwords.read(folder.subwords)
        torch.manual_seed(settings.seed)
        make = make_model or (lambda made, size: Transformer(made.model_config(size)))
        self.model = make(settings, len(self.subwords)).to(processes.device)
        self.translator = SubwordTranslator(self.model, self.subwords)
        self._trained = processes.wrapped(torch.compile(self.model) if compiled else self.model)
        self.optimizer = torch.optim.Adam(
            self.model.parameters(), lr=settings.lr, betas=(0.9, 0.98), fused=True
        )
        self.batches = TokenBatches(
            *self._encoded(pairs.train), settings.tokens, world=processes.world, seed=settings.seed
        )
        self.step, self.seconds, self.losses, self.measured = 0, 0.0, [], []
        self.stopping = False
        state = folder.load() if resume else None
        if state is not None:
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            for name in ("step", "seconds", "losses", "measured"):
                setattr(self, name, state[name])

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
        with self._stopped_by_signals():
            while (share := self.share) < 1 and not self.processes.of_first(self.stopping):
                self.step += 1
                loss, tokens = self._step(share)
                self.losses.append(loss)
                if first and int(100 * share) > max(int(100 * before), 99 - settings.average):
                    self.folder.save_for_average(self.model, self.step, settings.average)
                before = share
                self.seconds = time.perf_counter() - started
                moment = Moment(self.step, share, loss, tokens, self.seconds)
                if self.step % settings.evaluate_every == 0 and first:
                    moment = moment._replace(**self.evaluate())
                    self.measured.append(moment._asdict())
                    self.folder.save_weights(self.model, self.step, settings.average)
                    self.seconds = time.perf_counter() - started
                if first and time.perf_counter() - saved > save_seconds:
                    self.save()
                    saved = time.perf_counter()
                callback(moment)
        if first:
            self.save()
        return "stopped" if share < 1 else "done"

    def save(self) -> None:
        """Write all that is needed to continue."""
        state = {name: getattr(self, name) for name in ("step", "seconds", "losses", "measured")}
        state |= {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        self.folder.save(state)

    def finish(self) -> dict[str, Any]:
        """Average the weights of the last percents of the budget, keep what translates the held-out sentences best, and test that.

        Returns:
            What is written as the result: settings, losses, measurements, and the BLEU of the test sentences, by greedy
            decoding and with a beam of 5, with sacreBLEU's signature.
        """
        self.folder.save_for_average(self.model, self.step, self.settings.average)
        final = {name: one.detach().clone() for name, one in self.model.state_dict().items()}
        choices = {"last": self.evaluate()}
        self.model.load_state_dict(
            self.folder.average(), strict=False
        )  # a shared matrix is there once
        choices["averaged"] = self.evaluate()
        best = max(choices, key=lambda name: choices[name]["bleu"])
        if best == "last":
            self.model.load_state_dict(final)
        write_weights(self.model, self.folder.model)
        sources, references = zip(*self.pairs.test, strict=True)
        test = {}
        for name, beam in (("greedy", 1), ("beam 5", 5)):
            test[name] = bleu(self.translator.all(sources, beam_size=beam), references)
        where = self.processes.device
        device = torch.cuda.get_device_name(where) if where.type == "cuda" else where.type
        result = {
            "settings": asdict(self.settings),
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
    def evaluate(self) -> dict[str, float]:
        """Return the loss per token of the held-out sentences, and the BLEU of their greedy translations."""
        self.model.eval()
        sources, targets = self._encoded(self.pairs.val)
        total = count = 0.0
        for chosen in torch.arange(len(sources)).split(_AT_ONCE):
            source, target = (pad([part[n] for n in chosen]) for part in (sources, targets))
            batch = Shard(source, target, int((target[:, 1:] != 0).sum()))
            total += self._mean_loss(self.model, batch, smoothing=0.0).item() * batch.tokens
            count += batch.tokens
        texts, references = zip(*self.pairs.val, strict=True)
        return {
            "held_out_loss": round(total / count, 4),
            "bleu": bleu(self.translator.all(texts), references)["score"],
        }

    def _step(self, share: float) -> tuple[float, int]:
        settings, processes = self.settings, self.processes
        torch.manual_seed(
            (settings.seed * 1_000_003 + self.step) * processes.world + processes.rank
        )
        for group in self.optimizer.param_groups:
            group["lr"] = settings.lr_at(self.step, share)
        first = (self.step - 1) * settings.accumulation
        shards = []
        for number in range(first, first + settings.accumulation):
            mine = self.batches.shard(number, processes.rank, processes.world)
            shards.append(Shard(*mine, self.batches.target_tokens(number)))
        loss = train_step(
            self._trained,
            self.optimizer,
            self._loss,
            shards,
            max_grad_norm=settings.max_grad_norm,
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


def bleu(candidates: list[str], references: tuple[str, ...]) -> dict[str, Any]:
    """Return sacreBLEU's default score, 0 to 100, and its signature."""
    from sacrebleu.metrics import BLEU

    metric = BLEU()
    score = metric.corpus_score(list(candidates), [list(references)]).score
    return {"score": round(score, 2), "signature": str(metric.get_signature())}
