"""How a run ended, in sentences: what to do about each kind of failure, and what stopping rules and the budget decided."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from evalwright.analysis.words import counted
from evalwright.core.errors import Failure, RunError
from evalwright.core.outcomes import CUT, FILTERED, NO_ANSWER, REFUSED
from evalwright.runs.reader import Run
from evalwright.runs.results import unscored

AGAIN = "Run the same command again: only what failed is sent."

IMPORTED = "It failed in the program that this run was imported from; only that program can retry it."

BAD_VERDICT = "judge: bad verdict"

PUBLISHED = "published failure"

ADVICE: Mapping[str, str] = {
    kind: said.replace("{again}", AGAIN)
    for kind, said in tomllib.loads(
        (files("evalwright.reports") / "advice.toml").read_text(encoding="utf-8")
    ).items()
}
"""What a person can do, by `Failure.label`: the kind, and whether it is the judge's."""

CLOSING = {
    CUT: "Those cut need a higher token limit (-M max_tokens=N).",
    FILTERED: "Those filtered need other settings of the provider's filter.",
    REFUSED: "Those refused are the model's decision.",
}
"""The same in the last line of a command, where most of it fits."""


def unscored_sentences(runs: Sequence[Run]) -> str:
    """How many samples have no score, which, why, and what to do; "" where all have one."""
    tasks = [task for run in runs for task in run.tasks]
    failed, total = sum(task.n_missing for task in tasks), sum(task.n_samples for task in tasks)
    labels = {label for task in tasks for label, n in task.failures.items() if n}
    if not failed and not labels:
        return ""
    without = [outcome for outcome in NO_ANSWER if outcome in labels]
    if not failed:
        n = sum(n for task in tasks for n in task.failures.values())
        said = [f"{n:,} draws failed, but every sample has a score from its other draws."]
    elif without:
        said = [
            f"{failed:,} of {total:,} samples have no score: {unscored(tasks)}. They are counted separately, not as wrong."
        ]
    else:
        said = [f"{failed:,} of {total:,} samples failed; they are counted separately and not scored."]
    said += [CLOSING[outcome] for outcome in without]
    if without and not all(task["definition"].get("dialect") for run in runs for task in run.data["tasks"]):
        said.append(
            f"To count them as wrong, add -T 'score_as_empty={json.dumps(without)}', or write it in the task."
        )
    if BAD_VERDICT in labels:
        said.append("Verdicts that cannot be read stay as they are: use another judge.")
    if PUBLISHED in labels:
        said.append("Those that fail as published are evaluated with --scoring corrected.")
    if labels - {*without, BAD_VERDICT, PUBLISHED, "scorer error"}:
        said.append("Run the same command again to send only what failed.")
    if "scorer error" in labels:
        said.append("The scorer raised errors: fix it, then `evalwright score` the run.")
    return " ".join(said)


@dataclass(frozen=True, slots=True)
class FailureNote:
    """One kind of failure: how many items it took, what to do, and its first message."""

    kind: str
    count: int
    advice: str
    example: str


def failure_notes(run: Run) -> list[FailureNote]:
    """The kinds of failure of a run, most frequent first."""
    counts: dict[str, int] = {}
    for task in run.tasks:
        for kind, count in task.failures.items():
            counts[kind] = counts.get(kind, 0) + count
    examples = _first_messages(run, counts)
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    imported = "imported" in run.data["configuration"]
    return [
        FailureNote(kind, n, IMPORTED if imported else _advice(kind), examples.get(kind, ""))
        for kind, n in ordered
    ]


def _advice(label: str) -> str:
    """What to do; a judge's failure without words of its own is mended as a model's is, but at the judge."""
    return ADVICE.get(label) or ADVICE.get(label.removeprefix("judge: "), AGAIN)


def _first_messages(run: Run, kinds: Iterable[str]) -> dict[str, str]:
    """The first message of each kind; reads no further than it must."""
    missing, found = set(kinds), dict[str, str]()
    rows = run.rows()
    while missing:
        try:
            row = next(rows, None)
        except RunError:
            break  # a report on a run whose samples were moved away still has its numbers
        if row is None:
            break
        failures = [row.get("failure"), *row.get("score_failures", {}).values()]
        for failure in (Failure(one["kind"], one["party"], one["message"]) for one in failures if one):
            if failure.label in missing:
                missing.discard(failure.label)
                found[failure.label] = failure.message
    return found


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
