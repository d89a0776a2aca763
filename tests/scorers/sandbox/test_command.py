"""`command`: what it scores, and that nothing that an agent leaves behind steers it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from evalwright.core.errors import ConfigurationError, RequestFailed, UnknownName
from evalwright.core.responses import Response
from evalwright.core.samples import Sample, Score
from evalwright.sandboxes.plan import PlannedFile
from evalwright.sandboxes.protocol import SandboxLimits, SandboxSettings, Snapshot
from evalwright.scorers.registry import bind, registry, scorer
from evalwright.scorers.sandbox import command_scorer
from support.left_states import (
    answer_with,
    command_on,
    left_by,
    needs_jail,
    no_model,
    scored,
)

pytestmark = needs_jail

TESTS = {
    "/tests/check.py": (
        "import subprocess, sys\n"
        "reply = subprocess.run([sys.executable, '/work/app.py', '3'],"
        " capture_output=True, text=True)\n"
        "sys.exit(0 if reply.stdout.strip() == '6' else 1)\n"
    )
}
RIGHT = "echo 'import sys; print(2 * int(sys.argv[1]))' > /work/app.py"
WRONG = "echo 'print(5)' > /work/app.py"
RUN = "python3 /tests/check.py"


def test_the_exit_code_is_the_score() -> None:
    passed = command_on(RIGHT, RUN, files=TESTS)
    assert (passed.value, passed.label) == (1.0, "passed")
    assert passed.parts["exit_code"] == 0
    assert set(passed.parts) == {"exit_code", "seconds"}
    failed = command_on(WRONG, RUN, files=TESTS)
    assert (failed.value, failed.label, failed.parts["exit_code"]) == (0.0, "failed", 1)


def test_the_end_of_the_output_explains_it() -> None:
    score = command_on("true", r"seq 100000; printf 'an error\033[2J' >&2; exit 3")
    assert "100000" in score.explanation
    assert "an error?[2J" in score.explanation
    assert "Exit code 3" in score.explanation
    assert len(score.explanation) < 4_000


@pytest.mark.parametrize(
    ("run", "options", "value"),
    [
        ("echo 3 of 4 passed; exit 1", {"score": r"(\d+) of (\d+) passed"}, 0.75),
        ("echo 1 of 4; echo 2 of 4", {"score": r"(\d+) of (\d+)"}, 0.5),
        ("echo score: 40%", {"score": r"score: (\S+)"}, 0.4),
        ("echo all good", {"score": "good$"}, 1.0),
        ("echo nothing", {"score": "good"}, 0.0),
        ("echo 0 of 0", {"score": r"(\d+) of (\d+)"}, 0.0),
        ("echo on stderr: 1 >&2", {"score": r"stderr: (\d)"}, 1.0),
        ("echo words; echo 0.25; echo", {"reads": "number"}, 0.25),
        ("echo 0.25; exit 1", {"reads": "number"}, 0.25),
        ("echo none; exit 1", {"reads": "number"}, 0.0),
    ],
)
def test_a_score_in_the_output(run: str, options: dict[str, Any], value: float) -> None:
    assert command_on("true", run, **options).value == value


def test_an_output_that_the_pattern_gives_up_on_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(command_scorer, "PATTERN_SECONDS", 0.5)
    run = "printf 'a%.0s' $(seq 40); echo b"
    score = command_on("true", run, score="(a+)+$")
    assert (score.value, score.label) == (0.0, "failed")
    assert "was given up" in score.explanation


def test_tests_that_run_out_of_a_limit_fail() -> None:
    score = command_on("true", "sleep 60", seconds=0.3)
    assert (score.value, score.label) == (0.0, "timed out")
    settings = SandboxSettings(limits=SandboxLimits(memory_mb=64))
    score = command_on("true", "python3 -c 'x = bytearray(1 << 30)'", settings=settings)
    assert score.value == 0.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs `run`"),
        ({"run": "x", "seconds": 0}, "'seconds'"),
        ({"run": "x", "score": "("}, "no regular expression"),
        ({"run": "x", "score": "(a)(b)(c)"}, "at most two groups"),
        ({"run": "x", "score": "a", "reads": "number"}, "leave one out"),
        ({"run": "x", "reads": "last"}, "exit-code or number"),
        ({"run": "x", "files": ["a"]}, "mapping of paths"),
        ({"run": "x", "files": {"/a/../b": "x"}}, r"without '\.\.'"),
        ({"run": "x", "files": {"/a": ["x"]}}, "a text or"),
        ({"run": "x", "file": {}}, "Did you mean 'files'"),
    ],
)
def test_options_are_checked_when_bound(options: dict[str, Any], message: str) -> None:
    with pytest.raises((ConfigurationError, UnknownName), match=message):
        bind("command", options)


# What an agent leaves behind.

PASSES = "#!/bin/bash\nexit 0\n"
ATTACKS = {
    "a program in the path": (
        "mkdir -p /usr/local/bin && for n in python3 bash rm env; do"
        " printf '#!/bin/sh\\nexit 0\\n' > /usr/local/bin/$n;"
        " chmod +x /usr/local/bin/$n; done"
    ),
    "another python beside the first": (
        "(mv /opt /opt2 && mkdir -p /opt/python/bin && printf '#!/bin/sh\\nexit 0\\n' >"
        " /opt/python/bin/python3 && chmod +x /opt/python/bin/python3) || true"
    ),
    "another loader of programs": (
        "(mv /lib64 /lib65; mv /usr /usr2; mkdir -p /usr/bin /lib64; cp /bin/true"
        " /usr/bin/bash) 2> /dev/null || true"
    ),
    "a library for every program": (
        "cd /tmp && printf 'int x;' > p.c && (gcc -shared -o /tmp/p.so p.c || echo x >"
        " p.so) 2> /dev/null; printf '%s' '#include <stdlib.h>\nvoid __attribute__((constructor))"
        " f(void){_exit(0);}\nvoid _exit(int);' > q.c; gcc -shared -fPIC -o /etc/q.so q.c"
        " 2> /dev/null; echo /etc/q.so > /etc/ld.so.preload"
    ),
    "a library beside python": (
        "(cp /etc/q.so /opt/python/lib/libc.so.6) 2> /dev/null || true"
    ),
    "settings of shells": (
        "for f in /root/.bashrc /root/.bash_profile /root/.profile /etc/bash.bashrc"
        " /etc/profile /work/.bashrc; do echo 'exit 0' > $f; done; mkdir -p"
        " /etc/profile.d; echo 'exit 0' > /etc/profile.d/x.sh"
    ),
    "python's own hooks": (
        "for d in /work /tests /root/.local/lib/python3.11/site-packages"
        " /root/.local/lib/python3.12/site-packages /etc/python3.11 /etc/python3.12;"
        " do mkdir -p $d; echo 'import os; os._exit(0)' | tee $d/sitecustomize.py >"
        " $d/usercustomize.py; echo 'import os; os._exit(0)' > $d/x.pth; done"
    ),
    "modules in the working folder": (
        "for n in subprocess sys os json unittest pytest; do echo 'import os;"
        " os._exit(0)' > /work/$n.py; done"
    ),
    "modules beside the tests": (
        "mkdir -p /tests/subprocess && for n in sitecustomize subprocess/__init__; do"
        " printf 'import posix; posix._exit(0)' > /tests/$n.py; done"
    ),
    "a link at the place of the tests": (
        "mkdir -p /work/mine && ln -s /work/mine /tests"
    ),
    "a link at the place of the file": (
        "mkdir -p /tests && ln -s /work/app.py /tests/check.py"
    ),
    "a folder at the place of the file": "mkdir -p /tests/check.py/x",
    "a file at the place of the folder": "echo x > /tests",
    "a pipe at the place of the file": "mkdir /tests && mkfifo /tests/check.py",
    "no rights at the place": "mkdir /tests && touch /tests/a && chmod 000 /tests",
    "a forged result": "echo passed > /tests.txt; echo 0 > /tmp/exit_code",
    "a test runner's settings above": (
        "printf '[pytest]\\naddopts=--co' > /pytest.ini; echo 'import os; os._exit(0)' >"
        " /conftest.py"
    ),
    "a process that goes on": (
        "nohup setsid bash -c 'while :; do echo > /tests/check.py; done' > /dev/null"
        " 2>&1 & disown -a"
    ),
    "no temporary folder": "rm -rf /tmp && ln -s /work /tmp",
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_makes_no_wrong_program_right(name: str) -> None:
    score = command_on(f"{WRONG}; {ATTACKS[name]}", RUN, files=TESTS)
    assert (score.value, score.parts["exit_code"]) == (0.0, 1.0), score


@pytest.mark.parametrize("name", ATTACKS)
def test_nor_a_right_program_wrong(name: str) -> None:
    score = command_on(f"{RIGHT}; {ATTACKS[name]}", RUN, files=TESTS)
    assert score.value == 1.0, score


@pytest.mark.parametrize(
    "module",
    ["unittest discover -s /tests", "unittest /tests/test_app.py", "doctest /tests/test_app.py"],
)  # fmt: skip
def test_modules_that_are_run_are_those_of_python(module: str) -> None:
    test = (
        "import unittest\nclass TestApp(unittest.TestCase):\n"
        "    def test(self):\n        self.assertEqual(1, 2)\n"
        '__doc__ = """\n>>> 1\n2\n"""\n'
    )
    left = ATTACKS["modules in the working folder"]
    score = command_on(
        f"{left}; echo 'import os; os._exit(0)' > /work/doctest.py",
        f"python3 -m {module}",
        files={"/tests/test_app.py": test},
    )
    assert score.value == 0.0, score


def test_git_runs_no_program_of_the_repository() -> None:
    setup = (
        "git init -q . && git config core.fsmonitor 'touch /work/ran; false' && printf"
        " '#!/bin/sh\ntouch /work/ran' > .git/hooks/pre-commit && chmod +x"
        " .git/hooks/pre-commit && printf '[core]\\n\\tpager = touch /work/ran' >"
        " /root/.gitconfig && cp /root/.gitconfig /etc/gitconfig && echo 1 > a"
    )
    run = (
        "git status > /dev/null && git add a && git -c user.name=a -c user.email=a@b"
        " commit -qm x && git log > /dev/null && test ! -e /work/ran"
    )
    score = command_on(setup, run)
    assert score.value == 1.0, score


def test_a_full_disk_stops_no_test() -> None:
    settings = SandboxSettings(limits=SandboxLimits(disk_mb=16))
    fill = "head -c 100M /dev/zero > /work/big; true"
    score = command_on(
        f"{RIGHT}; {fill}", f"{RUN} && echo x > /tmp/y", files=TESTS, settings=settings
    )
    assert score.value == 1.0, score


def test_the_tests_see_no_process_and_no_network_of_the_model() -> None:
    score = command_on(
        "nohup sleep 100 > /dev/null 2>&1 & disown -a; nohup python3 -m http.server"
        " 8000 > /dev/null 2>&1 & disown -a; sleep 0.3",
        "! (echo > /dev/tcp/127.0.0.1/8000) 2> /dev/null && ! grep -sq sleep"
        " /proc/[0-9]*/comm",
    )
    assert score.value == 1.0, score


def test_files_of_a_folder_keep_their_rights_and_places() -> None:
    tree = (
        PlannedFile("run.sh", b"#!/bin/bash\n. $(dirname $0)/lib/a.sh\n", True),
        PlannedFile("lib/a.sh", b"exit 0\n"),
    )
    assert command_on("true", "/tests/run.sh", files={"/tests": tree}).value == 1.0
    alone = (PlannedFile("", b"#!/bin/bash\nexit 0\n", True),)
    assert command_on("true", "/x/run", files={"/x/run": alone}).value == 1.0


def test_hidden_files_in_the_models_own_folder_replace_what_is_there() -> None:
    score = command_on(
        "mkdir -p tests && echo 'exit 0' > tests/check.sh && echo 1 > tests/other",
        "bash tests/check.sh",
        files={"tests/check.sh": "test -e tests/other && exit 4"},
    )
    assert score.parts["exit_code"] == 4, score


def test_a_place_that_cannot_be_had_fails_the_answer() -> None:
    score = command_on("true", "true", files={"/usr/bin/x": "1"})
    assert score.value == 0.0
    assert "cannot be put in" in score.explanation


# Answers without a state.


def test_an_answer_without_a_state_is_missing() -> None:
    with pytest.raises(RequestFailed, match="strategy: agent") as raised:
        asyncio.run(scored("command", {"run": "true"}, answer_with(None)))
    assert raised.value.failure.party == "task"


def test_a_state_that_is_gone_says_so() -> None:
    gone = Snapshot("jail", "0" * 32)
    with pytest.raises(RequestFailed, match="not on this machine") as raised:
        asyncio.run(scored("command", {"run": "true"}, answer_with(gone)))
    assert raised.value.failure.party == "sandbox"
    assert "EVALWRIGHT_HOME" in str(raised.value)


def test_a_models_own_fault_without_a_state_has_the_worst_score() -> None:
    cut = answer_with(None, text="", responses=(Response("", finish_reason="length"),))
    score = asyncio.run(scored("command", {"run": "true"}, cut))
    assert (score.value, score.label) == (0.0, "cut")


def test_a_models_own_fault_is_scored_on_the_state_that_it_left() -> None:
    async def work() -> Score:
        cut = answer_with(
            await left_by("echo 1 > done"),
            text="",
            responses=(Response("", finish_reason="length"),),
        )
        return await scored("command", {"run": "test -e done"}, cut)

    assert asyncio.run(work()).value == 1.0
    assert bind("command", {"run": "x"}).own_faults


# A function of one's own.


def test_a_function_gets_the_sandbox() -> None:
    @scorer("counts-files", sandbox=True)
    async def counts_files(
        sample: Sample, answer: Any, ask: Any, sandbox: Any, *, folder: str = "/work"
    ) -> float:
        listed = await sandbox.exec(["ls", folder])
        return float(len(listed.stdout.split()))

    async def work() -> Score:
        answer = answer_with(await left_by("touch a b c"))
        bound = bind("counts-files", {})
        outcome: Any = bound.function(Sample("a"), answer, no_model)
        score: Score = await outcome
        return score

    assert asyncio.run(work()).value == 3.0
    assert bind("counts-files", {}).own_faults
    with pytest.raises(UnknownName, match="folder"):
        bind("counts-files", {"folders": "/x"})


def test_a_function_without_the_sandbox_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="ask, sandbox"):

        @scorer("takes-three", sandbox=True)
        async def takes_three(sample: Any, answer: Any, ask: Any) -> float:
            return 1.0

    with pytest.raises(ConfigurationError, match="ask, sandbox"):

        @scorer("is-plain", sandbox=True)
        def is_plain(sample: Any, answer: Any, ask: Any, sandbox: Any) -> float:
            return 1.0

    assert "takes-three" not in registry.names()
