"""Calls of tools beside the expected ones: verdicts, labels, what a reader may argue about."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core.errors import ConfigurationError, ScoringError, UnknownName
from evalwright.core.requests import Message
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Sample, Score
from evalwright.core.tool_calls import ToolCall
from evalwright.scorers.registry import bind
from evalwright.scorers.tool_calls.values import compare, normalise, pair_up
from support.bounds import assert_grows_linearly

Call = dict[str, Any]


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall(name, json.dumps(arguments, ensure_ascii=False))


def expect(name: str, arguments: Any = None, **keys: Any) -> Call:
    return {"name": name, "arguments": arguments or {}, **keys}


def score(
    expected: Any, calls: list[ToolCall], text: str = "", **options: Any
) -> Score:
    response = Response(text, "", "stop", tool_calls=tuple(calls))
    sample = Sample("s", metadata={"calls": expected})
    verdict = bind("tool-calls", options).function(
        sample, Answer(text, responses=(response,))
    )
    assert isinstance(verdict, Score)
    return verdict


SEOUL = expect("weather", {"city": "Seoul", "days": 3})
BUSAN = expect("weather", {"city": "Busan", "days": 3})


@pytest.mark.parametrize(
    ("expected", "calls", "value", "label"),
    [
        ([SEOUL], [call("weather", city="Seoul", days=3)], 1, "correct"),
        ([SEOUL], [call("weather", days=3.0, city=" seoul.")], 1, "correct"),
        ([SEOUL], [call("weather", city="Seoul", days=3, unit=None)], 1, "correct"),
        ([SEOUL], [call("forecast", city="Seoul", days=3)], 0, "wrong tool"),
        ([SEOUL], [call("weather", city="Seoul")], 0, "missing argument"),
        ([SEOUL], [call("weather", city=None, days=3)], 0, "missing argument"),
        ([SEOUL], [call("weather", city="Busan", days=3)], 0, "wrong value"),
        ([SEOUL], [call("weather", city="Seoul", days="3")], 0, "wrong type"),
        ([SEOUL], [call("weather", city="Seoul", days=True)], 0, "wrong type"),
        (
            [SEOUL],
            [call("weather", city="Seoul", days=3, unit="c")],
            0,
            "unexpected argument",
        ),
        ([SEOUL], [call("weather", city="Seoul", days=3)] * 2, 0, "extra call"),
        ([SEOUL], [], 0, "no call"),
        ([SEOUL], [ToolCall("weather", '{"city": "Seo')], 0, "malformed arguments"),
        ([SEOUL], [ToolCall("weather", "[1]")], 0, "malformed arguments"),
        ([SEOUL], [ToolCall("weather", '{"days": NaN}')], 0, "malformed arguments"),
        ([SEOUL, BUSAN], [call("weather", city="Seoul", days=3)], 0, "missing call"),
        (
            [SEOUL, BUSAN],
            [
                call("weather", city="Busan", days=3),
                call("weather", city="Seoul", days=3),
            ],
            1,
            "correct",
        ),
        (
            [SEOUL, BUSAN],
            [
                call("weather", city="Busan", days=3),
                call("weather", city="Jeju", days=3),
            ],
            0,
            "wrong value",
        ),
        ([], [call("weather", city="Seoul")], 0, "unwanted call"),
        ([expect("now")], [ToolCall("now", "")], 1, "correct"),
        ([expect("now")], [call("now", zone="KST")], 0, "unexpected argument"),
    ],
)
def test_a_call_is_right_or_its_label_says_what_is_wrong(
    expected: Any, calls: list[ToolCall], value: float, label: str
) -> None:
    verdict = score(expected, calls)
    assert (verdict.value, verdict.label) == (value, label)
    assert verdict.explanation.endswith(".")
    assert verdict.explanation.count(". ") == 0


def test_where_no_call_is_wanted_text_is_right_and_silence_is_not() -> None:
    assert score([], [], "Which city do you mean?").value == 1
    assert (score([], [], " ").value, score([], [], " ").label) == (0, "no answer")
    written = score([], [], '{"name": "weather", "arguments": {"city": "Seoul"}}')
    assert written.value == 1
    assert "weather" in written.unsure


def test_a_call_written_as_text_is_no_call_and_a_reader_may_argue() -> None:
    text = 'I call {"name": "weather", "arguments": {"city": "Seoul", "days": 3}}'
    verdict = score([SEOUL], [], text)
    assert (verdict.value, verdict.label) == (0, "no call")
    assert verdict.unsure == "a call of weather is written as text"


@pytest.mark.parametrize(
    ("keys", "arguments", "value"),
    [
        ({"alternatives": {"a": ["y", 5]}}, {"a": "y"}, 1),
        ({"alternatives": {"a": ["y", 5]}}, {"a": 5}, 1),
        ({"alternatives": {"a": ["y", 5]}}, {"a": "z"}, 0),
        ({"optional": ["a"]}, {}, 1),
        ({"optional": ["a"]}, {"a": "x"}, 1),
        ({"optional": ["a"]}, {"a": "z"}, 0),
        ({"optional": ["b"]}, {"a": "x", "b": [1, {"any": "thing"}]}, 1),
        (
            {"contains": {"m": ["3시", ["회의", "미팅"]]}},
            {"a": "x", "m": "3 시 미팅"},
            1,
        ),
        ({"contains": {"m": ["3시", ["회의", "미팅"]]}}, {"a": "x", "m": "회의"}, 0),
        ({"contains": {"m": []}}, {"a": "x", "m": "anything"}, 1),
        ({"contains": {"m": []}}, {"a": "x", "m": ""}, 0),
        ({"contains": {"m": []}}, {"a": "x"}, 0),
        ({"contains": {"m": []}, "optional": ["m"]}, {"a": "x"}, 1),
    ],
)
def test_alternatives_optional_arguments_and_free_texts(
    keys: dict[str, Any], arguments: dict[str, Any], value: float
) -> None:
    expected = [expect("f", {"a": "x"}, **keys)]
    assert score(expected, [ToolCall("f", json.dumps(arguments))]).value == value


def test_nested_objects_and_lists() -> None:
    order = {"lines": [{"dish": "Nasi Goreng", "n": 2}, {"dish": "Es Teh", "n": 1}]}
    expected = [expect("order", order)]
    same = {"lines": [{"n": 2.0, "dish": "nasi goreng"}, {"dish": "es teh", "n": 1}]}
    swapped = {"lines": order["lines"][::-1]}
    assert score(expected, [ToolCall("order", json.dumps(same))]).value == 1
    assert score(expected, [ToolCall("order", json.dumps(swapped))]).value == 0
    unordered = [{**expected[0], "unordered": ["lines"]}]
    assert score(unordered, [ToolCall("order", json.dumps(swapped))]).value == 1
    lacking = score(unordered, [call("order", lines=[order["lines"][0]] * 2)])
    assert (lacking.value, "Es Teh" in lacking.explanation) == (0, True)


@pytest.mark.parametrize(
    ("wanted", "written", "why"),
    [
        ("서울역", "서울 기차역", "contains"),
        ("2026-03-14", "2026/03/14", "punctuation"),
        ("Grand Indonesia", "Mall Grand Indonesia", "contains"),
        ("2026-03-14", "2026-03-15", ""),
        ("celsius", "fahrenheit", ""),
        ("male", "female", ""),
        ("premium_economy", "economy", ""),
        ("Jalan Sudirman", "Jl. Sudirman", "wording"),
        (4, "4", "another type"),
        (4, "5", ""),
        (True, "true", "another type"),
        (["a"], "a", "in a list"),
        ("a", ["a"], "in a list"),
        ({"a": 1}, '{"a": 1}', "text of JSON"),
    ],
)
def test_a_wrong_value_is_unsure_where_only_its_form_differs(
    wanted: Any, written: Any, why: str
) -> None:
    verdict = score([expect("f", {"x": wanted})], [call("f", x=written)])
    assert verdict.value == 0
    assert bool(verdict.unsure) == bool(why)
    assert why in verdict.unsure


def test_an_argument_beyond_doubt_decides_before_one_that_may_be_argued_about() -> None:
    expected = [expect("f", {"place": "서울역", "n": 2})]
    assert score(expected, [call("f", place="서울 기차역", n=2)]).unsure
    assert not score(expected, [call("f", place="서울 기차역", n=3)]).unsure


def test_exact_match_ignores_nothing_but_unicode_forms() -> None:
    expected = [expect("f", {"x": "Café"})]
    assert score(expected, [call("f", x="Cafe\u0301")], match="exact").value == 1
    assert score(expected, [call("f", x="café")], match="exact").value == 0
    assert score(expected, [call("f", x="Café", y=None)], match="exact").value == 0


def test_the_order_of_calls_counts_only_where_it_is_fixed() -> None:
    right = [call("a"), call("b"), call("a")]
    expected = [expect("a"), expect("b"), expect("a")]
    swapped = [right[1], right[0], right[2]]
    assert score(expected, right, order="fixed").value == 1
    assert score(expected, swapped).value == 1
    wrong = score(expected, swapped, order="fixed")
    assert (wrong.value, wrong.label, wrong.parts["calls"]) == (0, "wrong order", 1)


def test_each_expected_call_has_a_call_of_its_own_whatever_the_order() -> None:
    either = expect("f", {"x": 1}, alternatives={"x": [2]})
    only_one = expect("f", {"x": 1})
    calls = [call("f", x=1), call("f", x=2)]
    assert score([either, only_one], calls).value == 1
    assert score([either, only_one], calls[::-1]).value == 1


# -- several turns ---------------------------------------------------------------------

USER_1 = Message("user", "Find a train to Busan.")
USER_2 = Message("user", "Book the first one.")
FIND = call("find", to="Busan")
BOOK = call("book", id="K1")
TURNS = [[expect("find", {"to": "Busan"})], [expect("book", {"id": "K1"})]]


def converse(*turns: Any) -> Answer:
    """An answer from user turns, lists of calls with results, and texts, in order."""
    prompt: list[Message] = []
    responses: list[Response] = []
    for turn in turns:
        if isinstance(turn, Message):
            prompt.append(turn)
            continue
        calls = tuple(turn) if isinstance(turn, list) else ()
        text = "" if calls else str(turn)
        responses.append(Response(text, "", "stop", tool_calls=calls))
        prompt.append(Message("assistant", text, tool_calls=calls))
    *before, _ = prompt
    return Answer(responses[-1].text, prompt=tuple(before), responses=tuple(responses))


def result(text: str, *, is_error: bool = False) -> Message:
    return Message("tool", text, is_error=is_error)


def score_turns(expected: Any, answer: Answer, **options: Any) -> Score:
    sample = Sample("s", metadata={"calls": expected})
    verdict = bind("tool-calls", options).function(sample, answer)
    assert isinstance(verdict, Score)
    return verdict


def test_calls_count_in_their_own_user_turn() -> None:
    right = converse(
        USER_1,
        [FIND],
        result("K1"),
        "K1 at nine.",
        USER_2,
        [BOOK],
        result("ok"),
        "Done.",
    )
    verdict = score_turns(TURNS, right)
    assert (verdict.value, verdict.parts) == (1, {"calls": 1, "turns": 1})
    early = converse(
        USER_1, [FIND, BOOK], result("K1"), result("ok"), "Booked.", USER_2, "Done."
    )
    verdict = score_turns(TURNS, early)
    assert (verdict.value, verdict.label) == (0, "extra call")
    assert verdict.explanation.startswith("In turn 1, ")
    assert verdict.parts["turns"] == 0
    pooled = [*TURNS[0], *TURNS[1]]
    assert score_turns(pooled, early).value == 1


def test_calls_of_the_last_reply_count_when_the_loop_ended_there() -> None:
    cut_short = converse(USER_1, [FIND], result("K1"), "K1.", USER_2, [BOOK])
    assert score_turns(TURNS, cut_short).value == 1
    stopped = converse(USER_1, [FIND])
    assert score_turns(TURNS, stopped).parts == {"calls": 0.5, "turns": 0.5}


def test_a_turn_without_calls_wants_none() -> None:
    asks_back = converse(USER_1, "From where?", USER_2, [BOOK])
    assert score_turns([[], TURNS[1]], asks_back).value == 1
    assert score_turns(TURNS, asks_back).label == "no call"


def test_a_failed_call_that_is_put_right_is_an_extra_call_of_which_one_may_argue() -> (
    None
):
    typo = call("find", to="Pusan Bay")
    answer = converse(
        USER_1,
        [typo],
        result("no such place", is_error=True),
        [FIND],
        result("K1"),
        "K1.",
    )
    verdict = score_turns(TURNS[:1], answer)
    assert (verdict.value, verdict.label) == (0, "extra call")
    assert "failed" in verdict.unsure
    unfailed = converse(USER_1, [typo], result("none"), [FIND], result("K1"), "K1.")
    assert not score_turns(TURNS[:1], unfailed).unsure


def test_assistant_turns_that_the_task_wrote_are_not_the_models() -> None:
    history = (
        Message("user", "Any train to Jeju?"),
        Message("assistant", "", tool_calls=(call("find", to="Jeju"),)),
        result("none"),
        Message("assistant", "There is none."),
    )
    right = converse(USER_1, [FIND], result("K1"), "K1.")
    after_history = Answer(
        right.text, prompt=(*history, *right.prompt), responses=right.responses
    )
    assert score_turns(TURNS[:1], after_history).value == 1
    draws = Answer(
        "",
        prompt=(*history, USER_1),
        responses=(Response("x"), Response(tool_calls=(FIND,))),
    )
    assert score_turns(TURNS[:1], draws).value == 1


# -- what is malformed -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ("weather", "is a list of calls"),
        ([{"arguments": {}}], "call 1 is a mapping with the `name`"),
        ([[SEOUL], SEOUL], "mixes calls and lists"),
        ([{**SEOUL, "alternatives": {"town": ["x"]}}], "'town', which is not in"),
        ([{**SEOUL, "contains": {"city": ["x"]}}], "in both"),
        ([{**SEOUL, "optional": "city"}], "`optional` is a list"),
        ([{**SEOUL, "contains": {"m": [5]}}], "`contains` of 'm'"),
        ([SEOUL] * 65, "at most 64"),
    ],
)
def test_malformed_expected_calls_are_a_sentence(expected: Any, message: str) -> None:
    with pytest.raises(ScoringError, match=message):
        score(expected, [])
    if not isinstance(expected, str):
        with pytest.raises(ConfigurationError, match=message):
            bind("tool-calls", {"expected": expected})


def test_wrong_options_are_a_sentence() -> None:
    with pytest.raises(UnknownName, match="alternatives"):
        bind("tool-calls", {"expected": [{"name": "f", "alternative": {}}]})
    with pytest.raises(UnknownName, match="fixed"):
        bind("tool-calls", {"order": "fix"})
    with pytest.raises(UnknownName, match="loose"):
        bind("tool-calls", {"match": "lose"})
    with pytest.raises(ScoringError, match="no metadata 'calls'"):
        bind("tool-calls").function(Sample("s"), Answer())


# -- values ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("New York", "new-york", True),
        ("Jl. Sudirman No. 5", "jl sudirman no 5", True),
        ("สยาม พารากอน", "สยามพารากอน", True),
        ("๑๒ มีนาคม ๒๕๖๙", "12 มีนาคม 2569", True),
        ("3.14", "314", False),
        ("10:30", "1030", False),
        ("-5", "5", False),
        ("2026-03-14", "20260314", False),
        ("ค่ำ", "คำ", False),
        ("C++", "C", False),
    ],
)
def test_loose_texts(first: str, second: str, same: bool) -> None:
    assert (normalise(first) == normalise(second)) is same


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(json_values, json_values)
def test_a_value_equals_itself_and_comparing_never_fails(
    first: Any, second: Any
) -> None:
    assert compare(first, json.loads(json.dumps(first)), "exact") is None
    difference = compare(first, second, "loose")
    assert difference is None or difference.text


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5))))
def test_pairs_are_disjoint_and_as_many_as_fit(edges: list[tuple[int, int]]) -> None:
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import maximum_bipartite_matching

    pairs = pair_up(6, 6, lambda row, column: (row, column) in edges)
    assert len(set(pairs.values())) == len(pairs)
    assert set(pairs.items()) <= set(edges)
    graph = csr_matrix(
        [[(row, column) in edges for column in range(6)] for row in range(6)]
    )
    matching = maximum_bipartite_matching(graph, perm_type="column")
    assert len(pairs) == int((matching >= 0).sum())


def test_long_arguments_and_many_calls_are_read_in_linear_time() -> None:
    assert_grows_linearly(
        lambda text: score([expect("f", {"x": f"{text}!"})], [call("f", x=f"-{text}")]),
        lambda n: "Jalan 5 " * (n // 8),
    )
    many = score([SEOUL], [call("weather", city="x" * 50, days=1)] * 5_000)
    assert (many.value, many.label) == (0, "wrong value")


def test_a_call_made_to_be_slow_to_read_is_given_up() -> None:
    """Marks that combine are sorted by Unicode's forms, in quadratic time."""
    slow = "a" + "\u0301\u0327" * 200_000
    with pytest.raises(ScoringError, match="gave up on an answer of 400,0"):
        score([SEOUL], [call("weather", city=slow, days=3)])


def test_long_lists_without_an_order_are_compared_in_a_moment() -> None:
    def compared(n: int, shift: int) -> Any:
        expected = [{"n": index, "name": f"Row {index}"} for index in range(n)]
        actual = [{"n": index + shift, "name": f"row {index}"} for index in range(n)]
        return compare(expected, actual[::-1], "loose", unordered=True)

    assert compared(20_000, 0) is None
    assert compared(20_000, 1).text.startswith('lacks {"n": 0')


def test_lists_without_an_order_keep_what_is_equal_though_written_otherwise() -> None:
    expected = [0.1 + 0.2, {"a": 1}, True, "Seoul"]
    actual = ["seoul.", {"a": 1.0, "b": None}, True, 0.3]
    assert compare(expected, actual, "loose", unordered=True) is None
    assert compare([1], [True], "loose", unordered=True) is not None
