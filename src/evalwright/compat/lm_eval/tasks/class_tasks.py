"""From a class of the package's to a Task: its rows as samples, a strategy that asks its requests, a scorer for each filter pipeline."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from evalwright.compat.lm_eval.tasks.asking import Arguments
from evalwright.compat.lm_eval.tasks.classes import STRUCTURE, ClassWork, construct, require_package
from evalwright.compat.lm_eval.tasks.compiling import plain
from evalwright.compat.lm_eval.tasks.files import FunctionRef, Unavailable
from evalwright.compat.lm_eval.tasks.functions import Functions
from evalwright.compat.lm_eval.tasks.groups import Group
from evalwright.compat.lm_eval.tasks.options import DIALECT, PREFIX, Options
from evalwright.compat.lm_eval.tasks.shots import digest_of
from evalwright.core.asking import Ask
from evalwright.core.errors import EvalwrightError, TaskError
from evalwright.core.reasoning import separate_reasoning
from evalwright.core.requests import Ability
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Sample
from evalwright.core.tasks import Scorer, Task
from evalwright.strategies.generate import TARGET, log_likelihood_of


def compile_class(
    settings: Mapping[str, Any],
    functions: Functions,
    options: Options,
    groups: Sequence[Group] = (),
    generated: Options | None = None,
) -> Task:
    """The Task of a file with `class`. Runs the class, which opens its data.

    generated: other options where all that is asked for is generated text. Raises TaskError where the class's folder is not
    trusted, ConfigurationError where the package is not installed, DatasetError where the class fails.
    """
    name = str(settings.get("task", ""))
    ref = settings["class"]
    if not isinstance(ref, FunctionRef):
        raise TaskError(
            f"The task '{name}': `class` names a Python class, in the form `!function module.Name`."
        )
    functions.require_trust(ref, name)
    require_package(name)
    resolved = functions.resolve(dict(settings), name)
    if isinstance(resolved["class"], Unavailable):
        raise resolved["class"].reason
    made = construct(resolved["class"], resolved)
    work = ClassWork(made, name, options)
    strategy = ClassStrategy(work)
    if generated is not None and strategy.needs == {"generate"}:
        work = ClassWork(made, name, generated)
        strategy = ClassStrategy(work)
    return _task(work, strategy, settings, groups)


def _task(
    work: ClassWork, strategy: ClassStrategy, settings: Mapping[str, Any], groups: Sequence[Group]
) -> Task:
    options, metadata = work.options, settings.get("metadata") or {}
    scorers = tuple(
        Scorer(name, DIALECT, {"scoring": options.scoring}, function)
        for name, function in work.scorers().items()
    )
    version = metadata.get("version", getattr(work.task, "VERSION", None))
    alias = str(settings.get("task_alias") or work.name)
    return Task(
        name=f"{PREFIX}{work.name}",
        samples=ClassSamples(work),
        strategy=strategy,
        scorers=scorers,
        metrics=work.expected(),
        version=str(version if version is not None else "N/A"),
        description=f"{alias} ({options.scoring})",
        slices=(),
        metadata={"dialect": DIALECT, "scoring": options.scoring, "notes": []},
        definition={
            "dialect": DIALECT,
            "task": work.name,
            "alias": alias,
            "class": f"{type(work.task).__module__}.{type(work.task).__qualname__}",
            "scoring": options.scoring,
            "num_fewshot": work.num_fewshot,
            "chat": options.chat,
            "multiturn": options.multiturn,
            "system": options.system,
            "seed": options.seed,
            "generation": plain(options.generation),
            "metadata": plain({key: value for key, value in metadata.items() if key != "config_source"}),
            "config": {
                key: plain(value)
                for key, value in settings.items()
                if key not in STRUCTURE and key != "metadata"
            },
            "higher_is_better": {
                metric.name: metric.higher_is_better for metric in work.metrics.definition.metrics
            },
            "groups": [group.as_dict() for group in groups],
        },
        source=str(metadata.get("config_source", "")),
        order="file" if options.published else "shuffled",
        found_metrics=work.metrics.specs,
    )


class ClassSamples:
    """The rows of a class (`core.tasks.SampleSource`)."""

    def __init__(self, work: ClassWork) -> None:
        self._work = work

    @cached_property
    def content_hash(self) -> str:
        """Of all rows that are asked and all that shots are drawn from."""
        digest = hashlib.blake2b(digest_size=16)
        for rows in (self._work.rows, self._work.pool):
            for row in rows:
                digest.update(digest_of(row).encode())
        return digest.hexdigest()

    def __len__(self) -> int:
        return len(self._work.rows)

    def __getitem__(self, index: int, /) -> Sample:
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(index)
        doc, task = self._work.row(index), self._work.task
        target = _shown(task.doc_to_target, doc)
        targets = tuple(map(str, target)) if isinstance(target, list) else (str(target),)
        row = doc if isinstance(doc, Mapping) else str(doc)
        return Sample(str(index), str(_shown(task.doc_to_text, doc)), targets, metadata={"doc": row})

    def __iter__(self) -> Iterator[Sample]:
        return (self[index] for index in range(len(self)))


def _shown(function: Any, doc: Any) -> Any:
    """What is shown of a row; what goes wrong here is reported when the row is asked."""
    try:
        return function(doc)
    except Exception:
        return ""


class ClassStrategy:
    """Asks all requests of a row, each as often as the class repeats them; the answer keeps the responses in that order.

    needs: what the requests of the first row need. Raises TaskError where these cannot be made.
    """

    def __init__(self, work: ClassWork) -> None:
        self.work = work
        try:
            first = work.asked(0)
        except EvalwrightError:
            raise
        except Exception as error:
            raise TaskError(
                f"The first row of the task '{work.name}' cannot be asked: {type(error).__name__}: {error}."
            ) from error
        self.needs: frozenset[Ability] = frozenset(need for asked in first for need in _needs(asked))

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """All requests at once. The text is that of the first generated one; the choice is the most likely one of several."""
        asked, repeats = self.work.asked(int(sample.id)), self.work.repeats
        wanted = [
            ask(TARGET, arguments.request(draw * repeats + repeat))
            for arguments in asked
            for repeat in range(repeats)
        ]
        responses = tuple(await asyncio.gather(*wanted))
        firsts = list(zip(asked, responses[::repeats], strict=True))
        texts = [self._text(response) for one, response in firsts if isinstance(one.rest, Mapping)]
        values = tuple(
            log_likelihood_of(response) for one, response in firsts if not isinstance(one.rest, Mapping)
        )
        best = max(range(len(values)), key=values.__getitem__) if len(values) > 1 and not texts else None
        text = texts[0] if texts else str(asked[best or 0].rest or "")
        prompt = "" if asked[0].rolling else asked[0].context
        return Answer(text=text, choice=best, log_likelihoods=values, prompt=prompt, responses=responses)

    def _text(self, response: Response) -> str:
        published = self.work.options.published
        return response.text if published else separate_reasoning(response).answer


def _needs(asked: Arguments) -> Iterator[Ability]:
    if asked.rolling:
        yield "rolling"
        return
    yield "generate" if isinstance(asked.rest, Mapping) else "log-likelihood"
    if not isinstance(asked.context, str):
        yield "chat"
