"""The scorers and metrics of SEA-HELM's tasks: published, by its own arithmetic (`published.py`), or corrected, by metrics and scorers of ours.

A table goes from the file and the class of a task's metric to what makes them. Corrected: the last claim of a response counts, labels and the
chance of guessing them come from the definition, all references and whole answers are compared, nothing raises, and every number has its
interval.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pkgutil import resolve_name
from statistics import mean
from typing import TYPE_CHECKING, Any

from evalwright.compat.sea_helm import published, published_texts
from evalwright.compat.sea_helm.published import DIALECT, SCORER, Made, Published, Rows, metadata_of, row_of
from evalwright.compat.sea_helm.published_texts import METRICX, errors_of
from evalwright.compat.sea_helm.task import Row, SeaTask
from evalwright.core.asking import Ask
from evalwright.core.errors import ScoringError, TaskError, UnknownName, UsageError
from evalwright.core.samples import Answer, Sample, Score, Undecided
from evalwright.core.tasks import MetricSpec, Scored, Scorer
from evalwright.metrics.registry import compute
from evalwright.scorers import label, procedure
from evalwright.scorers.registry import bind
from evalwright.scorers.token_f1 import words

if TYPE_CHECKING:
    from evalwright.metrics.registry import Column
    from evalwright.statistics import Estimate

Make = Callable[[SeaTask, Rows], Made]


def scoring_of(task: SeaTask, rows: Rows) -> Made:
    """The scorers and metrics of a task, the metric that it stands for first. rows: all of the task.

    A sample has its row as metadata "row". Raises UsageError for a metric class that is not known, or cannot be had.
    """
    make = _TABLE.get(name := ":".join(task.scored_by))
    if make is None:
        raise UnknownName("metric class", name, sorted(_TABLE), f"The task '{task.name}' needs it.")
    try:
        return (resolve_name(make) if isinstance(make, str) else make)(task, rows)
    except (LookupError, TypeError, ValueError, AttributeError, ScoringError) as error:
        why = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise TaskError(
            f"The task '{task.name}' ({task.language}), or a row of it, is not what {task.scored_by[1]} scores: {why}."
        ) from None


def slices_of(task: SeaTask) -> tuple[str, ...]:
    """The keys of a row's metadata that the metrics of a task go by, which its samples' metadata need too."""
    of = {"PairwiseLLMJudgeMetric": ("category",), "SuperGPQAMetric": ("difficulty", "field")}
    return of.get(task.scored_by[1], (_PHENOMENON,) if "/lindsea/" in task.scored_by[0] else ())


def _corrected(task: SeaTask, function: Callable[..., Any], metrics: Mapping[str, str], **more: Any) -> Made:
    """One scorer, and metrics: the mean of its values under the task's own name, then means of parts. metrics: label -> part."""
    scorer = Scorer(SCORER, DIALECT, {"scoring": "corrected"}, function, **more)
    parts = [MetricSpec(label, "part-mean", SCORER, {"part": part}) for label, part in metrics.items()]
    return [scorer], [MetricSpec(task.metric, "accuracy", SCORER), *parts]


def _ours(scorer_kind: str, **options: Any) -> Callable[[Sample, Answer, str], Score]:
    """A scorer of ours that scores a text in the place of the answer."""
    scorer = bind(scorer_kind, options)

    def score(sample: Sample, answer: Answer, text: str) -> Score:
        found = scorer.function(sample, replace(answer, text=text))
        assert isinstance(found, Score)
        return found

    return score


def _said(task: SeaTask, answer: Answer) -> str:
    """What a response gives as its answer; of two phases the second begins behind the tag."""
    return (
        answer.text.strip()
        if task.base and len(answer.responses) > 1
        else label.behind_tag(task.answer_tag, answer.text)
    )


def _sliced(kind: str, key: str, **options: Any) -> dict[str, Any]:
    """How a metric goes by a key of the rows' metadata, which the scores' items have where the task has no such slice."""

    def made(column: Column) -> Estimate:
        import numpy as np

        if key not in column.slices:
            names: dict[str, int] = {}
            codes = [names.setdefault(str(item[key]), len(names)) for item in column.items]
            column = replace(column, slices={**column.slices, key: (np.array(codes, np.int32), tuple(names))})
        return compute(kind, column, options)

    options["over"] = key
    return {"kind": kind, "options": options, "scorer": SCORER, "function": made}


# -- labels -------------------------------------------------------------------------------------------------------------

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_OPTION = re.compile(r"(?:option|choice|opsi|pilihan)_?([a-z]|\d{1,2})", re.IGNORECASE)
_LISTED = re.compile(r"(?m)^\s{0,4}\(?([A-Z])[).:]\s")


def options_of(row: Row) -> tuple[str, ...]:
    """The texts of a row's lettered options in their order, by the keys of its prompt or by its lines; () where it has none."""
    prompt = row["prompts"][0] if row.get("prompts") else {}
    texts = [str(value) for key, value in prompt.items() if _OPTION.fullmatch(str(key))]
    if len(texts) > 1:
        return tuple(texts)
    for value in prompt.values():
        parts = _LISTED.split(str(value))
        if len(parts) > 4 and parts[1::2] == list(_LETTERS[: len(parts) // 2]):
            return tuple(part.strip() for part in parts[2::2])
    return ()


def labels_of(task: SeaTask, rows: Rows) -> tuple[tuple[str, ...], float]:
    """The labels that answers of a task can have, and the accuracy of guessing: by the definition's `labels`, else the rows' options, else
    all labels of the data.
    """
    labels = {str(row["label"]) for row in rows}
    given = task.here.get("labels") or task.config.get("labels")
    if given:
        return tuple(map(str, given)), 1 / len(given)
    if labels and all(label in _LETTERS for label in labels):
        sizes = [len(options_of(row)) for row in rows]
        if all(sizes) and max(sizes) > _LETTERS.index(max(labels)):
            return tuple(_LETTERS[: max(sizes)]), mean([1 / size for size in sizes])
    return tuple(sorted(labels)), 1 / max(len(labels), 2)


def _labels(task: SeaTask, rows: Rows, over: str = "") -> Made:
    labels, chance = labels_of(task, rows)
    lettered = all(one in _LETTERS for one in labels)

    def score(sample: Sample, answer: Answer) -> Score:
        sample_row = row_of(sample)
        texts = options_of(sample_row) if lettered else ()
        # Of two phases what is scored begins behind the tag.
        tag = "" if task.base and len(answer.responses) > 1 else task.answer_tag
        choices = texts if 1 < len(texts) <= len(labels) else ()
        found = label.score_label(sample, answer.text, labels, tag, choices, task.language)
        item = {key: metadata_of(sample_row, key, "unknown") for key in slices_of(task)}
        return replace(found, parts={task.metric: found.value, **found.parts}, item=item or None)

    options = {"scoring": "corrected", "labels": list(labels)}
    if over:
        specs = [
            MetricSpec(task.metric, **_sliced("chance-normalised", over, chance=chance, of="accuracy")),
            MetricSpec("accuracy", **_sliced("macro", over, of="accuracy")),
        ]
    else:
        of = "balanced-accuracy"
        specs = [
            MetricSpec(task.metric, "chance-normalised", SCORER, {"chance": chance, "of": of}),
            MetricSpec("accuracy", of, SCORER),
        ]
        specs += [MetricSpec(f"accuracy by {key}", **_sliced("macro", key, of=of)) for key in slices_of(task)]
    specs += [
        MetricSpec("macro_f1", "macro-f1", SCORER),
        MetricSpec("null_weighted_f1", "null-weighted-f1", SCORER),
        MetricSpec("answers_read", "part-mean", SCORER, {"part": "read"}),
    ]
    return [Scorer(SCORER, DIALECT, options, score)], specs


def _options(task: SeaTask, rows: Rows, over: str = "") -> Made:
    """The probability of the gold option among all that were scored; alone, where only its own was."""

    def score(sample: Sample, answer: Answer) -> Score:
        values = answer.log_likelihoods
        if not values:
            raise ScoringError("The answer has no log-likelihood of an option.")
        item = {over: metadata_of(row_of(sample), over, "unknown")} if over else None
        if len(values) == 1 or not sample.gold:
            worth = math.exp(min(values[0], 0.0))
            return Score(worth, "", "the gold option alone", {task.metric: worth}, item)
        gold, top = values[sample.gold[0]], max(values)
        worth = math.exp(gold - top) / sum(math.exp(value - top) for value in values)
        label = "correct" if gold == top else "incorrect"
        return Score(worth, label, "among all options", {task.metric: worth}, item)

    (scorer,), specs = _corrected(task, score, {})
    return [scorer], [MetricSpec(task.metric, **_sliced("macro", over, of="accuracy"))] if over else specs


# -- texts --------------------------------------------------------------------------------------------------------------


def _answers(task: SeaTask, rows: Rows) -> Made:
    inner = _ours("token-f1", language=task.language)

    def score(sample: Sample, answer: Answer) -> Score:
        said = _said(task, answer)
        found = inner(sample, answer, said)
        given = words(said, task.language)
        exact = float(any(given == words(target, task.language) for target in sample.targets))
        return replace(
            found, explanation=said, parts={task.metric: found.value, "exact_match": exact, **found.parts}
        )

    return _corrected(task, score, {"exact_match": "exact_match"})


def _summaries(task: SeaTask, rows: Rows) -> Made:
    inner = _ours("rouge", kind="rougeL", language=task.language)
    more = _ours("chrf++") if task.config.get("use_chrf_metric") else None

    def score(sample: Sample, answer: Answer) -> Score:
        said = _said(task, answer)
        found = inner(sample, answer, said)
        counts = more(sample, answer, said).parts if more else {}
        return replace(found, explanation=said, parts={task.metric: found.value, **found.parts, **counts})

    scorers, specs = _corrected(task, score, {"rougel_precision": "precision", "rougel_recall": "recall"})
    return scorers, [*specs, *_chrf(task)]


def _translations(task: SeaTask, rows: Rows) -> Made:
    more = _ours("chrf++") if task.config.get("use_chrf_metric") else None

    async def score(sample: Sample, answer: Answer, ask: Ask) -> Score:
        """An empty translation is the worst, and no request is sent for it."""
        said = _said(task, answer)
        counts = more(sample, answer, said).parts if more else {}
        errors = (
            min([await errors_of(ask, row_of(sample), said, one) for one in sample.targets]) if said else 25.0
        )
        worth = min(max(1 - errors / 25, 0.0), 1.0)
        return Score(worth, "", said, {task.metric: worth, **counts})

    if not task.config.get("use_metricx_metric"):
        raise UsageError(
            f"The task '{task.name}' is a translation without MetricX, of which nothing is left to score."
        )
    scorers, specs = _corrected(task, score, {}, asks=True, roles=(METRICX,), able=frozenset({"reward"}))
    return scorers, [*specs, *_chrf(task)]


def _chrf(task: SeaTask) -> list[MetricSpec]:
    return [MetricSpec("chrf_score", "chrf++", SCORER)] if task.config.get("use_chrf_metric") else []


_WRAPPED = " \t\r\n*_`\"'“”‘’."


def _lines(task: SeaTask, rows: Rows) -> Made:
    def score(sample: Sample, answer: Answer) -> Score:
        first = next(
            (line.strip(_WRAPPED) for line in _said(task, answer).splitlines() if line.strip(_WRAPPED)), ""
        )
        right = float(
            any(" ".join(first.split()) == " ".join(one.strip(_WRAPPED).split()) for one in sample.targets)
        )
        return Score(right, "correct" if right else "incorrect", first, {task.metric: right})

    return _corrected(task, score, {})


def _mathematics(task: SeaTask, rows: Rows) -> Made:
    inner = bind("final-answer", {"kind": "math"})

    def score(sample: Sample, answer: Answer) -> Scored:
        found = inner.function(sample, answer)
        assert isinstance(found, Score | Undecided)
        return replace(found, parts={task.metric: found.value}) if isinstance(found, Score) else found

    return _corrected(task, score, {})


def _procedures(task: SeaTask, rows: Rows, kind: str) -> Made:
    def score(sample: Sample, answer: Answer) -> Score:
        found = procedure.score_procedure(sample, answer.text, kind)
        return replace(found, parts={task.metric: found.value, **found.parts})

    parts = ("precision", "recall") if kind == "table" else ("partial_accuracy",)
    return _corrected(task, score, {**dict(zip(parts, parts, strict=True)), "extraction_rate": "extracted"})


# -- the table ----------------------------------------------------------------------------------------------------------


def _refclip(task: SeaTask, rows: Rows) -> Made:
    raise UsageError(
        f"The task '{task.name}' is scored by RefCLIPScore, which compares captions and pictures by a CLIP network of its own; there is none "
        "here. Leave the task out."
    )


def _by(own: Callable[..., Published], corrected: Make) -> Make:
    def make(task: SeaTask, rows: Rows) -> Made:
        return own(task, rows).made() if task.published else corrected(task, rows)

    return make


_PHENOMENON = "linguistic_phenomenon"
_JUDGING = "evalwright.compat.sea_helm.judging:judging_of"
_PROGRAMS = "evalwright.compat.sea_helm.programs:programs_of"
_ONERULER = "evalwright.compat.sea_helm.oneruler:oneruler_scoring"


def _procedure(kind: str) -> Make:
    return _by(partial(published_texts.Procedures, kind=kind), partial(_procedures, kind=kind))


_OWN: Mapping[str, Make | str] = {
    "src/metrics/f1_acc_metric.py:F1AccMetric": _by(published.Labels, _labels),
    "src/metrics/logprob_metric.py:LogProbMetric": _by(published.LogProbabilities, _options),
    "src/metrics/math_metric.py:MathMetric": _by(published_texts.Mathematics, _mathematics),
    "src/metrics/question_answering.py:QuestionAnsweringMetric": _by(published_texts.Answers, _answers),
    "src/metrics/llm_judges/criteria_judge_metric.py:CriteriaJudgeMetric": _JUDGING,
    "src/metrics/llm_judges/pairwise_llm_judge_metric.py:PairwiseLLMJudgeMetric": _JUDGING,
    "code_generation/livecodebench/livecodebench_metric.py:LiveCodeBenchMetric": _PROGRAMS,
    "english_evals/bbh/bbh.py:BBHExactMatch": _by(published_texts.Lines, _lines),
    "english_evals/ifeval/ifeval.py:IFEvalMetric": _JUDGING,
    "english_evals/supergpqa/supergpqa_metric.py:SuperGPQAMetric": _by(published.SuperGPQA, _labels),
    "health/healthbench/healthbench_judge_metric.py:HealthbenchJudgeMetric": _JUDGING,
    "instruction_following/ifeval/if_eval.py:IFEvalMetric": _JUDGING,
    "lindsea/pragmatics/pragmatic_reasoning.py:PragmaticReasoningMetric": _by(
        partial(published.MinimalPairs, counted=True), partial(_labels, over=_PHENOMENON)
    ),
    "lindsea/pragmatics/pragmatic_reasoning.py:PragmaticReasoningLogProbMetric": _by(
        partial(published.LogProbabilities, by="phenomena"), partial(_options, over=_PHENOMENON)
    ),
    "lindsea/syntax/minimal_pairs.py:MinimalPairsMetric": _by(
        published.MinimalPairs, partial(_labels, over=_PHENOMENON)
    ),
    "lindsea/syntax/minimal_pairs.py:MinimalPairsLogProbMetric": _by(
        partial(published.LogProbabilities, by="both"), partial(_options, over=_PHENOMENON)
    ),
    "lindsea/syntax_criteria/lindsea_judge_metric.py:LindseaJudgeMetric": _JUDGING,
    "long_context/AA-LCR/aa_lcr_metric.py:AALCRJudgeMetric": _JUDGING,
    "long_context/longproc/countdown/countdown.py:CountdownMetric": _procedure("countdown"),
    "long_context/longproc/html_to_tsv/html_to_tsv.py:HtmlToTsvMetric": _by(
        published_texts.Tables, partial(_procedures, kind="table")
    ),
    "long_context/longproc/path_traversal/path_traversal.py:PathTraversalMetric": _procedure("route"),
    "long_context/longproc/tom_tracking/tom_tracking.py:ToMTrackingMetric": _procedure("beliefs"),
    "long_context/longproc/travel_planning/travel_planning.py:TravelPlanningMetric": _procedure("travel"),
    "long_context/oneruler/cwe/cwe_metric.py:CweMetric": _ONERULER,
    "long_context/oneruler/niah/niah_metric.py:NIAHMetric": _ONERULER,
    "multi_turn/mt_bench_judge/mtbench_judge_metric.py:MTBenchJudgeMetric": _JUDGING,
    "nlg/abstractive_summarization/summarization.py:SummarizationMetric": _by(
        published_texts.Summaries, _summaries
    ),
    "nlg/translation/translation_metric.py:TranslationMetric": _by(
        published_texts.Translations, _translations
    ),
    "vision/babyvision/babyvision_metric.py:BabyVisionJudgeMetric": _JUDGING,
    "vision/mathvision/mathvision_metric.py:MathVisionJudgeMetric": _JUDGING,
    "vision/xm3600/refclipscore_metric.py:RefClipScoreMetric": _refclip,
}
_TABLE = {name if name.startswith("src/") else f"seahelm_tasks/{name}": make for name, make in _OWN.items()}
"""What makes the scorers and metrics of each metric class, named FILE:CLASS; of other files' classes by its own name."""
