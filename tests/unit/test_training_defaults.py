"""What a training does where nothing is said, which scores it takes, and which files it leaves alone."""

import numpy as np
import pytest
import torch
from torch import nn

from course_lib import decoding, training
from course_lib.training import Evaluation, TrainingConfig
from course_lib.training.checkpoint import read
from tests.helpers.callables import model, tokens

pytestmark = pytest.mark.usefixtures("without_annotations")


def train(steps=3, **settings):
    """A linear layer with dropout, so that the seed of a training matters."""
    torch.manual_seed(1)
    layer = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 1))
    batches = [torch.randn(5, 3)] * steps
    history = training.fit(
        layer, batches, lambda m, b: m(b).square().mean(), steps=steps, **settings
    )
    return layer, history


def test_the_seed_is_0_where_left_out():
    losses = train()[1].losses
    assert losses == train(seed=0)[1].losses != train(seed=1)[1].losses


def test_evaluation_every_100_steps_where_left_out():
    _, history = train(250, lr=1e-3, evaluation=Evaluation(lambda m: 0.5))
    assert list(history.scores) == [100, 200, 250]


def test_a_checkpoint_every_100_steps_where_left_out(tmp_path):
    path, written = tmp_path / "run", []

    def callback(progress):
        if path.exists() and len(written) < 1:
            written.append(progress.step)

    train(150, lr=1e-3, callback=callback, config=TrainingConfig(checkpoint_path=path))
    assert written == [101]  # the callback of step 100 comes before its checkpoint


def test_at_most_50_tokens_where_left_out():
    generator = model()
    with torch.no_grad():
        generator.lm_head.weight.zero_()  # every token has the same logit, and the first of them is token 0
    assert decoding.greedy(generator, tokens(9, 2, 5), eos_id=8).shape == (2, 50)


SCORES = [1, 0.5, np.float64(0.5), np.int64(2), torch.tensor(0.5), torch.tensor([[2]]), -np.inf]


@pytest.mark.parametrize("score", SCORES, ids=repr)
def test_evaluate_may_return_any_number(score):
    _, history = train(evaluation=Evaluation(lambda m: score, target_score=3, patience=2))
    assert history.scores == {3: float(score)}


def test_settings_may_be_numpys_when_training_resumes(tmp_path):
    path = tmp_path / "run"
    python = {"lr": 0.1, "seed": 2}
    config = TrainingConfig(checkpoint_path=path, gradient_accumulation_steps=1, max_grad_norm=1.0)
    train(2, **python, config=config)
    resumed = TrainingConfig(
        checkpoint_path=path,
        resume=True,
        gradient_accumulation_steps=np.int64(1),
        max_grad_norm=np.float64(1.0),
    )
    _, history = train(4, lr=np.float64(0.1), seed=np.int64(2), config=resumed)
    assert history.losses == train(4, **python)[1].losses


# --- files -----------------------------------------------------------------------------------


def saved_to(path, **settings):
    return train(config=TrainingConfig(checkpoint_path=path, **settings))


def test_a_file_that_is_no_checkpoint_is_not_overwritten(tmp_path):
    notes = tmp_path / "notes.txt"
    notes.write_text("mine")
    for resume in (False, True):
        with pytest.raises(
            ValueError, match="is no checkpoint of fit, or is damaged; delete it, or name"
        ):
            saved_to(notes, resume=resume)
    assert notes.read_text() == "mine"


def test_files_beside_a_checkpoint_stay(tmp_path):
    (tmp_path / "run.part").write_text("mine")
    saved_to(tmp_path / "run")
    assert {file.name for file in tmp_path.iterdir()} == {"run", "run.part"}
    assert (tmp_path / "run.part").read_text() == "mine"


def test_a_symbolic_link_stays_one(tmp_path):
    (tmp_path / "disk").mkdir()
    link = tmp_path / "run"
    link.symlink_to(tmp_path / "disk" / "run")
    saved_to(link)
    saved_to(link)  # the second time the file is there
    assert link.is_symlink() and read(tmp_path / "disk" / "run")["history"]["losses"]


def test_patience_counts_from_the_first_evaluation_even_if_its_score_is_minus_infinity():
    evaluation = Evaluation(lambda model: -np.inf, every=1, patience=3)
    assert len(train(10, lr=1e-3, evaluation=evaluation)[1].losses) == 3
