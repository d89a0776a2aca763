"""SEA-HELM's totals, published equal to its own, and as a tree of tasks with intervals and what
is missing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from compat.sea_helm.scored import golden_lines, needs_golden_file
from evalwright.compat.sea_helm.aggregation import aggregated, dialect_groups
from evalwright.compat.sea_helm.over_runs import over_runs
from evalwright.runs import grouping
from evalwright.tasks.dialects import TaskGroup


def flat(value: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from flat(part, f"{where}/{key}")
    elif isinstance(value, list | tuple):
        for place, part in enumerate(value):
            yield from flat(part, f"{where}/{place}")
    else:
        yield where, value


def same(one: Any, other: Any) -> None:
    left = dict(flat(one))
    right = dict(flat(other))
    assert left.keys() == right.keys()
    for key, value in left.items():
        assert value == (
            pytest.approx(right[key], abs=1e-9)
            if isinstance(value, int | float)
            else right[key]
        ), key


@needs_golden_file
def test_golden_totals() -> None:
    """Every case of its aggregation: the same totals, or the same error."""
    seen = 0
    for line in golden_lines():
        if line["kind"] != "aggregate":
            continue
        tasks = {name: dict(facts) for name, facts in line["tasks"].items()}
        override = line.get("config_override")
        sizes = None
        if override:
            for facts in tasks.values():
                if facts["aggregation_group"] == "safeguard":
                    facts["aggregation_type"] = "micro-average"
            sizes = {
                (key.split("|")[0], key.split("|")[1]): size
                for key, size in override["lines"].items()
            }
        if "error" in line:
            with pytest.raises((KeyError, ZeroDivisionError, TypeError)) as caught:
                aggregated(line["input"], tasks, sizes)
            assert (type(caught.value).__name__, str(caught.value)) == (
                line["error"]["type"],
                line["error"]["message"],
            )
        else:
            same(aggregated(line["input"], tasks, sizes), line["output"])
        seen += 1
    assert seen >= 11


@needs_golden_file
def test_golden_numbers_over_runs() -> None:
    for line in golden_lines():
        if line["kind"] != "notebook":
            continue
        if "error" in line:
            with pytest.raises(TypeError, match="not iterable"):
                over_runs(
                    line["config"],
                    line["data"],
                    bootstraps=line["n_bootstraps"],
                    seed=line["seed"],
                )
            continue
        found, incomplete = over_runs(
            line["config"],
            line["data"],
            bootstraps=line["n_bootstraps"],
            seed=line["seed"],
        )
        same(found, line["output"])
        assert [list(one) for one in incomplete] == line["incomplete"]


def task(
    name: str,
    language: str,
    value: float | None,
    competency: str = "nlu",
    **config: Any,
) -> dict[str, Any]:
    """A task's record in a run. value None: every row of it failed."""
    published = config.pop("published", False)
    kind, scale = ("mean", 100) if published else ("accuracy", 1)
    metric = {
        "label": "normalized_accuracy", "kind": kind, "scorer": "sea-helm", "value": None if value is None else value * scale, "n": 10,
        "n_missing": 0, "method": "", "low": None, "high": None, "level": 0.95, "n_clusters": None, "standard_error": None,
        "bounds": None, "lower_is_better": False,
    }  # fmt: skip
    definition = {
        "dialect": "sea-helm", "task": name, "language": language, "scoring": "published" if published else "corrected",
        "config": {"competency": competency, "metric": "normalized_accuracy", **config}, "left_out": [{"name": "sea-helm:gone/vi", "language": "vi", "competency": "nlu"}],
    }  # fmt: skip
    return {
        "name": f"sea-helm:{name}/{language}",
        "definition": definition,
        "metrics": [] if value is None else [metric],
        "n_samples": 10,
    }


def by_label(groups: list[TaskGroup]) -> dict[str, TaskGroup]:
    return {group.label: group for group in groups}


TASKS = [
    ("sentiment", "id", 0.2, "nlu"),
    ("qa", "id", 0.6, "nlu"),
    ("toxicity", "id", 0.9, "safety"),
    ("sentiment", "vi", 0.5, "nlu"),
]


def test_the_tree() -> None:
    records = [task(*one) for one in TASKS]
    records += [
        task(name, "id", 0.1, "safety", aggregation_group="safeguard")
        for name in ("prompt", "response")
    ]
    found = by_label(dialect_groups(records))
    assert list(found) == [
        "id nlu",
        "id safety safeguard",
        "id safety",
        "id",
        "vi nlu",
        "vi",
        "SEA",
        "all languages",
    ]
    lacking = [
        label for label, group in found.items() if group.absent == ("sea-helm:gone/vi",)
    ]
    assert lacking == ["vi nlu", "vi", "SEA", "all languages"]
    sizes = {record["name"]: 10 for record in records}
    weights = {
        one.tasks[0]: one.weight
        for one in found["all languages"].averages[0].node.samples(sizes)
    }
    assert weights["sea-helm:sentiment/vi"] == pytest.approx(1 / 2)
    assert weights["sea-helm:sentiment/id"] == pytest.approx(1 / 8)
    assert weights["sea-helm:toxicity/id"] == pytest.approx(1 / 8) and weights[
        "sea-helm:prompt/id"
    ] == pytest.approx(1 / 16)
    # Five of the seven languages have no task: no SEA average, and the record says which are
    # missing.
    assert found["SEA"].averages[0].node.samples(sizes) == ()
    assert len(found["SEA"].averages[0].node.missing(list(sizes))) == 5


def test_a_task_without_a_number_is_missing_and_not_zero() -> None:
    records = [task(*one) for one in TASKS[:2]] + [task("nli", "id", None)]
    group = by_label(dialect_groups(records))["id nlu"]
    record = grouping.group_record(
        group,
        {one["name"]: 10 for one in records},
        lambda *_: pytest.fail("no number is made"),
        {},
    )
    assert record["metrics"][0]["value"] is None and record["missing"] == [
        "sea-helm:nli/id"
    ]


def test_published_totals() -> None:
    """SEA-HELM's own: a failed task counts as 0, the SEA average is over the languages that are
    there.
    """
    records = [task(*one, published=True) for one in TASKS]
    records[1]["metrics"][0] |= {
        "value": 0.0,
        "method": "failed, published as 0: zip()",
        "n_missing": 10,
    }
    found = by_label(dialect_groups(records))
    published = {label: group.averages[0].published for label, group in found.items()}
    assert {label: one and one.value for label, one in published.items()} == pytest.approx({
        "id nlu": 10, "id safety": 90, "id": 50, "vi nlu": 50, "vi": 50,
        "SEA": 50, "all languages": 50,
    })  # fmt: skip
    broken = [
        *records,
        task("mp-r", "id", 0.3, "linguistic-diagnostics", published=True),
    ]
    estimate = by_label(dialect_groups(broken))["all languages"].averages[0].published
    assert (
        estimate is not None
        and math.isnan(estimate.value)
        and "KeyError: 'pragmatic-single'" in estimate.method
    )
