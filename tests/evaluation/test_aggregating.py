"""Numbers made again from recorded scores: the same where nothing is changed, and what cannot be
made is said.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalwright import ScriptedModel, aggregate_run, compare, evaluate, score_run
from evalwright.core.errors import ConfigurationError, Overloaded, RunError, UnknownName
from evalwright.core.requests import Generate, Request
from evalwright.core.tasks import MetricSpec
from evalwright.models.model_interface import Pacing
from evalwright.runs.reader import Run
from evalwright.statistics import mean_interval
from evalwright.tasks.loading import task_from_definition
from support.typed import typed as command

pytestmark = pytest.mark.usefixtures("own_folder")


def made(**more: object) -> Run:
    """A run of eight items in two scorers; one answer fails."""
    rows = [
        {
            "id": str(i),
            "input": f"Say {i}",
            "target": str(i),
            "domain": "ab"[i % 2],
            "hard": i % 3 == 0,
        }
        for i in range(8)
    ]
    task = task_from_definition(
        {
            "task": "quiz",
            "dataset": {"rows": rows},
            "sample": {"metadata": {"hard": "{{ hard }}"}},
            "scorers": ["exact-match", {"name": "loose", "use": "short-answer"}],
            "metrics": [
                "accuracy",
                {"name": "loosely", "use": "mean", "scorer": "loose"},
            ],
            **more,
        }
    )

    def last(request: Request) -> str:
        assert isinstance(request, Generate) and isinstance(request.prompt, str)
        return request.prompt[-1]

    model = ScriptedModel(
        lambda request: last(request) if last(request) in "0123" else "none",
        version="1",
        failures=lambda request, asked: (
            Overloaded("no") if last(request) == "7" else None
        ),
        pacing=Pacing(max_attempts=1),
    )
    (run,) = evaluate(task, model, name="first")
    return run


def test_nothing_changed_gives_the_same_numbers() -> None:
    run = made()
    again = aggregate_run(run)
    assert again.id == "first.aggregated"
    assert [task.as_dict() for task in again.tasks] == [
        task.as_dict() for task in run.tasks
    ]
    assert again.data["aggregated_from"] == {
        "run": "first",
        "samples_sha256": run.data["samples"]["sha256"],
        "answered": run.data["started"],
    }
    assert again.data["usage"]["requested"] == 0
    assert again.data["model"] == run.data["model"]
    again.verify()
    # Again under the same name, and scored or aggregated once more, it stays what it is.
    assert (
        aggregate_run(again, name="third").tasks[0].as_dict() == run.tasks[0].as_dict()
    )
    assert (
        score_run(aggregate_run(run), name="scored").tasks[0].as_dict()
        == run.tasks[0].as_dict()
    )


def test_level_slices_and_metrics() -> None:
    run = made()
    metrics = [
        MetricSpec("right", "mean", "loose", {"value_range": [0, 1]}),
        MetricSpec("accuracy", "accuracy", ""),
    ]
    again = aggregate_run(
        run, metrics=metrics, slices=["hard"], level=0.8, name="other"
    )
    task = again.task("quiz")
    assert [(metric.label, metric.scorer) for metric in task.metrics] == [
        ("right", "loose"),
        ("accuracy", "exact-match"),
    ]
    wanted = mean_interval([1, 1, 1, 1, 0, 0, 0], n_missing=1, level=0.8)
    assert task.metrics[1].estimate == wanted
    assert list(task.slices) == ["hard"]
    assert {
        value: rows[1].estimate.value for value, rows in task.slices["hard"].items()
    } == {
        "True": pytest.approx(2 / 3),
        "False": 0.5,
    }
    assert task.slices["hard"]["False"][0].estimate.n_missing == 1
    paired = compare(run, again).tasks[0].paired
    assert paired is not None and paired.n == 7


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"level": 1.0}, ConfigurationError, "must be between 0 and 1"),
        ({"level": 95.0}, ConfigurationError, "not 95"),
        ({"slices": ["domian"]}, UnknownName, "Did you mean 'domain'"),
        (
            {"metrics": [MetricSpec("x", "acuracy", "")]},
            UnknownName,
            "Did you mean 'accuracy'",
        ),
        (
            {"metrics": [MetricSpec("x", "accuracy", "lose")]},
            UnknownName,
            "Did you mean 'loose'",
        ),
        (
            {"metrics": [MetricSpec("x", "accuracy", ""), MetricSpec("x", "mean", "")]},
            ConfigurationError,
            "the label 'x'",
        ),
        ({"name": "first"}, ConfigurationError, "needs a different name"),
    ],
)
def test_what_cannot_be_made_is_said(
    settings: dict[str, object], error: type[Exception], message: str
) -> None:
    run = made()
    with pytest.raises(error, match=message):
        aggregate_run(run, **settings)  # type: ignore[arg-type]
    assert sorted(path.name for path in Path("runs").iterdir()) == ["first"]


def test_another_runs_folder_and_changed_samples_are_safe() -> None:
    run = made()
    score_run(run, name="scored")
    with pytest.raises(ConfigurationError, match="was not aggregated from 'first'"):
        aggregate_run(run, name="scored")
    run.samples_file.write_bytes(
        run.samples_file.read_bytes().replace(b'"value":1.0', b'"value":0.0', 1)
    )
    with pytest.raises(RunError, match="was changed"):
        aggregate_run(run)


def test_the_command(tmp_path: Path) -> None:
    made()
    done = command(
        *[
            "aggregate", "first", "--slice", "hard", "--level", "0.9", "--metric", "ok=accuracy:loose",
            "--json",
        ],
        folder=Path.cwd(),
    )  # fmt: skip
    assert done.code == 1, done.text  # one sample failed, as in the run itself
    (task,) = json.loads(done.out)["tasks"]
    assert [
        (metric["label"], metric["scorer"], metric["level"])
        for metric in task["metrics"]
    ] == [("ok", "loose", 0.9)]
    for flags, message in (
        (["--metric", "=x"], "takes [LABEL=]METRIC[:SCORER]"),
        (["--metric", "accuracy:"], "takes [LABEL=]METRIC[:SCORER]"),
        (["--metric", "acuracy"], "Did you mean 'accuracy'"),
        (["--level", "2"], "must be between 0 and 1"),
        (["--slice", "hrd"], "Did you mean 'hard'"),
    ):
        done = command(
            "runs", "aggregate", "first", "--name", "x", *flags, folder=Path.cwd()
        )
        assert done.code == 2
        assert message in done.err
        assert "Traceback" not in done.text
    assert not Path("runs/x").exists()
