"""BFCL's files as tasks: what is offered, both scorings, and what cannot be run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalwright import ScriptedModel, evaluate, score_run
from evalwright.compat.bfcl.loading import load
from evalwright.compat.bfcl.published import bfcl_score
from evalwright.compat.bfcl.source_values import read_java, read_javascript
from evalwright.core.errors import DatasetError, TaskError, UnknownName
from evalwright.core.requests import Generate, Request
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Sample, Score
from evalwright.core.tool_calls import ToolCall
from evalwright.core.tools import ToolDefinition
from evalwright.tasks.dialects import dialect
from evalwright.tasks.loading import names_like
from support.bounds import ends

VERDICTS = Path(__file__).parent / "verdicts.jsonl"
"""Replies with the verdicts of bfcl-eval 2026.3.23: `benchmarks/bfcl_checker.py --record`."""

FUNCTION = {
    "name": "shop.order",
    "description": "Order goods.",
    "parameters": {
        "type": "dict",
        "properties": {
            "item": {"type": "string", "description": "What."},
            "price": {"type": "float", "description": "Highest price."},
            "sizes": {
                "type": "array",
                "items": {"type": "integer"},
                "description": "Sizes.",
            },
            "extra": {"type": "any", "description": "Anything."},
            "address": {
                "type": "dict",
                "description": "Where to.",
                "properties": {"city": {"type": "string"}, "zip": {"type": "tuple"}},
            },
        },
        "required": ["item"],
    },
}
POSSIBLE = [
    {
        "shop.order": {
            "item": ["red shoes", "shoes"],
            "price": [20.0, ""],
            "sizes": [[38, 39]],
            "address": [{"city": ["Seoul", "서울"], "zip": ["", "04524"]}, ""],
        }
    }
]


def answer(*calls: tuple[str, Any], text: str = "") -> Answer:
    made = tuple(
        ToolCall(name, part if isinstance(part, str) else json.dumps(part))
        for name, part in calls
    )
    return Answer(text, responses=(Response(text, "", "stop", tool_calls=made),))


def write(
    folder: Path,
    category: str,
    *,
    function: Any = FUNCTION,
    possible: Any = POSSIBLE,
    prefix: str = "BFCL_v4",
    turns: Any = None,
) -> None:
    name = f"{prefix}_{category}.json"
    turns = turns or [{"role": "user", "content": "Order red shoes in 38 and 39."}]
    row = {"id": f"{category}_0", "question": [turns], "function": [function]}
    (folder / name).write_text(json.dumps(row), encoding="utf-8")
    if possible is not None:
        answers = folder / "possible_answer"
        answers.mkdir(exist_ok=True)
        gold = {"id": row["id"], "ground_truth": possible}
        (answers / name).write_text(json.dumps(gold), encoding="utf-8")


def task_of(folder: Path, category: str, **settings: Any) -> Any:
    settings = {"task_root": [str(folder)], **settings}
    (task,) = load(category, settings, prompt_format="auto", chat=True)
    return task


def score(task: Any, made: Answer) -> Score:
    (sample,) = task.samples
    verdict = task.scorers[0].function(sample, made)
    assert isinstance(verdict, Score)
    return verdict


# -- verdicts of the released checker --------------------------------------------------


def recorded() -> list[dict[str, Any]]:
    lines = VERDICTS.read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_the_recorded_verdicts_cover_all_languages_and_many_errors() -> None:
    rows = recorded()
    assert {row["bfcl"]["language"] for row in rows} == {"java", "javascript", "python"}
    assert len({row["verdict"] for row in rows}) >= 15
    assert sum(row["verdict"] == "" for row in rows) >= 20


def test_every_verdict_of_the_released_checker_is_ours() -> None:
    for row in recorded():
        sample = Sample(row["id"], metadata={"bfcl": row["bfcl"]})
        verdict = bfcl_score(sample, answer(*map(tuple, row["calls"])))
        assert verdict.value == float(row["verdict"] == ""), row
        if row["calls"]:
            assert verdict.label == (row["verdict"] or "correct"), row


# -- loading ---------------------------------------------------------------------------


def test_tools_are_offered_as_bfcl_offers_them(tmp_path: Path) -> None:
    write(tmp_path, "simple_python")
    task = task_of(tmp_path, "simple_python")
    seen: list[Request] = []

    def reply(request: Request) -> Response:
        seen.append(request)
        order = {"item": "shoes", "sizes": [38, 39]}
        call = ToolCall("shop_order", json.dumps(order))
        return Response("", "", "tool_calls", tool_calls=(call,))

    (run,) = evaluate(task, ScriptedModel(reply), out=tmp_path / "runs")
    (metric,) = run.tasks[0].metrics
    assert metric.estimate.value == 1
    (request,) = seen
    assert isinstance(request, Generate)
    (tool,) = request.tools
    assert isinstance(tool, ToolDefinition)
    properties = tool.schema["properties"]
    assert tool.name == "shop_order"
    assert tool.description == (
        "Order goods. Note that the provided function is in Python 3 syntax."
    )
    kinds = {name: described["type"] for name, described in properties.items()}
    assert kinds == {
        "item": "string",
        "price": "number",
        "sizes": "array",
        "extra": "string",
        "address": "object",
    }
    assert properties["address"]["properties"]["zip"]["type"] == "array"
    assert properties["price"]["description"].endswith("This is a float type value.")


def test_a_recorded_run_is_scored_again_without_the_files(tmp_path: Path) -> None:
    write(tmp_path, "simple_python")
    task = task_of(tmp_path, "simple_python")
    order = {"item": "SHOES!", "sizes": [38.0, 39]}
    call = ToolCall("shop_order", json.dumps(order))
    model = ScriptedModel(lambda request: Response(tool_calls=(call,)))
    (run,) = evaluate(task, model, out=tmp_path / "runs")
    assert run.tasks[0].metrics[0].estimate.value == 1
    (tmp_path / "BFCL_v4_simple_python.json").unlink()
    again = score_run(run, dialect={"scoring": "published"}, out=tmp_path / "runs")
    assert again.tasks[0].metrics[0].estimate.value == 0


def test_messages_before_the_question_are_sent(tmp_path: Path) -> None:
    turns = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello!"},
        {"role": "user", "content": "What is love?"},
    ]
    write(tmp_path, "live_irrelevance", possible=None, turns=turns)
    task = task_of(tmp_path, "live_irrelevance")
    model = ScriptedModel("A feeling.", record=True)
    (run,) = evaluate(task, model, out=tmp_path / "runs")
    assert run.tasks[0].metrics[0].estimate.value == 1
    assert model.requests is not None
    (request,) = model.requests
    assert isinstance(request, Generate)
    assert [turn.role for turn in request.prompt] == [  # type: ignore[union-attr]
        "system",
        "user",
        "assistant",
        "user",
    ]


@pytest.mark.parametrize(
    ("category", "reason"),
    [
        ("multi_turn_base", "multi_turn_base.*Python classes"),
        ("memory_kv", "memory_kv.*Python classes"),
        ("web_search", "web_search.*search the web"),
        ("format_sensitivity", "format_sensitivity.*other prompts"),
    ],
)
def test_a_category_that_cannot_be_run_says_why(
    tmp_path: Path, category: str, reason: str
) -> None:
    with pytest.raises(TaskError, match=reason):
        task_of(tmp_path, category)


def test_missing_files_are_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="no files of BFCL"):
        task_of(tmp_path, "multiple")
    write(tmp_path, "multiple", possible=None)
    with pytest.raises(TaskError, match="has no possible answers"):
        task_of(tmp_path, "multiple")
    with pytest.raises(UnknownName, match="multiple"):
        task_of(tmp_path, "multipel")
    with pytest.raises(UnknownName, match="There are: multiple"):
        task_of(tmp_path, "non_live")
    with pytest.raises(TaskError, match="'multi_turn' of BFCL cannot be run"):
        task_of(tmp_path, "multi_turn")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"id": "a"}, "no question of BFCL"),
        ({"id": "a", "question": [[]], "function": [{"name": "f"}]}, "no question"),
        ({"id": "a", "question": [[]], "function": []}, "no possible answer of 'a'"),
    ],
)
def test_a_malformed_row_is_named(tmp_path: Path, row: Any, message: str) -> None:
    write(tmp_path, "multiple")
    path = tmp_path / "BFCL_v4_multiple.json"
    path.write_text(json.dumps(row), encoding="utf-8")
    with pytest.raises(DatasetError, match=rf"line 1.*{message}"):
        task_of(tmp_path, "multiple")


def test_files_of_version_3_are_known_by_todays_names(tmp_path: Path) -> None:
    write(tmp_path, "simple", prefix="BFCL_v3")
    write(tmp_path, "multiple", prefix="BFCL_v3")
    write(tmp_path, "multiple")
    listed = dialect("bfcl").names([tmp_path])
    assert [(task.name, Path(task.path).name) for task in listed] == [
        ("multiple", "BFCL_v4_multiple.json"),
        ("simple_python", "BFCL_v3_simple.json"),
    ]
    assert task_of(tmp_path, "simple").name == "bfcl:simple_python"


def test_averages_of_the_leaderboard() -> None:
    metric = {"kind": "accuracy", "value": 0.5, "n": 10}
    names = ("simple_python", "simple_java", "multiple", "live_simple", "live_multiple")
    tasks = [{"name": f"bfcl:{name}", "metrics": [metric]} for name in names]
    non_live, live = dialect("bfcl").groups(tasks)
    assert [
        part for part in non_live.averages[0].node.parts if isinstance(part, str)
    ] == ["bfcl:multiple"]
    assert non_live.averages[0].node.average == "macro"
    assert live.averages[0].node.average == "weighted"


# -- both scorings ---------------------------------------------------------------------

RIGHT = {"item": "shoes", "sizes": [38, 39]}


@pytest.mark.parametrize(
    ("arguments", "published", "corrected"),
    [
        (RIGHT, 1, 1),
        ({**RIGHT, "price": 20}, 1, 1),
        ({**RIGHT, "address": {"city": "서울"}}, 1, 1),
        ({**RIGHT, "address": {"city": "Seoul", "zip": "04524"}}, 1, 1),
        ({**RIGHT, "address": {"zip": "04524"}}, 0, 0),
        ({**RIGHT, "sizes": [39, 38]}, 0, 0),
        ({**RIGHT, "sizes": [38.0, 39]}, 0, 1),
        ({**RIGHT, "price": None}, 0, 1),
        ({"sizes": [38, 39]}, 0, 0),
    ],
)
def test_both_scorings(
    tmp_path: Path, arguments: Any, published: float, corrected: float
) -> None:
    write(tmp_path, "simple_python")
    reply = answer(("shop_order", arguments))
    task = task_of(tmp_path, "simple_python", scoring="published")
    assert score(task, reply).value == published
    assert score(task_of(tmp_path, "simple_python"), reply).value == corrected


def test_replies_without_a_call_where_none_or_any_is_wanted(tmp_path: Path) -> None:
    for category in ("irrelevance", "live_relevance"):
        write(tmp_path, category, possible=None)
    silent = answer(text="No function fits.")
    calling = answer(("shop_order", RIGHT))
    malformed = answer(("shop_order", "{"))
    for scoring in ("corrected", "published"):
        task = task_of(tmp_path, "irrelevance", scoring=scoring)
        assert (score(task, silent).value, score(task, calling).value) == (1, 0)
        assert score(task, malformed).value == float(scoring == "published")
        task = task_of(tmp_path, "live_relevance", scoring=scoring)
        assert (score(task, silent).value, score(task, calling).value) == (0, 1)
        assert score(task, malformed).value == 0


def test_an_empty_reply_counts_as_published_only_where_it_is_asked_for(
    tmp_path: Path,
) -> None:
    write(tmp_path, "irrelevance", possible=None)
    for scoring, expected in (("corrected", 0), ("published", 1)):
        task = task_of(tmp_path, "irrelevance", scoring=scoring)
        (run,) = evaluate(task, ScriptedModel(" "), out=tmp_path / f"runs-{scoring}")
        assert run.tasks[0].metrics[0].estimate.value == expected


# -- notations -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind", "element_kind", "value"),
    [
        ("5L", "long", "", 5),
        ("5", "long", "", "5"),
        ("3e-3F", "float", "", 3e-3),
        ("new int[]{1, 2}", "Array", "", [1, 2]),
        ('new ArrayList<>(Arrays.asList("a", "b"))', "ArrayList", "String", ["a", "b"]),
        (
            'new HashMap<>() {{ put("k", 1); put("l", "x"); }}',
            "HashMap",
            "",
            {"k": 1, "l": "x"},
        ),
        ("new HashMap<>()", "HashMap", "", {}),
        ("x", "HashMap", "", "x"),
    ],
)
def test_java(text: str, kind: str, element_kind: str, value: Any) -> None:
    assert read_java(text, kind, element_kind) == value


@pytest.mark.parametrize(
    ("text", "kind", "element_kind", "value"),
    [
        ('"x"', "String", "", "x"),
        ("7n", "Bigint", "", 7),
        ("[1, 'two', true]", "array", "", [1, "two", True]),
        ("[[1, 2], [3]]", "array", "", [[1, 2], [3]]),
        ("{'key': 123, b: [1, 2]}", "dict", "", {"key": 123, "b": [1, 2]}),
    ],
)
def test_javascript(text: str, kind: str, element_kind: str, value: Any) -> None:
    assert read_javascript(text, kind, element_kind) == value


@pytest.mark.parametrize(
    "text",
    [
        "new HashMap<>() {" + " " * 50_000,
        "new HashMap<" * 20_000,
        "new HashMap<>() {" + " {" * 1_900,
        "[" * 100_000,
        "{" + "a" * 3_900,
        "{" + "a:," * 1_300,
        "[[" + "],[" * 1_300,
        "new ArrayList<>() {{ add(" + "add(" * 900,
    ],
)
def test_notations_made_to_be_slow_are_read_in_time(text: str) -> None:
    with ends(20):
        for kind in ("HashMap", "ArrayList", "Array"):
            read_java(text, kind)
        for kind in ("dict", "array"):
            read_javascript(text, kind)


def test_a_pattern_without_files_says_where_they_are(tmp_path: Path) -> None:
    roots = {"task_root": [str(tmp_path)]}
    with pytest.raises(UnknownName, match="pip install --no-deps bfcl-eval") as caught:
        names_like("bfcl:*", roots)
    assert "Did you mean" not in str(caught.value)
    write(tmp_path, "multiple")
    with pytest.raises(UnknownName, match="tasks list --dialect bfcl"):
        names_like("bfcl:live*", roots)
    assert names_like("bfcl:mul*", roots) == ["bfcl:multiple"]
