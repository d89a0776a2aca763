"""Writes job files for clusters: an array of jobs that runs a command in shards, and the job that merges them.

Arguments are quoted for the place where they stand, and those that no quoting makes safe there are refused. Nothing in a file is a secret.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from unicodedata import category

from evalwright.core.errors import ConfigurationError
from evalwright.core.secrets import key_in
from evalwright.tasks.files import failing_as

SYSTEMS = ("slurm", "pbs", "kubernetes")

_SHARD = (
    '[ -n "${EVALWRIGHT_STORE:-}" ] || export EVALWRIGHT_HOME="${EVALWRIGHT_HOME:-.evalwright}/shard-$((JOB_COMPLETION_INDEX + 1))-of-%d"; '
    'exec "$@"'
)
_MERGE = '"$@" || { code=$?; [ "$code" = 1 ] || exit "$code"; }'
"""Ends well when the run is merged, also where samples in it failed."""


@dataclass(frozen=True, slots=True)
class Jobs:
    """What the jobs do. name: of the evaluation. run: `evalwright run ...`, without its shard; merge: the one that merges, both as arguments.

    options: of the submission of shards, as typed; for Kubernetes the limits of a shard's resources (KEY=VALUE). image, claim: of
    Kubernetes alone, the image of the containers, and the volume claim of the working folder.
    """

    name: str
    shards: int
    run: Sequence[str]
    merge: Sequence[str]
    options: Sequence[str] = ()
    image: str = ""
    claim: str = ""


def job_file(system: str, made: Jobs) -> str:
    """The file for one of SYSTEMS. Raises ConfigurationError for what it cannot hold."""
    for text in (*made.run, *made.merge, *made.options, made.image, made.claim):
        if any(category(char) in ("Cc", "Cs", "Zl", "Zp") for char in text):
            raise ConfigurationError(
                f"A job file cannot contain {text!a}: it has line breaks or control characters. Put it into a suite file (--config)."
            )
        if found := key_in(text):
            raise ConfigurationError(
                f"An argument has the form of a key ('{found}...'), and job files hold none: put keys into the environment, .env or a secret."
            )
    of = made.shards
    run = [*made.run[:2], "--shard", f"auto/{of}", *made.run[2:]]
    plain = (
        re.sub(r"[^a-z0-9]+", "-", made.name.lower()).strip("-")[: 15 if system == "pbs" else 40].strip("-")
    )
    values = {"NAME": plain if plain[:1].isalpha() else f"run-{plain}".strip("-")[:15], "SHARDS": str(of)}
    if system == "kubernetes":
        values |= {
            "RUN": _listed(["/bin/sh", "-c", _SHARD % of, "sh", *run]),
            "MERGE": _listed(["/bin/sh", "-c", _MERGE, "sh", *made.merge[:3], "--wait", *made.merge[3:]]),
            "IMAGE": json.dumps(made.image, ensure_ascii=False),
            "CLAIM": json.dumps(made.claim, ensure_ascii=False),
            "OPTIONS": json.dumps(_limits(made.options), ensure_ascii=False),
        }
    else:
        options = [word for option in made.options for word in _words(option)]
        values |= {
            "RUN": shlex.join(run),
            "MERGE": shlex.join(made.merge),
            "OPTIONS": "".join(f"{shlex.quote(word)} " for word in options),
        }
    text = (files("evalwright.reports") / "templates" / f"jobs.{system}").read_text(encoding="utf-8")
    # All at once, so that what a value holds is not taken for a mark.
    return re.sub("@([A-Z]+)@", lambda mark: values[mark[1]], text)


def _listed(words: Sequence[str]) -> str:
    """Arguments as Kubernetes takes them: JSON, which is YAML too, and `$` doubled, so that it replaces no `$(NAME)` in them."""
    return json.dumps([word.replace("$", "$$") for word in words], ensure_ascii=False)


def _words(option: str) -> list[str]:
    with failing_as(ConfigurationError, f"--option {option!r} cannot be read as a shell would", ValueError):
        return shlex.split(option)


def _limits(options: Sequence[str]) -> Mapping[str, str]:
    for option in options:
        if not re.fullmatch(r"[\w./-]+=[\w.]+", option):
            raise ConfigurationError(
                f"For Kubernetes --option is a limit of a shard's resources, such as nvidia.com/gpu=1, not '{option}'."
            )
    return dict(option.split("=", 1) for option in options)
