"""Memory against sizes counted by hand, time against a clock, and what the checkpoint reaches."""

import time

import pytest
import torch
from safetensors import safe_open

from course_lib.checkpoints import HERE, date_translator
from course_lib.data import written_dates
from course_lib.topics.profiling import milliseconds, peak_memory


@pytest.mark.verifies("course_lib.topics.profiling.peak_memory", against="sizes counted by hand")
@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (lambda x: torch.zeros(1000, dtype=torch.float64), 8000),
        (lambda x: (x + 1) * 2 + 3, 8000),  # two of them live at a time
        (lambda x: [x + 1, x + 2, x + 3], 12000),
        (lambda x: x.view(10, 100).mT[3:], 0),  # views
        (lambda x: x.clone().add_(1), 4000),  # in place
        (lambda x: x[:500] @ x[500:], 4),
        (lambda x: [(x + step).sum() for step in range(5)], 4000 + 5 * 4),
        # exp and sin keep a tensor each for the way back, and the result of sin lives as well
        (lambda x: x.requires_grad_().exp().sin(), 8000),
        (lambda x: x.requires_grad_().exp().sin().cos().sum(), 3 * 4000 + 4),
    ],
)
def test_peak_memory_counts_what_lives_at_one_time(ledger, function, wanted):
    x = torch.ones(1000)
    ours = torch.tensor(float(peak_memory(lambda: function(x))), dtype=torch.float64)
    ledger.compare(ours, torch.tensor(float(wanted)), within=0)


@pytest.mark.verifies("course_lib.topics.profiling.milliseconds", against="Python's `time.sleep`")
def test_milliseconds_is_the_time_of_one_call(ledger):
    took = milliseconds(lambda: time.sleep(0.02), seconds=0.1)
    assert 20 <= took < 40
    ledger.holds()


def test_processor_time_leaves_out_waiting():
    def work():
        sum(range(20_000))
        time.sleep(0.01)

    assert milliseconds(work, seconds=0.01, cpu=True) < 7 < milliseconds(work, seconds=0.01)
    with pytest.raises(ValueError, match="measures one thread, and threads is 2"):
        milliseconds(work, threads=2, cpu=True)


# --- checkpoints -----------------------------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.checkpoints.date_translator", against="Babel's dates: 99 % of held-out days exact"
)
@pytest.mark.parametrize("split", ["held-out days", "held-out style"])
def test_the_date_checkpoint_loads_and_reaches_what_its_file_says(ledger, split):
    dates = written_dates(1000, split=split)
    done = date_translator().all([one.text for one in dates])
    exact = sum(d.text == one.iso for d, one in zip(done, dates, strict=True)) / len(dates)
    with safe_open(HERE / "dates.safetensors", "pt") as file:
        assert exact == pytest.approx(float(file.metadata()[split]), abs=0.002)
    assert exact >= 0.99
    ledger.holds()
