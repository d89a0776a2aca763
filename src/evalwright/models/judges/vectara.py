"""`vectara/<model>`: factual consistency by Vectara's REST interface, POST /v2/evaluate_factual_consistency.

    vectara/hhem_v2.3        the key from VECTARA_API_KEY

The model's name is always sent, so that a default that changes on the other side changes nothing here unseen.
"""

from __future__ import annotations

import math
import re
from typing import Any

from evalwright.core.errors import AuthenticationFailed, ConfigurationError, Rejected
from evalwright.core.requests import Ability, Classify, Request
from evalwright.core.responses import Response
from evalwright.models.base import Pacing, RemoteModel, fingerprint_of
from evalwright.models.judges.cleaning import clean_text
from evalwright.models.registry import model
from evalwright.models.remote.exchange import Call, Reply
from evalwright.models.remote.http import HttpClient, check_url
from evalwright.models.remote.http_faults import bad_reply
from evalwright.models.remote.keys import find_key, is_local, missing_key

OFFICIAL = "https://api.vectara.io"
PATH = "/v2/evaluate_factual_consistency"
KEY = "VECTARA_API_KEY"
LANGUAGES = ("ara", "deu", "eng", "fra", "hin", "jpn", "kor", "por", "rus", "spa", "zho")
"""Languages that the interface documents, by ISO 639-3; others are sent as they are and may be refused (422)."""

_CLEANING = ("hhem", "none")


@model("vectara")
class VectaraModel(RemoteModel):
    """P(supported) as Vectara's interface scores it.

    base_url: scheme and host, up to what precedes /v2. api_key_env: the key's variable. language: ISO 639-3, sent where given.
    cleaning: "hhem" puts white space and punctuation in order first, as the makers' leaderboard does; "none" sends both texts
    as they are. timeout, deadline: seconds for an attempt and for a request with its attempts. max_concurrency: requests
    in flight. max_attempts: how often one is sent at the most.

    Raises ConfigurationError for arguments that cannot be used; a missing key is told by `check`, so that answers from the
    store need none.
    """

    abilities: frozenset[Ability] = frozenset({"classify"})

    def __init__(
        self,
        name: str,
        *,
        base_url: str = OFFICIAL,
        api_key_env: str = KEY,
        language: str | None = None,
        cleaning: str = "hhem",
        timeout: float = 30.0,
        deadline: float = 600.0,
        max_concurrency: int = 32,
        max_attempts: int = 10,
    ) -> None:
        self.name = f"vectara/{name}"
        self.model = name
        self.base_url = check_url(base_url).removesuffix("/v2")
        if language is not None and not re.fullmatch(r"[a-z]{3}", str(language)):
            raise ConfigurationError(
                f"language={language!r} must be a language code of ISO 639-3, three lower-case letters: {', '.join(LANGUAGES)}."
            )
        if cleaning not in _CLEANING:
            raise ConfigurationError(f"cleaning={cleaning!r} must be one of {', '.join(_CLEANING)}.")
        self._language, self._cleaning = language, cleaning
        self._key_variable = api_key_env
        # The usual key does not travel unencrypted over the internet unless its variable was named.
        safe = self.base_url.startswith("https:") or is_local(self.base_url) or api_key_env != KEY
        self._key = find_key(api_key_env) if safe else None
        self.pacing = _pacing(timeout, deadline, max_concurrency, max_attempts)
        self.fingerprint = fingerprint_of(self._identity())
        headers = {"Accept": "application/json"}
        if self._key is not None:
            headers["x-api-key"] = self._key.reveal()
        self._client = HttpClient(
            self.base_url,
            headers=headers,
            max_connections=self.pacing.max_concurrency,
            timeout=self.pacing.timeout,
            key_source=self._key.source if self._key else "",
        )

    def describe(self) -> dict[str, Any]:
        """Endpoint, model and arguments; never a key."""
        return {
            **super().describe(),
            **self._identity(),
            "key": self._key.source if self._key else "none",
            "values": ["not supported", "supported"],
        }

    def check(self) -> None:
        """Raise ConfigurationError where a key is needed and missing."""
        if self._key is None and not is_local(self.base_url):
            raise ConfigurationError(
                missing_key(self._key_variable, f"The model '{self.name}' at {self.base_url}")
            )

    async def answer(self, request: Request) -> Response:
        """Send once."""
        if not isinstance(request, Classify):
            raise Rejected(f"'{self.name}' classifies pairs; it cannot do '{request.ability}'.")
        if self._key is None and not is_local(self.base_url):
            raise AuthenticationFailed(missing_key(self._key_variable, f"The model '{self.name}'"))
        premise, hypothesis = request.premise, request.hypothesis
        if self._cleaning == "hhem":
            premise, hypothesis = clean_text(premise), clean_text(hypothesis)
        payload: dict[str, Any] = {
            "generated_text": hypothesis,
            "source_texts": [premise],
            "model_parameters": {"model_name": self.model},
        }
        if self._language is not None:
            payload["language"] = self._language
        return self._read(await self._client.send(Call(PATH, payload)))

    async def close(self) -> None:
        """Release connections."""
        await self._client.close()

    def _read(self, reply: Reply) -> Response:
        score = reply.data.get("score") if isinstance(reply.data, dict) else None
        if isinstance(score, bool) or not isinstance(score, int | float) or not 0.0 <= score <= 1.0:
            raise bad_reply(self._client.where, "a score between 0 and 1", _shown(reply.data))
        supported = float(score)
        return Response(
            values=(1.0 - supported, supported),
            latency=reply.seconds,
            model=self.model,
            rate_limits=reply.rate_limits,
        )

    def _identity(self) -> dict[str, Any]:
        return {
            "provider": "vectara",
            "base_url": self.base_url,
            "model": self.model,
            "language": self._language,
            "cleaning": self._cleaning,
        }


def _shown(data: Any) -> str:
    import json

    return json.dumps(data, ensure_ascii=False)[:200]


def _pacing(timeout: float, deadline: float, max_concurrency: int, max_attempts: int) -> Pacing:
    for name, value in (("timeout", timeout), ("deadline", deadline)):
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            raise ConfigurationError(
                f"The argument {name} must be a number of seconds above 0, not {value!r}."
            )
    for name, count in (("max_concurrency", max_concurrency), ("max_attempts", max_attempts)):
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ConfigurationError(
                f"The argument {name} must be a whole number of at least 1, not {count!r}."
            )
    return Pacing(
        max_concurrency=max_concurrency,
        start_concurrency=min(8, max_concurrency),
        timeout=float(timeout),
        deadline=float(deadline),
        max_attempts=max_attempts,
    )
