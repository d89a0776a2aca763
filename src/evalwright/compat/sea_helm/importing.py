"""Makes runs of SEA-HELM's result folders: one for each model, whose numbered runs are its repeats.

Eight runs of a model are eight answers to each question: as repeats they stand in one row of a board, are compared question by question,
and count as one unit each, which runs of their own would not.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from evalwright.compat.recording import (
    check_free,
    check_scoring,
    digest_of,
    number,
    run_folder,
    run_record,
    started,
    task_record,
    write_run,
)
from evalwright.compat.sea_helm.compiling import OF_TREE, Samples
from evalwright.compat.sea_helm.config import Tree, read_tree, root_of
from evalwright.compat.sea_helm.conversations import shots_of
from evalwright.compat.sea_helm.files import NumberedRun, data_of, find_runs, mapping
from evalwright.compat.sea_helm.scoring import SCORER, scoring_of, slices_of
from evalwright.compat.sea_helm.sets import DIALECT, PREFIX
from evalwright.compat.sea_helm.task import Row, SeaTask
from evalwright.core.errors import EvalwrightError, Failure, RunError, UsageError
from evalwright.core.reasoning import separate_reasoning
from evalwright.core.requests import Message, Prompt
from evalwright.core.responses import Response, Usage
from evalwright.core.samples import Answer, Sample, SampleRecord, Score
from evalwright.core.tasks import MetricSpec, Scorer
from evalwright.evaluation.grouping import group_records
from evalwright.models.base import fingerprint_of
from evalwright.runs.aggregation import TaskTally
from evalwright.runs.reader import Run
from evalwright.statistics import Estimate

_NOT_NUMBERS = ("inference_time_taken", "is_cached", "error")
_BROKEN = (EvalwrightError, KeyError, TypeError, ValueError, AttributeError, IndexError)
"""What a row of any shape may raise where texts are made of it."""


def import_sea_helm(
    path: Path, out: Path, name: str = "", *, scoring: str = "published", task_root: Path | None = None
) -> tuple[list[Run], list[str]]:
    """Make a run of every model in `path`, under `out`; return them, and a sentence for each that was left out.

    path: a results folder, a model's folder in it, or one numbered run. scoring: "published" takes scores and numbers as recorded,
    "corrected" scores the recorded answers again. task_root: SEA-HELM's own folder, whose rows then stand in the run, so that it is scored
    again and paired with runs of ours by the same rows. Raises RunError where nothing can be imported.
    """
    check_scoring(scoring)
    tree = read_tree(root_of([task_root])) if task_root else None
    taken: set[Path] = set()
    models, runs, left_out = find_runs(path), [], []
    for several in models:
        try:
            runs.append(_import(several, out, name, scoring, tree, taken, len(models) == 1))
        except RunError as error:
            if len(models) == 1:
                raise
            left_out.append(str(error))
    if not runs:
        raise RunError(f"Nothing in '{path}' can be imported: {left_out[0]}")
    return runs, left_out


def _import(
    several: Sequence[NumberedRun],
    out: Path,
    name: str,
    scoring: str,
    tree: Tree | None,
    taken: set[Path],
    alone: bool,
) -> Run:
    files = [file for run in several for file in run.files]
    first, model = several[0], several[0].model
    made_from = [digest_of(files), [file.name for file in files], scoring, bool(tree)]
    identity = fingerprint_of({"imported": made_from})
    corrected = [scoring] if scoring == "corrected" else []
    folder = run_folder(out, name, model, [first.stamp[:16], *corrected], taken, alone=alone)
    check_free(folder, identity)
    asked: list[_Task] = []
    missing: list[dict[str, Any]] = []

    def records() -> Iterator[SampleRecord]:
        # A task at a time: eight runs of everything do not fit in memory.
        for pair in dict.fromkeys(pair for run in several for pair in run.pairs()):
            task = _Task(several, *pair, scoring, tree)
            if not task.samples:
                missing.append(task.facts())
                continue
            asked.append(task)
            yield from task.records()
            task.forget()
        if not asked:
            raise RunError(f"'{first.folder}' has no samples of a task: nothing in inferences/.")

    def finished() -> dict[str, Any]:
        made = [task.as_dict(missing) for task in asked]
        groups = group_records(
            made, {}, lambda name: next(task.tally for task in asked if task.name == name).table()
        )
        notes = [note for task in asked for note in task.notes]
        if missing:
            notes.append(f"no samples and no number: {', '.join(one['name'] for one in missing)}")
        imported = {
            "format": DIALECT, "scoring": scoring, "model_name": model, "runs": [run.number for run in several], "notes": notes,
            "published": {task.name: task.recorded for task in asked},
            "totals": {f"run_{run.number}": total for run in several if (total := run.total()) is not None},
            "git": sorted({str(mapping(run.config.get("run_env")).get("seahelm_git_hash")) for run in several}),
        }  # fmt: skip
        record = run_record(
            folder,
            identity,
            started=started([first.stamp], files),
            model=model,
            code={"imported": DIALECT, "name": model, "base": bool(first.arguments.get("is_base_model"))},
            tasks=made,
            configuration={
                "limit": first.arguments.get("limit"),
                "seed": first.config.get("seed"),
                "imported": imported,
                **({"dialect": {"task_root": [str(tree.root)]}} if tree else {}),
            },
        )
        return {**record, **({"groups": groups} if groups else {})}

    return write_run(folder, records(), finished)


@dataclass
class _Task:
    """One task in one language over all runs: its rows, its records, and what they add up to."""

    several: Sequence[NumberedRun]
    task: str
    language: str
    scoring: str
    tree: Tree | None
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.name = f"{PREFIX}{self.task}/{self.language}"
        there = [run for run in self.several if (self.task, self.language) in set(run.pairs())]
        config = dict(there[-1].config["tasks"][self.task])
        config["languages"] = {self.language: config["languages"][self.language]}
        base = bool(there[0].arguments.get("is_base_model"))
        root = self.tree.root if self.tree else None
        self.sea = SeaTask(self.task, self.language, config, root, base, self.scoring == "published")
        self.runs = there
        self.rows = [run.rows(self.task, self.language) for run in there]
        self.numbers = [run.numbers(self.task, self.language) for run in there]
        self.errors = 0
        self.samples, self.source = self._samples()
        self.scorer, self.specs = self._rules()
        self.tally = TaskTally([self.scorer.name], slices_of(self.sea))

    def forget(self) -> None:
        """Drop the rows, which have been written."""
        self.content_hash = self.source.content_hash
        del self.rows, self.samples, self.source

    @property
    def recorded(self) -> list[float | None]:
        """The number of each run as published, 0 where its code raised."""
        return [number(one.get(self.sea.metric)) for one in self.numbers]

    def facts(self) -> dict[str, Any]:
        """What names it, and its place in the tree of numbers."""
        of_tree = {key: self.sea.config[key] for key in OF_TREE if self.sea.config.get(key)}
        return {"name": self.name, "task": self.task, "language": self.language, **of_tree}

    def _samples(self) -> tuple[list[Sample], Samples]:
        longest = max(self.rows, key=lambda rows: (bool(rows and data_of(rows[0])), len(rows)))
        own = Samples(self.sea, 0, "")
        own.rows = rows = [data_of(row) for row in longest]
        for here in self.rows:
            if any(_id(data_of(row)) not in ("", _id(rows[place])) for place, row in enumerate(here)):
                raise RunError(f"'{self.runs[0].folder.parent}': its runs have other rows of '{self.name}'.")
        raised = any("error" in one for one in self.numbers)
        if not rows and not raised:
            return [], own
        today = self._today(rows)
        if rows:
            source = today or own
            return [_sample(source, place, self.rows) for place in range(len(rows))], source
        # Nothing was answered, so without SEA-HELM's folder one failure stands for all rows.
        count = len(today) if today else 0
        limit = self.runs[0].arguments.get("limit")
        count = min(count, limit) if isinstance(limit, int) else count
        return [today[place] for place in range(count)] if today else [Sample("all rows")], today or own

    def _today(self, rows: Sequence[Row]) -> Samples | None:
        """The rows of SEA-HELM's folder, where they are those of the files."""
        if self.tree is None:
            return None
        try:
            if self.language not in self.tree.languages(self.task):
                raise KeyError(self.language)
            today = Samples(self.sea, self._shots(), "")
            if all(not row or _same(row, today.rows[place]) for place, row in enumerate(rows)):
                return today
            self.notes.append(
                f"{self.name}: the rows of --task-root are others, so those of the files are kept"
            )
        except _BROKEN as error:
            self.notes.append(f"{self.name}: its rows cannot be read in --task-root ({error})")
        return None

    def _rules(self) -> tuple[Scorer, list[MetricSpec]]:
        """Corrected: scorers and metrics of ours, but for those that send requests; published: what is recorded."""
        kept = Scorer(SCORER, DIALECT, {"scoring": self.scoring, "recorded": True}, _kept)
        if self.scoring == "corrected":
            try:
                (scorer,), specs = scoring_of(self.sea, self.source.rows)
                if not scorer.asks:
                    return scorer, list(specs)
                self.notes.append(f"{self.name}: its scores come from another model, and are those recorded")
            except (*_BROKEN, UsageError) as error:
                self.notes.append(f"{self.name}: its scores are those recorded ({error})")
            return kept, [MetricSpec(self.sea.metric, "mean", SCORER)]
        labels = dict.fromkeys([self.sea.metric, *(label for one in self.numbers for label in _flat(one))])
        specs = [
            MetricSpec(
                label, "mean", SCORER, {}, label.endswith("null_count"), partial(self._estimate, label)
            )
            for label in labels
        ]
        # Recorded numbers have no interval; the mean of the rows' scores has one, and is what two runs are compared by.
        return kept, [*specs, MetricSpec("mean_individual_score", "mean", SCORER)]

    def _estimate(self, label: str, column: Any) -> Estimate:
        """The mean of what the runs recorded, without those whose code raised."""
        raised = [one["error"] for one in self.numbers if "error" in one]
        worked = [_flat(one) for one in self.numbers if "error" not in one]
        found = [one[label] for one in worked if label in one]
        n, lost, value = len(column.values), column.n_failed, math.nan
        method = "no number: SEA-HELM has none here"
        if found:
            value, method = sum(found) / len(found), "no interval (as published)"
        elif raised and label == self.sea.metric:
            n, lost, value, method = 0, n + lost, 0.0, f"failed, published as 0: {raised[0]}"
        return Estimate(value, math.nan, math.nan, 0.95, n, lost, None, None, method)

    def records(self) -> Iterator[SampleRecord]:
        """The records in the order of rows and runs."""
        for place, sample in enumerate(self.samples):
            for draw, (rows, numbers) in enumerate(zip(self.rows, self.numbers, strict=True)):
                if place < len(rows):
                    made = self._record(sample, place, draw, rows[place], str(numbers.get("error") or ""))
                elif "error" in numbers:
                    made = SampleRecord(
                        self.name, place, draw, sample, None, {}, _raised(str(numbers["error"]))
                    )
                else:
                    continue
                self.tally.add(made)
                yield made

    def _record(
        self, sample: Sample, place: int, draw: int, row: Mapping[str, Any], error: str
    ) -> SampleRecord:
        answer = _answer(row)
        if isinstance(answer, Failure):
            self.errors += 1
            return SampleRecord(self.name, place, draw, sample, None, {}, answer)
        score: Any
        try:
            if self.scorer.function is not _kept:
                score = self.scorer.function(sample, answer)
            elif error:
                score = _raised(error)
            else:
                score = _recorded(row, self.sea.metric)
        except _BROKEN as wrong:
            score = Failure(
                getattr(wrong, "kind", "scoring failed"), "scorer", str(wrong) or type(wrong).__name__
            )
        name = self.scorer.name
        if isinstance(score, Failure):
            return SampleRecord(self.name, place, draw, sample, answer, {}, None, {name: score})
        if not isinstance(score, Score):
            return SampleRecord(self.name, place, draw, sample, answer, {}, None, {}, {name: score})
        return SampleRecord(self.name, place, draw, sample, answer, {name: score})

    def as_dict(self, missing: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The task's part of `run.json`."""
        config, args = self.sea.config, self.runs[0].arguments
        version = str(mapping(config.get("metadata")).get("version", "1"))
        raised = [run.number for run, one in zip(self.runs, self.numbers, strict=True) if "error" in one]
        if raised:
            self.notes.append(
                f"{self.name}: SEA-HELM's code raised in run {', '.join(map(str, raised))}: failed, published as 0"
            )
        if self.errors:
            self.notes.append(
                f"{self.name}: {self.errors} without a reply: failed, published as empty answers"
            )
        result = self.tally.result(self.name, version, self.specs)
        definition = {
            **self.facts(), "left_out": list(missing), "set": "", "scoring": self.scoring, "base_model": self.sea.base,
            "reasoning": bool(args.get("is_reasoning_model")), "num_fewshot": self._shots(), "runs": len(self.runs),
            "seeds": [run.config.get("seed") for run in self.runs], "generation": {}, "max_tokens": self.sea.here.get("max_tokens"),
            "tokenizer": "", "config": config, "fails": "",
        }  # fmt: skip
        made = task_record(
            result,
            DIALECT,
            description=f"{config.get('name', self.task)} ({self.language}), {config['competency']}; imported from SEA-HELM",
            definition=definition,
            content_hash=self.content_hash,
            scorers=[(self.scorer.name, self.scorer.kind, self.scorer.options)],
            metrics=self.specs,
            slice_keys=slices_of(self.sea),
            metadata={"dialect": DIALECT, "scoring": self.scoring, "language": self.language},
        )
        return {**made, "draws": len(self.runs)}

    def _shots(self) -> int:
        return shots_of(self.sea, None, self.tree.constants if self.tree else {}) or 0


# -- rows ---------------------------------------------------------------------------------------------------------------


def _id(row: Row) -> str:
    return "" if row.get("id") is None else str(row["id"])


def _same(row: Row, other: Row) -> bool:
    return _id(row) == _id(other) and row.get("label") == other.get("label") and _texts(row) == _texts(other)


def _texts(row: Row) -> list[Any]:
    return [
        {key: str(value) for key, value in turn.items() if value is not None}
        for turn in row.get("prompts") or ()
    ]


def _sample(source: Samples, place: int, rows: Sequence[Sequence[Mapping[str, Any]]]) -> Sample:
    """The sample as a run of ours has it; where its texts cannot be made, by what was sent."""
    try:
        return source[place]
    except _BROKEN:
        row = next(one[place] for one in rows if place < len(one))
    sent = _prompt(row)
    label = row.get("label")
    targets = [str(one) for one in (label if isinstance(label, list) else [label]) if one is not None]
    facts = {
        "language": source.task.language,
        "competency": str(source.task.config["competency"]),
        "index": place,
    }
    shown = sent[-1].text if sent and not isinstance(sent, str) else ""
    return Sample(_id(row) or f"#{place}", shown, tuple(targets), metadata={**facts, "row": data_of(row)})


def _prompt(row: Mapping[str, Any]) -> Prompt:
    """The conversation that was sent, its images left out."""
    made = []
    told = row.get("conversations")
    for one in told if isinstance(told, list) else ():
        content = one.get("content") if isinstance(one, Mapping) else None
        if isinstance(content, list):
            content = "".join(str(part.get("text") or "") for part in content if isinstance(part, Mapping))
        if isinstance(content, str) and one.get("role") in ("system", "user", "assistant"):
            made.append(Message(one["role"], content))
    return tuple(made)


def _listed(row: Mapping[str, Any], key: str) -> list[Any]:
    found = row.get(key)
    return found if isinstance(found, list) else [] if found is None else [found]


def _answer(row: Mapping[str, Any]) -> Answer | Failure:
    """The reply of each turn; a failure where a turn has an error or no reply."""
    texts, errors = _listed(row, "responses"), [one for one in _listed(row, "errors") if one]
    if errors or not texts or None in texts:
        return Failure("request failed", "model", str(errors[0]) if errors else "The record has no reply.")
    columns = [_listed(row, key) for key in ("reasoning_contents", "finish_reasons", "token_usages")]
    likelihoods = tuple(float(one) for one in _listed(row, "cumulative_logprobs") if number(one) is not None)
    responses = []
    for place, text in enumerate(texts):
        thought, reason, usage = (column[place] if place < len(column) else None for column in columns)
        counts = usage if isinstance(usage, Mapping) else {}
        used = Usage(
            int(number(counts.get("prompt_tokens")) or 0), int(number(counts.get("completion_tokens")) or 0)
        )
        responses.append(Response(_shown(text), str(thought or ""), str(reason or ""), usage=used))
    last = separate_reasoning(responses[-1])
    return Answer(last.answer, last.reasoning, None, likelihoods, _prompt(row), tuple(responses))


def _shown(text: Any) -> str:
    return text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)


def _recorded(row: Mapping[str, Any], metric: str) -> Score | Failure:
    """What SEA-HELM wrote as the row's individual score, the mean of its turns where it has several."""
    found = row.get("individual_scores")
    named = found if isinstance(found, Mapping) else {metric: found}
    parts = {str(key): value for key, one in named.items() if (value := _value(one)) is not None}
    if not parts:
        return Failure("no score", "scorer", "The record has no score of the row.")
    value = parts.get(metric, next(iter(parts.values())))
    said = row.get("cleaned_responses")
    return Score(value, "", said if isinstance(said, str) else "", {metric: value, **parts})


def _value(found: Any) -> float | None:
    if isinstance(found, list):
        known = [one for one in map(_value, found) if one is not None]
        return sum(known) / len(known) if known else None
    return float(found) if isinstance(found, bool) else number(found)


def _flat(numbers: Mapping[str, Any], ahead: str = "") -> dict[str, float]:
    """Numbers by name, what is nested with dots, [right, all] as two."""
    out: dict[str, float] = {}
    for key, value in numbers.items():
        if not ahead and key in _NOT_NUMBERS:
            continue
        if isinstance(value, Mapping):
            out |= _flat(value, f"{ahead}{key}.")
        elif isinstance(value, list) and len(value) == 2:
            out |= _flat(dict(zip(("correct", "total"), value, strict=True)), f"{ahead}{key}.")
        elif (one := number(value)) is not None:
            out[f"{ahead}{key}"] = one
    return out


def _raised(error: str) -> Failure:
    return Failure("SEA-HELM's own code raised", "task", f"{error}. The published number is 0.")


def _kept(*_: Any) -> Any:
    raise RuntimeError("recorded scores are kept")
