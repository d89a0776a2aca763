"""Ray: the replicas of a local model as actors of a cluster, and heavy scorers as its tasks.

Ray passes objects by pickle, so whoever reaches a cluster's port can run programs on it and on this
machine. Its address therefore comes only from the user (command line, environment, Python) and
never from a file, and a cluster that is started here listens only on the loopback, requires a
freshly made token, and ends with this process.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import re
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from evalwright.core.errors import (
    ConfigurationError,
    EvalwrightError,
    Failure,
    MissingExtra,
    ModelError,
    reason_of,
)
from evalwright.core.requests import Request
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Sample
from evalwright.models.local.replica_set import ReplicaSet, WorkerDied
from evalwright.models.model_interface import LocalModel, answers_of
from evalwright.models.registry import open_model

_GATHER_SECONDS = 0.2
"""Seconds for which an actor collects answers before it passes them on."""
_PLACEMENT_SECONDS = 600.0
"""Most seconds to wait until a replica is placed."""
_CONNECT_SECONDS = 5.0
_STORE_BYTES = 256 << 20
_RAY_SETTINGS = {
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_gcs_server_port_wait_time_s": "3",
    "RAY_py_gcs_connect_timeout_s": "20",
    "RAY_worker_register_timeout_seconds": "600",
}
"""Ray's settings while it starts.

No telemetry, no warnings, no ten minutes of retries at a cluster that denies access, and patience
with processes that start slowly on a busy machine.
"""
_SAME_VERSION_HINT = (
    " It must have the same version of Ray and of Python as this machine, and, where it"
    " wants a token, RAY_AUTH_MODE=token and its RAY_AUTH_TOKEN must be set here."
)
_PASSED_VARIABLES = (
    "EVALWRIGHT_HOME",
    "EVALWRIGHT_SANDBOX",
    "HF_DATASETS_OFFLINE",
    "HF_HOME",
    "HF_HUB_CACHE",
    "HF_HUB_OFFLINE",
    "TOKENIZERS_PARALLELISM",
    "TRANSFORMERS_OFFLINE",
)
"""Variables of this process that workers on other machines get.

Keys are not among them: a cluster shows with which variables its jobs were started.
"""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where replicas run.

    Attributes:
        address: address of a cluster ("host:6379", "auto" for the one on this machine), "" to start
            one here.
        replicas: number of replicas; None for one on each GPU, or on each node if no replica has a
            GPU.
        gpus: GPUs of each replica; None for 1 if the cluster has any.
        prepare: called in every worker before anything else (plug-ins).
    """

    address: str = ""
    replicas: int | None = None
    gpus: float | None = None
    prepare: Callable[[], None] | None = None

    @classmethod
    def parse(
        cls,
        destination: str | None,
        replicas: int | str | None = None,
        gpus: float | None = None,
        prepare: Callable[[], None] | None = None,
    ) -> Placement | None:
        """Read a placement from "ray" or "ray:ADDRESS", "auto" or a number, and the GPUs of each.

        Raises:
            ConfigurationError: they cannot be read.
        """
        if not destination:
            if replicas is not None or gpus is not None:
                raise ConfigurationError(
                    "replicas and gpus_per_replica can only be used with on."
                )
            return None
        name, colon, address = destination.partition(":")
        if name != "ray" or (colon and not address):
            raise ConfigurationError(
                f"'{destination}' is not a place to run on: use ray (a cluster is started"
                " here) or ray:ADDRESS, for example ray:10.0.0.1:6379, or ray:auto for"
                " the cluster on this machine."
            )
        if address.startswith(("ray://", "//")):
            raise ConfigurationError(
                f"'{destination}' is an address for Ray's client, which hands over everything"
                " twice. Run the command on a machine of the cluster, with --on"
                " ray:auto."
            )
        if not colon:
            address = os.environ.get("RAY_ADDRESS", "")
        requested = "auto" if replicas is None else str(replicas)
        if requested != "auto" and not (requested.isdecimal() and int(requested)):
            raise ConfigurationError(
                f"--replicas must be 'auto' or a whole number from 1, not '{requested}'."
            )
        count = None if requested == "auto" else int(requested)
        if gpus is not None and (
            gpus < 0 or (gpus > 1 and gpus != int(gpus)) or not math.isfinite(gpus)
        ):
            raise ConfigurationError(
                "--gpus-per-replica must be a share below 1 or a whole number, not"
                f" {gpus:g}."
            )
        return cls(address, count, gpus, prepare)


class Cluster:
    """A connection to a Ray cluster, opened when the first model needs it.

    At most `max_resident` models share it at a time.
    """

    def __init__(self, on: Placement, max_resident: int = 1) -> None:
        if find_spec("ray") is None:
            raise MissingExtra("--on ray", "ray", "ray")
        self.on = on
        self.max_resident = max(1, max_resident)
        self.ended = False
        self._folder: str | None = None
        self._ray: Any = None
        self._turns: asyncio.Semaphore | None = None

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.ended = True
        if self._ray is not None:
            with suppress(Exception):  # the cluster may be gone already
                self._ray.shutdown()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def open(
        self, name: str, arguments: Mapping[str, Any], model: LocalModel
    ) -> ReplicaSet:
        """Open the model as replicas on the cluster.

        Raises:
            ConfigurationError: the replicas do not fit, or the cluster cannot be reached.
        """
        ray = self.ray()
        nodes = [
            (
                node["Resources"].get("CPU", 0.0) / self.max_resident,
                node["Resources"].get("GPU", 0.0) / self.max_resident,
            )
            for node in ray.nodes()
            if node["Alive"]
        ]
        gpus = (
            self.on.gpus
            if self.on.gpus is not None
            else float(any(gpu >= 1 for _, gpu in nodes))
        )
        count, cores = share_out(nodes, self.on.replicas, gpus)
        worker_arguments = dict(arguments)
        # otherwise each replica would take all cores of its node
        if getattr(model, "threads", None) is not None:
            worker_arguments.setdefault("threads", cores)
        opened = _Opening(name, worker_arguments, self.on.prepare, str(Path.cwd()))
        if gpus:
            # The dtype, and so the fingerprint, may depend on the device, which only the cluster
            # has.
            opened_model = ray.get(
                ray.remote(num_gpus=gpus, max_calls=1)(_open_in_task).remote(opened)
            )
            if not isinstance(opened_model, LocalModel):
                raise ConfigurationError(
                    f"On the cluster, '{name}' cannot be opened: {opened_model}"
                )
            model = opened_model
        actor = ray.remote(max_restarts=0, max_task_retries=0)(_Actor)
        placed = actor.options(
            num_cpus=cores, num_gpus=gpus, scheduling_strategy="SPREAD"
        )
        replica_set = ReplicaSet(
            model,
            [
                RayWorker(self, f"replica {number}", placed, opened, model)
                for number in range(1, count + 1)
            ],
        )
        replica_set.heavy = (
            True  # a small model, too, must leave its cores to the next one
        )
        return replica_set

    def scored(self, function: Callable[..., Any], *, asks: bool) -> Callable[..., Any]:
        """Make a scorer's function an awaitable task of the cluster; its errors are raised here."""
        task = self.ray().remote(num_cpus=0, scheduling_strategy="SPREAD")(
            _score_in_task
        )
        prepare = self.on.prepare

        async def score(sample: Sample, answer: Answer, *_: Any) -> Any:
            # The replicas hold the cores, so what bounds these tasks is counted here.
            self._turns = self._turns or asyncio.Semaphore(
                max(1, int(self._ray.cluster_resources().get("CPU", 1)))
            )
            async with self._turns:
                try:
                    reference = task.remote(prepare, function, asks, sample, answer)
                    return await asyncio.wrap_future(reference.future())
                except self._ray.exceptions.RayTaskError as error:
                    raise error.cause from None

        return score

    def ray(self) -> Any:
        """Return the Ray library, connected.

        Raises:
            ConfigurationError: it cannot connect.
            ModelError: the run has ended.
        """
        if (
            self.ended
        ):  # a thread of an ended batch, for which Ray would start a cluster of its own
            raise ModelError("the run has ended")
        if self._ray is None:
            self._ray = self._connected()
        return self._ray

    def _connected(self) -> Any:
        address = self.on.address
        starts_cluster = not address or address == "local"
        settings = dict(_RAY_SETTINGS)
        options: dict[str, Any] = {"address": address}
        if starts_cluster:
            settings |= _private_cluster_settings()
            self._folder = tempfile.mkdtemp(prefix="ew-ray-")
            options = {
                "address": "local",
                "include_dashboard": False,
                "_temp_dir": self._folder,
            }
            options["object_store_memory"] = _STORE_BYTES
        else:
            _require_reachable(address)
            passed = {
                name: os.environ[name]
                for name in _PASSED_VARIABLES
                if name in os.environ
            }
            options["runtime_env"] = {"env_vars": passed}
        handlers = {
            number: signal.getsignal(number)
            for number in (signal.SIGINT, signal.SIGTERM)
        }
        before = {name: os.environ.get(name) for name in settings}
        os.environ.update(settings)
        try:
            import ray

            logging.getLogger("ray").setLevel(logging.CRITICAL)
            with _silence_stderr():
                ray.init(
                    **options,
                    log_to_driver=False,
                    logging_level=logging.CRITICAL,
                    namespace="evalwright",
                )
        except Exception as error:
            where = "be started here" if starts_cluster else f"be joined at '{address}'"
            advice = "" if starts_cluster else _SAME_VERSION_HINT
            raise ConfigurationError(
                f"Ray cannot {where}: {_first_line(error)}.{advice}"
            ) from None
        finally:
            for name, previous in before.items():
                if previous is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = previous
            with suppress(
                ValueError
            ):  # signal handlers can only be set in the main thread
                for number, handler in handlers.items():
                    signal.signal(number, handler)
        return ray


@contextmanager
def _silence_stderr() -> Iterator[None]:
    """Discard everything written to standard error, also by libraries in other languages."""
    saved_stderr = os.dup(2)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    try:
        yield
    finally:
        os.dup2(saved_stderr, 2)
        os.close(saved_stderr)
        os.close(nothing)


@cache
def _private_cluster_settings() -> Mapping[str, str]:
    """Return settings for a cluster that is started here: a token, and only the loopback.

    (Ray names the latter after operating systems where that is the default.) Ray reads them when it
    is imported; if it was imported before, its settings of then apply.
    """
    if "ray" in sys.modules:
        return {}
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    return {**token, "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}


def share_out(
    nodes: Sequence[tuple[float, float]], replicas: int | None, gpus: float
) -> tuple[int, int]:
    """Choose the number of replicas, and the cores of each, so that as many as possible fit.

    Args:
        nodes: cores and GPUs of each node.
        replicas: the requested number, if any.
        gpus: GPUs for each replica.

    Raises:
        ConfigurationError: they do not fit.
    """

    def fitting(cores: int) -> int:
        return sum(
            min(int(cpu // cores), int(gpu // gpus + 1e-9) if gpus else 1 << 30)
            for cpu, gpu in nodes
        )

    most = fitting(1)
    count = replicas or (most if gpus else sum(cpu >= 1 for cpu, _ in nodes))
    if not count or count > most:
        cores_there, gpus_there = (
            f"{sum(column):g}" for column in zip(*nodes, strict=True)
        )
        share = f"{gpus:g} GPU{'s' * (gpus > 1)} and a core" if gpus else "a core"
        problem = (
            f"{count} replica{'s' * (count > 1)} with {share} each"
            f" {'do' if count > 1 else 'does'} not fit"
        )
        problem = problem if count else f"Not one replica with {share} fits"
        advice = (
            f"Use --replicas {most} or fewer" if most else "Use --gpus-per-replica 0"
        )
        raise ConfigurationError(
            f"{problem}: a model can use {cores_there} cores and {gpus_there} GPUs on"
            f" {len(nodes)} node{'s' * (len(nodes) != 1)}. {advice}, or add nodes."
        )
    largest = int(max(cpu for cpu, _ in nodes))
    return count, next(
        cores for cores in range(largest, 0, -1) if fitting(cores) >= count
    )


class RayWorker:
    """One replica: an actor, replaced when it has died. See `replica_set.Worker`."""

    def __init__(
        self,
        cluster: Cluster,
        name: str,
        placed: Any,
        opening: _Opening,
        model: LocalModel,
    ) -> None:
        self.name = name
        self._cluster = cluster
        self._placed = placed
        self._opening = opening
        self._model = model
        self._actor: Any = None

    def start(self) -> None:
        ray = self._cluster.ray()
        self._actor = self._placed.remote(self._opening)
        # Called first, because an actor works in order and loading may take any time.
        placed = self._actor.__ray_ready__.remote()
        loading = self._actor.load.remote()
        try:
            ray.get(placed, timeout=_PLACEMENT_SECONDS)
        except ray.exceptions.GetTimeoutError:
            self.stop()
            raise ModelError(
                f"Ray found no place for {self.name} within {_PLACEMENT_SECONDS:g} s: other"
                " work holds the cores or GPUs that it needs."
            ) from None
        except ray.exceptions.RayError as error:
            raise WorkerDied(_death_reason(error)) from None
        fingerprint, why = self._got(loading)
        if why:
            raise ModelError(why)
        if fingerprint != self._model.fingerprint:
            raise ModelError(
                f"{self.name} would not answer as '{self._model.name}' does here: its"
                " files, device or dtype differ on that node. Name them (-M dtype=...,"
                " -M device=...), or use nodes that are alike."
            )

    def answer(
        self, requests: Sequence[Request]
    ) -> Iterator[tuple[int, Response | Failure]]:
        self._cluster.ray()
        # A stream: the next answers are computed while these are stored.
        for reference in self._actor.answer.remote(list(requests)):
            yield from self._got(reference)

    def stop(self) -> None:
        actor = self._actor
        self._actor = None
        if actor is not None:
            with suppress(Exception):  # the actor, or the cluster, is dead already
                self._cluster.ray().kill(actor)

    def _got(self, reference: Any) -> Any:
        ray = self._cluster.ray()
        try:
            return ray.get(reference)
        except ray.exceptions.RayTaskError as error:
            raise ModelError(f"{type(error.cause).__name__}: {error.cause}") from None
        except ray.exceptions.RayError as error:
            raise WorkerDied(_death_reason(error)) from None


@dataclass(frozen=True, slots=True)
class _Opening:
    """Opens the model in a worker."""

    name: str
    arguments: Mapping[str, Any]
    prepare: Callable[[], None] | None
    folder: str

    def __call__(self) -> LocalModel:
        # names of files start in the folder of the command, where a node has it
        with suppress(OSError):
            os.chdir(self.folder)
        if self.prepare is not None:
            self.prepare()
        model = open_model(self.name, self.arguments)
        assert isinstance(model, LocalModel)
        return model


def _open_in_task(opening: _Opening) -> LocalModel | str:
    """Open the model in a task of the cluster; return it unloaded, or why it cannot be opened."""
    try:
        return opening()
    except EvalwrightError as error:
        return str(error)


def _score_in_task(
    prepare: Callable[[], None] | None,
    function: Callable[..., Any],
    asks: bool,
    sample: Sample,
    answer: Answer,
) -> Any:
    """Run a scorer's function in a task of the cluster."""
    if prepare is not None:
        prepare()
    return (
        asyncio.run(function(sample, answer, None))
        if asks
        else function(sample, answer)
    )


class _Actor:
    """A replica in its own process on a node."""

    def __init__(self, opening: _Opening) -> None:
        self._opening = opening
        self._model: LocalModel | None = None

    def load(self) -> tuple[str, str]:
        """Load the model; return its fingerprint, or why there is none."""
        try:
            self._model = self._opening()
            self._model.load()
        except Exception as error:
            return "", reason_of(error)
        return self._model.fingerprint, ""

    def answer(
        self, requests: Sequence[Request]
    ) -> Iterator[list[tuple[int, Response | Failure]]]:
        """Answer a group of requests, yielding the answers of a moment at a time."""
        assert self._model is not None
        answers: list[tuple[int, Response | Failure]] = []
        until = time.monotonic() + _GATHER_SECONDS
        for answer in answers_of(self._model, requests):
            answers.append(answer)
            if time.monotonic() >= until:
                yield answers
                answers = []
                until = time.monotonic() + _GATHER_SECONDS
        yield answers


def _require_reachable(address: str) -> None:
    """Raise ConfigurationError if nothing listens at the address.

    Ray itself would try for a minute, and then end the process.
    """
    if address == "auto":
        return
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or not host:
        raise ConfigurationError(
            f"'{address}' is not an address of a Ray cluster: use HOST:PORT, for"
            " example 10.0.0.1:6379, or auto."
        )
    try:
        socket.create_connection(
            (host.strip("[]"), int(port)), timeout=_CONNECT_SECONDS
        ).close()
    except (OSError, OverflowError) as error:
        raise ConfigurationError(
            f"No Ray cluster can be reached at '{address}' ({error}). `ray status` on"
            " its head node shows whether it runs."
        ) from None


def _first_line(error: BaseException) -> str:
    return next(
        (line.strip(" .") for line in str(error).splitlines() if line.strip()),
        type(error).__name__,
    )


def _death_reason(error: BaseException) -> str:
    """Extract the reason why an actor died from Ray's long message."""
    match = re.search(r"Worker exit detail: ([^\n.]+)", str(error)) or re.search(
        r"cause: ([^\n]+)", str(error)
    )
    return match[1] if match else _first_line(error)
