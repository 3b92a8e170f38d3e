"""The explorers of notebook 13 on a small random model: what is drawn is what is computed independently."""

import asyncio
import html
import math
import re

import numpy as np
import pytest
import torch

from course_lib.topics.attention_maps import record_attention
from course_lib.topics.interpretability import logit_lens
from course_lib.transformer.decoding import stream, temperature, top_k, top_p
from course_lib.widgets import generation_explorer, heads_explorer, logit_lens_explorer
from course_lib.widgets.token_names import token_name, token_names
from tests.helpers.explorers import fact, move, panels
from tests.helpers.tiny_language_model import HEADS, LAYERS, tiny_language_model

TEXT, LONGER = "once upon a time", "a cat. the cat. a cat"
FACTORIES = [generation_explorer, heads_explorer, logit_lens_explorer]


@pytest.fixture(scope="module")
def pair():
    return tiny_language_model()


def written(explorer):
    """The text beside the picture, without its colours."""
    text, _ = explorer._written.value.split("</p>", 1)
    return html.unescape(re.sub("<[^b/].*?>|</[^b]+>", "", text))


def by_stream(pair, text, **choices):
    """The ids that `stream` samples."""
    model, tokenizer = pair
    count, seed = choices.get("length", 40), choices.get("seed", 0)

    def processed(z):
        z = temperature(z, choices.get("temperature", 1.0))
        z = top_k(z, choices["top_k"]) if "top_k" in choices else z
        return top_p(z, choices.get("top_p", 1.0))

    prompt = torch.tensor([tokenizer.encode(text)])
    tokens = stream(
        model, prompt, logits_processors=[processed], max_length=count, eos_id=0, seed=seed
    )
    return [token.item() for token in tokens]


# --- generation ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "choices", [{}, {"seed": 7, "length": 12}, {"temperature": 0.6, "top_k": 5, "top_p": 0.8}]
)
def test_the_generated_text_is_that_of_stream(pair, choices, without_annotations):
    explorer = generation_explorer(*pair, TEXT, **choices)
    wanted = by_stream(pair, TEXT, **choices)
    for _ in range(2):  # the same again
        explorer.generate()
        assert explorer._continuation.generated == wanted
    text = pair[1].decode(wanted)
    assert fact(explorer, "generated").startswith(f"{len(wanted)} tokens, {text!r}")
    assert written(explorer) == f"{TEXT}<b>{text}</b>"


def test_the_colour_of_a_token_is_the_stronger_the_less_probable_the_model_found_it(pair):
    model, tokenizer = pair
    explorer = generation_explorer(model, tokenizer, TEXT, temperature=2.0, length=6)
    explorer.generate()
    new = explorer._continuation.generated
    ids = torch.tensor([tokenizer.encode(TEXT) + new])
    p = model(ids)[0, -7:-1].softmax(-1)[range(6), new].tolist()  # before the temperature
    shown = re.findall(r'title="(.*?)" style=".*?/ (\d+)%\)">(.)<', explorer._written.value)
    assert [char for *_, char in shown] == list(tokenizer.decode(new))
    assert [float(one) for one, *_ in shown] == pytest.approx(p, abs=6e-4)
    assert [int(one) for _, one, _ in shown] == pytest.approx(
        [5 * min(-math.log2(one), 10) for one in p], abs=0.6
    )


def test_a_character_of_several_tokens_appears_when_it_is_whole(pair):
    class Bytes(type(pair[1])):
        def decode(self, ids):
            return bytes(list("東".encode() * 9)[: len(list(ids))]).decode(errors="replace")

    explorer = generation_explorer(pair[0], Bytes(), TEXT, length=7)
    explorer.generate()
    pieces = [piece for piece, _ in explorer._continuation.pieces]
    assert pieces == ["", "", "東", "", "", "東", ""]
    assert fact(explorer, "generated") == "7 tokens, '東東'"


def test_the_next_distribution_is_shown(pair):
    model, tokenizer = pair
    explorer = generation_explorer(model, tokenizer, TEXT, top_k=3)
    (bars,) = panels(explorer)
    for count in (0, 1):
        ids = tokenizer.encode(TEXT) + explorer._continuation.generated
        assert len(explorer._continuation.generated) == count
        p = model(torch.tensor([ids]))[0, -1].softmax(-1)
        most = p.argsort(descending=True)[:10].tolist()
        assert bars.names == [token_name(tokenizer.decode([i])) for i in most]
        assert np.allclose(bars.before, p[most].detach(), atol=1e-5)
        assert bars.removed.tolist() == [False] * 3 + [True] * 7
        explorer.buttons["Next token"].click()
    assert explorer._continuation.generated == by_stream(pair, TEXT, top_k=3, length=2)
    move(explorer, temperature=2.0)
    assert len(explorer._continuation.generated) == 2, "a setting keeps what was generated"
    move(explorer, seed=5)
    assert fact(explorer, "generated") == "nothing yet"


def test_every_button_the_length_and_the_text_are_heard_during_a_run(pair, without_annotations):
    """No button is ever disabled: one that is loses the keyboard's focus."""
    explorer = generation_explorer(*pair, TEXT, length=150)
    (generate, one, stop), state = explorer.buttons.values(), explorer._continuation
    wanted = by_stream(pair, TEXT, length=150)

    async def run_until(count):
        generate.click()
        await asyncio.sleep(0.005)
        assert len(state.generated) < 9, "it begins anew"
        while len(state.generated) < count:
            await asyncio.sleep(0.001)
            assert not any(button.disabled for button in explorer.buttons.values())

    async def ended_before(most):
        await asyncio.wait_for(explorer._task, 20)
        assert len(state.generated) < most and state.generated == wanted[: len(state.generated)]

    async def clicks():
        await run_until(9)
        await run_until(3)
        stop.click()
        await ended_before(30)
        assert f"{len(state.generated)} tokens" in explorer._words.value
        await run_until(5)
        one.click()  # goes on by hand
        await ended_before(40)
        await run_until(4)
        explorer.controls["length"].value = 5
        await ended_before(12)
        explorer.controls["length"].value = 150
        await run_until(3)
        explorer.controls["text"].value = LONGER
        await asyncio.wait_for(explorer._task, 20)
        assert fact(explorer, "generated") == "nothing yet"
        assert written(explorer) == f"{LONGER}<b></b>"

    asyncio.run(clicks())


def test_the_end_token_ends_the_text(pair):
    model, tokenizer = pair
    (first,) = by_stream(pair, TEXT, top_k=1, length=1)

    class Ending(type(tokenizer)):
        eos_id = first

    explorer = generation_explorer(model, Ending(), TEXT, top_k=1)
    explorer.generate()
    end = tokenizer.decode([first])
    assert fact(explorer, "generated") == f"1 token, {end!r}, ended by the model"
    assert written(explorer) == f"{TEXT}<b>{end}</b>"
    explorer.buttons["Next token"].click()
    assert explorer._continuation.generated == [first]
    explorer.reset()
    assert fact(explorer, "generated") == "nothing yet"


def test_what_was_generated_stays_behind_its_own_text(pair):
    explorer = generation_explorer(*pair, TEXT, length=3)
    explorer.generate()
    before = written(explorer)
    move(explorer, text="")
    assert written(explorer) == before and before.startswith(TEXT)
    explorer.generate()
    assert "text is empty" in explorer._problem.value


def test_a_click_on_a_bar_takes_its_token(pair):
    explorer = generation_explorer(*pair, TEXT, top_k=1, length=3)
    (region,) = explorer.picture.hover
    assert region["chooses"] == ["take", None] and region["acts"]
    model, tokenizer = pair
    ids = tokenizer.encode(TEXT)
    for rank in (3, 0, 9):  # also tokens that are filtered out
        with torch.no_grad():
            logits = model(torch.tensor([ids]))[0, -1]
        ids.append(logits.argsort(descending=True)[rank].item())
        explorer.picture.chosen = {"controls": {"take": rank}, "before": len(ids)}
        assert explorer._continuation.generated == ids[len(tokenizer.encode(TEXT)) :]
    assert fact(explorer, "generated").startswith("3 tokens")
    explorer.reset()
    assert fact(explorer, "generated") == "nothing yet"


def test_text_is_escaped(pair):
    class Html(type(pair[1])):
        def decode(self, ids):
            return "<i>" * len(ids)

    explorer = generation_explorer(pair[0], Html(), TEXT, length=2)
    explorer.generate()
    assert "<i>" not in explorer._written.value
    assert written(explorer) == f"{TEXT}<b><i><i></b>"


# --- heads -----------------------------------------------------------------------------------


def loops(weights, ids):
    """Every score of one head, by explicit loops."""
    n = len(ids)
    entropies = [-sum(a * np.log(a) for a in row if a > 0) for row in weights]
    distances = [sum(a * (i - j) for j, a in enumerate(row)) for i, row in enumerate(weights)]
    start = min(10, n - 1)
    copies = []
    for i in range(n):
        after = [j + 1 for j in range(i - 1) if ids[j] == ids[i]]
        if after:
            copies.append(sum(weights[i][j] for j in after))
    return {
        "previous token": np.mean([weights[i][i - 1] for i in range(1, n)]),
        "first token": np.mean([weights[i][0] for i in range(start, n)]),
        "induction": np.mean(copies) if copies else None,
        "entropy": np.mean(entropies),
        "distance": np.mean(distances),
    }


@pytest.mark.parametrize("text", [LONGER, "abc"])
def test_every_score_and_map_is_that_of_explicit_loops(pair, text):
    model, tokenizer = pair
    ids = tokenizer.encode(text)
    with record_attention(model) as maps:
        model(torch.tensor([ids]))
    maps = [one[-1][0].double().numpy() for one in maps.values()]
    explorer = heads_explorer(model, tokenizer, text)
    scores, map_ = panels(explorer)
    for name in ("previous token", "first token", "induction", "entropy", "distance"):
        move(explorer, score=name)
        wanted = [[loops(head, ids)[name] for head in layer] for layer in maps]
        if wanted[0][0] is None:
            assert np.isnan(scores.values).all() and scores._levels[-1].get_text() == "1"
            assert {*sum(scores.texts, [])} == {"–"}, "an empty map would look like an error"
            assert "no token of the text occurs twice" in fact(explorer, "score")
        else:
            assert np.allclose(scores.values, wanted, atol=1e-5)
            largest = np.unravel_index(np.argmax(wanted), (LAYERS, HEADS))
            assert f"(layer {largest[0]}, head {largest[1]})" in fact(explorer, "score")
    for layer, head in ((0, 0), (3, 1), (1, 2)):
        move(explorer, layer=layer, head=head)
        assert np.allclose(map_.values, maps[layer][head], atol=1e-6)
        assert scores.cell == (layer, head)
        brightest = float(map_._levels[-1].get_text())
        assert brightest == pytest.approx(maps[layer].max(), rel=0.051)
        assert fact(explorer, "layer").startswith(f"{layer}, head {head}: previous token")


def test_a_click_on_a_cell_chooses_layer_and_head_and_on_a_row_the_query(pair):
    explorer = heads_explorer(*pair, LONGER, layer=2, head=1)
    scores, map_ = explorer.picture.hover
    assert scores["chooses"] == ["layer", "head"] and scores["shape"] == [LAYERS, HEADS]
    assert map_["chooses"] == ["query", None] and scores["at"] == [2, 1]


def test_only_another_text_calls_the_model(pair):
    model, tokenizer = pair
    heads, lens = (make(model, tokenizer, TEXT) for make in FACTORIES[1:])
    calls, hook = [], model.register_forward_hook(lambda *_: calls.append(1))
    move(heads, layer=2, head=1, score="entropy", query=3), move(lens, position=2)
    assert not calls
    move(heads, text=LONGER), move(lens, text=LONGER)
    hook.remove()
    assert len(calls) == 2


# --- logit lens ------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["ab", TEXT + " there was a cat"])
def test_the_table_and_the_course_are_those_of_logit_lens(pair, text):
    model, tokenizer = pair
    ids = torch.tensor([tokenizer.encode(text)])
    explorer = logit_lens_explorer(model, tokenizer, text)
    table, course = panels(explorer)
    for position in sorted({0, 1, ids.shape[1] // 2, ids.shape[1] - 1}):
        move(explorer, position=position)
        p = logit_lens(model, ids, position=position)[:, 0].softmax(-1)  # (depth, vocabulary)
        column = table.cell[1]
        assert table.columns[column] == f"{position} {token_name(text[position])}"
        assert np.allclose(table.values[:, column], p.max(-1).values, atol=1e-5)
        names = [token_name(tokenizer.decode([i])) for i in p.argmax(-1).tolist()]
        assert [line[column] for line in table.texts] == names
        assert table._numbers[column :: len(table.columns)] == p.argmax(-1).tolist()
        final = p[-1].topk(5)
        assert course.columns == [token_name(tokenizer.decode([i])) for i in final.indices.tolist()]
        assert np.allclose(course.values, p[:, final.indices], atol=1e-5)
        ranks = (p[:, :, None] > p[:, None, final.indices]).sum(1) + 1
        assert course.texts == [[str(rank) for rank in line] for line in ranks.tolist()]
        right = p.argmax(-1) == p[-1].argmax()
        since = next(n for n in range(LAYERS + 1) if right[n:].all())
        name = token_name(tokenizer.decode([final.indices[0].item()]))
        after = f"block {since - 1} and later" if since else "every block"
        assert fact(explorer, f"{name!r} is most probable") == f"after {after}"


def test_a_click_in_a_later_page_of_a_long_text_chooses_that_position(pair):
    explorer = logit_lens_explorer(*pair, (TEXT + " there was a cat")[:21], position=14)
    table, course = explorer.picture.hover
    assert table["chooses"] == [None, "position"]
    assert table["first"] == [0, 14] and table["at"] == [0, 0]
    assert table["shape"] == [LAYERS + 1, 7], "three pages of 7, and not a last one of 1"
    assert [one["texts"] for one in (table, course)] == [one.texts for one in panels(explorer)]


def test_ranks_are_those_of_logits_where_probabilities_are_0(pair):
    model, tokenizer = pair
    hook = model.norm.register_forward_hook(lambda _, __, x: 1e4 * x)
    try:
        explorer = logit_lens_explorer(model, tokenizer, TEXT)
        z = logit_lens(model, torch.tensor([tokenizer.encode(TEXT)]))[:, 0]  # (depth, vocabulary)
    finally:
        hook.remove()
    _, course = panels(explorer)
    assert (course.values[0] == 0).sum() > 1
    wanted = z.argsort(descending=True).argsort()[:, z[-1].topk(5).indices] + 1
    assert course.texts == [[str(rank) for rank in line] for line in wanted.tolist()]


# --- names of tokens -------------------------------------------------------------------------


def test_tokens_are_written_visibly():
    assert token_name(" the\n\xa0") == "␣the↵⍽"
    assert token_name("\t東é") == "⇥□é"


def test_tokens_that_cannot_be_drawn_are_told_apart(pair):
    class Bytes(type(pair[1])):
        def decode(self, ids):
            return {3: "\ufffd", 4: "東", 5: " x"}[ids[0]]

    assert token_names(Bytes(), [3, 4, 5]) == ["\ufffd3", "□4", "␣x"]
