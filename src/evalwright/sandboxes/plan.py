"""What a task puts into the sandbox of a sample before the model acts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from evalwright.sandboxes.protocol import Sandbox, SandboxFailed, SandboxSettings

SETUP_SECONDS = 600.0
"""Most seconds of a task's set-up."""
_SHOWN_CHARS = 500


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A file that a sandbox begins with.

    Args:
        path: where it is in the sandbox.
        content: its bytes.
        is_executable: whether it may be run.
    """

    path: str
    content: bytes = field(repr=False)
    is_executable: bool = False


@dataclass(frozen=True, slots=True)
class SandboxPlan:
    """The sandbox of one sample.

    Args:
        settings: which sandbox.
        files: what is in it at the beginning.
        setup: a bash script that is run in it before the model acts; "" for none.
    """

    settings: SandboxSettings
    files: Sequence[PlannedFile] = ()
    setup: str = ""

    @property
    def fingerprint(self) -> str:
        """A digest of everything that can change what happens in the sandbox."""
        state = blake2b(self.settings.fingerprint.encode(), digest_size=16)
        for file in self.files:
            head = json.dumps([file.path, len(file.content), file.is_executable])
            state.update(head.encode("utf-8", "surrogatepass"))
            state.update(file.content)
        state.update(json.dumps(self.setup).encode("utf-8", "surrogatepass"))
        return state.hexdigest()

    async def prepare(self, sandbox: Sandbox) -> None:
        """Put the files in and run the set-up.

        Raises:
            SandboxFailed: a file cannot be written, or the set-up failed: the task is wrong.
        """
        await put_files(sandbox, self.files)
        if not self.setup:
            return
        executed = await sandbox.exec(["bash", "-c", self.setup], seconds=SETUP_SECONDS)
        if executed.exit_code or executed.ended_by:
            why = executed.ended_by and f"reached the limit of {executed.ended_by}"
            why = why or f"ended with the exit code {executed.exit_code}"
            errors = executed.stderr[-_SHOWN_CHARS:].decode("utf-8", "replace").strip()
            raise SandboxFailed(
                f"The set-up of the sandbox {why}. Its errors end with: {errors or 'nothing'}"
            )


async def put_files(sandbox: Sandbox, files: Sequence[PlannedFile]) -> None:
    """Write files into a sandbox.

    Raises:
        SandboxFailed: one cannot be written.
    """
    for file in files:
        try:
            await sandbox.write(
                file.path, file.content, is_executable=file.is_executable
            )
        except ValueError as error:
            raise SandboxFailed(
                f"The file '{file.path}' cannot be put into the sandbox: {error}"
            ) from None
