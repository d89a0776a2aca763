"""How requests log in to Google Cloud: an access token from application default credentials, fetched again before it runs out.

google-auth does it, so that service accounts, `gcloud auth application-default login`, workload identities and the metadata
server work as people know them.
"""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import Mapping
from typing import Any

from evalwright.core.errors import (
    AuthenticationFailed,
    ConfigurationError,
    ConnectionFailed,
    MissingExtra,
    RequestError,
)
from evalwright.core.text import remember
from evalwright.models.remote.http_faults import clean

SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)


def host_of(location: str) -> str:
    """Where a location of Vertex AI is served: the global one, the two that span a continent, or a region."""
    if location == "global":
        return "aiplatform.googleapis.com"
    if location in ("us", "eu"):
        return f"aiplatform.{location}.rep.googleapis.com"
    return f"{location}-aiplatform.googleapis.com"


class GoogleLogin:
    """Application default credentials, read when they are first needed."""

    def __init__(self) -> None:
        self.source = "Google application default credentials"
        self._credentials: Any = None
        self._lock = threading.Lock()

    def check(self) -> None:
        """Raise ConfigurationError where there are none. Fetches no token."""
        with self._lock:
            self._find()

    async def ready(self) -> None:
        """Have a token that is good for some minutes more; one is fetched in a thread."""
        if self._credentials is None or not _fresh(self._credentials):
            await asyncio.to_thread(self._fetch)

    def sign(self, method: str, url: str, body: bytes, headers: Mapping[str, str]) -> Mapping[str, str]:
        """The headers with the token, and with the project that pays where the credentials name one."""
        made = dict(headers)
        self._credentials.apply(made)
        return made

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
                # It warns of a person's own login without a project that pays; the server says so itself.
                warnings.simplefilter("ignore")
                self._credentials, _ = google.auth.default(scopes=SCOPES)
        except GoogleAuthError as error:
            raise ConfigurationError(
                "No Google credentials can be used: set VERTEX_ACCESS_TOKEN, or GOOGLE_APPLICATION_CREDENTIALS to a "
                f"file of credentials, or run 'gcloud auth application-default login' ({clean(str(error), 150)})."
            ) from None

    def _fetch(self) -> None:
        with self._lock:
            try:
                self._find()
            except (ConfigurationError, MissingExtra) as error:
                raise AuthenticationFailed(str(error)) from None
            if not _fresh(self._credentials):
                _refresh(self._credentials)
                remember(self._credentials.token)


def _fresh(credentials: Any) -> bool:
    from google.auth.credentials import TokenState

    return bool(credentials.token_state == TokenState.FRESH)


def _refresh(credentials: Any) -> None:
    import requests
    from google.auth.exceptions import GoogleAuthError, TransportError
    from google.auth.transport.requests import Request

    try:
        with requests.Session() as session:
            credentials.refresh(Request(session))
    except TransportError as error:
        raise ConnectionFailed(f"No access token from Google: {clean(str(error), 200)}") from None
    except GoogleAuthError as error:
        raise _refused(error) from None


def _refused(error: Any) -> RequestError:
    words = f"Google gave no access token for the application default credentials: {clean(str(error), 200)}"
    return ConnectionFailed(words) if getattr(error, "retryable", False) else AuthenticationFailed(words)
