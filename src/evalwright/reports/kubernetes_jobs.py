"""Job files of Kubernetes: a Kustomize base of workers or shards, or one file of shards.

All pods pass the restricted Pod Security Standard. Keys and the store's address come from a
secret that the files only name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import indent

from evalwright.core.errors import ConfigurationError
from evalwright.reports.jobs import (
    KUBERNETES,
    MAX_NAME_CHARS,
    Jobs,
    check_arguments,
    fill_template,
    plain_name,
)

MAX_FILES_BYTES = 1_000_000
"""Most bytes of all files of an evaluation: a ConfigMap may have 1 MiB."""

MAX_CLIENT_SIDE_BYTES = 200_000
"""From this size on, `kubectl apply` needs `--server-side`.

Otherwise it repeats the object in an annotation, of which an object may have 256 KiB.
"""

RUNS_FOLDER = "/evalwright/runs"
"""Where a worker's pod writes the run."""

CACHE_FOLDER = "/evalwright/cache"
"""Where a pod has the shared cache of models and data sets, of the hub's libraries."""

MIN_RETRIES = 20
"""How many pods of workers may fail, at least.

A sample that kills its process ends about seven before it is recorded as failed.
"""

_SHARD = """\
place=shard-$((JOB_COMPLETION_INDEX + 1))-of-%d
kept=
if [ -z "${EVALWRIGHT_STORE:-}" ] && [ -n "${EVALWRIGHT_HOME:-}" ]; then
  export EVALWRIGHT_HOME="$EVALWRIGHT_HOME/$place"
elif [ -z "${EVALWRIGHT_STORE:-}" ]; then
  export EVALWRIGHT_HOME="/store/$place"
  mkdir -p .evalwright
  kept=.evalwright/$place.jsonl.gz
  if [ -f "$kept" ]; then evalwright store import "$kept" || exit 2; fi
fi
"$@" &
run=$!
trap 'kill -TERM "$run"' TERM INT
while kill -0 "$run" 2> /dev/null; do wait "$run"; code=$?; done
if [ -n "$kept" ]; then
  rm -f "$kept.new.gz"
  evalwright store export "$kept.new.gz" && mv "$kept.new.gz" "$kept"
fi
exit "$code"
"""
"""The script of a shard's pod.

A pod's disk is deleted with it. So each pod saves its store to a file beside the runs, and the
pod that repeats the shard loads it from there.
"""

_MERGE = '"$@" || { code=$?; [ "$code" = 1 ] || exit "$code"; }'
"""Succeeds once the run is merged, even if samples in it failed (exit code 1)."""

_INDENT = 12 * " "

_REQUESTS = {"cpu": "1", "memory": "4Gi"}
"""What a pod requests from its node by default.

This is enough for sending requests; a local model needs limits of its own.
"""

_USER_ID = 1000
_POSTGRES_USER_ID = 999
"""The user `postgres` of the image of that name."""

_CONTAINER_SECURITY = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}

_COMMENT = """\
# 1. Create the secret, which no file contains, from a file .env with the lines
#    EVALWRIGHT_STORE=postgresql://... and the keys of models:
#      kubectl create secret generic {secret} --from-env-file=.env
# 2. Start:
#      {apply}
# Start it again after a failure, and to send what is missing; what is stored is not sent twice:
#      kubectl delete job {jobs} --ignore-not-found && {apply}"""

_VOLUME_COMMENT = """
# volume.yaml is not part of this base, so that no `kubectl delete -k` removes {content}.
# Create the volume once:
#      kubectl apply -f THIS_FOLDER/volume.yaml"""

_POSTGRES_COMMENT = """\
# A PostgreSQL server for trying workers. Do not use it in production.
# It takes its password from PGPASSWORD in the secret {secret}, where EVALWRIGHT_STORE is
# postgresql://evalwright@evalwright-postgres/evalwright"""


@dataclass(frozen=True, slots=True)
class Pods:
    """The pods of the jobs of one evaluation.

    Attributes:
        image: The image of the containers.
        secret: The secret with keys and the address of the store.
        claim: The volume claim: of the runs of workers ("" for none), of the working folder of
            shards.
        cache_claim: The volume claim of the cache of models and data sets; "" for a cache of each
            pod.
        limits: Limits of a pod's resources, as typed (KEY=VALUE).
        node_labels: Labels of the nodes on which the pods run, as typed (KEY=VALUE).
        tolerations: Taints that the pods tolerate, as typed (KEY[=VALUE][:EFFECT]).
        shared_memory: How much memory the processes of a pod may share.
    """

    image: str
    secret: str = "evalwright"
    claim: str = ""
    cache_claim: str = ""
    limits: Sequence[str] = ()
    node_labels: Sequence[str] = ()
    tolerations: Sequence[str] = ()
    shared_memory: str = "2Gi"


def shards_file(jobs: Jobs, pods: Pods) -> str:
    """Write the Job of the shards and the Job that merges them, as one file.

    Args:
        jobs: the jobs, in shards.
        pods: their pods.

    Raises:
        ConfigurationError: an argument cannot be in a job file.
    """
    merge = [*jobs.merge[:3], "--wait", *jobs.merge[3:]]
    shard_words = ["/bin/sh", "-c", _SHARD % jobs.shards, "sh", *jobs.command]
    values = {
        **_pod_values(jobs, pods),
        "SHARDS": str(jobs.shards),
        "SHARD_LABELS": _labels(jobs, "shard"),
        "MERGE_LABELS": _labels(jobs, "merge"),
        "RUN": _yaml_list(shard_words),
        "MERGE": _yaml_list(["/bin/sh", "-c", _MERGE, "sh", *merge]),
        "CLAIM": _json(pods.claim),
        "PARALLEL": str(min(jobs.at_once, jobs.shards) or jobs.shards),
    }
    return fill_template("shards.kubernetes", values)


def kustomize_base(
    jobs: Jobs,
    pods: Pods,
    input_files: Mapping[str, bytes],
    with_postgres: bool = False,
) -> dict[str, str | bytes]:
    """Write a Kustomize base, which `kubectl apply -k` takes.

    Args:
        jobs: the jobs, of workers or in shards.
        pods: their pods.
        input_files: content of the files that workers need (a suite, tasks, rows), by their paths
            relative to the working folder.
        with_postgres: add a second base with a PostgreSQL server for trying workers.

    Returns:
        The content of each file, by its path in the base.

    Raises:
        ConfigurationError: an argument cannot be in a job file, or the files are too large.
    """
    keys = _file_keys(list(input_files))
    size = check_size(input_files)
    name = plain_name(jobs.name, MAX_NAME_CHARS[KUBERNETES])
    job_names = name if jobs.workers else f"{name} {name}-merge"
    server_side = "--server-side " if size > MAX_CLIENT_SIDE_BYTES else ""
    comment = _COMMENT.format(
        secret=pods.secret,
        apply=f"kubectl apply {server_side}-k THIS_FOLDER",
        jobs=job_names,
    )
    if pods.claim:
        content = "the runs" if jobs.workers else "the files and runs"
        comment += _VOLUME_COMMENT.format(content=content)
    generator = ""
    if keys:
        lines = [f"      - files/{key}" for key in keys.values()]
        listed = "\n".join(lines)
        generator = (
            f"configMapGenerator:\n  - name: {name}-files\n    files:\n{listed}\n"
            "generatorOptions:\n"
            "  # The name ends with a hash of the content, so that no pod sees other files.\n"
            f"  labels: {_labels(jobs, 'files')}"
        )
    job = _workers_job(jobs, pods, keys) if jobs.workers else shards_file(jobs, pods)
    base: dict[str, str | bytes] = {
        "kustomization.yaml": fill_template(
            "kustomization.yaml", {"COMMENT": comment, "FILES": generator}
        ).rstrip()
        + "\n",
        "job.yaml": job,
    }
    base |= {f"files/{key}": input_files[path] for path, key in keys.items()}
    if pods.claim:
        base["volume.yaml"] = fill_template(
            "volume.yaml",
            {"CLAIM": _json(pods.claim), "LABELS": _labels(jobs, "volume")},
        )
    if with_postgres:
        base |= _postgres_base(pods)
    return base


def check_size(input_files: Mapping[str, bytes]) -> int:
    """Return the size of files in bytes.

    Args:
        input_files: content of the files by path.

    Raises:
        ConfigurationError: a ConfigMap cannot hold them.
    """
    size = sum(map(len, input_files.values()))
    if size > MAX_FILES_BYTES:
        largest = max(input_files, key=lambda path: len(input_files[path]))
        raise ConfigurationError(
            f"The files of the evaluation have more than {MAX_FILES_BYTES:,} bytes, which is"
            f" what a ConfigMap holds; the largest is '{largest}'. Put large files into the"
            " image, or name a data set of the hub in the task."
        )
    return size


_FILES_COMMENT = (
    "            # Without subPath the files would be links through a hidden folder, which"
    " Evalwright does not follow.\n"
)


def _workers_job(jobs: Jobs, pods: Pods, keys: Mapping[str, str]) -> str:
    """Write the Job of the workers."""
    name = plain_name(jobs.name, MAX_NAME_CHARS[KUBERNETES])
    files_volume = "          emptyDir: {}"
    if keys:
        items = [
            _json({"key": key, "path": f"files/{path}"}) for path, key in keys.items()
        ]
        listed = "\n".join(f"              - {item}" for item in items)
        files_volume = (
            f"          configMap:\n            name: {name}-files\n"
            f"            items:\n{listed}"
        )
    runs_volume = (
        "          # Mounted by all workers, of which the last writes the run.\n"
        f"          persistentVolumeClaim: {{claimName: {_json(pods.claim)}}}"
        if pods.claim
        else "          # Deleted with the pod. The same command makes the run again from the"
        " store, anywhere.\n          emptyDir: {}"
    )
    values = {
        **_pod_values(jobs, pods),
        "WORKERS": str(jobs.workers),
        "LABELS": _labels(jobs, "worker"),
        "RETRIES": str(max(MIN_RETRIES, 2 * jobs.workers)),
        "RUN": _yaml_list(jobs.command),
        "FILES": files_volume,
        "FILES_COMMENT": _FILES_COMMENT if keys else "",
        "FILES_MOUNT": ", subPath: files, readOnly: true" if keys else "",
        "RUNS": runs_volume,
    }
    return fill_template("workers.kubernetes", values)


def _postgres_base(pods: Pods) -> dict[str, str | bytes]:
    labels = _json(
        {
            "app.kubernetes.io/name": "postgresql",
            "app.kubernetes.io/instance": "evalwright-postgres",
            "app.kubernetes.io/component": "store",
            "app.kubernetes.io/part-of": "evalwright",
        }
    )
    values = {
        "LABELS": labels,
        "SECRET": _json(pods.secret),
        "POD_SECURITY": _pod_security(_POSTGRES_USER_ID),
        "CONTAINER_SECURITY": _json(_CONTAINER_SECURITY),
    }
    kustomization = fill_template(
        "kustomization.yaml",
        {"COMMENT": _POSTGRES_COMMENT.format(secret=pods.secret), "FILES": ""},
    )
    return {
        "postgres/kustomization.yaml": kustomization.replace(
            "job.yaml", "postgres.yaml"
        ).rstrip()
        + "\n",
        "postgres/postgres.yaml": fill_template("postgres.yaml", values),
    }


def _pod_values(jobs: Jobs, pods: Pods) -> dict[str, str]:
    """Return the marks that pods of workers and of shards share.

    Raises:
        ConfigurationError: an argument cannot be in a job file.
    """
    check_arguments([*jobs.run, *jobs.merge, pods.image, pods.claim])
    for option_name, name in (
        ("--secret", pods.secret),
        ("--claim", pods.claim),
        ("--cache-claim", pods.cache_claim),
    ):
        if name and not re.fullmatch(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", name):
            raise ConfigurationError(
                f"{option_name} is a name in Kubernetes, of small letters, digits, dots"
                f" and dashes, not {name!a}."
            )
    limits = _pairs(
        pods.limits,
        "For Kubernetes --option is a limit of a pod's resources, such as nvidia.com/gpu=1",
    )
    requests = {
        name: amount for name, amount in _REQUESTS.items() if name not in limits
    }
    nodes = _pairs(
        pods.node_labels,
        "--node-label is KEY=VALUE, such as cloud.google.com/gke-spot=true",
    )
    return {
        "NAME": plain_name(jobs.name, MAX_NAME_CHARS[KUBERNETES]),
        "IMAGE": _json(pods.image),
        "SECRET": _json(pods.secret),
        "RESOURCES": _json({"requests": requests, "limits": limits}),
        "NODES": _json(nodes),
        "TOLERATIONS": _json(_tolerations(pods.tolerations, limits)),
        "MEMORY": _amount(pods.shared_memory),
        **_cache_values(pods.cache_claim),
        "POD_SECURITY": _pod_security(_USER_ID),
        "CONTAINER_SECURITY": _json(_CONTAINER_SECURITY),
    }


def _cache_values(claim: str) -> dict[str, str]:
    """Return the marks for the cache of models and data sets that all pods share."""
    if not claim:
        return {"CACHE_ENV": "", "CACHE_MOUNT": "", "CACHE_VOLUME": ""}
    volume = f"{{claimName: {_json(claim)}}}"
    return {
        "CACHE_ENV": f"            - {{name: HF_HOME, value: {CACHE_FOLDER}}}\n",
        "CACHE_MOUNT": f"            - {{name: cache, mountPath: {CACHE_FOLDER}}}\n",
        "CACHE_VOLUME": (
            "        # Models and data sets, downloaded once for all pods.\n"
            "        - name: cache\n"
            f"          persistentVolumeClaim: {volume}\n"
        ),
    }


def _pod_security(user_id: int) -> str:
    """Return the security context of a pod whose containers run as that user."""
    return _json(
        {
            "runAsNonRoot": True,
            "runAsUser": user_id,
            "runAsGroup": user_id,
            "fsGroup": user_id,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        }
    )


def _labels(jobs: Jobs, component: str) -> str:
    """Return the recommended labels of Kubernetes."""
    return _json(
        {
            "app.kubernetes.io/name": "evalwright",
            "app.kubernetes.io/instance": plain_name(
                jobs.name, MAX_NAME_CHARS[KUBERNETES]
            ),
            "app.kubernetes.io/component": component,
        }
    )


def _file_keys(paths: Sequence[str]) -> dict[str, str]:
    """Return a key for each file in a ConfigMap: letters, digits, dots and dashes, unique."""
    keys: dict[str, str] = {}
    for path in paths:
        key = re.sub(r"[^A-Za-z0-9._-]+", "-", path.replace("/", "--"))[-200:]
        if key == "." or key.startswith("..") or key in keys.values():
            key = f"{len(keys) + 1}-{key}"
        keys[path] = key
    return keys


def _json(content: object) -> str:
    """Write JSON, which is YAML too."""
    return json.dumps(content, ensure_ascii=False)


def _yaml_list(words: Sequence[str]) -> str:
    """Write arguments as a YAML list for Kubernetes, one a line.

    They are JSON, which is YAML too, with `$` doubled so that Kubernetes expands no `$(NAME)` in
    them. A script, the only one with line breaks, is a block that people can read.
    """
    lines = []
    for word in words:
        text = word.replace("$", "$$")
        argument = (
            "|\n" + indent(text, _INDENT + "  ").rstrip("\n")
            if "\n" in text
            else _json(text)
        )
        lines.append(f"{_INDENT}- {argument}")
    return "\n".join(lines)


def _pairs(texts: Sequence[str], explanation: str) -> Mapping[str, str]:
    for text in texts:
        if not re.fullmatch(r"[\w./-]+=[\w.-]*[\w]", text):
            raise ConfigurationError(f"{explanation}, not '{text}'.")
    return dict(text.split("=", 1) for text in texts)


def _tolerations(
    texts: Sequence[str], limits: Mapping[str, str]
) -> list[dict[str, str]]:
    """Return the tolerations as typed, and those for nodes with the requested accelerators.

    Nodes with accelerators usually admit only pods that tolerate a taint with the accelerator's
    name.
    """
    accelerators = [name for name in limits if "/" in name]
    tolerations = [
        {"key": name, "operator": "Exists", "effect": "NoSchedule"}
        for name in accelerators
    ]
    for text in texts:
        match = re.fullmatch(
            r"([\w./-]+)(?:=([\w.-]*))?(?::(NoSchedule|PreferNoSchedule|NoExecute))?",
            text,
        )
        if match is None:
            raise ConfigurationError(
                "--toleration is KEY[=VALUE][:EFFECT], such as"
                f" nvidia.com/gpu=present:NoSchedule, not '{text}'. Effects:"
                " NoSchedule, PreferNoSchedule, NoExecute."
            )
        key, taint_value, effect = match.groups()
        equal = (
            {"operator": "Exists"}
            if taint_value is None
            else {"operator": "Equal", "value": taint_value}
        )
        tolerations.append(
            {"key": key, **equal, **({"effect": effect} if effect else {})}
        )
    return tolerations


def _amount(text: str) -> str:
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?(Ki|Mi|Gi|Ti|k|M|G|T)?", text):
        raise ConfigurationError(
            f"--shared-memory is an amount such as 2Gi or 512Mi, not '{text}'."
        )
    return text
