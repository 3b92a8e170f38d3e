"""The explorers of notebooks 02 and 03: what is drawn is what is computed."""

import json

import numpy as np
import pytest
import scipy.special
import torch

from course_lib.checkpoints import date_translator, untrained_date_translator
from course_lib.topics.recurrent import FixedContextDecoder
from course_lib.widgets import date_explorer, score_explorer
from course_lib.widgets.scores import SCALES, gradient_norm
from tests.helpers.explorers import VIRIDIS, cells_of, fact, panels, values_of

# --- scores ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def scores():
    return score_explorer()


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(("d", "query"), [(1, 0), (48, 17), (1024, 63)])
def test_scores_and_weights_are_those_of_the_vectors(scores, scale, d, query):
    scores.choose(d=d, scale=scale, query=query)
    draw = torch.Generator().manual_seed(0)
    queries = torch.randn(64, 1024, generator=draw).double().numpy()[:, :d]
    keys = torch.randn(32, 1024, generator=draw).double().numpy()[:, :d]
    wanted = queries @ keys.T * {"1": 1, "1/√d": d**-0.5, "1/d": 1 / d}[scale]
    weights = scipy.special.softmax(wanted, axis=1)
    assert float(fact(scores, "variance of the scores").replace(",", "")) == pytest.approx(
        wanted.var(ddof=1), rel=0.01
    )
    histogram, stems, lines = panels(scores)
    assert np.allclose(stems._heads.get_ydata(), weights[query], atol=1e-5)
    counts, _ = np.histogram(wanted, histogram.edges)
    assert np.abs(histogram._bars.get_data()[0] - counts / wanted.size).max() < 2e-3
    assert lines.data()["marker at"].tolist() == [d, d]
    spread = np.sort(-(weights * np.log(np.maximum(weights, 1e-300))).sum(1))[31] / np.log(32)
    assert float(fact(scores, "median entropy").split()[0]) == pytest.approx(spread, abs=0.006)
    assert lines.data()["height"][0] == pytest.approx(spread, abs=1e-3)


def test_the_gradient_is_that_of_autograd():
    logits = torch.randn(3, 5, dtype=torch.float64)
    weights = torch.softmax(logits, dim=-1)
    for row, weight in zip(logits, weights, strict=True):
        jacobian = torch.autograd.functional.jacobian(lambda a: torch.softmax(a, dim=-1), row)
        assert gradient_norm(weight).item() == pytest.approx(jacobian.norm().item())


# --- dates -----------------------------------------------------------------------------------


@pytest.fixture
def dates():
    return date_explorer(date_translator(), "Tuesday, March 5, 2024")


def test_what_is_drawn_is_where_the_model_looked(dates):
    dates.choose(text="5 maja 1980", step=4)
    done = date_translator()("5 maja 1980")
    alignment, stems, headline = panels(dates)
    assert headline.text == "1980-05-05"
    assert np.array_equal(alignment._image.get_array(), VIRIDIS(done.weights.numpy(), bytes=True))
    assert np.allclose(stems._heads.get_ydata()[:11], done.weights[3])
    assert stems._heads.get_ydata()[11:].sum() == 0
    assert fact(dates, "output") == "1980-05-05, Monday"
    assert fact(dates, "step") == "4 of 11, generates 0"
    assert "".join(alignment._column_names.words) == "5␣maja␣1980"
    region = dates.picture.hover[0]
    assert np.array_equal(values_of(region), done.weights.numpy())
    cells = cells_of(dates.picture.png, region["box"], done.weights.shape, (0.3, 0.3))
    assert np.abs(cells - VIRIDIS(done.weights.numpy())[..., :3]).max() < 0.02
    json.dumps(region["rows"] + region["columns"])


def test_an_answer_that_is_no_date_is_said_to_be_none():
    torch.manual_seed(0)
    assert "which is not a date" in date_explorer(untrained_date_translator()).summary


def test_a_retrained_model_is_asked_anew():
    translator = untrained_date_translator()
    explorer = date_explorer(translator)
    translator.model.load_state_dict(date_translator().model.state_dict())
    explorer.controls["step"].value = 2
    assert fact(explorer, "output") == "2024-03-05, Tuesday"


@pytest.mark.usefixtures("without_annotations")
def test_a_model_that_writes_too_much_or_has_no_attention_is_refused():
    translator = untrained_date_translator()
    translator.max_length = 13
    with pytest.raises(ValueError, match="give the Translator max_length=11"):
        date_explorer(translator)
    translator.model.decoder = FixedContextDecoder(len(translator.target), 16, 32, 32)
    with pytest.raises(ValueError, match="without attention"):
        date_explorer(translator)
