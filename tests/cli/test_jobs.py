"""Job files hold the command as it was typed, whatever is in it, and nothing else;
`tests/end_to_end/test_shards.py` runs them.
"""

from __future__ import annotations

import os
import shlex
import string
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evalwright.reports.jobs import Jobs, job_file
from support.typed import typed

RUN = ["run", "questions.yaml", "--model", "demo/small", "--name", "n"]
TEXT = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=30)
WORDS = st.lists(
    TEXT | st.text("$()@'\"`\\;&|# {}-NAMERUSHODIGLCP", max_size=20),
    min_size=1,
    max_size=5,
)


@pytest.mark.parametrize("workers", [0, 4])
@given(words=WORDS, name=TEXT)
@example(words=[], name="NULL")
def test_arguments_come_through_as_they_are(
    workers: int, words: list[str], name: str
) -> None:
    shards = 0 if workers else 4
    merge = [] if workers else ["evalwright", "runs", "merge", "--", name]
    jobs = Jobs(name, ["evalwright", "run", *words], workers, shards, merge)
    share = ["--worker"] if workers else ["--shard", "auto/4"]
    run = ["evalwright", "run", *share, *words]
    for system in ("slurm", "pbs"):
        text = job_file(system, jobs)
        lines = [
            line.strip().removeprefix("exec ")
            for line in text.splitlines()
            if line.strip().startswith("exec evalwright")
        ]
        assert [shlex.split(line) for line in lines] == [run, merge][: len(lines)]
        assert len(lines) == (1 if workers else 2)
        plain = Jobs("n", ["evalwright"], workers, shards, ["evalwright"])
        assert len(text.splitlines()) == len(job_file(system, plain).splitlines())


@pytest.mark.parametrize(
    ("system", "submitted"),
    [
        ("slurm", ["--job-name=n", "--array=1-4%2", "--requeue", "--open-mode=append", "--signal=B:TERM@60", "--gres=gpu:1"]),
        ("pbs", ["-N", "n", "-J", "1-4%2", "-r", "y", "-v", "EVALWRIGHT_STEP=worker,EVALWRIGHT_STORE", "--gres=gpu:1"]),
    ],
)  # fmt: skip
def test_an_array_of_workers_is_submitted_where_there_is_a_store(
    system: str, submitted: list[str]
) -> None:
    """The shell reads the file; only what submits is a stand-in, which prints its arguments."""
    options = ["--workers", "4", "--at-once", "2", "--option=--gres=gpu:1"]
    done = typed("jobs", system, *options, "--", *RUN)
    assert done.code == 0, done.text
    echo = "printf '%s\\n' \"$@\" >&2"
    script = f"sbatch() {{ {echo}; }}\nqsub() {{ {echo}; }}\n" + done.out.replace(
        "exec sbatch", "sbatch"
    ).replace("exec qsub", "qsub")
    without = {"PATH": os.environ["PATH"]}
    refused = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, env=without, check=False
    )
    assert refused.returncode == 2
    assert refused.stderr.startswith("Set EVALWRIGHT_STORE to the PostgreSQL database")
    store = {**without, "EVALWRIGHT_STORE": "postgresql://me@host/database"}
    ran = subprocess.run(
        ["bash", "-c", script, "file"],
        capture_output=True,
        text=True,
        env=store,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "me@host" not in ran.stderr  # arguments are in lists of processes
    worker = ["worker"] if system == "slurm" else []
    assert ran.stderr.splitlines() == [*submitted, "file", *worker]


def test_workers_are_the_default_where_there_is_a_shared_store(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("EVALWRIGHT_STORE", raising=False)
    done = typed("jobs", "slurm", "--", *RUN)
    assert "--array=1-8" in done.out and "--shard auto/8" in done.out
    monkeypatch.setenv("EVALWRIGHT_STORE", "postgresql://me@host/database")
    done = typed("jobs", "slurm", "--", *RUN)
    assert "--array=1-8" in done.out and "evalwright run --worker" in done.out
    assert not done.err
    done = typed("jobs", "slurm", "--shards", "4", "--", *RUN)
    assert "--array=1-4" in done.out and "--shard auto/4" in done.out


@pytest.mark.parametrize(
    ("system", "options", "merge_has"),
    [
        (
            "slurm",
            ["--account=abc --gres=gpu:1", "-p big", "--mem=9G"],
            ["--account=abc", "-p", "big"],
        ),
        (
            "slurm",
            ["-Aabc -pbig --qos high --cpus-per-task 4"],
            ["-Aabc", "-pbig", "--qos", "high"],
        ),
        (
            "pbs",
            ["-l select=1:ngpus=1 -q big -P project", "-A abc"],
            ["-q", "big", "-P", "project", "-A", "abc"],
        ),
        ("pbs", [], []),
    ],
)
def test_who_pays_and_where_is_said_of_the_merge_too(
    system: str, options: list[str], merge_has: list[str]
) -> None:
    typed_options = [f"--option={option}" for option in options]
    done = typed(
        "jobs",
        system,
        "--shards",
        "8",
        "--at-once",
        "3",
        *typed_options,
        "--merge-option",
        "-v X=1",
        "--",
        *RUN,
    )
    assert done.code == 0, done.text
    lines = [
        shlex.split(line)
        for line in done.out.splitlines()
        if line.startswith(("  sbatch", "  qsub", "  shards="))
    ]
    submission = lines[1][: lines[1].index("$0")]
    assert submission[-len(merge_has) - 2 :] == [*merge_has, "-v", "X=1"]
    assert "1-8%3" in done.out


@given(name=TEXT)
def test_bash_reads_hostile_names_as_words(name: str) -> None:
    text = job_file(
        "slurm",
        Jobs(
            name,
            ["evalwright", "run", name],
            shards=2,
            merge=["evalwright", name],
            options=[shlex.quote(name)],
        ),
    )
    echo = "sbatch() { printf '%s\\0' \"$@\" >&2; }\nset -- submit\n" + text
    ran = subprocess.run(["bash", "-c", echo], capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert name.encode() in ran.stderr.split(b"\0")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["slurm", "--", "compare", "a", "b"], "Jobs are for `evalwright run`"),
        (["slurm", "--", *RUN[:-2]], "Give the evaluation a --name"),
        (["slurm", "--", *RUN[:-1], "../n"], "cannot be the name of a run"),
        (["slurm", "--", *RUN, "--shard", "1/2"], "--shard cannot be in a job's command"),
        (["slurm", "--", *RUN, "--home", "shared"], "one store for all jobs"),
        (["slurm", "--", *RUN, "--until", "accuracy +-0.1"], "--until cannot be"),
        (["slurm", "--", *RUN, "--modl", "x"], "--modl"),
        (["slurm", "--", *RUN, "-M", "api_key=abcdefgh1"], "has a key in it"),
        (["slurm", "--", *RUN, "--judge", "openai/x", "-R", "judge.headers.Authorization=abc"], "has a key in it"),
        (["slurm", "--", *RUN, "--model", "vllm/http://me:pass@host/v1#x"], "has a key in it"),
        (["slurm", "--", *RUN, "-T", "prompt.user=sk-" + string.ascii_lowercase + string.digits], "form of a key"),
        (["slurm", "--", *RUN, "-T", "prompt.user=a\nb"], "line breaks or control characters"),
        (["kubernetes", "--image", "a\u2028b", "--", *RUN], "line breaks or control characters"),
        (["kubernetes", "--", *RUN], "--image"),
        (["kubernetes", "--image", "i", "--option", "--gres=gpu:1", "--", *RUN], "nvidia.com/gpu=1"),
        (["slurm", "--image", "i", "--", *RUN], "--image has no effect"),
        (["pbs", "--claim", "i", "--", *RUN], "--claim has no effect"),
        (["pbs", "--toleration", "a", "--", *RUN], "--toleration has no effect"),
        (["slurm", "--shared-memory", "1Gi", "--", *RUN], "--shared-memory has no effect"),
        (["kubernetes", "--image", "i", "--merge-option", "x", "--", *RUN], "--merge-option has no effect"),
        (["slurm", "--workers", "4", "--shards", "4", "--", *RUN], "Leave one out"),
        (["slurm", "--workers", "0", "--", *RUN], "--workers"),
        (["slurm", "--workers", "4", "--merge-option", "x", "--", *RUN], "workers need no merge"),
        (["slurm", "--secret", "i", "--", *RUN], "--secret has no effect"),
        (["slurm", "--node-label", "a=b", "--", *RUN], "--node-label has no effect"),
        (["slurm", "--trial-postgres", "--", *RUN], "--trial-postgres has no effect"),
        (["kubernetes", "--image", "i", "--file", "a", "--", *RUN], "it is for workers on kubernetes"),
        (["kubernetes", "--workers", "4", "--image", "i", "--", *RUN], "--into FOLDER/"),
        (["kubernetes", "--workers", "4", "--image", "i", "--into", "f/", "--at-once", "2", "--", *RUN], "all workers run at a time"),
        (["kubernetes", "--workers", "4", "--image", "i", "--into", "f/", "--", *RUN, "--out", "o"], "--out has no effect in pods"),
        (["kubernetes", "--workers", "4", "--image", "i", "--into", "f/", "--file", "nothing", "--", *RUN], "no such file or folder"),
        (["kubernetes", "--workers", "4", "--image", "i", "--into", "f/", "--secret", "A b", "--", *RUN], "--secret is a name in Kubernetes"),
        (["kubernetes", "--image", "i", "--claim", "a_b", "--", *RUN], "--claim is a name in Kubernetes"),
        (["kubernetes", "--image", "i", "--node-label", "gpu", "--", *RUN], "--node-label is KEY=VALUE"),
        (["kubernetes", "--image", "i", "--toleration", "a b", "--", *RUN], "KEY[=VALUE][:EFFECT]"),
        (["kubernetes", "--image", "i", "--toleration", "a:Never", "--", *RUN], "Effects: NoSchedule"),
        (["kubernetes", "--image", "i", "--shared-memory", "much", "--", *RUN], "2Gi or 512Mi"),
        (["slurm", "--merge-option", "'open", "--", *RUN], "--merge-option \"'open\" cannot be read as a shell would"),
        (["pbs", "--option", "'open", "--", *RUN], "cannot be read as a shell would"),
        (["pbs", "--shards", "1", "--", *RUN], "--shards"),
        (["lsf", "--", *RUN], "slurm"),
        (["slurm"], "run"),
    ],
)  # fmt: skip
def test_what_no_job_file_is_made_of(words: list[str], said: str) -> None:
    done = typed("jobs", *words)
    assert done.code == 2
    assert said in done.err
    assert not done.out
    assert "abcdefgh1" not in done.text


def test_the_file_is_printed_or_written(folder: Path) -> None:
    printed = typed("jobs", "slurm", "--shards", "8", "--", *RUN)
    assert printed.code == 0, printed.text
    options = ["--shards", "8", "--into", "board.slurm"]
    assert typed("jobs", "slurm", *options, "--", *RUN).code == 0
    assert (folder / "board.slurm").read_text(encoding="utf-8") == printed.out
    assert "--array=1-8" in printed.out


def test_the_merge_looks_where_the_shards_are() -> None:
    done = typed(
        "jobs",
        "slurm",
        "--",
        *RUN,
        "--out",
        "there",
        "--plugin",
        "mine.py",
        "--task-root",
        "t",
    )
    assert (
        "exec evalwright runs merge --out there --plugin mine.py --task-root t -- n\n"
        in done.out
    )
    done = typed("jobs", "slurm", "--", "run", "--config", "suite.yaml", "--name", "n")
    assert (
        "exec evalwright run --shard auto/8 --out runs --config suite.yaml --name n\n"
        in done.out
    )
    assert "exec evalwright runs merge --out runs -- n\n" in done.out
