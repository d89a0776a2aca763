"""How requests log in to Amazon: credentials and region from where its tools find them, and a signature (SigV4) over each request.

botocore does both, so that environment variables, profiles, roles, containers and single sign-on work as people know them.
"""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from evalwright.core.errors import AuthenticationFailed, ConfigurationError, MissingExtra
from evalwright.core.text import remember
from evalwright.models.remote.http_faults import clean

SERVICE = "bedrock"
_HOST = re.compile(r"//bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\.amazonaws\.com")


def region_of(base_url: str = "", given: str | None = None) -> str | None:
    """The region: as given, as in the address, $AWS_REGION, $AWS_DEFAULT_REGION, or the profile's; None where none is set."""
    found = _HOST.search(base_url)
    named = (given, found and found[1], os.environ.get("AWS_REGION"), os.environ.get("AWS_DEFAULT_REGION"))
    with suppress(MissingExtra):
        region = next(filter(None, named), None) or _session().get_config_variable("region")
        return str(region) if region else None
    return None


def require_botocore(what: str) -> None:
    """Raise MissingExtra where botocore is not installed."""
    try:
        import botocore  # noqa: F401
    except ImportError:
        raise MissingExtra(what, "bedrock", "botocore") from None


class AwsLogin:
    """Credentials by botocore. base_url, region: say which region the signature is for."""

    def __init__(self, base_url: str, region: str | None) -> None:
        self.source = "AWS credentials"
        self._base_url, self._given = base_url, region
        self._region: str | None = None
        self._credentials: Any = None
        self._frozen: Any = None
        self._lock = threading.Lock()

    def check(self) -> None:
        """Raise ConfigurationError where there are no credentials or no region."""
        if self._region is None:
            self._region = region_of(self._base_url, self._given)
        if self._credentials is None:
            self._credentials = _credentials()
        if self._credentials is None:
            raise ConfigurationError(
                "No AWS credentials were found: set AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY, or AWS_PROFILE."
            )
        if self._region is None:
            raise ConfigurationError(
                "No AWS region is set: set AWS_REGION, or give -M variables.region=us-east-1."
            )
        self.source = f"AWS credentials ({self._credentials.method})"

    async def ready(self) -> None:
        """Have credentials; those of roles are fetched again before they run out, in a thread."""
        try:
            if self._frozen is None or _runs_out(self._credentials):
                await asyncio.to_thread(self._fetch)
        except Exception as error:
            # botocore's errors have no common meaning; whatever it was, there are no credentials now.
            known = isinstance(error, ConfigurationError | MissingExtra)
            words = str(error) if known else f"No AWS credentials could be loaded: {clean(str(error), 200)}"
            raise AuthenticationFailed(words) from None

    def _fetch(self) -> None:
        with self._lock:
            if self._frozen is not None and not _runs_out(self._credentials):
                return
            self.check()
            self._frozen = self._credentials.get_frozen_credentials()
            for secret in (self._frozen.secret_key, self._frozen.token):
                remember(secret or "")

    def sign(self, method: str, url: str, body: bytes, headers: Mapping[str, str]) -> Mapping[str, str]:
        """The headers with the signature. Signs what is sent: the path with its percent-encoding, and the body."""
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest

        request = AWSRequest(method=method, url=url, data=body, headers=dict(headers))
        SigV4Auth(self._frozen, SERVICE, self._region).add_auth(request)
        return dict(request.headers.items())


def _runs_out(credentials: Any) -> bool:
    needed = getattr(credentials, "refresh_needed", None)
    return bool(needed()) if needed is not None else False


def _credentials() -> Any:
    from botocore.exceptions import BotoCoreError

    try:
        return _session().get_credentials()
    except BotoCoreError as error:
        raise ConfigurationError(f"No AWS credentials could be loaded: {clean(str(error), 200)}") from None


def _session() -> Any:
    require_botocore("Amazon Bedrock with AWS credentials")
    from botocore.session import Session

    return Session()
