"""Checks how many of a run's recorded answers the scorer can read."""

from __future__ import annotations

from collections.abc import Iterator

from evalwright.analysis.task_checks.findings import Check, Finding, points, quoted
from evalwright.analysis.task_checks.material import Material
from evalwright.analysis.task_checks.scripted_replies import find_judging_scorer
from evalwright.core.errors import ConfigurationError
from evalwright.core.samples import UNREADABLE, Answer, Sample
from evalwright.core.tasks import Scorer
from evalwright.evaluation.score_checks import checked_score
from evalwright.runs.reader import Run
from evalwright.statistics import mean_interval
from evalwright.tasks.dialects import is_dialect

MOST_UNREAD = 0.1
"""Largest share of unreadable answers; more is a fault of the task, its prompt or its scorer."""

_CHECK = Check("extraction")
_UNREAD = UNREADABLE
_EXAMPLES = 3


def check_extraction(material: Material, run: Run) -> Iterator[Finding]:
    """Report the share of a run's answers that the task's current main scorer can read."""
    name = material.task.name
    scorer, reason = find_judging_scorer(material)
    if name not in [task.name for task in run.tasks]:
        yield _CHECK.skipped(f"the run '{run.id}' has no answers to {name}")
    elif scorer is None or not material.generates:
        yield _CHECK.skipped(
            reason or "answers are chosen by likelihood, so there is nothing to extract"
        )
    elif is_dialect(scorer.kind):
        why = (
            "another framework's filters do not separate an answer that cannot be read"
        )
        yield _CHECK.skipped(f"{why} from a wrong one")
    else:
        yield from _check_answers(run, name, scorer)


def _check_answers(run: Run, task: str, scorer: Scorer) -> Iterator[Finding]:
    read: dict[str, list[float]] = {}
    codes: dict[str, int] = {}
    clusters: dict[str, int] = {}
    unread: dict[str, str] = {}
    failed = cut = 0
    for record in run.samples():
        answer = record.answer
        name = record.sample.id
        if record.task != task or answer is None or record.failure is not None:
            failed += record.task == task
            continue
        is_read = _is_read(record.sample, answer, scorer)
        read.setdefault(name, []).append(float(is_read))
        codes[name] = clusters.setdefault(record.sample.cluster or name, len(clusters))
        if not is_read:
            unread.setdefault(name, answer.text)
            cut += any(
                response.finish_reason == "length" for response in answer.responses
            )
    if not read:
        yield _CHECK.skipped(
            f"the run '{run.id}' has no answer to this task ({failed} failed)"
        )
        return
    values = [sum(draws) / len(draws) for draws in read.values()]
    share = mean_interval(values, clusters=[codes[name] for name in read])
    limits = f"95%: {points(share.low)} to {points(share.high)}%, n = {share.n}"
    summary = f"{scorer.name} reads {points(share.value)}% of answers ({limits})"
    summary += f", {failed} more failed" if failed else ""
    summary += f"; {cut} of those not read were cut at the token limit" if cut else ""
    bad = share.value < 1 - MOST_UNREAD
    yield _CHECK.fault(summary, list(unread)) if bad else _CHECK.ok(summary)
    for name, text in list(unread.items())[:_EXAMPLES]:
        yield _CHECK.note(f"not read, '{name}': {quoted(text)}", [name])


def _is_read(sample: Sample, answer: Answer, scorer: Scorer) -> bool:
    if not answer.text.strip():
        return False
    try:
        return (
            checked_score(scorer.function(sample, answer), scorer.name, sample.id).label
            != _UNREAD
        )
    except ConfigurationError:
        raise
    except Exception:
        return False
