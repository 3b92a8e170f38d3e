"""What does a reward that a program computes teach SmolLM2, beside right answers to imitate, and what does it exploit?

The task is that of `lora`: the assistant answers a date in English with nothing but its ISO form. A model that never
samples a right answer gets no gradient from a reward, so each run begins with a few steps of supervised fine-tuning
(the cold start), which are merged into the weights. Then new matrices of LoRA are trained, with Adam:

- "GRPO": on samples of the model itself; the reward is 1 where the answer is right, and 0 otherwise.
- "GRPO, hole": the same, but the program only looks whether the right year occurs in the answer.
- "SFT": on right answers, with as many updates and as many tokens: those that the model reads, generates and is
  trained on, prompts included.

::

    python -m course_lib.experiments.grpo

measures every arm and learning rate of `PLAN` after each of `BUDGETS` (steps of GRPO), and the model as it is published
(about half an hour of one core with AVX-512). The frozen weights are in bfloat16, A and B in float32: without AVX-512
a backward pass takes 60 times as long as in float32.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from functools import cache

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.data.dates import WrittenDate
from course_lib.experiments import lora
from course_lib.experiments.runs import fill, grid, read, where
from course_lib.topics.pretrained import Tokenizer, load_smollm2
from course_lib.transformer import DecoderOnly
from course_lib.transformer.cache import ModelCache

#: Of each step: dates, samples of each, updates on these samples; and the longest answer.
DATES, GROUP, UPDATES, LENGTH = 2, 8, 2, 12
CLIP, BETA = 0.2, 0.04
#: Steps of supervised fine-tuning before everything else, and their learning rate.
COLD_STEPS, COLD_RATE = 6, 1e-3
#: Learning rates by arm, and the best of them; "GRPO, hole" has that of "GRPO".
RATES = {"GRPO": (3e-4, 1e-3, 3e-3), "SFT": (3e-4, 1e-3, 3e-3, 1e-2), "GRPO, hole": (1e-3,)}
BEST = {"GRPO": 1e-3, "SFT": 3e-3}
SEEDS, BUDGETS = range(3), (4, 8)
#: Right answers in each update of "SFT". A step of GRPO computes about 624 tokens: 2 prompts of 21 and 16 answers of 10
#: or 11, once to generate and twice to train. Two updates on 10 dates of 21 + 11 tokens are 640.
BATCH = 10
#: Held-out dates.
TESTED = 32


def is_right(answer: str, date: WrittenDate) -> bool:
    """Whether an answer is the ISO form of the date and nothing else."""
    return answer == date.iso


def has_year(answer: str, date: WrittenDate) -> bool:
    """Whether the year of the date occurs in an answer: a program with a hole."""
    return date.iso[:4] in answer


#: Arm → the program that checks an answer.
REWARDS = {"GRPO": is_right, "GRPO, hole": has_year}


def advantages(rewards: Float[Tensor, "prompt group"]) -> Float[Tensor, "prompt group"]:
    r"""Return how much better each sample is than the others of its group, in standard deviations.

    $$A_i = \frac{r_i - \mathrm{mean}(r)}{\mathrm{std}(r) + 10^{-4}}$$

    A group in which all rewards are equal teaches nothing: its advantages are 0.

    Source: Shao et al. (2024), "DeepSeekMath", section 4.1; $10^{-4}$ as in TRL.
    """
    if rewards.shape[-1] < 2:
        raise ValueError(f"rewards has groups of {rewards.shape[-1]}; a group needs two samples")
    centred = rewards - rewards.mean(dim=-1, keepdim=True)
    return centred / (rewards.std(dim=-1, keepdim=True) + 1e-4)


def grpo_loss(
    logp: Float[Tensor, "sample token"],
    old: Float[Tensor, "sample token"],
    reference: Float[Tensor, "sample token"],
    advantage: Float[Tensor, " sample"],
    mask: Bool[Tensor, "sample token"],
    *,
    clip: float = CLIP,
    beta: float = BETA,
) -> Float[Tensor, ""]:
    r"""Return the loss of GRPO: a clipped policy gradient, and the KL divergence from a reference model.

    With $\rho_t = \pi(y_t) / \pi_\text{old}(y_t)$ and $u_t = \pi_\text{ref}(y_t) / \pi(y_t)$, a mean over the tokens of
    an answer, then over answers, of

    $$-\min\bigl(\rho_t A, \mathrm{clip}(\rho_t, 1 - \epsilon, 1 + \epsilon) A\bigr) + \beta (u_t - \log u_t - 1)$$

    Args:
        logp: log-probability of each token of the samples under the model that is trained.
        old: under the model that sampled them; no gradient.
        reference: under the model before training; no gradient.
        advantage: of each sample.
        mask: True where a token belongs to the answer; its end does, padding does not.
        clip, beta: $\epsilon$ and $\beta$.

    Source: Shao et al. (2024), "DeepSeekMath", equations 3 and 4; Schulman (2020), "Approximating KL divergence", k3.
    """
    ratio = (logp - old).exp()  # (sample, token)
    gain = torch.min(
        ratio * advantage[:, None], ratio.clamp(1 - clip, 1 + clip) * advantage[:, None]
    )
    log_u = reference - logp
    each = (beta * (log_u.exp() - log_u - 1) - gain) * mask  # (sample, token)
    return (each.sum(dim=1) / mask.sum(dim=1)).mean()


def group_prefill(
    model: DecoderOnly, prompts: Int[Tensor, "prompt length"], group: int
) -> tuple[Float[Tensor, "sample 1 d_model"], ModelCache]:
    """Read each prompt once; return the last hidden state and the cache of each sample, group by group."""
    kept, rows = model.new_cache(), torch.arange(len(prompts)).repeat_interleave(group)
    last = model.hidden_states(prompts, cache=kept)[rows, -1:]
    kept.reorder(rows)
    return last, kept


@torch.no_grad()
def sampled(
    model: DecoderOnly,
    tokenizer: Tokenizer,
    dates: Sequence[WrittenDate],
    group: int = GROUP,
    length: int = LENGTH,
) -> Int[Tensor, "sample token"]:
    """Sample a group of answers to each date, at temperature 1; padding follows the end of an answer."""
    hidden, kept = group_prefill(model, prompts_of(model, tokenizer, dates), group)
    columns, ended = [], torch.zeros(len(hidden), dtype=torch.bool)
    for _ in range(length):
        p = model.lm_head(hidden[:, -1]).float().softmax(dim=-1)  # (sample, vocabulary)
        new = torch.multinomial(p, 1).masked_fill(ended[:, None], model.pad_id)
        columns.append(new)
        ended |= new[:, 0] == tokenizer.eos_id
        if ended.all():
            break
        hidden = model.hidden_states(new, cache=kept)
    return torch.cat(columns, dim=1)


def log_probs(
    model: DecoderOnly,
    prompts: Int[Tensor, "prompt length"],
    answers: Int[Tensor, "sample token"],
) -> Float[Tensor, "sample token"]:
    """Return the log-probability of each token of the answers; each prompt is read once for its group."""
    first, kept = group_prefill(model, prompts, len(answers) // len(prompts))
    rest = model.hidden_states(answers[:, :-1], cache=kept)
    logits = model.lm_head(torch.cat([first, rest], dim=1)).float()  # (sample, token, vocabulary)
    return logits.log_softmax(dim=-1).gather(-1, answers[..., None]).squeeze(-1)


def prompts_of(
    model: DecoderOnly, tokenizer: Tokenizer, dates: Sequence[WrittenDate]
) -> Int[Tensor, "prompt length"]:
    """Return the chats with these dates as a left-padded batch."""
    chats = [lora.turns(one.text) for one in dates]
    rows = [tokenizer.encode(chat, split_special_tokens=False) for chat in chats]
    return lora.left_padded(rows, model.pad_id)


def texts_of(tokenizer: Tokenizer, answers: Int[Tensor, "sample token"]) -> list[str]:
    """Return the answers as texts, without their end."""
    rows, end = answers.tolist(), tokenizer.eos_id
    return [tokenizer.decode(row[: row.index(end)] if end in row else row) for row in rows]


def rewards_of(
    reward: Callable[[str, WrittenDate], bool], said: Sequence[str], dates: Sequence[WrittenDate]
) -> Float[Tensor, "date group"]:
    """Return what a program says of the answers, group by group: 1 or 0."""
    group = len(said) // len(dates)
    each = [float(reward(text, dates[n // group])) for n, text in enumerate(said)]
    return torch.tensor(each).view(-1, group)


def reinforce(
    model: DecoderOnly,
    reference: DecoderOnly,
    tokenizer: Tokenizer,
    trained: Sequence[nn.Parameter],
    reward: Callable[[str, WrittenDate], bool],
    dates: Sequence[WrittenDate],
    lr: float,
) -> Iterator[dict]:
    """Take steps of GRPO, each on `DATES` dates; yield what happened in each.

    The dictionary holds the mean "reward" of the samples, the mean "kl" of their tokens in the last update, the share
    of tokens "clipped" in it, and the "tokens" that the trained model read, generated or was trained on.
    """
    optimizer = torch.optim.Adam(trained, lr=lr)
    for first in range(0, len(dates), DATES):
        some = dates[first : first + DATES]
        prompts, answers = prompts_of(model, tokenizer, some), sampled(model, tokenizer, some)
        rewards = rewards_of(reward, texts_of(tokenizer, answers), some)  # (date, group)
        advantage, mask = advantages(rewards).flatten(), answers != model.pad_id
        with torch.no_grad():
            before = log_probs(reference, prompts, answers)
        old = None
        for _ in range(UPDATES):
            logp = log_probs(model, prompts, answers)
            old = logp.detach() if old is None else old
            optimizer.zero_grad()
            grpo_loss(logp, old, before, advantage, mask).backward()
            optimizer.step()
        log_u, ratio = (before - logp.detach())[mask], (logp.detach() - old).exp()
        out = ((ratio - 1) * advantage.sign()[:, None] > CLIP)[mask]
        yield {
            "reward": rewards.mean().item(),
            "kl": (log_u.exp() - log_u - 1).mean().item(),
            "clipped": out.float().mean().item(),
            "tokens": (prompts.numel() + int(mask.sum())) * (1 + UPDATES),
        }


def imitate(
    model: DecoderOnly,
    tokenizer: Tokenizer,
    trained: Sequence[nn.Parameter],
    dates: Sequence[WrittenDate],
    lr: float,
    batch: int,
) -> Iterator[dict]:
    """Take updates of supervised fine-tuning, each on `batch` dates; yield what happened in each."""
    taken = lora.updates(model, tokenizer, trained, dates, lr, batch)
    for number, (loss, pairs) in enumerate(taken):
        prompts = prompts_of(model, tokenizer, dates[number * batch : (number + 1) * batch])
        count = sum(len(answer) for _, answer in pairs) + prompts.numel()
        yield {"loss": loss, "tokens": count}


@torch.no_grad()
def merge(model: DecoderOnly) -> DecoderOnly:
    """Add the products of all `LoRALinear` to their weights, and take them away; changes the model itself."""
    for block in model.blocks:
        for name, layer in [*block.attention.named_children()]:
            if isinstance(layer, lora.LoRALinear):
                layer.linear.weight += (layer.scale * layer.B @ layer.A).to(
                    layer.linear.weight.dtype
                )
                setattr(block.attention, name, layer.linear)
    return model


@cache
def _own() -> list[tuple[str, list[int]]]:
    """The first answers of the model as it is published."""
    return lora.own_answers(*load_smollm2(torch.bfloat16), lora.QUESTIONS)


@cache
def _start(seed: int) -> tuple[DecoderOnly, Tokenizer, Tensor]:
    """The model after the cold start, its tokenizer, and the state of the random generator."""
    torch.manual_seed(seed)
    model, tokenizer = load_smollm2(torch.bfloat16)
    dates = lora.english_dates(COLD_STEPS * lora.BATCH, seed=100 + seed)
    for _ in imitate(model, tokenizer, lora.add_lora(model), dates, COLD_RATE, lora.BATCH):
        pass
    return merge(model), tokenizer, torch.get_rng_state()


@torch.no_grad()
def skill(model: DecoderOnly, tokenizer: Tokenizer) -> dict:
    """Return the scores of greedy answers to held-out dates."""
    dates, end = lora.english_dates(TESTED, held_out=True), tokenizer.decode([tokenizer.eos_id])
    prompts = [lora.turns(one.text) for one in dates]
    said = [tokenizer.decode(row) for row in lora.generated(model, tokenizer, prompts, LENGTH)]
    pairs = list(zip(said, dates, strict=True))
    return {
        "exact match": sum(answer == one.iso + end for answer, one in pairs) / TESTED,
        "right year": sum(has_year(*pair) for pair in pairs) / TESTED,
        "greedy": [answer.removesuffix(end) for answer in said[:4]],
    }


def evaluated(model: DecoderOnly, tokenizer: Tokenizer) -> dict:
    """Return the scores of a model on held-out dates, of 64 samples of its answers, and what it forgot."""
    torch.manual_seed(0)
    dates = lora.english_dates(8, held_out=True)
    said = texts_of(tokenizer, sampled(model, tokenizer, dates))
    right = rewards_of(is_right, said, dates)  # (date, group)
    samples = {
        "samples right": right.mean().item(),
        "groups mixed": (right.amax(dim=1) > right.amin(dim=1)).float().mean().item(),
        "right year in samples": rewards_of(has_year, said, dates).mean().item(),
        "samples": [text for n, text in enumerate(said) if n % GROUP < 2],
    }
    return skill(model, tokenizer) | samples | lora.forgotten(model, tokenizer, _own())


def recorded(arm: str, lr: float, budget: int) -> list[dict]:
    """Return the recorded scores of an arm, one per seed."""
    return where(read("grpo"), arm=arm, lr=lr, budget=budget)


def run(arm: str, lr: float | None = None, seed: int = 0) -> list[dict]:
    """Train once; return the scores after each budget. The arm "published": without training; "start": after it."""
    if arm == "published":
        return [evaluated(*load_smollm2(torch.bfloat16))]
    reference, tokenizer, state = _start(seed)
    if arm == "start":
        return [evaluated(reference, tokenizer)]
    torch.set_rng_state(state)
    model = copy.deepcopy(reference)
    trained = lora.add_lora(model)
    if arm == "SFT":
        count, each = BATCH * UPDATES * BUDGETS[-1], UPDATES  # updates for a step of GRPO
        dates = lora.english_dates(count, seed=200 + seed)
        steps = imitate(model, tokenizer, trained, dates, lr, BATCH)
    else:
        dates, each = lora.english_dates(DATES * BUDGETS[-1], seed=200 + seed), 1
        steps = reinforce(model, reference, tokenizer, trained, REWARDS[arm], dates, lr)
    rows, done = [], []
    for number, step in enumerate(steps, start=1):
        done.append(step)
        if number % each == 0 and number // each in BUDGETS:
            spent = sum(one["tokens"] for one in done)
            rows.append({"budget": number // each, "tokens": spent} | skill(model, tokenizer))
    course = {key: [one[key] for one in done] for key in done[0] if key != "tokens"}
    rows[-1] |= evaluated(model, tokenizer) | course
    return rows


PLAN = (
    {"arm": "published"},
    *grid(arm=["start"], seed=SEEDS),
    *(row for arm, rates in RATES.items() for row in grid(seed=SEEDS, arm=[arm], lr=rates)),
)

if __name__ == "__main__":
    fill("grpo", run, PLAN, __doc__)
