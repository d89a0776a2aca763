"""Compares an argument that a model wrote with the one that is expected."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

Match = Literal["exact", "loose"]
EXACT: Match = "exact"
LOOSE: Match = "loose"
MATCHES = (EXACT, LOOSE)

WRONG_VALUE = "wrong value"
WRONG_TYPE = "wrong type"
REL_TOLERANCE = 1e-9
"""Fractions closer than this share of the larger one are equal: 0.1 + 0.2 is 0.3."""
ALIKE = 0.6
"""Share of common pairs of letters from which two texts may differ in their wording only."""
MAX_COMPARED_CHARS = 2_000
"""Characters of a text whose wording is compared; equality looks at all of it."""
MAX_SHOWN_CHARS = 60
MAX_PAIRED = 200
"""Elements of a list without an order that are compared each with each.

Those that are written alike are paired before, so more of them are lists that differ.
"""

_MARKS = re.compile(r"[^\w\s]|[\s_]")
_DIGITS = re.compile(r"\d+")
_CODE = re.compile(r"[a-z0-9_.:/-]+")
"""A text such as "premium_economy" or "asc", which has no other wording."""


@dataclass(frozen=True, slots=True)
class Difference:
    """How an argument differs from what is expected.

    Args:
        label: WRONG_VALUE or WRONG_TYPE.
        text: what differs, as the end of a sentence about the argument.
        arguable: why a careful reader might accept it; "" if none would.
    """

    label: str
    text: str
    arguable: str = ""


def normalise(text: str, match: Match = LOOSE) -> str:
    """Normalise a text for comparison.

    "exact" is Unicode's form NFC. "loose" is NFKC without case, white space and punctuation;
    digits of all scripts are ASCII, and a mark within or before a number stays: 3.14, 10:30,
    2026-03-14, -5.
    """
    if match == EXACT:
        return unicodedata.normalize("NFC", text)
    folded = _fold(text)
    compared_signs = [
        sign for index, sign in enumerate(folded) if not _is_dropped(folded, index)
    ]
    return "".join(compared_signs)


def _fold(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(
        str(unicodedata.decimal(sign)) if sign.isdecimal() else sign for sign in folded
    )


def _is_dropped(text: str, index: int) -> bool:
    sign = text[index]
    category = unicodedata.category(sign)
    if category[0] not in "PZC" and sign not in "`´":
        return False
    following = text[index + 1 : index + 2]
    before = text[index - 1 : index]
    if not following.isdigit():
        return True
    if before.isdigit():
        return sign not in ".,:/-"
    return sign != "-" or before.isalnum()


def mentions(text: str, forms: Sequence[str]) -> bool:
    """Return whether a text contains one of several forms, loosely, and their numbers as a whole.

    "20" is in "20 minutes" and in "020", but not in "120 minutes".
    """
    folded = _fold(text)
    compared_indices = [
        index for index in range(len(folded)) if not _is_dropped(folded, index)
    ]
    compared_text = "".join(folded[index] for index in compared_indices)
    return any(
        _occurs(normalise(form), compared_text, folded, compared_indices)
        for form in forms
    )


def _occurs(
    form: str, compared_text: str, folded: str, compared_indices: Sequence[int]
) -> bool:
    """Find a normalised form in a text of which `compared_text` has some signs."""
    if not form:
        return True
    start = compared_text.find(form)
    while start >= 0:
        first = compared_indices[start]
        last = compared_indices[start + len(form) - 1]
        if not _cuts_number(form, folded, first, last):
            return True
        start = compared_text.find(form, start + 1)
    return False


def _cuts_number(form: str, folded: str, first: int, last: int) -> bool:
    if form[-1].isdigit() and folded[last + 1 : last + 2].isdigit():
        return True
    if not form[0].isdigit():
        return False
    before = first - 1
    while form[0] != "0" and before >= 0 and folded[before] == "0":
        before -= 1
    return before >= 0 and folded[before].isdigit()


def letters_and_digits(text: str) -> str:
    """Return the letters and digits of a text, in loose form."""
    return _MARKS.sub("", normalise(text))


def compare(
    expected: Any, actual: Any, match: Match, *, unordered: bool = False
) -> Difference | None:
    """Compare an argument with an expected value.

    Args:
        expected: the expected value, as JSON has it.
        actual: the model's.
        match: how texts are compared.
        unordered: whether the order of a list does not count.

    Returns:
        How they differ; None if they are equal. 1 equals 1.0, and true is not 1.
    """
    if isinstance(expected, bool) or expected is None:
        if expected is actual:
            return None
        same_kind = isinstance(actual, bool) and expected is not None
        if same_kind:
            return Difference(WRONG_VALUE, _versus(actual, expected))
        return _other_type(expected, actual, match)
    if isinstance(expected, int | float):
        if isinstance(actual, int | float) and not isinstance(actual, bool):
            if _same_number(expected, actual):
                return None
            return Difference(WRONG_VALUE, _versus(actual, expected))
        return _other_type(expected, actual, match)
    if isinstance(expected, str):
        if not isinstance(actual, str):
            return _other_type(expected, actual, match)
        return _compare_texts(expected, actual, match)
    if isinstance(expected, Mapping):
        if not isinstance(actual, Mapping):
            return _other_type(expected, actual, match)
        return _compare_mappings(expected, actual, match)
    if not isinstance(actual, list):
        return _other_type(expected, actual, match)
    return _compare_lists(expected, actual, match, unordered)


def _same_number(expected: float, actual: float) -> bool:
    if isinstance(expected, int):
        return expected == actual
    try:
        return math.isclose(expected, actual, rel_tol=REL_TOLERANCE)
    except OverflowError:  # an integer beyond floats
        return False


def _compare_texts(expected: str, actual: str, match: Match) -> Difference | None:
    if normalise(expected, match) == normalise(actual, match):
        return None
    return Difference(
        WRONG_VALUE, _versus(actual, expected), _same_wording(expected, actual)
    )


def _same_wording(expected: str, actual: str) -> str:
    """Say why two texts may mean the same; "" if their numbers or most letters differ."""
    expected_letters = letters_and_digits(expected[:MAX_COMPARED_CHARS])
    actual_letters = letters_and_digits(actual[:MAX_COMPARED_CHARS])
    if _DIGITS.findall(expected_letters) != _DIGITS.findall(actual_letters) or not (
        expected_letters and actual_letters
    ):
        return ""
    if expected_letters == actual_letters:
        return "it differs in punctuation only"
    if _CODE.fullmatch(expected):
        return ""
    if _contains(expected_letters, actual_letters) or _contains(
        actual_letters, expected_letters
    ):
        return "one wording contains the other"
    if _share_of_pairs(expected_letters, actual_letters) >= ALIKE:
        return "it may differ in wording only"
    return ""


def _contains(longer: str, shorter: str) -> bool:
    """Return whether all letters of a text occur in one that is at most twice as long, in order."""
    if not len(shorter) < len(longer) <= 2 * len(shorter):
        return shorter in longer
    letters = iter(longer)
    return all(letter in letters for letter in shorter)


def _share_of_pairs(first: str, second: str) -> float:
    """Dice's coefficient of the pairs of neighbouring letters, from 0 to 1."""
    first_pairs = Counter(map("".join, pairwise(first)))
    second_pairs = Counter(map("".join, pairwise(second)))
    n_pairs = first_pairs.total() + second_pairs.total()
    return 2 * (first_pairs & second_pairs).total() / n_pairs if n_pairs else 0.0


def _compare_mappings(
    expected: Mapping[str, Any], actual: Mapping[str, Any], match: Match
) -> Difference | None:
    missing_names = [name for name in expected if name not in actual]
    if missing_names:
        return Difference(WRONG_VALUE, f"lacks '{missing_names[0]}'")
    extra = [
        name
        for name, inner in actual.items()
        if name not in expected and (match == EXACT or inner is not None)
    ]
    if extra:
        return Difference(WRONG_VALUE, f"has '{extra[0][:40]}', which is not expected")
    return _first(
        (compare(inner, actual[name], match), f"in '{name}' ")
        for name, inner in expected.items()
    )


def _compare_lists(
    expected: Sequence[Any], actual: Sequence[Any], match: Match, unordered: bool
) -> Difference | None:
    if len(expected) != len(actual):
        return Difference(
            WRONG_VALUE,
            f"has {len(actual)} elements where {len(expected)} are expected",
        )
    if not unordered:
        return _first(
            (compare(inner, actual[index], match), f"in element {index + 1} ")
            for index, inner in enumerate(expected)
        )
    unmatched_expected, unmatched_actual = _unlike(expected, actual, match)
    pairs = pair_up(
        len(unmatched_expected[:MAX_PAIRED]),
        len(unmatched_actual[:MAX_PAIRED]),
        lambda first, second: (
            compare(unmatched_expected[first], unmatched_actual[second], match) is None
        ),
    )
    missing_elements = [
        element
        for index, element in enumerate(unmatched_expected)
        if index not in pairs
    ]
    if not missing_elements:
        return None
    paired = set(pairs.values())
    unpaired_elements = [
        element for index, element in enumerate(unmatched_actual) if index not in paired
    ]
    return Difference(
        WRONG_VALUE,
        f"lacks {short_json(missing_elements[0])}",
        _same_elements(
            missing_elements[:MAX_PAIRED], unpaired_elements[:MAX_PAIRED], match
        ),
    )


def _same_elements(
    missing_elements: Sequence[Any], unpaired_elements: Sequence[Any], match: Match
) -> str:
    """Say why elements may mean the same as those that are lacking, in any order."""
    differences = [
        [compare(expected, actual, match) for actual in unpaired_elements]
        for expected in missing_elements
    ]

    def is_arguable(expected: int, actual: int) -> bool:
        difference = differences[expected][actual]
        return difference is not None and bool(difference.arguable)

    pairs = pair_up(len(missing_elements), len(unpaired_elements), is_arguable)
    if len(pairs) < len(missing_elements):
        return ""
    difference = differences[0][pairs[0]]
    return difference.arguable if difference is not None else ""


def _unlike(
    expected: Sequence[Any], actual: Sequence[Any], match: Match
) -> tuple[list[Any], list[Any]]:
    """Return the elements of two lists that are left once those written alike are paired."""
    spellings = [_spelling(element, match) for element in actual]
    spelling_counts = Counter(spellings)
    unmatched_expected: list[Any] = []
    for element in expected:
        spelling = _spelling(element, match)
        if spelling_counts[spelling] > 0:
            spelling_counts[spelling] -= 1
        else:
            unmatched_expected.append(element)
    unmatched_actual: list[Any] = []
    for element, spelling in zip(actual, spellings, strict=True):
        if spelling_counts[spelling] > 0:
            spelling_counts[spelling] -= 1
            unmatched_actual.append(element)
    return unmatched_expected, unmatched_actual


def _spelling(document: Any, match: Match) -> str:
    """Return a text that two JSON values share only if `compare` finds them equal."""
    return json.dumps(_folded(document, match), sort_keys=True)


def _folded(document: Any, match: Match) -> Any:
    if isinstance(document, str):
        return normalise(document, match)
    if isinstance(document, float) and document.is_integer():
        return int(document)
    if isinstance(document, Mapping):
        return {repr(name): _folded(inner, match) for name, inner in document.items()}
    if isinstance(document, list | tuple):
        return [_folded(inner, match) for inner in document]
    return document


def _first(differences: Any) -> Difference | None:
    """Return the first difference that nobody would accept, else the first, with its place."""
    first_difference: Difference | None = None
    for difference, prefix in differences:
        if difference is None:
            continue
        placed_difference = Difference(
            difference.label, prefix + difference.text, difference.arguable
        )
        if not placed_difference.arguable:
            return placed_difference
        first_difference = first_difference or placed_difference
    return first_difference


def _other_type(expected: Any, actual: Any, match: Match) -> Difference:
    return Difference(
        WRONG_TYPE,
        f"{_versus(actual, expected)} ({kind_of(expected)}, not {kind_of(actual)})",
        _same_but_type(expected, actual, match),
    )


def _same_but_type(expected: Any, actual: Any, match: Match) -> str:
    """Say how a value of another type has the same content; "" if it has not."""
    if isinstance(actual, list) and len(actual) == 1:
        inner_equal = compare(expected, actual[0], match) is None
        return "the value is in a list" if inner_equal else ""
    if isinstance(expected, list) and len(expected) == 1:
        inner_equal = compare(expected[0], actual, match) is None
        return "the value should be in a list" if inner_equal else ""
    scalars = (str, int, float, bool)
    if isinstance(expected, scalars) and isinstance(actual, scalars):
        same = _scalar_text(expected) == _scalar_text(actual)
        return "it has the same value as another type" if same else ""
    if isinstance(actual, str):
        try:
            parsed = json.loads(actual[:MAX_COMPARED_CHARS])
        except (ValueError, RecursionError):
            return ""
        if isinstance(parsed, str):
            return ""
        return (
            "it is the right value as a text of JSON"
            if compare(expected, parsed, match) is None
            else ""
        )
    return ""


def _scalar_text(scalar: str | float) -> str:
    if isinstance(scalar, float) and scalar.is_integer():
        return str(int(scalar))
    return str(scalar)[:MAX_COMPARED_CHARS].strip().casefold()


def kind_of(document: Any) -> str:
    """Name the type of a JSON value."""
    if isinstance(document, bool):
        return "a boolean"
    if document is None:
        return "null"
    if isinstance(document, int | float):
        return "a number"
    if isinstance(document, str):
        return "a text"
    return "an object" if isinstance(document, Mapping) else "a list"


def short_json(document: Any) -> str:
    """Write a JSON value on one short line."""
    try:
        text = json.dumps(document, ensure_ascii=False, default=str)
    except RecursionError:
        return f"{kind_of(document)} of many levels"
    line = " ".join(text.split())
    if len(line) <= MAX_SHOWN_CHARS:
        return line
    return f"{line[: MAX_SHOWN_CHARS - 3]}..."


def _versus(actual: Any, expected: Any) -> str:
    return f"is {short_json(actual)} where {short_json(expected)} is expected"


def pair_up(
    n_expected: int, n_actual: int, fits: Callable[[int, int], bool]
) -> dict[int, int]:
    """Pair as many expected things with actual ones as fit, each used once.

    Args:
        n_expected: number of expected things.
        n_actual: number of actual ones.
        fits: whether an expected and an actual one fit, by index.

    Returns:
        By index of an expected thing, that of its actual one: a maximum matching (Kuhn's
        algorithm).
    """
    edges = [
        [actual for actual in range(n_actual) if fits(expected, actual)]
        for expected in range(n_expected)
    ]
    expected_of: dict[int, int] = {}

    def assign(expected: int, tried: set[int]) -> bool:
        for actual in edges[expected]:
            if actual in tried:
                continue
            tried.add(actual)
            if actual not in expected_of or assign(expected_of[actual], tried):
                expected_of[actual] = expected
                return True
        return False

    for expected in range(n_expected):
        assign(expected, set())
    return {expected: actual for actual, expected in expected_of.items()}
