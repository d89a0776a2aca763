"""`vectara/<model>`: factual consistency by Vectara's REST interface, POST /v2/evaluate_factual_consistency.

    vectara/hhem_v2.3        the key from VECTARA_API_KEY

The model's name is always sent, so that a default that changes on the other side changes nothing here unseen.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from string import punctuation
from typing import Any

from evalwright.core.errors import AuthenticationFailed, ConfigurationError, Rejected
from evalwright.core.requests import Ability, Classify, Request
from evalwright.core.responses import Response
from evalwright.models import arguments
from evalwright.models.base import RemoteModel, fingerprint_of
from evalwright.models.remote.exchange import Call, Reply
from evalwright.models.remote.http import HttpClient, check_url
from evalwright.models.remote.http_faults import bad_reply
from evalwright.models.remote.keys import find_key, is_local, key_variables, missing_key

OFFICIAL = "https://api.vectara.io"
PATH = "/v2/evaluate_factual_consistency"
KEY = "VECTARA_API_KEY"
LANGUAGES = ("ara", "deu", "eng", "fra", "hin", "jpn", "kor", "por", "rus", "spa", "zho")
"""Languages that the interface documents, by ISO 639-3; others are sent as they are and may be refused (422)."""

_SPACE = re.compile(r"\s+")
_BEFORE_PUNCTUATION = re.compile(r"\s([.,!?])")


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
        api_key_env: str | None = None,
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
        self._language = language
        self._cleaning = arguments.one_of("cleaning", cleaning, ("hhem", "none"))
        named = arguments.text("api_key_env", api_key_env)
        self._variables = key_variables(self.base_url, named, (KEY,), self.base_url == OFFICIAL)
        self._key = next(filter(None, map(find_key, self._variables)), None)
        paced = arguments.pacing(timeout, deadline, max_concurrency, max_attempts)
        self.pacing = replace(paced, start_concurrency=min(8, paced.max_concurrency))
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
            raise ConfigurationError(self._missing_key())

    async def answer(self, request: Request) -> Response:
        """Send once."""
        if not isinstance(request, Classify):
            raise Rejected(f"'{self.name}' classifies pairs; it cannot do '{request.ability}'.")
        if self._key is None and not is_local(self.base_url):
            raise AuthenticationFailed(self._missing_key())
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

    def _missing_key(self) -> str:
        what = f"The model '{self.name}' at {self.base_url}"
        return missing_key(self._variables, (KEY,), what, self.base_url)

    def _read(self, reply: Reply) -> Response:
        score = reply.data.get("score") if isinstance(reply.data, dict) else None
        if isinstance(score, bool) or not isinstance(score, int | float) or not 0.0 <= score <= 1.0:
            raise bad_reply(
                self._client.where, "a score between 0 and 1", json.dumps(reply.data, ensure_ascii=False)
            )
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


def clean_text(text: str) -> str:
    """What HHEM-2.3 is given of a text by its makers' leaderboard: runs of white space as one space, none before `.,!?`,
    none at the ends, and a full stop where no punctuation ends it."""
    text = _BEFORE_PUNCTUATION.sub(r"\1", _SPACE.sub(" ", text.strip()))
    return text if text and text[-1] in punctuation else f"{text}."
