"""Logins that are more than a key: what signs each request, or gives a token that runs out.

A row of the table of providers asks for one with `auth = "aws"` or `auth = "google"`. The library that it takes is imported
when a login is first used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Login(Protocol):
    """Credentials that requests are sent with. source: where the credentials come from, for messages and the record, never a secret."""

    source: str

    def check(self) -> None:
        """Raise ConfigurationError where there are no credentials, MissingExtra where a library is missing."""

    async def ready(self) -> None:
        """Have credentials that are valid now. Raises AuthenticationFailed or ConnectionFailed."""

    def sign(self, method: str, url: str, body: bytes, headers: Mapping[str, str]) -> Mapping[str, str]:
        """`headers` with those that let the request in."""


def login_of(auth: str, base_url: str, variables: Mapping[str, str]) -> Login | None:
    """The login that a row asks for; None where a key is enough. variables: as given for the base URL."""
    if auth == "aws":
        from evalwright.models.remote.aws import AwsLogin

        return AwsLogin(base_url, variables.get("region"))
    if auth == "google":
        from evalwright.models.remote.google import GoogleLogin

        return GoogleLogin()
    return None
