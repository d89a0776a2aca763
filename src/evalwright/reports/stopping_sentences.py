"""What stopping rules and the budget decided about a run, in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from evalwright.analysis.words import counted

if TYPE_CHECKING:
    from evalwright.runs.reader import Run


def stopping_sentences(run: Run) -> list[str]:
    """What a reader of a run must know about how it ended; none where nothing was to stop it."""
    stopping = run.data.get("stopping")
    if not stopping:
        return []
    out = [_decision(found) for found in stopping["decisions"]]
    early = [part for part in stopping["tasks"] if part["asked"] < part["of"]]
    if early:
        asked, whole = (sum(part[key] for part in stopping["tasks"]) for key in ("asked", "of"))
        said = f"Stopped early because the budget was spent: {asked:,} of {whole:,} answers were requested."
        if not stopping["budget_reached"]:
            saved = counted(stopping["saved_requests"], "request")
            said = f"Stopped early because its rules were decided: {asked:,} of {whole:,} answers were requested, "
            said += f"saving about {saved}."
        out.append(said)
    return out


def _decision(found: Mapping[str, Any]) -> str:
    """One rule on one task, in a sentence."""
    name = f"'{found['rule']}' on {found['task']}"
    units = f"{found['units']:,} of {found['n_total']:,} {found['unit']}"
    units += f" ({found['failed']:,} without a score)" if found["failed"] else ""
    level = f"{100 * found['level']:g}%"
    seen = _interval(found)
    if found.get("trouble"):
        return f"{name}: undecided after {units}: {found['trouble']}"
    if not found["decided"]:
        return f"{name}: undecided after {units}{seen}."
    when = "early, " if found["early"] else ""
    return (
        f"{name}: {found['verdict']}, decided {when}after {units}{seen} (level {level}; {found['method']})."
    )


def _interval(found: Mapping[str, Any]) -> str:
    value, low, high = (found[key] for key in ("value", "low", "high"))
    if value is None:
        return ""
    sign = "+" if found["a"] else ""
    inside = (
        ""
        if low is None or high is None or low == high
        else f" [{_points(low, found)}, {_points(high, found)}]"
    )
    shown = f"{_points(value, found, sign)}{inside}"
    what = f"difference {shown}" if found["a"] else f"{found['metric']} {shown}"
    return f"; {what}"


def _points(x: float, found: Mapping[str, Any], sign: str = "") -> str:
    return f"{100 * x:{sign}.1f}" if found["bounded"] else f"{x:{sign}.4g}"
