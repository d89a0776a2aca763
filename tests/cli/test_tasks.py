"""`evalwright tasks`: listing, showing, previewing and checking."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from evalwright.extend import Dialect, ListedTask, ScoringRules, register_dialect
from support.typed import typed

PARTS = [
    "factual-closed-book", "factual-grounded", "factual-id", "factual-ko", "factual-stress",
    "factual-stress-languages", "factual-th",
]  # fmt: skip


def test_list() -> None:
    done = typed("tasks", "list")
    assert done.code == 0
    names = [line.split()[0] for line in done.out.splitlines()]
    assert names == sorted(names)
    assert {"factual", *PARTS} <= set(names)
    rows = json.loads(typed("tasks", "list", "--json").out)
    assert {"name", "description", "members", "groups", "path"} <= rows[0].keys()
    assert set(PARTS) <= {row["name"] for row in rows}


def test_list_shows_folders_and_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    (folder / "mine").mkdir()
    (folder / "mine" / "good.yaml").write_text(
        "task: good\ndescription: Mine.\ndataset: {rows: [{input: a, target: b}]}\n"
    )
    (folder / "mine" / "bad.yaml").write_text("task: [\n")
    monkeypatch.setenv("EVALWRIGHT_TASKS", str(folder / "mine"))
    lines = typed("tasks", "list").out.splitlines()
    assert any(line.startswith("good ") and "Mine." in line for line in lines)
    assert any(line.startswith("bad ") and "cannot be used" in line for line in lines)


def test_preview_as_a_chat_model_gets_it() -> None:
    text, chat = (
        json.loads(
            typed(
                "tasks", "preview", "questions.yaml", "--json", "--model", model, *more
            ).out
        )
        for model, more in (
            ("scripted/constant", ("-M", "text=x")),
            ("scripted/echo", ()),
        )
    )
    assert chat[0]["requests"][0]["generate"] == [["user", "Question 00000?"]]
    assert text[0]["requests"][0]["max_tokens"] == 20
    assert (chat[0]["task"], chat[0]["sample"]) == ("questions", "q00000")


def test_preview_of_a_group_is_one_document_and_finds_the_sample() -> None:
    rows = json.loads(typed("tasks", "preview", "factual", "--json").out)
    assert [row["task"] for row in rows] == PARTS
    name = rows[1]["sample"]
    found = json.loads(
        typed("tasks", "preview", "factual", "--sample", name, "--json").out
    )
    assert [(row["task"], row["sample"]) for row in found] == [(PARTS[1], name)]
    assert found[0] == rows[1]
    wrong = typed("tasks", "preview", "factual", "--sample", name + "x")
    assert wrong.code == 2
    assert f"'{name}'" in wrong.err


@pytest.mark.parametrize("mode", ["likelihood", "letter", "continuation", "perplexity"])
def test_preview_of_every_mode(mode: str) -> None:
    Path("m.yaml").write_text(
        "task: m\ndataset: {rows: [{id: a, input: Which?, target: x}]}\n"
        f"sample: {{choices: [x, y]}}\nanswer: {{mode: {mode}}}\n"
    )
    done = typed("tasks", "preview", "m.yaml")
    assert done.code == 0, done.err
    (row,) = json.loads(typed("tasks", "preview", "m.yaml", "--json").out)
    assert len(row["requests"]) == (2 if mode in ("likelihood", "letter") else 1)


def test_preview_shows_settings_as_a_task_file_has_them() -> None:
    Path("set.yaml").write_text(
        "task: set\ndataset: {rows: [{input: Which?, target: x}]}\n"
        'answer: {mode: generate, stop: ["\\n\\n", "가"], temperature: 1}\n'
    )
    generated = typed("tasks", "preview", "set.yaml").out
    assert '[stop] ["\\n\\n", "가"]' in generated
    assert "[temperature] 1.0" in generated
    assert "'" not in generated
    Path("ll.yaml").write_text(
        "task: ll\ndataset: {rows: [{input: Which?, target: x}]}\n"
        "sample: {choices: [x, y]}\nanswer: {mode: letter}\n"
    )
    assert '[continuation] " A"' in typed("tasks", "preview", "ll.yaml").out


def test_preview_of_a_pair_that_is_classified() -> None:
    Path("pair.yaml").write_text(
        'task: pair\ndataset: {rows: [{input: A claim., target: "yes"}]}\n'
        'sample: {choices: ["yes", "no"], passages: [A passage.]}\nanswer: {mode: classify}\n'
    )
    done = typed("tasks", "preview", "pair.yaml")
    assert done.code == 0, done.err
    assert (
        "[classify: premise]\nA passage.\n[classify: hypothesis]\nA claim.\n"
        in done.out
    )


def test_check() -> None:
    done = typed("tasks", "check", "factual-closed-book", "questions.yaml")
    assert done.code == 0, done.out
    assert "FAULT" not in done.out
    assert "gold answers score 1 on all samples" in done.out
    assert re.search(r"\d+ of \d+ questions contain their gold answer\n", done.out)
    assert "of 100" not in done.out


def test_check_ends_with_1_where_there_is_a_fault() -> None:
    Path("same.yaml").write_text(
        "task: same\ndataset: {rows: [{id: a, input: q, target: x}, {id: b, input: q, target: x}]}\n"
    )
    done = typed("tasks", "check", "same.yaml")
    assert done.code == 1
    assert "FAULT 1 question occurs more than once" in done.out
    assert "FAULT always 'x': 100%" in done.out


@pytest.mark.parametrize("command", ["show", "preview", "check"])
def test_text_of_a_task_cannot_act_on_the_terminal(command: str) -> None:
    Path("t.yaml").write_text(
        'task: t\ndescription: "d\\e[31m\\u202e"\n'
        'dataset: {rows: [{input: "a\\e]0;title\\a\\u202eb\\n\\tc", target: "\\e[2J"}]}\n'
    )
    done = typed("tasks", command, "t.yaml")
    assert not {"\x1b", "\u202e", "\x07"} & set(done.out + done.err)
    if command == "show":
        assert r"d\x1b[31m\u202e" in done.out
    if command == "preview":
        assert r"a\x1b]0;title\x07\u202eb" + "\n\tc" in done.out


@pytest.mark.parametrize(
    ("given", "key"),
    [("nosuch=1", "nosuch"), ("prompt.few_shot.count=many", "prompt.few_shot.count")],
)
def test_a_wrong_override_is_named_and_not_the_file(given: str, key: str) -> None:
    done = typed("tasks", "show", "questions.yaml", "-T", given)
    assert done.code == 2
    assert f"The override '{key}' (-T)" in done.err
    assert "questions.yaml:" not in done.err


def test_a_group_is_shown_as_its_parts() -> None:
    lines = typed(
        "tasks", "show", "factual", extra={"COLUMNS": "80"}, folder=Path()
    ).out.splitlines()
    assert lines[0].startswith("factual: 7 tasks, 645 samples.")
    assert [line.split()[0] for line in lines if line.startswith("  factual")] == [
        *PARTS
    ]
    assert "333  Facts from memory" in lines[3]
    assert max(map(len, lines)) <= 80
    assert typed("tasks", "show", "factual-stress").out.startswith(
        "factual-stress, version 2: "
    )


@pytest.mark.parametrize(
    ("roots", "place"),
    [((), "are bundled or installed"), (("--task-root", "empty"), "are in 'empty'")],
)
def test_a_dialect_without_tasks_says_how_others_are_named(
    folder: Path, roots: tuple[str, ...], place: str
) -> None:
    (folder / "empty").mkdir()
    register_dialect("pairs-of-a-test", NothingBundled())
    done = typed("tasks", "list", "--dialect", "pairs-of-a-test", *roots)
    assert (done.code, done.out) == (0, "")
    assert f"No tasks of pairs-of-a-test {place}" in done.err
    assert "--task-root DIR" in done.err
    done = typed("tasks", "list", "--dialect", "pairs-of-a-test", "--json", *roots)
    assert json.loads(done.out) == []


class NothingBundled(Dialect):
    """A dialect whose tasks are only where a person has them."""

    right_or_wrong = frozenset()

    def names(self, roots: Sequence[Path]) -> Sequence[ListedTask]:
        return []

    def load(self, *_: Any, **__: Any) -> list[Any]:
        return []

    def groups(self, tasks: Any) -> list[Any]:
        return []

    def rules(self, *_: Any) -> ScoringRules:
        return ScoringRules([], [])
