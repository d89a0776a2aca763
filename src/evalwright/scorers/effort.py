"""What an answer took: steps, calls of tools, tokens, dollars, and seconds."""

from __future__ import annotations

from evalwright.core.outcomes import ANSWERED
from evalwright.core.samples import Answer, Sample, Score

STEPS = "steps"
TOKENS = "tokens"
DOLLARS = "dollars"
SECONDS = "seconds"
SHOWN = (STEPS, TOKENS, DOLLARS, SECONDS)
"""The parts that the metrics of an agent's task show, unless it names others."""


def effort(sample: Sample, answer: Answer) -> Score:
    """Score the number of steps: replies of the model.

    Parts: "steps"; "calls" of tools, and "errors", those that failed; "tokens" read and written,
    where every reply says them; "dollars", where the price of every reply is known; "seconds" of
    the model and of tools (or of a program, where that is the agent), alone "model seconds" and
    "tool seconds". A wait for a rate limit is no part of them.
    """
    strategy = answer.strategy
    calls = strategy.get("tool_calls", ())
    times = strategy.get("seconds") or {}
    model_seconds = times.get("model")
    if model_seconds is None:
        model_seconds = sum(response.latency for response in answer.responses)
    tool_seconds = times.get("tools")
    if tool_seconds is None:
        tool_seconds = sum(call.get("seconds", 0.0) for call in calls)
    parts = {
        STEPS: float(len(answer.responses)),
        "calls": float(len(calls)),
        "errors": float(sum(bool(call.get("is_error")) for call in calls)),
        SECONDS: model_seconds + tool_seconds,
        "model seconds": model_seconds,
        "tool seconds": tool_seconds,
    }
    n_tokens = _tokens_of(answer)
    if n_tokens is not None:
        parts[TOKENS] = float(n_tokens)
    dollars = _dollars_of(answer)
    if dollars is not None:
        parts[DOLLARS] = dollars
    outcome = answer.outcome
    n_replies = len(answer.responses)
    return Score(
        parts[STEPS],
        "" if outcome == ANSWERED else outcome,
        f"{n_replies:,} {'reply' if n_replies == 1 else 'replies'}",
        parts=parts,
    )


def _tokens_of(answer: Answer) -> int | None:
    """Return the tokens of all replies, summaries among them; None where a reply has no count."""
    n_tokens = 0
    for response in answer.responses:
        has_content = response.text or response.reasoning or response.tool_calls
        if has_content and not response.counted:
            return None
        n_tokens += response.usage.input_tokens + response.usage.output_tokens
    for entry in answer.strategy.get("compacted", ()):
        usage = entry.get("usage", {})
        n_tokens += usage.get("input_tokens", 0) + usage.get("output_tokens", 0)
    return n_tokens


def _dollars_of(answer: Answer) -> float | None:
    """Return the price of all replies, summaries among them; None where one has none."""
    summaries = [
        entry.get(DOLLARS)
        for entry in answer.strategy.get("compacted", ())
        if "usage" in entry
    ]
    costs = [*(response.cost for response in answer.responses), *summaries]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known and len(known) == len(costs) else None
