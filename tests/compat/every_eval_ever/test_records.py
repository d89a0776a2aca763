"""Records of Every Eval Ever: written as their own schema wants them, and read, theirs and ours
(see tests/data/every_eval_ever).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

import evalwright.runs
from evalwright import Answer, Sample, SampleRecord, Score
from evalwright.compat.every_eval_ever.exporting import export_eee
from evalwright.compat.every_eval_ever.importing import import_eee
from evalwright.compat.inspect.importing import import_inspect
from evalwright.core.errors import ConfigurationError, RunError
from evalwright.extend import ImportDestination, ImportedTask, MetricSpec, write_run
from evalwright.runs.reader import Run, open_run
from support.runs import make_run
from support.typed import typed

DATA = Path(__file__).parents[2] / "data" / "every_eval_ever"
LOGS = DATA.parent / "inspect"
RUN_SCHEMA = Path(evalwright.runs.__file__).parent / "schemas" / "run.schema.json"


def check(folder: Path) -> int:
    """How many records of a folder hold to the published schemas."""
    checks = {
        ".json": Draft7Validator(
            json.loads((DATA / "eval.schema.json").read_text(encoding="utf-8"))
        ),
        ".jsonl": Draft7Validator(
            json.loads(
                (DATA / "instance_level_eval.schema.json").read_text(encoding="utf-8")
            )
        ),
    }
    count = 0
    for file in sorted(folder.rglob("*.json*")):
        text = file.read_text(encoding="utf-8")
        for part in [text] if file.suffix == ".json" else text.splitlines():
            assert [
                error.message
                for error in checks[file.suffix].iter_errors(json.loads(part))
            ] == []
            count += 1
    return count


def held(run: Run) -> dict[Any, Any]:
    """What both sides hold of a run's scored answers."""
    return {
        (sample.task, sample.sample.id, sample.draw): (
            sample.sample.input, sample.sample.targets, sample.sample.choices, sample.sample.cluster, dict(sample.scores),
            sample.answer and (sample.answer.text, sample.answer.reasoning, sample.answer.usage),
        )
        for sample in run.samples()
        if sample.scores
    }  # fmt: skip


def numbers(run: Run) -> dict[tuple[str, str], float]:
    return {
        (task.name, metric.label): metric.estimate.value
        for task in run.tasks
        for metric in task.metrics
    }


def test_round_trip_of_a_run(tmp_path: Path) -> None:
    run = make_run(
        tmp_path,
        scores={"a": [1, 0, 0.5, None], "b": [0, 1]},
        cluster_size=2,
        model="hf/org/name",
    )
    files, notes = export_eee([run], tmp_path / "out", "us", "third_party")
    assert check(tmp_path / "out") == 2 + 3 + 2
    assert [file.relative_to(tmp_path / "out").parts[:4] for file in files][:1] == [
        ("data", "a", "org", "name")
    ]
    assert (
        "Answers without a score have no row, where one must have a score: 1"
        in notes[0]
    )
    assert export_eee([run], tmp_path / "out", "us", "third_party")[0] == files
    again = import_eee(tmp_path / "out", tmp_path / "runs")
    assert {key: value for one in again for key, value in held(one).items()} == held(
        run
    )
    assert {
        key: value for one in again for key, value in numbers(one).items()
    } == numbers(run)
    assert again[0].model == "hf/org/name"


@pytest.mark.usefixtures("own_folder")
def test_averages_over_tasks_with_their_intervals(tmp_path: Path) -> None:
    done = typed(
        "run", "factual-choice", "--model", "demo/small", "--limit", "9", "--name", "g"
    )
    assert done.code == 0
    run = open_run(Path("runs/g"))
    (group,) = run.groups
    files, _ = export_eee([run], tmp_path / "out")
    assert check(tmp_path / "out") == 2 + 18 + 1
    record = json.loads(files[-1].read_text(encoding="utf-8"))
    (average,) = record["evaluation_results"]
    estimate = group.metrics[0].estimate
    assert average["evaluation_name"] == "factual-choice"
    assert average["score_details"]["score"] == estimate.value
    uncertainty = average["score_details"]["uncertainty"]
    assert uncertainty["num_samples"] == estimate.n == 18
    assert uncertainty["confidence_interval"]["lower"] == estimate.low
    assert uncertainty["confidence_interval"]["upper"] == estimate.high
    assert average["source_data"]["additional_details"]["average"] == "macro"
    # Back again, the tasks are runs; the average is no task, and named alone it is as published.
    again = import_eee(tmp_path / "out", tmp_path / "runs")
    assert [one.tasks[0].name for one in again] == [task.name for task in run.tasks]
    (alone,) = import_eee(files[-1], tmp_path / "alone")
    assert numbers(alone) == {("factual-choice", "accuracy"): estimate.value}


@pytest.mark.parametrize(
    "name", ["sums.eval", "values.eval", "tools.eval", "letters.json"]
)
def test_logs_of_inspect_on_the_way(name: str, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="the logs are compressed with zstandard")
    (run,), _ = import_inspect(LOGS / name, tmp_path / "one")
    export_eee([run], tmp_path / "out")
    assert check(tmp_path / "out") > 3
    (again,) = import_eee(tmp_path / "out", tmp_path / "two")
    assert numbers(again) == pytest.approx(numbers(run))
    assert {key: one[4] for key, one in held(again).items()} == {
        key: one[4] for key, one in held(run).items()
    }
    assert again.data["tasks"][0]["draws"] == run.data["tasks"][0]["draws"]


def test_records_of_their_converter(tmp_path: Path) -> None:
    assert check(DATA / "sums") == 1 + 24
    done = typed(
        "import",
        "every-eval-ever",
        str(DATA / "sums"),
        "--name",
        "sums",
        folder=tmp_path,
    )
    assert done.code == 0, done.text
    (run,) = import_eee(DATA / "sums", tmp_path)
    assert numbers(run) == pytest.approx(
        {("sums", "match:accuracy"): 2 / 3, ("sums", "includes:accuracy"): 2 / 3}
    )
    assert run.tasks[0].metrics[0].estimate.n == 6
    assert run.data["tasks"][0]["draws"] == 2
    assert run.data["started"].startswith("2026-11-23T")
    assert run.data["configuration"]["imported"]["eval_library"]["name"] == "inspect_ai"


def test_numbers_without_samples_are_kept_as_published(tmp_path: Path) -> None:
    (file,) = (DATA / "sums").rglob("*-*.json")
    (tmp_path / "alone.json").write_bytes(file.read_bytes())
    (run,) = import_eee(tmp_path / "alone.json", tmp_path / "runs")
    assert numbers(run)["sums", "match:accuracy"] == pytest.approx(2 / 3)
    assert "kept as published" in " ".join(
        run.data["configuration"]["imported"]["notes"]
    )


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"model_info": 3}, "no aggregate"),
        ({"evaluation_results": []}, "no aggregate"),
        ({"eval_library": 10**400}, "a number of 401 digits"),
        ({"evaluation_results": [{}]}, "'evaluation_name' must be text, not missing"),
        (
            {"evaluation_results": [{"evaluation_name": "x", "source_data": {}, "metric_config": {}, "score_details": {"score": "1"}}]},
            "no number as its score",
        ),
    ],
)  # fmt: skip
def test_broken_records_are_named(
    change: dict[str, Any], told: str, tmp_path: Path
) -> None:
    (file,) = (DATA / "sums").rglob("*-*.json")
    data = {**json.loads(file.read_text(encoding="utf-8")), **change}
    (tmp_path / "bad.json").write_text(json.dumps(data), encoding="utf-8")
    done = typed("import", "every-eval-ever", "bad.json", folder=tmp_path)
    assert done.code == 2, done.text
    assert told in " ".join(done.text.split())


def test_a_row_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    (rows,) = (DATA / "sums").rglob("*_samples.jsonl")
    lines = rows.read_text(encoding="utf-8").splitlines()
    (file,) = (DATA / "sums").rglob("*-*.json")
    (tmp_path / "x.json").write_bytes(file.read_bytes())
    other = json.dumps({**json.loads(lines[0]), "interaction_type": "other"})

    def imported(*more: str) -> tuple[int, str]:
        (tmp_path / "x_samples.jsonl").write_text(
            "\n".join([*lines, *more]) + "\n", encoding="utf-8"
        )
        done = typed("import", "every-eval-ever", "x.json", folder=tmp_path)
        return done.code, " ".join(done.text.split())

    code, told = imported(lines[0])
    assert (
        code == 2
        and f"line {len(lines) + 1} is the same row as" in told
        and "line 1: it would count twice" in told
    )
    code, told = imported(other)
    assert code == 2 and "has two rows for repeat 1, scored by" in told


def test_rows_that_are_not_numbered_are_repeats_and_said(tmp_path: Path) -> None:
    (rows,) = (DATA / "sums").rglob("*_samples.jsonl")
    (file,) = (DATA / "sums").rglob("*-*.json")
    (tmp_path / "x.json").write_bytes(file.read_bytes())
    made = []
    for line in rows.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        made.append(
            json.dumps({**row, "metadata": {"place": row["metadata"]["epoch"]}})
        )
    (tmp_path / "x_samples.jsonl").write_text("\n".join(made) + "\n", encoding="utf-8")
    (run,) = import_eee(tmp_path / "x.json", tmp_path / "runs")
    assert run.data["tasks"][0]["draws"] == 2
    assert "several rows that are not numbered, read as repeats: 6 (" in " ".join(
        run.data["configuration"]["imported"]["notes"]
    )


@pytest.mark.parametrize(
    ("value_range", "ends"),
    [
        ((0, 10), (0, 10)),
        ((1, None), (1, "Infinity")),
        (None, ("-Infinity", "Infinity")),
    ],
)
def test_the_range_that_a_metric_declares_is_stated(
    value_range: Any, ends: tuple[Any, Any], tmp_path: Path
) -> None:
    metric = MetricSpec("grade", "mean", "grade", value_range=value_range)
    task = ImportedTask(name="essays", metrics=[metric])
    records = [
        SampleRecord(
            *("essays", number, 0, Sample(str(number), "Write."), Answer("Text")),
            {"grade": Score(float(number))},
        )
        for number in range(3)
    ]
    source = tmp_path / "grades.jsonl"
    source.write_text("here\n", encoding="utf-8")
    place = ImportDestination(tmp_path / "runs", "essays", alone=True).place(
        "some-model", [], {}
    )
    run = write_run(
        place, records, [task], system="grades", model="a/b", files=[source]
    )
    assert run.metric_specs("essays") == (metric,), "the record has it too"
    Draft7Validator(json.loads(RUN_SCHEMA.read_text(encoding="utf-8"))).validate(
        run.data
    )
    export_eee([run], tmp_path / "out", "us", "third_party")
    assert check(tmp_path / "out")
    (file,) = (tmp_path / "out").rglob("*.json")
    (evaluation,) = json.loads(file.read_text(encoding="utf-8"))["evaluation_results"]
    config = evaluation["metric_config"]
    assert (config["min_score"], config["max_score"]) == ends


def test_a_record_with_a_range_that_is_none_is_refused(tmp_path: Path) -> None:
    run = make_run(tmp_path, scores=[1, 0], name="ranged")
    file = run.folder / "run.json"
    record = json.loads(file.read_text(encoding="utf-8"))
    for wrong in ([1], [2, 1], ["0", 1]):
        record["tasks"][0]["metric_specs"][0]["value_range"] = wrong
        file.write_text(json.dumps(record), encoding="utf-8")
        with pytest.raises(RunError, match=r"value_range|range of the metric"):
            open_run(run.folder)


@pytest.mark.parametrize("wrong", [(1,), (2, 1), ("0", 1), (0, float("inf")), "01", 5])
def test_a_range_has_two_ends(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match="range of the metric 'grade'"):
        MetricSpec("grade", "mean", "grade", value_range=wrong)
