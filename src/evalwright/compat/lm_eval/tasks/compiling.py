"""From a definition to a Task: samples that open their data when first asked for, a strategy, a scorer for each pipeline."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Protocol

from evalwright.compat.lm_eval.tasks.asking import ABILITIES, Arguments, Questions, Strategy, answers_of
from evalwright.compat.lm_eval.tasks.config import Definition
from evalwright.compat.lm_eval.tasks.estimates import Metrics
from evalwright.compat.lm_eval.tasks.files import FunctionRef
from evalwright.compat.lm_eval.tasks.filters import Pipeline
from evalwright.compat.lm_eval.tasks.groups import Group
from evalwright.compat.lm_eval.tasks.options import DIALECT, PREFIX, Options
from evalwright.compat.lm_eval.tasks.prompts import Prompts
from evalwright.compat.lm_eval.tasks.rendering import Doc, Fields, template
from evalwright.compat.lm_eval.tasks.scoring import Scoring
from evalwright.compat.lm_eval.tasks.shots import Shots
from evalwright.compat.lm_eval.tasks.splits import Splits
from evalwright.core.errors import DatasetError, EvalwrightError
from evalwright.core.samples import Answer, Sample, Score
from evalwright.core.tasks import MetricSpec, Scorer, Task


@dataclass(frozen=True, slots=True)
class Opened:
    """A task whose data is open: its rows, what they are asked, and how they are scored."""

    rows: Any
    fields: Fields
    questions: Questions
    scoring: Scoring


class Work:
    """One task at work. Everything that needs its data is made at first use, and once."""

    def __init__(
        self, definition: Definition, options: Options, lacking: Sequence[EvalwrightError] = ()
    ) -> None:
        self.definition = definition
        self.lacking = lacking
        self.options = options
        self.metrics = Metrics(definition, options)
        self.samples = Samples(lambda: self.opened.rows, self.sample, self.hashed)
        self.repeats = int(definition.config.repeats)

    @cached_property
    def opened(self) -> Opened:
        """Opens the data. What the first row is decides whether rows have several inputs or several right answers."""
        if self.lacking:
            raise self.lacking[0]
        self.metrics.check()
        splits = Splits(self.definition)
        rows = splits.questions()
        if not len(rows):
            raise DatasetError(f"The task '{self.definition.name}' has no rows.")
        features = getattr(rows, "features", None)
        fields = Fields(
            self.definition.config,
            features if features is not None else rows[0],
            strict=self.options.published,
        )
        first = rows[0]
        try:
            text, target = fields.text(first), fields.target(first)
        except EvalwrightError:
            raise
        except Exception as error:
            raise DatasetError(
                f"The first row of the task '{self.definition.name}' cannot be turned into requests: {type(error).__name__}: {error}."
            ) from error
        multiple_input = isinstance(text, int) and fields.has_choices
        shots = self._shots(splits, rows)
        prompts = Prompts(self.definition, fields, shots, self.options, multiple_input)
        scoring = Scoring(
            self.definition, fields, multiple_input, isinstance(target, list), self.options.published
        )
        return Opened(rows, fields, Questions(self.definition, fields, prompts, self.options), scoring)

    @property
    def num_fewshot(self) -> int:
        """Shots of each question. As published, a file's own 0 wins over a person's wish; corrected, the person's wish wins."""
        own, wanted = self.definition.config.num_fewshot, self.options.num_fewshot
        if wanted is None or (own == 0 and self.options.published):
            return own or 0
        return wanted

    def _shots(self, splits: Splits, rows: Any) -> Shots | None:
        count = self.num_fewshot
        if count == 0 or self.definition.config.output_type == "loglikelihood_rolling":
            return None
        return Shots(
            self.definition,
            splits.pool(),
            rows,
            count,
            seed=self.options.seed,
            published=self.options.published,
        )

    def asked(self, sample: Sample) -> list[Arguments]:
        """A sample's requests. Its row is read anew, because the task's own Python may change it."""
        index = int(sample.id)
        return self.opened.questions(index, self.opened.rows[index])

    def sample(self, index: int) -> Sample:
        """The sample of the row at that place."""
        fields, doc = self.opened.fields, self.opened.rows[index]
        text = shown(fields.text, doc)
        return Sample(str(index), str(text), **_gold(fields, doc), metadata={"doc": doc})

    def hashed(self) -> Iterator[bytes]:
        """What the content hash is made of: all rows that are asked and all that shots are drawn from."""
        shots = self.opened.questions.prompts.shots
        for rows in (self.opened.rows, shots.pool if shots is not None else ()):
            for row in rows:
                text = json.dumps(row, default=_name, ensure_ascii=False, sort_keys=True)
                yield text.encode("utf-8", "surrogatepass") + b"\n"

    def filtered(self, pipeline: Pipeline, doc: Doc, answer: Answer) -> list[Any]:
        """What a pipeline takes from the answers of a row."""
        kind = self.definition.config.output_type
        return pipeline(answers_of(answer, kind, self.repeats, self.options.published), doc)

    def scores(self, pipeline: Pipeline, doc: Doc, answer: Answer) -> dict[str, Any]:
        """A row's worth by metric, as the published runner has it."""
        return self.opened.scoring(doc, self.filtered(pipeline, doc, answer))

    def score(self, sample: Sample, answer: Answer, *, pipeline: Pipeline) -> Score:
        """The same as a Score."""
        doc = self.opened.rows[int(sample.id)]
        return self.metrics.score(self.scores(pipeline, doc, answer))


class Samples:
    """The rows that are asked (`core.tasks.SampleSource`), read from disk one by one."""

    def __init__(
        self,
        rows: Callable[[], Sized],
        sample: Callable[[int], Sample],
        hashed: Callable[[], Iterator[bytes]],
    ) -> None:
        self._rows, self._sample, self._hashed = rows, sample, hashed

    @cached_property
    def content_hash(self) -> str:
        """Of all rows that are asked and all that shots are drawn from."""
        digest = hashlib.blake2b(digest_size=16)
        for part in self._hashed():
            digest.update(part)
        return digest.hexdigest()

    def __len__(self) -> int:
        return len(self._rows())

    def __getitem__(self, index: int, /) -> Sample:
        place = index + len(self) if index < 0 else index
        if not 0 <= place < len(self):
            raise IndexError(index)
        return self._sample(place)

    def __iter__(self) -> Iterator[Sample]:
        return (self[index] for index in range(len(self)))


def _name(value: Any) -> str:
    """What has no JSON form (an image, a time) by its text, without an address in memory."""
    text = str(value)
    return type(value).__name__ if " at 0x" in text else text


def shown(function: Callable[[Any], Any], doc: Any) -> Any:
    """What is shown of a row; what goes wrong here is reported when the row is asked."""
    try:
        return function(doc)
    except Exception:
        return ""


def _gold(fields: Fields, doc: Doc) -> dict[str, Any]:
    """Targets, choices and right places of a row, for the record only."""
    try:
        target = fields.target(doc)
        choices = tuple(map(str, fields.choices(doc))) if fields.has_choices else ()
    except Exception:
        return {}
    listed = target if isinstance(target, list) else [target]
    gold = tuple(
        one if isinstance(one, int) else choices.index(str(one))
        for one in listed
        if choices and (isinstance(one, int) or str(one) in choices)
    )
    texts = tuple(
        choices[one] if isinstance(one, int) and 0 <= one < len(choices) else str(one) for one in listed
    )
    return {
        "targets": texts,
        "choices": choices,
        "gold": tuple(one for one in gold if 0 <= one < len(choices)),
    }


def compile_definition(
    definition: Definition,
    options: Options,
    groups: Sequence[Group] = (),
    lacking: Sequence[EvalwrightError] = (),
) -> Task:
    """The Task of a definition. Opens no data. Raises TaskError and UnknownName at what cannot be used.

    lacking: why the task cannot be run here (Python that cannot be imported, images), which is raised when its samples are
    first asked for.
    """
    config = definition.config
    for setting in (config.doc_to_text, config.doc_to_target, config.doc_to_choice, config.gen_prefix):
        if isinstance(setting, str):
            template(setting)
    work = Work(definition, options, lacking)
    needs = {ABILITIES[config.output_type]}
    if options.chat and config.output_type != "loglikelihood_rolling":
        needs.add("chat")
    metadata = config.metadata or {}
    strategy = Strategy(needs, work.asked, work.repeats, options.published)
    scorers = {pipeline.name: partial(work.score, pipeline=pipeline) for pipeline in definition.pipelines}
    settings = {
        name: value
        for name in type(config).__dataclass_fields__
        if (value := getattr(config, name)) is not None and name != "metadata"
    }
    return task_of(
        work,
        strategy,
        scorers,
        settings=settings,
        metadata=metadata,
        generation={**definition.generation, **options.generation},
        version=str(metadata.get("version", "Yaml")),
        metrics=work.metrics.expected(),
        groups=groups,
    )


class AnyWork(Protocol):
    """What a task is made from: a definition's work, or a class's."""

    definition: Definition
    options: Options
    metrics: Metrics
    samples: Samples

    @property
    def num_fewshot(self) -> int: ...


def task_of(
    work: AnyWork,
    strategy: Strategy,
    scorers: Mapping[str, Callable[..., Score]],
    *,
    settings: Mapping[str, Any],
    metadata: Mapping[str, Any],
    generation: Mapping[str, Any],
    version: str,
    metrics: tuple[MetricSpec, ...],
    groups: Sequence[Group],
    more: Mapping[str, Any] | None = None,
) -> Task:
    """The Task. Its definition is everything that decides what is asked and how it is scored, as plain JSON.

    scorers: by filter pipeline; settings: those of the task's file; more: what else its definition has.
    """
    name, options = work.definition.name, work.options
    alias = str(settings.get("task_alias") or name)
    options_of_scorer = {"scoring": options.scoring}
    return Task(
        name=f"{PREFIX}{name}",
        samples=work.samples,
        strategy=strategy,
        scorers=tuple(Scorer(own, DIALECT, options_of_scorer, scorer) for own, scorer in scorers.items()),
        metrics=metrics,
        version=version,
        description=f"{alias} ({options.scoring})",
        slices=(),
        metadata={"dialect": DIALECT, "scoring": options.scoring, "notes": list(work.definition.findings)},
        definition={
            "dialect": DIALECT,
            "task": name,
            "alias": alias,
            **(more or {}),
            "scoring": options.scoring,
            "num_fewshot": work.num_fewshot,
            "chat": options.chat,
            "multiturn": options.multiturn,
            "system": options.system,
            "seed": options.seed,
            "generation": plain(generation),
            "metadata": plain({key: value for key, value in metadata.items() if key != "config_source"}),
            "config": plain(settings),
            "higher_is_better": {one.name: one.higher_is_better for one in work.definition.metrics},
            "groups": [group.as_dict() for group in groups],
        },
        source=str(metadata.get("config_source", "")),
        order="file" if options.published else "shuffled",
        found_metrics=work.metrics.specs,
    )


def plain(value: Any) -> Any:
    """JSON of a setting; a function becomes its name."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, FunctionRef):
        return str(value)
    if callable(value):
        return f"!function {getattr(value, '__module__', '')}.{getattr(value, '__qualname__', value)}"
    return value if isinstance(value, str | int | float | bool | None) else str(value)
