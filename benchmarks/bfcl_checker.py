"""Compares the scorings of `bfcl:` tasks with the released `bfcl-eval` package's own checker.

From the package's own questions and possible answers it makes replies: right ones in each form that
is listed, and wrong ones (values, types, missing and additional arguments and calls, orders, other
spelling). Each reply is judged by the package's `ast_checker` and by both scorings.

    python -m benchmarks bfcl_checker [--record FILE]

The package's table of models, which imports the clients of 40 providers, is replaced by one row;
nothing else of it is changed.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from types import ModuleType, SimpleNamespace
from typing import Any

from evalwright.compat.bfcl.loading import load
from evalwright.compat.bfcl.published import NOT_DECODED
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Sample, Score
from evalwright.core.tool_calls import ToolCall
from evalwright.scorers.registry import bind
from measuring import Table, option_parser
from peers import BFCL

COLUMNS = ("replies", "right", "raises", "published", "label", "corrected")
CATEGORIES = (
    "simple_python",
    "multiple",
    "parallel",
    "parallel_multiple",
    "live_simple",
    "live_multiple",
    "live_parallel",
    "live_parallel_multiple",
    "simple_java",
    "simple_javascript",
)
MODEL = "any-model"
RAISES = "raises"
RECORDED_PER_VERDICT = 3
"""Replies of a category with the same verdict that --record writes."""
RECORDED_SHARE = 0.02
MAX_RECORDED_CHARS = 400
Calls = list[tuple[str, dict[str, Any]]]
Checker = Callable[[Sample, Sequence[Mapping[str, Any]], Calls], str]


def load_checker(package: Path) -> Checker:
    """Return the package's checker as a function from a sample and calls to its error type.

    The error type is "" where the calls are right, and RAISES where the checker raises.
    """
    sys.path.append(str(package))
    table = ModuleType("bfcl_eval.constants.model_config")
    row = SimpleNamespace(underscore_to_dot=True)
    vars(table)["MODEL_CONFIG_MAPPING"] = {MODEL: row}
    sys.modules["bfcl_eval.constants.model_config"] = table
    from bfcl_eval.constants.enums import Language  # type: ignore[import-not-found]
    from bfcl_eval.eval_checker.ast_eval.ast_checker import (  # type: ignore[import-not-found]
        ast_checker,
    )

    def check(
        sample: Sample, functions: Sequence[Mapping[str, Any]], calls: Calls
    ) -> str:
        checked = sample.metadata["bfcl"]
        try:
            verdict = ast_checker(
                deepcopy(functions),
                [{name: deepcopy(arguments)} for name, arguments in calls],
                deepcopy(checked["possible"]),
                Language(checked["language"]),
                checked["category"],
                MODEL,
            )
        except Exception:
            return RAISES
        return "" if verdict["valid"] else str(verdict["error_type"])

    return check


# -- replies ---------------------------------------------------------------------------


def gold_value(value: Any) -> Any:
    """Return a value with the first alternative of each of its keys."""
    if isinstance(value, dict):
        return {
            key: gold_value(values[0])
            if isinstance(values, list) and values
            else values
            for key, values in value.items()
            if not isinstance(values, list) or values[:1] != [""]
        }
    if isinstance(value, list):
        return [gold_value(part) for part in value]
    return value


def as_source(value: Any, kind: str, language: str) -> str:
    """Write a value in Java's or JavaScript's notation."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        suffixes = {"long": "L", "float": "f", "Bigint": "n"}
        suffix = (
            suffixes.get(kind, "") if language == "java" or kind == "Bigint" else ""
        )
        return f"{value}{suffix}"
    if isinstance(value, str):
        return f'"{value}"' if kind == "quoted" else value
    if value is None:
        return "null"
    inner = "quoted"
    if isinstance(value, list):
        parts = ", ".join(as_source(part, inner, language) for part in value)
        if language == "javascript":
            return f"[{parts}]"
        if kind == "ArrayList":
            return f"new ArrayList<>(Arrays.asList({parts}))"
        return f"new Object[]{{{parts}}}"
    pairs = [(key, as_source(part, inner, language)) for key, part in value.items()]
    if language == "javascript":
        return "{" + ", ".join(f"{key}: {part}" for key, part in pairs) + "}"
    puts = " ".join(f'put("{key}", {part});' for key, part in pairs)
    return f"new HashMap<>() {{{{ {puts} }}}}"


def changed_values(value: Any) -> Iterator[Any]:
    """Yield other forms of a value, right and wrong ones."""
    yield None
    yield [value]
    if isinstance(value, bool):
        yield from (not value, int(value), str(value), str(value).lower())
    elif isinstance(value, int | float):
        yield from changed_numbers(value)
    elif isinstance(value, str):
        yield from changed_texts(value)
    elif isinstance(value, list):
        yield from changed_lists(value)
    elif isinstance(value, dict):
        yield from changed_objects(value)


def changed_numbers(value: float) -> Iterator[Any]:
    """Yield other forms of a number."""
    yield from (value + 1, -value, float(value), str(value), f"{value} ", bool(value))
    if float(value).is_integer():
        yield int(value)
    yield value * (1 + 1e-12)


def changed_texts(value: str) -> Iterator[Any]:
    """Yield other forms of a text."""
    yield from (value.upper(), value.lower(), value.title(), f" {value} ", f"{value}.")
    for old, new in ((" ", "_"), (",", ""), ("-", "/"), (" ", ""), ("'", '"')):
        yield value.replace(old, new)
    yield from (f'"{value}"', f"'{value}'", f"{value} x", value[:-1], "", value[::-1])
    yield from (f"{value}\n", f"{value}!", 5)
    yield from ("é" + value, value.replace("a", "á"), value + "\u200b")


def changed_lists(value: list[Any]) -> Iterator[Any]:
    """Yield other forms of a list."""
    yield from (value[::-1], value[:-1], [*value, *value[:1]], [], [[*value]])
    yield from (str(value), json.dumps(value), {"0": value})
    for index, part in enumerate(value[:3]):
        for changed in changed_values(part):
            yield [*value[:index], changed, *value[index + 1 :]]


def changed_objects(value: dict[str, Any]) -> Iterator[Any]:
    """Yield other forms of an object."""
    yield from ({}, {**value, "additional": 1}, json.dumps(value), [value], list(value))
    for key in list(value)[:4]:
        yield {name: part for name, part in value.items() if name != key}
        for changed in changed_values(value[key]):
            yield {**value, key: changed}


SOURCES = (
    *("true", "false", "null", "", "5", "5.0", "-1", "1e3", "[]", "{}", "[1, 2]"),
    *("new ArrayList<>()", "new HashMap<>()", "new int[]{}", "new int[]{1, 2}"),
    *("[[1, 2], [3, 'x']]", "{a: 1, 'b': [1, 2]}", "new Array(1, 2)"),
    'new ArrayList<String>() {{ add("a"); add("b"); }}',
    "new HashMap<>() {}",
)
"""Values in Java's or JavaScript's notation, most of them wrong."""


def source_forms(value: Any, kind: str, language: str) -> Iterator[Any]:
    """Yield notations of a value, right and wrong ones."""
    source = as_source(value, kind, language)
    yield from (
        value,
        source,
        f'"{source}"',
        f"'{source}'",
        f" {source} ",
        f"{source};",
    )
    yield from (f"{source}L", f"{source}f", f"{source}n", f"{source}\n", source.upper())
    yield from SOURCES
    for changed in changed_values(value):
        if changed is not None:
            yield as_source(changed, kind, language)


@dataclass(frozen=True)
class Question:
    """A question's functions and the calls that are right.

    Attributes:
        language: of its values.
        parameters: by function, the description of each parameter.
        gold: the first possible calls.
        possible: of each call the possible values, by parameter.
    """

    language: str
    parameters: Mapping[str, Mapping[str, Any]]
    gold: Calls
    possible: Sequence[Mapping[str, Sequence[Any]]]

    def kind(self, name: str, parameter: str) -> str:
        """Return the type of a parameter."""
        described = self.parameters.get(name, {}).get(parameter, {})
        return str(described.get("type", "any"))

    def with_call(self, index: int, arguments: dict[str, Any]) -> Calls:
        """Return the right calls, one of them with other arguments."""
        name, _ = self.gold[index]
        return [*self.gold[:index], (name, arguments), *self.gold[index + 1 :]]


def read_question(sample: Sample) -> Question:
    """Read a question from its sample."""
    checked = sample.metadata["bfcl"]
    parameters = {
        function["name"].replace(".", "_"): function["parameters"]["properties"]
        for function in checked["functions"]
    }
    question = Question(checked["language"], parameters, [], [])
    gold: Calls = []
    possible = []
    for answer in checked["possible"]:
        ((dotted, values_by_parameter),) = answer.items()
        name = dotted.replace(".", "_")
        arguments = {
            parameter: write_value(question, name, parameter, values[0])
            for parameter, values in values_by_parameter.items()
            if values[:1] not in ([""], [])
        }
        gold.append((name, arguments))
        possible.append(values_by_parameter)
    return replace(question, gold=gold, possible=possible)


def write_value(question: Question, name: str, parameter: str, value: Any) -> Any:
    """Write a possible value as a model of the question's language would."""
    if question.language == "python":
        return gold_value(value)
    kind = question.kind(name, parameter)
    return as_source(gold_value(value), kind, question.language)


def replies(sample: Sample) -> Iterator[Calls]:
    """Yield replies to a question: each is a list of calls."""
    question = read_question(sample)
    yield from changed_calls(question)
    for index in range(len(question.gold)):
        yield from changed_arguments(question, index)


def changed_calls(question: Question) -> Iterator[Calls]:
    """Yield right calls, and other numbers, orders and names of calls."""
    gold = question.gold
    yield gold
    yield []
    yield gold[::-1]
    yield [*gold, gold[0]]
    yield gold[1:]
    yield [*gold[1:], (gold[0][0], {})]
    yield [(f"{name}_x", arguments) for name, arguments in gold]
    yield [(name.replace("_", "."), arguments) for name, arguments in gold]
    others = [name for name in question.parameters if name != gold[0][0]]
    yield [(name, gold[0][1]) for name in others[:1]] + gold[1:]
    if len(gold) > 1:
        yield [*gold[2:], *gold[:2]]
        yield [gold[0]] * len(gold)


def changed_arguments(question: Question, index: int) -> Iterator[Calls]:
    """Yield the right calls with other arguments of one of them."""
    name, arguments = question.gold[index]
    possible = question.possible[index]
    yield question.with_call(index, {**arguments, "additional_argument": 1})
    undescribed = [
        key for key in question.parameters.get(name, {}) if key not in possible
    ]
    for key in undescribed[:1]:
        yield question.with_call(index, {**arguments, key: "x"})
    for parameter, values in possible.items():
        without = {key: part for key, part in arguments.items() if key != parameter}
        yield question.with_call(index, without)
        for value in values:
            right_value = write_value(question, name, parameter, value)
            yield question.with_call(index, {**without, parameter: right_value})
        kind = question.kind(name, parameter)
        for value in [gold_value(value) for value in values if value != ""][:2]:
            forms = (
                changed_values(value)
                if question.language == "python"
                else source_forms(value, kind, question.language)
            )
            for form in forms:
                yield question.with_call(index, {**without, parameter: form})


# -- verdicts --------------------------------------------------------------------------


def answer_of(calls: Calls) -> Answer:
    """Return an answer that makes these calls."""
    tool_calls = tuple(
        ToolCall(name, json.dumps(arguments, ensure_ascii=False))
        for name, arguments in calls
    )
    finish = "tool_calls" if tool_calls else "stop"
    return Answer(responses=(Response("", "", finish, tool_calls=tool_calls),))


def different_replies(sample: Sample) -> list[str]:
    """Return the different replies to a question, as JSON."""
    texts = (json.dumps(calls, ensure_ascii=False) for calls in replies(sample))
    return list(dict.fromkeys(texts))


def count_verdicts(
    theirs: str, published: Score, corrected: Score | None
) -> Iterator[str]:
    """Yield the columns in which a reply counts, and how the corrected verdict differs."""
    is_right = theirs == ""
    yield "replies"
    if is_right:
        yield "right"
    if theirs == RAISES:
        yield "raises"
    if published.value == float(is_right):
        yield "published"
    # The checker sees decoded calls.
    has_no_label = theirs == RAISES or published.label == NOT_DECODED
    if has_no_label or published.label == (theirs or "correct"):
        yield "label"
    if corrected is None:
        return
    if corrected.value == float(is_right):
        yield "corrected"
    else:
        yield f"differs: {theirs or 'right'} / {corrected.label}"


class Recording:
    """A sample of the replies with the package's verdicts, for the tests."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self._counts: Counter[tuple[str, str]] = Counter()

    def add(self, sample: Sample, reply: str, verdict: str, random: Random) -> None:
        """Take a reply now and then, if there are few with its verdict in its category."""
        checked = sample.metadata["bfcl"]
        group = (checked["category"], verdict)
        if len(reply) >= MAX_RECORDED_CHARS or random.random() >= RECORDED_SHARE:
            return
        if self._counts[group] >= RECORDED_PER_VERDICT:
            return
        self._counts[group] += 1
        names = {next(iter(answer)) for answer in checked["possible"]}
        functions = [
            function for function in checked["functions"] if function["name"] in names
        ]
        row = {"id": sample.id, "bfcl": {**checked, "functions": functions}}
        self.rows.append({**row, "calls": json.loads(reply), "verdict": verdict})


def check_category(
    category: str, data: Path, check: Checker, recording: Recording
) -> Counter[str]:
    """Judge all replies to a category's questions."""
    settings = {"task_root": [str(data)], "scoring": "published"}
    (task,) = load(category, settings, prompt_format="auto", chat=True)
    published: Any = task.scorers[0]
    corrected: Any = bind("tool-calls", {"expected": "calls"})
    rows = map(json.loads, (data / f"BFCL_v4_{category}.json").open())
    functions_by_id = {row["id"]: row["function"] for row in rows}
    random = Random(category)
    counts: Counter[str] = Counter()
    for sample in task.samples:
        is_python = sample.metadata["bfcl"]["language"] == "python"
        for reply in different_replies(sample):
            theirs = check(sample, functions_by_id[sample.id], json.loads(reply))
            answer = answer_of(json.loads(reply))
            ours = published.function(sample, answer)
            verdict = corrected.function(sample, answer) if is_python else None
            counts.update(count_verdicts(theirs, ours, verdict))
            recording.add(sample, reply, theirs, random)
    return counts


def main(words: Sequence[str] | None = None) -> int:
    """Print a row for each category; with --record, write a sample of the replies."""
    parser = option_parser(__doc__)
    parser.add_argument("--record", type=Path)
    options = parser.parse_args(words)
    BFCL.ensure()
    check = load_checker(BFCL.packages)
    data = BFCL.packages / "bfcl_eval" / "data"
    recording = Recording()
    table = Table(["category", *COLUMNS])
    totals: Counter[str] = Counter()
    for category in CATEGORIES:
        counts = check_category(category, data, check, recording)
        totals += counts
        table.add(category, *(f"{counts[column]:,}" for column in COLUMNS))
    table.add("all", *(f"{totals[column]:,}" for column in COLUMNS))
    for name, n in sorted(totals.items()):
        if name.startswith("differs"):
            print(f"  {n:6,} {name}")
    if options.record:
        lines = [json.dumps(row, ensure_ascii=False) for row in recording.rows]
        options.record.write_text("\n".join([*lines, ""]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
