"""The verification ledger as text."""

from course_lib.tools import ledger

ROWS = [
    ["course_lib.transformer.masks.causal_mask", "PyTorch `tril`", "float64", False, 1e-16],
    ["course_lib.transformer.masks.causal_mask", "PyTorch `tril`", "float64", False, 3e-16],
    ["course_lib.transformer.masks.causal_mask", "PyTorch `tril`", "float32", True, 2e-7],
    ["course_lib.transformer.masks.causal_mask", "a loop", "exact", False, 0.0],
    ["course_lib.topics.bleu.bleu", "a loop", "int64", False, 0.0],
    ["course_lib.topics.bleu.bleu", "sacreBLEU", "bfloat16", False, 1e-3],
]


def test_ledger_table_counts_comparisons_and_keeps_the_largest_difference():
    assert ledger.read(ledger.table(ROWS)) == {
        ("topics.bleu.bleu", "a loop"): ["1", "holds", "–", "–", "–"],
        ("topics.bleu.bleu", "sacreBLEU"): ["1", "–", "–", "–", "–"],
        ("transformer.masks.causal_mask", "PyTorch `tril`"): ["3", "3e-16", "–", "–", "2e-07"],
        ("transformer.masks.causal_mask", "a loop"): ["1", "holds", "–", "–", "–"],
    }


def test_ledger_summary_adds_up_by_kind_of_oracle():
    first, _, _, _, *rows = ledger.summary(ledger.table(ROWS)).splitlines()
    assert first.startswith("2 public names, 3 oracles, 6 comparisons.")
    assert rows == [
        "| PyTorch | 1 | 1 | 3 | 3e-16 | – | – | 2e-07 |",
        "| sacreBLEU | 1 | 1 | 1 | – | – | – | – |",
        "| explicit loops and formulas in Python | 1 | 2 | 2 | – | – | – | – |",
    ]


def test_ledger_kind_of_oracle():
    assert ledger.kind("Hugging Face `LlamaAttention`") == "Hugging Face Transformers"
    assert ledger.kind("a loop with PyTorch `Adam`") == "PyTorch"
    assert ledger.kind("sentences written by hand") == "values and rules written by hand"
