"""Entries against their board: providers, addresses, arguments, prices, doubles and imitations."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from evalwright.cli import main
from evalwright.entries.board_file import BoardFile, read_board
from evalwright.entries.checking import check_entries
from evalwright.entries.entry_file import Entry
from evalwright.entries.imitation import KnownEntries, looks_of
from evalwright.entries.pricing import RunPrice, price_run
from support.runs import make_run

BOARD = """\
title: Our board
suite: {tasks: [factual-closed-book]}
entries:
  providers: [openai, anthropic, hf, demo]
  base_urls: ["https://api.example.com/v1"]
  arguments: {temperature: [0, 2], reasoning_effort: [low, high], max_tokens: [1, 1000000]}
  most_dollars: 20
  prices: {openai/new-model: 1.25/10}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-a-key-that-is-not-sent")
    (tmp_path / "board.yaml").write_text(BOARD)
    (tmp_path / "entries").mkdir()
    return tmp_path


def add(folder: Path, name: str, text: str) -> None:
    (folder / "entries" / f"{name}.yaml").write_text(text, encoding="utf-8")


def test_entries_that_are_fine(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add(folder, "mini", "model: openai/gpt-4o-mini\nlabel: Mini\n")
    add(folder, "new", "model: openai/new-model\narguments: {temperature: 1.0}\n")
    add(folder, "tiny", "model: hf/acme/tiny@0123abc\n")
    add(folder, "demo", "model: demo/small\n")
    assert main(["entries", "check"]) == 0
    output = capsys.readouterr().out
    assert "mini: openai/gpt-4o-mini" in output and "request" in output
    assert "4 entries are fine." in output
    assert not (folder / "runs").exists() and not (folder / ".evalwright").exists()
    assert main(["entries", "check", "entries/mini.yaml", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["ok"] and record["problems"] == []
    (fine,) = record["entries"]
    assert (
        fine["name"] == "mini" and 0 < fine["dollars"]["low"] < fine["dollars"]["high"]
    )


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("model: google/gemini\n", 1, "Models of 'google' are not on this board."),
        ("model: opnai/gpt-5\n", 1, "Did you mean 'openai'?"),
        ("model: python/x.py:f\n", 1, "Models of 'python'"),
        ("model: replay/answers.jsonl\n", 1, "Models of 'replay'"),
        ("model: OpenAI/gpt-5\n", 1, "provider/name"),
        ("model: hf/tiny\n", 1, "hf/organisation/name"),
        ("model: hf/entries/here\n", 1, "'entries/here' is a folder here"),
        ("model: openai/gpt-4o-mini\nbase_url: https://evil.example/v1\n", 2, "Only a maintainer can add one"),
        ("model: openai/gpt-4o-mini\nbase_url: https://api.example.com/v1/../x\n", 2, "has '..'"),
        ("model: openai/gpt-4o-mini\nbase_url: https://\u0430pi.example.com/v1\n", 2, "other than ASCII"),
        ("model: openai/gpt-4o-mini\narguments: {temperature: 3}\n", 2, "from 0 to 2, not '3'"),
        ("model: openai/gpt-4o-mini\narguments: {reasoning_effort: most}\n", 2, "one of: low, high"),
        ("model: openai/gpt-4o-mini\narguments: {temprature: 1}\n", 2, "Did you mean 'temperature'?"),
        ("model: openai/gpt-4o-mini\narguments: {base_url: x}\n", 2, "a key of its own"),
        ("model: openai/gpt-4o-mini\narguments: {api_key_env: GITHUB_TOKEN}\n", 2, "cannot set 'api_key_env'"),
        ("model: openai/gpt-4o-mini\narguments: {fingerprint: x}\n", 2, "cannot set 'fingerprint'"),
        ("model: openai/nobody-knows-it\n", 1, "A maintainer can write it into board.yaml, under prices"),
        ("model: openai/gpt-4o-mini\nprice: 0/0\n", 2, "Unknown key 'price'"),
        ("model: openai/new-model\narguments: {max_tokens: 1000000}\n", 1, "limit is $20.00"),
    ],
)  # fmt: skip
def test_problems_of_an_entry(
    folder: Path, text: str, line: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "entries" / "here").mkdir()
    (folder / "entries" / "here").rename(folder / "here")
    (folder / "proposed").mkdir()
    (folder / "entries" / "here").symlink_to(folder / "here")
    (folder / "proposed" / "a.yaml").write_text(text, encoding="utf-8")
    assert main(["entries", "check", "proposed/a.yaml"]) == 2
    errors = capsys.readouterr().err
    assert f"proposed/a.yaml:{line}: " in errors and words in errors, errors
    assert "Nothing was run." in errors and "Traceback" not in errors


def test_a_task_that_a_model_cannot_do(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "board.yaml").write_text(BOARD.replace("closed-book", "choice"))
    add(folder, "a", "model: anthropic/claude-opus-4-1\n")
    assert main(["entries", "check"]) == 2
    assert "cannot be planned: The task" in capsys.readouterr().err


def checked(folder: Path, *texts: str) -> list[str]:
    board = read_board(folder)
    entries = []
    for number, text in enumerate(texts):
        model, _, label = text.partition(" ")
        entries.append(Entry(f"e{number}", model, label, file=f"e{number}"))
    return [
        f"{problem.file} {problem.sentence}"
        for problem in check_entries(board, entries).problems
    ]


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (("openai/new-model A", "openai/New-Model B"), "e1 The entry 'e0' has the same model"),
        (("hf/acme/tiny A", "hf/acme/tiny@main B"), "e1 The entry 'e0' has the same model"),
        (("demo/small GPT-5", "demo/large GPT 5"), "e1 'GPT 5' looks like 'GPT-5'"),
        (("demo/small GPT-5 (high)", "demo/large gpt5 HIGH"), "looks like"),
        (("demo/small Gemini", "demo/large Gernini"), "looks like"),
        (("demo/small o1", "demo/large 0l"), "looks like"),
        (("demo/small CAP", "demo/large \u0421\u0410\u0420"), "looks like"),
        (("demo/small Ultra", "demo/large \uff35ltra"), "looks like"),
        (("demo/small Ultra", "demo/large Ultr\u00e0"), "looks like"),
        (("demo/small", "demo/large new-model", "openai/new-model"), "e2 The entry 'e1' has this model's name"),
        (("openai/new-model", "demo/large New Model"), "e1 The label 'New Model' names the model"),
        (("openai/new-model Newest", "demo/large openai/new-model"), "e1 The label 'openai/new-model' names the model"),
        (("demo/large openai/new-model", "openai/new-model Mine"), "e1 The entry 'e0' has this model's name as its label"),
        (("demo/small Alpha", "demo/large Alp\u0127a"), "e1 'Alp\u0127a' looks like 'Alpha'"),
    ],
)  # fmt: skip
def test_doubles_and_imitations(
    folder: Path, texts: tuple[str, ...], words: str
) -> None:
    problems = checked(folder, *texts)
    assert len(problems) == 1 and words in problems[0], problems


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("Claude 3.5", "Claude 35"),
        ("Command R", "Command R+"),
        ("GPT-4.1", "GPT-4.1 mini"),
        ("Llama 8B", "Llama 70B"),
        ("ไทย", "ไท"),
    ],
)
def test_names_that_differ(name: str, other: str) -> None:
    assert looks_of(name) != looks_of(other)


def test_the_same_model_elsewhere_is_no_imitation(folder: Path) -> None:
    assert not checked(folder, "openai/new-model New model", "hf/acme/new-model")


def test_other_settings_are_another_entry(folder: Path) -> None:
    known = KnownEntries()
    known.add(Entry("a", "openai/m", arguments={"temperature": 1}))
    same = Entry("b", "openai/m", arguments={"temperature": 1.0})
    assert known.doubled_by(same)
    assert not known.doubled_by(Entry("b", "openai/m", arguments={"temperature": 0}))
    own_address = "https://api.openai.com/v1/"
    assert known.doubled_by(
        Entry("b", "openai/m", arguments={"temperature": 1}, base_url=own_address)
    )


def test_two_thousand_entries_are_compared_in_seconds() -> None:
    start = time.perf_counter()
    known = KnownEntries()
    for number in range(2_000):
        entry = Entry(f"e{number}", f"openai/model-{number}", f"Model {number}")
        assert not known.doubled_by(entry) and not known.alike(entry)
        assert not known.named_by_label_of(entry) and not known.labelled_as(entry)
        known.add(entry)
    assert time.perf_counter() - start < 60


def test_the_price_is_that_of_the_planner(folder: Path) -> None:
    board = read_board(folder)

    def priced(max_tokens: int, board: BoardFile = board) -> RunPrice:
        arguments = {"max_tokens": max_tokens}
        return price_run(board, Entry("a", "openai/new-model", arguments=arguments))

    price = priced(10)
    assert price.low is not None and price.high is not None
    assert 0 < price.low <= price.high < 1 and price.requests > 50
    # What an entry sets beyond the task counts too.
    assert priced(100_000).high == pytest.approx(
        price.requests * 100_000 * 10 / 1e6, rel=0.01
    )
    (folder / "board.yaml").write_text(BOARD.replace("book]", "book], limit: 10"))
    limited = priced(100_000, read_board(folder))
    assert limited.requests == 10 and limited.high == pytest.approx(10.0, rel=0.01)
    assert price_run(board, Entry("a", "openai/nix")).as_text() == "not known"
    hub_model = price_run(board, Entry("a", "hf/acme/not-fetched"))
    assert hub_model.as_text() == "runs on the board's own machine"


def test_options_that_have_no_effect(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add(folder, "a", "model: demo/small\n")
    for arguments, words in (
        (["--into", "x"], "--into has no effect without --commit"),
        (["--author", "x"], "--author has no effect"),
        (["entries/a.yaml", "--commit", "0" * 40], "leave out FILES"),
        (["entries/a.yaml"] * 21, "At most 20 FILES"),
        (["--changed", "missing.txt"], "cannot be read: No such file"),
        (["--commit", "main"], "the whole hash"),
        (["--commit", "--help"], "the whole hash"),
        (["--board", "nothing.yaml"], "cannot be read"),
        (["entries/b.yaml"], "No such file"),
    ):
        assert main(["entries", "check", *arguments]) == 2
        output = capsys.readouterr()
        assert words in output.err, output


def test_a_board_that_runs_code_is_not_planned_without_permission(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add(folder, "a", "model: demo/small\n")
    trusting = BOARD.replace("closed-book]", "closed-book], dialect: {trust: [x]}")
    (folder / "board.yaml").write_text(trusting)
    assert main(["entries", "check"]) == 2
    assert "--trust-file 'board.yaml'" in capsys.readouterr().err
    assert main(["entries", "check", "--trust-file", "board.yaml"]) in (0, 2)
    assert "need your permission" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("listing", "words"),
    [
        ("entries/a.yaml\n", ""),
        (":000000 100644 0000000 1234567 A\0entries/a.yaml\0", ""),
        (":000000 120000 0000000 1234567 A\0entries/a.yaml\0", "a link to another file"),
        (":000000 160000 0000000 1234567 A\0entries/a.yaml\0", "a submodule"),
        (":000000 100755 0000000 1234567 A\0entries/a.yaml\0", "a program"),
        (":000000 100644 0000000 1234567 R100\0entries/demo.yaml\0entries/b.yaml\0", "belongs to alice"),
        (":100644 000000 1234567 0000000 D\0entries/demo.yaml\0", "who alone can delete it"),
        (":100644 100644 1234567 1234568 M\0entries/demo.yaml\0", "who alone can change it"),
        (":100644 100644 1234567 1234568 M\0.github/workflows/entry.yml\0", "for its maintainers"),
        (":000000 100644 0000000 1234567 A\0entries/a.yaml\0:000000 100644 0 1 A\0 \0", "nothing else"),
        ("entries/sub/a.yaml\n", "nothing else"),
        ("entries/../board.yaml\n", "nothing else"),
        ("../entries/a.yaml\n", "nothing else"),
        ("/entries/a.yaml\n", "nothing else"),
        ("entries/a.yaml\nentries/.gitattributes\n", "An entry is a file NAME.yaml"),
        (".gitattributes\n.gitmodules\n", "nothing else"),
        ("Entries/a.yaml\n", "nothing else"),
        ("::error::entries/a.yaml\n", '"::error::entries/a.yaml":1: '),
        ("entries/a\x1b[2J.yaml\n", '"entries/a\\u001b[2J.yaml":1: '),
        ("".join(f"entries/e{n}.yaml\n" for n in range(10_000)), "more than 20 files, so it was not read"),
        ("x" * 2_000_000, "nothing else"),
    ],
)  # fmt: skip
def test_lists_of_changes(
    folder: Path, listing: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    add(folder, "demo", "model: demo/small\nby: alice\n")
    (folder / "changed").write_text(listing)
    arguments = ["entries", "check", "--changed", "changed", "--author", "mallory"]
    assert main(arguments) == (2 if words else 0)
    output = capsys.readouterr()
    assert words in output.err
    assert not any(
        line.startswith("::") for line in (output.out + output.err).splitlines()
    )


def test_an_owner_changes_and_deletes_their_own(folder: Path) -> None:
    add(folder, "demo", "model: demo/small\nby: alice\n")
    (folder / "changed").write_text(
        ":100644 100644 1234567 1234568 M\0entries/demo.yaml\0"
    )
    check = ["entries", "check", "--changed", "changed", "--author"]
    assert main([*check, "Alice"]) == 0
    assert main([*check, "bob"]) == 2
    (folder / "board.yaml").write_text(f"{BOARD}  maintainers: [Bob]\n")
    assert main([*check, "bob"]) == 0
    (folder / "changed").write_text("README.md\n.github/workflows/entry.yml\n")
    assert main([*check, "bob"]) == 0
    assert main([*check, "alice"]) == 2


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("old", "model: demo/large\nlabel: Other\n", "results/old has results of 'Old one' ('demo/small'), which has no entry"),
        ("new", "model: demo/large\nlabel: 0ld  one\n".replace("  ", " "), "'0ld one' looks like 'Old one' ('demo/small') in results/old"),
        ("new", "model: demo/large\nlabel: Another\n", ""),
        ("renamed", "model: demo/small\nlabel: Old one\n", ""),
        ("old", "model: demo/small\nlabel: Newly named\n", ""),
        ("kept", "model: demo/small\nlabel: Changed\n", ""),
    ],
)  # fmt: skip
def test_nobody_takes_the_place_of_results_without_an_entry(
    folder: Path,
    name: str,
    text: str,
    words: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Those of a deleted entry, and imported ones: a newer result would be shown instead."""
    for place, label in (("old", "Old one"), ("kept", "Kept one")):
        make_run(
            folder / "results" / place,
            scores={"factual-closed-book": [1, 0]},
            label=label,
        )
    add(folder, "kept", "model: openai/new-model\nlabel: Kept one\nby: mallory\n")
    proposed = folder / f"{name}.yaml"
    proposed.write_text(f"{text}by: mallory\n")
    arguments = ["entries", "check", proposed.name, "--author", "mallory"]
    assert main(arguments) == (2 if words else 0)
    assert words in capsys.readouterr().err
    (folder / "board.yaml").write_text(f"{BOARD}  maintainers: [Mallory]\n")
    assert main(arguments) == 0


@pytest.mark.parametrize("author", ["", " ", "@"])
def test_an_author_without_a_name_is_not_everybody(
    folder: Path, author: str, capsys: pytest.CaptureFixture[str]
) -> None:
    add(folder, "demo", "model: demo/small\nby: alice\n")
    (folder / "changed").write_text("entries/demo.yaml\n")
    arguments = ["entries", "check", "--changed", "changed", "--author", author]
    assert main(arguments) == 2
    assert "--author is empty" in capsys.readouterr().err


def test_answers_without_a_limit_are_not_blamed_on_the_price(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "own.jsonl").write_text('{"input": "Who?", "target": "me"}\n')
    (folder / "own.yaml").write_text(
        "task: own\ndataset: own.jsonl\nscorers: [exact-match]\n"
    )
    (folder / "board.yaml").write_text(BOARD.replace("factual-closed-book", "own.yaml"))
    add(folder, "new", "model: openai/new-model\n")
    assert main(["entries", "check"]) == 2
    error = capsys.readouterr().err
    assert "Nothing limits how long an answer of 'openai/new-model' may be" in error
    assert "price of" not in error
    add(folder, "new", "model: openai/new-model\narguments: {max_tokens: 100}\n")
    assert main(["entries", "check"]) == 0
    add(folder, "new", "model: openai/newer\narguments: {max_tokens: 9}\n")
    assert main(["entries", "check"]) == 2
    assert "The price of 'openai/newer' is not known" in capsys.readouterr().err
