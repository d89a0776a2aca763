"""SQuAD's exact match and F1, as `transformers.data.metrics.squad_metrics` computed them.

transformers removed that module in release 5; task modules such as `coqa` and `xquad` import it by
that name. Rajpurkar et al. 2016, and 2.0 for empty answers.
"""

from __future__ import annotations

import re
import string
from collections import Counter

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize_answer(s: str) -> str:
    """Lower-case a text and remove punctuation, English articles and repeated white space."""
    return " ".join(_ARTICLES.sub(" ", s.lower().translate(_PUNCTUATION)).split())


def get_tokens(s: str) -> list[str]:
    """The words of the normalised text."""
    return normalize_answer(s).split() if s else []


def compute_exact(a_gold: str, a_pred: str) -> int:
    """1 if both answers are equal once normalised."""
    return int(normalize_answer(a_gold) == normalize_answer(a_pred))


def compute_f1(a_gold: str, a_pred: str) -> float:
    """F1 of the words, with repeats; if an answer is empty, 1 only if both are."""
    gold = get_tokens(a_gold)
    predicted = get_tokens(a_pred)
    if not gold or not predicted:
        return int(gold == predicted)
    n_common = sum((Counter(gold) & Counter(predicted)).values())
    if not n_common:
        return 0
    precision = n_common / len(predicted)
    recall = n_common / len(gold)
    return 2 * precision * recall / (precision + recall)
