"""Merging shards: the whole run or a sentence, and nothing that a reader of runs does not load."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from evalwright import Run, evaluate, merge_runs
from evalwright.core.errors import ConfigurationError, RunError, UnknownName, UsageError
from evalwright.core.private import home_folder
from evalwright.runs.merging import ShardsMissing
from evalwright.runs.writer import RunWriter
from support.command import ROOT, records, write_questions
from support.runs import edited
from support.typed import typed


@pytest.fixture(autouse=True)
def _folder(own_folder: Path) -> None:
    write_questions(own_folder, 7)


def shards(of: int = 3, task: str = "questions.yaml", **settings: Any) -> list[Run]:
    given = {"models": "scripted/hash", "name": "made", "limit": 5, **settings}
    return [
        run
        for number in range(1, of + 1)
        for run in evaluate(task, shard=f"{number}/{of}", **given)
    ]


def whole(task: str = "questions.yaml", **settings: Any) -> Run:
    (run,) = evaluate(
        task, **{"models": "scripted/hash", "name": "whole", "limit": 5, **settings}
    )
    return run


def edit(run: Run, /, **changes: Any) -> None:
    """Change the part "shard" of a record."""
    with edited(run.folder) as data:
        data["shard"] |= changes


def same(made: Run, other: Run) -> None:
    assert (made.folder / "samples.jsonl").read_bytes() == (
        other.folder / "samples.jsonl"
    ).read_bytes()
    for key in ("identity", "tasks", "groups", "model", "roles"):
        assert made.data.get(key) == other.data.get(key)


@pytest.mark.parametrize("of", [1, 2, 5, 9])
def test_merged_is_whole_also_where_shards_are_empty(of: int) -> None:
    shards(of)
    (made,) = merge_runs("made")
    same(made, whole())
    assert made.id == "made"
    assert made.data["configuration"] == {
        **whole().data["configuration"],
        "name": "made",
    }
    (again,) = merge_runs("made")  # it may be replaced by itself
    assert again.data["tasks"] == made.data["tasks"]


def test_a_merge_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """For its shards alone, of which there may be none yet, nor a folder of runs; what is wrong
    ends it at once.
    """
    slept: list[float] = []
    really = time.sleep

    def sleep(seconds: float) -> None:
        if seconds != 30:  # a run waits too
            really(seconds)
            return
        slept.append(seconds)
        evaluate(
            "questions.yaml",
            shard=f"{len(slept)}/2",
            models="scripted/hash",
            name="made",
            limit=5,
        )

    monkeypatch.setattr(time, "sleep", sleep)
    done = typed("runs", "merge", "made", "--wait")
    assert (done.code, slept) == (0, [30, 30]), done.text
    assert done.err.count("Waiting. ") == 2 and "shard 2 of 2 is missing" in done.err
    (Path("runs/made.shard-2-of-2") / "run.json").write_text("{", encoding="utf-8")
    done = typed("runs", "merge", "made", "--wait")
    assert (done.code, len(slept)) == (2, 2), done.text
    assert "Waiting" not in done.err


def test_shards_that_run_are_named_as_running() -> None:
    """One that has finished and one that runs; then none that has finished; then one that is
    made again.
    """
    finished, other = shards(2)
    shutil.move(other.folder, "kept")
    with RunWriter(other.folder):
        for _ in range(2):
            done = typed("runs", "merge", "made")
            assert done.code == 2
            assert (
                "shard 2 of 2 is missing. Still running: 'made.shard-2-of-2' (last written"
                in done.err
            )
            assert "--wait" in done.err
        shutil.move(finished.folder, "elsewhere")
        done = typed("runs", "merge", "made")
        assert (
            done.code,
            "No shard of 'made' has finished yet. Still running: " in done.err,
        ) == (2, True), done.err
        with pytest.raises(ShardsMissing):
            merge_runs("made")
    shutil.move("elsewhere", finished.folder)
    shutil.rmtree(other.folder)
    shutil.move("kept", other.folder)
    with RunWriter(finished.folder):
        done = typed("runs", "merge", "made")
        assert (
            done.code,
            "is being made again. Still running: 'made.shard-1-of-2'" in done.err,
        ) == (
            2,
            True,
        ), done.err
    assert not Path("runs/made").exists()
    assert typed("runs", "merge", "made").code == 0


def test_what_a_killed_shard_left_behind_does_not_run() -> None:
    finished, _ = shards(2)
    left = finished.folder / ".samples.jsonl.99999999.0.partial"
    left.write_bytes(b"")
    os.utime(left, (0, 0))
    assert typed("runs", "merge", "made").code == 0


def test_shards_by_name_from_anywhere(tmp_path: Path) -> None:
    found = shards()
    for run in found:
        shutil.move(run.folder, tmp_path / run.id)
    named = [tmp_path / run.id for run in reversed(found)]
    (made,) = merge_runs(named, name="other", out=tmp_path / "merged")
    assert made.folder == tmp_path / "merged" / "other"
    assert made.data["configuration"]["name"] == "other"
    same(made, whole())


def test_what_is_not_whole_is_named_and_nothing_is_written() -> None:
    found = shards(9)
    for number in (2, 3, 5):
        shutil.rmtree(found[number - 1].folder)
    with pytest.raises(RunError, match=r"shards 2, 3, 5 of 9 .*--shard 2/9"):
        merge_runs("made")
    with pytest.raises(RunError, match=r"shards 2, 3, 4, 5, 6, 7 and others of 9"):
        merge_runs(found[0])
    assert not Path("runs/made").exists()


def test_a_model_without_any_shard_is_missed() -> None:
    for run in shards(2, models={"a": "scripted/hash", "b": "scripted/echo"}):
        if run.data["model"]["label"] == "b":
            shutil.rmtree(run.folder)
    with pytest.raises(RunError, match="no shard of the run 'made-b'"):
        merge_runs("made")
    assert [run.id for run in merge_runs("made-a")] == ["made-a"]


def test_of_several_numbers_of_shards_the_complete_one_counts() -> None:
    shards(2)
    shutil.rmtree(shards(3)[1].folder)
    (made,) = merge_runs("made")
    assert [one["run"] for one in made.data["merged_from"]] == [
        "made.shard-1-of-2",
        "made.shard-2-of-2",
    ]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"seed": 4}, "'seed'"),
        ({"limit": 4}, "'limit'"),
        ({"models": "scripted/echo"}, "the model"),
        ({"tree": {"parts": ["questions"]}}, "'tree'"),
        ({"overrides": {"prompt.user": "Say: {{ input }}"}}, "the task 'questions'"),
    ],
)
def test_shards_of_different_evaluations(settings: dict[str, Any], said: str) -> None:
    shards()
    given = {
        "models": "scripted/hash",
        "name": "made",
        "limit": 5,
        "shard": "2/3",
        "replace": True,
    }
    evaluate("questions.yaml", **{**given, **settings})
    with pytest.raises(RunError, match="are not shards of the same run") as error:
        merge_runs("made")
    assert said in str(error.value)
    assert not Path("runs/made/run.json").exists()


def test_shards_of_other_paces_are_one_run() -> None:
    """What cannot change an answer may differ from node to node."""
    found = shards()
    with edited(found[1].folder) as data:
        data["configuration"]["models"][0]["arguments"] = {"max_concurrency": 4}
    (made,) = merge_runs("made")
    assert made.id == "made"


def test_a_shard_that_cannot_be_read_is_said_to_be_so() -> None:
    found = shards()
    (found[1].folder / "run.json").write_text("")
    with pytest.raises(RunError, match=r"shard 2 of 3 .*run\.json.*--shard 2/3"):
        merge_runs("made")


def test_samples_that_are_missing_without_a_trace() -> None:
    for run in shards():
        edit(run, answers=9)
    with pytest.raises(RunError, match="have 5 answers, and the whole run has 9"):
        merge_runs("made")
    assert not Path("runs/made/run.json").exists()


def test_samples_that_were_changed_or_are_in_two_shards() -> None:
    found = shards()
    text = (found[1].folder / "samples.jsonl").read_text(encoding="utf-8")
    (found[1].folder / "samples.jsonl").write_text(
        text.replace("Question", "question"), encoding="utf-8"
    )
    with pytest.raises(RunError, match="was changed after the run"):
        merge_runs("made")
    shutil.rmtree(found[1].folder)
    shutil.copytree(found[0].folder, found[1].folder)
    edit(found[1], number=2)
    with pytest.raises(RunError, match="is in two of them"):
        merge_runs("made")
    assert not Path("runs/made/run.json").exists()


def test_a_sample_that_is_no_shards_is_not_said_to_be_in_two() -> None:
    """Each way in which a record can be where none belongs has its own sentence."""
    found = shards()
    last = found[1]
    lines = last.samples_file.read_text(encoding="utf-8").splitlines(keepends=True)
    foreign = json.dumps({**json.loads(lines[0]), "id": "foreign", "index": 0}) + "\n"
    for more, said in (
        (
            [*lines, foreign],
            "sample foreign is at another place in 'made.shard-2-of-3' than the run gave it",
        ),
        ([lines[0], *lines], "is in 'made.shard-2-of-3' twice"),
        (
            [*lines, foreign.replace('"task": "', '"task": "not-')],
            "which is no task of the run",
        ),
    ):
        text = "".join(more)
        last.samples_file.write_text(text, encoding="utf-8")
        data = json.loads((last.folder / "run.json").read_text(encoding="utf-8"))
        data["samples"] |= {
            "records": len(more),
            "sha256": hashlib.sha256(text.encode()).hexdigest(),
        }
        (last.folder / "run.json").write_text(json.dumps(data), encoding="utf-8")
        with pytest.raises(RunError, match=re.escape(said)) as error:
            merge_runs("made")
        assert "in two of them" not in str(error.value)
    assert not Path("runs/made/run.json").exists()


BROKEN: list[dict[str, Any]] = [
    {"number": "1"}, {"number": None}, {"of": 10**12}, {"of": 0}, {"of": "3"}, {"run": "../../out"}, {"run": None}, {"identity": 5},
    {"answers": "x"}, {"runs": 7}, {"runs": [[]]}, {"name": []},
]  # fmt: skip


@pytest.mark.parametrize("changes", BROKEN, ids=str)
def test_a_broken_shard_is_a_sentence(changes: dict[str, Any]) -> None:
    found = shards()
    for run in found:
        edit(run, **changes)
    for words in ([run.id for run in found], ["made"]):
        done = typed("runs", "merge", *words)
        assert done.code in (0, 2), done.text
        assert "bug in evalwright" not in done.text
        assert done.code == 0 or done.err.startswith("Error: ")
    here = Path.cwd().resolve()
    assert not [
        *here.rglob("out"),
        *(parent for parent in here.parents[:2] if (parent / "out").exists()),
    ]
    assert typed("runs", "list").code == 0
    assert typed("runs", "show", found[0].id).code == 0


def test_names_that_cannot_be() -> None:
    shards(2, models={"a": "scripted/hash", "b": "scripted/echo"})
    plain = whole(limit=4)
    for arguments, error, said in (
        ({"runs": "made", "name": "x"}, ConfigurationError, "shards of 2 runs"),
        (
            {"runs": "made-a", "name": "../x"},
            ConfigurationError,
            "cannot be the name of a run",
        ),
        ({"runs": "made-a", "name": "whole"}, ConfigurationError, "holds another run"),
        ({"runs": plain}, RunError, "'whole' is not a shard"),
        ({"runs": "mad-a"}, UnknownName, "Did you mean 'made-a'"),
        (
            {"runs": "made-a", "dialect": {"trust": ["x"]}},
            ConfigurationError,
            "--trust has no effect",
        ),
    ):
        with pytest.raises(error) as raised:
            merge_runs(**arguments)
        assert said in str(raised.value)


LM_EVAL = """\
task: sky
dataset_path: json
dataset_kwargs: {data_files: {test: tasks/rows.jsonl}}
test_split: test
doc_to_text: "{{question}}"
doc_to_choice: [red, blue]
doc_to_target: "{{answer}}"
output_type: multiple_choice
metric_list: [{metric: acc}, {metric: f1, aggregation: f1}]
"""


@pytest.mark.parametrize("python", [False, True])
def test_tasks_of_another_framework(python: bool) -> None:
    """By the record alone; those whose settings are Python by their files, which are trusted
    anew.
    """
    place = Path("tasks")
    place.mkdir()
    gold = "!function own.gold" if python else '"{{answer}}"'
    (place / "sky.yaml").write_text(
        LM_EVAL.replace('"{{answer}}"', gold), encoding="utf-8"
    )
    (place / "own.py").write_text(
        "def gold(doc):\n    return doc['answer']\n", encoding="utf-8"
    )
    rows = [{"question": f"Sky {n}?", "answer": n % 2} for n in range(9)]
    (place / "rows.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
    )
    trust = {"task_root": ["tasks"], **({"trust": ["tasks"]} if python else {})}
    shards(2, "lm-eval:sky", dialect=trust)
    if python:
        with pytest.raises(UsageError, match="trust"):
            merge_runs("made")
        assert not Path("runs/made/run.json").exists()
    (made,) = merge_runs("made", dialect=trust if python else {})
    same(made, whole("lm-eval:sky", dialect=trust))
    assert [metric.label for metric in made.tasks[0].metrics] == ["acc", "f1"]


def test_metrics_of_a_plug_in_need_it(tmp_path: Path) -> None:
    Path("mine.py").write_text(
        "import evalwright\nfrom evalwright.statistics import mean_interval\n"
        "@evalwright.metric('twice')\ndef twice(column):\n    return mean_interval(2 * column.values)\n"
    )

    def ended(*words: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "evalwright", *words]
        done = subprocess.run(
            command, env=ENVIRONMENT, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stderr

    made = (
        "run",
        "questions.yaml",
        "--model",
        "scripted/hash",
        "-T",
        'metrics=["twice"]',
        "--name",
        "made",
    )
    for shard in ("1/2", "2/2"):
        code, said = ended(*made, "--plugin", "mine.py", "--shard", shard)
        assert code == 0, said
    code, said = ended("runs", "merge", "made")
    assert code == 2 and "Unknown metric 'twice'" in said
    assert ended("runs", "merge", "made", "--plugin", "mine.py")[0] == 0


ENVIRONMENT = {"PYTHONPATH": str(ROOT / "src"), "PATH": "/usr/bin:/bin"}


def test_merging_loads_no_engine_no_dialect_and_no_http() -> None:
    shards()
    script = (
        "import sys; from evalwright.cli import main; assert main(['runs', 'merge', 'made', '--json']) == 0; "
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        check=True,
    )
    loaded = set(done.stderr.split())
    forbidden = (
        "evalwright.engine",
        "evalwright.compat",
        "evalwright.evaluation",
        "evalwright.models.remote",
    )
    assert not [name for name in loaded if name.startswith(forbidden)]
    assert not loaded & {
        "aiohttp",
        "pyreqwest",
        "asyncio",
        "rich",
        "yaml",
        "pydantic",
        "jinja2",
    }
    assert json.loads(done.stdout)[0]["id"] == "made"


def test_neither_models_nor_data_nor_the_store_are_needed() -> None:
    shards()
    wanted = records(whole().folder)
    for path in ("questions.yaml", "questions.jsonl"):
        Path(path).unlink()
    home = home_folder()
    shutil.rmtree(home)
    (made,) = merge_runs("made")
    assert records(made.folder) == wanted
    assert not home.exists()


def test_errors_are_errors_of_use() -> None:
    with pytest.raises(UsageError):
        merge_runs("nothing")
