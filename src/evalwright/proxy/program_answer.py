"""The answer of a program that asked a model: what it wrote, what was said, how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalwright.core.errors import Failure, RequestFailed
from evalwright.core.outcomes import is_models_own, response_of_fault
from evalwright.core.requests import Message, prompt_payload
from evalwright.core.samples import Answer
from evalwright.core.secrets import mask
from evalwright.proxy.earlier_attempts import EarlierAttempts
from evalwright.proxy.faults import Fault
from evalwright.proxy.sample_upstream import SampleUpstream
from evalwright.proxy.transcript import ProgramConversation
from evalwright.sandboxes.plan import SandboxPlan
from evalwright.sandboxes.protocol import Executed, Snapshot

OUTPUT_CHARS = 20_000
"""How much of the end of a program's output and errors is recorded."""
MAX_CONVERSATIONS = 200
"""Most conversations beside the main one that are recorded; the others are counted."""
_SHOWN_CHARS = 500
_CANNOT_RUN = 126
_NOT_FOUND = 127


def end_of(output: bytes, n_chars: int = OUTPUT_CHARS) -> str:
    """Return the end of what a program wrote, without secrets; a cut end says how much is gone."""
    text = mask(output.decode("utf-8", "replace"))
    if len(text) <= n_chars:
        return text
    return f"[{len(text) - n_chars:,} characters before]\n{text[-n_chars:]}"


def check_program(
    executed: Executed, upstream: SampleUpstream, last_fault: Fault | None
) -> None:
    """Check that what the program left is the model's doing.

    Args:
        executed: what became of the program.
        upstream: what it asked.
        last_fault: the last of its requests that was refused before the model was asked.

    Raises:
        RequestFailed: it is not; the sample is missing.
    """
    if upstream.failure is not None:
        raise RequestFailed(upstream.failure)
    refusal = upstream.refusal
    if refusal is not None and is_models_own(refusal):
        return
    if refusal is not None and (executed.exit_code or not upstream.responses):
        raise RequestFailed(refusal)
    if upstream.responses:
        return
    raise RequestFailed(
        Failure("agent program failed", "task", _complaint(executed, last_fault))
    )


def _complaint(executed: Executed, last_fault: Fault | None) -> str:
    """Return why a program got no reply, in sentences."""
    errors = mask(executed.stderr.decode("utf-8", "replace")).strip()
    errors = f"…{errors[-_SHOWN_CHARS:]}" if len(errors) > _SHOWN_CHARS else errors
    errors = errors.rstrip(".") or "nothing"
    if executed.exit_code in (_CANNOT_RUN, _NOT_FOUND) and last_fault is None:
        return (
            "The program of 'agent-command' cannot be started (exit code"
            f" {executed.exit_code}). Its errors end with: {errors}. Check `run`, and that the"
            " program is in the sandbox."
        )
    if last_fault is not None:
        return (
            "The program of 'agent-command' got no reply from the model: its last request was"
            f" refused. {last_fault.message}"
        )
    how = executed.ended_by and f"reached the limit of {executed.ended_by}"
    how = how or f"ended with the exit code {executed.exit_code}"
    return (
        f"The program of 'agent-command' {how} and never asked the model. It must send its"
        " requests to $OPENAI_BASE_URL or $ANTHROPIC_BASE_URL, with the key beside it. Its"
        f" errors end with: {errors}."
    )


def answer_of(
    text: str,
    executed: Executed,
    upstream: SampleUpstream,
    attempts: EarlierAttempts,
    plan: SandboxPlan,
    snapshot: Snapshot,
) -> Answer:
    """Return the answer that a program gave.

    Replies outside of the main conversation come first, so that the last reply is the main
    conversation's, as with every other strategy.

    Args:
        text: the answer's text.
        executed: what became of the program.
        upstream: what it asked.
        attempts: what it asked when it was started before.
        plan: the sandbox it ran in.
        snapshot: the state it left.
    """
    transcript = upstream.transcript
    main = transcript.main or ProgramConversation(())
    in_main = set(main.replies)
    aside = [
        position
        for position in range(len(upstream.responses))
        if position not in in_main
    ]
    order = [*aside, *main.replies]
    responses = [upstream.responses[position] for position in order]
    places = {position: index for index, position in enumerate(order)}
    if upstream.refusal is not None:
        responses.append(response_of_fault(upstream.refusal))
    beside = [talk for talk in transcript.conversations if talk is not main]
    meter = upstream.meter
    record = {
        "name": "agent-command",
        "steps": len(responses),
        "ended": meter.over or "exit",
        "exit_code": executed.exit_code,
        "ended_by": executed.ended_by,
        "stdout": end_of(executed.stdout),
        "stderr": end_of(executed.stderr),
        "tool_calls": _tool_calls(main, upstream, places),
        "rewritten": main.n_rewritten,
        "conversations": [
            _conversation_row(talk, places) for talk in beside[:MAX_CONVERSATIONS]
        ],
        "side_replies": len(aside),
        "conversations_left_out": max(0, len(beside) - MAX_CONVERSATIONS),
        "seconds": {
            "model": round(meter.model_seconds, 6),
            "tools": round(meter.program_seconds, 6),
        },
        "sandbox": {
            "backend": plan.settings.backend,
            "fingerprint": plan.fingerprint,
            "snapshot": snapshot.as_dict(),
        },
        "attempts": attempts.attempt + 1,
        "started_anew": attempts.started_anew,
    }
    kept = {
        name: content
        for name, content in record.items()
        if name == "exit_code" or content not in ("", 0, [], None)
    }
    return Answer(
        text=text,
        prompt=main.prompt,
        responses=tuple(responses),
        strategy=kept,
        tools=main.tools,
    )


def _conversation_row(
    talk: ProgramConversation, places: Mapping[int, int]
) -> dict[str, Any]:
    """Return a conversation beside the main one, for the record."""
    row: dict[str, Any] = {
        "turns": prompt_payload(talk.prompt, recorded=True),
        "responses": [places[position] for position in talk.replies],
    }
    return {**row, "rewritten": talk.n_rewritten} if talk.n_rewritten else row


def _tool_calls(
    main: ProgramConversation, upstream: SampleUpstream, places: Mapping[int, int]
) -> list[dict[str, Any]]:
    """Return the calls in the main conversation, in their order.

    The seconds of a reply's calls are those until the next request, in equal shares.
    """
    failed_ids = {turn.tool_call_id for turn in main.turns if _is_failed(turn)}
    next_positions = [*main.replies[1:], None]
    rows: list[dict[str, Any]] = []
    for position, next_position in zip(main.replies, next_positions, strict=True):
        calls = upstream.responses[position].tool_calls
        seconds = 0.0
        if next_position is not None:
            seconds = upstream.times[next_position][0] - upstream.times[position][1]
        rows += [
            {
                "step": places[position],
                "name": call.name,
                "is_error": call.id in failed_ids,
                "seconds": round(seconds / len(calls), 6),
            }
            for call in calls
        ]
    return rows


def _is_failed(turn: Message) -> bool:
    return turn.role == "tool" and turn.is_error and turn.tool_call_id != ""
