"""Tables of models that lessons write as text, against the anatomy of these models."""

import json
import re
from pathlib import Path

import pytest

from course_lib.topics.anatomy import anatomy, model_names

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


def rows(stem, header):
    """The rows of the table with this header."""
    cells = json.loads((NOTEBOOKS / f"{stem}.ipynb").read_text(encoding="utf-8"))["cells"]
    (text,) = [text for text in ("".join(cell["source"]) for cell in cells) if header in text]
    for line in text[text.index(header) :].split("\n")[2:]:
        if not line.startswith("|"):
            return
        yield [entry.strip() for entry in line.strip("|").split("|")]


def models(entry):
    """The stored models that an entry names, and the years beside them."""
    for name in model_names():
        if found := re.search(rf"(?:^|; ){re.escape(name)}(?: \((\d{{4}})|;|$)", entry):
            yield found.start(), name, found[1]


TABLE = [*rows("10_efficient_attention", "| model | cheap layers | dense layers | KV cache |")]
KINDS = {"window": "window", "summaries": "compressed", "indexer": "sparse"}


@pytest.mark.parametrize("row", TABLE, ids=[row[0] for row in TABLE])
def test_the_table_of_lesson_10_says_what_the_layers_are(row):
    label, cheap, dense, cache = row
    named = [anatomy(name) for _, name, _ in sorted(models(label))]
    assert named
    windows = [
        int(n.replace(",", "")) for n in re.findall(r"(?<=window )[\d,]+\d|(?<=; )[\d,]+\d", cheap)
    ]
    counts = re.findall(r"(\d+) (?:of|in) (\d+)", dense)
    assert len(counts) in (0, 1, len(named))
    for i, one in enumerate(named):
        total, full = len(one.layers), one.kinds.get("global", 0)
        if "window" in cheap:
            assert one.config["sliding_window"] == windows[min(i, len(windows) - 1)]
        if counts:
            share, of = map(int, counts[min(i, len(counts) - 1)])
            assert full * of == share * total
        elif dense == "all":
            assert full == total
        elif "indexer" not in cheap:
            assert full == 0
        else:  # dense is "none": the indexer is in all
            assert one.kinds == {"sparse": total}
        for word, kind in KINDS.items():
            assert (word in cheap) == (kind in one.kinds)
        assert (re.search("linear|Mamba|delta", cheap) is not None) == ("linear" in one.kinds)
        latent = "kv_lora_rank" in one.config
        heads = 1 if latent else one.config["num_key_value_heads"]
        assert ("MLA" in cache, "one KV head" in cache) == (latent, heads == 1 and not latent)
        if "sparse" in one.kinds:
            c = one.config
            blocks = f"{c.get('index_topk_blocks')} blocks of {c.get('index_block_size')} keys"
            assert (f"{c['index_topk']:,} keys" if "index_topk" in c else blocks) in cheap
        if "compressed" in one.kinds:
            rates = sorted(one.config["compress_rates"].values())
            assert "summaries of {} or {} tokens".format(*rates) in cheap


def test_the_table_is_of_this_year():
    years = [int(year) for row in TABLE for year in re.findall(r"\((\d{4})", row[0])]
    assert max(years) == 2026 and len(TABLE) >= 10


def test_the_mixtures_of_lesson_11_have_the_counts_and_experts_that_it_says():
    cells = json.loads((NOTEBOOKS / "11_scaling_laws.ipynb").read_text(encoding="utf-8"))["cells"]
    text = "".join("".join(cell["source"]) for cell in cells)
    for name, digits in (("Mixtral 8x7B", 1), ("DeepSeek-V4-Flash", 0)):
        one = anatomy(name)
        assert (
            f"{one.active / 1e9:.1f} and {one.parameters / 1e9:.{digits}f} billion in {name}"
            in text
        )
    c = one.config
    assert c["n_shared_experts"] == 1
    assert f"{c['num_experts_per_tok']} of {c['n_routed_experts']} and a shared one" in text
