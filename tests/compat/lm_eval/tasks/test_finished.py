"""Runs of these tasks when they are done: groups in the record and on the terminal, which way is
better, and scoring again.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import evalwright.runs
from compat.lm_eval.runs.lm_eval_files import RELEASED
from evalwright import compare, evaluate, leaderboard, score_run
from evalwright.compat.lm_eval.runs.exporting import export_lm_eval
from evalwright.compat.lm_eval.runs.importing import import_lm_eval
from evalwright.compat.lm_eval.tasks.results import all_results
from evalwright.core.errors import ConfigurationError
from evalwright.core.requests import Generate, LogLikelihood, Request
from evalwright.core.responses import Response
from evalwright.models.scripted import ScriptedModel
from evalwright.reports.documents.run import run_document
from evalwright.runs.reader import Run
from support.shown import terminal
from support.typed import typed

from .conftest import SUM, Load, Write

pytest.importorskip("datasets")

SCHEMA = Path(evalwright.runs.__file__).parent / "schemas" / "run.schema.json"
CHOICE = """
    task: {name}
    dataset_path: json
    dataset_kwargs: {{data_files: {{test: tasks/{name}.jsonl}}}}
    output_type: multiple_choice
    test_split: test
    doc_to_text: "{{{{q}}}}"
    doc_to_choice: options
    doc_to_target: a
    metric_list: [{{metric: acc}}, {{metric: brier_score}}]
"""
MISSED = """
    include: sum.yaml
    task: missed
    filter_list: null
    process_results: !function missed.missed
    metric_list: [{metric: miss, aggregation: mean, higher_is_better: false}]
"""

MISSED_BY = """
    def missed(doc, results):
        (text,) = results
        return {"miss": abs(doc["n"] + 1 - int(text)) if text.isdigit() else len(text)}
"""


@pytest.fixture(autouse=True)
def _files(write: Write) -> None:
    for name, n in (("few", 4), ("many", 12)):
        rows = [
            {"q": f"{name} {i}?", "options": ["no", "yes"], "a": 1 - (i % 4 == 0)}
            for i in range(n)
        ]
        write(f"{name}.jsonl", rows)
        write(f"{name}.yaml", CHOICE.format(name=name))
    write("sum.jsonl", [{"n": n} for n in range(8)])
    write("sum.yaml", SUM)
    write("missed.yaml", MISSED)
    write("missed.py", MISSED_BY)


def likes(request: Request) -> Response:
    """Prefers " yes", more or less surely."""
    assert isinstance(request, LogLikelihood)
    sure = 1.0 + len(str(request.context)) % 5 + int(str(request.context)[-2]) / 10
    return Response(
        log_likelihood=-0.1 if request.continuation == " yes" else -sure,
        is_greedy=False,
    )


def adds(error: int) -> ScriptedModel:
    def script(request: Request) -> str:
        assert isinstance(request, Generate)
        n = int(str(request.prompt).split()[0])
        return str(n + 1 + error * (n % 3 == 0))

    return ScriptedModel(script, name=f"off-by-{error}", version="1")


def group_file(write: Write, **entry: Any) -> None:
    content = {"group": "both", "group_alias": "Both of them", "task": ["few", "many"]}
    write(
        "both.yaml",
        json.dumps({**content, "aggregate_metric_list": [{"metric": "acc", **entry}]}),
    )


def grouped(load: Load, **options: Any) -> Run:
    (run,) = evaluate(
        load("both", **options), ScriptedModel(likes, version="1"), name="both"
    )
    return run


@pytest.mark.parametrize("weighted", [True, False])
def test_groups_are_averaged_as_published(
    load: Load, write: Write, weighted: bool
) -> None:
    group_file(write, weight_by_size=weighted)
    run = grouped(load, scoring="published")
    ((group,), theirs) = run.groups, all_results(run)["both"]
    (metric,) = group.metrics
    assert (group.name, group.label, group.tasks) == (
        "lm-eval:both",
        "Both of them",
        ("lm-eval:few", "lm-eval:many"),
    )
    assert metric.estimate.value == theirs["acc,none"] == 0.75
    assert metric.estimate.standard_error == theirs["acc_stderr,none"]
    few, many = (0.75 * 0.25 / (n - 1) for n in (4, 12))
    pooled = (3 * 4 * few + 11 * 12 * many) / 14 / 16
    wanted = pooled if weighted else (few + many) / 4
    assert metric.estimate.standard_error == pytest.approx(math.sqrt(wanted), rel=1e-12)
    assert metric.estimate.n == 16


def test_groups_are_written_in_their_files(
    load: Load, write: Write, tmp_path: Path
) -> None:
    group_file(write)
    run = grouped(load, scoring="published")
    results, *_ = export_lm_eval(run, tmp_path / "out")
    written = json.loads(results.read_text(encoding="utf-8"))
    assert (
        written["groups"]["both"]
        == written["results"]["both"]
        == all_results(run)["both"]
    )
    assert written["group_subtasks"] == {"both": ["few", "many"]}
    (back,) = import_lm_eval(tmp_path / "out", tmp_path / "back")
    assert [task.name for task in back.tasks] == ["lm-eval:few", "lm-eval:many"]


def test_groups_are_averaged_with_intervals(load: Load, write: Write) -> None:
    write(
        "few.jsonl",
        [{"q": f"few {i}?", "options": ["no", "yes"], "a": i % 2} for i in range(4)],
    )
    group_file(write)
    (group,) = grouped(load).groups
    (metric,) = group.metrics
    assert metric.estimate.value == pytest.approx((4 * 0.5 + 12 * 0.75) / 16)
    assert metric.estimate.low < 0.6875 < metric.estimate.high
    assert "2 fixed tasks, weighted" in metric.estimate.method
    run = grouped(load)
    errors = [task.metrics[0].estimate.standard_error or math.nan for task in run.tasks]
    assert metric.estimate.standard_error == pytest.approx(
        math.hypot(errors[0] / 4, errors[1] * 3 / 4)
    )
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).validate(run.data)
    assert "Group Both of them (lm-eval:both), weighted: 2 tasks" in terminal(
        run_document(run)
    )
    again = score_run(run)
    assert again.data["groups"] == run.data["groups"]


def test_a_task_without_a_number_leaves_its_group_without_one(
    load: Load, write: Write
) -> None:
    group_file(write)

    def script(request: Request) -> Response:
        assert isinstance(request, LogLikelihood)
        if str(request.context).startswith("few"):
            raise ValueError("no")
        return likes(request)

    (run,) = evaluate(
        load("both", scoring="published"),
        ScriptedModel(script, version="1"),
        name="both",
    )
    (metric,) = run.groups[0].metrics
    assert math.isnan(metric.estimate.value)
    assert metric.estimate.method == "no number: a task of the group has none"
    again = score_run(run)
    assert again.n_missing == run.n_missing == 4
    assert again.data["groups"] == run.data["groups"]


def test_less_is_better_where_a_task_says_so(load: Load) -> None:
    (task,) = load("missed", trust=(Path("tasks").resolve(),))
    runs = evaluate(task, [adds(1), adds(5)], name="missed")
    assert [run.tasks[0].metrics[0].estimate.value for run in runs] == [3 / 8, 15 / 8]
    assert all(run.tasks[0].metrics[0].lower_is_better for run in runs)
    board = leaderboard(runs)
    assert board.tasks[0].lower_is_better
    assert [row.model for row in board.rows] == ["off-by-1", "off-by-5"]
    compared = compare(runs[0], runs[1]).tasks[0]
    assert compared.lower_is_better
    assert compared.result.difference == pytest.approx(
        -12 / 8
    )  # as the metric is: fewer misses
    for run in runs:
        jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).validate(
            run.data
        )


def test_a_run_is_scored_again_without_its_files(load: Load) -> None:
    runs = evaluate(
        [*load("many"), *load("sum")],
        ScriptedModel(answer_all, version="1"),
        name="first",
    )
    for path in Path("tasks").iterdir():
        path.unlink()
    again = score_run(runs[0])
    assert [task.as_dict() for task in again.tasks] == [
        task.as_dict() for task in runs[0].tasks
    ]
    assert again.data["usage"]["requested"] == 0
    assert again.task("lm-eval:sum").metrics[0].estimate.value == 1.0


def answer_all(request: Request) -> Any:
    if isinstance(request, Generate):
        return f"It is {int(str(request.prompt).split()[0]) + 1}"
    return likes(request)


def test_changed_filters_count_where_the_folder_is_given(
    load: Load, write: Write
) -> None:
    (run,) = evaluate(load("sum"), ScriptedModel(answer_all, version="1"), name="first")
    write("sum.yaml", SUM.replace("(\\\\d+)", "(It)"))
    assert score_run(run).task("lm-eval:sum").metrics[0].estimate.value == 1.0
    changed = score_run(run, dialect={"task_root": ["tasks"]}, name="changed")
    assert changed.task("lm-eval:sum").metrics[0].estimate.value == 0.0


def test_python_is_trusted_anew(load: Load) -> None:
    trust = str(Path("tasks").resolve())
    done = typed(
        *[
            "run",
            "lm-eval:missed",
            "--task-root",
            "tasks",
            "--model",
            "scripted/hash",
            "--name",
            "m",
            "--trust",
        ],
        trust,
    )
    assert done.code != 2, done.text
    refused = typed("score", "m")
    assert (
        refused.code == 2
        and "runs Python code" in refused.text
        and "--trust" in refused.text
    )
    again = typed("score", "m", "--trust", trust, "--json")
    old = json.loads(Path("runs/m/run.json").read_text())
    new = json.loads(again.out)
    assert new["tasks"][0]["metrics"] == old["tasks"][0]["metrics"]


def test_imported_results_are_scored_again(tmp_path: Path) -> None:
    (run,) = import_lm_eval(RELEASED, tmp_path / "runs")
    again = score_run(run, name="again")
    for task in run.tasks:
        found = {
            metric.label: metric.estimate for metric in again.task(task.name).metrics
        }
        for metric in task.metrics:
            assert found[metric.label].value == pytest.approx(
                metric.estimate.value, rel=1e-9, nan_ok=True
            )
            assert found[metric.label].n == metric.estimate.n


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "unsafe_code: true",
            "runs code that the model wrote .* 'humaneval' and 'mbpp'",
        ),
        ("doc_to_image: picture", "contains images or sound"),
        ("doc_to_audio: sound", "contains images or sound"),
        ("use_prompt: 'promptsource:*'", "takes its prompt from a collection"),
        (
            "metric_list: [{metric: code_eval, aggregation: mean}]",
            "runs code that the model wrote",
        ),
    ],
)
def test_what_is_refused_is_said_before_anything_runs(
    load: Load, write: Write, line: str, words: str
) -> None:
    write(
        "bad.yaml",
        f"include: sum.yaml\ntask: bad\n{line}\nprocess_results: !function bad.boom\n",
    )
    write("bad.py", "raise SystemExit('it ran')\n")
    (task,) = load("bad", trust=(Path("tasks").resolve(),))
    with pytest.raises(ConfigurationError, match=words):
        len(task.samples)
    assert (
        typed(
            "run", "lm-eval:bad", "--task-root", "tasks", "--model", "scripted/hash"
        ).code
        == 2
    )


def test_a_task_that_loads_the_metric_for_code_is_refused(
    load: Load, write: Write
) -> None:
    write(
        "code.yaml",
        "include: sum.yaml\ntask: code\nprocess_results: !function code.passes\n",
    )
    write(
        "code.py",
        """
        Metric = type("Metric", (), {"name": "code_eval", "__module__": "evaluate.module"})
        metric = Metric()

        def passes(doc, results):
            return {"exact_match": 1.0}
        """,
    )
    (task,) = load("code", trust=(Path("tasks").resolve(),))
    with pytest.raises(ConfigurationError, match="runs code that the model wrote"):
        len(task.samples)


def test_a_truth_value_as_the_right_option_is_recorded_as_its_place(
    load: Load, write: Write
) -> None:
    rows = [
        {"q": f"few {i}?", "options": ["no", "yes"], "a": i % 2 == 0} for i in range(4)
    ]
    write("few.jsonl", rows)
    (run,) = evaluate(load("few"), ScriptedModel(likes, version="1"), name="truth")
    assert [record.sample.gold for record in run.samples()] == [(1,), (0,), (1,), (0,)]
    assert run.task("lm-eval:few").metrics[0].estimate.value == 0.5


def test_a_group_with_a_task_that_failed_as_a_whole_has_no_number(
    load: Load, write: Write
) -> None:
    def likes_many(request: Request) -> Response:
        if "few" in str(getattr(request, "context", "")):
            raise ValueError("no answer to these")
        return likes(request)

    group_file(write)
    (run,) = evaluate(
        load("both", scoring="published"),
        ScriptedModel(likes_many, version="1"),
        name="half",
    )
    results = all_results(run)
    assert (
        not any("," in key for key in results["few"])
        and results["many"]["acc,none"] == 0.75
    )
    assert results["both"]["acc,none"] == results["both"]["acc_stderr,none"] == "N/A"
