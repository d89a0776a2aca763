"""Job files hold the command that was given, whatever is in it, and nothing else;
`tests/end_to_end/test_shards.py` runs them.
"""

from __future__ import annotations

import re
import shlex
import string
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
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

JOB = {
    "apiVersion": str, "kind": str, "metadata": {"name": str},
    "spec": {
        "completionMode": str, "completions": int, "parallelism": int, "backoffLimitPerIndex": int, "backoffLimit": int,
        "activeDeadlineSeconds": int, "ttlSecondsAfterFinished": int,
        "podFailurePolicy": {"rules": [{
            "action": str, "onExitCodes": {"containerName": str, "operator": str, "values": [int]},
            "onPodConditions": [{"type": str, "status": str}],
        }]},
        "template": {"spec": {
            "restartPolicy": str, "terminationGracePeriodSeconds": int,
            "tolerations": [{"key": str, "operator": str, "value": str, "effect": str}],
            "containers": [{
                "name": str, "image": str, "workingDir": str, "command": [str],
                "envFrom": [{"secretRef": {"name": str, "optional": bool}}],
                "resources": {"limits": dict, "requests": dict}, "volumeMounts": [{"name": str, "mountPath": str}],
            }],
            "volumes": [{
                "name": str, "persistentVolumeClaim": {"claimName": str}, "emptyDir": {"medium": str, "sizeLimit": str},
            }],
        }},
    },
}  # fmt: skip
"""The fields of batch/v1 Job that a file has, with their documented types."""


def check_fields(value: Any, form: Any, where: str = "Job") -> None:
    if isinstance(form, dict):
        assert isinstance(value, dict), where
        assert value.keys() <= form.keys(), where
        for key, part in value.items():
            check_fields(part, form[key], f"{where}.{key}")
    elif isinstance(form, list):
        assert isinstance(value, list), where
        for part in value:
            check_fields(part, form[0], f"{where}[]")
    else:
        assert type(value) is form, where


@example(words=[], name="NULL")
@example(words=[], name="1e5")
@given(words=WORDS, name=TEXT)
def test_arguments_come_through_as_they_are(words: list[str], name: str) -> None:
    jobs = Jobs(
        name,
        4,
        ["evalwright", "run", *words],
        ["evalwright", "runs", "merge", "--", name],
        image="i",
        claim=name,
    )
    run = ["evalwright", "run", "--shard", "auto/4", *words]
    for system in ("slurm", "pbs"):
        text = job_file(system, jobs)
        lines = [
            line.strip().removeprefix("exec ")
            for line in text.splitlines()
            if line.strip().startswith("exec ")
        ]
        assert [shlex.split(line) for line in lines] == [run, list(jobs.merge)]
        assert len(text.splitlines()) == len(
            job_file(system, Jobs("n", 4, [], [])).splitlines()
        )
    for job, wanted in zip(
        yaml.safe_load_all(job_file("kubernetes", jobs)),
        (run, [*jobs.merge[:3], "--wait", *jobs.merge[3:]]),
        strict=True,
    ):
        check_fields(job, JOB)
        (container,) = job["spec"]["template"]["spec"]["containers"]
        assert [re.sub(r"\$\$", "$", word) for word in container["command"]][
            4:
        ] == wanted
        assert (
            job["spec"]["template"]["spec"]["volumes"][0]["persistentVolumeClaim"][
                "claimName"
            ]
            == name
        )
        assert re.fullmatch(r"[a-z]([a-z0-9-]{0,50}[a-z0-9])?", job["metadata"]["name"])


def test_what_is_wrong_ends_a_merge_in_kubernetes_at_once() -> None:
    """A policy for exit codes is taken only where no container is restarted in its place."""
    _, job = yaml.safe_load_all(
        job_file("kubernetes", Jobs("n", 2, ["run"], ["merge"]))
    )
    pod = job["spec"]["template"]["spec"]
    rule, _ = job["spec"]["podFailurePolicy"]["rules"]
    assert pod["restartPolicy"] == "Never" and rule["action"] == "FailJob"
    assert rule["onExitCodes"]["containerName"] == pod["containers"][0]["name"]
    assert rule["onExitCodes"]["values"] == [2]
    script = [word.replace("$$", "$") for word in pod["containers"][0]["command"][:4]]
    for code, ends in {0: 0, 1: 0, 2: 2, 137: 137}.items():
        command = [*script, "sh", "-c", f"exit {code}"]
        assert subprocess.run(command, check=False, timeout=600).returncode == ends


def kubernetes_jobs(*options: str) -> list[Any]:
    done = typed("jobs", "kubernetes", "--image", "i", *options, "--", *RUN)
    assert done.code == 0, done.text
    return list(yaml.safe_load_all(done.out))


def test_a_kubernetes_job_has_what_a_shared_cluster_wants() -> None:
    options = [
        "--shards",
        "40",
        "--option",
        "nvidia.com/gpu=1",
        "--option",
        "memory=32Gi",
        "--toleration",
        "team=ml:NoSchedule",
    ]
    shards, merge = kubernetes_jobs(*options, "--shared-memory", "8Gi")
    assert shards["spec"]["completions"] == 40
    assert shards["spec"]["parallelism"] == 16
    assert (
        shards["spec"]["ttlSecondsAfterFinished"]
        == merge["spec"]["ttlSecondsAfterFinished"]
        > 0
    )
    pod = shards["spec"]["template"]["spec"]
    assert pod["tolerations"] == [
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "team", "operator": "Equal", "value": "ml", "effect": "NoSchedule"},
    ]
    (container,) = pod["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "1", "memory": "32Gi"}
    assert container["resources"]["requests"] == {"cpu": "1"}
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert volumes["shared-memory"]["emptyDir"] == {
        "medium": "Memory",
        "sizeLimit": "8Gi",
    }
    assert {"name": "shared-memory", "mountPath": "/dev/shm"} in container[
        "volumeMounts"
    ]
    first, second = shards["spec"]["podFailurePolicy"]["rules"]
    assert first["action"] == "FailIndex"
    assert first["onExitCodes"] == {
        "containerName": "shard",
        "operator": "In",
        "values": [2],
    }
    assert second["action"] == "Ignore"
    assert pod["restartPolicy"] == "Never"


def test_a_kubernetes_shard_has_no_sqlite_on_the_shared_volume() -> None:
    pod = kubernetes_jobs()[0]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    places = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert "emptyDir" in volumes["store"]
    assert f'EVALWRIGHT_HOME="{places["store"]}/' in container["command"][2]


@pytest.mark.parametrize("version", ["1.29", "1.33"])
def test_kubernetes_own_schema_takes_the_jobs(version: str) -> None:
    schemas = pytest.importorskip("kubernetes_validate")
    for job in kubernetes_jobs(
        "--option",
        "nvidia.com/gpu=1",
        "--toleration",
        "a",
        "--toleration",
        "b=c:NoExecute",
    ):
        schemas.validate(job, version, strict=True)


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
            2,
            ["evalwright", "run", name],
            ["evalwright", name],
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
        (["slurm", "--", *RUN, "--home", "shared"], "one store for all shards"),
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
    printed = typed("jobs", "slurm", "--", *RUN)
    assert printed.code == 0, printed.text
    assert typed("jobs", "slurm", "--into", "board.slurm", "--", *RUN).code == 0
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
