"""`agent-command`: any program is the agent. It runs in the sandbox, and its model is the target.

The program finds the model where its client library looks for one: in the variables OPENAI_BASE_URL
and ANTHROPIC_BASE_URL, at an address inside the sandbox behind which the proxy's gateway serves
the model under test, for this sample alone. So every reply is stored before the program has it, and
the limits of the task hold. What was said is rebuilt from the requests.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from tempfile import mkstemp
from urllib.parse import urlsplit

from evalwright.core.actions import ActionLog, actions_of
from evalwright.core.ask import Ask
from evalwright.core.errors import ConfigurationError, RequestFailed, UsageError
from evalwright.core.requests import Ability, Message, Prompt, prompt_payload
from evalwright.core.samples import Answer, Sample
from evalwright.core.secrets import mask
from evalwright.proxy.earlier_attempts import EarlierAttempts
from evalwright.proxy.gateway import Gateway
from evalwright.proxy.program_answer import answer_of, check_program, end_of
from evalwright.proxy.sample_upstream import SampleUpstream
from evalwright.proxy.sandboxed_program import (
    LIMIT_GRACE_SECONDS,
    PROMPT_FILE,
    SandboxedProgram,
)
from evalwright.proxy.server import hosts_of
from evalwright.proxy.tokens import Access, Tokens
from evalwright.sandboxes.backends import started
from evalwright.sandboxes.plan import SandboxPlan
from evalwright.sandboxes.protocol import Executed, Sandbox, SandboxPathError
from evalwright.sandboxes.snapshot_home import snapshot_home
from evalwright.strategies.limits import Limits
from evalwright.strategies.task_setup import Setup

MODEL_NAME = "target"
"""The name by which a program asks for the model, unless the task has another."""
MAX_CONNECTIONS = 64
MAX_BODIES_BYTES = 100 * 10**6
"""Bounds of what one program's requests hold in memory."""
MAX_ANSWER_BYTES = 10**6
MAX_VARIABLE_BYTES = 100_000
"""Longest prompt that is in a variable too; Linux takes 128 KiB."""
_BACKLOG = 64
_KEY_FILE = "agent-command.key"
_HINTS = {
    "PYTHONHASHSEED": "0",
    "PYTHONUNBUFFERED": "1",
    "NO_PROXY": "127.0.0.1,localhost",
    "no_proxy": "127.0.0.1,localhost",
}
"""Variables that make programs repeat themselves, and write before they are ended."""


class AgentCommand:
    """Runs a program that asks the model under test.

    Args:
        setup: what the task provides; it has a sandbox.
        run: a bash script that runs the program, mostly one line; a template over the row. The
            prompt is in the variable TASK_PROMPT, in the file TASK_PROMPT_FILE, and its input.
        model: the name for the model that the program is told, in the variable TASK_MODEL.
        models: names that the program may use for the model; none for any.
        answer: the file that has the answer; "" for the end of the program's output.

    Raises:
        ConfigurationError: the task has no sandbox, or an option is of the wrong type.
    """

    needs: frozenset[Ability] = frozenset({"generate"})
    uses_sandbox = True
    samples_itself = True

    def __init__(
        self,
        setup: Setup,
        *,
        run: str = "",
        model: str = MODEL_NAME,
        models: Sequence[str] = (),
        answer: str = "",
    ) -> None:
        if setup.sandbox is None:
            raise ConfigurationError(
                "'agent-command' runs a program in a sandbox: add `sandbox: jail` to the task."
            )
        if setup.turns is not None:
            raise ConfigurationError(
                "'agent-command' gives its program one prompt, and the task has several user"
                " turns: make `prompt.user` one text."
            )
        for option, text in (("run", run), ("model", model), ("answer", answer)):
            if not isinstance(text, str):
                raise ConfigurationError(
                    f"The option '{option}' of 'agent-command' is text, not {text!r}."
                )
        if not run.strip():
            raise ConfigurationError(
                "'agent-command' needs the option 'run': the command that starts the agent,"
                ' such as `run: python3 /work/agent.py "$TASK_PROMPT"`.'
            )
        if isinstance(models, str) or not all(isinstance(name, str) for name in models):
            raise ConfigurationError(
                "The option 'models' of 'agent-command' is a list of names, not"
                f" {models!r}."
            )
        self.render = setup.render
        self._plan = setup.sandbox
        self._limits = setup.limits or Limits()
        self._script = setup.over_rows(run)
        self._model = model
        self._models = tuple(models)
        self._answer = answer

    def lacks(self, sample: Sample) -> str:
        """Return why a sample cannot be answered, "" if it can."""
        prompt = self.render(sample)
        if not isinstance(prompt, str) and any(turn.images for turn in prompt):
            return "its prompt has an image, and a program's prompt is text"
        try:
            self._script(sample)
        except UsageError as error:
            return str(error).rstrip(".")
        return ""

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """Run the program, and return what it left."""
        actions = actions_of(ask)
        prompt = self.render(sample)
        trajectory = _trajectory_id(actions, sample, prompt, draw)
        attempts = EarlierAttempts(actions, trajectory)
        await attempts.open()
        watch = _Watch(actions, sample, draw, attempts)
        upstream = SampleUpstream(
            ask, trajectory, self._models, self._limits, attempts, watch.report
        )
        plan = self._plan(sample)
        home = snapshot_home(actions)
        async with started(plan.settings, home) as sandbox:
            await plan.prepare(sandbox)
            executed = await self._run_program(
                sample, sandbox, plan, upstream, trajectory, home
            )
            text = await self._answer_text(sandbox, executed)
            snapshot = await sandbox.snapshot()
        watch.end()
        return answer_of(text, executed, upstream, attempts, plan, snapshot)

    async def _run_program(
        self,
        sample: Sample,
        sandbox: Sandbox,
        plan: SandboxPlan,
        upstream: SampleUpstream,
        trajectory: str,
        home: Path,
    ) -> Executed:
        """Serve the model to the program until it ends.

        Raises:
            RequestFailed: what it left is not the model's doing.
        """
        prompt = _text_of(self.render(sample))
        program = SandboxedProgram(sandbox, str(self._script(sample)), prompt)
        await program.prepare()
        listening, address = await sandbox.listen()
        token = _token(home, trajectory)
        gateway = Gateway(
            upstream,
            Tokens({token: Access("agent-command", trajectory=trajectory)}),
            trajectory=trajectory,
            door_limits={
                "max_connections": MAX_CONNECTIONS,
                "max_bodies_bytes": MAX_BODIES_BYTES,
            },
        )
        gateway.hosts = _hosts_of(address)
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            gateway.door, sock=listening, backlog=_BACKLOG
        )
        environment = {
            **{
                name: hint
                for name, hint in _HINTS.items()
                if name not in plan.settings.environment
            },
            **_task_variables(prompt, self._model),
            **_door_variables(address, token),
        }
        try:
            executed = await _until_end(program, environment, upstream, gateway)
        finally:
            server.close()
            await program.abandon()
            upstream.abandon()
            await gateway.door.shutdown(0)
        check_program(executed, upstream, gateway.last_fault)
        return executed

    async def _answer_text(self, sandbox: Sandbox, executed: Executed) -> str:
        """Return the answer: the file that the task names, or the end of the output."""
        if not self._answer:
            return end_of(executed.stdout).strip()
        try:
            content = await sandbox.read(self._answer, MAX_ANSWER_BYTES)
        except SandboxPathError:
            return ""
        return mask(content.decode("utf-8", "replace")).strip()


async def _until_end(
    program: SandboxedProgram,
    environment: Mapping[str, str],
    upstream: SampleUpstream,
    gateway: Gateway,
) -> Executed:
    """Run the program until it ends, is over a limit, or cannot be answered any more."""
    running = program.start(environment)
    upstream.meter.start()
    over = asyncio.ensure_future(upstream.over.wait())
    try:
        await asyncio.wait(
            (running, over, gateway.broken), return_when=asyncio.FIRST_COMPLETED
        )
        if gateway.broken.done():
            gateway.broken.result()
        if upstream.failure is not None:
            await upstream.settle()
            raise RequestFailed(upstream.failure)
        is_told = upstream.meter.over != "seconds"
        grace = LIMIT_GRACE_SECONDS if is_told else 0.0
        executed = await program.end(grace)
        await upstream.settle()
        return executed
    finally:
        over.cancel()
        upstream.meter.end()


class _Watch:
    """Tells whoever watches the run what the program and the model say.

    Args:
        actions: takes the reports; None if nobody watches.
        sample: the sample.
        draw: the index of the repeat.
        attempts: knows the number of this attempt.
    """

    def __init__(
        self,
        actions: ActionLog | None,
        sample: Sample,
        draw: int,
        attempts: EarlierAttempts,
    ) -> None:
        self._actions = actions
        self._sample = sample
        self._draw = draw
        self._attempts = attempts

    def report(self, conversation: int, turns: Sequence[Message]) -> None:
        """Report new turns of a conversation; the first one has no number."""
        row = prompt_payload(tuple(turns), recorded=True)
        numbered = {"conversation": conversation} if conversation else {}
        self._send({"turns": row, **numbered})

    def end(self) -> None:
        """Report that the sample has ended."""
        self._send({"turns": [], "ended": True})

    def _send(self, event: Mapping[str, object]) -> None:
        if self._actions is None:
            return
        head = {
            "id": self._sample.id,
            "draw": self._draw,
            "attempt": self._attempts.attempt + 1,
        }
        self._actions.report({**head, **event})


def _trajectory_id(
    actions: ActionLog | None, sample: Sample, prompt: Prompt, draw: int
) -> str:
    """Return the id under which a sample's replies are stored: the same when it is run again."""
    task = "" if actions is None else actions.task
    named = [task, sample.id, prompt_payload(prompt), draw]
    text = json.dumps(named, ensure_ascii=False)
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16)
    return f"sample-{digest.hexdigest()}"


def _text_of(prompt: Prompt) -> str:
    """Return a prompt as one text, which every encoding of it can hold."""
    text = prompt
    if not isinstance(text, str):
        text = "\n\n".join(turn.text for turn in text)
    return text.encode("utf-8", "replace").decode("utf-8")


def _task_variables(prompt: str, model: str) -> dict[str, str]:
    """Return the variables that say what is to be done, and with which model."""
    variables = {"TASK_PROMPT_FILE": PROMPT_FILE, "TASK_MODEL": model}
    if len(prompt.encode()) <= MAX_VARIABLE_BYTES and "\0" not in prompt:
        variables["TASK_PROMPT"] = prompt
    return variables


def _door_variables(address: str, token: str) -> dict[str, str]:
    """Return the variables by which client libraries find the model."""
    return {
        "OPENAI_BASE_URL": f"{address}/v1",
        "OPENAI_API_BASE": f"{address}/v1",
        "OPENAI_API_KEY": token,
        "ANTHROPIC_BASE_URL": address,
        "ANTHROPIC_API_KEY": token,
    }


def _hosts_of(address: str) -> frozenset[str]:
    """Return the Host headers of requests to an address inside a sandbox."""
    parts = urlsplit(address)
    host = parts.hostname or "127.0.0.1"
    if parts.port in (None, 80):
        return frozenset((host, "localhost", "127.0.0.1", *hosts_of(host, 80)))
    return hosts_of(host, parts.port or 80)


def _token(home: Path, trajectory: str) -> str:
    """Return the token of a trajectory: the same when its program is started again.

    A program that shows the model its variables then repeats itself. What it opens is in the
    sandbox alone, and gone with it, so the token is no secret afterwards.
    """
    key = secrets.token_bytes(32)
    with suppress(OSError):
        key = _key_of(home)
    digest = hmac.new(key, trajectory.encode(), "sha256").hexdigest()
    return f"sk-{digest[:40]}"


def _key_of(home: Path) -> bytes:
    """Return the secret of this home folder from which tokens are made; make one if it has none."""
    path = home / _KEY_FILE
    if not path.exists():
        home.mkdir(parents=True, exist_ok=True)
        number, draft = mkstemp(dir=home, prefix=".key-")
        with os.fdopen(number, "wb") as file:
            file.write(secrets.token_bytes(32))
        with suppress(FileExistsError):  # another process was first
            os.link(draft, path)
        Path(draft).unlink()
    return path.read_bytes()
