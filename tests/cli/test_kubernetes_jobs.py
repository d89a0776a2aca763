"""Files for Kubernetes are taken by its schemas and Kustomize, by clusters with the restricted Pod
Security Standard, and their command runs with what a pod has.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from signal import SIGINT, SIGTERM
from typing import Any

import jsonschema
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evalwright.core.errors import ConfigurationError
from evalwright.reports.jobs import Jobs
from evalwright.reports.kubernetes_jobs import (
    MAX_CLIENT_SIDE_BYTES,
    MAX_FILES_BYTES,
    Pods,
    kustomize_base,
    shards_file,
)
from support.command import ROOT, records
from support.kubernetes import (
    VERSIONS,
    check_failure_policy,
    check_pod,
    check_restricted,
    check_schema,
    container_words,
    kustomize,
    manifests,
    mount_files,
    pods,
    why_no_kustomize,
)
from support.typed import typed

needs_kustomize = pytest.mark.skipif(
    bool(why_no_kustomize()), reason=why_no_kustomize()
)
TEXT = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=30)
WORDS = st.lists(
    TEXT | st.text("$()@'\"`\\;&|# {}-NAMERUSHODIGLCP", max_size=20),
    min_size=1,
    max_size=5,
)
RUN = ["run", "factual-choice", "--model", "demo/small", "--name", "board"]
OPTIONS = [
    *(
        "--image",
        "registry.example/evalwright:1",
        "--option",
        "nvidia.com/gpu=1",
        "--option",
        "memory=32Gi",
    ),
    *("--toleration", "team=ml:NoSchedule", "--shared-memory", "8Gi"),
    *("--node-label", "cloud.google.com/gke-spot=true"),
]
FILES = {
    "suite.yaml": "tasks: [sets/law.yaml]\nmodels: [demo/small]\n",
    "sets/law.yaml": "task: law\ndataset: {path: rows.jsonl}\nprompt: {file: ask it.txt}\n",
    "sets/rows.jsonl": '{"id": "a", "input": "Is it so?", "target": "yes"}\n',
    "sets/ask it.txt": "{{ input }}\n",
    "sets/unused.txt": "-\n",
    ".env": "OPENAI_API_KEY=secret\n",
}


def write_files(folder: Path) -> None:
    for path, text in FILES.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


def base_of(folder: Path) -> list[dict[str, Any]]:
    """The objects in the files of a base that are sent to the server."""
    return manifests((folder / "job.yaml").read_text(encoding="utf-8"))


def check(objects: list[dict[str, Any]]) -> None:
    for manifest in objects:
        for version in VERSIONS:
            check_schema(manifest, version)
        if manifest["kind"] == "Job":
            check_failure_policy(manifest)
    for pod in pods(objects):
        check_restricted(pod)
        check_pod(pod)


@example(words=[], name="NULL")
@example(words=["$(HOME)", "$$(HOME)"], name="1e5")
@given(words=WORDS, name=TEXT)
def test_hostile_arguments_come_through(words: list[str], name: str) -> None:
    run = ["evalwright", "run", *words]
    merge = ["evalwright", "runs", "merge", "--", name]
    hostile_pods = Pods(image=name, claim="c")
    shards, merging = manifests(
        shards_file(Jobs(name, run, shards=4, merge=merge), hostile_pods)
    )
    base = kustomize_base(Jobs(name, run, workers=4), hostile_pods, {"a": b""})
    (workers,) = manifests(str(base["job.yaml"]))
    expected = [
        (shards, 4, ["evalwright", "run", "--shard", "auto/4", *words]),
        (merging, 4, [*merge[:3], "--wait", *merge[3:]]),
        (workers, 0, ["evalwright", "run", "--worker", *words]),
    ]
    for manifest, n_script_words, command in expected:
        check_schema(manifest, "1.33")
        (container,) = next(pods([manifest]))["containers"]
        assert container_words(container)[n_script_words:] == command
        assert container["image"] == name


def test_the_schemas_refuse_what_a_server_refuses() -> None:
    (job, _) = manifests(
        shards_file(Jobs("n", ["run"], shards=2), Pods("i", claim="c"))
    )
    job["spec"]["template"]["spec"]["containers"][0]["comand"] = []
    with pytest.raises(jsonschema.ValidationError, match="comand"):
        check_schema(job, "1.31")


@pytest.mark.parametrize("share", ["--workers", "--shards"])
@pytest.mark.parametrize(
    "options", [[], [*OPTIONS[2:], "--claim", "c", "--cache-claim", "models"]]
)
def test_a_restricted_cluster_takes_the_base(
    share: str, options: list[str], folder: Path
) -> None:
    into = ["--into", "base/"]
    done = typed(
        "jobs", "kubernetes", share, "40", "--image", "i", *options, *into, "--", *RUN
    )
    assert done.code == 0, done.text
    check(base_of(folder / "base"))
    if options or share == "--shards":
        check(manifests((folder / "base/volume.yaml").read_text(encoding="utf-8")))


def test_pods_have_what_a_shared_cluster_wants(folder: Path) -> None:
    run = ["jobs", "kubernetes", "--workers", "40", *OPTIONS, "--into", "base"]
    done = typed(*run, "--", *RUN)
    assert done.code == 0, done.text
    (job,) = base_of(folder / "base")
    assert job["spec"]["parallelism"] == 40
    assert "completions" not in job["spec"]  # the first that ends well ends the work
    assert job["spec"]["ttlSecondsAfterFinished"] > 0
    _, stopped, wrong = job["spec"]["podFailurePolicy"]["rules"]
    # Kubernetes counts the pods that a smaller parallelism removes as failures.
    assert stopped["action"] == "Ignore"
    assert stopped["onExitCodes"]["values"] == [128 + SIGINT, 128 + SIGTERM]
    assert wrong["action"] == "FailJob"
    assert job["metadata"]["labels"]["app.kubernetes.io/instance"] == "board"
    (pod,) = pods([job])
    assert pod["nodeSelector"] == {"cloud.google.com/gke-spot": "true"}
    assert pod["tolerations"] == [
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "team", "operator": "Equal", "value": "ml", "effect": "NoSchedule"},
    ]
    (container,) = pod["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "1", "memory": "32Gi"}
    assert container["resources"]["requests"] == {"cpu": "1"}
    settings = {setting["name"]: setting["value"] for setting in container["env"]}
    grace = int(settings["EVALWRIGHT_GRACE"])
    assert grace < pod["terminationGracePeriodSeconds"]
    assert container["envFrom"] == [{"secretRef": {"name": "evalwright"}}]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    memory = {"medium": "Memory", "sizeLimit": "8Gi"}
    assert volumes["shared-memory"]["emptyDir"] == memory
    assert {"name": "shared-memory", "mountPath": "/dev/shm"} in container[
        "volumeMounts"
    ]


@pytest.mark.parametrize("share", ["--workers", "--shards"])
def test_pods_share_the_cache_that_an_administrator_names(
    share: str, folder: Path
) -> None:
    run = ["jobs", "kubernetes", share, "2", "--image", "i", "--into", "base/"]
    done = typed(*run, "--cache-claim", "models", "--", *RUN)
    assert done.code == 0, done.text
    job = base_of(folder / "base")[0]
    (pod,) = pods([job])
    (container,) = pod["containers"]
    settings = {setting["name"]: setting["value"] for setting in container["env"]}
    mount_paths = {
        mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]
    }
    assert settings["HF_HOME"] == mount_paths["cache"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert volumes["cache"]["persistentVolumeClaim"] == {"claimName": "models"}
    for options in ([], ["--cache-claim", "a/b"]):
        done = typed(*run, *options, "--", *RUN)
        assert done.code == (2 if options else 0), done.text
    (pod,) = pods(base_of(folder / "base")[:1])
    assert "cache" not in {volume["name"] for volume in pod["volumes"]}


def test_a_shard_that_is_asked_to_stop_has_not_failed() -> None:
    job, _ = manifests(shards_file(Jobs("n", ["run"], shards=2), Pods("i", claim="c")))
    _, stopped, wrong = job["spec"]["podFailurePolicy"]["rules"]
    assert stopped["action"] == "Ignore"
    assert stopped["onExitCodes"]["values"] == [128 + SIGINT, 128 + SIGTERM]
    assert wrong["action"] == "FailIndex"


def test_a_shard_has_no_sqlite_on_the_shared_volume() -> None:
    done = typed("jobs", "kubernetes", "--shards", "2", "--image", "i", "--", *RUN)
    assert done.code == 0, done.text
    pod = next(pods(manifests(done.out)))
    (container,) = pod["containers"]
    mount_paths = {
        mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]
    }
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert "emptyDir" in volumes["store"]
    assert f'EVALWRIGHT_HOME="{mount_paths["store"]}/' in container["command"][2]


def test_what_is_wrong_ends_a_merge_at_once() -> None:
    _, job = manifests(shards_file(Jobs("n", ["run"], shards=2), Pods("i", claim="c")))
    rule = job["spec"]["podFailurePolicy"]["rules"][1]
    assert rule["action"] == "FailJob"
    (container,) = next(pods([job]))["containers"]
    script = container_words(container)[:4]
    for code, ends in {0: 0, 1: 0, 2: 2, 137: 137}.items():
        command = [*script, "sh", "-c", f"exit {code}"]
        assert subprocess.run(command, check=False, timeout=600).returncode == ends


@needs_kustomize
def test_kustomize_mounts_the_files_that_the_command_needs(folder: Path) -> None:
    """The files that the command and its YAML files name, and none else."""
    write_files(folder)
    run = ["run", "--config", "suite.yaml", "--name", "it's $(NAME)"]
    options = ["--workers", "2", *OPTIONS, "--trial-postgres", "--claim", "c"]
    done = typed("jobs", "kubernetes", *options, "--into", "base/", "--", *run)
    assert done.code == 0, done.text
    objects = kustomize(folder / "base")
    check(objects)
    config_map, job = objects
    contents = mount_files(job, config_map)
    assert contents == {
        f"files/{path}": text.encode()
        for path, text in FILES.items()
        if path not in (".env", "sets/unused.txt")
    }
    check(kustomize(folder / "base/postgres"))
    overlay = (ROOT / "docs/reference/jobs.md").read_text(encoding="utf-8")
    overlay = overlay.split("# file: overlay/kustomization.yaml")[1].split("```")[0]
    (folder / "overlay").mkdir()
    (folder / "overlay/kustomization.yaml").write_text(
        overlay.replace("../board", "../base"), encoding="utf-8"
    )
    config_map, job = kustomize(folder / "overlay")
    check([config_map, job])
    assert config_map["metadata"]["namespace"] == "evaluations"
    assert mount_files(job, config_map) == contents
    assert job["spec"]["parallelism"] == 32
    written = [path for path in (folder / "base").rglob("*") if path.is_file()]
    assert not any("secret\n" in path.read_text(encoding="utf-8") for path in written)
    assert not any(
        "kind: Secret" in path.read_text(encoding="utf-8") for path in written
    )


@needs_kustomize
def test_kustomize_takes_binary_files_and_strange_names(folder: Path) -> None:
    contents = {"a b/ü.png": b"\xff\0\x80", "a/b=c": b"1", "a-b-c": b"2", "..x": b"3"}
    base = kustomize_base(Jobs("n", ["evalwright", "run"], 2), Pods("i"), contents)
    for path, content in base.items():
        (folder / path).parent.mkdir(exist_ok=True)
        encoded = content.encode() if isinstance(content, str) else content
        (folder / path).write_bytes(encoded)
    config_map, job = kustomize(folder)
    expected = {f"files/{path}": content for path, content in contents.items()}
    assert mount_files(job, config_map) == expected


@needs_kustomize
def test_a_changed_file_has_another_name(folder: Path) -> None:
    """A pod that starts later never sees other files than the first had."""
    names = []
    for content in (b"1", b"2"):
        base = kustomize_base(
            Jobs("n", ["evalwright", "run"], 2), Pods("i"), {"a": content}
        )
        for path, text in base.items():
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_bytes(
                text.encode() if isinstance(text, str) else text
            )
        names.append(kustomize(folder)[0]["metadata"]["name"])
    assert names[0] != names[1]


def test_files_have_a_limit() -> None:
    jobs = Jobs("n", ["evalwright", "run"], 2)
    small, medium = (
        kustomize_base(jobs, Pods("i"), {"a": b"x" * size})["kustomization.yaml"]
        for size in (MAX_CLIENT_SIDE_BYTES, MAX_CLIENT_SIDE_BYTES + 1)
    )
    assert "kubectl apply -k" in str(small)
    assert "kubectl apply --server-side -k" in str(medium)
    large = {"a": b"", "b.jsonl": b"x" * (MAX_FILES_BYTES + 1)}
    with pytest.raises(ConfigurationError, match=r"the largest is 'b.jsonl'"):
        kustomize_base(jobs, Pods("i"), large)


@pytest.mark.parametrize(
    ("files", "run", "message"),
    [
        ({"t.yaml": "dataset: {path: ../rows.jsonl}"}, ["t.yaml"], "files of the working folder only"),
        ({"t.yaml": ""}, ["../outside/t.yaml"], "files of the working folder only"),
        ({"t.yaml": "dataset: {path: large.jsonl}", "large.jsonl": "x" * 1_000_000}, ["t.yaml"], "the largest is 'large.jsonl'"),
        ({"t.yaml": f"key: sk-{'a1B2' * 12}"}, ["t.yaml"], "form of a key"),
    ],
)  # fmt: skip
def test_files_that_no_pod_can_have(
    files: dict[str, str], run: list[str], message: str, folder: Path
) -> None:
    inside = folder / "inside"
    for name, text in {
        **{f"inside/{name}": text for name, text in files.items()},
        "rows.jsonl": "",
        "outside/t.yaml": "",
    }.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    command = ["run", *run, "--model", "demo/small", "--name", "n"]
    options = ["--workers", "2", "--image", "i", "--into", "base/"]
    done = typed("jobs", "kubernetes", *options, "--", *command, folder=inside)
    assert done.code == 2
    assert message in done.err
    assert not (inside / "base").exists()


def test_a_link_out_of_the_folder_is_copied_only_if_the_user_names_it(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    write_files(folder)
    outside = tmp_path_factory.mktemp("outside") / "private"
    outside.write_text("private")
    link = folder / "sets/rows.jsonl"
    link.unlink()
    link.symlink_to(outside)
    command = ["jobs", "kubernetes", "--workers", "2", *OPTIONS, "--into", "base/"]
    run = ["run", "--config", "suite.yaml", "--name", "n"]
    for added in ([], ["--file", "sets"]):
        done = typed(*command, *added, "--", *run)
        assert done.code == 2
        assert "sets/rows.jsonl' is outside of the working folder" in done.err
        assert not (folder / "base").exists()
    done = typed(*command, "--file", "sets/rows.jsonl", "--", *run)
    assert done.code == 0, done.text
    copies = [file.read_text() for file in (folder / "base/files").iterdir()]
    assert "private" in copies


def lay_out_volume(volume: Path, contents: dict[str, bytes]) -> Path:
    """Lay files out as a node does for a ConfigMap: links at the top, through a hidden folder.

    Returns:
        What `subPath: files` mounts.
    """
    version = volume / "..2026_11_29_12_00_00.1"
    for path, content in contents.items():
        (version / path).parent.mkdir(parents=True, exist_ok=True)
        (version / path).write_bytes(content)
        (version / path).chmod(0o444)
    (volume / "..data").symlink_to(version.name)
    (volume / "files").symlink_to("..data/files")
    return (volume / "files").resolve()


@needs_kustomize
def test_the_command_runs_with_what_a_pod_has(folder: Path) -> None:
    """The container's command, with its environment alone, its folders and its files. Workers
    themselves are in tests/evaluation/test_workers.py.
    """
    write_files(folder)
    options = ["--workers", "2", *OPTIONS, "--into", "base/"]
    run = ["run", "--config", "suite.yaml", "--name", "board", "--quiet"]
    assert typed("jobs", "kubernetes", *options, "--", *run).code == 0
    config_map, job = kustomize(folder / "base")
    (container,) = next(pods([job]))["containers"]
    mounts = {mount["name"]: mount for mount in container["volumeMounts"]}
    assert mounts["files"]["subPath"] == "files"
    pod_root = folder / "pod"
    working_folder = lay_out_volume(folder / "volume", mount_files(job, config_map))
    for name in ("home", "runs"):
        (folder / "pod" / mounts[name]["mountPath"][1:]).mkdir(parents=True)
    words = [word.replace("/evalwright/", f"{pod_root}/evalwright/") for word in container_words(container)]  # fmt: skip
    settings = {
        setting["name"]: setting["value"].replace("/evalwright/", f"{pod_root}/evalwright/")
        for setting in container["env"]
    }  # fmt: skip
    assert container["workingDir"] == mounts["files"]["mountPath"]
    inherited = {key: os.environ[key] for key in ("PATH", "PYTHONPATH") if key in os.environ}  # fmt: skip
    program = [sys.executable, "-m", *words]
    ran = subprocess.run(
        program,
        cwd=working_folder,
        env={**inherited, **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert len(records(pod_root / "evalwright/runs/board")) == 1
    left = {path.name for path in working_folder.iterdir()}
    assert left == {"suite.yaml", "sets"}
