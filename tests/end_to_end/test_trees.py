"""Trees of tasks from a suite file to runs, comparisons, boards and gates, through the command
line.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from evalwright.runs.reader import Run, open_run
from evalwright.runs.score_tables import item_scores
from support.typed import typed

SCHEMA = (
    Path(__file__).resolve().parents[2] / "src/evalwright/runs/schemas/run.schema.json"
)
SUITE: dict[str, Any] = {
    "tasks": ["law.yaml", "logic.yaml", "physics.yaml"],
    "tree": {
        "name": "all",
        "parts": [
            {"name": "humanities", "average": "weighted", "parts": ["law", "logic"]},
            {
                "name": "science",
                "average": "pooled",
                "missing": "ignore",
                "parts": ["physics", "chem"],
            },
        ],
    },
}
PASSAGES = 60


def write_tasks(folder: Path) -> None:
    """Questions about 60 passages, which all tasks are about: of each passage one to three in
    every task.
    """
    rng = np.random.default_rng(1)
    ease = rng.random(PASSAGES)
    for number, task in enumerate(("law", "logic", "physics", "chem")):
        rows = [
            {
                "id": f"{task}-{passage}-{place}",
                "input": f"Is {task} {passage}.{place} so?",
                "target": "yes" if rng.random() < 0.2 + 0.7 * ease[passage] else "no",
                "cluster": f"passage {passage}",
            }
            for passage in range(PASSAGES)
            for place in range(1 + (passage + number) % 3)
        ]
        content = {"task": task, "group": "exams", "dataset": {"rows": rows}}
        (folder / f"{task}.yaml").write_text(json.dumps(content), encoding="utf-8")


def ask(folder: Path, name: str, answer: str, **suite: Any) -> Run:
    (folder / f"{name}.suite.yaml").write_text(
        json.dumps({**SUITE, **suite}), encoding="utf-8"
    )
    done = typed(
        "run", "--config", f"{name}.suite.yaml", "--model", "scripted/constant", "-M", f"text={answer}", "--name", name,
        folder=folder,
    )  # fmt: skip
    assert done.code == 0, done.text
    return open_run(folder / "runs" / name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("trees")
    write_tasks(made)
    ask(made, "a", "yes")
    ask(made, "b", "no")
    return made


def told(folder: Path, *command: str, code: int = 0) -> Any:
    done = typed(*command, "--json", folder=folder)
    assert done.code == code, done.text
    return json.loads(done.out)


def group(run: Run, name: str) -> Any:
    return next(group for group in run.data["groups"] if group["name"] == name)


def bootstrap(run: Run, weights: dict[str, float]) -> tuple[float, float]:
    """The weighted mean, and its error from 4,000 resamples of the passages of all tasks
    together.
    """
    scores = item_scores(run, dict.fromkeys(weights, run.tasks[0].metrics[0].scorer))
    names = np.unique(np.concatenate([score.clusters for score in scores.values()]))
    drawn = np.random.default_rng(0).multinomial(
        len(names), np.full(len(names), 1 / len(names)), 4000
    )
    total = np.zeros(4000)
    value = 0.0
    for task, weight in weights.items():
        places = np.searchsorted(names, scores[task].clusters)
        sums = np.bincount(places, scores[task].values, len(names))
        sizes = np.bincount(places, minlength=len(names))
        total += weight * (drawn @ sums) / (drawn @ sizes)
        value += weight * float(scores[task].values.mean())
    return value, float(total.std())


def test_a_run_has_the_averages_of_its_tree(folder: Path) -> None:
    run = open_run(folder / "runs" / "a")
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).validate(run.data)
    assert [group["name"] for group in run.data["groups"]] == [
        "humanities",
        "science",
        "all",
    ]
    sizes = {task.name: task.n_samples for task in run.tasks}
    both = sizes["law"] + sizes["logic"]
    weights = {"law": sizes["law"] / both, "logic": sizes["logic"] / both}
    every = {name: weight / 2 for name, weight in weights.items()} | {"physics": 0.5}
    for name, wanted in (("humanities", weights), ("all", every)):
        (metric,) = group(run, name)["metrics"]
        value, error = bootstrap(run, wanted)
        assert metric["value"] == pytest.approx(value)
        assert metric["standard_error"] == pytest.approx(error, rel=0.06)
        alone = np.sqrt(
            sum(
                (w * (run.task(task).metrics[0].estimate.standard_error or 0)) ** 2
                for task, w in wanted.items()
            )
        )
        assert metric["standard_error"] > alone
        assert metric["n_clusters"] == PASSAGES


def test_what_is_missing_is_named_and_never_zero(folder: Path) -> None:
    run = open_run(folder / "runs" / "a")
    science = group(run, "science")
    whole = group(run, "all")
    assert (science["missing"], science["n_tasks"], science["label"]) == (
        ["chem"],
        2,
        "science (without chem)",
    )
    assert (whole["missing"], whole["n_tasks"], whole["average"]) == (
        ["chem"],
        4,
        "macro",
    )
    assert (
        "3 of 4 tasks; missing: chem" in typed("runs", "show", "a", folder=folder).text
    )
    strict = {**SUITE["tree"], "parts": [SUITE["tree"]["parts"][0], "physics", "chem"]}
    other = ask(folder, "strict", "yes", tree=strict)
    (metric,) = group(other, "all")["metrics"]
    assert metric["value"] is None and "no number" in metric["method"]
    assert group(other, "humanities")["metrics"][0]["value"] is not None
    ask(folder, "strict-b", "no", tree=strict)
    compared = told(folder, "compare", "strict", "strict-b")
    assert compared["overall"] is None
    assert [group["difference"] is None for group in compared["groups"]] == [
        False,
        True,
    ]
    shown = typed("compare", "strict", "strict-b", folder=folder).text
    assert "3 of 4 tasks; missing: chem" in " ".join(shown.split())
    gate = typed(
        "compare",
        "strict",
        "strict-b",
        "--fail-if",
        "overall changes by more than 90 points",
        folder=folder,
    )
    assert gate.code == 1 and "no number for chem" in " ".join(gate.text.split())
    board = told(folder, "leaderboard", "strict", "strict-b")
    assert all(row["overall"] is None for row in board["rows"])
    assert any("missing: chem" in note for note in board["notes"])


def test_comparisons_and_gates_by_the_tree(folder: Path) -> None:
    a, b = (open_run(folder / "runs" / name) for name in "ab")
    compared = told(folder, "compare", "a", "b")
    by_name = {group["name"]: group for group in compared["groups"]}
    gap = (
        group(a, "all")["metrics"][0]["value"] - group(b, "all")["metrics"][0]["value"]
    )
    assert by_name["all"]["difference"] == compared["overall"]
    assert compared["overall"]["difference"] == pytest.approx(gap)
    # One is right where the other is wrong, so the difference is 2 x - 1.
    error = group(a, "all")["metrics"][0]["standard_error"]
    assert compared["overall"]["standard_error"] == pytest.approx(2 * error, rel=0.15)
    points = -100 * by_name["humanities"]["difference"]["difference"]
    for by, code in (
        (abs(points) + 40, 0),
        (0, 1 if by_name["humanities"]["difference"]["p_value"] < 0.05 else 0),
    ):
        rule = f"tree.humanities changes by more than {by} points"
        assert typed("compare", "a", "b", "--fail-if", rule, folder=folder).code == code
    unknown = typed(
        "compare",
        "a",
        "b",
        "--fail-if",
        "tree.humanity drops by more than 1 point",
        folder=folder,
    )
    assert unknown.code == 2 and "tree.humanities" in unknown.text


def test_a_board_has_a_column_for_each_node(folder: Path) -> None:
    board = told(folder, "leaderboard", "a", "b")
    assert board["groups"] == ["humanities", "science"]
    run = open_run(folder / "runs" / "a")
    row = next(row for row in board["rows"] if row["run"] == "a")
    for name in board["groups"]:
        assert row["groups"][name]["value"] == group(run, name)["metrics"][0]["value"]
    assert row["overall"]["value"] == pytest.approx(
        group(run, "all")["metrics"][0]["value"]
    )
    text = typed("leaderboard", "a", "b", folder=folder).text
    assert "humanities" in text and "science" in text


def test_a_group_that_was_asked_for_is_a_tree(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = typed(
        "run", "exams", "--model", "scripted/constant", "-M", "text=yes", "--name", "grouped",
        folder=folder, extra={"EVALWRIGHT_TASKS": str(folder)},
    )  # fmt: skip
    assert done.code == 0, done.text
    (made,) = open_run(folder / "runs" / "grouped").data["groups"]
    assert (made["name"], made["average"], sorted(made["parts"])) == (
        "exams", "macro", ["chem", "law", "logic", "physics"],
    )  # fmt: skip
    typed("runs", "aggregate", "a", "--name", "again", folder=folder)
    assert (
        open_run(folder / "runs" / "again").data["groups"]
        == open_run(folder / "runs" / "a").data["groups"]
    )


def test_a_tree_that_fits_no_task_is_refused(folder: Path) -> None:
    (folder / "bad.yaml").write_text(
        json.dumps({**SUITE, "tree": {"parts": ["other"]}}), encoding="utf-8"
    )
    done = typed(
        "run",
        "--config",
        "bad.yaml",
        "--model",
        "scripted/constant",
        "-M",
        "text=x",
        folder=folder,
    )
    assert done.code == 2 and "none of the tasks of this run" in " ".join(
        done.text.split()
    )
    (folder / "bad.yaml").write_text(
        json.dumps({**SUITE, "tree": {"parts": ["law", "law"]}}), encoding="utf-8"
    )
    done = typed(
        "run",
        "--config",
        "bad.yaml",
        "--model",
        "scripted/constant",
        "-M",
        "text=x",
        folder=folder,
    )
    assert done.code == 2 and "occurs in the tree twice" in " ".join(done.text.split())


def test_a_screen_leaves_out_inner_nodes_first_and_names_several_missing_tasks_below_it(
    tmp_path: Path,
) -> None:
    inner = [
        {"name": f"area-{n:02d}", "parts": [f"t{n:02d}a", f"t{n:02d}b"]}
        for n in range(10)
    ]
    for name in [part for node in inner for part in node["parts"]][:17]:
        rows = [
            {"id": f"{name}{n}", "input": f"{name} {n}?", "target": "yes"}
            for n in range(3)
        ]
        (tmp_path / f"{name}.yaml").write_text(
            json.dumps({"task": name, "dataset": {"rows": rows}})
        )
    tasks = sorted(path.name for path in tmp_path.glob("*.yaml"))
    ask(tmp_path, "wide", "yes", tasks=tasks, tree={"name": "whole", "parts": inner})
    shown = typed("runs", "show", "wide", folder=tmp_path).text
    lines = [line.split()[0] for line in shown.splitlines() if line.startswith("  ")]
    assert lines[lines.index("Task") + 2 :][:3] == ["whole", "area-00", "area-01"]
    assert "whole (17 of 20 tasks)" in shown
    assert "Without a number: t08b, t09a and t09b." in " ".join(shown.split())
    listed = " ".join(typed("runs", "list", folder=tmp_path).text.split())
    assert "whole n/a" in listed and "t00a" not in listed


def test_a_total_without_a_number_says_why(tmp_path: Path) -> None:
    for name, metric in (("share", "accuracy"), ("plain", "mean")):
        rows = [
            {"id": f"{n}", "input": f"{name} {n}?", "target": "yes"} for n in range(3)
        ]
        content = {
            "task": name,
            "dataset": {"rows": rows},
            "metrics": [metric],
            "scorers": ["exact-match"],
        }
        (tmp_path / f"{name}.yaml").write_text(json.dumps(content))
    tree = {"name": "both", "parts": ["share", "plain"]}
    ask(tmp_path, "mixed", "yes", tasks=["share.yaml", "plain.yaml"], tree=tree)
    shown = " ".join(typed("runs", "show", "mixed", folder=tmp_path).text.split())
    assert "both: no number: the tasks have different units or directions." in shown
