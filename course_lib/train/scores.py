"""BLEU and chrF of sacreBLEU, with the tokenisation that fits the target language."""

from collections import Counter
from collections.abc import Sequence
from typing import Any
from unicodedata import name

#: Codes of three letters, and the ones that sacreBLEU knows.
_SHORT = {"zho": "zh", "chi": "zh", "cmn": "zh", "jpn": "ja", "kor": "ko"}
#: How Unicode begins the names of letters that are written without spaces between words.
_WITHOUT_SPACES = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN")


def bleu_metric(references: Sequence[str], language: str | None = None):
    """Return sacreBLEU's BLEU with the tokenisation that it names for a language, or that fits the script.

    "zh" for Chinese, "ja-mecab" and "ko-mecab" for Japanese and Korean, where the package for it is installed. For all
    other languages, and where the language is not known, the letters of the references decide: "zh" for Chinese
    characters, "char" where most are of another script without spaces between words, such as kana or Thai; else "13a".

    Args:
        references: texts in that language.
        language: as in "zh", "zh-TW" or "zho_Hans".
    """
    from sacrebleu.metrics import BLEU

    code = (language or "").lower().replace("_", "-").partition("-")[0]
    code = _SHORT.get(code, code)
    if code in ("zh", "ja", "ko"):
        try:
            return BLEU(trg_lang=code)
        except (RuntimeError, ImportError):  # without MeCab
            return BLEU(tokenize="char")
    letters = Counter(
        name(one, "").split(" ")[0] for text in references for one in text if one.isalpha()
    )
    without = sum(letters[script] for script in _WITHOUT_SPACES)
    if 2 * without <= letters.total():
        return BLEU(tokenize="13a")
    # a Japanese text is not all Chinese characters
    return BLEU(tokenize="zh" if letters["CJK"] > 0.9 * without else "char")


def sacrebleu_scores(
    candidates: Sequence[str], references: Sequence[str], language: str | None = None
) -> dict[str, Any]:
    """Return sacreBLEU's BLEU and chrF, 0 to 100, each with its signature.

    Args:
        candidates, references: detokenised texts, one reference for each.
        language: of both; see `bleu_metric`.
    """
    from sacrebleu.metrics import CHRF

    candidates, references = list(candidates), list(references)
    found: dict[str, Any] = {}
    for key, metric in (("score", bleu_metric(references, language)), ("chrf", CHRF())):
        score = metric.corpus_score(candidates, [references]).score
        signature = "signature" if key == "score" else "chrf_signature"
        found |= {key: round(score, 2), signature: str(metric.get_signature())}
    return found


def without_four_tokens(references: Sequence[str], language: str | None = None) -> str | None:
    """Return the name of the tokenisation in which no reference has the four tokens that BLEU counts, or None."""
    metric = bleu_metric(references, language)
    if any(len(metric.tokenizer(text).split()) >= 4 for text in references):
        return None
    return metric.tokenizer.signature()
