"""Logins that are more than a key: Amazon's signatures, recomputed by botocore, and Google's
tokens, by a real token server.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.auth import jwt

from evalwright.core.errors import (
    AuthenticationFailed,
    ConfigurationError,
    ConnectionFailed,
    MissingExtra,
)
from evalwright.models.remote.logins import SCOPES
from support.openai_asking import HELLO, ask, failing, remote
from support.openai_server import OpenAIServer, running, serving

ACCESS = "AKIATESTACCESSKEY0"
SECRET = "wJalrXUtnFEMI/K7MDENG/test-secret"
TOKEN = "FwoGZXIvYXdzTESTTOKEN"
REGION = "eu-west-1"
CLAUDE = "eu.anthropic.claude-sonnet-4-5-20250929-v1:0"
PROFILE = "arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.anthropic.claude-sonnet-4-5-20250929-v1:0"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (
        "AWS_PROFILE",
        "AWS_SESSION_TOKEN",
        "AWS_BEARER_TOKEN_BEDROCK",
        "AWS_DEFAULT_REGION",
        "VERTEX_ACCESS_TOKEN",
    ):
        monkeypatch.delenv(name, raising=False)
    for name in ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_QUOTA_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_REGION", REGION)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path / "gcloud"))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "p")
    monkeypatch.setenv("GOOGLE_CLOUD_LOCATION", "global")
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def server() -> Iterator[OpenAIServer]:
    with serving(str) as found:
        yield found


def sent(server: OpenAIServer) -> dict[str, Any]:
    """The last request that came."""
    assert server.log is not None
    return server.log[-1]


# ---- Amazon


def bedrock(server: OpenAIServer, model: str = CLAUDE, **arguments: Any) -> Any:
    return remote(f"bedrock/{server.root}#{model}", **arguments)


def is_signed(entry: Mapping[str, Any], token: str | None = None) -> bool:
    """Whether the signature is the one that botocore computes anew from the request as it came."""
    headers = entry["headers"]
    parts = dict(
        part.strip().split("=", 1)
        for part in headers["Authorization"].split(" ", 1)[1].split(",")
    )
    signed = parts["SignedHeaders"].split(";")
    assert {"host", "x-amz-date", "content-type"} <= set(signed)
    assert ("x-amz-security-token" in signed) == (token is not None)
    request = AWSRequest(
        method="POST",
        url=f"http://{headers['Host']}{entry['raw_path']}",
        data=entry["raw"],
        headers={name: headers[name] for name in signed},
    )
    request.context["timestamp"] = headers["X-Amz-Date"]
    signer = SigV4Auth(Credentials(ACCESS, SECRET, token), "bedrock", REGION)
    wanted = signer.signature(
        signer.string_to_sign(request, signer.canonical_request(request)), request
    )
    scope = f"{ACCESS}/{headers['X-Amz-Date'][:8]}/{REGION}/bedrock/aws4_request"
    return bool((parts["Credential"], parts["Signature"]) == (scope, wanted))


@pytest.mark.parametrize(
    "model", [CLAUDE, PROFILE, "amazon.nova-pro-v1:0", "my~model_1"]
)
@pytest.mark.parametrize("stream", [False, True])
def test_requests_are_signed_as_they_are_sent(
    server: OpenAIServer, model: str, stream: bool
) -> None:
    """Ids and ARNs are percent-encoded once, in the path and in the signature alike."""
    made = bedrock(server, model, stream=stream)
    assert ask(made).text == "hello"
    assert is_signed(sent(server)) and ":" not in sent(server)["raw_path"]
    shown = json.dumps(made.describe()) + repr(made) + made.fingerprint
    assert SECRET not in shown and ACCESS not in shown


def test_session_tokens_are_signed_and_headers_of_the_person_are_sent(
    server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", TOKEN)
    ask(bedrock(server, headers={"X-Team": "a"}))
    assert is_signed(sent(server), TOKEN) and sent(server)["headers"]["X-Team"] == "a"


def test_credentials_and_region_of_a_profile(
    server: OpenAIServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.delenv(name)
    keys = f"[work]\naws_access_key_id={ACCESS}\naws_secret_access_key={SECRET}\n"
    (tmp_path / "credentials").write_text(keys)
    (tmp_path / "config").write_text(f"[profile work]\nregion={REGION}\n")
    monkeypatch.setenv("AWS_PROFILE", "work")
    ask(bedrock(server))
    assert is_signed(sent(server))
    model = remote(f"bedrock/{CLAUDE}")
    model.check()
    assert (
        model.describe()["base_url"]
        == f"https://bedrock-runtime.{REGION}.amazonaws.com"
    )
    assert model.describe()["key"] == "AWS credentials (shared-credentials-file)"


def test_a_bearer_in_place_of_a_signature(
    server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "bedrock-api-key-0123456789")
    ask(bedrock(server))
    headers = sent(server)["headers"]
    assert (
        headers["Authorization"] == "Bearer bedrock-api-key-0123456789"
        and "X-Amz-Date" not in headers
    )


def test_missing_credentials_are_said_before_anything_is_sent(
    server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    with pytest.raises(ConfigurationError, match="AWS_ACCESS_KEY_ID"):
        remote(f"bedrock/{CLAUDE}").check()
    error = failing(bedrock(server))
    assert type(error) is AuthenticationFailed and "AWS_ACCESS_KEY_ID" in str(error)


def test_a_missing_library_is_named(
    server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    signed = remote(f"bedrock/{CLAUDE}")
    local = bedrock(server)
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "bedrock-api-key-0123456789")
    streamed = remote(f"bedrock/{CLAUDE}", stream=True)
    whole = bedrock(server)
    monkeypatch.setitem(sys.modules, "botocore", None)
    for model in (signed, streamed):
        with pytest.raises(MissingExtra, match=r"evalwright\[bedrock\]"):
            model.check()
    error = failing(local)
    assert type(error) is AuthenticationFailed and "evalwright[bedrock]" in str(error)
    assert ask(whole).text == "hello"


# ---- Google

EMAIL = "evaluator@project-1.iam.gserviceaccount.com"


class TokenServer(OpenAIServer):
    """POST /token as RFC 7523 says it: a signed assertion in, an access token out. lifetime: in
    seconds.
    """

    def __init__(self) -> None:
        super().__init__(str)
        self.lifetime = 3600
        self.given = list[str]()
        self.refusing = False
        self._private = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    def account_file(self, folder: Path, token_uri: str = "") -> Path:
        """A service account's file of credentials, with this server as its token_uri."""
        pem = self._private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        account = {
            "type": "service_account", "project_id": "project-1", "private_key_id": "key-1", "private_key": pem.decode(),
            "client_email": EMAIL, "client_id": "1", "token_uri": token_uri or f"{self.root}/token",
        }  # fmt: skip
        path = folder / "account.json"
        path.write_text(json.dumps(account))
        return path

    async def _others(self, request: web.Request) -> web.StreamResponse:
        if request.path != "/token":
            return await super()._others(request)
        form = await request.post()
        public = self._private.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        claims = jwt.decode(
            str(form["assertion"]),
            certs=public,
            audience="https://oauth2.googleapis.com/token",
        )
        if self.refusing or (claims["iss"], claims["scope"]) != (
            EMAIL,
            " ".join(SCOPES),
        ):
            return web.json_response(
                {
                    "error": "invalid_grant",
                    "error_description": "Invalid JWT Signature.",
                },
                status=400,
            )
        self.given.append(f"ya29.test-token-{len(self.given)}-0123456789")
        self.key = self.given[-1]
        return web.json_response(
            {
                "access_token": self.key,
                "expires_in": self.lifetime,
                "token_type": "Bearer",
            }
        )


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[TokenServer]:
    """A service account, and a server of models that takes its newest token alone."""
    with running(TokenServer()) as made:
        monkeypatch.setenv(
            "GOOGLE_APPLICATION_CREDENTIALS", str(made.account_file(tmp_path))
        )
        yield made


def vertex(server: OpenAIServer, model: str = "gemini-2.5-flash") -> Any:
    return remote(f"vertex/{server.root}/v1/projects/p/locations/global#{model}")


def test_a_token_is_fetched_once_while_it_is_good(account: TokenServer) -> None:
    model = vertex(account)
    for _ in range(3):
        assert ask(model).text == "hello"
    assert len(account.given) == 1
    shown = json.dumps(model.describe()) + repr(model) + model.fingerprint
    assert account.given[0] not in shown
    assert model.describe()["key"] == "Google application default credentials"


def test_a_token_is_renewed_before_it_runs_out(account: TokenServer) -> None:
    """One that is good for 100 s is too old for a request that may take minutes, so each gets a
    new one.
    """
    account.lifetime = 100
    model = vertex(account, "claude-sonnet-4-5@20250929")
    for _ in range(3):
        assert ask(model).text == "hello"
    assert len(account.given) == 3


def test_a_token_that_is_refused_or_cannot_be_fetched(
    account: TokenServer, tmp_path: Path
) -> None:
    account.refusing = True
    error = failing(vertex(account))
    assert type(error) is AuthenticationFailed and "Invalid JWT Signature" in str(error)
    account.account_file(tmp_path, "http://127.0.0.1:1/token")
    error = failing(vertex(account))
    assert type(error) is ConnectionFailed and "No access token" in str(error)
    assert not account.received


def test_missing_google_credentials_are_said(
    server: OpenAIServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match="VERTEX_ACCESS_TOKEN"):
        remote("vertex/m").check()
    assert type(failing(vertex(server), HELLO)) is AuthenticationFailed
    (tmp_path / "broken.json").write_text("{")
    for name in ("nothing.json", "broken.json"):
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / name))
        with pytest.raises(ConfigurationError, match=name):
            remote("vertex/m").check()
    monkeypatch.setitem(sys.modules, "google.auth", None)
    with pytest.raises(MissingExtra, match=r"evalwright\[vertex\]"):
        remote("vertex/m").check()
