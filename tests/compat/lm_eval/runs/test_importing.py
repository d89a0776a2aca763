"""Results of lm_eval as runs: real ones of the release, golden ones, old ones, and broken ones."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any

import pytest

import evalwright.runs
from compat.lm_eval.runs.lm_eval_files import (
    GOLDEN,
    RELEASED,
    TIME,
    line,
    read_lines,
    read_results,
    values,
    write,
)
from evalwright.analysis.board import make_board
from evalwright.analysis.comparison import compare_runs
from evalwright.cli import main
from evalwright.compat.lm_eval.runs.exporting import export_lm_eval
from evalwright.compat.lm_eval.runs.importing import import_lm_eval
from evalwright.core.errors import RunError
from evalwright.runs.confirmed import confirm

SCHEMAS = Path(evalwright.runs.__file__).parent / "schemas"


def check_schemas(folder: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    run, sample = (
        jsonschema.Draft202012Validator(
            json.loads((SCHEMAS / f"{name}.schema.json").read_text())
        )
        for name in ("run", "sample")
    )
    run.validate(json.loads((folder / "run.json").read_text()))
    for text in (folder / "samples.jsonl").read_text().splitlines():
        sample.validate(json.loads(text))


def test_released_results_keep_their_numbers(tmp_path: Path) -> None:
    (run,) = import_lm_eval(RELEASED, tmp_path)
    run.verify()
    check_schemas(run.folder)
    assert (run.id, run.model) == (f"dummy--{TIME}", "dummy")
    theirs = read_results(RELEASED)["results"]
    expected = {
        f"lm-eval:{task} {key.removesuffix(',none')}": value
        for task, entry in theirs.items()
        for key, value in entry.items()
        if key.endswith(",none") and "_stderr" not in key and task != "both"
    }
    assert values(run) == pytest.approx(expected, rel=1e-12)
    picks = run.task("lm-eval:pick").metrics
    assert [metric.estimate.method for metric in picks] == ["Wilson", "Wilson"]
    assert picks[0].estimate.standard_error == pytest.approx(
        theirs["pick"]["acc_stderr,none"], rel=1e-12
    )
    assert (picks[0].estimate.n, picks[0].kind, run.task("lm-eval:pick").version) == (
        6,
        "accuracy",
        "2",
    )


@pytest.mark.skipif(not GOLDEN.is_file(), reason="the golden results are not here")
def test_golden_results_are_made_again_from_their_samples(tmp_path: Path) -> None:
    golden = json.loads(gzip.decompress(GOLDEN.read_bytes()))
    compared = 0
    for number, found in enumerate(list(golden.values())[:15]):
        folder = write(
            tmp_path / str(number), {**found, "samples": None}, **found["samples"]
        )
        (run,) = import_lm_eval(folder, tmp_path / "runs", f"golden-{number}")
        for task in run.tasks:
            entry = found["results"][task.name.removeprefix("lm-eval:")]
            for metric in task.metrics:
                name = metric.label.partition(",")[0]
                assert metric.estimate.value == pytest.approx(
                    entry[f"{name},{metric.scorer}"], rel=1e-9
                )
                error = entry[f"{name}_stderr,{metric.scorer}"]
                sampled = task.name.removeprefix("lm-eval:") in found["samples"]
                if sampled and metric.kind in ("accuracy", "exact-match") and error:
                    assert metric.estimate.standard_error == pytest.approx(
                        error, rel=1e-9
                    )
                    assert "imported" not in metric.estimate.method
                compared += 1
    assert compared > 25


def test_without_samples_the_standard_error_makes_a_normal_interval(
    tmp_path: Path,
) -> None:
    results = {
        "results": {
            "t": {
                "acc,none": 0.25,
                "acc_stderr,none": 0.05,
                "bleu,none": 31.5,
                "bleu_stderr,none": "N/A",
                "alias": "t",
            },
            "edge": {"acc,none": 0.01, "acc_stderr,none": 0.02},
        },
        "n-samples": {
            "t": {"original": 500, "effective": 76},
            "edge": {"original": 30, "effective": 30},
        },
        "config": {
            "model": "hf",
            "model_args": "pretrained=org/some-model,api_key=sk-1,base_url=http://me:pass-1@h/v1,dtype=float16",
            "wandb_args": {"host": "https://me:pass-2@h"},
        },
        "date": 1.7e9,
    }
    (run,) = import_lm_eval(write(tmp_path / "r", results), tmp_path, "plain")
    check_schemas(run.folder)
    acc, bleu = run.task("lm-eval:t").metrics
    assert (acc.estimate.low, acc.estimate.high) == pytest.approx(
        (0.152, 0.348), abs=1e-4
    )
    assert (
        acc.estimate.method
        == "imported from lm_eval: normal interval from its standard error"
    )
    assert (acc.estimate.n, run.task("lm-eval:t").n_samples, run.model) == (
        76,
        76,
        "org/some-model",
    )
    assert math.isnan(bleu.estimate.low)
    assert "no standard error" in bleu.estimate.method
    assert run.task("lm-eval:edge").metrics[0].estimate.low == 0.0
    text = (run.folder / "run.json").read_text()
    assert not [one for one in ("sk-1", "pass-1", "pass-2") if one in text]
    assert run.data["started"].startswith("2023-11-14T22:13:20")


def test_results_of_old_versions(tmp_path: Path) -> None:
    old = {
        "results": {"boolq": {"acc": 0.75, "acc_stderr": math.sqrt(0.75 * 0.25 / 99)}},
        "versions": {"boolq": 1},
        "config": {"model": "gpt2", "model_args": "", "limit": None},
    }
    path = tmp_path / "results.json"
    path.write_text(json.dumps(old))
    lines = [{"doc_id": i, "doc": {}, "target": 1, "arguments": [["q", " no"], ["q", " yes"]],
              "resps": [[[-2.5, False]], [[-0.5, True]]], "filtered_resps": [[-2.5, False], [-0.5, True]],
              "acc": float(i < 3)} for i in range(4)]  # fmt: skip
    (run,) = import_lm_eval(path, tmp_path, "old")
    assert run.model == "gpt2"
    assert run.task("lm-eval:boolq").metrics[0].estimate.n == 100
    (tmp_path / "pretrained__gpt2_boolq.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in lines)
    )
    (run,) = import_lm_eval(path, tmp_path, "old-samples")
    (record, *_) = run.samples()
    assert record.sample.choices == ("no", "yes")
    assert record.sample.gold == (1,)
    assert run.task("lm-eval:boolq").metrics[0].estimate.method == "Wilson"


def test_a_tree_of_models_compares_and_ranks(tmp_path: Path) -> None:
    for model, right in (("a", 18), ("b", 6)):
        rows = [line(i, exact_match=float(i < right)) for i in range(20)]
        entry = {"t": {"exact_match,none": right / 20, "exact_match_stderr,none": 0.1}}
        write(
            tmp_path / "tree" / f"org__{model}",
            {"results": entry, "model_name": f"org/{model}", "config": {"model": "hf", "model_args": {"pretrained": f"org/{model}"}}},
            t=rows,
        )  # fmt: skip
    runs = import_lm_eval(tmp_path / "tree", tmp_path / "runs")
    assert [run.model for run in runs] == ["org/a", "org/b"]
    comparison = compare_runs(*runs)
    assert comparison.tasks[0].result.difference == pytest.approx(0.6)
    board = make_board(runs)
    assert [row.ranks for row in board.rows] == [(1, 1), (2, 2)]
    again = import_lm_eval(tmp_path / "tree", tmp_path / "runs")
    assert [run.id for run in again] == [run.id for run in runs]


WORTHS = [0.0, 0.4, 0.75, 1.0, 0.2, 0.6]
HITS = [0.0, 0.0, 1.0, 1.0, 0.0, 1.0]
PICKS = [1.0, 1.0, 0.0, 1.0, 1.0, 1.0]
LENGTHS = [3.0, 8.0, 1.0, 12.0, 5.0, 7.0]
SEVERAL_METRICS: dict[str, dict[str, list[float | None]]] = {
    "share and match": {"f1": [*WORTHS], "exact_match": [*HITS]},
    "match and share": {"exact_match": [*HITS], "f1": [*WORTHS]},
    "choices": {"acc": [*PICKS], "acc_norm": [*HITS], "exact_match": [*WORTHS]},
    "custom": {"length": [*LENGTHS], "exact_match": [*HITS]},
    "custom share": {"overlap": [*WORTHS], "exact_match": [*HITS]},
    "less": {"errors": [*LENGTHS], "exact_match": [*HITS], "slips": [*WORTHS]},
    "lacking": {"f1": [*WORTHS], "exact_match": [1.0, None, 0.0, 1.0, None, 1.0]},
    "scoreless": {"f1": [0.5, None, 0.25, 1.0, None, 1.0], "exact_match": [*HITS]},
}
"""By case, the metrics of a task, in the order of their files, with the items' numbers."""


def write_several(
    folder: Path, case: str, pipeline: str = "none", right: float = 1.0
) -> Path:
    """Results of a case of `SEVERAL_METRICS`. right: what its numbers are multiplied by."""
    columns = {
        name: [None if one is None else one * right for one in numbers]
        for name, numbers in SEVERAL_METRICS[case].items()
    }
    rows = [
        line(
            doc,
            filter=pipeline,
            **{name: numbers[doc] for name, numbers in columns.items()},
        )
        for doc in range(len(HITS))
    ]
    if case == "choices":
        arguments = {
            f"gen_args_{place}": {"arg_0": "Q?", "arg_1": text}
            for place, text in enumerate((" no", " yes"))
        }
        resps = [[["-0.5", "True"]], [["-1.5", "False"]]]
        rows = [
            {
                **row,
                "arguments": arguments,
                "resps": resps,
                "filtered_resps": [one[0] for one in resps],
            }
            for row in rows
        ]
    entry: dict[str, Any] = {"alias": "t"}
    for name, numbers in columns.items():
        there = [one for one in numbers if one is not None]
        entry |= {
            f"{name},{pipeline}": sum(there) / len(there),
            f"{name}_stderr,{pipeline}": 0.1,
        }
    better = {name: name not in ("errors", "slips") for name in columns}
    results = {
        "results": {"t": entry},
        "higher_is_better": {"t": better},
        "config": {"model": f"m{right:g}"},
        "model_name": f"m{right:g}",
    }
    return write(folder, results, t=rows)


@pytest.mark.parametrize("pipeline", ["none", "last"])
@pytest.mark.parametrize("case", SEVERAL_METRICS)
def test_each_of_several_metrics_is_made_of_its_own_numbers(
    case: str, pipeline: str, tmp_path: Path
) -> None:
    (run,) = import_lm_eval(
        write_several(tmp_path / "theirs", case, pipeline), tmp_path, "run"
    )
    export_lm_eval(run, tmp_path / "ours")
    (back,) = import_lm_eval(tmp_path / "ours", tmp_path, "back")
    # An item without the first metric has no score, and so no line of its own in our files.
    for one in (run,) if case == "scoreless" else (run, back):
        check_schemas(one.folder)
        assert main(["runs", "show", "--verify", str(one.folder)]) == 0
        confirmed = confirm(one)
        (task,), (recorded,) = confirmed.tasks, one.tasks
        assert [(metric.label, metric.kind) for metric in task.metrics] == [
            (metric.label, metric.kind) for metric in recorded.metrics
        ]
        for metric, numbers in zip(
            task.metrics, SEVERAL_METRICS[case].values(), strict=True
        ):
            there = [number for number in numbers if number is not None]
            assert metric.estimate.value == pytest.approx(
                sum(there) / len(there), rel=1e-9
            )
            assert (metric.estimate.n, metric.estimate.n_missing) == (
                len(there),
                len(numbers) - len(there),
            )
        published = [task.metrics[1].label] if case == "scoreless" else []
        assert confirmed.numbers_from is not None
        assert list(confirmed.numbers_from.as_published) == [
            f"lm-eval:t: {label}" for label in published
        ]


@pytest.mark.parametrize("case", ["share and match", "choices", "custom", "less"])
def test_runs_of_several_metrics_rank_and_compare_by_each(
    case: str, tmp_path: Path
) -> None:
    runs = [
        import_lm_eval(
            write_several(tmp_path / f"r{right:g}", case, right=right),
            tmp_path,
            f"run-{right:g}",
        )[0]
        for right in (1.0, 0.5)
    ]
    for name, numbers in SEVERAL_METRICS[case].items():
        mean = sum(number or 0.0 for number in numbers) / len(numbers)
        assert len(make_board(runs, name).rows) == 2
        (compared,) = compare_runs(*runs, metric=name).tasks
        assert abs(compared.result.difference) == pytest.approx(mean / 2, rel=1e-6)


def test_missing_values_are_failures_and_other_aggregations_are_not_made_up(
    tmp_path: Path,
) -> None:
    rows = [
        line(0, acc=1.0, f1=[1, 0]),
        line(1, acc=None, f1=[1, 1]),
        line(2, acc=0.0, f1=[0, 0]),
    ]
    entry = {
        "t": {
            "acc,none": 0.5,
            "acc_stderr,none": 0.5,
            "f1,none": 0.66,
            "f1_stderr,none": 0.2,
        }
    }
    (run,) = import_lm_eval(
        write(tmp_path / "r", {"results": entry}, t=rows), tmp_path, "x"
    )
    task = run.task("lm-eval:t")
    assert (task.n_samples, task.n_missing, dict(task.failures)) == (
        3,
        1,
        {"no score": 1},
    )
    acc, f1 = task.metrics
    assert (acc.estimate.value, acc.estimate.n, acc.estimate.n_missing) == (0.5, 2, 1)
    assert (f1.estimate.value, f1.estimate.method.partition(":")[0]) == (
        0.66,
        "imported from lm_eval",
    )


def test_where_less_is_better_scores_are_better_when_higher(tmp_path: Path) -> None:
    for name, errors in (("good", 0.1), ("bad", 0.9)):
        results = {
            "results": {"t": {"ter,none": errors}, "b": {"brier_score,none": 0.02}},
            "higher_is_better": {"t": {"ter": False}, "b": {"brier_score": False}},
            "config": {"model": name},
        }
        items = [line(i, ter=errors + i / 1000 - 0.0095) for i in range(20)]
        brier = [line(0, brier_score=[1, [0.1, 0.9]])]
        write(tmp_path / "tree" / name, results, t=items, b=brier)
    bad, good = import_lm_eval(tmp_path / "tree", tmp_path / "runs")
    assert (bad.model, bad.tasks[0].metrics[0].kind) == ("bad", "ter")
    assert bad.tasks[0].metrics[0].estimate.value == pytest.approx(0.9)
    compared = compare_runs(good, bad).tasks[0]
    assert compared.lower_is_better
    assert compared.result.difference == pytest.approx(-0.8)  # as the metric is
    assert list(good.samples())[-1].scores["none"].value == pytest.approx(-0.02)


def test_samples_alone_are_enough(tmp_path: Path) -> None:
    write(tmp_path / "org__m", None, t=[line(i, acc=float(i == 0)) for i in range(4)])
    (run,) = import_lm_eval(tmp_path / "org__m", tmp_path / "runs")
    assert (run.model, values(run)) == ("org/m", {"lm-eval:t acc": 0.25})
    assert run.data["started"] == "2026-01-02T03:04:05.000006+00:00"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{]\n", "line 1 is not valid JSON"),
        ("[1]\n", "line 1 is not a record"),
        ('{"doc_id": "x"}\n', "line 1 has no numeric 'doc_id'"),
        ("\n" + json.dumps(line(0, acc=1.0)) * 1 + "\n" + json.dumps(line(0, acc=1.0)) + "\n", "line 3: document 0 is there twice"),
        ('{"doc_id": 0, "filter": 7}\n', "'filter' must be a name"),
        ("[" * 100_000 + "\n", "line 1 is not valid JSON"),
        ('{"doc_id": 0, "doc": 1' + "0" * 400 + "}\n", "line 1 is not valid JSON: it has a number of 401 digits"),
        ("\xff\n", "no results of lm_eval"),
    ],
)  # fmt: skip
def test_broken_samples_are_named_with_their_line(
    tmp_path: Path, text: str, says: str
) -> None:
    name = "samples_t_2026.jsonl" if says != "no results of lm_eval" else "other.jsonl"
    (tmp_path / name).write_bytes(text.encode("latin-1"))
    with pytest.raises(RunError, match=says) as caught:
        import_lm_eval(tmp_path, tmp_path / "runs")
    assert says.startswith("no results") or name in str(caught.value)
    assert not (tmp_path / "runs").exists() or not list(
        (tmp_path / "runs").rglob("run.json")
    )


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"results": {}}',
        '{"results": {"t": 3}}',
        '{"results": {"t": {"alias": "t"}}}',
    ],
)
def test_broken_results_are_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "results_x.json"
    path.write_text(text)
    with pytest.raises(RunError, match=r"results_x\.json"):
        import_lm_eval(path, tmp_path / "runs")


ODD: list[Any] = [
    None,
    3,
    "x",
    [],
    {},
    [[]],
    [["a", "b"]],
    [[["x", "True"]]],
    {"gen_args_0": 3},
    [[None]],
    float("inf"),
]


@pytest.mark.parametrize("odd", ODD, ids=repr)
@pytest.mark.parametrize(
    "key", ["doc", "target", "arguments", "resps", "filtered_resps"]
)
def test_odd_parts_of_a_line_do_no_harm(tmp_path: Path, key: str, odd: Any) -> None:
    folder = write(
        tmp_path / "r", None, t=[{**line(0, acc=1.0), key: odd}, line(1, acc=0.0)]
    )
    (run,) = import_lm_eval(folder, tmp_path, "odd")
    assert values(run) == {"lm-eval:t acc": 0.5}
    check_schemas(run.folder)
    assert len(list(run.samples())) == 2


@pytest.mark.parametrize(
    "odd",
    [
        None,
        3,
        "x",
        [1],
        {"sums": 5, "pick": [2], "both": None},
        {"model_args": [1], "rows": 1},
    ],
)
def test_odd_parts_of_results_do_no_harm(tmp_path: Path, odd: Any) -> None:
    whole = read_results(RELEASED)
    lines = {task: read_lines(RELEASED, task) for task in ("sums", "pick")}
    for number, key in enumerate(key for key in whole if key != "results"):
        folder = write(
            tmp_path / f"in-{number}",
            {**whole, key: odd},
            sums=lines["sums"],
            pick=lines["pick"],
        )
        (run,) = import_lm_eval(folder, tmp_path / "runs", f"run-{number}")
        check_schemas(run.folder)
        export_lm_eval(run, tmp_path / f"out-{number}")
        assert values(run)["lm-eval:sums exact_match"] == 0.5


def test_another_run_is_not_overwritten(tmp_path: Path) -> None:
    import_lm_eval(RELEASED, tmp_path, "same")
    import_lm_eval(RELEASED, tmp_path, "same")
    other = write(tmp_path / "r", None, t=[line(0, acc=1.0)])
    with pytest.raises(RunError, match="choose another --name"):
        import_lm_eval(other, tmp_path, "same")
    with pytest.raises(RunError, match="does not exist"):
        import_lm_eval(tmp_path / "nowhere", tmp_path)
