"""Bad input meets one sentence and exit code 2: what happened, where, and what to do.

Never a traceback.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from support.command import environment
from support.typed import typed

GOOD_TASK = """\
task: capitals
dataset: rows.jsonl
sample: {id: "{{ id }}", input: "{{ question }}", target: "{{ answer }}"}
prompt: {user: "{{ input }}"}
answer: {mode: generate}
scorers: [exact-match]
"""
CHOICE_TASK = """\
task: pick
dataset: rows.jsonl
sample: {id: "{{ id }}", input: "{{ question }}", choices: [Paris, Rome], target: "{{ answer }}"}
prompt: {user: "{{ input }}"}
answer: {mode: likelihood}
"""
ROWS = [
    {"id": str(i), "question": f"Question {i}?", "answer": "Paris"} for i in range(3)
]
ECHO = ("--model", "scripted/echo")


@dataclass
class Case:
    """What is typed, what lies in the folder, and what the sentence must say."""

    name: str
    arguments: tuple[str, ...]
    says: tuple[str, ...]
    files: dict[str, str] = field(default_factory=dict)
    prepare: Callable[[Path], None] = lambda folder: None
    environment: dict[str, str] = field(default_factory=dict)


def task(text: str = GOOD_TASK, rows: str | None = None) -> dict[str, str]:
    lines = "".join(json.dumps(row) + "\n" for row in ROWS) if rows is None else rows
    return {"task.yaml": text, "rows.jsonl": lines}


def many_rows(broken: str, number: int) -> str:
    good = [
        json.dumps({"id": str(i), "question": "q", "answer": "a"})
        for i in range(1, 2001)
    ]
    good[number - 1] = broken
    return "\n".join(good) + "\n"


def unwritable(folder: Path) -> None:
    (folder / "runs").write_text("a file stands where the folder should be")


def taken_home(folder: Path) -> None:
    (folder / "home").write_text("a file")


def damaged_store(folder: Path) -> None:
    (folder / "home").mkdir()
    (folder / "home" / "store.sqlite").write_bytes(b"this is not a database, " * 100)


def not_utf8(folder: Path) -> None:
    (folder / "rows.jsonl").write_bytes(b'{"id": "\xff\xfe"}\n')


def other_run(folder: Path) -> None:
    assert (
        typed(
            "run", "task.yaml", *ECHO, "--name", "mine", "--limit", "1", folder=folder
        ).code
        == 0
    )


def broken_run(folder: Path) -> None:
    (folder / "runs" / "half").mkdir(parents=True)
    (folder / "runs" / "half" / "run.json").write_text("{")


RUN = ("run", "task.yaml", *ECHO)
CASES = [
    # names
    Case("misspelt task", ("run", "factul", *ECHO), ("Unknown task 'factul'", "factual")),
    Case("misspelt task file", ("run", "tsk.yaml", *ECHO), ("tsk.yaml", "task.yaml"), task()),
    Case("misspelt provider", ("run", "task.yaml", "--model", "scriptd/echo"), ("scriptd", "scripted"), task()),
    Case("provider without name", ("run", "task.yaml", "--model", "scripted"), ("provider/name",), task()),
    Case("unknown scripted model", ("run", "task.yaml", "--model", "scripted/ehco"), ("ehco", "echo"), task()),
    Case("unknown demo model", ("run", "task.yaml", "--model", "demo/smal"), ("smal", "small"), task()),
    Case("misspelt model argument", (*RUN[:2], "--model", "scripted/constant", "-M", "txt=x"), ("txt", "text"), task()),
    Case("revision where there is none", ("run", "task.yaml", "--model", "scripted/echo@v2"), ("no revisions",), task()),
    Case("misspelt command", ("rnu",), ("Unknown command 'rnu'", "run")),
    Case("misspelt flag", (*RUN, "--limt", "3"), ("--limt", "--limit"), task()),
    Case("misspelt scorer", RUN, ("exact-mach", "exact-match"), task(GOOD_TASK.replace("exact-match", "exact-mach"))),
    Case(
        "misspelt metric", RUN, ("acuracy", "accuracy"), task(GOOD_TASK + "metrics: [acuracy]\n")
    ),
    Case(
        "misspelt scorer option",
        RUN,
        ("ignore_cas", "ignore_case"),
        task(GOOD_TASK.replace("[exact-match]", "[{exact-match: {ignore_cas: true}}]")),
    ),
    Case("unknown sample", ("tasks", "preview", "task.yaml", "--sample", "17"), ("17",), task()),
    Case("unknown run", ("runs", "show", "nothing"), ("Unknown run 'nothing'",)),
    Case("no such run to compare", ("compare", "a", "b"), ("Unknown run 'a'",)),
    # task files
    Case("misspelt key", RUN, ("task.yaml:2", "datset", "dataset"), task(GOOD_TASK.replace("dataset", "datset"))),
    Case("misspelt nested key", RUN, ("task.yaml:3", "imput", "input"), task(GOOD_TASK.replace("input:", "imput:"))),
    Case("broken YAML", RUN, ("task.yaml:",), task(GOOD_TASK.replace('"{{ input }}"}', '"{{ input }}"'))),
    Case("key twice", RUN, ("task.yaml:7", "twice"), task(GOOD_TASK + "task: again\n")),
    Case("YAML tag", RUN, ("task.yaml:7", "tag"), task(GOOD_TASK + "description: !!python/name:os.system x\n")),
    Case("empty task file", RUN, ("task.yaml", "empty"), task("")),
    Case("wrong type", RUN, ("task.yaml:5", "mode"), task(GOOD_TASK.replace("mode: generate", "mode: 7"))),
    Case("unknown mode", RUN, ("task.yaml:5", "generate"), task(GOOD_TASK.replace("mode: generate", "mode: generat"))),
    Case("broken template", RUN, ("task.yaml:",), task(GOOD_TASK.replace("{{ question }}", "{{ question"))),
    Case("include of nothing", RUN, ("base.yaml",), task(GOOD_TASK + "include: base.yaml\n")),
    Case("include of itself", RUN, ("include",), task(GOOD_TASK + "include: task.yaml\n")),
    # data
    Case("no such data file", RUN, ("rows.jsonl",), {"task.yaml": GOOD_TASK}),
    Case("broken JSON in row 1,234", RUN, ("rows.jsonl", "row 1,234"), task(rows=many_rows('{"id": "x", ', 1234))),
    Case("missing column", RUN, ("rows.jsonl", "question"), task(rows='{"id": "1", "qestion": "?", "answer": "a"}\n')),
    Case("missing column in row 77", RUN, ("77", "answer"), task(rows=many_rows('{"id": "x", "question": "?"}', 77))),
    Case("empty dataset", RUN, ("rows.jsonl",), task(rows="")),
    Case("nothing left after the filter", RUN, ("where",), task(GOOD_TASK + "where: {answer: Rome}\n")),
    Case("duplicate ids", RUN, ("'1'", "2", "3"), task(rows='{"id":"0","question":"a","answer":"b"}\n' + 2 * '{"id":"1","question":"a","answer":"b"}\n')),
    Case(
        "target not among the choices",
        ("run", "task.yaml", "--model", "scripted/hash"),
        ("Lyon", "rows.jsonl"),
        task(CHOICE_TASK, rows='{"id": "1", "question": "?", "answer": "Lyon"}\n'),
    ),
    Case("not UTF-8", RUN, ("rows.jsonl", "UTF-8"), task(), not_utf8),
    Case("row that is a list", RUN, ("rows.jsonl",), task(rows="[1, 2]\n")),
    # places
    Case("run folder cannot be made", RUN, ("runs", "cannot be written", "--out"), task(), unwritable),
    Case("store folder is a file", (*RUN, "--home", "home"), ("home",), task(), taken_home),
    Case("store is no database", (*RUN, "--home", "home"), ("home",), task(), damaged_store),
    Case("name of another run", (*RUN, "--name", "mine"), ("mine", "--replace"), task(), other_run),
    Case("damaged run record", ("runs", "show", "half"), ("run.json", "JSON"), {}, broken_run),
    Case("plug-in that does not exist", (*RUN, "--plugin", "mine.py"), ("mine.py", "does not exist"), task()),
    Case("plug-in that fails", (*RUN, "--plugin", "mine.py"), ("mine.py", "ZeroDivisionError"), {**task(), "mine.py": "1 / 0\n"}),
    # models
    Case("no key", ("run", "task.yaml", "--model", "openai/gpt-4o-mini"), ("OPENAI_API_KEY",), task()),
    Case("no such model folder", ("run", "task.yaml", "--model", "hf/./nowhere"), ("nowhere",), task()),
    Case("no such ONNX folder", ("run", "task.yaml", "--model", "onnx/./nowhere"), ("nowhere",), task()),
    Case("no such recording", ("run", "task.yaml", "--model", "replay/nowhere.jsonl"), ("nowhere.jsonl",), task()),
    Case("bad base URL", ("run", "task.yaml", "--model", "openai/x", "-M", "base_url=localhost"), ("localhost",), task()),
    Case(
        "chat model without log-likelihoods",
        ("run", "task.yaml", "--model", "openai/gpt-4o-mini"),
        ("log-likelihood",),
        task(CHOICE_TASK),
        environment={"OPENAI_API_KEY": "sk-test"},
    ),
    # arguments
    Case("argument without value", (*RUN, "-M", "text"), ("key=value",), task()),
    Case("limit of nothing", (*RUN, "--limit", "0"), ("at least 1",), task()),
    Case("limit that is not a number", (*RUN, "--limit", "many"), ("many",), task()),
    Case("no task", ("run", *ECHO), ("task",)),
    Case("no model", ("run", "task.yaml"), ("--model",), task()),
    Case("task twice", ("run", "task.yaml", "task.yaml", *ECHO), ("twice",), task()),
    Case("role without model", (*RUN, "--role", "judge"), ("role=provider/name",), task()),
    Case("suite that does not exist", ("run", "--config", "suite.yaml"), ("suite.yaml", "does not exist")),
    Case("suite with a misspelt key", ("run", "--config", "s.yaml"), ("s.yaml:2", "modles", "models"), {"s.yaml": "tasks: [factual]\nmodles: [demo/small]\n"}),
    Case("suite with a wrong type", ("run", "--config", "s.yaml"), ("s.yaml:3", "limit"), {"s.yaml": "tasks: [factual]\nmodels: [demo/small]\nlimit: ten\n"}),
    Case("leaderboard of nothing", ("leaderboard",), ("RUNS",)),
    Case("leaderboard that cannot be written", ("leaderboard", "mine", "--html", "task.yaml/board.html"), ("board.html",), task(), other_run),
    Case("score with an unknown scorer", ("score", "mine", "--scorer", "exact"), ("exact",), task(), other_run),
    Case("score under the same name", ("score", "mine", "--name", "mine"), ("--name",), task(), other_run),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_bad_input_meets_a_sentence(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in case.files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    case.prepare(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith(("EVALWRIGHT_", "OPENAI_")):
            monkeypatch.delenv(name)
    for name, value in case.environment.items():
        monkeypatch.setenv(name, value)
    done = typed(*case.arguments)
    text = done.text
    assert done.code == 2, text
    assert "Traceback" not in text
    assert "this is a bug in evalwright" not in text
    for words in case.says:
        assert words in text, f"{words!r} is not in: {text}"
    sentences = [line for line in text.splitlines() if re.match(r"Error: ", line)]
    assert len(sentences) == 1, text


def test_a_full_disk_is_a_sentence_and_loses_nothing(tmp_path: Path) -> None:
    """A file-size limit stands for the full disk: writing fails in the middle of the run."""
    for name, text in task(
        rows=many_rows('{"id": "x", "question": "q", "answer": "a"}', 5)
    ).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    limited = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000));"
        "from evalwright.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", limited, *RUN, "--name", "full", "--quiet"],
        cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=1800, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("Error: ") == 1
    assert "File too large" in done.stderr or "full" in done.stderr
    again = typed(*RUN, "--name", "full", folder=tmp_path)
    assert again.code == 0, again.text


def test_a_missing_extra_names_its_install_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`hf/` without torch: an interpreter that cannot import it stands for a machine without it."""
    for name, text in task().items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text('{"model_type": "llama"}')
    without = "import sys; sys.modules['torch'] = None; from evalwright.cli import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", without, "run", "task.yaml", "--model", "hf/./model"],
        cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=1800, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done.stdout + done.stderr
    assert "pip install 'evalwright[hf]'" in done.stderr
