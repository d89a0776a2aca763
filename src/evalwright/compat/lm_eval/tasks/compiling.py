"""Compiles a definition to a Task.

It has lazily opened samples, a strategy, and a scorer for each filter pipeline.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, partial
from typing import Any

from evalwright import Answer, Ask, EvalwrightError, Sample, Score, Task
from evalwright.compat.lm_eval.tasks import generative
from evalwright.compat.lm_eval.tasks.config import Definition, TaskConfig
from evalwright.compat.lm_eval.tasks.estimates import Metrics
from evalwright.compat.lm_eval.tasks.filters import Pipeline
from evalwright.compat.lm_eval.tasks.index import Index
from evalwright.compat.lm_eval.tasks.options import DIALECT, PREFIX, Options
from evalwright.compat.lm_eval.tasks.prompts import FewShotSampler, Prompts
from evalwright.compat.lm_eval.tasks.rendering import Doc, Fields, template
from evalwright.compat.lm_eval.tasks.results import Group
from evalwright.compat.lm_eval.tasks.row_requests import (
    ABILITIES,
    Arguments,
    RowRequests,
    RowStrategy,
    published_responses,
)
from evalwright.compat.lm_eval.tasks.scoring import Scoring, require_trust
from evalwright.compat.lm_eval.tasks.splits import Splits, reported
from evalwright.compat.lm_eval.tasks.task_yaml import FunctionRef, is_sandboxed
from evalwright.extend import (
    NO_ANSWER,
    Ability,
    DatasetError,
    Scorer,
    TaskError,
    program_slots,
)

MAX_REPEATS = 10_000
"""The most repeats of a request; published tasks have up to 64."""


class TaskWork:
    """Asks and scores the rows of a task; data is opened on first use, and once.

    repeats: of every request. shots: few-shot examples that the task itself wants. pipelines:
    filter pipelines by name. rows: the rows to evaluate. pool: rows that examples are drawn from.
    hashed: a row's contribution to the content hash. sample: the sample of the row at an index.
    make_requests: a sample's requests. score: a row's scores by metric, as the published runner
    computes them, in one Score; takes the pipeline by keyword.
    """

    runs_programs = False
    pipelines: Mapping[str, Any]
    rows: Any
    pool: Any
    hashed: Callable[[Any], bytes]
    sample: Callable[[int], Sample]
    make_requests: Callable[[Sample], list[Arguments]]
    score: Callable[..., Score]

    def __init__(
        self, definition: Definition, options: Options, repeats: int, shots: int | None
    ) -> None:
        self.definition = definition
        self.options = options
        # Requests are made before the first is sent, so a file from elsewhere must not want any
        # number of them.
        if type(repeats) is not int or not 1 <= repeats <= MAX_REPEATS:
            raise TaskError(
                f"The task '{definition.name}' has `repeats: {str(repeats)[:40]}`; it"
                f" must be a whole number from 1 to {MAX_REPEATS:,}."
            )
        self.repeats = repeats
        self.metrics = Metrics(definition, options)
        self.samples = Samples(self)
        # As published, a task's own 0 wins over a person's wish; corrected, the person's wish wins.
        own_wins = options.num_fewshot is None or (shots == 0 and options.published)
        self.num_fewshot = int((shots or 0) if own_wins else options.num_fewshot or 0)

    def scorer(
        self,
        name: str,
        options: Mapping[str, Any],
        score: Callable[[Sample, Answer], Score],
        on_fault: Callable[..., Any] | None = None,
    ) -> Scorer:
        """The scorer of a pipeline.

        One that runs programs waits for its turn in a thread and does not block requests.
        """
        if not self.runs_programs:
            return Scorer(name, DIALECT, options, score, on_fault=on_fault)

        async def score_apart(sample: Sample, answer: Answer, ask: Ask) -> Score:
            async with program_slots():
                return await asyncio.to_thread(score, sample, answer)

        return Scorer(name, DIALECT, options, score_apart, asks=True, on_fault=on_fault)

    def without(self, lacking: frozenset[Ability]) -> str:
        """Advice for a model that lacks abilities that the task needs."""
        if "log-likelihood" not in lacking:
            return ""
        return generative.advice(self.definition.name, Index(self.options.folders()))

    def compiled(
        self,
        needs: Iterable[Ability],
        *,
        settings: Mapping[str, Any],
        metadata: Mapping[str, Any],
        version: str,
        groups: Sequence[Group],
        extra_definition: Mapping[str, Any] | None = None,
    ) -> Task:
        """Build the Task.

        Its definition is everything that decides what is asked and how it is scored, as plain JSON.

        settings: those of the task's file. extra_definition: further keys of the definition.
        """
        name = self.definition.name
        options = self.options
        metrics = self.definition.metrics
        alias = str(settings.get("task_alias") or name)
        scoring_options = {"scoring": options.scoring}
        generation = to_plain_json({**self.definition.generation, **options.generation})
        return Task(
            name=f"{PREFIX}{name}",
            samples=self.samples,
            strategy=RowStrategy(
                needs,
                self.make_requests,
                self.repeats,
                options.published,
                generation,
                options.as_written,
                self.without,
            ),
            scorers=tuple(
                self.scorer(
                    key,
                    scoring_options,
                    partial(self.score, pipeline=pipeline),
                    on_fault=partial(self.score_fault, pipeline=pipeline),
                )
                for key, pipeline in self.pipelines.items()
            ),
            metrics=self.metrics.specs(
                {key: [metric.name for metric in metrics] for key in self.pipelines}
            ),
            version=version,
            description=f"{alias} ({options.scoring})",
            slices=(),
            metadata={
                "dialect": DIALECT,
                **scoring_options,
                "notes": list(self.definition.findings),
                **({"code": code} if (code := read_sources(settings)) else {}),
                **(
                    {"config_source": str(source)}
                    if (source := metadata.get("config_source"))
                    else {}
                ),
            },
            definition={
                "dialect": DIALECT,
                "task": name,
                "alias": alias,
                **(extra_definition or {}),
                **scoring_options,
                "num_fewshot": self.num_fewshot,
                "chat": options.chat,
                "multiturn": options.multiturn,
                "system": options.system,
                "seed": options.seed,
                "generation": generation,
                "metadata": to_plain_json(
                    {
                        key: value
                        for key, value in metadata.items()
                        if key != "config_source"
                    }
                ),
                "config": to_plain_json(settings),
                **(
                    {"samples": sorted(chosen)}
                    if (chosen := options.samples.get(name)) is not None
                    else {}
                ),
                "higher_is_better": {
                    metric.name: metric.higher_is_better for metric in metrics
                },
                "groups": [group.as_dict() for group in groups],
            },
            source=str(metadata.get("config_source", "")),
            order="file" if options.published else "shuffled",
            score_as_empty=NO_ANSWER if options.published else (),
            found_metrics=self.metrics.specs,
        )

    def score_fault(
        self, sample: Sample, answer: Answer, *, pipeline: Pipeline
    ) -> Score:
        """Score a reply that is not an answer as an empty text; all 0 if that fails."""
        try:
            return self.score(sample, answer, pipeline=pipeline)
        except Exception:  # whatever a task's own Python does with what is not there
            return Score(0.0, parts=dict.fromkeys(self.metrics.shares, 0.0))


class Samples:
    """The rows to evaluate (`core.tasks.SampleSource`), read from disk one by one."""

    def __init__(self, work: TaskWork) -> None:
        self._work = work

    @cached_property
    def content_hash(self) -> str:
        """Hash of all rows to evaluate and all rows that examples are drawn from."""
        digest = hashlib.blake2b(digest_size=16)
        for rows in (self._work.rows, self._work.pool):
            for row in rows:
                digest.update(self._work.hashed(row))
        return digest.hexdigest()

    @cached_property
    def _places(self) -> Sequence[int]:
        """Indices of the rows to evaluate: all, or those that were selected."""
        rows = range(len(self._work.rows))
        name = self._work.definition.name
        chosen = self._work.options.samples.get(name)
        if chosen is None:
            return rows
        if beyond := [index for index in chosen if index not in rows]:
            raise DatasetError(
                f"The task '{name}' has {len(rows):,} rows, from 0: it has no row"
                f" {beyond[0]:,}."
            )
        return sorted({*chosen})

    @property
    def n_rows(self) -> int:
        """The number of rows in the data."""
        return len(self._work.rows)

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, index: int, /) -> Sample:
        return self._work.sample(self._places[index])

    def __iter__(self) -> Iterator[Sample]:
        return (self[index] for index in range(len(self)))


@dataclass(frozen=True, slots=True)
class OpenedTask:
    """A task with its data open: its rows, its requests, and its scoring."""

    rows: Any
    fields: Fields
    questions: RowRequests
    scoring: Scoring


class Work(TaskWork):
    """Asks and scores the rows of a definition.

    lacking: why the task cannot run here, raised when its samples are first needed.
    """

    def __init__(
        self,
        definition: Definition,
        options: Options,
        lacking: Sequence[EvalwrightError] = (),
    ) -> None:
        super().__init__(
            definition,
            options,
            definition.config.repeats,
            definition.config.num_fewshot,
        )
        self.lacking = lacking
        self.runs_programs = is_sandboxed(
            [getattr(definition.config, field.name) for field in fields(TaskConfig)]
        )
        self.pipelines = {pipeline.name: pipeline for pipeline in definition.pipelines}

    @cached_property
    def opened(self) -> OpenedTask:
        """Open the data."""
        if self.lacking:
            raise self.lacking[0]
        self.metrics.check()
        definition = self.definition
        options = self.options
        count = self.num_fewshot
        splits = Splits(definition, options)
        rows = splits.questions()
        if not len(rows):
            raise DatasetError(f"The task '{definition.name}' has no rows.")
        features = getattr(rows, "features", None)
        columns = features if features is not None else rows[0]
        scoring = build_scoring(definition, rows[0], columns, options, "first row")
        shots = None
        if count and definition.config.output_type != "loglikelihood_rolling":
            shots = FewShotSampler(definition, splits.pool(), rows, count, options)
        fields = scoring.fields
        prompts = Prompts(definition, fields, shots, options, scoring.multiple_input)
        return OpenedTask(
            rows, fields, RowRequests(definition, fields, prompts, options), scoring
        )

    @cached_property
    def rows(self) -> Any:
        return self.opened.rows

    @cached_property
    def pool(self) -> Any:
        shots = self.opened.questions.prompts.shots
        return shots.pool if shots is not None else ()

    def hashed(self, row: Any) -> bytes:
        text = json.dumps(
            row, default=_json_fallback, ensure_ascii=False, sort_keys=True
        )
        return text.encode("utf-8", "surrogatepass") + b"\n"

    def make_requests(self, sample: Sample) -> list[Arguments]:
        """Build a sample's requests from a fresh copy of its row, which the task may change."""
        index = int(sample.id)
        return self.opened.questions(index, self.rows[index])

    def sample(self, index: int) -> Sample:
        doc = self.rows[index]
        fields = self.opened.fields
        return Sample(
            str(index), str(try_render(fields.text, doc)), **_gold(fields, doc)
        )

    def responses_by_request(self, answer: Answer) -> list[list[Any]]:
        """The responses to each request of a row."""
        output_type = self.definition.config.output_type
        return published_responses(
            answer, output_type, self.repeats, self.options.published
        )

    def score(self, sample: Sample, answer: Answer, *, pipeline: Pipeline) -> Score:
        return self.score_answer(
            self.opened.scoring, pipeline, self.rows[int(sample.id)], answer
        )

    def score_answer(
        self, scoring: Scoring, pipeline: Pipeline, doc: Doc, answer: Answer
    ) -> Score:
        """Score the responses to a row after filtering them."""
        unfiltered = self.responses_by_request(answer)
        filtered = pipeline(unfiltered, doc)
        return self.metrics.score(scoring(doc, filtered), filtered, unfiltered)


def build_scoring(
    definition: Definition,
    row: Doc,
    columns: Collection[str],
    options: Options,
    row_name: str,
) -> Scoring:
    """Build the scoring of a task.

    The first row decides whether rows have several inputs or several right answers.

    row_name: what to call that row in errors. Raises TaskError if it cannot be read.
    """
    require_trust(definition, options)
    fields = Fields(definition.config, columns, strict=options.published)
    with reported(
        TaskError, f"The {row_name} of the task '{definition.name}' cannot be read"
    ):
        text = fields.text(row)
        target = fields.target(row)
    multiple_input = isinstance(text, int) and fields.has_choices
    return Scoring(
        definition, fields, multiple_input, isinstance(target, list), options.published
    )


def _json_fallback(value: Any) -> str:
    """A value without a JSON form (an image, a time) as text, without memory addresses."""
    text = str(value)
    return type(value).__name__ if " at 0x" in text else text


def try_render(function: Callable[[Any], Any], doc: Any) -> Any:
    """Render something of a row for the record; errors are reported when the row is asked."""
    try:
        return function(doc)
    except Exception:
        return ""


def _gold(fields: Fields, doc: Doc) -> dict[str, Any]:
    """A row's targets, choices and gold indices, for the record only."""
    try:
        target = fields.target(doc)
        choices = tuple(map(str, fields.choices(doc))) if fields.has_choices else ()
    except Exception:
        return {"metadata": {"doc": doc}}
    target_is_text = isinstance(target, str) and not fields.has_choices
    listed = target if isinstance(target, list) else [target]
    indices = []
    for answer in listed:
        if isinstance(answer, int):
            indices.append(int(answer))
        else:
            text = str(answer)
            indices.append(choices.index(text) if text in choices else -1)
    valid_indices = [index if 0 <= index < len(choices) else -1 for index in indices]
    return {
        "targets": tuple(
            str(answer) if index < 0 else choices[index]
            for answer, index in zip(listed, valid_indices, strict=True)
        ),
        "choices": choices,
        "gold": tuple(index for index in valid_indices if index >= 0),
        "metadata": {
            "doc": doc,
            **({} if target_is_text else {"lm_eval": {"target": str(target)}}),
        },
    }


def compile_definition(
    definition: Definition,
    options: Options,
    groups: Sequence[Group] = (),
    lacking: Sequence[EvalwrightError] = (),
) -> Task:
    """Compile a definition to a Task, without opening its data.

    Args:
        lacking: why the task cannot run here (Python that cannot be imported, images), raised when
            its
            samples are first needed.

    Raises:
        TaskError: a setting cannot be used.
        UnknownName: a name is unknown.
    """
    config = definition.config
    for setting in (
        config.doc_to_text,
        config.doc_to_target,
        config.doc_to_choice,
        config.gen_prefix,
    ):
        if isinstance(setting, str):
            template(setting)
    needs: set[Ability] = {ABILITIES[config.output_type]}
    if options.chat and config.output_type != "loglikelihood_rolling":
        needs.add("chat")
    metadata = config.metadata or {}
    pairs = (
        (field.name, getattr(config, field.name))
        for field in fields(config)
        if field.name != "metadata"
    )
    settings = {name: value for name, value in pairs if value is not None}
    return Work(definition, options, lacking).compiled(
        needs,
        settings=settings,
        metadata=metadata,
        version=str(metadata.get("version", "Yaml")),
        groups=groups,
    )


def read_sources(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that are functions, or metrics with functions, with each function's source."""
    function_sources = {
        name: _source(value) for name, value in settings.items() if callable(value)
    }
    metrics = [dict(metric) for metric in settings.get("metric_list") or ()]
    if any(callable(setting) for metric in metrics for setting in metric.values()):
        function_sources["metric_list"] = [
            {key: _source(setting) for key, setting in metric.items()}
            for metric in metrics
        ]
    return function_sources


def _source(value: Any) -> Any:
    try:
        return inspect.getsource(value) if callable(value) else to_plain_json(value)
    except (TypeError, OSError):
        return to_plain_json(value)


_ADDRESS = re.compile(" at 0x[0-9a-f]+")
"""A memory address in a function's name, which differs from run to run."""


def to_plain_json(value: Any) -> Any:
    """Convert a setting to JSON; a function becomes its name."""
    if isinstance(value, Mapping):
        return {str(key): to_plain_json(element) for key, element in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain_json(element) for element in value]
    if isinstance(value, FunctionRef):
        return str(value)
    if callable(value):
        name = _ADDRESS.sub("", str(getattr(value, "__qualname__", value)))
        return f"!function {getattr(value, '__module__', '')}.{name}"
    return value if isinstance(value, str | int | float | bool | None) else str(value)
