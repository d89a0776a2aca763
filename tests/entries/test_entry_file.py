"""An entry is data: plain scalars and known keys; anything else is refused, with its line."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from evalwright.entries.board_file import read_board
from evalwright.entries.entry_file import (
    MAX_ENTRIES,
    read_entries,
    read_entry,
    wrong_label,
)
from evalwright.entries.problems import Problem, WrongFiles, as_annotation, shown_file

BOARD = """\
title: Our board
suite: {tasks: [factual-closed-book]}
entries: {providers: [openai]}
"""
ENTRY = """\
model: openai/gpt-5
label: GPT-5 (high)
arguments: {reasoning_effort: high, temperature: 0.5}
base_url: https://api.example.com/v1
facts: {family: GPT, open: false, released: 2025-08-07}
by: octocat
"""


def problems_of(
    folder: Path, content: bytes | str, name: str = "a.yaml"
) -> list[Problem]:
    file = folder / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(WrongFiles) as raised:
        read_entry(file)
    return list(raised.value.problems)


@pytest.mark.parametrize(
    "content",
    [
        ENTRY.encode(),
        ENTRY.replace("\n", "\r\n").encode(),
        b"\xef\xbb\xbf" + ENTRY.encode(),
        ENTRY.replace(": octocat", ": '@octocat'").encode(),
    ],
    ids=["as it is", "lines of Windows", "with a mark of UTF-8", "a login with @"],
)
def test_an_entry_is_read(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "gpt-5.yaml"
    file.write_bytes(content)
    entry = read_entry(file)
    assert (entry.name, entry.model, entry.by) == ("gpt-5", "openai/gpt-5", "octocat")
    assert entry.arguments == {"reasoning_effort": "high", "temperature": 0.5}
    assert entry.facts["released"] == "2025-08-07" and entry.facts["open"] is False
    assert entry.lines["arguments.temperature"] == 3
    (tmp_path / "board.yaml").write_text(BOARD)
    spec = entry.model_spec(read_board(tmp_path))
    assert (spec.label, spec.facts["family"]) == ("GPT-5 (high)", "GPT")


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 1, "empty"),
        ("- a\n", 1, "no lists"),
        ("just text\n", 1, "mapping"),
        ("label: x\n", 1, "'model' is missing"),
        ("model: openai/a\nmodle: b\n", 2, "Unknown key 'modle'. Did you mean 'model'?"),
        ("model: openai/a\nprice: 0/0\n", 2, "Unknown key 'price'"),
        ("model: openai/a\nmodel: openai/b\n", 2, "given twice"),
        ("model: [openai/a]\n", 1, "no lists"),
        ("model: 5\n", 1, "must be text"),
        ("model: gpt-5\n", 1, "provider/name"),
        ("model: openai/../../etc\n", 1, "provider/name"),
        ("model: hf//etc/model\n", 1, "provider/name"),
        ("model: hf/~root/x\n", 1, "provider/name"),
        ("model: openai/https://evil.example/v1\n", 1, "provider/name"),
        ("model: openai/{{ secrets }}\n", 1, "provider/name"),
        ("model: openai/$HOME\n", 1, "provider/name"),
        ("model: openai/%2e%2e/x\n", 1, "provider/name"),
        (f"model: openai/{'a' * 200}\n", 1, "provider/name"),
        ("model: openai/a\nlabel: <script>alert(1)</script>\n", 2, "has '<'"),
        ("model: openai/a\nlabel: '[x](http://evil.example)'\n", 2, "has '['"),
        ("model: openai/a\nlabel: '@everyone'\n", 2, "has '@'"),
        ("model: openai/a\nlabel: ${{ secrets.KEY }}\n", 2, "has '$'"),
        ("model: openai/a\nlabel: '{{ 1 }}'\n", 2, "has '{'"),
        ("model: openai/a\nlabel: |\n  x\n  y\n", 2, "spaces at its end"),
        ("model: openai/a\nlabel: a b  c\n", 2, "several in a row"),
        ("model: openai/a\nlabel: G\u0440T\n", 2, "mixes alphabets"),
        (f"model: openai/a\nlabel: {'x' * 61}\n", 2, "longer than 60"),
        ("model: openai/a\nlabel: a\u0300\u0301\u0302\u0303b\n", 2, "stacks more than 3"),
        ("model: openai/a\nlabel: a\u200bb\n", 2, "U+200B cannot be seen"),
        ("model: openai/a # \u202e\n", 1, "U+202E"),
        ("model: openai/a\nlabel: x\u2028y\n", 2, "U+2028"),
        ("model: openai/a\nlabel: \ufeffx\n", 2, "U+FEFF"),
        ("model: openai/a\n# \x1b[2J\n", 2, "U+001B"),
        ("model: openai/a\n\x00\n", 2, "U+0000"),
        ("model: openai/a\rlabel: x\n", 1, "U+000D"),
        ("model: &a openai/a\nlabel: *a\n", 1, "no anchors"),
        ("model: openai/a\narguments: {<<: *x}\n", 2, "no anchors"),
        ("model: !!python/object/apply:os.system ['id']\n", 1, "no tags"),
        ("model: !env KEY\n", 1, "no tags"),
        ("%YAML 1.1\n---\nmodel: openai/a\n", 1, "one YAML document"),
        ("model: openai/a\n---\nmodel: openai/b\n", 2, "one YAML document"),
        ("model: openai/a\narguments: [temperature]\n", 2, "no lists"),
        ("model: openai/a\narguments: {a: {b: {c: 1}}}\n", 2, "mappings of scalars only"),
        ("model: openai/a\narguments: {temperature: }\n", 2, "must be one plain value"),
        ("model: openai/a\narguments: {Temp-x: 1}\n", 2, "must be of a to z"),
        ("model: openai/a\narguments: {tokenizer: ../x}\n", 2, "no path"),
        ("model: openai/a\narguments: {api_key: $OPENAI_API_KEY}\n", 2, "name of a variable"),
        ("model: openai/a\narguments: {max_tokens: 1e999}\n", 2, "at most 1,000,000,000"),
        ("model: openai/a\narguments: {seed: 99999999999}\n", 2, "at most"),
        ("model: openai/a\nfacts: {licence: '<b>'}\n", 2, "'facts.licence' has '<'"),
        ("model: openai/a\nfacts: {size: huge}\n", 2, "'facts.size' has the wrong form: 'huge' is no"),
        ("model: openai/a\nfacts: {licence: MIT, license: X}\n", 2, "one fact twice"),
        ("model: openai/a\nfacts: {open: perhaps}\n", 2, "has the wrong form"),
        ("model: openai/a\nlabel: https://evil.example\n", 2, "has an address"),
        ("model: openai/a\nby: a b\n", 2, "a name on GitHub"),
        ("model: openai/a\nby: '-x'\n", 2, "a name on GitHub"),
        ("model: openai/a\n  label: x\n", 2, "this is not YAML"),
        ("model: {\n", 2, "this is not YAML"),
    ],
)  # fmt: skip
def test_what_no_entry_has(tmp_path: Path, text: str, line: int, words: str) -> None:
    problems = problems_of(tmp_path, text)
    assert any(
        words in problem.sentence and problem.line == line for problem in problems
    ), problems


def test_every_problem_is_said_at_once(tmp_path: Path) -> None:
    problems = problems_of(
        tmp_path, "model: x\nlabel: <b>\nby: a b\nprice: 0\nfacts: 3\n"
    )
    assert [problem.line for problem in problems] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "name",
    [
        "GPT-5.yaml",
        "gpt_5.yaml",
        "-x.yaml",
        "x-.yaml",
        ".x.yaml",
        "a..b.yaml",
        "a b.yaml",
        f"{'a' * 81}.yaml",
        "gpt-5.yml",
        "gpt-5.yaml.txt",
        "$(touch pwned).yaml",
        "con.yaml",
        "nul.5.yaml",
        "g\u0440t.yaml",
        "::error::.yaml",
    ],
)
def test_names_of_files(tmp_path: Path, name: str) -> None:
    assert problems_of(tmp_path, ENTRY, name)
    assert not (tmp_path / "pwned").exists()


def test_large_files_are_not_parsed(tmp_path: Path) -> None:
    start = time.perf_counter()
    problems = problems_of(tmp_path, b"model: openai/a\n#" + b"x" * 2**20)
    assert [problem.sentence for problem in problems] == [
        "An entry has at most 4,096 bytes."
    ]
    bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30)
    )
    assert "anchors" in problems_of(tmp_path, bomb)[0].sentence
    assert problems_of(tmp_path, "[" * 4000)
    assert problems_of(tmp_path, "{a: " * 1000)
    assert problems_of(tmp_path, b"\xff\xfe" + ENTRY.encode("utf-16-le"))
    assert time.perf_counter() - start < 60


def test_files_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "secret.yaml").write_text(ENTRY)
    (tmp_path / "link.yaml").symlink_to(tmp_path / "secret.yaml")
    (tmp_path / "loop.yaml").symlink_to("loop.yaml")
    (tmp_path / "folder.yaml").mkdir()
    os.mkfifo(tmp_path / "pipe.yaml")
    for name, words in {
        "link": "cannot be a link",
        "loop": "cannot be a link",
        "folder": "ordinary file",
        "pipe": "ordinary file",
        "missing": "cannot be read: No such file",
    }.items():
        with pytest.raises(WrongFiles, match=words):
            read_entry(tmp_path / f"{name}.yaml")


def test_a_folder_of_entries(tmp_path: Path) -> None:
    folder = tmp_path / "entries"
    assert read_entries(folder) == []  # git keeps no empty folders
    folder.write_text("a file in its place")
    with pytest.raises(WrongFiles, match="not a folder of entries"):
        read_entries(folder)
    folder.unlink()
    folder.mkdir()
    (folder / ".gitkeep").touch()
    (folder / "b.yaml").write_text("model: demo/small\n")
    (folder / "a.yaml").write_text("model: demo/large\n")
    assert [entry.name for entry in read_entries(folder)] == ["a", "b"]
    (folder / "c.yaml").write_text("modle: x\n")
    (folder / "d.yaml").write_text("modle: x\n")
    with pytest.raises(WrongFiles) as raised:
        read_entries(folder)
    assert {Path(problem.file).name for problem in raised.value.problems} == {
        "c.yaml",
        "d.yaml",
    }
    link = tmp_path / "link"
    link.symlink_to(folder)
    with pytest.raises(WrongFiles, match="is a link"):
        read_entries(link)
    for number in range(MAX_ENTRIES):
        (folder / f"x{number}.yaml").touch()
    with pytest.raises(WrongFiles, match="more than 2,000 entries"):
        read_entries(folder)


@pytest.mark.parametrize(
    "label",
    [
        "GPT-5 (high)",
        "모델 1",
        "ไทยแลนด์ที่",
        "မြန်မာ",
        "हिन्दी",
        "文心一言 4.5",
        "Llama 3.1 8B, 4 bits",
        "Модель 1",
        "R&D's 50% + x",
        "",
    ],
)
def test_labels_of_all_languages(label: str) -> None:
    assert wrong_label(label) == ""


def test_nothing_in_an_annotation_is_a_command() -> None:
    problem = Problem("a,b:c%", 3, "x\n::add-mask::y\r%")
    assert as_annotation(problem) == (
        "::error file=a%2Cb%3Ac%25,line=3,title=Entry::x%0A::add-mask::y%0D%25"
    )
    assert shown_file("::error::x").startswith('"')
    assert shown_file("\u202ex") == '"\\u202ex"'
    assert shown_file("entries/a.yaml") == "entries/a.yaml"
