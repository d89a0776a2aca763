"""Classes of users as models of the engine: they get copies of rows, and what they return is matched back by an injected id."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evalwright.compat.hret import settings
from evalwright.compat.hret.settings import Given
from evalwright.core.errors import Failure
from evalwright.core.requests import Ability, Generate, Request, Reward
from evalwright.core.responses import Response, TokenLogProb
from evalwright.models.base import EVERY_OPTION, LocalModel

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
    """A prompt with the dict that a plug-in is to see. key: of the row, so that two rows with one prompt are two requests.

    found: takes what the plug-in returned beside what it was given; mutated: the same, where it
    did so in that very dict, which HRET's best_of_n keeps.
    """

    row: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    found: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
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
    """A plug-in in one role. Nobody can know whether it would answer the same again, so its answers are of one run.

    published: a reply without a text is an answer, as it is to HRET; else it is a failure.
    """

    heavy = False
    carries = EVERY_OPTION - {"num_beams", "length_penalty", "early_stopping"}

    def __init__(self, name: str, plugin: Any, role: str, *, published: bool) -> None:
        method, self.abilities = METHODS[role]
        self.name = f"hret-{role}/{name}"
        self.published, self.role = published, role
        self._call: Callable[..., Any] = getattr(plugin, method)
        known = inspect.signature(self._call).parameters.values()
        self._takes = {one.name for one in known}
        self._takes_all = any(one.kind is one.VAR_KEYWORD for one in known)

    def answer_batch(self, requests: Sequence[Request]) -> Iterator[tuple[int, Response | Failure]]:
        """One call of the plug-in for all requests that are asked alike, in the order of the requests."""
        groups: dict[str, tuple[dict[str, Any], list[int]]] = {}
        for place, request in enumerate(requests):
            asked = self._settings(request)
            groups.setdefault(repr(asked), (asked, []))[1].append(place)
        for asked, places in groups.values():
            rows = [getattr(requests[place], "row", {}) for place in places]
            given = [{**copy.deepcopy(row), ID: number} for number, row in enumerate(rows)]
            own = {id(one) for one in given}
            with settings.using("published" if self.published else "corrected"):  # a thread of its own
                returned = self._call(given, **asked)
            if not isinstance(returned, list | tuple):
                raise TypeError(f"it returned {type(returned).__name__}, not a list of samples")
            changed = {one.get(ID) for one in returned if id(one) in own}
            found = matched(list(returned), len(rows))
            for number, (place, row, one) in enumerate(zip(places, rows, found, strict=True)):
                request = requests[place]
                response = self._response(request, row, one)
                if number in changed and isinstance(request, RowGenerate):
                    request.mutated.update({**request.found, ID: place})
                yield place, response

    def _settings(self, request: Request) -> dict[str, Any]:
        """Options for the method, of those that it takes."""
        if not isinstance(request, Generate):
            return {}
        wanted = {
            "return_logits": None if request.top_logprobs is None else True,
            "max_new_tokens": request.max_tokens,
            "until": list(request.stop) or None,
        }
        return {
            name: value
            for name, value in wanted.items()
            if value is not None and (self._takes_all or name in self._takes)
        }

    def _response(self, request: Request, row: Given, found: dict[str, Any] | None) -> Response | Failure:
        if found is None:
            return self._failed("it returned no sample for this one")
        if isinstance(request, Reward):
            reward = _number(found.get("reward"))
            return self._failed("it gave no reward") if reward is None else Response(values=(reward,))
        text = found.get("prediction")
        if not self.published and (found.get("error") or text is None):
            return self._failed(str(found.get("error") or "it gave no prediction"))
        if isinstance(request, RowGenerate):
            new = {key: one for key, one in found.items() if key not in row or not _same(row[key], one)}
            request.found.update(new)
            if isinstance(text, str):
                request.found.pop("prediction", None)
        return _response(text, found, _number(found.get("judge_score")) if self.role == "judge" else None)

    def _failed(self, why: str) -> Failure:
        return Failure("bad reply", "model", f"The plug-in '{self.name}' failed: {why}.")


def matched(returned: list[Any], n: int) -> list[dict[str, Any] | None]:
    """The returned samples in the order that was given: by their id, else by their place where there are as many as were given."""
    samples = [one for one in returned if isinstance(one, Mapping)]
    by_id = {one[ID]: one for one in samples if isinstance(one.get(ID), int)}
    left = [place for place in range(n) if place not in by_id]
    rest = [one for one in samples if not isinstance(one.get(ID), int)]
    if len(rest) == len(left):
        by_id |= dict(zip(left, rest, strict=True))
    kept = [by_id.get(place) for place in range(n)]
    return [None if one is None else {k: value for k, value in one.items() if k != ID} for one in kept]


def _response(text: Any, found: Given, score: float | None) -> Response:
    logits = found.get("logits")
    logits = logits if isinstance(logits, Mapping) else {}
    tokens = logits.get("token_log_probs") or ()
    texts = [str(one) for one in logits.get("tokens") or ()] + [""] * len(tokens)
    options = tuple(float(one) for one in logits.get("option_log_probs") or ())
    return Response(
        text="" if text is None else str(text),
        log_likelihood=_number(logits.get("sum_log_prob")),
        values=options if score is None else (score,),
        tokens=tuple(TokenLogProb(said, float(value)) for said, value in zip(texts, tokens, strict=False)),
    )


def asked_for(options: Given) -> dict[str, Any]:
    """What `generate_batch` is told of one call, as settings of a request."""
    until = options.get("until") or ()
    given: dict[str, Any] = {"stop": (until,) if isinstance(until, str) else tuple(until)}
    if options.get("max_new_tokens") is not None:
        given["max_tokens"] = options["max_new_tokens"]
    if options.get("return_logits"):
        given["top_logprobs"] = 0
    return given


def replied(row: Given, response: Response) -> dict[str, Any]:
    """A row with a reply as HRET's models write it: `prediction`, and `logits` where there are log-probabilities."""
    values = [token.log_prob for token in response.tokens]
    texts = [token.text for token in response.tokens]
    logits = {"sum_log_prob": sum(values), "token_log_probs": values, "tokens": texts}
    return {**row, **({"logits": logits} if values else {}), "prediction": response.text}


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _same(a: Any, b: Any) -> bool:
    try:
        return bool(a == b)
    except Exception:
        return False
