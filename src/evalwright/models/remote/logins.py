"""Logins that are more than a key: Amazon's signature of each request, and Google's expiring token.

A row of the table of providers asks for one with `auth = "aws"` or `auth = "google"`. The
providers' own libraries (botocore, google-auth) find credentials, so that environment variables,
profiles, roles, service accounts, workload identities and single sign-on work as people know them;
they are imported when a login is first used.
"""

from __future__ import annotations

import asyncio
import os
import re
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from evalwright.core.errors import (
    AuthenticationFailed,
    ConfigurationError,
    ConnectionFailed,
    MissingExtra,
)
from evalwright.core.secrets import remember
from evalwright.models.remote.http_faults import clean

SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
_AMAZONS_HOST = re.compile(r"//bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\.amazonaws\.com")


class Login(ABC):
    """Credentials for requests; `source` says where they come from and is never a secret."""

    source: str

    def __init__(self) -> None:
        self._credentials: Any = None
        self._lock = threading.Lock()

    def check(self) -> None:
        """Check that there are credentials, without sending anything.

        Raises:
            ConfigurationError: there are none.
            MissingExtra: the provider's library is not installed.
        """
        with self._lock:
            self._find()

    async def ready(self) -> None:
        """Make sure that the credentials are valid now, fetching new ones in a thread if need be.

        Raises:
            AuthenticationFailed: the provider refuses them.
            ConnectionFailed: the provider cannot be reached.
        """
        if not self._is_good():
            await asyncio.to_thread(self._renew)

    @abstractmethod
    def sign(
        self, method: str, url: str, body: bytes, headers: Mapping[str, str]
    ) -> Mapping[str, str]:
        """Return `headers` with those that authenticate the request."""

    @abstractmethod
    def _find(self) -> None:
        """Load credentials, valid or expired; raise like `check`."""

    @abstractmethod
    def _is_good(self) -> bool:
        """Return whether the credentials are valid now."""

    @abstractmethod
    def _fetch(self) -> None:
        """Refresh the credentials."""

    def _renew(self) -> None:
        with self._lock:
            try:
                self._find()
            except (ConfigurationError, MissingExtra) as error:
                raise AuthenticationFailed(str(error)) from None
            if not self._is_good():
                self._fetch()


def login_of(auth: str, base_url: str, variables: Mapping[str, str]) -> Login | None:
    """Return the login that a row asks for; None if a key is enough.

    `variables` are those with which the base URL was filled in.
    """
    if auth == "aws":
        return AwsLogin(base_url, variables.get("region"))
    return GoogleLogin() if auth == "google" else None


# ---- Amazon


def region_of(base_url: str = "", chosen: str | None = None) -> str | None:
    """Return the AWS region; None if none is set.

    It is the chosen one, the one in the address, $AWS_REGION, $AWS_DEFAULT_REGION, or the
    profile's.
    """
    match = _AMAZONS_HOST.search(base_url)
    named = (
        chosen,
        match and match[1],
        os.environ.get("AWS_REGION"),
        os.environ.get("AWS_DEFAULT_REGION"),
    )
    with suppress(MissingExtra):
        region = next(filter(None, named), None) or _session().get_config_variable(
            "region"
        )
        return str(region) if region else None
    return None


def require_botocore(feature: str) -> None:
    """Raise MissingExtra if botocore is not installed."""
    try:
        import botocore  # noqa: F401
    except ImportError:
        raise MissingExtra(feature, "bedrock", "botocore") from None


def _session() -> Any:
    require_botocore("Amazon Bedrock with AWS credentials")
    from botocore.session import Session

    return Session()


class AwsLogin(Login):
    """Signs each request (SigV4), for the region of the arguments or of `base_url`."""

    def __init__(self, base_url: str, region: str | None) -> None:
        super().__init__()
        self.source = "AWS credentials"
        self._base_url = base_url
        self._given = region
        self._region: str | None = None
        self._frozen: Any = None

    def sign(
        self, method: str, url: str, body: bytes, headers: Mapping[str, str]
    ) -> Mapping[str, str]:
        """Return the headers with the signature.

        It signs what is sent: the path with its percent-encoding, and the body.
        """
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest

        request = AWSRequest(method=method, url=url, data=body, headers=dict(headers))
        SigV4Auth(self._frozen, "bedrock", self._region).add_auth(request)
        return dict(request.headers.items())

    def _find(self) -> None:
        session = _session()
        from botocore.exceptions import BotoCoreError

        try:
            self._region = self._region or region_of(self._base_url, self._given)
            self._credentials = self._credentials or session.get_credentials()
        except BotoCoreError as error:
            raise ConfigurationError(_unusable_message(error)) from None
        if self._credentials is None:
            raise ConfigurationError(
                "No AWS credentials were found: set AWS_BEARER_TOKEN_BEDROCK, or"
                " AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE."
            )
        if self._region is None:
            raise ConfigurationError(
                "No AWS region is set: set AWS_REGION, or give -M"
                " variables.region=us-east-1."
            )
        self.source = f"AWS credentials ({self._credentials.method})"

    def _is_good(self) -> bool:
        needed = getattr(self._credentials, "refresh_needed", None)
        return self._frozen is not None and not (needed is not None and needed())

    def _fetch(self) -> None:
        try:
            self._frozen = (
                self._credentials.get_frozen_credentials()
            )  # credentials of roles are renewed here before they expire
        except Exception as error:
            # botocore's errors share no meaning; whatever it was, there are no credentials now.
            raise AuthenticationFailed(_unusable_message(error)) from None
        for secret in (self._frozen.secret_key, self._frozen.token):
            remember(secret or "")


def _unusable_message(error: Exception) -> str:
    return f"No AWS credentials could be loaded: {clean(str(error), 200)}"


# ---- Google


def host_of(location: str) -> str:
    """Return the host of a location of Vertex AI: global, of a continent, or of a region."""
    if location in ("us", "eu"):
        return f"aiplatform.{location}.rep.googleapis.com"
    return f"{'' if location == 'global' else f'{location}-'}aiplatform.googleapis.com"


class GoogleLogin(Login):
    """An access token from application default credentials, refreshed before it expires."""

    source = "Google application default credentials"

    def sign(
        self, method: str, url: str, body: bytes, headers: Mapping[str, str]
    ) -> Mapping[str, str]:
        """Return the headers with the token, and with the billed project if one is named."""
        signed = dict(headers)
        self._credentials.apply(signed)
        return signed

    def _find(self) -> None:
        if self._credentials is not None:
            return
        try:
            import google.auth
            import requests  # noqa: F401
            from google.auth.exceptions import GoogleAuthError
        except ImportError:
            raise MissingExtra(
                "Vertex AI with Google credentials", "vertex", "google-auth[requests]"
            ) from None
        try:
            with warnings.catch_warnings():
                # google-auth warns about a user's own login without a project to bill; the server
                # says so itself.
                warnings.simplefilter("ignore")
                self._credentials, _ = google.auth.default(scopes=SCOPES)
        except GoogleAuthError as error:
            raise ConfigurationError(
                "No Google credentials can be used: set VERTEX_ACCESS_TOKEN, or"
                " GOOGLE_APPLICATION_CREDENTIALS to a file of credentials, or run"
                f" 'gcloud auth application-default login' ({clean(str(error), 150)})."
            ) from None

    def _is_good(self) -> bool:
        if self._credentials is None:
            return False
        from google.auth.credentials import TokenState

        return bool(self._credentials.token_state == TokenState.FRESH)

    def _fetch(self) -> None:
        import requests
        from google.auth.exceptions import GoogleAuthError, TransportError
        from google.auth.transport.requests import Request

        try:
            with requests.Session() as session:
                self._credentials.refresh(Request(session))
        except GoogleAuthError as error:
            words = "No access token from Google"
            message = clean(str(error), 200)
            if isinstance(error, TransportError) or getattr(error, "retryable", False):
                raise ConnectionFailed(f"{words}: {message}") from None
            raise AuthenticationFailed(
                f"{words} for the application default credentials: {message}"
            ) from None
        remember(self._credentials.token)
