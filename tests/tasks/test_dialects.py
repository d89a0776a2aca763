"""A second dialect touches no other room: a plug-in registers one, and its tasks are listed,
run, averaged, stopped and scored again.
"""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.evaluation.rules import score_kind
from evalwright.metrics.registry import registry as metrics
from evalwright.runs.reader import open_run
from evalwright.statistics import parse_rule
from evalwright.tasks import dialects
from evalwright.tasks.loading import load_tasks
from support.typed import typed

PLUGIN = '''
"""A toy dialect: the task `toy:sums` adds, and its one scorer says whether the answer has the sum."""

from dataclasses import replace

from evalwright.core.samples import Sample, Score
from evalwright.core.tasks import MetricSpec, Scorer
from evalwright.tasks.loading import task_from_definition
from evalwright.metrics.tree import Node
from evalwright.tasks.dialects import GroupAverage, TaskGroup, ListedTask, ScoringRules, register

METRICS = [MetricSpec("right", "accuracy", "main")]


def score(sample, answer):
    right = float(sample.targets[0] in answer.text)
    return Score(right, parts={"right": right})


def scorers():
    return (Scorer("main", "toy", {}, score),)


class Toy:
    right_or_wrong = frozenset({"right"})

    def names(self, roots):
        return [ListedTask("sums", "task", members=tuple(str(root) for root in roots))]

    def load(self, name, settings, *, prompt_format, chat):
        rows = [{"input": f"{n} and 1", "target": str(n + 1)} for n in range(settings.get("rows", 3))]
        made = task_from_definition({"task": name, "dataset": {"rows": rows}})
        definition = {"dialect": "toy", "task": name, "scoring": settings.get("scoring", "corrected")}
        return [
            replace(made, name=f"toy:{name}", definition=definition, scorers=scorers(), metrics=tuple(METRICS))
        ]

    def groups(self, tasks):
        node = Node("toy:all", tuple(one["name"] for one in tasks))
        found = {one["name"]: one["metrics"][0] for one in tasks}
        return [TaskGroup("toy:all", "all", (GroupAverage("right", node, found),))]

    def rules(self, task, configuration, first, settings):
        return ScoringRules(scorers(), METRICS, lambda names: METRICS)


register("toy", Toy())
'''


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(dialects, "_registered", dict(dialects._registered))
    Path("toy.py").write_text(dedent(PLUGIN))
    return "toy.py"


def test_a_plug_in_brings_a_dialect(plugin: str) -> None:
    model = ["--model", "scripted/constant", "-M", "text=2"]
    done = typed(
        "run",
        "toy:sums",
        *model,
        "--plugin",
        plugin,
        "--name",
        "toys",
        "--scoring",
        "published",
    )
    assert done.code == 0, done.err
    run = open_run(Path("runs/toys"))
    (task,) = run.tasks
    assert task.name == "toy:sums" and task.metrics[0].estimate.value == pytest.approx(
        1 / 3
    )
    assert run.data["tasks"][0]["definition"]["scoring"] == "published"
    assert [group["name"] for group in run.data["groups"]] == ["toy:all"]
    done = typed("score", "toys", "--name", "again")
    assert done.code == 0, done.err
    assert (
        open_run(Path("runs/again")).tasks[0].metrics[0].estimate
        == task.metrics[0].estimate
    )
    listed = json.loads(
        typed("tasks", "list", "--dialect", "toy", "--task-root", "here", "--json").out
    )
    assert listed == [
        {"name": "toy:sums", "kind": "task", "path": "", "members": ["here"]}
    ]
    (loaded,) = load_tasks("toy:sums", dialect={"rows": 5})
    assert len(loaded.samples) == 5
    kind = score_kind(parse_rule("right +-0.1"), loaded)
    assert kind is not None and kind.binary and kind.part == "right"


def test_a_comparison_says_that_a_dialect_is_to_be_loaded(
    plugin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A metric that is no mean is made again by the dialect's own function."""
    own_metric = """
from evalwright.statistics import mean_interval

def half(column):
    return mean_interval(column.values / 2, n_missing=column.n_missing)

METRICS[:] = [MetricSpec("toy-half", "toy-half", "main", function=half)]
"""
    Path(plugin).write_text(dedent(PLUGIN) + own_metric)
    for text in ("1", "2"):
        model = ("--model", "scripted/constant", "-M", f"text={text}")
        done = typed(
            "run", "toy:sums", *model, "--plugin", plugin, "--name", f"r{text}"
        )
        assert done.code == 0, done.err
    for command in ("compare", "leaderboard"):
        monkeypatch.setattr(dialects, "_registered", {})
        done = typed(command, "r1", "r2")
        shown = " ".join(done.out.split())
        assert "the dialect 'toy', which makes it, is not loaded" in shown
        assert "Load it with --plugin FILE" in shown
        done = typed(command, "r1", "r2", "--plugin", plugin)
        assert done.code == 0, done.err
        assert "made again" not in " ".join(done.out.split())


def test_a_metric_of_another_plug_in_does_not_hide_a_dialects_own(
    plugin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_metric = """
from evalwright.statistics import mean_interval

def half(column):
    return mean_interval(column.values / 2, n_missing=column.n_missing)

METRICS[:] = [MetricSpec("toy-half", "toy-half", "main", function=half)]
"""
    Path(plugin).write_text(dedent(PLUGIN) + own_metric)
    Path("same_name.py").write_text(
        dedent("""
        from evalwright import metric
        from evalwright.statistics import mean_interval


        @metric("toy-half")
        def tenth(column):
            return mean_interval(column.values / 10, n_missing=column.n_missing)
        """)
    )
    for text in ("1", "2"):
        model = ("--model", "scripted/constant", "-M", f"text={text}")
        done = typed(
            "run", "toy:sums", *model, "--plugin", plugin, "--name", f"r{text}"
        )
        assert done.code == 0, done.err
    monkeypatch.setattr(metrics, "_found", dict(metrics._found))
    monkeypatch.setattr(metrics, "_registered", set(metrics._registered))
    done = typed("compare", "r1", "r2", "--plugin", plugin, "--plugin", "same_name.py")
    assert done.code == 0, done.err
    assert "made again" not in " ".join(done.out.split())


def test_a_task_of_a_dialect_that_is_not_loaded_says_how_to_load_it() -> None:
    for command in (
        ("run", "quiz:capitals", "--model", "demo/small"),
        ("tasks", "list", "--dialect", "quiz"),
    ):
        done = typed(*command)
        assert done.code == 2 and "--plugin FILE" in done.err, done.err


def test_tasks_of_a_plug_in_are_listed(plugin: str) -> None:
    done = typed("tasks", "list", "--dialect", "toy", "--plugin", plugin)
    assert done.code == 0 and done.out == "toy:sums  task\n", done.text


def test_what_is_wrong_is_a_sentence(plugin: str) -> None:
    with pytest.raises(UnknownName, match=r"'lm-evil'\. Did you mean 'lm-eval'"):
        dialects.dialect("lm-evil")
    for name in ("", "a:b", "lm-eval"):
        with pytest.raises(ConfigurationError, match="cannot name a dialect"):
            dialects.register(name, dialects.dialect("lm-eval"))
    assert (
        dialects.dialect_of({"dialect": "some-import"}) is None
        and dialects.named("nothing:here") is None
    )


class Complete:
    right_or_wrong: frozenset[str] = frozenset()

    def names(self, roots: object) -> list[Any]:
        return []

    def load(self, name: str, settings: object, **options: object) -> list[Any]:
        return []

    def groups(self, tasks: object) -> list[Any]:
        return []

    def rules(self, *recorded: object) -> None:
        return None


class WithoutLoad:
    names = groups = rules = Complete.names


def test_an_entry_point_may_name_a_class(monkeypatch: pytest.MonkeyPatch) -> None:
    entry_points = {
        "complete": f"{__name__}:Complete",
        "half": f"{__name__}:WithoutLoad",
        "gone": f"{__name__}:NotThere",
    }
    monkeypatch.setattr(dialects, "_registered", {})
    monkeypatch.setattr(dialects, "_all_dialects", lambda: entry_points)
    monkeypatch.setattr(
        dialects, "resolve_name", lambda target: globals()[target.rpartition(":")[2]]
    )
    assert isinstance(dialects.dialect("complete"), Complete)
    with pytest.raises(ConfigurationError, match="'half' has no method load"):
        dialects.dialect("half")


def test_an_entry_point_that_is_not_there_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dialects, "_registered", {})
    monkeypatch.setattr(
        dialects, "_all_dialects", lambda: {"gone": "evalwright.extend:NotThere"}
    )
    with pytest.raises(ConfigurationError, match=r"'gone' .* cannot be loaded"):
        dialects.dialect("gone")
