"""Checks tasks with a sandbox: the reference solution scores 1, and an agent that does nothing 0.

Each is run in a sandbox of its own, as the task's strategy would start it, and scored by the
scorers that look at it. No model is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from evalwright.analysis.task_checks.findings import Check, Finding
from evalwright.analysis.task_checks.material import Material
from evalwright.analysis.words import counted
from evalwright.core.errors import EvalwrightError, reason_of
from evalwright.core.requests import Request
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, NoScore, Sample
from evalwright.core.tasks import Scorer, Task
from evalwright.evaluation.score_checks import checked_score
from evalwright.sandboxes.backends import refusal_of, started
from evalwright.sandboxes.plan import SETUP_SECONDS, SandboxPlan
from evalwright.sandboxes.protocol import Snapshot
from evalwright.scorers.registry import is_on_state
from evalwright.strategies.agent_sandbox import snapshot_home

MOST_SAMPLES = 20
"""Samples that are tried: all of a task up to here, else as many drawn by their ids."""
SHOWN_REASON_CHARS = 300
_CHECK = Check("acting")


@dataclass(slots=True)
class _Faults:
    """What is wrong, by the sample's id, with the reason of each."""

    of_solution: dict[str, str] = field(default_factory=dict)
    of_nothing: dict[str, str] = field(default_factory=dict)
    of_sandbox: dict[str, str] = field(default_factory=dict)


def acts(task: Task) -> bool:
    """Return whether models act in a sandbox in a task."""
    return task.sandbox is not None


def check_acting(material: Material) -> Iterator[Finding]:
    """Check the reference solution, and an agent that does nothing, on each sample tried."""
    task = material.task
    if not acts(task):
        return
    scorers = [scorer for scorer in task.scorers if is_on_state(scorer.kind)]
    samples = tried_samples(material.askable)
    if not samples:
        return
    refusal = refusal_of(task.sandbox.plan(samples[0]).settings)
    if refusal:
        yield _CHECK.skipped(f"no sandbox can be started here: {refusal}")
        return
    if not scorers:
        yield _CHECK.skipped(
            "no scorer looks at the sandbox, so nothing done is scored"
        )
        return
    faults = asyncio.run(_try_all(task, scorers, samples))
    yield from _findings(faults, task, samples, len(material.askable))


def tried_samples(samples: Sequence[Sample]) -> list[Sample]:
    """Return all samples, or as many as are tried, drawn by their ids, in the task's order."""
    if len(samples) <= MOST_SAMPLES:
        return list(samples)

    def draw(sample: Sample) -> bytes:
        return blake2b(sample.id.encode("utf-8", "surrogatepass")).digest()

    drawn = {sample.id for sample in sorted(samples, key=draw)[:MOST_SAMPLES]}
    return [sample for sample in samples if sample.id in drawn]


def _findings(
    faults: _Faults, task: Task, samples: Sequence[Sample], n_all: int
) -> Iterator[Finding]:
    tried = (
        "all samples"
        if len(samples) == n_all
        else f"{counted(len(samples), 'sample')} of {n_all:,}"
    )
    found = [
        *_fault(faults.of_sandbox, "the sandbox cannot be prepared on {n}"),
        *_fault(faults.of_solution, "the reference solution does not score 1 on {n}"),
        *_fault(faults.of_nothing, "an agent that does nothing scores above 0 on {n}"),
    ]
    nothing = f"an agent that does nothing scores 0 on {tried}"
    if task.sandbox.has_solution:
        both = f"the reference solution scores 1 and {nothing}"
        yield from _CHECK.verdicts(found, both)
        return
    yield from _CHECK.verdicts(found, nothing)
    yield _CHECK.skipped(
        "the task has no `solution`, so nobody knows whether it can be done"
    )


def _fault(reasons: dict[str, str], template: str) -> Iterator[Finding]:
    if not reasons:
        return
    first_id, reason = next(iter(reasons.items()))
    summary = template.format(n=counted(len(reasons), "sample"))
    yield _CHECK.fault(f"{summary} ('{first_id}': {reason})", list(reasons))


async def _try_all(
    task: Task, scorers: Sequence[Scorer], samples: Sequence[Sample]
) -> _Faults:
    faults = _Faults()
    await asyncio.gather(
        *(_try_sample(task, scorers, sample, faults) for sample in samples)
    )
    order = [sample.id for sample in samples]
    for reasons in (faults.of_sandbox, faults.of_solution, faults.of_nothing):
        in_order = {name: reasons[name] for name in order if name in reasons}
        reasons.clear()
        reasons.update(in_order)
    return faults


async def _try_sample(
    task: Task, scorers: Sequence[Scorer], sample: Sample, faults: _Faults
) -> None:
    try:
        plan: SandboxPlan = task.sandbox.plan(sample)
        untouched, _ = await _state_after(plan, "")
        if reason := await _reward_of_nothing(task, scorers, sample, untouched):
            faults.of_nothing[sample.id] = reason
        solution = task.sandbox.solution(sample)
        if not task.sandbox.has_solution:
            return
        solved, output = await _state_after(plan, solution)
        if reason := await _shortfall(scorers, sample, solved):
            faults.of_solution[sample.id] = f"{reason}{output}"
    except EvalwrightError as error:
        faults.of_sandbox[sample.id] = _short(reason_of(error))


async def _state_after(plan: SandboxPlan, script: str) -> tuple[Snapshot, str]:
    """Run a script in the sandbox of a sample.

    Returns:
        The state that it left, and what it reported where it failed.
    """
    home = snapshot_home(None)
    async with started(plan.settings, home) as sandbox:
        await plan.prepare(sandbox)
        output = ""
        if script:
            executed = await sandbox.exec(["bash", "-c", script], seconds=SETUP_SECONDS)
            if executed.exit_code or executed.ended_by:
                errors = executed.stderr.decode("utf-8", "replace").strip()
                output = (
                    f"; the solution ended with the exit code {executed.exit_code}:"
                    f" {_short(errors) or 'no errors were written'}"
                )
        return await sandbox.snapshot(), output


async def _shortfall(scorers: Sequence[Scorer], sample: Sample, state: Snapshot) -> str:
    """Say which scorer gives a state less than 1; "" if none does."""
    for scorer in scorers:
        value, explanation = await _value_of(scorer, sample, state, sample.target)
        if value < 1:
            return f"{scorer.name} gives {value:g}: {_short(explanation)}"
    return ""


async def _reward_of_nothing(
    task: Task, scorers: Sequence[Scorer], sample: Sample, state: Snapshot
) -> str:
    """Say which scorer rewards an untouched state: the main one at all, another one in full."""
    main = task.metrics[0].scorer if task.metrics else ""
    names = [scorer.name for scorer in scorers]
    main = main if main in names else names[0]
    for scorer in scorers:
        value, explanation = await _value_of(scorer, sample, state, "")
        if value > 0 if scorer.name == main else value >= 1:
            return f"{scorer.name} gives {value:g}: {_short(explanation)}"
    return ""


async def _value_of(
    scorer: Scorer, sample: Sample, state: Snapshot, text: str
) -> tuple[float, str]:
    """Score a state; a scorer that has nothing to say gives 0."""
    answer = Answer(
        text,
        responses=(Response(text, finish_reason="stop"),),
        strategy={"name": "agent", "sandbox": {"snapshot": state.as_dict()}},
    )
    pending: Any = scorer.function(sample, answer, _no_model)
    score = await pending
    if isinstance(score, NoScore):
        return 0.0, score.reason
    checked = checked_score(score, scorer.name, sample.id)
    return checked.value, checked.explanation


async def _no_model(role: str, request: Request) -> Response:
    raise NotImplementedError("no model is asked when a task is checked")


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return (
        flat if len(flat) <= SHOWN_REASON_CHARS else f"{flat[:SHOWN_REASON_CHARS]}..."
    )
