"""Compares the scorings of `bfcl:` tasks with the released `bfcl-eval` package's own checker.

From the package's own questions and possible answers it makes replies: right ones in each form that
is listed, and wrong ones (values, types, missing and additional arguments and calls, orders, other
spelling). Each reply is judged by the package's `ast_checker` and by both scorings.

    python -m benchmarks bfcl_checker [--package FOLDER] [--record FILE] [--show 0]

The package's table of models, which imports the clients of 40 providers, is replaced by one row;
nothing else of it is changed.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from random import Random
from types import ModuleType, SimpleNamespace
from typing import Any

from evalwright.compat.bfcl.loading import load
from evalwright.compat.bfcl.published import NOT_DECODED
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Sample
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


def changed_values(value: Any, random: Random) -> Iterator[Any]:
    """Yield other forms of a value, right and wrong ones."""
    yield None
    yield [value]
    if isinstance(value, bool):
        yield from (not value, int(value), str(value), str(value).lower())
    elif isinstance(value, int | float):
        yield from (
            value + 1,
            -value,
            float(value),
            str(value),
            f"{value} ",
            bool(value),
        )
        if float(value).is_integer():
            yield int(value)
        yield value * (1 + 1e-12)
    elif isinstance(value, str):
        yield from (
            value.upper(),
            value.lower(),
            value.title(),
            f" {value} ",
            f"{value}.",
        )
        yield from (
            value.replace(" ", "_"),
            value.replace(",", ""),
            value.replace("-", "/"),
        )
        yield from (
            value.replace(" ", ""),
            value.replace("'", '"'),
            f'"{value}"',
            f"'{value}'",
        )
        yield from (
            f"{value} x",
            value[:-1],
            "",
            value[::-1],
            f"{value}\n",
            f"{value}!",
            5,
        )
        yield from ("é" + value, value.replace("a", "á"), value + "\u200b")
    elif isinstance(value, list):
        yield from (
            value[::-1],
            value[:-1],
            [*value, *value[:1]],
            [],
            [[*value]],
            str(value),
        )
        yield json.dumps(value)
        yield {"0": value}
        for index, part in enumerate(value[:3]):
            for changed in changed_values(part, random):
                yield [*value[:index], changed, *value[index + 1 :]]
    elif isinstance(value, dict):
        yield from (
            {},
            {**value, "additional": 1},
            json.dumps(value),
            [value],
            list(value),
        )
        for key in list(value)[:4]:
            yield {name: part for name, part in value.items() if name != key}
            for changed in changed_values(value[key], random):
                yield {**value, key: changed}


def source_forms(value: Any, kind: str, language: str, random: Random) -> Iterator[Any]:
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
    yield from (
        "true",
        "false",
        "null",
        "",
        "5",
        "5.0",
        "-1",
        "1e3",
        "[]",
        "{}",
        "[1, 2]",
    )
    yield from (
        "new ArrayList<>()",
        "new HashMap<>()",
        "new int[]{}",
        "new int[]{1, 2}",
    )
    yield from ("[[1, 2], [3, 'x']]", "{a: 1, 'b': [1, 2]}", "new Array(1, 2)")
    yield from (
        'new ArrayList<String>() {{ add("a"); add("b"); }}',
        "new HashMap<>() {}",
    )
    for changed in changed_values(value, random):
        if changed is not None:
            yield as_source(changed, kind, language)


def replies(sample: Sample, random: Random) -> Iterator[Calls]:
    """Yield replies to a question: each is a list of calls."""
    checked = sample.metadata["bfcl"]
    language = checked["language"]
    kinds = {
        function["name"].replace(".", "_"): function["parameters"]["properties"]
        for function in checked["functions"]
    }

    def written(name: str, parameter: str, value: Any) -> Any:
        described = kinds.get(name, {}).get(parameter, {})
        if language == "python":
            return value
        return as_source(value, str(described.get("type", "any")), language)

    gold: Calls = []
    possible_by_call: list[Mapping[str, Sequence[Any]]] = []
    for answer in checked["possible"]:
        ((dotted, parameters),) = answer.items()
        name = dotted.replace(".", "_")
        arguments = {
            parameter: written(name, parameter, gold_value(values[0]))
            for parameter, values in parameters.items()
            if values[:1] not in ([""], [])
        }
        gold.append((name, arguments))
        possible_by_call.append(parameters)
    yield gold
    yield []
    yield gold[::-1]
    yield [*gold, gold[0]]
    yield gold[1:]
    yield [*gold[1:], (gold[0][0], {})]
    yield [(f"{name}_x", arguments) for name, arguments in gold]
    yield [(name.replace("_", "."), arguments) for name, arguments in gold]
    others = [name for name in kinds if name != gold[0][0]]
    yield [(name, gold[0][1]) for name in others[:1]] + gold[1:]
    if len(gold) > 1:
        yield [*gold[2:], *gold[:2]]
        yield [gold[0]] * len(gold)

    for index, ((name, arguments), parameters) in enumerate(
        zip(gold, possible_by_call, strict=True)
    ):

        def with_call(
            changed: dict[str, Any], index: int = index, name: str = name
        ) -> Calls:
            return [*gold[:index], (name, changed), *gold[index + 1 :]]

        yield with_call({**arguments, "additional_argument": 1})
        undescribed = [key for key in kinds.get(name, {}) if key not in parameters]
        for key in undescribed[:1]:
            yield with_call({**arguments, key: "x"})
        for parameter, values in parameters.items():
            without = {key: part for key, part in arguments.items() if key != parameter}
            yield with_call(without)
            for value in values:
                yield with_call(
                    {**without, parameter: written(name, parameter, gold_value(value))}
                )
            named = [gold_value(value) for value in values if value != ""]
            for value in named[:2]:
                kind = str(kinds.get(name, {}).get(parameter, {}).get("type", "any"))
                forms = (
                    changed_values(value, random)
                    if language == "python"
                    else source_forms(value, kind, language, random)
                )
                for form in forms:
                    yield with_call({**without, parameter: form})


# -- verdicts --------------------------------------------------------------------------


def answer_of(calls: Calls) -> Answer:
    """Return an answer that makes these calls."""
    made = tuple(
        ToolCall(name, json.dumps(arguments, ensure_ascii=False))
        for name, arguments in calls
    )
    finish = "tool_calls" if made else "stop"
    return Answer(responses=(Response("", "", finish, tool_calls=made),))


def main(words: Sequence[str] | None = None) -> int:
    """Print a row for each category; with --record, write a sample of the replies."""
    parser = option_parser(__doc__)
    parser.add_argument("--package", type=Path, help="where bfcl_eval is installed")
    parser.add_argument("--record", type=Path)
    parser.add_argument("--show", type=int, default=0)
    options = parser.parse_args(words)
    if options.package is None:
        BFCL.ensure()
        options.package = BFCL.packages
    check = load_checker(options.package)
    data = options.package / "bfcl_eval" / "data"
    settings = {"task_root": [str(data)], "scoring": "published"}
    corrected = bind("tool-calls", {"expected": "calls"})
    recorded: list[dict[str, Any]] = []
    table = Table(["category", *COLUMNS])
    totals: Counter[str] = Counter()
    for category in CATEGORIES:
        (task,) = load(category, settings, prompt_format="auto", chat=True)
        file = data / f"BFCL_v4_{category}.json"
        functions_by_id = {
            row["id"]: row["function"] for row in map(json.loads, file.open())
        }
        counts: Counter[str] = Counter()
        shown: Counter[str] = Counter()
        random = Random(category)
        kept: Counter[str] = Counter()
        recorded_by_verdict: Counter[str] = Counter()
        for sample in task.samples:
            seen = set()
            for calls in replies(sample, random):
                key = json.dumps(calls, ensure_ascii=False)
                if key in seen:
                    continue
                seen.add(key)
                theirs = check(sample, functions_by_id[sample.id], json.loads(key))
                answer = answer_of(json.loads(key))
                ours: Any = task.scorers[0].function(sample, answer)
                same = ours.value == float(theirs == "")
                counts["replies"] += 1
                counts["right"] += theirs == ""
                counts["raises"] += theirs == RAISES
                counts["published"] += same
                label = "correct" if theirs == "" else theirs
                undecoded = ours.label == NOT_DECODED  # the checker sees decoded calls
                counts["label"] += ours.label == label or theirs == RAISES or undecoded
                if not same and shown["published"] < options.show:
                    shown["published"] += 1
                    print("  published:", sample.id, key[:300], theirs, ours)
                if sample.metadata["bfcl"]["language"] == "python":
                    verdict: Any = corrected.function(sample, answer)
                    counts["corrected"] += verdict.value == float(theirs == "")
                    if verdict.value != float(theirs == ""):
                        kind = f"{theirs or 'right'} / {verdict.label}"
                        counts[f"differs: {kind}"] += 1
                        if shown[kind] < options.show:
                            shown[kind] += 1
                            print(f"  {kind}: {sample.id} {key[:200]}")
                            print(f"     {verdict.explanation} {verdict.unsure}")
                if options.record and len(key) < MAX_RECORDED_CHARS:
                    kept[theirs] += random.random() < RECORDED_SHARE
                    if kept[theirs] > recorded_by_verdict[theirs]:
                        recorded_by_verdict[theirs] += 1
                        recorded.append(_recorded(sample, json.loads(key), theirs))
                    kept[theirs] = min(kept[theirs], RECORDED_PER_VERDICT)
        totals += counts
        table.add(category, *(f"{counts[column]:,}" for column in COLUMNS))
    table.add("all", *(f"{totals[column]:,}" for column in COLUMNS))
    for name, n in sorted(totals.items()):
        if name.startswith("differs"):
            print(f"  {n:6,} {name}")
    if options.record:
        options.record.write_text(
            "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in recorded)
        )
    return 0


def _recorded(sample: Sample, calls: Calls, theirs: str) -> dict[str, Any]:
    checked = sample.metadata["bfcl"]
    wanted = {next(iter(answer)) for answer in checked["possible"]}
    functions = [
        function for function in checked["functions"] if function["name"] in wanted
    ]
    kept = {**checked, "functions": functions}
    return {"id": sample.id, "bfcl": kept, "calls": calls, "verdict": theirs}


if __name__ == "__main__":
    sys.exit(main())
