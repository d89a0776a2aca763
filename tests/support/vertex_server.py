"""Vertex AI on loopback: Gemini and Anthropic's models below a project and a location, and the server that gives tokens."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, unquote

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.auth import jwt

from support.anthropic_server import SCHEMA as MESSAGES
from support.anthropic_server import check_body as check_message
from support.anthropic_server import message_events, message_of
from support.anthropic_server import refused as refused_by_anthropic
from support.gemini_server import (
    GOOGLE_FAULTS,
    answer_of,
    bad_argument,
    check_body,
    chunks_of,
    refused,
)
from support.wire_server import Asked, Refused, WireServer, sse

EMAIL = "evaluator@project-1.iam.gserviceaccount.com"
SCOPE = "https://www.googleapis.com/auth/cloud-platform"
AUDIENCE = "https://oauth2.googleapis.com/token"
"""What an assertion is for, wherever the file says that tokens are given."""
VERSION = "vertex-2023-10-16"

_RAW = {
    **MESSAGES,
    "properties": {
        **{name: rule for name, rule in MESSAGES["properties"].items() if name != "model"},
        "anthropic_version": {"const": VERSION},
    },
    "required": ["anthropic_version", "max_tokens", "messages"],
}


class TokenServer(WireServer):
    """POST /token as RFC 7523 says it: a signed assertion in, an access token out. lifetime: in seconds."""

    FAULTS: ClassVar[Mapping[str, Refused]] = {
        "invalid": Refused(400, {"error": "invalid_grant", "error_description": "Invalid JWT Signature."}),
        "503": Refused(503, {"error": "internal_failure"}),
    }

    def __init__(self, lifetime: int = 3600, **options: Any) -> None:
        super().__init__(**options)
        self.lifetime = lifetime
        self.given: list[str] = []
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    def account_file(self, folder: Path) -> Path:
        """A service account's file of credentials, with this server as its token_uri."""
        pem = self._key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        account = {
            "type": "service_account",
            "project_id": "project-1",
            "private_key_id": "key-1",
            "private_key": pem.decode(),
            "client_email": EMAIL,
            "client_id": "1",
            "token_uri": f"{self.root}/token",
        }
        path = folder / "account.json"
        path.write_text(json.dumps(account))
        return path

    def decode(self, raw: bytes) -> Any:
        return {name: values[0] for name, values in parse_qs(raw.decode(), strict_parsing=True).items()}

    def check(self, asked: Asked) -> None:
        if (asked.method, asked.path) != ("POST", "/token"):
            raise Refused(404, {"error": "not_found"})
        if asked.body.get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer":
            raise Refused(400, {"error": "unsupported_grant_type"})
        public = self._key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        try:
            claims = jwt.decode(asked.body["assertion"], certs=public, audience=AUDIENCE)
        except ValueError:
            raise self.FAULTS["invalid"] from None
        if (claims["iss"], claims["scope"]) != (EMAIL, SCOPE):
            raise Refused(400, {"error": "invalid_scope"})

    def reply(self, asked: Asked, kind: str | None) -> Any:
        self.given.append(f"ya29.test-token-{len(self.given)}-0123456789")
        return {"access_token": self.given[-1], "expires_in": self.lifetime, "token_type": "Bearer"}


class VertexServer(WireServer):
    """tokens: those that are good; a list may grow while the server runs."""

    ROOT = "/v1/projects/project-1/locations/global"
    STREAM_TYPE = "text/event-stream"
    FAULTS: ClassVar[Mapping[str, Refused]] = {
        **GOOGLE_FAULTS,
        "expired": refused(401, "UNAUTHENTICATED", "Request had invalid authentication credentials."),
        "quota": refused(
            429, "RESOURCE_EXHAUSTED", "Quota exceeded for aiplatform.googleapis.com/online_prediction."
        ),
        "529": refused_by_anthropic(529, "overloaded_error", "Overloaded"),
    }
    _PATH = re.compile(
        r"/v1/projects/project-1/locations/global/publishers/"
        r"(google/models/([^/:]+):(?:generateContent|streamGenerateContent)|anthropic/models/([^/:]+):(?:rawPredict|streamRawPredict))"
    )

    def __init__(self, tokens: list[str], **options: Any) -> None:
        super().__init__(**options)
        self.tokens = tokens

    def unparsable(self) -> Refused:
        return bad_argument("Invalid JSON payload received.")

    def model(self, asked: Asked) -> tuple[str, str]:
        """(publisher, model) of a path."""
        found = self._PATH.fullmatch(asked.path)
        if asked.method != "POST" or found is None:
            raise refused(404, "NOT_FOUND", f"Publisher Model `{asked.path}` was not found.")
        return ("google", unquote(found[2])) if found[2] else ("anthropic", unquote(found[3]))

    def check(self, asked: Asked) -> None:
        publisher, model = self.model(asked)
        if asked.headers.get("Authorization", "").removeprefix("Bearer ") not in self.tokens:
            raise self.FAULTS["expired"]
        stream = self.streams(asked)
        if asked.query != ({"alt": "sse"} if stream and publisher == "google" else {}):
            raise bad_argument(f"Invalid query: {dict(asked.query)}")
        if publisher == "anthropic":
            check_message(asked.body, _RAW, model)
            if asked.body.get("stream", False) != stream:
                raise bad_argument("stream must be true for streamRawPredict, and for it alone")
            return
        check_body(asked.body, model)
        if not all(turn.get("role") for turn in asked.body["contents"]):
            raise bad_argument("Please use a valid role: user, model.")

    def reply(self, asked: Asked, kind: str | None) -> Any:
        publisher, model = self.model(asked)
        if publisher == "anthropic":
            return message_of(asked.body, kind, model)
        answer = answer_of(asked.body, kind, model)
        answer["usageMetadata"]["trafficType"] = "ON_DEMAND"
        return {**answer, "createTime": "2026-11-21T20:00:00.000000Z"}

    def streams(self, asked: Asked) -> bool:
        return asked.path.endswith((":streamGenerateContent", ":streamRawPredict"))

    def frames(self, reply: Any, asked: Asked) -> list[bytes]:
        return message_events(reply) if self.model(asked)[0] == "anthropic" else chunks_of(reply)

    def error_frame(self) -> bytes:
        return sse(self.FAULTS["503"].body)
