"""`evalwright proxy`: the program behind it, exit codes, interruptions, what it says."""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evalwright.cli import main
from evalwright.core.responses import Usage
from evalwright.engine.counts import Counts
from evalwright.proxy.serving import State, child_environment, trajectory_of
from support.openai_server import serving

ROOT = Path(__file__).resolve().parents[2]
KEY = "sk-key-of-the-provider-0123"
PEERS = ROOT / "benchmarks" / ".peers"

PROGRAM = """
import json, os, sys, urllib.request
def ask(text):
    body = {"model": "m", "temperature": 1, "messages": [{"role": "user", "content": text}]}
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(body).encode(),
        {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]})
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)["choices"][0]["message"]["content"]
for number in range(int(sys.argv[1])):
    print(ask("same"), flush=True)
sys.exit(int(sys.argv[2]))
"""


def command(url: str, *options: str, program: tuple[str, ...] = ()) -> list[str]:
    ours = [
        sys.executable,
        "-m",
        "evalwright",
        "proxy",
        "-m",
        f"openai/{url}#m",
        *options,
    ]
    return [*ours, "--", *program] if program else ours


def environment(folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        "OPENAI_API_KEY": KEY,
        "EVALWRIGHT_HOME": str(folder / "home"),
        "PYTHONPATH": str(ROOT / "src"),
    }


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    return file


def numbered() -> Any:
    numbers = itertools.count(1)
    return lambda prompt: f"sample {next(numbers)}"


def test_a_program_runs_behind_it_and_is_replayed(
    program: Path, tmp_path: Path
) -> None:
    words = (sys.executable, str(program), "3", "7")
    with serving(numbered()) as server:
        done = [
            subprocess.run(
                command(server.url, program=words),
                env=environment(tmp_path),
                capture_output=True,
                text=True,
                check=False,
            )
            for _ in range(2)
        ]
        other = subprocess.run(
            command(server.url, "--trajectory", "second", program=words),
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            check=False,
        )
    assert [each.returncode for each in done] == [7, 7]
    assert done[0].stdout == done[1].stdout == "sample 1\nsample 2\nsample 3\n"
    assert other.stdout == "sample 4\nsample 5\nsample 6\n"
    assert "3 requests: 0 answered from the store, 3 by models." in done[0].stderr
    assert "3 requests: 3 answered from the store, 0 by models." in done[1].stderr
    assert "/home/store.sqlite; --no-record keeps nothing on disk." in done[0].stderr
    assert KEY not in done[0].stderr + done[0].stdout
    assert "evw-" not in done[0].stderr


def test_killed_at_random_moments_it_never_pays_twice(
    program: Path, tmp_path: Path
) -> None:
    """One request at a time, so at most one can be lost at each kill."""
    chance = random.Random(3)
    words = (sys.executable, str(program), "12", "0")
    n_kills = 3
    with serving(numbered(), latency=0.02) as server:
        log = server.log
        assert log is not None
        for _ in range(n_kills):
            before = len(log)
            process = subprocess.Popen(
                command(server.url, program=words),
                env=environment(tmp_path),
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                start_new_session=True,
            )
            assert process.stdout is not None
            for _ in range(chance.randint(1, 3)):
                process.stdout.readline()
            while len(log) == before:
                process.stdout.readline()
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            process.stdout.close()
        last = subprocess.run(
            command(server.url, program=words),
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            check=True,
        )
        received = len(log)
    samples = last.stdout.split("\n")[:-1]
    assert len(set(samples)) == 12
    assert 12 <= received <= 12 + n_kills


def test_ctrl_c_stores_what_is_in_flight(program: Path, tmp_path: Path) -> None:
    words = (sys.executable, str(program), "1", "0")
    with serving(numbered(), latency=1.0) as server:
        log = server.log
        assert log is not None
        process = subprocess.Popen(
            command(server.url, "--grace", "30", program=words),
            env=environment(tmp_path),
            stderr=subprocess.PIPE,
            text=True,
        )
        while not log:
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, told = process.communicate()
        assert process.returncode == 130
        assert "Traceback" not in told
        again = subprocess.run(
            command(server.url, program=words),
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            check=True,
        )
        assert (again.stdout, len(log)) == ("sample 1\n", 1)


def test_a_lasting_proxy_says_where_it_is_and_ends_with_130(tmp_path: Path) -> None:
    with serving(numbered()) as server:
        process = subprocess.Popen(
            command(server.url),
            env=environment(tmp_path),
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        first = process.stderr.readline()
        lines = [process.stderr.readline() for _ in range(3)]
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        process.stderr.close()
        assert process.wait() == 130
    assert re.search(r"at http://127\.0\.0\.1:\d+, on this machine alone", first)
    assert "/t/ID/v1" in lines[0]
    assert re.search(r"evw-\S{32}", lines[1])
    assert "are kept in" in lines[2]
    assert rest.endswith("No request came.\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "No model given"),
        (["-m", "demo/smal"], "Did you mean 'small'"),
        (["-m", "demo/small", "--host", "0.0.0.0"], "only on this machine"),
        (
            ["-m", "demo/small", "--trajectory", "a"],
            "--trajectory names that of COMMAND",
        ),
        (["-m", "demo/small", "--trajectory", "../a", "--", "true"], "letters, digits"),
        (
            ["-m", "demo/small", "--", "no-such-program-here"],
            "cannot be started: No such file",
        ),
        (["-m", "demo/small", "--budget", "5 apples"], "the unit 'apples'"),
        (["-m", "openai/unknown-model-x", "--budget", "5 USD"], "the price of"),
        (["-m", "openai/unknown-model-x"], "OPENAI_API_KEY"),
        (["-m", "demo/small", "--no-record", "--home", "x"], "leave out --home"),
        (["-m", "demo/small", "--tokens", "none.toml"], "cannot be read"),
        (["-m", "demo/small", "--round", ""], "--round needs a name"),
    ],
)
def test_wrong_usage_ends_with_2(
    arguments: list[str],
    words: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert main(["proxy", *arguments]) == 2
    told = capsys.readouterr().err
    assert words in told
    assert "Traceback" not in told


@pytest.mark.parametrize(
    ("token", "words"),
    [
        ("short", "at least 16 characters"),
        ("zażółć gęślą jaźń", "without spaces"),
        ("0123456789abcdef\r\nX: y", "without spaces"),
    ],
)
def test_a_weak_token_of_the_environment_is_refused(
    token: str,
    words: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVALWRIGHT_PROXY_TOKEN", token)
    assert main(["proxy", "-m", "demo/small"]) == 2
    assert words in capsys.readouterr().err


def test_the_programs_environment_has_no_other_key() -> None:
    found = child_environment(
        "http://127.0.0.1:1",
        "a",
        "t",
        {"ANTHROPIC_AUTH_TOKEN": "x", "NO_PROXY": "y", "P": "q"},
    )
    assert (
        found["OPENAI_BASE_URL"]
        == found["OPENAI_API_BASE"]
        == "http://127.0.0.1:1/t/a/v1"
    )
    assert found["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:1/t/a"
    assert found["OPENAI_API_KEY"] == found["ANTHROPIC_API_KEY"] == "t"
    assert "ANTHROPIC_AUTH_TOKEN" not in found
    assert found["NO_PROXY"].startswith("y,127.0.0.1")
    assert trajectory_of(["a", "b"]) != trajectory_of(["a b"])


def test_the_last_line_counts_everything() -> None:
    from evalwright.cli.proxy_progress import state_line, summary

    counts = Counts(
        requested=5, asked=2, stored=1, joined=1, failed=1, usage=Usage(1, 1)
    )
    counts.cost = 0.5
    counts.failures = {"rate limited": 1}
    state = State(counts, 3, 2, 1)
    assert summary(state) == (
        "5 requests: 2 answered from the store, 2 by models. Cost: $0.50. 1 failed: rate"
        " limited 1. 2 refused before a model was asked."
    )
    assert "3 in flight" in state_line(state)
    spent = State(counts, 0, 0, 1, over_budget=7)
    assert "7 over budget" in state_line(spent)
    assert "7 not sent: the budget is spent." in summary(spent)


@pytest.mark.slow
@pytest.mark.parametrize("system", ["inspect_ai", "promptfoo", "lm_eval"])
def test_other_programs_are_killed_and_pay_once(system: str, tmp_path: Path) -> None:
    """See benchmarks/proxy_peers.py; here with two kills."""
    if not (PEERS / system).is_dir():
        pytest.skip(f"{system} is not installed: python -m benchmarks proxy_peers")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "benchmarks", "proxy_peers"),
            *("--kills", "2", "--systems", system),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.dumps(system)[1:-1] in done.stdout
