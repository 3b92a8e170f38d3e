"""The experiment behind notebook 09: beam size, length normalisation and label smoothing."""

import pytest
import torch

from course_lib.checkpoints import untrained_phrase_translator
from course_lib.experiments import beam_size
from course_lib.experiments.runs import by_rate, read, where
from course_lib.topics.bleu import bleu

TEXTS = [["le", "chien", "dort", "."], [], ["les", "chats"]]


def test_log_probabilities_are_sums_over_single_steps():
    torch.manual_seed(0)
    translator = untrained_phrase_translator()
    translator.model.eval()
    source = beam_size.held_out(translator)[0][:3]
    found = beam_size.log_probabilities(translator, source, TEXTS)
    words = translator.target
    for row, text in enumerate(TEXTS):
        ids, total = [words.bos_id], 0.0
        length = (source[row] != 0).sum()
        for token in [*(words.encode(text).tolist() if text else []), words.eos_id]:
            with torch.no_grad():
                logits = translator.model(source[row : row + 1, :length], torch.tensor([ids]))
            total += logits[0, -1].log_softmax(dim=-1)[token].item()
            ids.append(token)
        assert found[row].item() == pytest.approx(total, abs=1e-3)


def test_the_interval_is_that_of_resampled_corpora():
    right = [text.split() for text in ("a b c d e f", "a c b d e f g", "b b a c d", "f e d c b a")]
    first = [text.split() for text in ("a b c d e f", "a c b d e f", "b b a c", "f e d c b b")]
    second = [text.split() for text in ("a b c d e", "a c b d", "b b a c d", "f e d c a b")]
    generator, gaps = torch.Generator().manual_seed(0), []
    for chosen in torch.randint(4, (1000, 4), generator=generator).tolist():
        references = [[right[i]] for i in chosen]
        scores = [bleu([texts[i] for i in chosen], references) for texts in (first, second)]
        gaps.append(scores[0] - scores[1])
    expected = torch.tensor(gaps).double().quantile(torch.tensor([0.025, 0.975]).double())
    assert beam_size.paired_interval(first, second, right) == pytest.approx(
        expected.tolist(), abs=2e-4
    )
    assert beam_size.paired_interval(first, first, right) == [0.0, 0.0]


@pytest.mark.parametrize(
    "text, repeated",
    [
        ("le bon bon bon chien .", True),
        ("le bon bon chien bon .", False),
        ("bon bon", False),
        ("", False),
        ("? ? ? ?", True),
    ],
)
def test_a_text_repeats_itself_if_a_token_occurs_three_times_in_a_row(text, repeated):
    assert beam_size.repeats(text.split()) is repeated


def test_every_sweep_has_its_best_rate_in_the_middle():
    for arm in beam_size.ARMS:
        swept = list(by_rate(where(read("beam_size"), arm=arm), "validation"))
        runs = beam_size.runs(arm)
        assert {run["lr"] for run in runs} == {swept[len(swept) // 2]}, arm
        assert len(runs) == (5 if len(swept) == 3 else 3)
