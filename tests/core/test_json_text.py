"""The quick encoder writes what `json` writes, and refuses what `json` refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.bounded import from_json
from evalwright.core.json_text import encode_function

_TEXTS = st.text(st.characters())  # lone surrogates too
_KEYS = _TEXTS | st.integers() | st.floats() | st.booleans() | st.none()
_LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | _TEXTS
_VALUES = st.recursive(
    _LEAVES | st.binary(max_size=2),  # which is no JSON
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(_KEYS, inner, max_size=4)
    ),
    max_leaves=12,
)
_SETTINGS = [
    {"sort_keys": True, "separators": (",", ":"), "ensure_ascii": False},
    {"separators": (",", ":"), "ensure_ascii": False, "allow_nan": False},
    {"ensure_ascii": False, "allow_nan": False, "default": str},
    {"indent": 2},
    {},
]


def _outcome(function: Callable[[Any], Any], value: Any) -> tuple[type, str]:
    """Return what a function gives, or which error it raises; nan equals nan in this form."""
    try:
        outcome = function(value)
    except Exception as error:
        return type(error), ""
    return type(outcome), repr(outcome)


@pytest.mark.parametrize("settings", _SETTINGS)
@given(value=_VALUES)
def test_texts_and_errors_are_those_of_json(
    settings: dict[str, Any], value: Any
) -> None:
    encoder = json.JSONEncoder(**settings)
    assert _outcome(encode_function(encoder), value) == _outcome(encoder.encode, value)


def test_what_contains_itself_is_refused_each_time() -> None:
    encode = encode_function(json.JSONEncoder())
    endless: list[Any] = []
    endless.append(endless)
    for _ in range(2):
        with pytest.raises(ValueError, match="Circular"):
            encode(endless)
    assert encode([[], []]) == "[[], []]"


@given(
    value=_LEAVES | st.lists(_LEAVES, max_size=3),
    before=st.sampled_from(["", " ", "\n", "\f"]),
    after=st.sampled_from(["", " ", "\r\n\t", "\u00a0", "]", " {}", "\0"]),
)
def test_a_reply_is_decoded_as_json_decodes_it(
    value: Any, before: str, after: str
) -> None:
    text = f"{before}{json.dumps(value)}{after}"
    assert _outcome(from_json, text) == _outcome(json.loads, text)
