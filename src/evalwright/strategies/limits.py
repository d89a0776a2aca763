"""The limits of a trajectory. Reaching one is an outcome of the model, and is scored."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from evalwright.core.responses import Response

_log = logging.getLogger("evalwright.strategies")

_WITHOUT_PRICE = (
    "`limits.dollars` does not end a trajectory whose replies have no price: give one with --price,"
    " or limit tokens."
)
_WITHOUT_TOKENS = (
    "`limits.tokens` does not end a trajectory whose replies do not say their tokens, as those of"
    " this server: limit messages or seconds."
)
_warned: set[str] = set()


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a model may act; None for a limit that is not set.

    Args:
        messages: replies of the model.
        tokens: tokens read and written, over all replies.
        dollars: the price of all replies, where prices are known.
        seconds: time of the model's replies and of tools; waiting for a rate limit does not count.
    """

    messages: int | None = 50
    tokens: int | None = None
    dollars: float | None = None
    seconds: float | None = None

    def warn_of_unknown(self, responses: Iterable[Response]) -> None:
        """Warn, once each, of limits that count nothing because replies do not say how much.

        Args:
            responses: the replies so far.
        """
        for response in responses:
            if self.dollars is not None and response.cost is None:
                _warn_once(_WITHOUT_PRICE)
            if self.tokens is not None and _says_no_tokens(response):
                _warn_once(_WITHOUT_TOKENS)


def _says_no_tokens(response: Response) -> bool:
    usage = response.usage
    return not (usage.input_tokens or usage.output_tokens)


def _warn_once(message: str) -> None:
    if message not in _warned:
        _warned.add(message)
        _log.warning(message)
