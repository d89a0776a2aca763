"""Access to the Hugging Face Hub, which may be out of reach.

The hub's own library tries a request six times, over half a minute, and prints each try. Here one
quick request comes first: if the hub does not answer, the library works with what is on this
machine, and whatever is missing is reported in one sentence.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import RLock
from typing import Any

from evalwright.core.errors import OutOfReach, cause_of

PATIENCE_SECONDS = 10.0
"""Seconds that the first request may take."""

OFFLINE_IS_SET = "HF_HUB_OFFLINE is set"

_logger = logging.getLogger("evalwright.tasks.datasets.hub")
TRUSTED_SECONDS = 60.0
"""Seconds for which the outcome of the first request is trusted: a task of 57 parts asks once."""

_settings_of_libraries = RLock()
"""Held while the hub's libraries are told to stay offline, a setting of the whole process."""


@dataclass(frozen=True, slots=True)
class _Try:
    """The last request: when it was sent, and why it was not answered; "" if it was."""

    seconds: float
    reason: str


_last_try: dict[str, _Try] = {}
"""The last request by the hub's address."""


def unreachable_hub(repository: str, revision: str | None = None) -> str:
    """Return why the hub cannot be reached for a dataset; "" if it answers, even with a refusal."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return OFFLINE_IS_SET
    last = _last_try.get(constants.ENDPOINT)
    now = time.monotonic()
    if last is None or now - last.seconds > TRUSTED_SECONDS:
        last = _Try(now, _asked_in_vain(repository, revision))
        _last_try[constants.ENDPOINT] = last
    return last.reason


def _asked_in_vain(repository: str, revision: str | None) -> str:
    from huggingface_hub import HfApi, errors

    try:
        HfApi().dataset_info(repository, revision=revision, timeout=PATIENCE_SECONDS)
    except (errors.HfHubHTTPError, errors.HFValidationError) as error:
        response = getattr(error, "response", None)
        status = 0 if response is None else response.status_code
        return f"it answered {status}" if status in (502, 503, 504) else ""
    except (
        Exception
    ) as error:  # the hub's client lets errors of its HTTP library through
        return _reason(error)
    return ""


def not_here(subject: str, reason: str) -> OutOfReach:
    """Make the error for hub data that are not on this machine while the hub cannot be reached."""
    if reason == OFFLINE_IS_SET:
        advice = (
            "Run the command once without that setting and with a connection: what is"
            " fetched is kept, and later runs need no network."
        )
    else:
        advice = (
            "Run the command once with a connection (HTTPS_PROXY names a proxy,"
            " HF_ENDPOINT a mirror): what is fetched is kept, and later runs need no"
            " network."
        )
    return OutOfReach(
        f"{subject} is not on this machine, and the Hugging Face Hub cannot be reached"
        f" ({reason}). {advice}"
    )


@contextmanager
def hub_libraries(
    subject: str, repository: str, revision: str | None = None
) -> Iterator[str]:
    """Keep the hub's libraries quiet, and offline where the hub is out of reach, within a block.

    Args:
        subject: the beginning of the error's sentence, such as "The dataset 'owner/name'".
        repository: the requested dataset.
        revision: its commit or tag.

    Returns:
        A context manager that gives why the hub is out of reach, "" if it is not.

    Raises:
        OutOfReach: the hub is out of reach and something was needed from it.
    """
    with _hushed():
        reason = unreachable_hub(repository, revision)
        if not reason:
            yield ""
            return
        try:
            with _offline():
                yield reason
        except Exception as error:
            if not _is_absence(error):
                raise
            _logger.debug("Without the hub: %s", cause_of(error))
            raise not_here(subject, reason) from error


def _is_absence(error: Exception) -> bool:
    """Return whether a library error means that data or the hub is missing.

    The alternative is that it refuses what it has (such as a split that does not exist).
    """
    text = str(error).lower()
    return (
        isinstance(error, OSError) or "couldn't find cache" in text or "offline" in text
    )


@contextmanager
def _hushed() -> Iterator[None]:
    """Silence the log of the hub's library, unless the user wants to see everything."""
    library_logger = logging.getLogger("huggingface_hub")
    before = library_logger.level
    if not _logger.isEnabledFor(logging.DEBUG):
        library_logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        library_logger.setLevel(before)


@contextmanager
def _offline() -> Iterator[None]:
    """Make the libraries behave as if HF_HUB_OFFLINE had been set when they were imported."""
    places: list[Any] = []
    with suppress(ImportError):
        from huggingface_hub import constants

        places.append(constants)
    with suppress(ImportError):
        from datasets import config

        places.append(config)
    with _settings_of_libraries:
        before = [variable.HF_HUB_OFFLINE for variable in places]
        try:
            for variable in places:
                variable.HF_HUB_OFFLINE = True
            yield
        finally:
            for variable, was_offline in zip(places, before, strict=True):
                variable.HF_HUB_OFFLINE = was_offline


def _reason(error: BaseException) -> str:
    """Return the part of a network error that is useful to a person."""
    text = cause_of(error)
    return text if len(text) <= 120 else type(error).__name__
