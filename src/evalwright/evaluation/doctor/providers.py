"""Sends real requests to providers whose keys are set, planned first and within a spending ceiling.

They use a store of their own. Every model gets a short question, once whole and once streamed, once
with the log-probabilities of its tokens if its row says that it gives them, and one request for a
model name that no provider has, which must be refused with a message that is recognised as such.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from evalwright.core.errors import EvalwrightError, Failure, RequestFailed, UsageError
from evalwright.core.requests import Generate, Message
from evalwright.core.responses import Response, Usage
from evalwright.engine.budget import SPENT, Amount, Budget, Limits
from evalwright.engine.engine import Engine
from evalwright.engine.key import canonical
from evalwright.engine.ledger import BYTES_PER_TOKEN
from evalwright.engine.sqlite import SqliteStore
from evalwright.evaluation.doctor.checks import Check, Outcome
from evalwright.evaluation.doctor.here import has_key
from evalwright.evaluation.running import run_blocking
from evalwright.models.model_interface import RemoteModel
from evalwright.models.registry import open_model
from evalwright.models.remote import providers
from evalwright.models.remote.api import ApiModel

DEFAULT_CEILING = "0.05 USD"
MAX_ANSWER_TOKENS = 256
"""Most tokens of an answer; they leave room for a model that thinks first."""
MAX_SCORED_TOKENS = 16
_ATTEMPTS = {"max_attempts": 1, "timeout": 60.0, "deadline": 60.0}
"""Settings for a single sending each, so that the announced cost is all that can be paid."""
_QUESTION = "What is the capital of France? Answer with the name of the city alone."
_EXPECTED = "paris"
_UNKNOWN_NAME = "evalwright-no-such-model"
_SHOWN_CHARS = 60

TEXT = "text"
STREAM = "stream"
LOG_PROBS = "log-probabilities"
UNKNOWN = "unknown name"


@dataclass(frozen=True, slots=True)
class PlannedRequest:
    """A request that is to be sent.

    `dollars` is the most that it may cost; None if no price is known.
    """

    subject: str
    name: str
    model: RemoteModel
    request: Generate
    dollars: float | None

    @property
    def tokens(self) -> int:
        """Return the most tokens that the request may use."""
        return _prompt_tokens(self.request) + (self.request.max_tokens or 0)


def plan_requests(
    models: Sequence[str], *, unpriced: bool = False
) -> tuple[list[PlannedRequest], list[Check]]:
    """Plan the requests; return them, and a check for each that is skipped.

    Args:
        models: names of models; without any, the example of every provider whose key is set.
        unpriced: whether to include models whose price is not known, which a ceiling in dollars
            cannot limit.

    Raises:
        UsageError: a named model cannot be used.
    """
    planned: list[PlannedRequest] = []
    skipped: list[Check] = []
    for name in models or _examples():
        try:
            requests = list(_requests_to(name))
        except UsageError as error:
            if models:
                raise
            skipped.append(Check("provider", name, TEXT, "skipped", str(error)))
            continue
        if (
            any(planned_request.dollars is None for planned_request in requests)
            and not unpriced
        ):
            why = (
                "no price is known, so the ceiling could not hold: add --unpriced to"
                " send it all the same"
            )
            skipped.append(Check("provider", name, TEXT, "skipped", why))
            continue
        planned += requests
    return planned, skipped


def send_requests(
    planned: Iterable[PlannedRequest], limits: Limits, say: Callable[[str], None]
) -> tuple[list[Check], Budget]:
    """Send the requests, one after the other for each model, and report each outcome.

    Those that the limits do not allow are skipped.
    """
    by_subject: dict[str, list[PlannedRequest]] = {}
    for planned_request in planned:
        by_subject.setdefault(planned_request.subject, []).append(planned_request)
    checks: list[Check]
    checks, budget = run_blocking(
        partial(_send_all, list(by_subject.values()), limits, say)
    )
    return checks, budget


def _examples() -> list[str]:
    """List the example of each provider whose key is set, in the order of their names."""
    rows = [
        row
        for name in providers.names()
        if has_key(name) and (row := providers.find(name)) is not None
    ]
    return [
        row.example
        for row in rows
        if row.example and "://localhost" not in row.base_url
    ]


def _requests_to(name: str) -> Iterable[PlannedRequest]:
    model = _opened(name)
    model.check()
    if "generate" not in model.abilities:
        raise UsageError(
            f"'{name}' does not write texts, and the doctor asks for nothing else."
        )
    question = (Message("user", _QUESTION),) if "chat" in model.abilities else _QUESTION
    generation = Generate(question, max_tokens=MAX_ANSWER_TOKENS)
    yield _planned(name, TEXT, model, generation)
    if (
        isinstance(model, ApiModel)
        and model.wire.gather is not None
        and not model.settings.stream
    ):
        yield _planned(name, STREAM, _opened(name, stream=True), generation)
    if "top_logprobs" in model.carries:
        scored = Generate(question, max_tokens=MAX_SCORED_TOKENS, top_logprobs=2)
        if model.refuses(scored) is None:
            yield _planned(name, LOG_PROBS, model, scored)
    nobody = _opened(_with_unknown_name(name))
    nobody.price = model.price
    yield _planned(
        name, UNKNOWN, nobody, Generate(question, max_tokens=MAX_SCORED_TOKENS)
    )


def _opened(name: str, **arguments: Any) -> RemoteModel:
    """Open a model with few attempts.

    Raises:
        UsageError: it is a local model.
    """
    if not isinstance(open_model(name, {}), RemoteModel):
        raise UsageError(
            f"'{name}' is a model in this process: --model names models of providers"
            " and servers."
        )
    model = open_model(name, {**_ATTEMPTS, **arguments})
    assert isinstance(model, RemoteModel)
    return model


def _with_unknown_name(name: str) -> str:
    provider, _, model = name.partition("/")
    if model.startswith(("http://", "https://")):
        return f"{provider}/{model.partition('#')[0]}#{_UNKNOWN_NAME}"
    return f"{provider}/{_UNKNOWN_NAME}"


def _planned(
    subject: str, name: str, model: RemoteModel, request: Generate
) -> PlannedRequest:
    used = Usage(
        _prompt_tokens(request), model.most_tokens(request) or MAX_ANSWER_TOKENS
    )
    dollars = None if model.price is None else model.price.cost(used)
    return PlannedRequest(subject, name, model, request, dollars)


def _prompt_tokens(request: Generate) -> int:
    """Estimate the prompt's tokens as the ledger does."""
    return len(canonical(request.payload())) // BYTES_PER_TOKEN + 1


class Ceiling:
    """Allows a request only if the most that it may cost fits within the limits.

    What was spent and what is in flight count too. A budget lets one sending exceed its limit if no
    other is in flight; a ceiling does not.
    """

    def __init__(self, limits: Limits) -> None:
        self.budget = Budget(limits)
        self._under_way = Amount()

    def allows(self, planned: PlannedRequest) -> bool:
        """Return whether a request may be sent; if so, its maximum is held until `ended`."""
        most = _most_of(planned)
        for name, limit in self.budget.limits.as_dict().items():
            used = getattr(self.budget.spent, name) + getattr(self._under_way, name)
            if used + getattr(most, name) > limit:
                return False
        self._under_way.add(most)
        return True

    def ended(self, planned: PlannedRequest) -> None:
        """Release the hold of a request that was answered or has failed."""
        self._under_way.add(_most_of(planned), times=-1.0)


def _most_of(planned: PlannedRequest) -> Amount:
    return Amount(1.0, planned.tokens, planned.dollars or 0.0)


async def _send_all(
    groups: Sequence[Sequence[PlannedRequest]],
    limits: Limits,
    say: Callable[[str], None],
) -> tuple[list[Check], Budget]:
    ceiling = Ceiling(limits)
    with (
        tempfile.TemporaryDirectory() as folder,
        SqliteStore.open(Path(folder)) as store,
    ):
        async with Engine(store, on_event=say) as engine:
            groups_of_checks = await asyncio.gather(
                *(_send_group(group, engine, ceiling) for group in groups)
            )
    return [check for checks in groups_of_checks for check in checks], ceiling.budget


async def _send_group(
    group: Sequence[PlannedRequest], engine: Engine, ceiling: Ceiling
) -> list[Check]:
    checks = []
    for planned in group:
        if not ceiling.allows(planned):
            why = "the ceiling does not allow for the most that it may cost"
            checks.append(
                Check("provider", planned.subject, planned.name, "skipped", why)
            )
            continue
        try:
            checks.append(await _send(planned, engine, ceiling.budget))
        finally:
            ceiling.ended(planned)
    return checks


async def _send(planned: PlannedRequest, engine: Engine, budget: Budget) -> Check:
    door = engine.door({"target": planned.model})
    reservation = budget.reservation()
    began = time.monotonic()
    response: Response | None = None
    failure: Failure | None = None
    try:
        response = await door.paid_by(reservation)("target", planned.request)
    except RequestFailed as failed:
        failure = failed.failure
    except EvalwrightError as error:
        failure = Failure("request failed", error.party, str(error))
    finally:
        reservation.close()
    outcome, why = _judged(planned, response, failure)
    facts = _facts(response, failure, door.reply_names().get("target", []))
    return Check(
        "provider",
        planned.subject,
        planned.name,
        outcome,
        why,
        round(time.monotonic() - began, 2),
        facts,
    )


def _judged(
    planned: PlannedRequest, response: Response | None, failure: Failure | None
) -> tuple[Outcome, str]:
    """Judge a request: its outcome, and why."""
    if failure is not None and failure.kind == SPENT:
        return "skipped", "the ceiling did not allow for it"
    if planned.name == UNKNOWN:
        return _judged_unknown(response, failure)
    if (
        failure is not None
        and planned.name == LOG_PROBS
        and failure.kind == "request rejected"
    ):
        return "look", failure.message
    if failure is not None:
        return "fails", failure.message
    assert response is not None
    excerpt = " ".join(response.text.split())
    excerpt = excerpt if len(excerpt) <= _SHOWN_CHARS else f"{excerpt[:_SHOWN_CHARS]}…"
    if planned.name == LOG_PROBS:
        return "works", f"{len(response.tokens)} tokens with their log-probabilities"
    if response.finish_reason == "length" and _EXPECTED not in response.text.casefold():
        return "look", f"the answer was cut at {MAX_ANSWER_TOKENS} tokens: '{excerpt}'"
    if _EXPECTED not in response.text.casefold():
        return "look", f"another answer than expected: '{excerpt}'"
    if not response.counted:
        return (
            "look",
            (
                f"'{excerpt}', and the reply does not count its tokens, so what is paid"
                " is an estimate"
            ),
        )
    return "works", f"'{excerpt}'"


def _judged_unknown(
    response: Response | None, failure: Failure | None
) -> tuple[Outcome, str]:
    if response is not None:
        return (
            "look",
            (
                "a name that does not exist is answered: check that a model's name has"
                " an effect there"
            ),
        )
    assert failure is not None
    if (
        failure.kind in ("request rejected", "authentication failed", "wrong model")
        and not failure.retryable
    ):
        return "works", f"refused: {failure.message}"
    if failure.kind == "wrong model":
        return "works", f"noticed: {failure.message}"
    return "fails", f"refused in a way that is not understood: {failure.message}"


def _facts(
    response: Response | None,
    failure: Failure | None,
    names: Sequence[dict[str, object]],
) -> dict[str, Any]:
    facts: dict[str, Any] = {"names": list(names)} if names else {}
    if failure is not None:
        return facts | {"failure": failure.as_dict()}
    assert response is not None
    limits = response.rate_limits
    return facts | {
        "finish_reason": response.finish_reason,
        "usage": response.usage.as_dict(),
        "dollars": response.cost,
        "has_reasoning": response.reasoning != "",
        "announces_limits": (
            limits is not None
            and any(getattr(limits, name) is not None for name in limits.__slots__)
        ),
    }
