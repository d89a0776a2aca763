"""From a definition to a Task: validate, open the data, check every row, and put the strategy together."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from evalwright.core.errors import DatasetError, TaskError, UsageError, closest
from evalwright.core.samples import Sample
from evalwright.core.tasks import MetricSpec, Scorer, Strategy, Task
from evalwright.tasks import schema
from evalwright.tasks.datasets.opening import Filter, open_sources
from evalwright.tasks.datasets.rows import Rows
from evalwright.tasks.definitions import Definition
from evalwright.tasks.few_shot import Shots
from evalwright.tasks.prompts import Form, Renderer
from evalwright.tasks.samples import FileSamples, RowError, SampleMaker, load_samples
from evalwright.tasks.validation import validated
from evalwright.tasks.yaml_files import Document, KeyPath, WrittenFloat

PromptFormat = Literal["auto", "chat", "text"]

_DEFAULT_SCORER = {
    "generate": "exact-match",
    "likelihood": "choice",
    "letter": "choice",
    "continuation": "likelihood",
    "perplexity": "perplexity",
}
_DEFAULT_METRICS = {
    "continuation": ("accuracy", "token-perplexity"),
    "perplexity": ("word-perplexity", "byte-perplexity", "bits-per-byte"),
}
_DEFAULT_USER = {"letter": "{{ input }}\n{{ lettered }}\nAnswer:"}
_DEFAULT_SHOT = {"letter": "{{ letter }}"}
_DEFAULT_TOKENS = 256
_FROM_TASK = ("domain", "language", "source", "created_at")
_ROWS_SHOWN = 50


def compile_task(definition: Definition, *, prompt_format: PromptFormat = "auto", chat: bool = False) -> Task:
    """The Task of one definition. Reads its data once. Raises TaskError, DatasetError and their kin."""
    return _Compiler(definition, prompt_format, chat).task()


class _Compiler:
    def __init__(self, definition: Definition, prompt_format: PromptFormat, chat: bool) -> None:
        self.document: Document = definition.document
        self.variables: Mapping[str, Any] = definition.variables
        self.file: schema.TaskFile = validated(self.document)
        self.mode = self.file.answer.mode
        self.form: Form = self._form(prompt_format, chat)
        self.drawing = self._drawing()

    def task(self) -> Task:
        """Everything checked, in the order in which a person would want to hear of it."""
        file = self.file
        self._check_mode()
        scorers = self._scorers()
        metrics = self._metrics(scorers)
        renderer = self._renderer()
        samples, pool = self._load(renderer)
        return Task(
            name=file.task,
            samples=samples,
            strategy=self._strategy(renderer),
            scorers=scorers,
            metrics=metrics,
            version=file.version,
            description=file.description,
            draws=file.answer.draws,
            slices=tuple(file.slices),
            metadata=plain(file.metadata),
            definition=self._resolved(samples, pool, renderer, scorers, metrics),
            source=str(self.document.files[0]) if self.document.files else "",
        )

    # What the file says, checked

    def _form(self, prompt_format: PromptFormat, chat: bool) -> Form:
        if self.mode == "perplexity":
            return "text"
        if self._conversation():
            if "text" in (prompt_format, self.file.prompt.format):
                raise self._error(
                    ("prompt", "user"), "several user turns need the chat form of the prompt, not text."
                )
            return "chat"
        wanted = prompt_format if prompt_format != "auto" else self.file.prompt.format
        if wanted != "auto":
            return wanted
        return "chat" if chat and self.mode == "generate" else "text"

    def _conversation(self) -> bool:
        return isinstance(self.file.prompt.user, list) and len(self.file.prompt.user) > 1

    def _drawing(self) -> schema.Drawing:
        answer = self.file.answer
        own = {"text": answer.text, "chat": answer.chat}[self.form]
        shots = self.file.prompt.few_shot
        base: dict[str, Any] = {"temperature": 0.0, "stop": []}
        if self.form == "text":
            base["max_tokens"] = _DEFAULT_TOKENS
            if shots is not None and shots.count and self.file.prompt.separator:
                base["stop"] = [self.file.prompt.separator]
        for layer in (answer, own):
            for name in schema.Drawing.model_fields:
                value = getattr(layer, name, None)
                if value is not None:
                    base[name] = value
        return schema.Drawing.model_construct(**{"max_tokens": None, "top_p": None, "seed": None, **base})

    def _check_mode(self) -> None:
        file, answer = self.file, self.file.answer
        if self.mode != "generate":
            for name in answer.model_fields_set - {"mode"}:
                if getattr(answer, name) != schema.Answer.model_fields[name].default:
                    raise self._error(
                        ("answer", name), f"`answer.{name}` has no meaning where the mode is {self.mode}."
                    )
        elif answer.draws > 1 and not self.drawing.temperature:
            raise self._error(
                ("answer", "draws"), "several draws need a temperature above 0, or all would be the same."
            )
        if self._conversation():
            if self.mode != "generate":
                raise self._error(
                    ("prompt", "user"), f"several user turns have no meaning where the mode is {self.mode}."
                )
            for name in ("prefill", "few_shot"):
                if getattr(file.prompt, name):
                    raise self._error(("prompt", name), f"`{name}` cannot be used with several user turns.")
        if self.mode == "perplexity":
            for name in ("system", "prefill", "few_shot"):
                if getattr(file.prompt, name):
                    raise self._error(
                        ("prompt", name),
                        f"`{name}` has no meaning where the mode is perplexity: the text alone is scored.",
                    )

    def _scorers(self) -> tuple[Scorer, ...]:
        from evalwright.scorers.registry import bind

        given = self.file.scorers
        if given is None:
            name = _DEFAULT_SCORER[self.mode]
            given = [schema.ScorerUse.model_construct(name=name, use=name, options={})]
        bound: dict[str, Scorer] = {}
        for index, use in enumerate(given):
            at: KeyPath = ("scorers", index)
            if use.name in bound:
                raise self._error(at, f"two scorers have the name '{use.name}'; give one another `name`.")
            try:
                bound[use.name] = bind(use.use, plain(use.options), use.name)
            except UsageError as error:
                raise self._error(at, str(error)) from None
        if not bound:
            raise self._error(("scorers",), "a task needs at least one scorer.")
        return tuple(bound.values())

    def _metrics(self, scorers: tuple[Scorer, ...]) -> tuple[MetricSpec, ...]:
        from evalwright.metrics.registry import registry

        given = self.file.metrics
        if given is None:
            names = (
                _DEFAULT_METRICS.get(self.mode, ("accuracy",)) if self.file.scorers is None else ("accuracy",)
            )
            given = [
                schema.MetricUse.model_construct(name=None, use=name, scorer=None, options={})
                for name in names
            ]
        columns = [scorer.name for scorer in scorers]
        out: dict[str, MetricSpec] = {}
        for index, use in enumerate(given):
            at: KeyPath = ("metrics", index)
            column = use.scorer or columns[0]
            if column not in columns:
                near = closest(column, columns)
                hint = f" Did you mean '{near[0]}'?" if near else f" The scorers are: {', '.join(columns)}."
                raise self._error(
                    at,
                    f"the metric '{use.use}' is over the scorer '{column}', which the task does not have.{hint}",
                )
            label = use.name or (use.use if column == columns[0] else f"{column}-{use.use}")
            if label in out:
                raise self._error(at, f"two metrics have the label '{label}'; give one another `name`.")
            options = plain(use.options)
            try:
                registry.check_options(use.use, options)
            except UsageError as error:
                raise self._error(at, str(error)) from None
            out[label] = MetricSpec(label, use.use, column, options)
        if not out:
            raise self._error(("metrics",), "a task needs at least one metric.")
        return tuple(out.values())

    # The parts of the task

    def _renderer(self) -> Renderer:
        prompt = self.file.prompt
        user = prompt.user if prompt.user is not None else _DEFAULT_USER.get(self.mode, "{{ input }}")
        return Renderer(
            prompt,
            self.document,
            self.form,
            user=user,
            assistant=prompt.assistant
            if prompt.assistant is not None
            else _DEFAULT_SHOT.get(self.mode, "{{ target }}"),
            variables=self.variables,
            open_ended=self.mode == "generate",
            exact=self.mode == "perplexity",
        )

    def _load(self, renderer: Renderer) -> tuple[FileSamples, FileSamples | None]:
        """The samples and the pool of shots, every row of both checked."""
        shots = self.file.prompt.few_shot
        apart = (
            shots is not None and shots.count > 0 and (shots.dataset is not None or shots.where is not None)
        )
        pool: FileSamples | None = None
        if shots is not None and apart:
            pool = self._samples(
                shots.dataset or self.file.dataset,
                shots.where,
                shots.sample or self.file.sample,
                lambda sample: _check_shot(renderer, sample),
                ("prompt", "few_shot"),
                sample_at=("prompt", "few_shot", "sample") if shots.sample else ("sample",),
                dataset_at=("prompt", "few_shot", "dataset") if shots.dataset else ("dataset",),
            )
            renderer.shots = self._shots(pool, shots, renderer)

        def check(sample: Sample) -> None:
            self._check_sample(sample)
            renderer.check(sample)
            if renderer.shots is not None:
                renderer.shots.check(sample)

        samples = self._samples(
            self.file.dataset, self.file.where, self.file.sample, check, (), ("sample",), ("dataset",)
        )
        if shots is not None and shots.count and pool is None:
            pool = samples
            renderer.shots = self._shots(pool, shots, renderer)
            self._check_own_pool(samples, renderer)
        return samples, pool

    def _samples(
        self,
        dataset: schema.Dataset,
        where: schema.Where,
        sample: schema.Sample,
        check: Any,
        at: KeyPath,
        sample_at: KeyPath,
        dataset_at: KeyPath,
    ) -> FileSamples:
        defaults = {
            name: value
            for name in _FROM_TASK
            if isinstance(value := plain(self.file.metadata).get(name), str | int | float)
        }
        maker = SampleMaker(sample, self.document, sample_at, self.variables, defaults)
        recipe = [sample.model_dump(), where, self.variables, defaults]
        return load_samples(
            Rows(open_sources(dataset, self.document, dataset_at)),
            maker,
            Filter(where, self.variables, self.document, (*at, "where")),
            check=check,
            duplicates=dataset.duplicates,
            recipe=plain(recipe),
            empty=self.document.at((*at, "where") if where else dataset_at),
        )

    def _shots(self, pool: FileSamples, shots: schema.FewShot, renderer: Renderer) -> Shots:
        if len(pool) < shots.count:
            raise self._error(
                ("prompt", "few_shot", "count"),
                f"{shots.count} shots are asked for, and the pool has {len(pool)} rows.",
            )
        try:
            return Shots(
                pool, renderer.shot, count=shots.count, select=shots.select, same=shots.same, seed=shots.seed
            )
        except RowError as error:
            raise self._error(("prompt", "few_shot", "same"), f"{error}.") from None

    def _check_own_pool(self, samples: FileSamples, renderer: Renderer) -> None:
        assert renderer.shots is not None
        for index, sample in enumerate(samples):
            try:
                renderer.shots.check(sample, spare=1)
                _check_shot(renderer, sample)
            except RowError as error:
                raise DatasetError(f"{samples.where(index)}: {error}.") from None

    def _check_sample(self, sample: Sample) -> None:
        if self.mode in ("likelihood", "letter"):
            if not sample.choices:
                raise RowError(f"the row has no choices, which the mode {self.mode} needs (`sample.choices`)")
            if not sample.gold:
                raise RowError("the row has no target, so no choice is right (`sample.target`)")
            if self.mode == "letter" and len(sample.choices) > 26:
                raise RowError(f"the row has {len(sample.choices)} choices, and there are 26 letters")
        elif self.mode == "continuation" and not sample.target:
            raise RowError("the row has no target, whose likelihood is asked for (`sample.target`)")

    def _strategy(self, renderer: Renderer) -> Strategy:
        from evalwright.strategies.choose import ChooseByLetter, ChooseByLikelihood
        from evalwright.strategies.generate import Conversation, Sampling, SingleDraw
        from evalwright.strategies.likelihood import ContinuationLikelihood, TextLikelihood

        strategy: SingleDraw | Conversation | ChooseByLikelihood | ContinuationLikelihood | TextLikelihood
        prompt, drawing = self.file.prompt, self.drawing
        # After a chat template's own opening of the answer there is nothing to set apart from.
        delimiter = prompt.delimiter if self.form == "text" or prompt.prefill else ""
        sampling = Sampling(
            drawing.max_tokens,
            drawing.temperature or 0.0,
            drawing.top_p,
            tuple(drawing.stop or ()),
            drawing.seed,
        )
        if self._conversation():
            strategy = Conversation(renderer, renderer.turns, sampling)
        elif self.mode == "generate":
            strategy = SingleDraw(renderer, sampling)
        elif self.mode == "likelihood":
            strategy = ChooseByLikelihood(renderer, delimiter)
        elif self.mode == "letter":
            strategy = ChooseByLetter(renderer, delimiter)
        elif self.mode == "continuation":
            strategy = ContinuationLikelihood(renderer, delimiter)
        else:
            strategy = TextLikelihood(renderer)
        if self.form == "chat":
            strategy.needs = strategy.needs | {"chat"}
        return strategy

    def _resolved(
        self,
        samples: FileSamples,
        pool: FileSamples | None,
        renderer: Renderer,
        scorers: tuple[Scorer, ...],
        metrics: tuple[MetricSpec, ...],
    ) -> dict[str, Any]:
        """Everything that decides what is asked and how it is scored, defaults filled in, as plain JSON."""
        out = self.file.model_dump(exclude_none=True)
        prompt = out["prompt"]
        prompt.update(renderer.templates(), format=self.form)
        answer = {"mode": self.mode}
        if self.mode == "generate":
            answer.update({"draws": self.file.answer.draws, **self.drawing.model_dump(exclude_none=True)})
        out["answer"] = answer
        out["scorers"] = [{"name": s.name, "use": s.kind, "options": dict(s.options)} for s in scorers]
        out["metrics"] = [
            {"name": m.label, "use": m.kind, "scorer": m.scorer, "options": dict(m.options)} for m in metrics
        ]
        out["dataset"] = _data(out["dataset"], samples)
        shots = self.file.prompt.few_shot
        if shots is None or shots.count == 0 or pool is None:
            prompt.pop("few_shot", None)
        else:
            few_shot = prompt["few_shot"]
            few_shot["dataset"] = _data(few_shot.get("dataset", {}), pool)
        if self.variables:
            out["variables"] = dict(self.variables)
        return dict(plain(out))

    def _error(self, path: KeyPath, message: str) -> TaskError:
        return self.document.error(path, message)


def _check_shot(renderer: Renderer, sample: Sample) -> None:
    renderer.shot(sample)


def _data(dataset: dict[str, Any], samples: FileSamples) -> dict[str, Any]:
    rows = dataset.get("rows")
    if rows is not None and len(rows) > _ROWS_SHOWN:
        del dataset["rows"]
    return {**dataset, "samples": len(samples), "content_hash": samples.content_hash}


def plain(value: Any) -> Any:
    """A value as JSON would give it back; a number keeps its value, not how it was written."""
    if isinstance(value, WrittenFloat):
        return float(value)
    return json.loads(json.dumps(value))
