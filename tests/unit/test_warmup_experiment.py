"""The experiment behind notebook 08: what the warm-up changes."""

import pytest
import torch

from course_lib.experiments import warmup
from course_lib.transformer import Transformer, TransformerConfig
from course_lib.transformer.decoding import greedy


def test_the_target_is_the_source_between_start_and_end():
    source, target = warmup.copy_batch(200, torch.Generator().manual_seed(0))
    lengths = set()
    for x, y in zip(source.tolist(), target.tolist(), strict=True):
        symbols = [token for token in x if token != warmup.PAD]
        assert x == symbols + [warmup.PAD] * (10 - len(symbols))
        assert y == [warmup.BOS, *symbols, warmup.EOS] + [warmup.PAD] * (10 - len(symbols))
        assert all(3 <= token < 13 for token in symbols)
        lengths.add(len(symbols))
    assert lengths == set(range(3, 11))


def test_it_counts_the_sequences_that_greedy_decoding_copies(monkeypatch):
    torch.manual_seed(0)
    sizes = {"d_model": 16, "num_heads": 2, "d_ff": 32, "encoder_layers": 1, "decoder_layers": 1}
    model = Transformer(TransformerConfig(target_vocabulary=13, **sizes)).eval()
    source, target = warmup.copy_batch(300, torch.Generator().manual_seed(12345))
    decoded = greedy(model, source, max_length=11, bos_id=warmup.BOS, eos_id=warmup.EOS)
    copied = torch.zeros_like(target[:, 1:])
    copied[:, : decoded.shape[1]] = decoded
    # an untrained model copies nothing: call what it generates the targets
    fake = torch.cat([target[:, :1], copied], dim=1)
    monkeypatch.setattr(warmup, "copy_batch", lambda count, generator: (source, fake))
    assert warmup.exact_match(model) == pytest.approx(1.0)
    fake[:100, 3] = (fake[:100, 3] + 1) % 10 + 3
    assert warmup.exact_match(model) < 0.8


def test_training_is_repeatable_and_scores_after_each_budget(monkeypatch):
    monkeypatch.setattr(warmup, "exact_match", lambda model: model.lm_head.weight.sum().item())
    monkeypatch.setattr(warmup, "BUDGETS", (2, 4))
    runs = [warmup.run("pre", 50, 4e-3, seed=seed) for seed in (0, 0, 1)]
    assert runs[0] == runs[1] != runs[2] and [row["budget"] for row in runs[0]] == [2, 4]
