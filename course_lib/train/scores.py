"""BLEU and chrF of sacreBLEU, with the tokenisation that fits the target language."""

from collections.abc import Sequence
from typing import Any

#: Codes of three letters, and the ones that sacreBLEU knows.
_SHORT = {"zho": "zh", "chi": "zh", "cmn": "zh", "jpn": "ja", "kor": "ko"}
#: Written without spaces between words, and without a tokenisation of sacreBLEU's own.
_BY_CHARACTER = {
    "th",
    "tha",
    "lo",
    "lao",
    "km",
    "khm",
    "my",
    "mya",
    "bo",
    "bod",
    "dz",
    "dzo",
    "yue",
}


def bleu_metric(language: str | None = None):
    """Return sacreBLEU's BLEU with the tokenisation that it names for a language.

    "zh" for Chinese, "ja-mecab" and "ko-mecab" for Japanese and Korean, "13a" for others and where the language is not
    known; characters where the package for it is not installed, and for other languages that are written without spaces.

    Args:
        language: as in "zh", "zh-TW" or "zho_Hans".
    """
    from sacrebleu.metrics import BLEU

    code = (language or "").lower().replace("_", "-").partition("-")[0]
    code = _SHORT.get(code, code)
    if code in _BY_CHARACTER:
        return BLEU(tokenize="char")
    try:
        return BLEU(trg_lang=code)
    except (RuntimeError, ImportError):  # without MeCab
        return BLEU(tokenize="char")


def sacrebleu_scores(
    candidates: Sequence[str], references: Sequence[str], language: str | None = None
) -> dict[str, Any]:
    """Return sacreBLEU's BLEU and chrF, 0 to 100, each with its signature.

    Args:
        candidates, references: detokenised texts, one reference for each.
        language: of both; see `bleu_metric`.
    """
    from sacrebleu.metrics import CHRF

    found: dict[str, Any] = {}
    for name, metric in (("score", bleu_metric(language)), ("chrf", CHRF())):
        score = metric.corpus_score(list(candidates), [list(references)]).score
        signature = "signature" if name == "score" else "chrf_signature"
        found |= {name: round(score, 2), signature: str(metric.get_signature())}
    return found


def without_four_tokens(references: Sequence[str], language: str | None = None) -> str | None:
    """Return the name of the tokenisation in which no reference has the four tokens that BLEU counts, or None."""
    metric = bleu_metric(language)
    if any(len(metric.tokenizer(text).split()) >= 4 for text in references):
        return None
    return metric.tokenizer.signature()
