"""Everything that can go wrong, as one tree:

    EvalwrightError                base of all: str(error) is a sentence for a person
    ├── UsageError                 a person can mend it; the command line exits with 2
    │   ├── ConfigurationError     a setting that cannot be used
    │   ├── UnknownName            a name that does not exist; suggests the closest ones
    │   ├── MissingExtra           an optional library is not installed
    │   ├── TaskError              a task definition that cannot be used
    │   ├── DatasetError           data that cannot be read
    │   │   └── OutOfReach         data of a hub that cannot be fetched now
    │   ├── AbilityError           the model cannot do what the task needs
    │   └── RunError               a run folder that cannot be read or written
    ├── StoreError                 the store is locked, full, damaged or too new
    ├── ScoringError               a scorer raised, or could not score
    ├── RequestError               one request failed; recorded as a Failure
    │   ├── RateLimited            429 (retried)
    │   ├── Overloaded             500, 502, 503, 504, 529 (retried)
    │   ├── ConnectionFailed       no connection, or it broke (retried)
    │   ├── TimedOut               no reply within the time allowed (retried)
    │   ├── BadReply               not what the interface documents (retried)
    │   ├── EmptyReply             no content, and no reason for it (retried once)
    │   ├── WrongModel             the reply names another model (retried)
    │   ├── StillWriting           the model was writing when its time was over
    │   ├── AuthenticationFailed   the key is missing or wrong: 401, 403
    │   ├── Rejected               the request itself is wrong: 400, 404, 413, 422
    │   │   └── PromptTooLong      the prompt does not fit the model's context
    │   ├── ModelError             a local model raised an error
    │   └── Cancelled              the run stopped first (retried by the next run)
    └── RequestFailed              what `ask` raises once a request failed for good

Each has a `party`, who failed; a RequestError also says whether sending it again may help
(`retryable`). Other rooms derive their own errors from these.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, ClassVar, Literal

from evalwright.core.responses import Usage

Party = Literal[
    "provider",
    "model",
    "task",
    "dataset",
    "scorer",
    "judge",
    "sandbox",
    "configuration",
    "store",
]


class EvalwrightError(Exception):
    """Base class of all errors that Evalwright raises.

    `str(error)` is a sentence for a person: what happened, why, what to do.
    """

    party: Party = "configuration"


def reason_of(error: BaseException) -> str:
    """Format an error as text: its message, after the class name if it is not one of ours."""
    return (
        str(error)
        if isinstance(error, EvalwrightError)
        else f"{type(error).__name__}: {error}"
    )


class UsageError(EvalwrightError):
    """An error that the user can fix: arguments, files, names. The command line exits with 2."""


class ConfigurationError(UsageError):
    """A setting that cannot be used."""


class UnknownName(UsageError):
    """A name that does not exist; the message suggests the closest known names.

    Args:
        kind: what the name should be, as in "option of the scorer 'numeric'".
        name: the unknown name.
        known: all names that exist.
        hint: a sentence at the end of the message.
        where: the file, or the file and the line, that has the name; begins the message.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        known: Iterable[str],
        hint: str = "",
        *,
        where: str = "",
    ) -> None:
        self.name = name
        self.suggestions = closest(name, known)
        noun, within, owner = (
            kind.partition(" of ") if " of " in kind else kind.partition(" in ")
        )
        place = f"{where}: " if where else ""
        message = f"{place}Unknown {noun} '{name}'{within}{owner}."
        if self.suggestions:
            message += f" Did you mean {_join_with_or(self.suggestions)}?"
        super().__init__(f"{message} {hint}".rstrip())


class MissingExtra(UsageError):
    """An optional library is not installed.

    Args:
        feature: what needs the library; the message begins with it.
        extra: the extra of `evalwright` that installs the library.
        library: the library's name.
        first: a command that has to run before the installation.
    """

    def __init__(
        self, feature: str, extra: str, library: str, *, first: str = ""
    ) -> None:
        super().__init__(
            f"{feature} needs the library '{library}', which is not installed. Install it"
            f" with: {f'{first}, then ' if first else ''}pip install"
            f" 'evalwright[{extra}]'"
        )


class TaskError(UsageError):
    """A task definition that cannot be used; the message names file and line if there are any."""

    party: Party = "task"


class DatasetError(UsageError):
    """Data that cannot be read; the message names file and row."""

    party: Party = "dataset"


class OutOfReach(DatasetError):
    """Data on a hub that cannot be fetched now.

    In a run of several tasks, only the task that needs the data fails.
    """


class AbilityError(UsageError):
    """The model cannot do what the task asks."""

    party: Party = "model"


class StoreError(EvalwrightError):
    """The store's file cannot be used: it is locked, full, damaged or too new."""

    party: Party = "store"


class RunError(UsageError):
    """A run folder that cannot be read or written."""


class ScoringError(EvalwrightError):
    """A scorer raised an error, or could not score the answer."""

    party: Party = "scorer"


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed request, answer or score, as data; never scored, never stored as a response.

    Args:
        kind: the error's class in words, such as "rate limited".
        party: who failed: "provider", "model", "task", "dataset", "scorer", "judge", "sandbox",
            "configuration" or "store".
        message: what happened, in a sentence.
        retryable: whether sending the request again may help.
        status: the HTTP status, where there was one.
        attempts: how often the request was sent.
        usage: tokens of all attempts, including unusable replies and estimates; None where nothing
            was used or the number is unknown.
        cost: US dollars of all attempts; None likewise.
    """

    kind: str
    party: Party
    message: str
    retryable: bool = False
    status: int | None = None
    attempts: int = 1
    usage: dict[str, int] | None = field(default=None, hash=False)
    cost: float | None = None

    @property
    def label(self) -> str:
        """The name under which failures are counted: the kind, after "judge: " for a judge."""
        return f"judge: {self.kind}" if self.party == "judge" else self.kind

    def as_dict(self) -> dict[str, Any]:
        """Return a plain mapping for JSON, leaving out usage and cost where there are none."""
        attributes = {name: getattr(self, name) for name in self.__slots__}
        return {
            name: value
            for name, value in attributes.items()
            if value is not None or name == "status"
        }


class RequestError(EvalwrightError):
    """One request failed.

    Attributes:
        taken: whether the server may have begun to work on the request, and so may bill it.
        prompt_only: whether it can only bill for reading the prompt.
        status: the HTTP status, where there was one.
        retry_after: seconds to wait, where the server named a time.
        usage: tokens that an unusable reply says it used.
        cost: US dollars that an unusable reply says it cost.
        reply: the readable JSON of a broken reply, and whether its usage is final.
    """

    party: Party = "provider"
    kind: ClassVar[str] = "request failed"
    retryable: ClassVar[bool] = False
    taken: bool = True
    prompt_only: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        rate_limits: Any = None,
        taken: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.usage: Usage | None = None
        self.cost: float | None = None
        self.reply: tuple[Any, bool] | None = None
        if taken is not None:
            self.taken = taken
        self.status = status
        self.retry_after = retry_after
        self.rate_limits = rate_limits

    def as_failure(self, attempts: int = 1) -> Failure:
        """Return the error as a Failure record."""
        return Failure(
            self.kind, self.party, str(self), self.retryable, self.status, attempts
        )


class RateLimited(RequestError):
    """The provider asks for fewer requests: 429 and similar replies."""

    kind = "rate limited"
    retryable = True
    taken = False


class Overloaded(RequestError):
    """The provider failed on its side: 500, 502, 503, 504, 529."""

    kind = "server error"
    retryable = True
    taken = False


class ConnectionFailed(RequestError):
    """There was no connection, or it broke before the reply was complete."""

    kind = "connection failed"
    retryable = True


class TimedOut(RequestError):
    """No reply came within the allowed time."""

    kind = "timed out"
    retryable = True


class BadReply(RequestError):
    """The reply is not what the API documents: broken JSON, wrong content type, missing fields."""

    kind = "bad reply"
    retryable = True


class EmptyReply(RequestError):
    """The reply has no content and gives no reason.

    The request is sent once more; if that reply is empty too, it counts as the model's answer.
    """

    kind = "empty reply"
    party: Party = "model"
    retryable = True


class WrongModel(RequestError):
    """The reply names another model than the one that was requested."""

    kind = "wrong model"
    retryable = True


class StillWriting(RequestError):
    """The model was still sending its answer when the time limit was reached."""

    kind = "still writing"
    party: Party = "model"


class AuthenticationFailed(RequestError):
    """The key is missing, wrong, or not allowed to use this model: 401, 403."""

    kind = "authentication failed"
    taken = False


class Rejected(RequestError):
    """The provider says that the request itself is wrong (HTTP 400, 404, 413 or 422)."""

    kind = "request rejected"
    taken = False


NO_TOKEN_LOG_PROBS = "sent no log-probabilities of the answer's tokens"
"""Part of the message for a reply that lacks the log-probabilities that were requested.

Strategies that need them look for this text.
"""


class PromptTooLong(Rejected):
    """The prompt does not fit the model's context."""

    kind = "prompt too long"
    party: Party = "model"


class ModelError(RequestError):
    """A model's own code raised an error, or returned what is no answer."""

    kind = "model error"
    party: Party = "model"


class Cancelled(RequestError):
    """The run stopped before the response arrived."""

    kind = "cancelled"
    party: Party = "configuration"
    retryable = True


class RequestFailed(EvalwrightError):
    """Raised by `ask` once a request has failed for good.

    Args:
        failure: the failed request as data.
    """

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.party = failure.party


def cause_of(error: BaseException) -> str:
    """Say what went wrong in one line, without a full stop.

    A library's outer error often says only that something failed ("An error occurred while
    generating the dataset"); the reason is in the error that it was raised from.

    Args:
        error: the error.

    Returns:
        The error's first line, and that of its root cause.
    """
    chain = [error]
    seen = {id(error)}
    while (below := chain[-1].__cause__) is not None and id(below) not in seen:
        chain.append(below)
        seen.add(id(below))
    first, last = (_first_line(link) for link in (chain[0], chain[-1]))
    return first if last in first else f"{first}: {last}"


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines()]
    return next(filter(None, lines), type(error).__name__)[:500].rstrip(".: ")


MAX_LISTED_NAMES = 20
"""Number of names up to which a message lists all of them."""


def check_known(
    kind: str,
    names: Iterable[object],
    allowed: Collection[str],
    hint: str = "Known: ",
    *,
    where: str = "",
) -> None:
    """Raise UnknownName for the first name that does not exist.

    Args:
        kind: what the names are, as in "option of the scorer 'numeric'".
        names: the names to check.
        allowed: all names that exist.
        hint: the words before the list of allowed names; "" leaves out the list.
        where: the file, or the file and the line, that has the names; begins the message.

    Raises:
        UnknownName: one of them does not exist.
    """
    if unknown := [name for name in names if name not in allowed]:
        name = str(unknown[0])
        raise UnknownName(
            kind, name, allowed, hint and known_names(name, allowed, hint), where=where
        )


def known_names(name: str, names: Collection[str], before: str = "Known: ") -> str:
    """Write a sentence that lists the names that exist.

    Args:
        name: the unknown name.
        names: all names that exist.
        before: the words before the list.

    Returns:
        The sentence; "" where there are many names and some resemble the unknown one, since the
        error then suggests those instead.
    """
    if len(names) > MAX_LISTED_NAMES and closest(name, names):
        return ""
    return f"{before}{listed(names)}."


def listed(names: Collection[str], most: int = MAX_LISTED_NAMES) -> str:
    """Join names for a message: all of them, or the first few and how many more there are."""
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(list(names)[:most])} and {len(names) - most:,} more"


def closest(name: str, names: Iterable[str], most: int = 4) -> list[str]:
    """Find the known names that resemble a misspelt one.

    Args:
        name: the misspelt name.
        names: the known names.
        most: how many to return at most.

    Returns:
        The similar names, best first. Names that contain it as a hyphenated word replace all others
        ("f1": "token-f1").
    """
    table = {candidate.lower(): candidate for candidate in names}
    matches = sorted(
        key for key in table if "-" in key and name.lower() in key.split("-")
    )[:most]
    matches = matches or get_close_matches(
        name.lower(), list(table), n=most, cutoff=0.6
    )
    if not matches:
        matches = sorted(key for key in table if len(name) > 2 and name.lower() in key)[
            :most
        ]
    return [table[key] for key in matches]


def _join_with_or(names: list[str]) -> str:
    quoted = [f"'{name}'" for name in names]
    return (
        quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"
    )
