"""What strangers write is shown as text: on terminals, in spreadsheets, in files that a person
names, in pacing.
"""

from __future__ import annotations

import csv
import io
import json
import logging
import math
import re
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from evalwright import cli
from evalwright.models.remote.http_limits import parse_rate_limits, parse_retry_after
from evalwright.reports.text import inert_cell
from support.command import write_questions
from support.openai_server import serving
from support.runs import make_run
from support.typed import typed

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x1b[7Aa\u202eb\x9b31m\rc\u2066"
OURS = re.compile("\r?\x1b\\[(?:[0-9;]*m|\\?25[lh]|2K|1A|K)\r?")
"""Colours, and the lines of progress that are drawn anew."""
ACTS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class Terminal(io.StringIO):
    """Somebody looks at it."""

    def isatty(self) -> bool:
        return True


def shown(
    monkeypatch: pytest.MonkeyPatch, *arguments: str, code: int | None = None
) -> str:
    """All that a command writes to a terminal, checked to be harmless."""
    out = Terminal()
    err = Terminal()
    with monkeypatch.context() as patched:
        patched.setenv("TERM", "xterm")
        patched.setattr(sys, "stdout", out)
        patched.setattr(sys, "stderr", err)
        done = cli.main(list(arguments))
    text = out.getvalue() + err.getvalue()
    assert code is None or done == code, text
    assert not ACTS.search(OURS.sub("", text)), ascii(text)
    assert text
    return text


def test_names_in_runs(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "ab":
        run = make_run(
            own_folder / "runs",
            scores=[1.0, 0.0, 1.0],
            model=f"demo/{name}{HOSTILE}",
            name=name,
        )
        file = run.folder / "run.json"
        data = json.loads(file.read_text())
        data["model"]["label"] = f"{name}{HOSTILE}"
        data["tasks"][0]["description"] = HOSTILE
        data["configuration"][HOSTILE] = {HOSTILE: HOSTILE}
        file.write_text(json.dumps(data))
    for arguments in (
        ("runs", "list"),
        ("runs", "show", "a"),
        ("leaderboard", "a", "b"),
        ("compare", "a", "b"),
        ("runs", "list", "--json"),
        ("leaderboard", "a", "b", "--json"),
        ("compare", "a", HOSTILE.replace("\x00", "")),
        (HOSTILE,),
        ("run", f"--{HOSTILE}"),
        ("run", HOSTILE, "--model", HOSTILE),
    ):
        shown(monkeypatch, *arguments)


def test_json_that_is_escaped_says_the_same(own_folder: Path) -> None:
    name = f"demo/{HOSTILE}\U000e0041\x7f\u200b"
    make_run(own_folder / "runs", scores=[1.0], model=name, name="a")
    done = typed("runs", "show", "a", "--json")
    assert not ACTS.search(done.out)
    assert name in json.loads(done.out)["model"].values()


def test_task_files_and_rows(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = {
        "id": HOSTILE,
        "question": HOSTILE,
        "answer": HOSTILE,
        HOSTILE: HOSTILE,
        "domain": HOSTILE,
    }
    Path("rows.jsonl").write_text(json.dumps(row) + "\n")
    task = {
        "task": "hostile",
        "description": HOSTILE,
        "dataset": "rows.jsonl",
        "sample": {
            "input": "{{ question }}",
            "target": "{{ answer }}",
            "metadata": {HOSTILE: HOSTILE},
        },
        "prompt": {"user": "{{ input }}" + HOSTILE},
        "scorers": ["exact-match"],
        "slices": ["domain"],
    }
    Path("task.yaml").write_text(yaml.safe_dump(task))
    for arguments in (
        ("tasks", "show", "task.yaml"),
        ("tasks", "preview", "task.yaml"),
        ("tasks", "check", "task.yaml"),
        ("run", "task.yaml", "--model", "demo/small", "--name", "a"),
        ("runs", "show", "a"),
    ):
        shown(monkeypatch, *arguments)
    for broken in (
        {**task, HOSTILE: 1},
        {**task, "task": HOSTILE},
        {**task, "dataset": HOSTILE + ".jsonl"},
    ):
        Path("task.yaml").write_text(yaml.safe_dump(broken))
        shown(monkeypatch, "tasks", "show", "task.yaml", code=2)
        shown(monkeypatch, "run", "task.yaml", "--model", "demo/small", code=2)


def test_a_servers_errors(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_questions(own_folder, 3)
    with serving(answer=lambda prompt: HOSTILE, models=("other",)) as server:
        arguments = (
            "run",
            "questions.yaml",
            "-M",
            f"base_url={server.url}",
            "--name",
            "a",
        )
        shown(monkeypatch, *arguments, "--model", f"openai/test{HOSTILE}")
        shown(monkeypatch, *arguments, "--model", "openai/other", "--replace", code=0)
    shown(monkeypatch, "runs", "show", "a")


def test_what_libraries_print(
    own_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def talks(self: object) -> dict[str, str]:
        print(HOSTILE)
        print(HOSTILE, file=sys.stderr)
        logging.getLogger("stranger").error(HOSTILE)
        return {}

    monkeypatch.setattr("evalwright.tasks.index.TaskIndex.entries", talks)
    shown(monkeypatch, "tasks", "list")


# -- spreadsheets
# -------------------------------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.text(alphabet="=+-@＝＋－＠\t\r\n ;,|'\"a1\u3000\x0b", max_size=12),
    st.booleans(),
)
def test_no_cell_is_a_formula_in_any_dialect(text: str, lines: bool) -> None:
    out = io.StringIO()
    csv.writer(out).writerow(["x", inert_cell(text, lines=lines), "y"])
    for separator in ",;\t|":
        for row in csv.reader(
            io.StringIO(out.getvalue(), newline=""), delimiter=separator
        ):
            for cell in row:
                assert not re.match(
                    r"[\s\"]*[=+@＝＋－＠-]|[\t\r]", cell
                ) or cell.lstrip().startswith("'"), row


# -- files that are named
# -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "option",
    [
        "--into",
        "--markdown",
        "--html",
        "--csv",
        "--json-file",
        "--plot",
        "--pages",
        "--kept",
    ],
)
def test_no_output_follows_a_link_out(own_folder: Path, option: str) -> None:
    make_run(own_folder / "runs", scores=[1.0, 0.0], model="demo/a", name="a")
    outside = own_folder.parent / f"{own_folder.name}-outside"
    outside.mkdir()
    secret = outside / "secret.svg"
    secret.write_text("kept")
    work = own_folder / "clone"
    work.mkdir()
    (work / "link.svg").symlink_to(secret)
    (work / "folder").symlink_to(outside)
    names = (
        ["folder/new.svg"]
        if option in ("--pages", "--kept")
        else ["link.svg", "folder/new.svg"]
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(work)
        for name in names:
            done = typed("leaderboard", "../runs/a", option, name)
            assert done.code == 2 and "link leads to" in done.err, done.text
    assert secret.read_text() == "kept"
    assert [file.name for file in outside.iterdir()] == ["secret.svg"]


def test_no_run_is_written_through_a_link(own_folder: Path) -> None:
    outside = own_folder.parent / f"{own_folder.name}-outside"
    outside.mkdir()
    (own_folder / "runs").symlink_to(outside)
    command = (
        "run",
        "factual",
        "--model",
        "demo/small",
        "--limit",
        "1",
        "--name",
        "a",
        "--quiet",
    )
    done = typed(*command)
    assert done.code == 2 and "link leads to" in done.err
    assert not list(outside.iterdir())
    assert typed(*command, "--out", str(outside)).code == 0


# -- pacing
# -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    ["9" * 400, "9" * 5000, "1" * 300 + "h", "1e400", "inf", "nan", "Mon, 01 Jan 2030 00:00:00 +99999999999",
     "Mon, 01 Jan 99999999999 00:00:00 GMT", "9999-12-31T23:59:59Z", "limit={0};remaining={0};reset={0}".format("9" * 400)],
    ids=lambda value: value[:12],
)  # fmt: skip
def test_absurd_limits_say_nothing(value: str) -> None:
    for name in (
        "limit-requests",
        "remaining-tokens",
        "reset-requests",
        "reset-tokens",
    ):
        rate_limits = parse_rate_limits(
            [(f"x-ratelimit-{name}".encode(), value.encode())], now=1.8e9
        )
        for told in (
            (
                rate_limits.limit_requests,
                rate_limits.remaining_tokens,
                rate_limits.reset_requests,
            )
            if rate_limits
            else ()
        ):
            assert told is None or 0 <= told < 1e15
        assert (
            rate_limits is None
            or rate_limits.reset_requests is None
            or rate_limits.reset_requests < 4e6
        )
    assert parse_rate_limits([(b"ratelimit", value.encode())]) is None
    waited = parse_retry_after({"retry-after": value, "date": value}, now=1.8e9)
    assert waited is None or math.isfinite(waited)
