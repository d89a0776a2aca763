"""Shards: a run in n parts by n processes, on one machine or many; `runs.merging` merges them.

The samples of the whole run (after filters and the limit) are divided by their order alone, so
every process finds its own share without talking to another. All draws of a sample, and all samples
of a cluster (they share a passage, which a local model then reads once), are in one shard. Metrics
over a corpus and averages over tasks are computed when the shards are merged.
"""

from __future__ import annotations

import heapq
import os
import re
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from evalwright.core.errors import ConfigurationError
from evalwright.core.postgres import store_url
from evalwright.core.tasks import Task
from evalwright.evaluation.processes import launched_process
from evalwright.evaluation.rules import UnitOrder
from evalwright.models.model_interface import Model

OWN_STORE = re.compile(r"shard-[0-9]+-of-[0-9]+")
"""The name of a home folder that job files give to one shard alone."""

ARRAYS = (
    ("SLURM_ARRAY_TASK_ID", 0),
    ("PBS_ARRAY_INDEX", 0),
    ("JOB_COMPLETION_INDEX", 1),
)
"""Variables in which job systems tell a process its index, and what to add to count from 1.

Job files request arrays of Slurm and PBS as 1-N.
"""


@dataclass(frozen=True, slots=True)
class Shard:
    """One of the `of` parts of a run; `number` counts from 1."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


def read_shard(text: str, environment: Mapping[str, str] = os.environ) -> Shard | None:
    """Parse a shard: `2/8`, or `auto` in an array of jobs or processes launched together.

    `auto` takes the index in an array of Slurm or PBS or an indexed Kubernetes job, or the rank.
    How many shards there are follows from the launcher or from Slurm, or is named: `auto/8`. The
    result is None for "".

    Raises:
        ConfigurationError: the text or the environment does not tell the shard.
    """
    if not text:
        return None
    number, slash, of = text.partition("/")
    if number == "auto":
        number, told_of = _find_shard(text, environment)
        of = of if slash else told_of
        if not of:
            raise ConfigurationError(
                "The job system does not say how many shards there are: name their"
                " number, for example --shard auto/8."
            )
    are_numbers = all(re.fullmatch(r"[0-9]{1,9}", digits) for digits in (number, of))
    if not are_numbers or not 1 <= int(number) <= int(of):
        resolved = f", which is {number}/{of} here," if text.startswith("auto") else ""
        raise ConfigurationError(
            f"--shard {text}{resolved} is not a shard: it takes i/n with i from 1 to n, for"
            " example 2/8, or auto/8 in an array of jobs 1-8."
        )
    return Shard(int(number), int(of))


def _find_shard(text: str, environment: Mapping[str, str]) -> tuple[str, str]:
    """Return the number of this shard, and how many there are ("" if nothing says it).

    Raises:
        ConfigurationError: nothing says the number.
    """
    array = next(
        (
            (name, first_number)
            for name, first_number in ARRAYS
            if environment.get(name)
        ),
        None,
    )
    process = launched_process(environment, surely=array is not None)
    if array is None:
        if process is None or not process.rank:
            raise ConfigurationError(
                f"--shard {text} reads the number of the shard from the job system or"
                f" the launcher, and none of {', '.join(name for name, _ in ARRAYS)} is"
                " set, nor a RANK and WORLD_SIZE or SLURM_PROCID and SLURM_NTASKS of"
                " several processes. Elsewhere name it, for example --shard 1/8."
            )
        return str(int(process.rank) + 1), str(process.count)
    name, from_one = array
    in_array = environment[name]
    if not re.fullmatch(r"[0-9]{1,9}", in_array):
        return in_array, environment.get("SLURM_ARRAY_TASK_COUNT", "")
    number = int(in_array) + from_one
    count = environment.get("SLURM_ARRAY_TASK_COUNT", "")
    if process is None or not process.rank:
        return str(number), count
    # Several processes in each job of an array: the shards of the first job come first.
    number = (number - 1) * process.count + int(process.rank) + 1
    return str(number), str(int(count) * process.count) if count.isdecimal() else ""


def check_shard(
    shard: Shard,
    models: Sequence[Model],
    tasks: Sequence[Task],
    *,
    has_rules: bool,
    has_budget: bool,
    home: Path,
) -> None:
    """Raise ConfigurationError for what a shard cannot do.

    It cannot do what looks at the whole run, and what could not be merged.

    Args:
        shard: which part of the run.
        models: all models that get requests.
        tasks: the tasks of all models.
        has_rules: whether the run has stopping rules.
        has_budget: whether the run has a budget.
        home: the folder of the store.
    """
    if has_rules:
        raise ConfigurationError(
            f"--shard {shard} cannot be used with --until: a stopping rule looks at the"
            " scores of the whole run. Leave one out."
        )
    if has_budget and not store_url() and OWN_STORE.fullmatch(home.name):
        raise ConfigurationError(
            "--budget with --shard is a limit for all shards together, and this one"
            f" has a store of its own ('{home}'), in which it does not see what the"
            " others spend. Set EVALWRIGHT_STORE to a PostgreSQL server, or on one"
            " machine EVALWRIGHT_HOME to one folder for all; or leave out --budget."
        )
    for model in models:
        if not model.is_known:
            raise ConfigurationError(
                f"It cannot be known what answers behind '{model.name}', so shards of"
                " other processes could not be merged with this one. Give what answers"
                f" a name: {model.naming}."
            )
    for task in tasks:
        has_functions = task.found_metrics is not None or any(
            spec.function is not None for spec in task.metrics
        )
        if has_functions and "dialect" not in task.definition:
            raise ConfigurationError(
                f"The metrics of the task '{task.name}' are Python functions of its"
                " own, which shards could not be merged by: run it without --shard."
            )


def check_worker(
    models: Sequence[Model], *, shard: str, has_rules: bool, batch: bool, resends: bool
) -> None:
    """Raise ConfigurationError for what workers cannot do together.

    Args:
        models: all models that get requests.
        shard: the shard that is asked for, "" for none.
        has_rules: whether the run has stopping rules.
        batch: whether requests are sent through batch jobs of providers.
        resends: whether requests are sent again that got no answer before.
    """
    if shard:
        raise ConfigurationError(
            f"--worker cannot be used with --shard {shard}: workers share out a whole run"
            " as they come and go. Leave one out."
        )
    if has_rules:
        raise ConfigurationError(
            "--worker cannot be used with --until: a stopping rule looks at the scores of"
            " the whole run. Leave one out."
        )
    if batch:
        raise ConfigurationError(
            "--worker cannot be used with --batch: the provider spreads a batch job over"
            " its machines, and one process waits for it. Leave one out."
        )
    if resends:
        raise ConfigurationError(
            "--worker cannot be used with --resend-empty: each worker would send these"
            " requests again. Run the command without --worker once, from one machine."
        )
    for model in models:
        if not model.is_known:
            raise ConfigurationError(
                f"It cannot be known what answers behind '{model.name}', so workers could"
                " not use each other's answers. Give what answers a name:"
                f" {model.naming}."
            )


def share_of(
    shard: Shard, tasks: Sequence[Task], orders: Sequence[UnitOrder]
) -> list[UnitOrder]:
    """Return the shard's part of each task's order.

    Each unit goes to the shard that has the fewest answers so far, over all tasks.
    """
    loads = [(0, number) for number in range(1, shard.of + 1)]
    shares = []
    for task, order in zip(tasks, orders, strict=True):
        indices = array("q")
        starts = array("q", [0])
        for unit in range(order.n_units):
            load, number = loads[0]
            answers = (order.starts[unit + 1] - order.starts[unit]) * task.draws
            heapq.heapreplace(loads, (load + answers, number))
            if number == shard.number:
                indices.extend(order.members(unit))
                starts.append(len(indices))
        shares.append(replace(order, items=indices, starts=starts))
    return shares
