"""A task read once for all checks: its samples, rendered questions, and requests."""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from evalwright.core.ask import Ask
from evalwright.core.errors import EvalwrightError, RequestFailed, TaskError
from evalwright.core.requests import (
    Classify,
    Generate,
    LogLikelihood,
    Message,
    Prompt,
    Request,
    Reward,
    RollingLogLikelihood,
)
from evalwright.core.responses import Response, TokenLogProb
from evalwright.core.samples import Answer, Sample
from evalwright.core.tasks import Task
from evalwright.sandboxes.protocol import SandboxFailed
from evalwright.strategies.sampling import TARGET

PLACEHOLDER = "(the model's answer)"

_SPACES = re.compile(r"\s+")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Material:
    """What the checks examine; sequences have one entry per sample.

    Args:
        task: the task.
        samples: its samples.
        questions: the user's turn, without instruction and shots.
        requests: what would be sent, () if building it failed.
        broken: why it failed, by sample id.
        renderer: the prompt renderer of a task file, None for other tasks.
        dialect: another framework's name, "" for none.
        preferred: cache of `asking.score_preferences`.
    """

    task: Task
    samples: tuple[Sample, ...]
    questions: tuple[str, ...]
    requests: tuple[tuple[Request, ...], ...]
    broken: dict[str, str] = field(default_factory=dict)
    renderer: Any = None
    dialect: str = ""
    preferred: dict[str, list[tuple[Sample, int, float]]] = field(default_factory=dict)

    @property
    def askable(self) -> list[Sample]:
        """The samples whose requests could be built."""
        return [sample for sample in self.samples if sample.id not in self.broken]

    @property
    def chooses(self) -> bool:
        """Whether options are compared by likelihood, or by a judge of pairs, for every sample."""
        return bool(self.samples) and all(
            len(sample.choices) >= 2
            and (
                isinstance(sent[0], Classify)
                or (
                    len(sent) >= len(sample.choices)
                    and isinstance(sent[0], LogLikelihood)
                )
            )
            for sample, sent in zip(self.samples, self.requests, strict=True)
            if sent
        )

    @property
    def generates(self) -> bool:
        """Whether the model answers in its own words."""
        return any(
            isinstance(request, Generate)
            for sent in self.requests
            for request in sent[:1]
        )

    @property
    def continues(self) -> bool:
        """Whether a single continuation per sample is scored by its likelihood."""
        sent_by_sample = [sent for sent in self.requests if sent]
        return bool(sent_by_sample) and all(
            len(sent) == 1 and isinstance(sent[0], LogLikelihood)
            for sent in sent_by_sample
        )


def read_material(task: Task) -> Material:
    """Read a task. Errors in a sample's own templates or code are kept in `broken`."""
    samples = tuple(task.samples)
    render = getattr(task.strategy, "render", None)
    renderer = render if hasattr(render, "question") else None
    requests_by_sample = asyncio.run(collect_all_requests(task, samples))
    broken = {
        sample.id: why
        for sample, (_, why) in zip(samples, requests_by_sample, strict=True)
        if why
    }
    questions = [
        (
            renderer.question(sample)
            if renderer and sample.id not in broken
            else sample.input
        )
        for sample in samples
    ]
    return Material(
        task,
        samples,
        tuple(questions),
        tuple(tuple(sent) for sent, _ in requests_by_sample),
        broken,
        renderer,
        str(task.metadata.get("dialect") or "") if renderer is None else "",
    )


def preview_requests(task: Task, index: int) -> list[Request]:
    """Collect the exact requests that a sample would send.

    Requests that depend on an earlier reply show a placeholder for it.
    """
    return asyncio.run(collect_requests(task, task.samples[index]))


async def collect_all_requests(
    task: Task, samples: Iterable[Sample]
) -> list[tuple[list[Request], str]]:
    """Collect the requests of each sample, or none and why. Raises TaskError for a faulty task."""
    requests_by_sample: list[tuple[list[Request], str]] = []
    for sample in samples:
        try:
            requests_by_sample.append((await collect_requests(task, sample), ""))
        except TaskError:
            raise
        except Exception as error:
            error_type = (
                ""
                if isinstance(error, EvalwrightError)
                else f"{type(error).__name__}: "
            )
            requests_by_sample.append(
                ([], f"{error_type}{error}" or "no reason is given")
            )
    return requests_by_sample


async def collect_requests(task: Task, sample: Sample) -> list[Request]:
    """Collect the requests of a sample, answering each with a placeholder."""
    sent: list[Request] = []
    judged = False

    async def ask(role: str, request: Request) -> Response:
        nonlocal judged
        judged = judged or role != TARGET
        sent.append(request)
        values = (0.5,) if isinstance(request, Reward) else (0.5, 0.5)
        token = TokenLogProb(PLACEHOLDER, 0.0)
        return Response(
            PLACEHOLDER,
            log_likelihood=0.0,
            is_greedy=False,
            values=values,
            tokens=(token,),
        )

    if task.sandbox is not None:
        return [await _first_request(task, sample)]
    try:
        await task.strategy(sample, ask, 0)
    except RequestFailed:
        if not judged:
            # Otherwise a placeholder is no verdict, and all requests are collected.
            raise
    return sent


class _Enough(Exception):
    """The first request of a sample is known."""


async def _first_request(task: Task, sample: Sample) -> Request:
    """Return the first request of a sample whose model acts: nothing is started for it."""
    sent: list[Request] = []

    async def ask(role: str, request: Request) -> Response:
        sent.append(request)
        raise _Enough

    strategy: Any = task.strategy
    name = task.definition.get("strategy", {}).get("name")
    if name != "agent-command":  # its requests are made by a program in the sandbox
        try:
            await strategy(sample, ask, 0)
        except _Enough:
            return sent[0]
        except SandboxFailed:
            pass  # this machine has no such sandbox
    tools = getattr(strategy, "tools", None)
    offered = () if tools is None else tools.checked(sample)
    request: Request = strategy.sampling.request(strategy.render(sample), 0, offered)
    return request


async def answer_sample(task: Task, sample: Sample, ask: Ask) -> Answer:
    """Run the strategy; if it chooses among draws with another model, return one draw's answer."""
    strategy = task.strategy
    while getattr(strategy, "roles", None) and hasattr(strategy, "inner"):
        strategy = strategy.inner
    return await strategy(sample, ask, 0)


# -- texts -----------------------------------------------------------------------------


def normalise(text: str) -> str:
    """Normalise a text: Unicode NFC, case-folded, with single spaces."""
    return _SPACES.sub(" ", unicodedata.normalize("NFC", text)).strip().casefold()


def join_words(text: str) -> str:
    """Join the words of a text with spaces around each, so that `in` finds whole words."""
    return f" {' '.join(_WORD.findall(normalise(text)))} "


def prompt_text(prompt: Prompt) -> str:
    """Return a prompt as one text."""
    return (
        prompt if isinstance(prompt, str) else "\n\n".join(turn.text for turn in prompt)
    )


def request_prompt(request: Request) -> Prompt:
    """Return what precedes the answer: the text of a rolling request, the hypothesis of a pair."""
    if isinstance(request, Generate):
        return request.prompt
    if isinstance(request, LogLikelihood):
        return request.context
    if isinstance(request, Classify):
        return request.hypothesis
    return request.text if isinstance(request, RollingLogLikelihood) else ""


def as_messages(prompt: Prompt) -> Sequence[Message]:
    """Return the messages of a prompt; a text is one user message."""
    return (Message("user", prompt),) if isinstance(prompt, str) else prompt


def find_ids(material: Material, wrong: Callable[[int, Sample], bool]) -> list[str]:
    """List the ids of the samples for which `wrong` is true."""
    return [
        sample.id
        for index, sample in enumerate(material.samples)
        if wrong(index, sample)
    ]
