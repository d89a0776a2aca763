"""An HRET call as a native task: its rows are samples, its scaling method the strategy, its
evaluator the scorers; one engine runs it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from evalwright import (
    Answer,
    Ask,
    Failure,
    RequestFailed,
    Response,
    Reward,
    Sample,
    Task,
)
from evalwright.compat.hret.asking import (
    AS_IT_LIKES,
    ID,
    METHODS,
    Native,
    PluginModel,
    SampleDoor,
    asked_for,
    logits_of,
    matched,
    replied,
)
from evalwright.compat.hret.config import Shots, load_rows
from evalwright.compat.hret.evaluation.base import BuiltIn
from evalwright.compat.hret.models import NativeModel
from evalwright.compat.hret.row_samples import (
    ROW,
    input_of,
    plain,
    sample_of,
    task_name,
)
from evalwright.compat.hret.scaling import strategy_of
from evalwright.compat.hret.scaling_methods.base import BuiltInMethod
from evalwright.compat.hret.scoring import scoring_of
from evalwright.compat.hret.settings import Given, Rows
from evalwright.core.errors import EmptyReply
from evalwright.extend import (
    NO_ANSWER,
    TARGET,
    Ability,
    AbilityError,
    ConfigurationError,
    MetricSpec,
    Request,
    Scorer,
    Strategy,
)
from evalwright.models.functions import FunctionModel

if TYPE_CHECKING:
    from evalwright.compat.hret.runner import PipelineRunner

JUDGE = "judge"
REWARD = "reward"
_DRAWS = 1000
"""More than a scaling method asks for one prompt: a row with the same prompt has draws of its own.
"""
_PROMPT_ALONE = ("self_consistency", "beam_search")
"""The methods of HRET that give the model a prompt in a dict of its own: it sees nothing else of
the row, and cannot change it.
"""


def roles_of(
    model: Any, name: str, *, published: bool
) -> dict[str, Native | PluginModel]:
    """Who generates, judges and rewards: parts of a `multi`, or the one model itself, in every role
    that it has a method for.
    """
    parts = {TARGET: model}
    if hasattr(model, "generate_model") and hasattr(model, "judge_model"):
        parts = {
            TARGET: model.generate_model,
            JUDGE: model.judge_model,
            REWARD: getattr(model, "reward_model", None),
        }
    elif not isinstance(model, NativeModel):
        parts = {
            role: model
            for role, (method, _) in METHODS.items()
            if callable(getattr(model, method, None))
        }
    roles: dict[str, Native | PluginModel] = {}
    for role, part in parts.items():
        if isinstance(part, NativeModel):
            roles[role] = part.native(published=published)
        elif part is not None:
            plugin_name = type(part).__name__ if name == "multi" else name
            roles[role] = PluginModel(plugin_name, part, role, published=published)
    return roles


def task_of(call: PipelineRunner) -> Task:
    """The call as a task. Raises ValueError for what cannot be run."""
    call.shots = load_rows(call, call.dataset, call.published)
    samples = RowSamples(call.shots)
    check_likelihoods(call, samples)
    scorers: Sequence[Scorer] = ()
    metrics: Sequence[MetricSpec] = ()
    if isinstance(call.evaluator, BuiltIn) and not call.evaluator.is_derived:
        scorers, metrics = scoring_of(
            call.method,
            call.evaluator.parameters(),
            published=call.published,
            language=call.target_lang if call.language_penalize else None,
            samples=samples,
            judge=call.judge,
        )
    recorded = {
        name: value
        for name, value in call.settings().items()
        if name != "model_backend_params"
    }
    subset = call.subset if isinstance(call.subset, str) else ""
    return Task(
        name=task_name(call.dataset_name, subset, call.evaluation_method_name),
        samples=samples,
        strategy=RowStrategy(call),
        scorers=tuple(
            replace(scorer, function=_with_rows(scorer, call))
            if scorer.asks
            else scorer
            for scorer in scorers
        ),
        metrics=tuple(metrics),
        slices=("subset",),
        definition={
            "source": "hret",
            "scoring": "published" if call.published else "corrected",
            "call": plain(recorded),
            "examples": call.shots.n,
        },
        order="file",
        score_as_empty=NO_ANSWER if call.published else (),
    )


def check_likelihoods(call: PipelineRunner, samples: Sequence[Sample]) -> None:
    """Refuse corrected `log_likelihood` where no row could have a verdict, before anything is sent.

    A row may bring its options' log-probabilities, and so may a plug-in, a scaling method of a
    user, or a function. Raises AbilityError for a model that gives none, ConfigurationError for
    rows without options.
    """
    is_built_in = isinstance(call.evaluator, BuiltIn) and not call.evaluator.is_derived
    if (
        call.published
        or call.method != "log_likelihood"
        or not is_built_in
        or not samples
    ):
        return
    if not any(sample.row.get("options") for sample in samples):
        raise ConfigurationError(
            "'log_likelihood' compares the options of a row, and no row of"
            f" '{call.dataset_name}' has `options`. Use the method 'string_match'."
        )
    target = call.roles.get(TARGET)
    is_plugin_scaler = call.scaler is not None and not isinstance(
        call.scaler, BuiltInMethod
    )
    if not isinstance(target, Native) or target.by_options or is_plugin_scaler:
        return
    if isinstance(target.model, FunctionModel) or any(
        map(_has_option_log_probs, samples)
    ):
        return
    raise AbilityError(
        f"'{call.model_backend_name}' gives no log-probabilities of a row's options, so"
        " 'log_likelihood' could judge no row, and nothing was sent. Use"
        " model='huggingface', or the method 'string_match'."
    )


def _has_option_log_probs(sample: Sample) -> bool:
    logits = sample.row.get("logits")
    return isinstance(logits, Mapping) and bool(logits.get("option_log_probs"))


class RowSamples(list[Sample]):
    """A dataset's rows as samples, in their order.

    A row is kept whole: as JSON in the metadata, as it was in `row`.
    """

    def __init__(self, shots: Shots) -> None:
        rows = []
        for row in shots.rows:
            prefix = shots.prefix(row)
            rows.append(
                {"input": "", **row, **(_prefixed(row, prefix) if prefix else {})}
            )
        seen = Counter[str]()
        for number, row in enumerate(rows):
            # So many rows with this input come before it, and each is drawn anew.
            earlier = seen[input_of(row)]
            self.append(
                sample_of(number, row, **({"earlier": earlier} if earlier else {}))
            )
            seen[input_of(row)] += 1
        text = json.dumps(
            [plain(row) for row in rows], sort_keys=True, ensure_ascii=False
        )
        self.content_hash = hashlib.blake2b(
            text.encode("utf-8", "surrogatepass"), digest_size=16
        ).hexdigest()


def _prefixed(row: Given, prefix: str) -> dict[str, Any]:
    row_input = row.get("input", "")
    changed: Any = f"{prefix}{row_input}"
    if isinstance(row_input, Mapping):
        changed = {**row_input, "text": prefix + str(row_input.get("text", ""))}
    elif isinstance(
        row_input, list
    ):  # chat messages: the examples stand in the first turn of the user
        changed = [dict(turn) for turn in row_input]
        if first := next(
            (turn for turn in changed if turn.get("role") == "user"), None
        ):
            first["content"] = f"{prefix}{first.get('content', '')}"
    return {"input": changed, "few_shot_applied": True}


class RowStrategy:
    """HRET's way to an answer, with what plug-ins changed in the row.

    A model of this package that fails answers None, where scoring is published.
    """

    def __init__(self, call: PipelineRunner) -> None:
        self.call = call
        method = call.scaling_method_name
        target = call.roles.get(TARGET)
        native = target if isinstance(target, Native) else None
        self.inner: Strategy
        if call.scaler is not None and not isinstance(call.scaler, BuiltInMethod):
            self.inner = PluginStrategy(call)
        else:
            params = call.scaling_params or {}
            roles = tuple(call.roles)
            self.inner = strategy_of(
                method, params, published=call.published, native=native, roles=roles
            )
            if (
                method
                and native is not None
                and native.by_options
                and not call.published
            ):
                # Checked all the same; one choice by likelihood has no draws, and no prompt of the
                # method's.
                self.inner = strategy_of(
                    None, {}, published=False, native=native, roles=roles
                )
                call.notes.append(
                    f"'{method}' has no part in '{call.method}': each option's"
                    " likelihood is taken once, and nothing is drawn."
                )
            drawn = getattr(self.inner, "sampling", AS_IT_LIKES).temperature
            greedy = native is not None and native.sampling.temperature == 0
            if greedy and drawn and method in ("self_consistency", "best_of_n"):
                note = (
                    f"'{method}' draws several answers: the temperature is {drawn}, in"
                    " place of 0."
                )
                call.notes.append(note)
        self._chosen_blindly = (
            call.published and method == "best_of_n" and REWARD not in call.roles
        )
        self.needs = self.inner.needs
        needed: Mapping[str, frozenset[Ability]] = getattr(self.inner, "roles", {})
        self.roles = {role: able for role, able in needed.items() if role in call.roles}

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        call = self.call
        row = dict(sample.row)
        method = call.scaling_method_name
        target = call.roles[TARGET]
        alone = call.published and method in _PROMPT_ALONE
        visible_row = {"input": row.get("input")} if alone else row
        extends = not isinstance(self.inner, PluginStrategy)
        door = SampleDoor(ask, sample, visible_row, call.roles, extends=extends)
        try:
            answer = await self.inner(sample, door, draw)
        except RequestFailed as error:
            if not call.published or isinstance(target, PluginModel):
                raise
            failed = {
                "prediction": None,
                "error": error.failure.message,
                "finish_reason": "error",
            }
            if error.failure.kind == EmptyReply.kind:  # an answer to HRET
                failed = {"finish_reason": "stop"}
            answer = Answer(prompt=input_of(row), strategy={ROW: failed})
        self._note_blind_choice(answer)
        added: dict[str, Any] = dict(answer.strategy.get(ROW, {}))
        if not method:
            added = {**plain(door.found), **added}
            if isinstance(target, Native) and target.tells_reason and answer.responses:
                added.setdefault("finish_reason", answer.responses[-1].finish_reason)
        elif call.published and not alone:
            mutated_fields = {
                key: value
                for key, value in door.mutated.items()
                if key not in ("prediction", ID)
            }
            added = {**plain(mutated_fields), **added}
            if isinstance(target, PluginModel) and ID not in door.mutated:
                added.pop(
                    "reward", None
                )  # HRET leaves it in the copies that the plug-in returned
        if not call.published and answer.responses:
            added = {**logits_of(answer.responses[-1]), **added}
        elif (
            isinstance(target, Native)
            and target.cot
            and "option_log_probs" in added.get("logits", {})
        ):
            added.setdefault("chain_of_thought", answer.reasoning or None)
        if (
            isinstance(target, Native)
            and target.bare_options
            and {JUDGE, REWARD} & call.roles.keys()
        ):
            # HRET asks its back end for none beside a judge or a reward model
            added.pop("logits", None)
        changed = added or ROW in answer.strategy
        return (
            replace(answer, strategy={**answer.strategy, ROW: added})
            if changed
            else answer
        )

    def _note_blind_choice(self, answer: Answer) -> None:
        """Say once in the notes that published best_of_n had nothing to choose by, and so took the
        first draw, as HRET does.
        """
        if not self._chosen_blindly or not answer.responses:
            return
        has_log_probabilities = any(
            response.tokens or response.log_likelihood is not None
            for response in answer.responses
        )
        if has_log_probabilities and JUDGE not in self.call.roles:
            return
        self._chosen_blindly = False
        why = (
            "a judge is there"
            if JUDGE in self.call.roles
            else "replies have no log-probabilities"
        )
        self.call.note(
            "'best_of_n' took the first draw of its rows, as HRET does where no reward"
            f" model is named and {why}: every further draw was paid for nothing."
            " Corrected scoring refuses this."
        )


class PluginStrategy:
    """A scaling method of a user: `apply` of one sample, in a thread of its own; what it asks of
    its model goes through the engine.
    """

    needs: frozenset[Ability] = frozenset({"generate"})
    roles: Mapping[str, frozenset[Ability]] = {REWARD: frozenset({"reward"})}

    def __init__(self, call: PipelineRunner) -> None:
        self._call = call
        # Threads that wait for replies are not those that the loop needs for its own work.
        # Published: one sample after another, as HRET.
        self._threads = ThreadPoolExecutor(
            1 if call.published else 16, "evalwright-scaling"
        )

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        loop = asyncio.get_running_loop()
        model = AskedModel(ask, loop, int(sample.metadata.get("earlier", 0)) * _DRAWS)
        scaler = type(self._call.scaler)(
            model=model, **(self._call.scaling_params or {})
        )
        row = {**sample.row, ID: 0}
        returned = await loop.run_in_executor(
            self._threads, copy_context().run, scaler.apply, [row]
        )
        sample_fields = matched(list(returned), 1)[0]
        if sample_fields is None:
            why = "The scaling method returned no sample for this one."
            raise RequestFailed(Failure("bad reply", "model", why))
        text = sample_fields.pop("prediction", "")
        added = {
            key: value for key, value in sample_fields.items() if key not in sample.row
        }
        if not isinstance(text, str):
            added["prediction"] = text
        strategy = {ROW: plain(added)} if added else {}
        answer_text = "" if text is None else str(text)
        return Answer(
            answer_text,
            prompt=sample.input,
            responses=tuple(model.responses),
            strategy=strategy,
        )


class AskedModel:
    """The model that a scaling method of a user is given: every request goes through the engine,
    and so is stored and paid once.
    """

    def __init__(
        self, ask: Ask, loop: asyncio.AbstractEventLoop, first: int = 0
    ) -> None:
        self._ask = ask
        self._loop = loop
        self._first = first
        self._draws: dict[str, int] = {}
        self.responses: list[Response] = []

    def generate_batch(
        self, inputs: Rows, return_logits: bool = False, **kwargs: Any
    ) -> Rows:
        """The inputs with `prediction`, and `logits` where they were asked for.

        A prompt asked again is another draw.
        """
        sampling = replace(
            AS_IT_LIKES, **asked_for({"return_logits": return_logits, **kwargs})
        )
        requests = []
        for row in inputs:
            text = input_of(row)
            draw = self._draws[text] = self._draws.get(text, self._first - 1) + 1
            requests.append(sampling.request(text, draw))
        responses = self._ask_all(TARGET, requests)
        self.responses += responses
        return [
            replied(row, response)
            for row, response in zip(inputs, responses, strict=True)
        ]

    def score_batch(self, inputs: Rows, **kwargs: Any) -> Rows:
        """The inputs with `reward`."""
        requests = [
            Reward(input_of(row), str(row.get("prediction") or "")) for row in inputs
        ]
        responses = self._ask_all(REWARD, requests)
        return [
            {**row, "reward": reply.values[0]}
            for row, reply in zip(inputs, responses, strict=True)
        ]

    def _ask_all(self, role: str, requests: Sequence[Request]) -> list[Response]:
        async def every() -> list[Response]:
            return await asyncio.gather(
                *(self._ask(role, request) for request in requests)
            )

        return asyncio.run_coroutine_threadsafe(every(), self._loop).result()


def _with_rows(scorer: Scorer, call: PipelineRunner) -> Any:
    """A scorer that asks, with the door through which the judge sees a row."""

    def score(sample: Sample, answer: Answer, ask: Ask) -> Any:
        row = {**sample.row, "prediction": answer.text}
        return scorer.function(sample, answer, SampleDoor(ask, sample, row, call.roles))

    return score
