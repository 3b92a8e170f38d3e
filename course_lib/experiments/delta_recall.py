"""What does a delta rule remember? Recall by age from a memory of one size, with and without correction and gate.

At each step a name gets a letter, and a question asks for the letter of a name. The whole history is stored in one matrix
of 16 × 16 numbers. Four rules write to it::

    python -m course_lib.experiments.delta_recall

trains each rule on each task from three seeds, at rates that double or halve until the best has a worse one on both
sides or answers everything, and scores it after each of `BUDGETS` steps (ten minutes of CPU time).
"""

from collections.abc import Iterable, Iterator

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.experiments.runs import best as best_of
from course_lib.experiments.runs import fill, grid, read, sweep, where
from course_lib.topics.today import delta_rule_in_chunks
from course_lib.train import fit
from course_lib.validation import require_one_of

LENGTH, LETTERS, SIZE, BATCH = 64, 16, 16, 16
BUDGETS = (250, 1000)
#: By age, questions of so many last steps count: there is then equally much to remember at every age.
LAST = 16
#: Task → how many names there are.
TASKS = {"once": LENGTH, "rewritten": SIZE, "pages": LENGTH}
#: Probability that a page begins.
NEW_PAGE = 1 / 16
#: Rule → whether it subtracts what the key recalls already, and whether the memory decays.
ARMS = {
    "additive": {"correct": False, "gate": False},
    "additive, gated": {"correct": False, "gate": True},
    "delta": {"correct": True, "gate": False},
    "delta, gated": {"correct": True, "gate": True},
}
#: Name of a group of ages, in steps → the youngest and the oldest.
AGES = {"0 to 3": (0, 3), "4 to 7": (4, 7), "8 to 15": (8, 15), "16 to 31": (16, 31), "32 to 63": (32, 63)}  # fmt: skip

Batch = tuple[Tensor, ...]


def sample(task: str, count: int, generator: torch.Generator) -> Batch:
    """Sample steps that each give a letter to a name and ask for the letter of a name.

    "once": no name comes twice. "rewritten": a name comes about four times, and its last letter counts. "pages": after
    a page has begun, only names of this page are asked for, and none comes twice on it.

    Returns:
        Names, letters, whether a page begins, names asked for, the labels, and their ages in steps; (count, length) each.
    """
    require_one_of(TASKS, task=task)
    shape = count, LENGTH
    letters = torch.randint(LETTERS, shape, generator=generator)
    begins = (torch.rand(shape, generator=generator) < NEW_PAGE) & (task == "pages")
    if task == "rewritten":
        names = torch.randint(TASKS[task], shape, generator=generator)
    else:
        names = torch.rand(shape, generator=generator).argsort(dim=-1)
    page, steps = begins.cumsum(dim=-1), torch.arange(LENGTH)
    known = (steps <= steps[:, None]) & (page[:, None] == page[..., None])  # (count, now, then)
    again = (names[:, None] == names[..., None]) & (steps > steps[:, None])  # (count, then, later)
    until = torch.where(again, steps, LENGTH).amin(dim=-1)  # when the name is written again
    chance = torch.rand(known.shape, generator=generator)
    asked = chance.masked_fill(~known | (until[:, None] <= steps[:, None]), -1).argmax(dim=-1)
    return (
        names,
        letters,
        begins.long(),
        names.gather(1, asked),
        letters.gather(1, asked),
        steps - asked,
    )


def additive(
    query: Float[Tensor, "batch length d"],
    key: Float[Tensor, "batch length d"],
    value: Float[Tensor, "batch length d"],
    decay: Float[Tensor, "batch length"],
    beta: Float[Tensor, "batch length"],
) -> Float[Tensor, "batch length d"]:
    r"""Linear attention with a gate, all steps at once: $S_t = e^{g_t} S_{t-1} + \beta_t k_t v_t^\top$, $o_t = S_t^\top q_t$."""
    total = decay.cumsum(dim=-1)
    past = torch.ones(key.shape[-2], key.shape[-2], dtype=torch.bool).tril()
    between = (total[..., None] - total[..., None, :]).masked_fill(~past, -torch.inf).exp()
    return (query @ key.mT * between) @ (beta[..., None] * value)


class Recaller(nn.Module):
    """One memory and a feed-forward network: letters are written under names, and read by the names asked for.

    Args:
        correct: whether the memory is that of the delta rule; else it is additive.
        gate: whether it decays by a factor that each step chooses.
    """

    def __init__(self, *, correct: bool, gate: bool) -> None:
        super().__init__()
        self.correct, self.gate = correct, gate
        self.name, self.asked = nn.Embedding(LENGTH, SIZE), nn.Embedding(LENGTH, SIZE)
        self.letter, self.page = nn.Embedding(LETTERS, SIZE), nn.Embedding(2, SIZE)
        self.beta, self.decay = nn.Linear(SIZE, 1), nn.Linear(SIZE, 1)
        nn.init.constant_(self.decay.bias, -4.0)  # 98 % of the memory remain
        self.out = nn.Sequential(
            nn.RMSNorm(SIZE), nn.Linear(SIZE, 64), nn.SiLU(), nn.Linear(64, LETTERS)
        )

    def forward(
        self,
        names: Int[Tensor, "batch length"],
        letters: Int[Tensor, "batch length"],
        begins: Int[Tensor, "batch length"],
        asked: Int[Tensor, "batch length"],
    ) -> Float[Tensor, "batch length letter"]:
        """Return the logits of the letters at each step."""
        key, query = (F.normalize(x, dim=-1) for x in (self.name(names), self.asked(asked)))
        x = self.name(names) + self.page(begins)
        beta = self.beta(x)[..., 0].sigmoid()  # (batch, length)
        decay = -F.softplus(self.decay(x))[..., 0] * self.gate
        value = self.letter(letters)
        if self.correct:
            read, _ = delta_rule_in_chunks(query, key, value, decay, beta)
        else:
            read = additive(query, key, value, decay, beta)
        return self.out(read)


def batches(task: str, seed: int) -> Iterator[Batch]:
    """Yield new steps without an end."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        yield sample(task, BATCH, generator)


def loss(model: Recaller, batch: Batch) -> Float[Tensor, ""]:
    """Return the mean cross-entropy of the letters."""
    return F.cross_entropy(model(*batch[:4]).flatten(0, 1), batch[4].flatten())


@torch.no_grad()
def right(model: Recaller, task: str) -> tuple[Tensor, Tensor]:
    """Return which questions of 1,000 new sequences are answered right, (1000, length), and the ages of the answers."""
    *inputs, labels, ages = sample(task, 1000, torch.Generator().manual_seed(12345))
    return model(*inputs).argmax(dim=-1) == labels, ages


def train(
    task: str, arm: str, lr: float, seed: int, *, budgets: Iterable[int] = BUDGETS
) -> Iterator[tuple[int, Recaller]]:
    """Train with Adam and a warm-up of 100 steps; yield each budget with the model after it, which trains on."""
    require_one_of(ARMS, arm=arm)
    torch.manual_seed(seed)
    model, source, done = Recaller(**ARMS[arm]), batches(task, seed), 0
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    for budget in budgets:
        rate = lambda step, done=done: lr * min(1, (done + step) / 100)  # noqa: E731
        fit(model, source, loss, steps=budget - done, lr=rate, optimizer=optimizer, seed=seed)
        done = budget
        yield done, model


def recall_by_age(hits: Tensor, ages: Tensor) -> dict[str, float]:
    """Return the accuracy of each group of ages over the last `LAST` steps."""
    hits, ages = hits[:, -LAST:], ages[:, -LAST:]
    return {
        name: hits[(ages >= low) & (ages <= high)].float().mean().item()
        for name, (low, high) in AGES.items()
    }


def run(task: str, arm: str, lr: float, seed: int) -> list[dict]:
    """Train once; return the accuracy after each budget, and by age."""
    rows = []
    for budget, model in train(task, arm, lr, seed):
        hits, ages = right(model, task)
        accuracy = hits.float().mean().item()
        rows.append({"budget": budget, "accuracy": accuracy, "by age": recall_by_age(hits, ages)})
    return rows


def plan(rows: list[dict]) -> list[dict]:
    """Sweep the learning rate of each rule on each task, as `sweep` does."""
    last = where(rows, budget=BUDGETS[-1])
    arms = grid(task=TASKS, arm=ARMS)
    return [one for arm in arms for one in sweep(last, arm, "accuracy", start=0.016, enough=0.999)]


def best(task: str, arm: str, budget: int = BUDGETS[-1]) -> list[dict]:
    """Return the recorded runs, one per seed, at the learning rate that is best after the last budget."""
    rows = where(read("delta_recall"), task=task, arm=arm)
    rate, _ = best_of(where(rows, budget=BUDGETS[-1], seed=0), "accuracy")
    return sorted(where(rows, budget=budget, lr=rate), key=lambda row: row["seed"])


if __name__ == "__main__":
    fill("delta_recall", run, plan, __doc__, spec=".3f")
