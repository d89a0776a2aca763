"""Assertions: what each type means, how they combine, and that hostile ones end in a sentence."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from evalwright import ScriptedModel, evaluate
from evalwright.core.errors import ConfigurationError, ScoringError, UsageError
from evalwright.core.requests import Embed, Generate, Request
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, NoScore, Sample, Score
from evalwright.scorers.registry import bind
from evalwright.tasks.loading import task_from_definition
from support.written_judge import Asked as Question
from support.written_judge import judge as written_judge


def score_of(
    text: str,
    *demands: Mapping[str, Any],
    metadata: Mapping[str, Any] | None = None,
    responses: tuple[Response, ...] = (),
    **options: Any,
) -> Score:
    """The score of an answer by the assertions of its row."""
    scorer = bind("assertions", options)
    sample = Sample("s", metadata={"assert": list(demands), **(metadata or {})})
    score = scorer.function(sample, Answer(text, responses=responses))
    assert isinstance(score, Score)
    return score


def passes(text: str, kind: str, value: Any = None, **further: Any) -> bool:
    """Whether an answer meets one assertion; its negation says the opposite."""
    entry = {"type": kind, "value": value, **further}
    met = score_of(text, entry).value
    assert score_of(text, {**entry, "type": f"not-{kind}"}).value == 1 - met
    return met == 1.0


@pytest.mark.parametrize(
    ("kind", "value", "right", "wrong"),
    [
        ("equals", "Paris", "Paris", "Paris "),
        ("equals", 4, "4", "4.0"),
        ("equals", True, "true", "True"),
        (
            "equals",
            {"a": 1, "b": [True]},
            '{"b": [true], "a": 1.0}',
            '{"a": 1, "b": [1]}',
        ),
        ("contains", "Paris", "It is Paris.", "It is paris."),
        ("contains", 0, "10", "1"),
        ("icontains", "Paris", "it is paris", "it is Rome"),
        ("contains-any", ["a", "b"], "xbx", "xBx"),
        ("contains-any", "a, b", "xbx", "x, y"),
        ("contains-all", ["a", "b"], "ab", "a"),
        ("icontains-any", ["A", "B"], "xb", "x"),
        ("icontains-all", ["A", "B"], "ab", "a"),
        ("starts-with", "The", "The end", " The end"),
        ("regex", r"\d{4}", "in 1998", "in 98"),
        ("is-json", None, ' {"a": 1}\n', 'Here: {"a": 1}'),
        ("is-json", None, "[1]", "NaN"),
        ("contains-json", None, 'Here: {"a": 1}.', "Here: [1]"),
        ("contains-json", None, '{"broken" {"a": 1}', "{a: 1}"),
    ],
)
def test_a_type_means_what_it_says(
    kind: str, value: Any, right: str, wrong: str
) -> None:
    assert passes(right, kind, value)
    assert not passes(wrong, kind, value)


SCHEMA = {
    "type": "object",
    "required": ["latitude", "kind"],
    "properties": {
        "latitude": {"type": "number", "minimum": -90, "maximum": 90},
        "kind": {"enum": ["town", "river"]},
        "names": {"type": "array", "items": {"$ref": "#/$defs/name"}, "minItems": 1},
    },
    "additionalProperties": False,
    "$defs": {"name": {"type": "string", "pattern": "^[A-Z]"}},
}


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        ({"latitude": 1.5, "kind": "town", "names": ["Ulm"]}, ""),
        ({"kind": "town"}, "$.latitude is missing"),
        ({"latitude": True, "kind": "town"}, "$.latitude is not of type number"),
        ({"latitude": 91, "kind": "town"}, "$.latitude does not meet 'maximum: 90'"),
        ({"latitude": 1, "kind": "hill"}, '$.kind is none of ["town", "river"]'),
        ({"latitude": 1, "kind": "town", "x": 1}, "$.x is not allowed"),
        (
            {"latitude": 1, "kind": "town", "names": ["ulm"]},
            "$.names[0] does not match '^[A-Z]'",
        ),
        (
            {"latitude": 1, "kind": "town", "names": []},
            "$.names does not meet 'minItems: 1'",
        ),
        ([], "$ is not of type object"),
    ],
)
def test_a_schema_is_checked_and_the_first_fault_named(
    document: Any, fault: str
) -> None:
    score = score_of(json.dumps(document), {"type": "is-json", "value": SCHEMA})
    assert score.value == float(not fault)
    assert fault in score.explanation


@pytest.mark.parametrize(
    ("schema", "right", "wrong"),
    [
        ({"anyOf": [{"type": "string"}, {"const": 1}]}, 1, 2),
        ({"oneOf": [{"type": "integer"}, {"minimum": 3}]}, 2, 4),
        ({"not": {"type": "null"}}, 0, None),
        ({"allOf": [{"minLength": 2}, {"maxLength": 3}]}, "abc", "abcd"),
        ({"prefixItems": [{"type": "string"}], "items": False}, ["a"], ["a", 1]),
        ({"items": [{"type": "string"}], "additionalItems": False}, ["a"], ["a", 1]),
        ({"contains": {"const": 1}, "uniqueItems": True}, [1, True], [1, 1.0]),
        ({"if": {"type": "string"}, "then": {"minLength": 1}, "else": False}, "a", 1),
        ({"patternProperties": {"^n": {"type": "number"}}}, {"n": 1}, {"n": "1"}),
        ({"propertyNames": {"maxLength": 1}}, {"a": 1}, {"ab": 1}),
        ({"multipleOf": 0.5, "exclusiveMinimum": 0}, 1.5, 0),
        ({"format": "date"}, "2026-05-01", "1 May 2026"),
        ({"format": "email"}, "a@b.example", "a at b"),
        (False, None, None),
    ],
)
def test_keywords_of_schemas(schema: Any, right: Any, wrong: Any) -> None:
    if schema is not False:
        assert passes(json.dumps(right), "is-json", schema)
    assert not passes(json.dumps(wrong), "is-json", schema)


def test_an_object_in_a_text_may_be_the_one_that_the_schema_wants() -> None:
    schema = {"required": ["b"]}
    assert passes('{"a": 1} and {"b": 2}', "contains-json", schema)
    assert not passes('{"a": 1}', "contains-json", schema)
    assert not passes("nothing", "contains-json", schema)


def test_all_must_pass_and_the_first_failure_is_named() -> None:
    contains = {"type": "contains", "value": "Paris"}
    score = score_of(
        "Rome", {"type": "contains", "value": "Rome"}, contains, {"type": "is-json"}
    )
    assert (score.value, score.label) == (0.0, "failed")
    assert score.explanation == "2 of 3 assertions failed, the first: contains 'Paris'"
    assert score.parts == {
        "share": pytest.approx(1 / 3),
        "contains": 0.5,
        "is-json": 0.0,
    }
    assert score_of("Paris", contains).explanation == "all of 1 assertion passed"


def test_a_threshold_over_weights_decides_instead() -> None:
    demands = (
        {"type": "equals", "value": "Hello world", "weight": 2},
        {"type": "contains", "value": "world"},
    )
    assert score_of("Goodbye world", *demands).value == 0
    assert score_of("Goodbye world", *demands, threshold=0.5).value == 0
    met = score_of("Goodbye world", *demands, metadata={"assert_threshold": 1 / 3})
    assert met.value == 1
    assert "1 of 2 assertions failed" in met.explanation
    assert score_of("", *demands, metadata={"assert_threshold": 0}).value == 1


def test_without_weight_an_assertion_is_measured_and_cannot_fail() -> None:
    score = score_of(
        "a", {"type": "is-json", "weight": 0}, {"type": "contains", "value": "a"}
    )
    assert score.value == 1
    assert score.parts["share"] == 1


def test_a_set_counts_as_one() -> None:
    cheap = {"type": "contains", "value": "cheap"}
    fast = {"type": "contains", "value": "fast"}
    either = {"type": "assert-set", "threshold": 0.5, "assert": [cheap, fast]}
    assert score_of("fast", either).value == 1
    assert score_of("slow", either).value == 0
    assert score_of("fast", {**either, "threshold": None}).value == 0
    both = score_of(
        "fast", either, {"type": "contains", "value": "sure"}, threshold=0.3
    )
    assert both.parts["share"] == pytest.approx(
        0.25
    )  # half of the set, none of the other


def test_the_options_assertions_come_first_and_none_is_no_score() -> None:
    task_wide = [{"type": "is-json"}]
    score = score_of("x", {"type": "contains", "value": "y"}, assertions=task_wide)
    assert "the first: is-json" in score.explanation
    scorer = bind("assertions")
    assert isinstance(scorer.function(Sample("s"), Answer("x")), NoScore)


def test_cost_and_latency_are_those_of_all_responses() -> None:
    responses = (
        Response("a", latency=0.4, cost=0.001),
        Response("b", latency=0.7, cost=0.002),
    )
    for threshold, met in ((1200, 1), (1000, 0)):
        entry = {"type": "latency", "threshold": threshold}
        assert score_of("b", entry, responses=responses).value == met
    for dollars, met in ((0.003, 1), (0.002, 0)):
        entry = {"type": "cost", "threshold": dollars}
        assert score_of("b", entry, responses=responses).value == met
    with pytest.raises(ScoringError, match="whose price is known"):
        score_of("b", {"type": "cost", "threshold": 1}, responses=(Response("b"),))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("contains: Paris", "is a mapping with `type`"),
        ({"type": "contians", "value": "a"}, "Did you mean .*contains"),
        ({"type": "javascript", "value": "true"}, "javascript"),
        ({"type": "contains", "vlaue": "a"}, "Did you mean .*value"),
        ({"type": "contains", "value": ""}, "is empty"),
        ({"type": "contains", "value": ["a"]}, "is a text"),
        ({"type": "contains-all", "value": []}, "is a list of texts"),
        ({"type": "regex", "value": "("}, "cannot be used as a regular expression"),
        ({"type": "is-json", "value": 3}, "is a JSON schema"),
        ({"type": "is-json", "value": {"tpye": "object"}}, "Did you mean .*type"),
        ({"type": "is-json", "value": {"pattern": "("}}, "not a regular expression"),
        ({"type": "cost"}, "needs a `threshold`"),
        ({"type": "equals", "value": "a", "weight": -1}, "`weight` is a number"),
        ({"type": "equals", "value": "a", "threshold": "1"}, "`threshold` is a number"),
        ({"type": "assert-set", "assert": []}, "one or more assertions"),
        ({"type": "llm-rubric", "value": "Is polite."}, "needs a judge"),
        ({"type": "similar", "value": "Hello"}, "needs an embedder"),
    ],
)
def test_a_malformed_assertion_is_refused_in_a_sentence(
    entry: Any, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        bind("assertions", {"assertions": [entry]})
    with pytest.raises(ScoringError, match=message):
        score_of("x", entry)


@pytest.mark.parametrize(
    "entry",
    [
        {"type": "regex", "value": "^(a+)+$"},
        {"type": "is-json", "value": {"pattern": "^(a+)+$"}},
        {
            "type": "is-json",
            "value": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]},
        },
    ],
)
def test_what_takes_for_ever_ends_in_a_sentence(entry: Mapping[str, Any]) -> None:
    text = "a" * 40 + "!"
    started = time.monotonic()
    with pytest.raises(ScoringError, match="gave up"):
        score_of(text if entry["type"] == "regex" else json.dumps(text), entry)
    assert time.monotonic() - started < 20


def test_deeply_nested_and_unclosed_json_is_answered_in_time() -> None:
    assert not passes("[" * 100_000, "is-json")
    assert not passes('{"a":' * 1_000, "contains-json")


def decide(question: Question) -> dict[str, Any]:
    """Only pirates speak like pirates."""
    label = "met" if "Ahoy" in question.material["answer"] else "not met"
    return {key: {"reason": "as it reads", "class": label} for key in question.criteria}


def judge(request: Request) -> str:
    assert isinstance(request, Generate)
    prompt = request.prompt
    texts = [prompt] if isinstance(prompt, str) else [str(part.text) for part in prompt]
    return written_judge(decide)("\n\n".join(texts))


def test_a_run_with_a_judge_and_an_embedder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [
        {
            "id": "pirate",
            "input": "Greet.",
            "assert": [
                {"type": "llm-rubric", "value": "Speaks like a pirate."},
                {"type": "similar", "value": "Ahoy there", "threshold": 0.9},
                {"type": "not-similar", "value": "Good day"},
            ],
        },
        {
            "id": "plain",
            "input": "Greet.",
            "assert": [{"type": "contains", "value": "?"}],
        },
    ]
    task = task_from_definition(
        {
            "task": "greetings",
            "dataset": {"rows": rows},
            "sample": {"metadata": {"assert": "{{ assert }}", "criteria": "Is rude."}},
            "scorers": [{"assertions": {"judges": ["judge"], "role": "embedder"}}],
        }
    )
    vectors = {"Ahoy there": (1.0, 0.0), "Good day": (0.0, 1.0)}

    def embed(request: Request) -> tuple[float, ...]:
        assert isinstance(request, Embed)
        return vectors[request.text]

    (run,) = evaluate(
        task,
        ScriptedModel("Ahoy there"),
        roles={"judge": ScriptedModel(judge), "embedder": ScriptedModel(embed)},
        name="pirates",
    )
    scores = {record.sample.id: record.scores["assertions"] for record in run.samples()}
    assert scores["pirate"].label == "passed", scores["pirate"]
    assert scores["plain"].label == "failed"
    assert scores["pirate"].parts["llm-rubric"] == 1


def test_the_verdict_of_a_judge_counts() -> None:
    async def ask(role: str, request: Request) -> Response:
        assert role == "judge"
        return Response(judge(request))

    scorer = bind("assertions", {"judges": ["judge"]})
    sample = Sample(
        "s",
        "Greet.",
        metadata={"assert": [{"type": "llm-rubric", "value": "Speaks like a pirate."}]},
    )
    scoring: Any = scorer.function(sample, Answer("Hello."), ask)
    score = asyncio.run(scoring)
    assert isinstance(score, Score)
    assert score.value == 0
    assert "llm-rubric 'Speaks like a pirate.' (rubric: not met" in score.explanation


@pytest.mark.parametrize(
    "options", [{"threshold": 2}, {"judges": [1]}, {"role": 3}, {"assertions": "x"}]
)
def test_options_are_checked(options: Mapping[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        bind("assertions", options)
