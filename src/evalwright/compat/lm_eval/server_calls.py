"""Single HTTP requests to a server, for model classes that call one themselves."""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from evalwright.extend import ConfigurationError

MAX_REPLY_BYTES = 2**28
"""The most bytes of a server's reply that are read."""


class Refused(Exception):
    """An HTTP reply with an error status."""

    def __init__(self, status: int, text: str, wait: str | None = None) -> None:
        super().__init__(f"HTTP {status}: {text[:500].strip() or 'no text'}")
        self.may_pass = status in (408, 409, 425, 429) or status >= 500
        self.wait = float(wait) if wait and wait.isdecimal() else 0.0


class _NoRedirects(HTTPRedirectHandler):
    """Follows no redirects, so a key reaches only the host that was named."""

    def redirect_request(self, *arguments: Any) -> None:
        """Return None, which makes the redirect an HTTPError."""


def call_json(
    url: str,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
    timeout: float = 300,
    verify: bool | str = True,
) -> Any:
    """Send a request and return the server's JSON; a POST if there is a body.

    verify: whether to check certificates, or a file of certificate authorities. Raises Refused for
    an error status, OSError if the server cannot be reached, ValueError if the reply is not JSON.
    """
    payload = None if body is None else json.dumps(body).encode()
    request = Request(
        url, payload, {"Content-Type": "application/json", **(headers or {})}
    )
    if request.type not in ("http", "https"):
        raise ConfigurationError(
            f"base_url must begin with http:// or https://, not {url!r}."
        )
    opener = build_opener(_NoRedirects, HTTPSHandler(context=ssl_context(verify)))
    try:
        with opener.open(request, timeout=timeout) as reply:
            return json.loads(reply.read(MAX_REPLY_BYTES))
    except HTTPError as error:
        text = error.read(4096).decode(errors="replace")
        raise Refused(error.code, text, error.headers.get("Retry-After")) from None
    except URLError as error:
        raise ConnectionError(
            f"{request.host} cannot be reached: {error.reason}"
        ) from error


def ssl_context(verify: bool | str) -> ssl.SSLContext:
    """Create an SSL context that trusts the system's authorities, those of a file, or anyone."""
    context = ssl.create_default_context(
        cafile=verify if isinstance(verify, str) else None
    )
    if verify is False:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
