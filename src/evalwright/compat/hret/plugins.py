"""Models of users: classes with HRET's methods, which get copies of rows.

What they return is matched back by an injected id.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evalwright import Failure, Generate, LocalModel, Response, Reward
from evalwright.compat.hret.row_samples import Given
from evalwright.compat.hret.rules import Rules, using
from evalwright.extend import Ability, Request, TokenLogProb

ID = "_evalwright_id"
"""The key under which a row carries its id through a plug-in."""

METHODS: Mapping[str, tuple[str, frozenset[Ability]]] = {
    "target": ("generate_batch", frozenset({"generate"})),
    "judge": ("judge_batch", frozenset({"generate"})),
    "reward": ("score_batch", frozenset({"reward"})),
}
"""By role: the method of a plug-in, and what it does."""


@dataclass(frozen=True, slots=True)
class RowGenerate(Generate):
    """A prompt with the dict that a plug-in is to see. key: of the row, so that two rows with one
    prompt are two requests.

    found: takes what the plug-in returned beside what it was given; mutated: the same, where it
    did so in that very dict, which HRET's best_of_n keeps.
    """

    row: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    reply_fields: dict[str, Any] = field(
        default_factory=dict, compare=False, repr=False
    )
    mutated: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    key: str = ""

    def payload(self) -> dict[str, Any]:
        """What names this request by its content."""
        return {**Generate.payload(self), "row": self.key}


@dataclass(frozen=True, slots=True)
class RowReward(Reward):
    """A reply to be rewarded, with its row."""

    row: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    key: str = ""

    def payload(self) -> dict[str, Any]:
        """What names this request by its content."""
        return {**Reward.payload(self), "row": self.key}


class PluginModel(LocalModel):
    """A plug-in in one role.

    Nobody can know whether it would answer the same again, so its answers are of one run.
    rules: whether a reply without a text is an answer.
    """

    heavy = False
    carries = frozenset(
        {
            "images",
            "json_schema",
            "min_p",
            "reasoning_budget",
            "reasoning_effort",
            "top_k",
            "top_logprobs",
        }
    )

    def __init__(self, name: str, plugin: Any, role: str, rules: Rules) -> None:
        method, self.abilities = METHODS[role]
        self.name = f"hret-{role}/{name}"
        self.rules = rules
        self.role = role
        self._call: Callable[..., Any] = getattr(plugin, method)
        parameters = inspect.signature(self._call).parameters.values()
        self._takes = {parameter.name for parameter in parameters}
        self._takes_all = any(
            parameter.kind is parameter.VAR_KEYWORD for parameter in parameters
        )

    def answer_batch(
        self, requests: Sequence[Request]
    ) -> Iterator[tuple[int, Response | Failure]]:
        """One call of the plug-in for all requests that are asked alike, in the order of the
        requests.
        """
        groups: dict[str, tuple[dict[str, Any], list[int]]] = {}
        for request_index, request in enumerate(requests):
            options = self._settings(request)
            groups.setdefault(repr(options), (options, []))[1].append(request_index)
        for options, places in groups.values():
            rows = [getattr(requests[index], "row", {}) for index in places]
            row_copies = [
                {**copy.deepcopy(row), ID: number} for number, row in enumerate(rows)
            ]
            ids_of_copies = {id(row_copy) for row_copy in row_copies}
            # a thread of its own
            with using(self.rules):
                returned = self._call(row_copies, **options)
            if not isinstance(returned, list | tuple):
                raise TypeError(
                    f"it returned {type(returned).__name__}, not a list of samples"
                )
            changed = {
                sample.get(ID) for sample in returned if id(sample) in ids_of_copies
            }
            samples = matched(list(returned), len(rows))
            for number, (request_index, row, sample) in enumerate(
                zip(places, rows, samples, strict=True)
            ):
                request = requests[request_index]
                response = self._response(request, row, sample)
                if number in changed and isinstance(request, RowGenerate):
                    request.mutated.update({**request.reply_fields, ID: request_index})
                yield request_index, response

    def _settings(self, request: Request) -> dict[str, Any]:
        """Options for the method, of those that it takes."""
        if not isinstance(request, Generate):
            return {}
        settings = {
            "return_logits": None if request.top_logprobs is None else True,
            "max_new_tokens": request.max_tokens,
            "until": list(request.stop) or None,
        }
        return {
            name: value
            for name, value in settings.items()
            if value is not None and (self._takes_all or name in self._takes)
        }

    def _response(
        self, request: Request, row: Given, sample: dict[str, Any] | None
    ) -> Response | Failure:
        if sample is None:
            return self._failed("it returned no sample for this one")
        if isinstance(request, Reward):
            reward = _number(sample.get("reward"))
            return (
                self._failed("it gave no reward")
                if reward is None
                else Response(values=(reward,))
            )
        text = sample.get("prediction")
        if fault := self.rules.fault_of(sample):
            return self._failed(fault)
        if isinstance(request, RowGenerate):
            new = {
                key: field_value
                for key, field_value in sample.items()
                if key not in row or not _same(row[key], field_value)
            }
            request.reply_fields.update(new)
            if isinstance(text, str):
                request.reply_fields.pop("prediction", None)
        return _response(
            text,
            sample,
            _number(sample.get("judge_score")) if self.role == "judge" else None,
        )

    def _failed(self, why: str) -> Failure:
        return Failure(
            "bad reply", "model", f"The plug-in '{self.name}' failed: {why}."
        )


def matched(returned: list[Any], n: int) -> list[dict[str, Any] | None]:
    """The returned samples in the order that was given: by their id, else by their place where
    there are as many as were given.
    """
    samples = [sample for sample in returned if isinstance(sample, Mapping)]
    by_id = {
        sample[ID]: sample for sample in samples if isinstance(sample.get(ID), int)
    }
    left = [index for index in range(n) if index not in by_id]
    without_id = [sample for sample in samples if not isinstance(sample.get(ID), int)]
    if len(without_id) == len(left):
        by_id |= dict(zip(left, without_id, strict=True))
    in_order = [by_id.get(index) for index in range(n)]
    return [
        None if sample is None else {k: value for k, value in sample.items() if k != ID}
        for sample in in_order
    ]


def _response(text: Any, sample: Given, score: float | None) -> Response:
    logits = sample.get("logits")
    logits = logits if isinstance(logits, Mapping) else {}
    tokens = logits.get("token_log_probs") or ()
    texts = [str(token_text) for token_text in logits.get("tokens") or ()] + [""] * len(
        tokens
    )
    options = tuple(
        float(log_probability)
        for log_probability in logits.get("option_log_probs") or ()
    )
    return Response(
        text="" if text is None else str(text),
        log_likelihood=_number(logits.get("sum_log_prob")),
        values=options if score is None else (score,),
        tokens=tuple(
            TokenLogProb(token_text, float(value))
            for token_text, value in zip(texts, tokens, strict=False)
        ),
    )


def _number(value: Any) -> float | None:
    return (
        float(value)
        if isinstance(value, int | float) and not isinstance(value, bool)
        else None
    )


def _same(a: Any, b: Any) -> bool:
    try:
        return bool(a == b)
    except Exception:
        return False
