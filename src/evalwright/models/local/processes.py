"""A local model's workers as processes of this machine, one per device; CPU workers share cores."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from typing import IO, Any

from evalwright.core.errors import Failure, ModelError
from evalwright.core.images import Image
from evalwright.core.requests import (
    Classify,
    Embed,
    Generate,
    LogLikelihood,
    Message,
    Request,
    Reward,
    RollingLogLikelihood,
    fields_from_extras,
    tools_payload,
)
from evalwright.core.responses import Response
from evalwright.core.tools import ToolDefinition
from evalwright.models.local.replica_layout import ReplicaLayout, check_memory
from evalwright.models.local.replica_set import ReplicaSet, WorkerDied
from evalwright.models.model_interface import LocalModel

_REQUEST_CLASSES: Mapping[str, type[Request]] = {
    request_class.ability: request_class
    for request_class in (
        Classify,
        Embed,
        Generate,
        LogLikelihood,
        Reward,
        RollingLogLikelihood,
    )
}
_TAIL_BYTES = 300
_EXIT_SECONDS = 5.0


class ProcessWorker:
    """A process with one copy of the model.

    Args:
        number: its number, from 1.
        model: the model, as it was opened here.
        arguments: the arguments with which it is opened there.
        environment: variables that are added to those of this process.
        devices: its devices, for its name.
        sharers: number of processes that share the machine's memory.
    """

    def __init__(
        self,
        number: int,
        model: LocalModel,
        arguments: Mapping[str, Any],
        environment: Mapping[str, str],
        devices: str = "",
        sharers: int = 1,
    ) -> None:
        self._model = model
        self._opening_message = {
            "name": model.name,
            "arguments": dict(arguments),
            "sharers": sharers,
        }
        self._environment = dict(environment)
        self.name = f"process {number}" + (f" on {devices}" if devices else "")
        self._process: subprocess.Popen[str] | None = None
        self._errors: IO[bytes] | None = None

    def start(self) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (it is read when the process has died)
        self._process = subprocess.Popen(
            # -P: no module of the working folder is imported.
            [sys.executable, "-P", "-m", "evalwright.models.local.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, **self._environment},
            encoding="ascii",
            # A group of its own, which ends with processes that its libraries start.
            start_new_session=True,
        )
        self._tell(self._opening_message)
        reply = self._read()
        if "error" in reply:
            raise ModelError(reply["error"])
        if self._model.is_known and reply["fingerprint"] != self._model.fingerprint:
            raise ModelError("its files changed while it was being loaded.")

    def answer(
        self, requests: Sequence[Request]
    ) -> Iterator[tuple[int, Response | Failure]]:
        self._tell([request_as_json(request) for request in requests])
        while (reply := self._read()) is not None:
            index, answer = reply
            failed = "failure" in answer
            yield (
                index,
                (
                    Failure(**answer["failure"])
                    if failed
                    else Response.from_dict(answer["response"])
                ),
            )

    def stop(self) -> None:
        process = self._process
        self._process = None
        if process is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                assert stream is not None
                with suppress(OSError):  # the process may not have read everything
                    stream.close()
        if self._errors is not None:
            self._errors.close()

    def _tell(self, message: Any) -> None:
        try:
            assert self._process is not None and self._process.stdin is not None
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()
        except (AssertionError, OSError, ValueError):
            raise WorkerDied(self._death()) from None

    def _read(self) -> Any:
        try:
            assert self._process is not None and self._process.stdout is not None
            return json.loads(self._process.stdout.readline())
        except (AssertionError, OSError, ValueError):
            raise WorkerDied(self._death()) from None

    def _death(self) -> str:
        """Describe how the process ended, with its last output."""
        process = self._process
        errors = self._errors
        if process is None or errors is None or errors.closed:
            return "it was stopped"
        try:
            code = process.wait(_EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            return "it no longer answers"
        errors.seek(0, os.SEEK_END)
        errors.seek(max(0, errors.tell() - _TAIL_BYTES))
        words = " ".join(errors.read().decode("utf-8", "replace").split())
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        how += ", as when memory runs out" if code == -9 else ""
        return f"{how}: {words}" if words else how


def in_processes(
    model: LocalModel,
    arguments: Mapping[str, Any],
    layout: ReplicaLayout,
    options: Sequence[str],
) -> ReplicaSet:
    """Run a model in several processes.

    Args:
        model: the model.
        arguments: the arguments with which it was opened.
        layout: the devices of each process.
        options: all arguments that it takes.
    """
    threads = (
        {"threads": layout.cores}
        if "threads" in options and "threads" not in arguments
        else {}
    )
    workers = [
        ProcessWorker(
            number,
            model,
            {**threads, **arguments},
            environment,
            devices,
            sharers=len(layout.groups),
        )
        for number, (environment, devices) in enumerate(
            zip(layout.environments, layout.names(), strict=True), 1
        )
    ]

    def check() -> None:
        need = getattr(model, "weight_bytes", None)
        spread_by = (
            "tensor_parallel_size"
            if "tensor_parallel_size" in options
            else "devices_per_replica"
        )
        if need is not None and layout.groups[0]:
            check_memory(model.name, layout, need(), spread_by)

    return ReplicaSet(model, workers, placed=layout.describe(), check=check)


def request_as_json(request: Request) -> dict[str, Any]:
    """Convert a request to a plain mapping for JSON."""
    options = {field.name: getattr(request, field.name) for field in fields(request)}
    for name, value in options.items():
        if isinstance(value, tuple) and value and isinstance(value[0], Message):
            options[name] = [
                [turn.role, _content(turn), turn.extras()] for turn in value
            ]
        elif name == "tools":
            options[name] = tools_payload(value)
    return {"ability": request.ability, **options}


def request_from(payload: Mapping[str, Any]) -> Request:
    """Restore a request from the JSON of `request_as_json`."""
    options = {name: value for name, value in payload.items() if name != "ability"}
    for name, value in options.items():
        if name in ("prompt", "context") and not isinstance(value, str):
            options[name] = tuple(
                Message(role, _content_from(content), **fields_from_extras(extras))
                for role, content, extras in value
            )
        elif name == "tools":
            options[name] = tuple(map(ToolDefinition.from_dict, value))
        elif isinstance(value, list):
            options[name] = tuple(value)
    return _REQUEST_CLASSES[payload["ability"]](**options)


def _content(turn: Message) -> Any:
    if isinstance(turn.content, str):
        return turn.content
    return [
        (
            content_part
            if isinstance(content_part, str)
            else [
                base64.b64encode(content_part.data).decode(),
                content_part.media_type,
                content_part.source,
            ]
        )
        for content_part in turn.content
    ]


def _content_from(content: Any) -> Any:
    if isinstance(content, str):
        return content
    return tuple(
        (
            content_part
            if isinstance(content_part, str)
            else Image(
                base64.b64decode(content_part[0]), content_part[1], content_part[2]
            )
        )
        for content_part in content
    )
