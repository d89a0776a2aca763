"""Template filters that change a text depending only on its words and a key.

So the outcome is the same in every run, order and process. They make experiments of one task: what
does a model do with half of an article, with its sentences in another order, with words masked? The
key is a sample's id, never its position, so that a part of the data gives the same texts as the
whole.
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
"""A word without the punctuation around it."""


def required(text: Any) -> str:
    """Return the text as it is.

    Raises:
        TemplateError: there is none: a missing column, a null, nothing but white space.
    """
    if isinstance(text, str) and text.strip():
        return text
    str(text)  # a missing name raises its own error here
    raise TemplateError(
        "the text is empty"
        if isinstance(text, str)
        else f"it is {kind_of(text)}, not text"
    )


def first_part(text: Any, share: Any) -> str:
    """Return the beginning of a text with this share of its words (rounded, at least one).

    Words are separated by white space.
    """
    full_text = _text(text, "first_part")
    cut = _cut(full_text, _share(share, "first_part"))
    return full_text[:cut].rstrip()


def last_part(text: Any, share: Any) -> str:
    """Return the end of a text with this share of its words.

    With `first_part` of the other share it is the whole text.
    """
    full_text = _text(text, "last_part")
    # 1.0 - 0.9 is slightly less than 0.1
    cut = _cut(full_text, round(1.0 - _share(share, "last_part"), 9))
    return full_text[cut:].lstrip()


def shuffled_sentences(text: Any, key: Any) -> str:
    """Put the sentences into an order that `key` decides."""
    parts = sentences(_text(text, "shuffled_sentences"))
    return " ".join(
        parts[place] for place in shuffled(len(parts), f"sentences of {key}")
    )


def without_sentences(text: Any, share: Any, key: Any) -> str:
    """Remove a share of the sentences (rounded), which `key` decides; at least one stays."""
    parts = sentences(_text(text, "without_sentences"))
    count = min(round(_share(share, "without_sentences") * len(parts)), len(parts) - 1)
    order = list(shuffled(len(parts), f"sentences without, of {key}"))
    gone = set(order[:count]) if count > 0 else set()
    return " ".join(part for place, part in enumerate(parts) if place not in gone)


def masked_words(text: Any, share: Any, key: Any, mask: Any = "[MASK]") -> str:
    """Replace a share of the words (rounded, at least one), which `key` decides, by `mask`.

    Punctuation around a word stays: "crowns," becomes "[MASK],".
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
    """Parse a list that a column has in Python's notation (`"['a', 'b']"`).

    A value that is not text stays.

    Raises:
        TemplateError: the text is not a Python literal.
    """
    if not isinstance(text, str):
        return text
    try:
        with warnings.catch_warnings():  # about escapes that Python does not know
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
"""The filters by the name that templates use."""


def _cut(text: str, share: float) -> int:
    """Return where to cut the text so that `share` of its words come before.

    At least one word is on both sides, if there are two.
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
