"""Differences in how two runs were made: prompts, models, scorers, data, seed and versions.

Our run folders contain no secrets, but a folder may come from elsewhere: whatever has a
secret's name or form is masked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from evalwright.analysis.words import listed
from evalwright.core.secrets import is_secret, mask_message, masked_arguments
from evalwright.runs.content_hashes import data_differ
from evalwright.runs.published_record import is_same_part, published_task
from evalwright.runs.reader import Run
from evalwright.runs.stopping import early_notes

_LONGEST = 60
_NOTHING = object()


def configuration_differences(a: Run, b: Run) -> Iterator[str]:
    """List differences between two runs besides their models' names.

    There is one line for each, with both values.
    """
    settings_a = a.data["configuration"]
    settings_b = b.data["configuration"]
    for key in ("seed", "limit", "format"):
        if settings_a.get(key) != settings_b.get(key):
            yield _difference_line(key, settings_a.get(key), settings_b.get(key))
    for path, left, right in _changed_leaves(_model_arguments(a), _model_arguments(b)):
        yield _difference_line(f"model argument {path}", left, right)
    model_a = a.data["model"]
    model_b = b.data["model"]
    prints = model_a.get("fingerprint"), model_b.get("fingerprint")
    if model_a["name"] == model_b["name"] and prints[0] != prints[1]:
        yield _difference_line("model: fingerprint", *prints)
    for path, left, right in _changed_leaves(
        a.data.get("roles", {}), b.data.get("roles", {})
    ):
        yield _difference_line(f"role {path}", left, right)
    tasks_b = {task["name"]: task for task in b.data["tasks"]}
    for task in a.data["tasks"]:
        if task["name"] in tasks_b:
            yield from _compare_task_records(task, tasks_b[task["name"]])
    yield from early_notes((a, b))
    if a.data["evalwright"] != b.data["evalwright"]:
        yield _difference_line("evalwright", a.data["evalwright"], b.data["evalwright"])
    for path, left, right in _changed_leaves(
        a.data.get("environment", {}), b.data.get("environment", {})
    ):
        yield _difference_line(f"environment: {path}", left, right)


_SHOWN = ("versions", "shots", "items", "draws", "seeds")
"""Facts shown by their values; for the others only the runs that agree are listed."""
_MOST_FORMS = 4


def describe_task_differences(
    runs: Sequence[Run], labels: Sequence[str], task: str
) -> str:
    """Describe what was set differently for a task, with the values and the runs that have them.

    Example: "shots (0 in a and b, 5 in c), prompts (...)"; "" if nothing differs.

    Args:
        runs: the runs.
        labels: what the runs are called.
        task: the task's name.
    """
    forms: dict[str, dict[str, list[str]]] = {}
    for run, label in zip(runs, labels, strict=True):
        for record in run.data["tasks"]:
            if record["name"] == task:
                for fact, fact_value in _list_facts(run, record):
                    text = (
                        fact_value
                        if isinstance(fact_value, str)
                        else json.dumps(fact_value, sort_keys=True, default=str)
                    )
                    forms.setdefault(fact, {}).setdefault(text, []).append(label)
    values = [
        _describe_values(fact, runs_by_text)
        for fact, runs_by_text in forms.items()
        if fact in _SHOWN and len(runs_by_text) > 1
    ]
    who: dict[str, list[str]] = {}
    for fact, runs_by_text in forms.items():
        if fact not in _SHOWN and len(runs_by_text) > 1:
            who.setdefault(_describe_sides(runs_by_text), []).append(fact)
    return ", ".join(
        [*values, *(f"{listed(whats)} ({sides})" for sides, whats in who.items())]
    )


def _describe_values(fact: str, runs_by_text: Mapping[str, Sequence[str]]) -> str:
    if len(runs_by_text) <= _MOST_FORMS:
        forms = [
            f"{text} in {listed(names, 3)}" for text, names in runs_by_text.items()
        ]
        return f"{fact} ({'; '.join(forms)})"
    if len(runs_by_text) <= 2 * _MOST_FORMS:
        return f"{fact} ({', '.join(runs_by_text)})"
    return f"{fact} ({len(runs_by_text)} different)"


def _describe_sides(runs_by_text: Mapping[str, Sequence[str]]) -> str:
    if len(runs_by_text) > _MOST_FORMS:
        return f"{len(runs_by_text)} different"
    return " against ".join(listed(names, 3) for names in runs_by_text.values())


def _list_facts(run: Run, record: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    # some of the runs may be published without the texts of their rows
    record = published_task(record)
    definition = record.get("definition", {})
    prompt = definition.get("prompt") if isinstance(definition, Mapping) else None
    few_shot = prompt.get("few_shot", {}) if isinstance(prompt, Mapping) else {}
    shots = run.data["configuration"].get("num_fewshot")
    yield "versions", str(record["version"])
    yield "data", record["content_hash"]
    prompt_without_shots = (
        {key: prompt[key] for key in prompt if key != "few_shot"}
        if isinstance(prompt, Mapping)
        else prompt
    )
    yield "prompts", prompt_without_shots
    yield (
        "shots",
        str(
            few_shot.get("count", 0)
            if shots is None and isinstance(few_shot, Mapping)
            else shots
        ),
    )
    yield (
        "ways of answering",
        (definition.get("answer") if isinstance(definition, Mapping) else None),
    )
    yield "scorers", record["scorers"]
    yield "items", f"{int(record['n_samples']):,}"
    yield "draws", str(record.get("draws", 1))
    if run.data["configuration"].get("limit") is not None:
        yield "seeds", str(run.data["configuration"].get("seed"))


def _model_arguments(run: Run) -> Mapping[str, Any]:
    """Return the arguments with which the run's model was opened."""
    models = run.data["configuration"].get("models")
    for spec in models if isinstance(models, list) else ():
        if isinstance(spec, Mapping) and (
            len(models) == 1 or spec.get("name") == run.model
        ):
            arguments = spec.get("arguments")
            return arguments if isinstance(arguments, Mapping) else {}
    return {}


def _compare_task_records(
    record_a: Mapping[str, Any], record_b: Mapping[str, Any]
) -> Iterator[str]:
    name = record_a["name"]
    for path, left, right in _changed_leaves(
        record_a["definition"], record_b["definition"]
    ):
        yield _difference_line(f"{name}: {path or 'definition'}", left, right)
    if record_a["version"] != record_b["version"]:
        yield _difference_line(
            f"{name}: version", record_a["version"], record_b["version"]
        )
    if data_differ(record_a["content_hash"], record_b["content_hash"]):
        hashes = (
            _cut_to_difference(_setting_text("hash", task["content_hash"]), "")[0]
            for task in (record_a, record_b)
        )
        yield f"{name}: the data differ ({' against '.join(hashes)})"
    published_one = published_task(record_a)
    published_other = published_task(record_b)
    is_scored_otherwise = published_one["scorers"] != published_other["scorers"]
    if (
        is_scored_otherwise
        and published_one["definition"] == published_other["definition"]
    ):
        left, right = (
            [scorer["name"] for scorer in task["scorers"]]
            for task in (record_a, record_b)
        )
        names = (
            f" ({', '.join(left)} against {', '.join(right)})" if left != right else ""
        )
        yield f"{name}: the scorers differ, as one of the runs was scored again{names}"


def _changed_leaves(a: Any, b: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Iterate over (path, left, right) of every leaf that differs."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        for key in sorted({*a, *b}, key=str):
            inner = f"{path}.{key}" if path else str(key)
            yield from _changed_leaves(
                a.get(key, _NOTHING), b.get(key, _NOTHING), inner
            )
    elif not is_same_part(a, b):
        yield path, a, b


def _difference_line(path: str, left: Any, right: Any) -> str:
    text_a, text_b = _cut_to_difference(
        *(_setting_text(path, side) for side in (left, right))
    )
    return f"{path}: {text_a} against {text_b}"


def _setting_text(path: str, value: Any) -> str:
    if value is _NOTHING:
        return "not set"
    # A number of tokens is not a secret, whatever its name.
    name = (
        next(filter(is_secret, path.split(".")), "")
        if isinstance(value, (str, Mapping, list))
        else ""
    )
    value = masked_arguments(value, name)
    if isinstance(value, (Mapping, list)):
        value = json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    return mask_message(str(value))


def _cut_to_difference(text_a: str, text_b: str) -> tuple[str, str]:
    """Shorten two texts to the part where they begin to differ."""
    begin = 0
    if max(len(text_a), len(text_b)) > _LONGEST and text_a != text_b:
        same = next(
            (
                i
                for i, (char_a, y) in enumerate(zip_longest(text_a, text_b))
                if char_a != y
            ),
            0,
        )
        begin = max(0, same - _LONGEST // 3) if same > _LONGEST // 2 else 0

    def cut(text: str) -> str:
        tail = "…" if len(text) - begin > _LONGEST else ""
        return f"{'…' if begin else ''}{text[begin : begin + _LONGEST]}{tail}" or "''"

    return cut(text_a), cut(text_b)
