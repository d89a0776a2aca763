"""Sentences on how a run ended: what failed, what to do about it, and why it stopped."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from shlex import quote
from typing import Any

from evalwright.analysis.words import counted, listed
from evalwright.core.errors import Failure, RunError
from evalwright.core.fingerprints import is_unknown_fingerprint
from evalwright.core.outcomes import CUT, FILTERED, TOO_LONG, UNFINISHED
from evalwright.reports.text import shorten
from evalwright.runs.accepted_failures import (
    accepts_failures,
    has_acceptable_failures,
    missing_samples,
)
from evalwright.runs.images import EXPECTED, images_sentence
from evalwright.runs.older_records import UNDECIDED
from evalwright.runs.reader import Run
from evalwright.runs.results import TaskResult, faults_in_words, model_faults
from evalwright.runs.trajectories import KEY as TRAJECTORIES
from evalwright.runs.trajectories import interruption_sentences
from evalwright.scorers.registry import WORST
from evalwright.statistics.tipping import MAX_MISSING_SHARE

AGAIN_ADVICE = "Run the same command again: only what is missing is sent."

IMPORTED_ADVICE = (
    "It failed in the program that this run was imported from; only that program can"
    " retry it."
)

BAD_VERDICT = "judge: bad verdict"

UNREADABLE_VERDICTS = (
    "Verdicts that cannot be read stay as they are: use another judge."
)

AGAIN_TO_JUDGE = "Run the same command again: only these are sent."

PUBLISHED = "published failure"

NOT_HERE = "not scored here"

ADVICE: Mapping[str, str] = {
    label: advice.replace("{again}", AGAIN_ADVICE)
    for label, advice in tomllib.loads(
        (files("evalwright.reports") / "advice.toml").read_text(encoding="utf-8")
    ).items()
}
"""Advice on each failure, by `Failure.label`."""

CLOSING_ADVICE = {
    CUT: "A higher token limit helps those that were cut (-M max_tokens=N).",
    FILTERED: "Other settings of the provider's filter help those that were filtered.",
    TOO_LONG: (
        "Fewer shots or a model with a longer context help those that were too long."
    ),
    UNFINISHED: (
        "More time helps those that were still being written (-M timeout=SECONDS)."
    ),
}
"""Remedies for each fault of the model, for the last line of a command."""

_LEFT_OUT = "without a score"
_TREATMENTS: Mapping[str, str] = {
    "count{s} as an empty answer": "counted as an empty answer",
    "count{s} as wrong": "counted as wrong",
    "{have} no score": _LEFT_OUT,
}
"""The treatment of replies without an answer, as a participle, by the end of a sentence."""

_NOT_MENDED_BY_REPEATING = frozenset(
    {BAD_VERDICT, PUBLISHED, UNDECIDED, FILTERED, NOT_HERE, "scorer error"}
)
"""Failures that would happen again if the same command were repeated."""

_LABELS: Mapping[str, str] = {FILTERED: "stopped by the filter on prompts"}
"""Clearer texts for labels that say too little."""

MAX_EXAMPLE_CELLS = 300
"""Terminal cells of a failure's first message; what is longer is cut."""

MOST_GIVEN_UP = 10
"""Most samples that a sentence names one by one."""

_JUDGE_FAILED = "the judge failed: "
"""The text before a judge's failure in the reason of an unsure score (`scorers/registry`)."""


_RAISED = re.compile(r"no number: (?P<error>\w+: .*)", re.DOTALL)
"""The method of a metric that raised an error, as `runs.aggregation` records it."""


def unscored_sentences(runs: Sequence[Run]) -> str:
    """Say how many answers are missing, why, and what to do; "" where none or all are accepted.

    A command that prints this sentence ends with exit code 1.
    """
    runs = [run for run in runs if not has_acceptable_failures(run)]
    tasks = [task for run in runs for task in run.tasks]
    n_missing = sum(task.n_missing for task in tasks)
    n_left_out = sum(run.n_left_out for run in runs)
    labels: Counter[str] = Counter()
    for task in tasks:
        labels.update({label: n for label, n in task.failures.items() if n})
    if not n_missing and not labels:
        return ""
    if n_left_out:
        return _left_out_sentence(runs, n_left_out)
    sentences = [_missing_sentence(n_missing, labels)]
    if FILTERED in labels:
        sentences.append(CLOSING_ADVICE[FILTERED])
    if BAD_VERDICT in labels:
        sentences.append(UNREADABLE_VERDICTS)
    if PUBLISHED in labels:
        sentences.append(
            "Those that fail as published are evaluated with --scoring corrected."
        )
    sentences += _repeat_advice(labels.keys() - _NOT_MENDED_BY_REPEATING, runs)
    if "scorer error" in labels:
        sentences.append(
            "The scorer raised errors: fix it, then `evalwright score` the run."
        )
    return " ".join(sentences)


def _repeat_advice(labels: Collection[str], runs: Sequence[Run]) -> Iterator[str]:
    """Say which command sends the failed requests again.

    The answers of a run that was scored again come from another command.
    """
    of_answers = [label for label in labels if not label.startswith("judge: ")]
    if of_answers and any("scored_from" in run.data for run in runs):
        yield (
            "Repeat the command that requested the answers: only these are sent. Then"
            " score the run again."
        )
    elif labels:
        yield next(filter(None, map(unknown_model_advice, runs)), AGAIN_TO_JUDGE)


def unknown_model_advice(run: Run) -> str:
    """Say how to send a run's missing answers where its model has no fingerprint; else "".

    Such a model's answers are used by no other run, so the same command sends all of them.
    """
    described = [run.data["model"], *run.data.get("roles", {}).values()]
    for model in described:
        if is_unknown_fingerprint(str(model.get("fingerprint", ""))):
            return (
                f"'{model['name']}' has no fingerprint, so its answers cannot be reused:"
                " the same command with --replace (in Python, replace=True) sends every"
                " request again. Give it a fingerprint (-M fingerprint=NAME, for a judge"
                " -R ROLE.fingerprint=NAME, in Python"
                " @evalwright.model(fingerprint=NAME)), and from the next run on only"
                " what is missing is sent."
            )
    return ""


def _missing_sentence(n_missing: int, labels: Mapping[str, int]) -> str:
    """Say how many answers are missing, and why."""
    reasons = {
        _LABELS.get(label, label): n
        for label, n in sorted(labels.items(), key=lambda pair: -pair[1])
    }
    if not n_missing:
        count = counted(sum(labels.values()), "draw")
        verb = "is" if sum(labels.values()) == 1 else "are"
        return (
            f"{count} {verb} missing ({', '.join(reasons)}), but every sample has a"
            " score from its other draws."
        )
    shares = (
        reasons.items()
        if len(reasons) > 1 and sum(reasons.values()) == n_missing
        else ()
    )
    reason_text = ", ".join(f"{n:,} {label}" for label, n in shares) or ", ".join(
        reasons
    )
    return (
        f"{counted(n_missing, 'answer')} {'is' if n_missing == 1 else 'are'} missing:"
        f" {reason_text}."
    )


def _left_out_sentence(runs: Sequence[Run], n_left_out: int) -> str:
    """Say how to score answers that an earlier version recorded without a score."""
    commands = ", ".join(
        f"evalwright score {quote(str(run.folder))}" for run in runs if run.n_left_out
    )
    return (
        f"{counted(n_left_out, 'answer')} of an earlier version"
        f" {'has' if n_left_out == 1 else 'have'} no score. To give every answer one,"
        f" without a request: {commands}."
    )


def remarks(runs: Sequence[Run]) -> list[str]:
    """List what a command says at its end beside its exit code: faults, judges, images."""
    accepted = (acceptance_sentence(run) for run in runs if accepts_failures(run))
    return [
        *_fault_sentences(runs),
        *_raised_sentences(runs),
        *filter(None, [_judge_sentence(runs), *accepted]),
        *_image_sentences(runs),
        *_interruption_sentences(runs),
    ]


def _interruption_sentences(runs: Sequence[Run]) -> Iterator[str]:
    """Say which runs have samples that were started anew, or calls that were repeated."""
    for run in runs:
        answers = run.data["usage"].get("answers", {})
        sentences = interruption_sentences(answers.get(TRAJECTORIES, {}))
        if sentences:
            yield f"{run.label}: {' '.join(sentences)}"


def unsent_image_warnings(runs: Sequence[Run]) -> list[str]:
    """Collect the warnings, each once, that a data file's column of images was not sent."""
    notes = (
        task["metadata"].get("images_not_sent")
        for run in runs
        for task in run.data["tasks"]
    )
    return [str(note) for note in dict.fromkeys(filter(None, notes))]


def _image_sentences(runs: Sequence[Run]) -> Iterator[str]:
    """Say why images of prompts are not stored beside the record."""
    for run in runs:
        left_out = run.data.get("images", {}).get("left_out", {})
        if left_out.keys() - EXPECTED:
            yield (
                f"Images of {run.label}, for those who look at the run:"
                f" {images_sentence(run.folder, run.data)}. Scores do not depend on them."
            )


def acceptance_sentence(run: Run) -> str:
    """Say which samples a run lacks where missing samples were accepted, and if they are too many.

    Returns "" where it lacks none.
    """
    task_sentences = []
    for missing in missing_samples(run):
        n_others = len(missing.ids) - len(missing.given_up)
        names = (
            f"{len(missing.ids):,} of {counted(missing.n_samples, 'sample')} of"
            f" {missing.task} missing"
        )
        missing_ids = f"({listed(missing.ids, MOST_GIVEN_UP)})"
        if missing.is_accepted:
            task_sentences.append(f"{names}, as accepted {missing_ids}")
        else:
            allowed = (
                f"{missing.n_allowed:,} may be" if missing.n_allowed else "none may be"
            )
            besides = " besides those given up" if missing.given_up else ""
            task_sentences.append(
                f"{names} {missing_ids}: {n_others:,}{besides}, where {allowed}"
            )
    return f"{run.label}: {'; '.join(task_sentences)}." if task_sentences else ""


def _fault_sentences(runs: Sequence[Run]) -> Iterator[str]:
    """Say how many replies were no answer through the model's own fault, and what helps."""
    by_end: dict[tuple[str, str], list[TaskResult]] = {}
    for run in runs:
        whose = f" of {run.label}" if len(runs) > 1 else ""
        for task, record in zip(run.tasks, run.data["tasks"], strict=True):
            by_end.setdefault((whose, _end_of_faults(task, record)), []).append(task)
    for (whose, end), tasks in by_end.items():
        faults = model_faults(tasks)
        if not faults:
            continue
        n_faults = sum(faults.values())
        word, verb = ("reply", "was") if n_faults == 1 else ("replies", "were")
        replies = f"{n_faults:,} {word}{whose} {verb}"
        sentence = (
            f"{replies} no answer ({faults_in_words(tasks)}) and"
            f" {_conjugate(end, n_faults)}."
        )
        yield " ".join(
            [
                sentence,
                *(
                    CLOSING_ADVICE[outcome]
                    for outcome in faults
                    if outcome in CLOSING_ADVICE
                ),
            ]
        )


def raised_metrics(run: Run) -> dict[tuple[str, str], list[str]]:
    """From the label and the error of each metric that raised one to the names of its tasks."""
    tasks: dict[tuple[str, str], list[str]] = {}
    for task in run.tasks:
        for metric in task.metrics:
            if raised := _RAISED.fullmatch(metric.estimate.method):
                tasks.setdefault((metric.label, raised["error"]), []).append(task.name)
    return tasks


def _raised_sentences(runs: Sequence[Run]) -> Iterator[str]:
    """Say which metrics raised an error, and how their numbers are made once they are mended."""
    for run in runs:
        whose = f" in {run.label}" if len(runs) > 1 else ""
        for (label, error), tasks in raised_metrics(run).items():
            yield (
                f"The metric '{label}' of {listed(tasks, 3)}{whose} has no number, because it"
                f" raised {error.rstrip('.')}. Correct the metric, then compute it from the"
                f" recorded scores, without a request: evalwright {_again_from_scores(run)}"
                f" {quote(str(run.folder))}"
            )


def _again_from_scores(run: Run) -> str:
    """The command that computes a run's metrics again; those of other frameworks' tasks follow from
    scoring.
    """
    is_foreign = any("dialect" in task["definition"] for task in run.data["tasks"])
    return "score" if is_foreign else "aggregate"


def _conjugate(end: str, n_faults: int) -> str:
    """Put the verb at the end of a sentence into singular or plural."""
    return (
        end.format(s="s", have="has")
        if n_faults == 1
        else end.format(s="", have="have")
    )


def faults_by_treatment(run: Run) -> dict[str, list[TaskResult]]:
    """Group a run's tasks by how replies without an answer count, such as "counted as wrong"."""
    tasks: dict[str, list[TaskResult]] = {}
    for task, record in zip(run.tasks, run.data["tasks"], strict=True):
        treatment = _TREATMENTS[_end_of_faults(task, record)]
        if treatment == _LEFT_OUT and task.main:
            treatment = f"left out of {task.main.label}"
        tasks.setdefault(treatment, []).append(task)
    return tasks


def _end_of_faults(task: TaskResult, record: Mapping[str, Any]) -> str:
    """Say how replies without an answer count in a task, as the end of a sentence.

    For a hallucination rate, empty answers are left out too.
    """
    scorer = task.main.scorer if task.main else ""
    kinds = {
        scorer_record["name"]: scorer_record["kind"]
        for scorer_record in record["scorers"]
    }
    if WORST.get(kinds.get(scorer, ""), 0.0) is None:
        return "{have} no score"
    if record.get("score_as_empty"):
        return "count{s} as an empty answer"
    return (
        "{have} no score"
        if record.get("no_answer") == "unscored"
        else "count{s} as wrong"
    )


def _judge_sentence(runs: Sequence[Run]) -> str:
    """Say what a judge of unsure answers did, unless it scored all of them or there was none."""
    tasks = [task for run in runs for task in run.tasks]
    n_failed = sum(task.n_judge_failed for task in tasks)
    n_asked = n_failed + sum(task.n_judged for task in tasks)
    if not n_asked:
        records = [record for run in runs for record in run.data["tasks"]]
        scorers = [scorer for record in records for scorer in record["scorers"]]
        has_judge = any("unsure" in scorer["options"] for scorer in scorers)
        return "The judge got no request: no answer was unsure." if has_judge else ""
    if not n_failed:
        return ""
    reason = _first_judge_failure(runs).rstrip(".")
    advice = next(filter(None, map(unknown_model_advice, runs)), AGAIN_TO_JUDGE)
    if reason.startswith(BAD_VERDICT.removeprefix("judge: ")):
        advice = UNREADABLE_VERDICTS
    return (
        f"The judge failed on {n_failed:,} of {counted(n_asked, 'unsure answer')}, and"
        f" the rules' readings count. First: {reason}. {advice}"
    )


def judge_failed_throughout(runs: Sequence[Run]) -> bool:
    """Tell whether there was a judge for unsure answers and it failed every time."""
    tasks = [task for run in runs for task in run.tasks]
    return any(task.n_judge_failed for task in tasks) and not any(
        task.n_judged for task in tasks
    )


def _first_judge_failure(runs: Sequence[Run]) -> str:
    """Return the first error message of a judge that failed on an unsure answer."""
    for run in runs:
        if not any(task.n_judge_failed for task in run.tasks):
            continue
        with suppress(RunError):
            for row in run.rows():
                for score in row.get("scores", {}).values():
                    _before, mark, message = score.get("unsure", "").partition(
                        _JUDGE_FAILED
                    )
                    if mark:
                        return str(message)
    return "no reason is recorded"


@dataclass(frozen=True, slots=True)
class FailureNote:
    """One kind of failure: how often it happened, what to do, and its first message."""

    kind: str
    count: int
    advice: str
    example: str


def missing_sentence(run: Run) -> str:
    """Say how many answers are missing and how that affects the scores; "" where none is.

    A failed task whose published number is 0 counts as 0.
    """
    if not run.n_missing:
        return ""
    samples = counted(sum(task.n_samples for task in run.tasks), "sample")
    beginning = f"Of {samples} {run.n_missing:,} missing"
    zeros = published_zeros(run)
    if not zeros:
        return f"{beginning}, left out of the scores."
    left_out = run.n_missing - sum(
        task.n_missing for task in run.tasks if task.name in zeros
    )
    treatments = [f"{left_out:,} left out of the scores"] if left_out else []
    verb = "counts" if len(zeros) == 1 else "count"
    treatments.append(
        f"{listed(zeros, 3)} failed and {verb} as 0 in the scores, as published"
    )
    return f"{beginning}: {'; '.join(treatments)}."


def published_zeros(run: Run) -> list[str]:
    """List the names of the failed tasks that count as 0, as published."""
    return [
        task.name
        for task in run.tasks
        if task.metrics
        and task.metrics[0].estimate.method.startswith("failed, published as 0")
    ]


def failure_notes(run: Run) -> list[FailureNote]:
    """Say what failed in a run, why, and what to do.

    Args:
        run: the run.

    Returns:
        A note for each kind of failure, the most frequent first.
    """
    counts: dict[str, int] = {}
    for task in run.tasks:
        for label, count in task.failures.items():
            counts[label] = counts.get(label, 0) + count
    examples = _first_messages(run, counts)
    sorted_counts = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    is_imported = "imported" in run.data["configuration"]
    return [
        FailureNote(
            label,
            n,
            IMPORTED_ADVICE if is_imported else _advice(label, run),
            shorten(examples.get(label, ""), MAX_EXAMPLE_CELLS),
        )
        for label, n in sorted_counts
    ]


def _advice(label: str, run: Run) -> str:
    """Return the advice on a failure; for a judge's failure, that for a model's if it has none."""
    advice = ADVICE.get(label) or ADVICE.get(
        label.removeprefix("judge: "), AGAIN_ADVICE
    )
    return advice.replace(AGAIN_ADVICE, unknown_model_advice(run) or AGAIN_ADVICE)


def _first_messages(run: Run, kinds: Iterable[str]) -> dict[str, str]:
    """Find the first message of each kind of failure; stops reading as soon as it has all."""
    missing = set(kinds)
    messages = dict[str, str]()
    rows = run.score_rows()
    while missing:
        try:
            row = next(rows, None)
        except RunError:
            break  # a run whose samples were moved away can still be reported on
        if row is None:
            break
        failures = [row.get("failure"), *row.get("score_failures", {}).values()]
        for failure in (
            Failure(record["kind"], record["party"], record["message"])
            for record in failures
            if record
        ):
            if failure.label in missing:
                missing.discard(failure.label)
                messages[failure.label] = failure.message
    return messages


def stopping_sentences(run: Run) -> list[str]:
    """Say how the stopping rules were decided and whether the run ended early, with all details."""
    stopping = run.data.get("stopping")
    if not stopping:
        return []
    sentences = [
        _decision(decision, details=True) for decision in stopping["decisions"]
    ]
    return [*sentences, *_early_ends([run])]


def stopping_notes(runs: Sequence[Run]) -> list[str]:
    """Say the same of runs that were made together, each decision once and without its method."""
    decisions = [
        _decision(decision)
        for run in runs
        for decision in (run.data.get("stopping") or {}).get("decisions", ())
    ]
    return [*dict.fromkeys(decisions), *_early_ends(runs)]


def rule_verdicts(runs: Sequence[Run]) -> list[str]:
    """Say what the stopping rules of runs that were made together decided, for the last line."""
    verdicts = [
        f"{_verdict_words(decision)}; {_decided_when(decision)}."
        for run in runs
        for decision in (run.data.get("stopping") or {}).get("decisions", ())
        if decision["decided"] and not decision.get("trouble")
    ]
    return list(dict.fromkeys(verdicts))


def _early_ends(runs: Sequence[Run]) -> Iterator[str]:
    """Say which runs ended early, after how much, and what rules have saved."""
    ended_by_budget: list[str] = []
    ended_by_rule: list[str] = []
    saved = 0
    for run in runs:
        stopping = run.data.get("stopping") or {}
        tasks = stopping.get("tasks", ())
        if not any(task["asked"] < task["of"] for task in tasks):
            continue
        n_asked, n_total = (sum(task[key] for task in tasks) for key in ("asked", "of"))
        unit = (
            "items"
            if n_asked == sum(task.n_samples for task in run.tasks)
            else "answers"
        )
        extent = f"{n_asked:,} of {n_total:,} {unit}"
        if stopping["budget_reached"]:
            ended_by_budget.append(
                f"{run.label} after {extent}"
                if len(runs) > 1
                else f"{extent} were asked"
            )
        else:
            ended_by_rule.append(extent)
            saved += stopping["saved_requests"]
    if ended_by_budget:
        yield (
            f"Stopped early because the budget was spent: {'; '.join(ended_by_budget)}."
        )
    if ended_by_rule:
        extents = ", ".join(dict.fromkeys(ended_by_rule))
        of_each = ", of each" if len(ended_by_rule) > 1 else ""
        judges = sorted({role for run in runs for role in run.data.get("roles") or ()})
        roles = f", the {' and the '.join(judges)}'s included" if judges else ""
        yield (
            f"Stopped early because its rules were decided: {extents} were asked{of_each};"
            f" about {counted(saved, 'request')} saved{roles}."
        )


def _decision(decision: Mapping[str, Any], *, details: bool = False) -> str:
    """Describe the decision on one rule and one task in a sentence.

    `details` adds its level and how it was made.
    """
    name = f"'{decision['rule']}' on {decision['task']}"
    units = _units(decision)
    if decision.get("trouble"):
        return f"{name}: undecided after {units}: {decision['trouble']}"
    if not decision["decided"]:
        return f"{name}: undecided after {units}{_difference(decision)}."
    level = f"{100 * decision['level']:g}%"
    how_decided = f" (level {level}; {decision['method']})" if details else ""
    sentence = (
        f"{name}: {_verdict_words(decision)}; {_decided_when(decision)}{how_decided}."
    )
    provisional = _provisional_decision(decision)
    return f"{sentence} Provisional: {provisional}" if provisional else sentence


def _units(decision: Mapping[str, Any]) -> str:
    units = f"{decision['units']:,} of {decision['n_total']:,} {decision['unit']}"
    failed = decision["failed"]
    return f"{units} ({failed:,} without a score)" if failed else units


def _decided_when(decision: Mapping[str, Any]) -> str:
    when = "early, " if decision["early"] else ""
    mark = "provisionally " if _provisional_decision(decision) else ""
    return f"{mark}decided {when}after {_units(decision)}"


def _verdict_words(decision: Mapping[str, Any]) -> str:
    """Say a decision as one says a comparison: who is better, by how much, with the interval.

    "careful is better by 36.0 points (14.4 to 57.6)".
    """
    verdict = str(decision["verdict"])
    value = decision["value"]
    if value is None:
        return verdict
    low, high = decision["low"], decision["high"]
    unit = " points" if decision["bounded"] else ""
    winner = verdict.removesuffix(" better")
    if decision["a"] and winner in (decision["a"], decision["b"]):
        if winner == decision["b"]:
            value = -value
            low, high = (None if end is None else -end for end in (high, low))
        return (
            f"{winner} is better by {_points(value, decision)}{unit}"
            f"{_ends(low, high, decision)}"
        )
    margin = verdict.removeprefix("no difference of ").removesuffix(" or more")
    if margin != verdict:
        shown_margin = _points(float(margin), decision)
        verdict = f"no difference of {shown_margin}{unit} or more"
    return f"{verdict}{_difference(decision)}"


def _provisional_decision(decision: Mapping[str, Any]) -> str:
    """Explain why a decision is provisional; "" where it is not.

    Runs of earlier versions recorded only how many items have no score.
    """
    if "provisional" in decision:
        return str(decision["provisional"])
    if (
        decision["unit"] != "items"
        or decision["failed"] <= MAX_MISSING_SHARE * decision["units"]
    ):
        return ""
    return "more than 5% of the answers are missing."


def _difference(decision: Mapping[str, Any]) -> str:
    """The measured difference or score with its interval, after a semicolon."""
    estimate = decision["value"]
    if estimate is None:
        return ""
    unit = " points" if decision["bounded"] else ""
    number = _points(estimate, decision, "+" if decision["a"] else "")
    ends = _ends(decision["low"], decision["high"], decision)
    return f"; {'difference' if decision['a'] else decision['metric']} {number}{unit}{ends}"


def _ends(low: float | None, high: float | None, decision: Mapping[str, Any]) -> str:
    if low is None or high is None:
        return ""
    return f" ({_points(low, decision)} to {_points(high, decision)})"


def _points(number: float, decision: Mapping[str, Any], sign: str = "") -> str:
    return f"{100 * number:{sign}.1f}" if decision["bounded"] else f"{number:{sign}.4g}"
