"""The experiment behind notebook 08: what the warm-up changes."""

import pytest
import torch

from course_lib.decoding import greedy
from course_lib.experiments import warmup
from course_lib.experiments.warmup import (
    BOS,
    BUDGETS,
    EOS,
    NORMS,
    PAD,
    RATES,
    SEEDS,
    WARMUPS,
    arm,
    best,
    copy_batch,
    exact_match,
    recorded,
    train,
)
from course_lib.transformer import Transformer, TransformerConfig


def test_the_target_is_the_source_between_start_and_end():
    source, target = copy_batch(200, torch.Generator().manual_seed(0))
    lengths = set()
    for x, y in zip(source.tolist(), target.tolist(), strict=True):
        symbols = [token for token in x if token != PAD]
        assert x == symbols + [PAD] * (10 - len(symbols))
        assert y == [BOS, *symbols, EOS] + [PAD] * (10 - len(symbols))
        assert all(3 <= token < 13 for token in symbols)
        lengths.add(len(symbols))
    assert lengths == set(range(3, 11))


def test_it_counts_the_sequences_that_greedy_decoding_copies(monkeypatch):
    torch.manual_seed(0)
    sizes = {"d_model": 16, "num_heads": 2, "d_ff": 32, "encoder_layers": 1, "decoder_layers": 1}
    model = Transformer(TransformerConfig(target_vocabulary=13, **sizes)).eval()
    source, target = copy_batch(300, torch.Generator().manual_seed(12345))
    decoded = greedy(model, source, max_length=11, bos_id=BOS, eos_id=EOS)
    copied = torch.zeros_like(target[:, 1:])
    copied[:, : decoded.shape[1]] = decoded
    # an untrained model copies nothing: call what it generates the targets
    fake = torch.cat([target[:, :1], copied], dim=1)
    monkeypatch.setattr(warmup, "copy_batch", lambda count, generator: (source, fake))
    assert exact_match(model) == pytest.approx(1.0)
    fake[:100, 3] = (fake[:100, 3] + 1) % 10 + 3
    assert exact_match(model) < 0.8


def test_training_is_repeatable_and_scores_after_each_budget():
    one, other = (train("pre", 50, 4e-3, seed=0, budgets=(2, 4)) for _ in range(2))
    assert one == other and len(one) == 2


def test_every_arm_is_recorded_from_every_seed_at_every_rate():
    assert set(recorded()) == {arm(norm, steps) for norm in NORMS for steps in WARMUPS}
    for name, rates in recorded().items():
        assert set(rates) == {f"{lr:g}" for lr in RATES}
        assert all(len(runs) == len(SEEDS) for runs in rates.values())
        for column, budget in enumerate(BUDGETS):
            sums = [sum(run[column] for run in runs) for runs in rates.values()]
            assert sum(best(name, budget)[1]) == pytest.approx(max(sums))


def test_wrong_settings_are_refused():
    with pytest.raises(ValueError, match="norm"):
        train("middle", 0, 1e-3, 0, (1,))
    with pytest.raises(ValueError, match="lr"):
        train("pre", 0, -1.0, 0, (1,))
