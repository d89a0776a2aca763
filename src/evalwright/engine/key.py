"""The key of a request: a hash of everything that can change its answer.

The hashed text is the canonical JSON of `[schema version, model fingerprint, request payload]`:
sorted keys, no spaces, UTF-8. Where the model is asked in a round, `[model fingerprint, round]`
stands in place of the fingerprint, and within a trajectory of a program behind the proxy
`[model fingerprint, round, trajectory]`. Equal requests to equal models have equal keys in every
process and on every machine.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from evalwright.core.json_text import encode_function

KEY_VERSION = 1
"""Raised when the meaning of a payload changes, so that old answers are not used for new requests.
"""

KEY_BYTES = 16

_encode = encode_function(
    json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)
)


def canonical(payload: Mapping[str, Any]) -> bytes:
    """Encode a payload as canonical JSON.

    Lone surrogates, which models can produce, are kept as they are.
    """
    return _encode(payload).encode("utf-8", "surrogatepass")


class KeyMaker:
    """Makes the keys of one model's requests; the fingerprint is hashed only once.

    Args:
        fingerprint: the model's.
        asked_in: the name of the round in which it is asked, "" for none. A model that is asked
            again in another round is another one to the store.
        trajectory: the id of the trajectory whose requests share no answers with others', "" for
            none.
    """

    def __init__(
        self, fingerprint: str, asked_in: str = "", trajectory: str = ""
    ) -> None:
        identity: str | list[str] = fingerprint
        if trajectory:
            identity = [fingerprint, asked_in, trajectory]
        elif asked_in:
            identity = [fingerprint, asked_in]
        prefix = (
            b"[%d," % KEY_VERSION
            + _encode(identity).encode("utf-8", "surrogatepass")
            + b","
        )
        self._start = blake2b(prefix, digest_size=KEY_BYTES)

    def key(self, payload: bytes) -> bytes:
        """Return the 16-byte key of a request with this canonical payload."""
        state = self._start.copy()
        state.update(payload)
        state.update(b"]")
        return state.digest()


def request_key(fingerprint: str, payload: Mapping[str, Any]) -> bytes:
    """Return the key of one request to the model with that fingerprint."""
    return KeyMaker(fingerprint).key(canonical(payload))
