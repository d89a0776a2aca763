"""With a run: of how many recorded answers could the scorer read what it needs?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from evalwright.analysis.task_checks.asking import judged
from evalwright.analysis.task_checks.findings import Finding, fault, ok, points, quoted, skipped
from evalwright.analysis.task_checks.material import Material
from evalwright.core.errors import ConfigurationError
from evalwright.core.samples import SampleRecord
from evalwright.core.tasks import Scorer
from evalwright.evaluation.running import checked_score
from evalwright.runs.reader import Run
from evalwright.statistics import mean_interval
from evalwright.tasks.dialects import is_dialect

MOST_UNREAD = 0.1
"""Of answers that could not be read; more is a fault of the task, its prompt or its scorer."""

_CHECK = "extraction"
_UNREAD = "not_extracted"
_EXAMPLES = 3


@dataclass(slots=True)
class _Count:
    """Whether each answer was read (by item), and examples of those that were not."""

    read: dict[str, list[float]] = field(default_factory=dict)
    clusters: dict[str, str] = field(default_factory=dict)
    failed: int = 0
    unread: list[tuple[str, str]] = field(default_factory=list)
    cut: int = 0


def check_extraction(material: Material, run: Run) -> Iterator[Finding]:
    """The share of a run's answers that the task's main scorer, as it is now, can read, with its interval."""
    name = material.task.name
    if name not in [task.name for task in run.tasks]:
        yield skipped(_CHECK, f"the run '{run.id}' has no answers to {name}")
        return
    scorer, reason = judged(material)
    if scorer is None or not material.generates:
        yield skipped(_CHECK, reason or "answers are chosen by likelihood, so there is nothing to extract")
        return
    if is_dialect(scorer.kind):
        yield skipped(
            _CHECK,
            "another framework's filters do not separate an answer that cannot be read from a wrong one",
        )
        return
    count = _counted(run, name, scorer)
    yield _verdict(count, run, scorer)
    for identity, text in count.unread[:_EXAMPLES]:
        yield Finding("note", _CHECK, f"not read, '{identity}': {quoted(text)}", (identity,))


def _counted(run: Run, name: str, scorer: Scorer) -> _Count:
    count = _Count()
    for record in run.samples():
        if record.task != name:
            continue
        sample = record.sample
        count.clusters[sample.id] = sample.cluster or sample.id
        if record.answer is None:
            count.failed += 1
            continue
        is_read = _is_read(record, scorer)
        count.read.setdefault(sample.id, []).append(float(is_read))
        if not is_read:
            count.unread.append((sample.id, record.answer.text))
            count.cut += any(response.finish_reason == "length" for response in record.answer.responses)
    return count


def _is_read(record: SampleRecord, scorer: Scorer) -> bool:
    assert record.answer is not None
    if not record.answer.text.strip():
        return False
    try:
        return checked_score(scorer.function(record.sample, record.answer)).label != _UNREAD
    except ConfigurationError:
        raise
    except Exception:
        return False


def _verdict(count: _Count, run: Run, scorer: Scorer) -> Finding:
    if not count.read:
        return skipped(_CHECK, f"the run '{run.id}' has no answer to this task ({count.failed} failed)")
    names = list(count.read)
    numbers = {
        cluster: place for place, cluster in enumerate(dict.fromkeys(count.clusters[one] for one in names))
    }
    values = [sum(draws) / len(draws) for draws in count.read.values()]
    clusters = [numbers[count.clusters[one]] for one in names] if len(numbers) < len(names) else None
    share = mean_interval(values, clusters=clusters)
    told = (
        f"{scorer.name} reads {points(share.value)} of 100 answers (95%: {points(share.low)} to {points(share.high)}, "
        f"n = {share.n})"
    )
    if count.failed:
        told += f", {count.failed} more failed"
    if count.cut:
        told += f"; {count.cut} of those not read were cut at the token limit"
    if share.value < 1 - MOST_UNREAD:
        return fault(_CHECK, told, list(dict.fromkeys(one for one, _ in count.unread)))
    return ok(_CHECK, told)
