"""Template filters that change a text in a way that its words and a key decide: the same in every
run, order and process.

They make experiments of one task: what does a model do with half of an article, with its sentences
in another order, with words taken out? The key is a sample's id, never its place, so that a part of
the data gives the same texts as the whole.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from evalwright.core.sentences import sentences
from evalwright.tasks.orders import shuffled
from evalwright.tasks.template_limits import TemplateError
from evalwright.tasks.yaml_files import kind_of

_WORD = re.compile(r"\S+")
_CORE = re.compile(r"[^\W_](?:\S*[^\W_])?")
"""A word without the marks around it."""


def required(text: Any) -> str:
    """The text as it is.

    Raises TemplateError where there is none: a missing column, a null, nothing but white space.
    """
    if isinstance(text, str) and text.strip():
        return text
    str(text)  # what is not there says so by itself
    raise TemplateError(
        "the text is empty"
        if isinstance(text, str)
        else f"it is {kind_of(text)}, not text"
    )


def first_part(text: Any, share: Any) -> str:
    """The beginning of a text that has this share of its words (between white space; rounded, at
    least one).
    """
    full_text = _text(text, "first_part")
    cut = _cut(full_text, _share(share, "first_part"))
    return full_text[:cut].rstrip()


def last_part(text: Any, share: Any) -> str:
    """The end of a text that has this share of its words; with `first_part` of the other share it
    is the whole text.
    """
    full_text = _text(text, "last_part")
    # 1.0 - 0.9 is a little less than 0.1
    cut = _cut(full_text, round(1.0 - _share(share, "last_part"), 9))
    return full_text[cut:].lstrip()


def shuffled_sentences(text: Any, key: Any) -> str:
    """The sentences in an order that `key` decides."""
    parts = sentences(_text(text, "shuffled_sentences"))
    return " ".join(
        parts[place] for place in shuffled(len(parts), f"sentences of {key}")
    )


def without_sentences(text: Any, share: Any, key: Any) -> str:
    """The text without a share of its sentences (rounded), which `key` decides; at least one
    stays.
    """
    parts = sentences(_text(text, "without_sentences"))
    count = min(round(_share(share, "without_sentences") * len(parts)), len(parts) - 1)
    order = list(shuffled(len(parts), f"sentences without, of {key}"))
    gone = set(order[:count]) if count > 0 else set()
    return " ".join(part for place, part in enumerate(parts) if place not in gone)


def masked_words(text: Any, share: Any, key: Any, mask: Any = "[MASK]") -> str:
    """The text with a share of its words (rounded, at least one) replaced by `mask`, words that
    `key` decides.

    Marks around a word stay: "crowns," becomes "[MASK],".
    """
    full_text = _text(text, "masked_words")
    words = list(_CORE.finditer(full_text))
    count = max(1, round(_share(share, "masked_words") * len(words)))
    chosen = set(list(shuffled(len(words), f"masks of {key}"))[:count])
    pieces = []
    end = 0
    for place, match in enumerate(words):
        if place in chosen:
            pieces += [full_text[end : match.start()], str(mask)]
            end = match.end()
    return "".join([*pieces, full_text[end:]])


def literal(text: Any) -> Any:
    """The list that a column writes as Python does (`"['a', 'b']"`); what is no text stays.

    Raises TemplateError.
    """
    if not isinstance(text, str):
        return text
    try:
        with warnings.catch_warnings():  # of escapes that Python does not know
            warnings.simplefilter("ignore")
            return ast.literal_eval(text.strip())
    except (MemoryError, RecursionError, SyntaxError, TypeError, ValueError):
        raise TemplateError(
            f"the text {text[:60]!r} is no list as Python writes it"
        ) from None


FILTERS: Mapping[str, Callable[..., Any]] = {
    filter_function.__name__: filter_function
    for filter_function in (
        first_part,
        last_part,
        literal,
        masked_words,
        required,
        shuffled_sentences,
        without_sentences,
    )
}
"""By the name that templates use."""


def _cut(text: str, share: float) -> int:
    """Where the text is cut so that `share` of its words stand before; at least one word on both
    sides, if there are two.
    """
    words = list(_WORD.finditer(text))
    count = min(max(1, round(share * len(words))), max(1, len(words) - 1))
    return words[count - 1].end() if words else 0


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise TemplateError(
            f"the filter '{name}' changes text, not {type(value).__name__}"
        )
    if not value.strip():
        raise TemplateError(f"the filter '{name}' has no text to change")
    return value


def _share(value: Any, name: str) -> float:
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not 0 < value < 1
    ):
        raise TemplateError(
            f"the filter '{name}' takes a share between 0 and 1, not {value!r}"
        )
    return float(value)
