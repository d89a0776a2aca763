"""Job files for clusters: an array of jobs that run the shards of a run, and a job that merges.

Arguments are quoted as the place where they stand requires; those that no quoting makes safe
are refused. No file contains a secret.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from textwrap import indent
from unicodedata import category

from evalwright.core.errors import ConfigurationError
from evalwright.core.secrets import find_key_prefix
from evalwright.tasks.safe_files import failing_as

SYSTEMS = ("slurm", "pbs", "kubernetes")

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
"""The script of a Kubernetes pod.

A pod's disk is deleted with it. So each pod saves its store to a file beside the runs, and the
pod that repeats the shard loads it from there.
"""

_INDENT = 12 * " "

_REQUESTS = {"cpu": "1", "memory": "4Gi"}
"""What a shard requests from its node by default.

This is enough for sending requests; a local model needs limits of its own.
"""

_FOR_MERGE = {
    "slurm": {
        "-A": "account",
        "-p": "partition",
        "-q": "qos",
        "-M": "clusters",
        "-t": "time",
        "": "reservation constraint mail-user mail-type comment wckey",
    },
    "pbs": {"-A": "", "-q": "", "-P": "", "-M": "", "-m": ""},
}
"""Submission options that hold for the merge too: who pays, and where and when the job runs.

Keys are short option names; values are the matching long names, without dashes.
"""

_MERGE = '"$@" || { code=$?; [ "$code" = 1 ] || exit "$code"; }'
"""Succeeds once the run is merged, even if samples in it failed (exit code 1)."""


@dataclass(frozen=True, slots=True)
class Jobs:
    """The jobs of one evaluation.

    Attributes:
        name: The evaluation's name.
        shards: How many shards there are.
        run: The arguments of `evalwright run ...`, without its shard.
        merge: The arguments of the command that merges the shards.
        options: Options for submitting the shards, as typed; for Kubernetes the limits of a
            shard's resources (KEY=VALUE).
        image: For Kubernetes, the image of the containers.
        claim: For Kubernetes, the volume claim of the working folder.
        merge_options: Options for submitting the merge, besides those of `options` that hold for
            both.
        at_once: How many shards run at a time; 0 for all.
        tolerations: For Kubernetes, taints that the pods tolerate (KEY[=VALUE][:EFFECT]).
        shared_memory: For Kubernetes, how much memory the processes of a pod may share.
    """

    name: str
    shards: int
    run: Sequence[str]
    merge: Sequence[str]
    options: Sequence[str] = ()
    image: str = ""
    claim: str = ""
    merge_options: Sequence[str] = ()
    at_once: int = 0
    tolerations: Sequence[str] = ()
    shared_memory: str = "2Gi"


def job_file(system: str, jobs: Jobs) -> str:
    """Write the job file for one of SYSTEMS.

    Raises ConfigurationError for arguments that it cannot contain.
    """
    for text in (
        *jobs.run,
        *jobs.merge,
        *jobs.options,
        *jobs.merge_options,
        jobs.image,
        jobs.claim,
    ):
        if any(category(char) in ("Cc", "Cs", "Zl", "Zp") for char in text):
            raise ConfigurationError(
                f"A job file cannot contain {text!a}: it has line breaks or control"
                " characters. Put it into a suite file (--config)."
            )
        if key_start := find_key_prefix(text):
            raise ConfigurationError(
                f"An argument has the form of a key ('{key_start}...'), and job files hold"
                " none: put keys into the environment, .env or a secret."
            )
    n_shards = jobs.shards
    run = [*jobs.run[:2], "--shard", f"auto/{n_shards}", *jobs.run[2:]]
    plain = (
        re.sub(r"[^a-z0-9]+", "-", jobs.name.lower())
        .strip("-")[: 15 if system == "pbs" else 40]
        .strip("-")
    )
    values = {
        "NAME": plain if plain[:1].isalpha() else f"run-{plain}".strip("-")[:15],
        "SHARDS": str(n_shards),
    }
    at_once = min(jobs.at_once, n_shards) or n_shards
    if system == "kubernetes":
        limits = _limits(jobs.options)
        requests = {
            name: amount for name, amount in _REQUESTS.items() if name not in limits
        }
        values |= {
            "RUN": _yaml_list(["/bin/sh", "-c", _SHARD % n_shards, "sh", *run]),
            "MERGE": _yaml_list(
                [
                    "/bin/sh",
                    "-c",
                    _MERGE,
                    "sh",
                    *jobs.merge[:3],
                    "--wait",
                    *jobs.merge[3:],
                ]
            ),
            "IMAGE": json.dumps(jobs.image, ensure_ascii=False),
            "CLAIM": json.dumps(jobs.claim, ensure_ascii=False),
            "RESOURCES": json.dumps(
                {"requests": requests, "limits": limits}, ensure_ascii=False
            ),
            "TOLERATIONS": json.dumps(
                _tolerations(jobs.tolerations, limits), ensure_ascii=False
            ),
            "MEMORY": _amount(jobs.shared_memory),
            "PARALLEL": str(at_once),
        }
    else:
        options = [word for option in jobs.options for word in _words(option)]
        for_merge = [
            word
            for option in jobs.merge_options
            for word in _words(option, "--merge-option")
        ]
        values |= {
            "RUN": shlex.join(run),
            "MERGE": shlex.join(jobs.merge),
            "OPTIONS": "".join(f"{shlex.quote(word)} " for word in options),
            "MERGEOPTIONS": "".join(
                f"{shlex.quote(word)} "
                for word in (*_merge_options(system, options), *for_merge)
            ),
            "ATONCE": f"%{at_once}" if at_once < n_shards else "",
        }
    text = (files("evalwright.reports") / "templates" / f"jobs.{system}").read_text(
        encoding="utf-8"
    )
    # All marks at once, so that text in a value is not taken for a mark.
    return re.sub("@([A-Z]+)@", lambda mark: values[mark[1]], text)


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
            else json.dumps(text, ensure_ascii=False)
        )
        lines.append(f"{_INDENT}- {argument}")
    return "\n".join(lines)


def _words(option: str, typed: str = "--option") -> list[str]:
    with failing_as(
        ConfigurationError,
        f"{typed} {option!r} cannot be read as a shell would",
        ValueError,
    ):
        return shlex.split(option)


def _limits(options: Sequence[str]) -> Mapping[str, str]:
    for option in options:
        if not re.fullmatch(r"[\w./-]+=[\w.]+", option):
            raise ConfigurationError(
                "For Kubernetes --option is a limit of a shard's resources, such as"
                f" nvidia.com/gpu=1, not '{option}'."
            )
    return dict(option.split("=", 1) for option in options)


def _merge_options(system: str, words: Sequence[str]) -> list[str]:
    """Select the options for submitting shards that the merge needs too, such as the account."""
    option_names = _FOR_MERGE[system]
    long_names = {
        f"--{name}" for names in option_names.values() for name in names.split()
    }
    short_names = {name for name in option_names if name}
    merge_words: list[str] = []
    value_follows = False
    for word in words:
        if value_follows:
            merge_words.append(word)
            value_follows = False
        elif word in short_names or word in long_names:
            merge_words.append(word)
            value_follows = True
        elif word.partition("=")[0] in long_names or (
            word[:2] in short_names and not word.startswith("--")
        ):
            merge_words.append(word)
    return merge_words


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
