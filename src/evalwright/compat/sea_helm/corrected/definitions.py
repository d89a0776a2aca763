"""The definition of a corrected task, in the schema of task files: the fragment that the table has
for its metric class, filled in with facts of the task.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean as mean
from typing import Any

from evalwright import Answer, Ask, Sample, Score, UsageError
from evalwright.compat.sea_helm.corrected import judges, scorers
from evalwright.compat.sea_helm.instruction_rows import (
    SUBCATEGORY,
    english_instructions,
    instruction_kinds,
    language_instructions,
)
from evalwright.compat.sea_helm.judge_prompts import judges_of
from evalwright.compat.sea_helm.sea_task import DIALECT, Row, SeaTask
from evalwright.extend import (
    MetricSpec,
    Scored,
    Scorer,
    bind_scorer,
    task_from_definition,
)

Facts = dict[str, Any]
Rows = Sequence[Row]
Fragment = Mapping[str, Any]
"""What the table has for a metric class."""
_FACT = re.compile(r"\{\{ (\w+) \}\}")


def corrected_scoring(
    task: SeaTask, rows: Rows, entry: Mapping[str, Any]
) -> tuple[list[Scorer], list[MetricSpec]]:
    """The scorer and the metrics of a task. entry: its metric class's, of the table.

    Raises UsageError for a task that cannot be scored, or a row that is no row of it.
    """
    fragment = _fragment(task, entry)
    facts = _facts(task) | _FACTS[fragment.get("facts", "")](task, rows, fragment)
    definition = definition_of(fragment, facts)
    compiled = task_from_definition(definition, samples=_NO_SAMPLES)
    (scorer,) = compiled.scorers
    if fragment.get("reads_rows"):
        scorer = replace(scorer, function=partial(scorer.function, rows=rows))
    return [_as_recorded(task, scorer, fragment, facts)], list(compiled.metrics)


def definition_of(fragment: Mapping[str, Any], facts: Mapping[str, Any]) -> Facts:
    """A definition in the schema of task files, without data: those are SEA-HELM's own rows."""
    metrics = [
        metric
        for template in fragment["metrics"]
        for metric in _metrics_of(template, facts)
    ]
    return {
        "task": DIALECT,
        "scorers": filled(fragment["scorers"], facts),
        "metrics": metrics,
    }


def _metrics_of(template: Mapping[str, Any], facts: Facts | Any) -> Iterator[Any]:
    """A metric of the fragment: itself, none where the task lacks its `if`, or one for `each`."""
    metric = {key: template[key] for key in template if key not in ("if", "each")}
    if "if" in template and not facts[template["if"]]:
        return
    for value in facts[template["each"]] if "each" in template else [None]:
        yield filled(metric, {**facts, "each": value})


def filled(template: Any, facts: Mapping[str, Any]) -> Any:
    """A part of a fragment with the facts in the place of their names; they are not read as
    templates themselves.
    """
    if isinstance(template, Mapping):
        return {key: filled(value, facts) for key, value in template.items()}
    if isinstance(template, list):
        return [filled(value, facts) for value in template]
    named = _FACT.fullmatch(template) if isinstance(template, str) else None
    return facts[named[1]] if named else template


def strategy_of(task: SeaTask) -> tuple[str, Mapping[str, Any]]:
    """The strategy of each turn, and its options.

    A base model writes up to the answer tag and then goes on from it; a twin's labels are scored
    behind the tag.
    """
    if not (task.base or task.is_twin) or not task.answer_tag.strip():
        return "single-draw", {}
    then, limit = ("likelihood", "answer") if task.is_twin else ("generate", "keep")
    return "reason-then-choose", {
        "tag": task.answer_tag,
        "reasoning_tokens": None,
        "then": then,
        "at_limit": limit,
    }


class _NoSamples:
    """The samples of a definition that is compiled for its scorers and metrics alone."""

    content_hash = ""

    def __len__(self) -> int:
        return 0

    def __getitem__(self, index: int, /) -> Sample:
        raise IndexError(index)

    def __iter__(self) -> Iterator[Sample]:
        return iter(())


_NO_SAMPLES = _NoSamples()


def _as_recorded(
    task: SeaTask, scorer: Scorer, fragment: Mapping[str, Any], facts: Facts
) -> Scorer:
    """The scorer under the dialect's name, as records have it: its options follow from the task's
    configuration, which stands in them. Its value is also the part of the task's metric.
    """
    options = {"scoring": task.scoring, **filled(fragment.get("options", {}), facts)}
    named = partial(_parts_of_record, fragment.get("parts", "all"), task.metric)
    scored_by: Callable[..., Any] = scorer.function
    function = partial(_asked if scorer.asks else _scored, scored_by, named)
    return replace(
        scorer, kind=DIALECT, options=options, function=function, refuse=None
    )


def _scored(
    function: Callable[..., Scored],
    named: Callable[[Scored], Scored],
    sample: Sample,
    answer: Answer,
) -> Scored:
    return named(function(sample, answer))


async def _asked(
    function: Callable[..., Awaitable[Scored]],
    named: Callable[[Scored], Scored],
    sample: Sample,
    answer: Answer,
    ask: Ask,
) -> Scored:
    return named(await function(sample, answer, ask))


def _parts_of_record(which: str, metric: str, scored: Scored) -> Scored:
    """A score with the part of the task's metric, by which stopping rules go. which: "own" where
    the scorer names it itself, "none" where nothing stands beside it.
    """
    if not isinstance(scored, Score) or which == "own":
        return scored
    parts = scored.parts if which == "all" else {}
    return replace(scored, parts={metric: scored.value, **parts})


# -- facts of tasks --------------------------------------------------------------------


def _fragment(task: SeaTask, entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the table has for a task: another where the model of a judge is not used."""
    without_model = "by_chrf" in entry and not task.config.get("use_metricx_metric")
    fragment: Mapping[str, Any] = entry["by_chrf" if without_model else "corrected"]
    return fragment


def _facts(task: SeaTask) -> Facts:
    """What every fragment may name."""
    return {
        "metric": task.metric,
        "language": task.language,
        "tag": task.answer_tag,
        "base": task.base,
        "class": task.scored_by[1],
    }


def _no_facts(task: SeaTask, rows: Rows, fragment: Fragment) -> Facts:
    return {}


def _label_facts(task: SeaTask, rows: Rows, fragment: Fragment) -> Facts:
    """labels: those that answers can have: by the definition's `labels`, else the rows' options,
    else all labels of the data; chance: the balanced accuracy of guessing among each row's options.
    """
    configured = task.language_settings.get("labels") or task.config.get("labels")
    labels = sorted({str(row["label"]) for row in rows})
    if configured:
        return {"labels": list(map(str, configured)), "chance": 1 / len(configured)}
    letters = scorers.LETTERS
    if labels and all(label in letters for label in labels):
        sizes = [len(scorers.options_of(row)) for row in rows]
        if all(sizes) and max(sizes) > letters.index(max(labels)):
            # late letters are right only where there are many
            guessed: dict[str, list[float]] = {}
            for row, size in zip(rows, sizes, strict=True):
                guessed.setdefault(str(row["label"]), []).append(1 / size)
            chance = mean(map(mean, guessed.values()))
            return {"labels": list(letters[: max(sizes)]), "chance": chance}
    return {"labels": labels, "chance": 1 / max(len(labels), 2)}


def _answer_facts(task: SeaTask, rows: Rows, fragment: Fragment) -> Facts:
    bind_scorer("token-f1", {"language": task.language})
    # It raises MissingExtra where words of the language need a library.
    return {}


def _chrf_facts(task: SeaTask, rows: Rows, fragment: Fragment) -> Facts:
    """chrf: whether the task counts chrF++ too. Raises MissingExtra where that is not installed."""
    uses_chrf = bool(task.config.get("use_chrf_metric"))
    if uses_chrf:
        bind_scorer("chrf++")
    return {"chrf": uses_chrf}


def _summary_facts(task: SeaTask, rows: Rows, fragment: Fragment) -> Facts:
    bind_scorer("rouge", {"kind": "rougeL", "language": task.language})
    return _chrf_facts(task, rows, fragment)


def _chrf_alone_facts(task: SeaTask, rows: Rows, fragment: Fragment) -> Facts:
    """Raises UsageError for a translation that is scored by neither MetricX nor chrF++."""
    facts = _chrf_facts(task, rows, fragment)
    if not (facts["chrf"] and "chrf" in task.metric):
        raise UsageError(
            f"The task '{task.name}' is a translation without MetricX, of which"
            " nothing is left to score."
        )
    return facts


def _instruction_facts(task: SeaTask, rows: Rows, fragment: Fragment) -> Facts:
    instruction_kinds(task, rows, english_instructions, bind_scorer("instructions"))
    return {}


def _language_instruction_facts(task: SeaTask, rows: Rows, fragment: Fragment) -> Facts:
    """kinds: the names of the numbers of each kind of instruction."""
    scorer = bind_scorer("language-instructions", {"language": task.language})
    kinds = instruction_kinds(task, rows, language_instructions, scorer)
    return {"kinds": [SUBCATEGORY + kind for kind in kinds]}


def _judge_facts(task: SeaTask, rows: Rows, fragment: Fragment) -> Facts:
    """judges: their roles; proposed: the models that the file names; judging: what else the scorer
    needs of the task.
    """
    of_file = judges_of(task)
    kind = fragment["scorers"][0]["kind"]
    return {
        "judges": [judge.role for judge in of_file],
        "proposed": {judge.role: judge.name for judge in of_file},
        "judging": judges.settings_of(task, of_file, kind, **fragment.get("form", {})),
    }


_FACTS: Mapping[str, Callable[[SeaTask, Rows, Fragment], Facts]] = {
    "": _no_facts,
    "answer": _answer_facts,
    "labels": _label_facts,
    "summary": _summary_facts,
    "chrf": _chrf_facts,
    "chrf_alone": _chrf_alone_facts,
    "instructions": _instruction_facts,
    "language_instructions": _language_instruction_facts,
    "judges": _judge_facts,
}
"""By the name in the table."""
