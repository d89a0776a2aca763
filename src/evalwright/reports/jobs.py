"""Job files of Slurm and PBS: arrays of workers, or of shards with a job that merges them.

Arguments are quoted as the place where they stand requires; those that no quoting makes safe
are refused. No file contains a secret. Kubernetes is in `kubernetes_jobs`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from unicodedata import category

from evalwright.core.errors import ConfigurationError
from evalwright.core.secrets import find_key_prefix
from evalwright.tasks.safe_files import failing_as

KUBERNETES = "kubernetes"
SYSTEMS = ("slurm", "pbs", KUBERNETES)

MAX_NAME_CHARS = {"pbs": 15, "slurm": 40, KUBERNETES: 40}

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


@dataclass(frozen=True, slots=True)
class Jobs:
    """The jobs of one evaluation.

    Attributes:
        name: The evaluation's name.
        run: The arguments of `evalwright run ...`, without its shard.
        workers: How many workers share the evaluation; 0 where shards make it.
        shards: How many shards there are; 0 where workers make it.
        merge: The arguments of the command that merges the shards.
        options: Options for submitting the workers or shards, as typed.
        merge_options: Options for submitting the merge, besides those of `options` that hold for
            both.
        at_once: How many workers or shards run at a time; 0 for all.
    """

    name: str
    run: Sequence[str]
    workers: int = 0
    shards: int = 0
    merge: Sequence[str] = ()
    options: Sequence[str] = ()
    merge_options: Sequence[str] = ()
    at_once: int = 0

    @property
    def command(self) -> list[str]:
        """The arguments of one worker, or of one shard."""
        share = ["--worker"] if self.workers else ["--shard", f"auto/{self.shards}"]
        return [*self.run[:2], *share, *self.run[2:]]


def job_file(system: str, jobs: Jobs) -> str:
    """Write the job file for Slurm or PBS.

    Args:
        system: "slurm" or "pbs".
        jobs: the jobs.

    Raises:
        ConfigurationError: an argument cannot be in a job file.
    """
    check_arguments([*jobs.run, *jobs.merge, *jobs.options, *jobs.merge_options])
    n_jobs = jobs.workers or jobs.shards
    at_once = min(jobs.at_once, n_jobs) or n_jobs
    options = [word for option in jobs.options for word in _words(option, "--option")]
    for_merge = [
        word
        for option in jobs.merge_options
        for word in _words(option, "--merge-option")
    ]
    merge_words = [*_merge_options(system, options), *for_merge]
    values = {
        "NAME": plain_name(jobs.name, MAX_NAME_CHARS[system]),
        "WORKERS": str(jobs.workers),
        "SHARDS": str(jobs.shards),
        "RUN": shlex.join(jobs.command),
        "MERGE": shlex.join(jobs.merge),
        "OPTIONS": "".join(f"{shlex.quote(word)} " for word in options),
        "MERGEOPTIONS": "".join(f"{shlex.quote(word)} " for word in merge_words),
        "ATONCE": f"%{at_once}" if at_once < n_jobs else "",
    }
    return fill_template(f"{'workers' if jobs.workers else 'shards'}.{system}", values)


def check_arguments(texts: Iterable[str]) -> None:
    """Refuse arguments that a job file cannot contain: control characters and keys.

    Raises:
        ConfigurationError: one is such an argument.
    """
    for text in texts:
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


def plain_name(name: str, max_chars: int) -> str:
    """Return a name of small letters, digits and dashes, which begins with a letter."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    plain = plain[:max_chars].strip("-")
    return plain if plain[:1].isalpha() else f"run-{plain}".strip("-")[:15]


def fill_template(file_name: str, values: Mapping[str, str]) -> str:
    """Fill the marks (@NAME@) of a template.

    All marks are filled at once, so that text in a value is not taken for a mark.
    """
    path = files("evalwright.reports") / "templates" / file_name
    text = path.read_text(encoding="utf-8")
    return re.sub("@([A-Z_]+)@", lambda mark: values[mark[1]], text)


def _words(option: str, option_name: str) -> list[str]:
    with failing_as(
        ConfigurationError,
        f"{option_name} {option!r} cannot be read as a shell would",
        ValueError,
    ):
        return shlex.split(option)


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
