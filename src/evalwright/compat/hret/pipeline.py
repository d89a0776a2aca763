"""An HRET call as a native task: its rows are samples, its scaling method the strategy, its evaluator the scorers; one engine runs it."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from typing import Any

from evalwright.compat.hret.asking import AS_IT_LIKES, Native, SampleDoor
from evalwright.compat.hret.config import PipelineConfig, Shots, load_rows
from evalwright.compat.hret.evaluation.base import ALIASES
from evalwright.compat.hret.evaluation.built_in import BuiltIn
from evalwright.compat.hret.models.native import NativeModel
from evalwright.compat.hret.plugins import ID, METHODS, PluginModel, asked_for, matched, replied
from evalwright.compat.hret.rows import ROW, input_of, plain, sample_of, task_name
from evalwright.compat.hret.scaling import Backend, CotSettings, strategy_of
from evalwright.compat.hret.scaling_methods.base import SCALING_REGISTRY
from evalwright.compat.hret.scoring import scoring_of
from evalwright.core.asking import Ask
from evalwright.core.errors import EmptyReply, Failure, RequestFailed
from evalwright.core.outcomes import NO_ANSWER
from evalwright.core.requests import Ability, Reward
from evalwright.core.samples import Answer, Sample
from evalwright.core.tasks import MetricSpec, Scorer, Strategy, Task
from evalwright.models.base import Model
from evalwright.strategies.generate import TARGET

JUDGE, REWARD = "judge", "reward"
_DRAWS = 1000
"""More than a scaling method asks for one prompt: a row with the same prompt has draws of its own."""
_PROMPT_ALONE = ("self_consistency", "beam_search")
"""The methods of HRET that give the model a prompt in a dict of its own: it sees nothing else of the row, and cannot change it."""
BUILT_IN = "_evalwright_method"
"""The attribute by which a class of this package says which method it stands for."""


@dataclass
class Components:
    """What a configuration names, loaded. roles: who plays them: a plug-in, or a model of this package."""

    config: PipelineConfig
    published: bool
    dataset: Any
    model: Any
    scaler: Any
    evaluator: Any
    roles: Mapping[str, Native | PluginModel]
    shots: Shots | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def method(self) -> str:
        """The evaluation method, by its own name."""
        name = self.config.evaluation_method_name
        return ALIASES.get(name, name)

    @property
    def judge(self) -> str:
        """The registry name of the judge, "" for none."""
        given = (self.config.model_backend_params or {}).get("judge_model")
        named = str(given.get("name")) if isinstance(given, Mapping) else self.config.model_backend_name
        return named if JUDGE in self.roles else ""

    def model_of(self, role: str) -> Model:
        """The engine's model of a role."""
        found = self.roles[role]
        return found.model if isinstance(found, Native) else found


def roles_of(model: Any, name: str, *, published: bool) -> dict[str, Native | PluginModel]:
    """Who generates, judges and rewards: parts of a `multi`, or the one model itself, in every role that it has a method for."""
    parts = {TARGET: model, JUDGE: None, REWARD: None}
    if hasattr(model, "generate_model") and hasattr(model, "judge_model"):
        parts = {
            TARGET: model.generate_model,
            JUDGE: model.judge_model,
            REWARD: getattr(model, "reward_model", None),
        }
    elif not isinstance(model, NativeModel):
        parts = {role: model if callable(getattr(model, METHODS[role][0], None)) else None for role in parts}
    return {
        role: part.native(published=published)
        if isinstance(part, NativeModel)
        else PluginModel(_name_of(part, name), part, role, published=published)
        for role, part in parts.items()
        if part is not None
    }


def task_of(config: PipelineConfig, parts: Components) -> Task:
    """The configuration as a task. parts: what it names, loaded. Raises ValueError for what cannot be run."""
    shots = parts.shots = load_rows(config, parts.dataset, parts.published)
    samples = Rows(config, shots)
    scorers: Sequence[Scorer] = ()
    metrics: Sequence[MetricSpec] = ()
    if isinstance(parts.evaluator, BuiltIn):
        scorers, metrics = scoring_of(
            parts.method,
            parts.evaluator.parameters(),
            published=parts.published,
            language=config.target_lang if config.language_penalize else None,
            samples=list(samples),
            judge=parts.judge,
        )
    subset = config.subset if isinstance(config.subset, str) else ""
    return Task(
        name=task_name(config.dataset_name, subset, config.evaluation_method_name),
        samples=samples,
        strategy=RowStrategy(parts),
        scorers=tuple(replace(one, function=_with_rows(one, parts)) if one.asks else one for one in scorers),
        metrics=tuple(metrics),
        slices=("subset",),
        definition=definition_of(parts),
        order="file",
        score_as_empty=NO_ANSWER if parts.published else (),
    )


class Rows:
    """A dataset's rows as samples, in their order. A row is kept whole: as JSON in the metadata, as it was in `row`."""

    def __init__(self, config: PipelineConfig, shots: Shots) -> None:
        self.rows: list[dict[str, Any]] = []
        for row in shots.rows:
            prefix = shots.prefix(row)
            self.rows.append({"input": "", **row, **(_prefixed(row, prefix) if prefix else {})})
        seen = Counter[str]()
        self._samples = []
        for number, row in enumerate(self.rows):
            earlier = seen[
                input_of(row)
            ]  # so many rows with this input come before it, and each is drawn anew
            self._samples.append(sample_of(number, row, **({"earlier": earlier} if earlier else {})))
            seen[input_of(row)] += 1
        text = json.dumps([plain(row) for row in self.rows], sort_keys=True, ensure_ascii=False)
        self.content_hash = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

    def __len__(self) -> int:
        return len(self._samples)

    def __getitem__(self, index: int, /) -> Sample:
        return self._samples[index]

    def __iter__(self) -> Iterator[Sample]:
        return iter(self._samples)


def _prefixed(row: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    given = row.get("input", "")
    changed: Any = (
        {**given, "text": prefix + str(given.get("text", ""))} if isinstance(given, Mapping) else None
    )
    if isinstance(given, list):  # chat messages: the examples stand in the first turn of the user
        place = next((at for at, turn in enumerate(given) if turn.get("role") == "user"), None)
        changed = [dict(turn) for turn in given]
        if place is not None:
            changed[place]["content"] = f"{prefix}{changed[place].get('content', '')}"
    return {"input": f"{prefix}{given}" if changed is None else changed, "few_shot_applied": True}


class RowStrategy:
    """HRET's way to an answer, with what plug-ins changed in the row. A model of this package that fails answers None, where scoring
    is published."""

    def __init__(self, parts: Components) -> None:
        self.parts = parts
        config = parts.config
        target = parts.roles.get(TARGET)
        native = target if isinstance(target, Native) else None
        self.inner: Strategy
        if parts.scaler is not None and not hasattr(parts.scaler, BUILT_IN):
            self.inner = PluginStrategy(parts)
        else:
            cot = CotSettings(native.cot, native.trigger, native.parser) if native else CotSettings()
            backend = Backend(roles=tuple(parts.roles))
            if native:
                backend = replace(backend, sampling=native.sampling, one_call=native.one_call, plugin=False)
            self.inner = strategy_of(
                config.scaling_method_name,
                config.scaling_params or {},
                published=parts.published,
                cot=cot,
                backend=backend,
                known=tuple(SCALING_REGISTRY),
            )
            drawn = getattr(self.inner, "sampling", None)
            several = config.scaling_method_name in ("self_consistency", "best_of_n")
            if several and backend.sampling.temperature == 0 and drawn is not None and drawn.temperature:
                note = f"'{config.scaling_method_name}' draws several answers: the temperature is {drawn.temperature}, in place of 0."
                parts.notes.append(note)
        self.needs = self.inner.needs
        self.roles: dict[str, frozenset[Ability]] = {
            role: able for role, able in getattr(self.inner, "roles", {}).items() if role in parts.roles
        }
        if isinstance(self.inner, PluginStrategy) and REWARD in parts.roles:
            self.roles[REWARD] = frozenset({"reward"})

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        parts = self.parts
        row = dict(sample.row)
        alone = parts.published and parts.config.scaling_method_name in _PROMPT_ALONE
        door = SampleDoor(ask, sample, {"input": row.get("input")} if alone else row, parts.roles)
        if TARGET not in parts.roles:
            raise RequestFailed(
                Failure("no model", "configuration", "No model generates: name one besides the judge.")
            )
        try:
            answer = await self.inner(sample, door, draw)
        except RequestFailed as error:
            if not parts.published or isinstance(parts.roles[TARGET], PluginModel):
                raise
            failed: dict[str, Any] = {
                "prediction": None,
                "error": error.failure.message,
                "finish_reason": "error",
            }
            if error.failure.kind == EmptyReply.kind:  # an answer to HRET
                failed = {"finish_reason": "stop"}
            answer = Answer(prompt=input_of(row), strategy={ROW: failed})
        added: dict[str, Any] = dict(answer.strategy.get(ROW, {}))
        if parts.config.scaling_method_name and parts.published and not alone:
            kept = {key: value for key, value in door.mutated.items() if key not in ("prediction", ID)}
            added = {**plain(kept), **added}
            if isinstance(parts.roles[TARGET], PluginModel) and ID not in door.mutated:
                added.pop("reward", None)  # HRET leaves it in the copies that the plug-in returned
        elif not parts.config.scaling_method_name:
            added = {**plain(door.found), **added}
            native = parts.roles[TARGET]
            if (
                isinstance(native, Native)
                and native.tells_reason
                and answer.responses
                and "finish_reason" not in added
            ):
                added["finish_reason"] = answer.responses[-1].finish_reason
        return replace(answer, strategy={**answer.strategy, ROW: added}) if added else answer


class PluginStrategy:
    """A scaling method of a user: `apply` of one sample, in a thread of its own; what it asks of its model goes through the engine."""

    needs: frozenset[Ability] = frozenset({"generate"})
    roles: Mapping[str, frozenset[Ability]] = {}

    def __init__(self, parts: Components) -> None:
        self._parts = parts
        # Threads that wait for replies are not those that the loop needs for its own work. Published: one sample after another, as HRET.
        self._threads = ThreadPoolExecutor(1 if parts.published else 16, "evalwright-scaling")

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        config, loop = self._parts.config, asyncio.get_running_loop()
        model = AskedModel(ask, loop, int(sample.metadata.get("earlier", 0)) * _DRAWS)
        row = {**sample.row, ID: 0}
        scaler = type(self._parts.scaler)(model=model, **(config.scaling_params or {}))
        work = loop.run_in_executor(self._threads, copy_context().run, scaler.apply, [row])
        found = matched(list(await work), 1)[0]
        if found is None:
            raise RequestFailed(
                Failure("bad reply", "model", "The scaling method returned no sample for this one.")
            )
        text = found.pop("prediction", "")
        added = {key: value for key, value in found.items() if key not in sample.row}
        answer = Answer(
            text=text if isinstance(text, str) else "" if text is None else str(text),
            prompt=sample.input,
            responses=tuple(model.responses),
        )
        if not isinstance(text, str):
            added["prediction"] = text
        return replace(answer, strategy={ROW: plain(added)}) if added else answer


class AskedModel:
    """The model that a scaling method of a user is given: every request goes through the engine, and so is stored and paid once."""

    def __init__(self, ask: Ask, loop: asyncio.AbstractEventLoop, first: int = 0) -> None:
        self._ask = ask
        self._loop = loop
        self._first = first
        self._draws: dict[str, int] = {}
        self.responses: list[Any] = []

    def generate_batch(
        self, inputs: list[dict[str, Any]], return_logits: bool = False, **kwargs: Any
    ) -> list[dict[str, Any]]:
        """The inputs with `prediction`, and `logits` where they were asked for. A prompt asked again is another draw."""
        return list(self._wait(self._generated(inputs, {"return_logits": return_logits, **kwargs})))

    def score_batch(self, inputs: list[dict[str, Any]], **kwargs: Any) -> list[dict[str, Any]]:
        """The inputs with `reward`."""
        return list(self._wait(self._rewarded(inputs)))

    def _wait(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _generated(
        self, inputs: list[dict[str, Any]], options: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        sampling = replace(AS_IT_LIKES, **asked_for(options))
        requests = []
        for one in inputs:
            text = input_of(one)
            draw = self._draws[text] = self._draws.get(text, self._first - 1) + 1
            requests.append(sampling.request(text, draw))
        responses = await asyncio.gather(*(self._ask(TARGET, request) for request in requests))
        self.responses += responses
        return [replied(one, response) for one, response in zip(inputs, responses, strict=True)]

    async def _rewarded(self, inputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        asked = [self._ask(REWARD, Reward(input_of(one), str(one.get("prediction") or ""))) for one in inputs]
        found = await asyncio.gather(*asked)
        return [{**one, "reward": reply.values[0]} for one, reply in zip(inputs, found, strict=True)]


def _with_rows(scorer: Scorer, parts: Components) -> Any:
    """A scorer that asks, with the door through which the judge sees a row."""

    async def score(sample: Sample, answer: Answer, ask: Ask) -> Any:
        row = {**sample.row, "prediction": answer.text}
        made = scorer.function(sample, answer, SampleDoor(ask, sample, row, parts.roles))
        return await made if asyncio.iscoroutine(made) else made

    return score


def definition_of(parts: Components) -> dict[str, Any]:
    """The call as the run records it."""
    config = {
        name: value for name, value in parts.config.settings().items() if name != "model_backend_params"
    }
    return {
        "source": "hret",
        "scoring": "published" if parts.published else "corrected",
        "call": plain(config),
        "examples": parts.shots.n if parts.shots else 0,
    }


def _name_of(plugin: Any, name: str) -> str:
    return type(plugin).__name__ if name == "multi" else name
