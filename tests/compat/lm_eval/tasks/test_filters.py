"""Every filter, and what a pipeline is refused for."""

from __future__ import annotations

from typing import Any

import pytest

from evalwright.compat.lm_eval.tasks.filters import RegexFilter, build_pipelines
from evalwright.core.errors import TaskError, UnknownName


def applied(
    steps: list[dict[str, Any]], *answers: list[Any], doc: dict[str, Any] | None = None
) -> list[Any]:
    (pipeline,) = build_pipelines([{"name": "p", "filter": steps}], "t")
    return pipeline(list(answers), doc or {})


@pytest.mark.parametrize(
    ("step", "answers", "wanted"),
    [
        ({"function": "take_first"}, ["a", "b"], "a"),
        ({"function": "take_first_k", "k": 2}, ["a", "b", "c"], ["a", "b"]),
        ({"function": "majority_vote"}, ["b", "a", "a", "b"], ["b"]),
        ({"function": "lowercase"}, ["Ab"], ["ab"]),
        ({"function": "uppercase"}, ["Ab"], ["AB"]),
        ({"function": "remove_whitespace"}, [" a b\n"], ["a b"]),
        (
            {"function": "map", "mapping_dict": {"a": 1}, "default_value": 0},
            ["a", "b"],
            [1, 0],
        ),
        ({"function": "regex"}, ["x #### 1,200.", "none"], ["1,200.", "[invalid]"]),
        (
            {"function": "regex", "regex_pattern": "[0-9]+", "group_select": -1},
            ["1 2 3"],
            ["3"],
        ),
        ({"function": "regex", "regex_pattern": "(a)|(b)"}, ["xb"], ["b"]),
        (
            {"function": "regex", "regex_pattern": "(a?)(b?)", "fallback": "none"},
            [""],
            ["none"],
        ),
        (
            {"function": "regex_pos"},
            ["('Ada', 'NOUN'), ('ran', 'VERB')", "x"],
            [["NOUN", "VERB"], ["invalid"]],
        ),
        (
            {"function": "format_span"},
            ["Person: Ada, none$$Location: Rome"],
            ["per: ada $ loc: rome"],
        ),
        (
            {
                "function": "custom",
                "filter_fn": lambda resps, docs: [len(one) for one in resps],
            },
            ["a", "b"],
            2,
        ),
        ({"function": RegexFilter, "regex_pattern": "b"}, ["abc"], ["b"]),
    ],
)
def test_a_filter(step: dict[str, Any], answers: list[Any], wanted: Any) -> None:
    assert applied([step], answers) == [wanted]


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        ("the answer is (C)", "(C)"),
        ("It must be red wine!", "(B)"),
        ("I say: A", "(A)"),
        ("dunno", "[invalid]"),
    ],
)
def test_choices_are_found_by_pattern_text_or_letter(answer: str, wanted: str) -> None:
    step = {
        "function": "multi_choice_regex",
        "regex_pattern": r"(\([A-Z]\))",
        "ignore_case": True,
    }
    doc = {"choices": ["red", "Red wine", "white"]}
    assert applied([step, {"function": "take_first"}], [answer], doc=doc) == [wanted]


def test_what_is_refused() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'take_first'"):
        applied([{"function": "take_frist"}], ["a"])
    with pytest.raises(TaskError, match="cannot be made"):
        applied([{"function": "regex", "pattern": "x"}], ["a"])
    with pytest.raises(TaskError, match="every entry of `filter_list`"):
        build_pipelines([{"name": "p"}], "t")
    with pytest.raises(ValueError, match="raise `repeats`"):
        applied([{"function": "take_first_k", "k": 2}], ["a"])
