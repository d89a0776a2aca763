"""Whether a model may have memorised a task's questions: what a run and its rewrites say, in numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evalwright.analysis.contamination.corpus import N
from evalwright.analysis.contamination.dates import read_cut_off
from evalwright.analysis.contamination.drops import (
    ALL,
    Control,
    CutOff,
    Drop,
    Overlap,
    by_cut_off,
    drops,
    overlaps,
    rewrites_of,
)
from evalwright.analysis.contamination.items import OF, read_items
from evalwright.core.errors import ConfigurationError, RunError
from evalwright.core.plain import Plain
from evalwright.runs.reader import Run


@dataclass(frozen=True, slots=True)
class ContaminationReport(Plain):
    """What there is to say of one run. suspicious: some task's paired drop exceeds that of its control items."""

    run: str
    model: str
    cut_off: str
    cut_offs: tuple[CutOff, ...]
    drops: tuple[Drop, ...]
    overlaps: tuple[Overlap, ...]
    suspicious: bool


def contamination_report(
    run: Run,
    *,
    rewrites: Sequence[Run] = (),
    cut_off: str = "",
    date_key: str = "created_at",
    control: str = "",
    corpus: Sequence[str | Path] = (),
    n: int = N,
) -> ContaminationReport:
    """Report on one run. Rewrites are looked for in the run itself and in `rewrites`, runs of the same model.

    cut_off: the model's, e.g. "2024-06"; items dated after it are control items. date_key: which metadata has the date.
    control: "key=value" of the metadata of further control items. corpus: files and folders in which the questions' n-grams are
    looked for. Raises ConfigurationError where it has nothing to report on, and where a run of rewrites is another model's.
    """
    key, equals, value = control.partition("=")
    if control and not (key and equals):
        raise ConfigurationError(
            f"--control takes key=value of items' metadata, such as control=true, not '{control}'."
        )
    clean = Control(read_cut_off(cut_off) if cut_off else None, date_key, key, value)
    for other in rewrites:
        if other.data["model"].get("fingerprint") != run.data["model"].get("fingerprint"):
            raise ConfigurationError(
                f"'{other.id}' is a run of '{other.label}' and '{run.id}' one of '{run.label}': a paired drop needs one "
                f"model. Evaluate '{run.label}' on the rewritten task."
            )
    own = list(read_items(run).values())
    others = [items for other in rewrites for items in read_items(other).values()]
    cut_offs: list[CutOff] = []
    found: list[Drop] = []
    for items in own:
        try:
            cut_offs += [one] if (one := by_cut_off(items, clean)) else []
            found += drops(items, rewrites_of(items, [*own, *others]), clean)
        except ValueError as error:
            raise ConfigurationError(
                f"The scores of '{items.task}' ({items.metric}) cannot be compared: {error}."
            ) from error
    met = overlaps(own, [Path(place) for place in corpus], n) if corpus else []
    if rewrites and not found:
        raise RunError(
            f"No sample of {', '.join(repr(other.id) for other in rewrites)} is a rewrite of one of '{run.id}'. "
            f"`evalwright tasks rewrite` makes them; each names its original in the metadata '{OF}'."
        )
    if not cut_offs and not found and not met:
        raise ConfigurationError(
            f"There is nothing to report for '{run.id}': give --rewrites (a run of the same model on a rewritten task, see "
            f"`evalwright tasks rewrite`), --cut-off for samples whose metadata have '{date_key}', or --corpus."
        )
    return ContaminationReport(
        run=run.id,
        model=run.label,
        cut_off=clean.cut_off.isoformat() if clean.cut_off else "",
        cut_offs=tuple(cut_offs),
        drops=tuple(found),
        overlaps=tuple(met),
        suspicious=any(one.check is not None and one.check.suspicious for one in whole_drops(found)),
    )


def whole_drops(found: Sequence[Drop]) -> list[Drop]:
    """Per task the drop over all its rewrites, on which alone a conclusion rests: no picking of kinds."""
    whole: dict[str, Drop] = {}
    for one in found:
        if one.kind == ALL or one.task not in whole:
            whole[one.task] = one
    return list(whole.values())
