"""Starts the proxy, and ends it: store, engine, budget, server, and the program that it serves.

An interruption lets requests that were sent be answered and stored for a moment, as in a run; a
program that was started with the proxy ends first.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from evalwright.core.errors import ConfigurationError
from evalwright.core.secrets import remember
from evalwright.engine.collecting import rare_collections
from evalwright.engine.counts import Counts
from evalwright.engine.engine import Engine
from evalwright.engine.store import Store
from evalwright.evaluation.budgets import BudgetTerms, open_budget
from evalwright.evaluation.running import GRACE, interruptible
from evalwright.models.model_interface import Model
from evalwright.proxy.gateway import Gateway
from evalwright.proxy.server import hosts_of, open_socket
from evalwright.proxy.spending import MAX_STORED_BYTES, Growth
from evalwright.proxy.tokens import Access, Tokens
from evalwright.proxy.upstream import EngineUpstream

TICK_SECONDS = 0.5
"""How often the state is shown, and the size of the store looked up."""
SHUTDOWN_SECONDS = 2.0
"""How long answers may take to be written once the engine has ended."""
CHILD_SECONDS = 5.0
"""How long the program may take to end once it is told to."""
_BACKLOG = 1024
_FORGOTTEN_VARIABLES = ("ANTHROPIC_AUTH_TOKEN",)
"""Variables that would send another key beside the proxy's."""


@dataclass(frozen=True, slots=True)
class State:
    """How far a proxy is, for people.

    Attributes:
        counts: of requests to models.
        in_flight: requests that are being answered.
        refused: requests that were answered with an error before a model was asked.
        trajectories: number of trajectories with an id.
        over_budget: requests that were not sent, because a budget was spent.
    """

    counts: Counts
    in_flight: int
    refused: int
    trajectories: int
    over_budget: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """What a proxy does.

    Attributes:
        models: the models that it serves.
        access_by_token: what each token allows.
        token: the token of the program.
        host: the loopback address to listen on.
        port: 0 for any free one.
        budget: what may be spent.
        command: the program to start, with its arguments; empty to serve until interrupted.
        trajectory: the program's trajectory.
        asked_in: the round in which models are asked.
        max_resident: heavy local models in memory at a time.
        max_stored: most bytes that the store may grow by.
        grace: seconds in which requests that were sent may be answered after an interruption.
    """

    models: Sequence[Model]
    access_by_token: Mapping[str, Access]
    token: str = field(repr=False)
    host: str = "127.0.0.1"
    port: int = 0
    budget: BudgetTerms | None = None
    command: Sequence[str] = ()
    trajectory: str = ""
    asked_in: str = ""
    max_resident: int = 1
    max_stored: int = MAX_STORED_BYTES
    grace: float = GRACE


@dataclass(slots=True)
class Listener:
    """What hears of a proxy; every method is called in the event loop.

    Attributes:
        say: called with a sentence for people.
        started: called with the proxy's address once it listens.
        show: called with the state, now and then and at the end.
    """

    say: Callable[[str], None]
    started: Callable[[str], None]
    show: Callable[[State], None]


def trajectory_of(command: Sequence[str]) -> str:
    """Return the id of a program's trajectory: the same for the same command line."""
    text = "\0".join(command).encode("utf-8", "surrogateescape")
    return f"command-{hashlib.sha256(text).hexdigest()[:16]}"


def child_environment(
    address: str, trajectory: str, token: str, environment: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables by which a program's client libraries find the proxy."""
    base = f"{address}/t/{trajectory}"
    here = "127.0.0.1,localhost,::1"
    direct = {
        name: ",".join(filter(None, (environment.get(name, ""), here)))
        for name in ("NO_PROXY", "no_proxy")
    }
    kept = {
        name: value
        for name, value in environment.items()
        if name not in _FORGOTTEN_VARIABLES
    }
    return {
        **kept,
        **direct,
        "OPENAI_BASE_URL": f"{base}/v1",
        "OPENAI_API_BASE": f"{base}/v1",
        "OPENAI_API_KEY": token,
        "ANTHROPIC_BASE_URL": base,
        "ANTHROPIC_API_KEY": token,
    }


async def serve(plan: Plan, store: Store, listener: Listener) -> int:
    """Serve until the program ends, or until this is cancelled.

    Args:
        plan: what to do.
        store: keeps the answers.
        listener: hears how it goes.

    Returns:
        The program's exit code; 0 without a program.

    Raises:
        ConfigurationError: the port cannot be used, or the program cannot be started.
        StoreError: answers cannot be stored.
    """
    with rare_collections():
        return await _serve_models(plan, store, listener)


async def _serve_models(plan: Plan, store: Store, listener: Listener) -> int:
    async with (
        Engine(
            store,
            max_resident=plan.max_resident,
            asked_in=plan.asked_in,
            on_event=listener.say,
        ) as engine,
        open_budget(plan.budget, store) as budget,
    ):
        upstream = EngineUpstream(
            engine,
            plan.models,
            budgets=() if budget is None else (budget,),
            growth=Growth(int(await store.look("size")), plan.max_stored),
        )
        gateway = Gateway(upstream, Tokens(plan.access_by_token))
        work = _serve(plan, gateway, upstream, engine, store, listener)
        try:
            return await interruptible(work, engine, plan.grace, listener.say)
        finally:
            listener.show(_state(gateway, upstream))


async def _serve(
    plan: Plan,
    gateway: Gateway,
    upstream: EngineUpstream,
    engine: Engine,
    store: Store,
    listener: Listener,
) -> int:
    listening = open_socket(plan.host, plan.port)
    port = listening.getsockname()[1]
    gateway.hosts = hosts_of(plan.host, port)
    shown_host = f"[{plan.host}]" if ":" in plan.host else plan.host
    address = f"http://{shown_host}:{port}"
    loop = asyncio.get_running_loop()
    server = await loop.create_server(gateway.door, sock=listening, backlog=_BACKLOG)
    ticking = asyncio.create_task(_tick(gateway, upstream, store, listener))
    child: asyncio.subprocess.Process | None = None
    try:
        listener.started(address)
        remember(plan.token)
        if plan.command:
            child = await _start(plan, address)
        ending = asyncio.create_task(child.wait() if child else asyncio.Event().wait())
        try:
            await asyncio.wait(
                (ending, gateway.broken), return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            ending.cancel()
        if gateway.broken.done():
            gateway.broken.result()
        await engine.stop(plan.grace)
        assert child is not None and child.returncode is not None
        # A program that a signal ended has its number, negative.
        return child.returncode if child.returncode >= 0 else 128 - child.returncode
    finally:
        ticking.cancel()
        server.close()
        if child is not None:
            await _end(child)
        await gateway.door.shutdown(SHUTDOWN_SECONDS)


async def _start(plan: Plan, address: str) -> asyncio.subprocess.Process:
    """Start the program."""
    environment = child_environment(
        address, plan.trajectory, plan.token, dict(os.environ)
    )
    try:
        return await asyncio.create_subprocess_exec(*plan.command, env=environment)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigurationError(
            f"The command {shlex.join(plan.command)} cannot be started: {reason}."
        ) from None


async def _end(child: asyncio.subprocess.Process) -> None:
    """End the program, if it has not ended by itself."""
    for end in (child.terminate, child.kill):
        if child.returncode is not None:
            return
        with suppress(ProcessLookupError):
            end()
        with suppress(TimeoutError):
            async with asyncio.timeout(CHILD_SECONDS):
                await child.wait()


async def _tick(
    gateway: Gateway, upstream: EngineUpstream, store: Store, listener: Listener
) -> None:
    """Show the state, and look how far the store has grown."""
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(TICK_SECONDS)
        gateway.door.sweep(loop.time())
        listener.show(_state(gateway, upstream))
        if upstream.growth is not None and upstream.growth.has_grown:
            upstream.growth.measured(int(await store.look("size")))


def _state(gateway: Gateway, upstream: EngineUpstream) -> State:
    return State(
        upstream.counts,
        gateway.in_flight,
        gateway.refused,
        len(gateway.sessions),
        upstream.over_budget,
    )
