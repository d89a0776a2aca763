"""`key=value` pairs, roles and plug-in files."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.cli.arguments import key_values, role_specs
from evalwright.core.errors import ConfigurationError
from evalwright.evaluation.configuration import ModelSpec


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([], {}),
        (["timeout=5", "top_p=0.5", "name=x"], {"timeout": 5, "top_p": 0.5, "name": "x"}),
        (["on=true", "off=False", "none=null", "nothing=None"], {"on": True, "off": False, "none": None, "nothing": None}),
        (["extra.top_k=3", "extra.deep.er=[1, 2]"], {"extra": {"top_k": 3, "deep": {"er": [1, 2]}}}),
        (["url=http://x/?a=b", "empty="], {"url": "http://x/?a=b", "empty": ""}),
        (['text="5"', "version=1.2.3", "map={\"a\": 1}"], {"text": "5", "version": "1.2.3", "map": {"a": 1}}),
        (["a=NaN", "b=Infinity", "c=-Infinity", "d=1e999"], {"a": "NaN", "b": "Infinity", "c": "-Infinity", "d": "1e999"}),
        (["a=1", "a=2"], {"a": 2}),
    ],
)  # fmt: skip
def test_key_values(pairs: list[str], expected: dict[str, Any]) -> None:
    assert key_values(pairs, "-M") == expected


@given(
    st.dictionaries(
        st.from_regex(r"[a-z_]{1,6}", fullmatch=True),
        st.integers() | st.booleans() | st.text(),
        max_size=4,
    )
)
def test_any_json_value_can_be_given(values: dict[str, Any]) -> None:
    assert (
        key_values(
            [f"{key}={json.dumps(value)}" for key, value in values.items()], "-M"
        )
        == values
    )


@pytest.mark.parametrize(
    "pairs", [["a"], ["=3"], [""], ["a=1", "a.b=2"], ["a.b=2", "a=1"]]
)
def test_what_is_no_pair(pairs: list[str]) -> None:
    with pytest.raises(ConfigurationError, match=r"^-M "):
        key_values(pairs, "-M")


def test_roles() -> None:
    found = role_specs(
        ["judge=openai/x", "reward=hf/y=z"], ["judge.timeout=3", "judge.extra.a=1"]
    )
    assert found == {
        "judge": ModelSpec("openai/x", {"timeout": 3, "extra": {"a": 1}}),
        "reward": ModelSpec("hf/y=z"),
    }
    for roles, arguments in (
        ([], ["judge.a=1"]),
        (["judge=a/b"], ["judge=1"]),
        (["judge"], []),
        (["=a/b"], []),
        (["judge="], []),
    ):
        with pytest.raises(ConfigurationError):
            role_specs(roles, arguments)
