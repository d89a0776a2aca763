"""Every golden run of lm-evaluation-harness 0.4.13 is reproduced: requests byte for byte,
numbers to 1e-9.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from compat.lm_eval.tasks import golden
from compat.lm_eval.tasks.conftest import work_of
from evalwright import evaluate
from evalwright.compat.lm_eval.runs.exporting import export_lm_eval
from evalwright.compat.lm_eval.tasks.loading import Library
from evalwright.compat.lm_eval.tasks.options import Options
from evalwright.compat.lm_eval.tasks.results import Group, group_results, task_results
from evalwright.compat.lm_eval.tasks.row_requests import stringify
from evalwright.core.samples import SampleRecord
from evalwright.core.tasks import Task
from evalwright.runs.reader import Run

SHIPPED = golden.shipped_folder()
pytestmark = [
    pytest.mark.skipif(
        not golden.GOLDEN.exists(),
        reason="the golden runs are not beside this checkout",
    ),
    pytest.mark.skipif(
        SHIPPED is None,
        reason="lm-evaluation-harness's task files are not on this machine",
    ),
]
pytest.importorskip("datasets")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    assert SHIPPED is not None
    folder = tmp_path_factory.mktemp("tasks")
    golden.write_tasks(folder, SHIPPED)
    return folder


def loaded(
    root: Path, name: str, shots: int | None, arguments: Mapping[str, Any]
) -> list[Task]:
    assert SHIPPED is not None
    options = Options(
        roots=(root,),
        trust=(SHIPPED, root),
        num_fewshot=shots,
        scoring="published",
        chat=bool(arguments.get("apply_chat_template")),
        multiturn=bool(arguments.get("fewshot_as_multiturn", True)),
        bootstrap=1_000,
        system=arguments.get("system_instruction") or "",
    )
    return Library(options).load(name)


def requests(task: Task, index: int) -> Iterator[list[Any]]:
    """The requests of a row in the published form."""
    for arguments in work_of(task).make_requests(task.samples[index]):
        first = golden.text_of(arguments.context)
        yield [first] if arguments.rolling else [first, arguments.second_argument]


@pytest.mark.parametrize("key", golden.keys())
def test_a_golden_run(key: str, root: Path, tmp_path: Path) -> None:
    name, shots, arguments = golden.parts(key)
    wanted = golden.runs()[key]
    tasks = loaded(root, name, shots, arguments)
    assert {task.name.removeprefix("lm-eval:") for task in tasks} == set(
        wanted["samples"]
    )
    (run,) = evaluate(tasks, golden.model_of(wanted, "golden"), seed=3)
    assert run.n_missing == 0
    records: dict[str, list[SampleRecord]] = {}
    for record in run.samples():
        records.setdefault(record.task, []).append(record)
    for task in tasks:
        check_samples(
            task,
            records[task.name],
            wanted["samples"][task.name.removeprefix("lm-eval:")],
        )
        own = task.name.removeprefix("lm-eval:")
        assert task.definition["num_fewshot"] == wanted["n-shot"][own]
        assert len(task.samples) == wanted["n-samples"][own]["effective"]
    check_results(run, tasks, wanted["results"])
    check_files(run, wanted, tmp_path / "out")


def check_samples(
    task: Task, records: list[SampleRecord], wanted: list[dict[str, Any]]
) -> None:
    work = work_of(task)
    for expected in wanted:
        index = expected["doc_id"]
        assert list(requests(task, index)) == expected["arguments"]
        pipeline = next(
            one for one in work.definition.pipelines if one.name == expected["filter"]
        )
        answer = records[index].answer
        assert answer is not None
        doc = work.opened.rows[index]
        taken = pipeline(work.responses_by_request(answer), doc)
        assert same(json.loads(json.dumps(taken)), expected["filtered_resps"])
        worth = work.opened.scoring(doc, taken)
        assert list(worth) == expected["metrics"]
        for metric, value in worth.items():
            assert same(value, expected[metric]), (metric, value, expected[metric])


def check_files(run: Run, wanted: Mapping[str, Any], folder: Path) -> None:
    """The results file and every line of the samples files are as they wrote them."""
    results, *samples = export_lm_eval(
        run, folder, render=lambda turns: golden.text_of(tuple(turns))
    )
    written = json.loads(results.read_text(encoding="utf-8"))
    for key in ("results", "n-shot", "higher_is_better", "n-samples"):
        assert same(written[key], wanted[key]), key
    for path, name in zip(samples, wanted["samples"], strict=True):
        lines = path.read_text(encoding="utf-8").splitlines()
        for line, expected in zip(
            map(json.loads, lines), wanted["samples"][name], strict=True
        ):
            for key, value in as_written(expected).items():
                assert (
                    same(line[key], value)
                    if key in line["metrics"]
                    else line[key] == value
                ), key
            assert set(line) == {*expected, "doc"}


def as_written(sample: Mapping[str, Any]) -> dict[str, Any]:
    """A golden sample in the form of a samples file: arguments by name, answers and target as
    text.
    """
    arguments = {
        f"gen_args_{i}": {f"arg_{j}": part for j, part in enumerate(parts)}
        for i, parts in enumerate(sample["arguments"])
    }
    answers = {key: stringify(sample[key]) for key in ("resps", "filtered_resps")}
    return {
        **sample,
        **answers,
        "arguments": arguments,
        "target": str(sample["target"]),
    }


def check_results(run: Run, tasks: list[Task], wanted: Mapping[str, Any]) -> None:
    results = task_results(run.data["tasks"])
    for task in tasks:
        for group in task.definition["groups"]:
            results[group["name"]] = group_results(Group.from_dict(group), results)
    assert set(results) == set(wanted)
    for name, expected in wanted.items():
        found = results[name]
        assert set(found) == set(expected), (name, found, expected)
        for key, value in expected.items():
            assert same(found[key], value), (name, key, found[key], value)


def same(found: Any, wanted: Any) -> bool:
    """Equal, numbers to 1e-9."""
    if (
        isinstance(wanted, str)
        and _is_number(wanted)
        and isinstance(found, int | float)
    ):
        wanted = float(wanted)
    if isinstance(wanted, float) and isinstance(found, int | float):
        return math.isclose(found, wanted, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(same, found, wanted))
    if isinstance(wanted, dict):
        return set(found) == set(wanted) and all(
            same(found[key], wanted[key]) for key in wanted
        )
    return bool(found == wanted)


def _is_number(text: str) -> bool:
    """The golden file has numpy's numbers as text."""
    try:
        float(text)
    except ValueError:
        return False
    return True
