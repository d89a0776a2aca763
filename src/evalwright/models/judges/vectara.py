"""`vectara/<model>`: factual consistency by Vectara's API, POST /v2/evaluate_factual_consistency.

    vectara/hhem_v2.3        the key from VECTARA_API_KEY

The model's name is always sent, so that a changed default at Vectara cannot change results
unnoticed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from string import punctuation
from typing import Any

from evalwright.core.errors import ConfigurationError
from evalwright.core.requests import Ability, Classify
from evalwright.models import arguments
from evalwright.models.judges.endpoint import Endpoint, as_number
from evalwright.models.remote.exchange import Call
from evalwright.models.remote.http import check_url

OFFICIAL = "https://api.vectara.io"
PATH = "/v2/evaluate_factual_consistency"
KEY = "VECTARA_API_KEY"
LANGUAGES = (
    "ara",
    "deu",
    "eng",
    "fra",
    "hin",
    "jpn",
    "kor",
    "por",
    "rus",
    "spa",
    "zho",
)
"""Languages that the API documents, by ISO 639-3; it may refuse others (422)."""

_SPACE = re.compile(r"\s+")
_BEFORE_PUNCTUATION = re.compile(r"\s([.,!?])")


class VectaraModel(Endpoint):
    """Scores P(supported) with Vectara's API.

    A missing key is reported by `check`, so that answers from the store need none.

    Args:
        name: the model.
        base_url: scheme and host, up to what precedes /v2.
        api_key_env: the variable that holds the API key.
        language: ISO 639-3, sent if set.
        cleaning: "hhem" first normalises white space and punctuation, as the makers' leaderboard
            does; "none" sends both texts as they are.
        timeout: seconds for an attempt.
        deadline: seconds for a request with all its attempts.
        max_concurrency: most requests in flight.
        max_attempts: most sendings of a request.

    Raises:
        ConfigurationError: an argument cannot be used.
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
        if language is not None and not re.fullmatch(r"[a-z]{3}", str(language)):
            raise ConfigurationError(
                f"language={language!r} must be a language code of ISO 639-3, three"
                f" lower-case letters: {', '.join(LANGUAGES)}."
            )
        self._language = language
        self._cleaning = arguments.one_of("cleaning", cleaning, ("hhem", "none"))
        url = check_url(base_url).removesuffix("/v2")
        super().__init__(
            f"vectara/{name}",
            name,
            url,
            {"provider": "vectara", "language": language, "cleaning": self._cleaning},
            api_key_env=api_key_env,
            pacing=arguments.pacing(timeout, deadline, max_concurrency, max_attempts),
            header=("x-api-key", ""),
            own_key=KEY,
            official=url == OFFICIAL,
        )

    def describe(self) -> dict[str, Any]:
        """Describe the model, with what the values are."""
        return {**super().describe(), "values": ["not supported", "supported"]}

    def _call(self, request: Classify) -> Call:
        premise = request.premise
        hypothesis = request.hypothesis
        if self._cleaning == "hhem":
            premise = clean_text(premise)
            hypothesis = clean_text(hypothesis)
        payload: dict[str, Any] = {
            "generated_text": hypothesis,
            "source_texts": [premise],
            "model_parameters": {"model_name": self.model},
        }
        if self._language is not None:
            payload["language"] = self._language
        return Call(PATH, payload)

    def _values(self, data: Mapping[str, Any]) -> tuple[float, ...] | str:
        supported = as_number(data.get("score"))
        if supported is None or not 0.0 <= supported <= 1.0:
            return "a score between 0 and 1"
        return 1.0 - supported, supported


def clean_text(text: str) -> str:
    """Clean a text as HHEM-2.3's makers do for their leaderboard.

    Runs of white space become one space, none before `.,!?` and none at the ends, and a full stop
    is added if no punctuation ends it.
    """
    text = _BEFORE_PUNCTUATION.sub(r"\1", _SPACE.sub(" ", text.strip()))
    return text if text and text[-1] in punctuation else f"{text}."
