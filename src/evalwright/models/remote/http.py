"""One HTTP layer under all remote backends: JSON out, JSON in, and every fault as an error of `evalwright.core.errors`.

It asks once. Retrying, pacing and deadlines are the engine's. Connections are kept alive in one pool per event loop, no
larger than the pacing allows. Redirects are never followed, because they would carry the key to another host. A proxy is
taken from HTTPS_PROXY, HTTP_PROXY and NO_PROXY, as people expect, read once and never used for local addresses; .netrc is
not read.
"""

from __future__ import annotations

import asyncio
import errno
import json
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from evalwright._version import __version__
from evalwright.core.errors import ConfigurationError, ConnectionFailed, Rejected, RequestError, TimedOut
from evalwright.models.remote.exchange import Call, Reply
from evalwright.models.remote.http_connections import Broken, Connections, ConnectTimedOut, request_head
from evalwright.models.remote.http_faults import CertificateRefused, bad_reply, clean, fault_of
from evalwright.models.remote.http_limits import parse_rate_limits
from evalwright.models.remote.http_reply import NotHttp, Received, TooLarge
from evalwright.models.remote.keys import is_local, remember

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

CONNECT_TIMEOUT = 30.0
"""Seconds for name look-up, TCP and TLS."""
LARGEST_REPLY = 64 * 2**20
"""Bytes that a reply may have, after decompression."""
_SMALLEST_CONNECT_TIMEOUT = 0.001
_URLS_KEPT = 16  # Jobs are asked after at an address of their own each.

Sign = Callable[[str, str, bytes, Mapping[str, str]], Mapping[str, str]]
"""(method, URL, body, headers) to the headers that are sent."""
Ready = Callable[[], Awaitable[None]]
"""Awaited before each request, for credentials that run out."""


class HttpClient:
    """A client for one host, for any number of event loops.

    base_url: scheme, host and path to which `post` and `get` append theirs. headers: sent with every request, the
    key's among them. timeout: seconds for one request as a whole. key_source: the key's variable, for error messages. sign: makes
    the headers of each request, for providers whose signature covers it. ready: awaited before it.
    """

    def __init__(
        self,
        base_url: str,
        *,
        headers: Mapping[str, str] | None = None,
        max_connections: int = 512,
        timeout: float = 300.0,
        connect_timeout: float = CONNECT_TIMEOUT,
        largest_reply: int = LARGEST_REPLY,
        key_source: str = "",
        sign: Sign | None = None,
        ready: Ready | None = None,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self.where = urlsplit(base_url).netloc.rpartition("@")[2] or base_url
        self.timeout = timeout
        self._headers = {"User-Agent": f"evalwright/{__version__}", **(headers or {})}
        self._json_headers = {"Content-Type": "application/json"}
        self._max_connections = max_connections
        self._connect_timeout = max(_SMALLEST_CONNECT_TIMEOUT, min(connect_timeout, timeout))
        self._largest_reply = largest_reply
        self._key_source = key_source
        self._sign = sign
        self._ready = ready
        self._proxy = proxy_for(base_url)
        self._sessions: dict[asyncio.AbstractEventLoop, ClientSession] = {}
        self._urls: dict[str, Any] = {}
        self._pools: dict[asyncio.AbstractEventLoop, Connections] = {}
        self._heads: dict[tuple[str, str], bytes] = {}

    async def exchange(self, call: Call) -> Reply:
        """Send a call, whole or streamed. Raises a RequestError for anything but a 2xx with JSON or a whole stream."""
        if call.gatherer is not None:
            from evalwright.models.remote.http_stream import post_streamed

            return await post_streamed(self, call.path, call.payload, call.gatherer, call.decoding)
        if call.method == "GET":
            return await self.get(call.path)
        return await self.post(call.path, call.payload, call.headers)

    async def post(self, path: str, payload: Any, headers: Mapping[str, str] | None = None) -> Reply:
        """POST `payload` as JSON to `base_url + path`. Raises a RequestError for anything but a 2xx with JSON."""
        extra = {**self._json_headers, **headers} if headers else self._json_headers
        return await self.send("POST", path, encode(payload), extra)

    async def get(self, path: str) -> Reply:
        """GET `base_url + path`. Raises a RequestError for anything but a 2xx with JSON."""
        return await self.send("GET", path)

    async def close(self) -> None:
        """Close the connections of this event loop, and forget those of loops that have ended."""
        loop = asyncio.get_running_loop()
        session, pool = self._sessions.pop(loop, None), self._pools.pop(loop, None)
        for other in [other for other in self._sessions if other.is_closed()]:
            _forget(self._sessions.pop(other))
        for other in [other for other in self._pools if other.is_closed()]:
            self._pools.pop(other).forget()
        if session is not None:
            await session.close()
        if pool is not None:
            await pool.close()

    @asynccontextmanager
    async def opened(
        self, method: str, path: str, payload: Any, headers: Mapping[str, str]
    ) -> AsyncIterator[ClientResponse]:
        """A reply of which only the head has come, for those who read it in pieces; faults as in `post`."""
        body = None if payload is None else encode(payload)
        try:
            if self._ready is not None:
                await self._ready()
            async with self._request(method, path, body, {**self._json_headers, **headers}) as response:
                yield response
        except RequestError:
            raise
        except Exception as error:
            raise self._translate(error) from None

    async def lines(self, path: str) -> AsyncIterator[bytes]:
        """The lines of a file, read as they come, so that a large one takes no memory; raises as `post` does."""
        started = time.perf_counter()
        async with self.opened("GET", path, None, {}) as response:
            if not 200 <= response.status < 300:
                await self.whole(response, started)
            rest = b""
            async for part in response.content.iter_any():
                *lines, rest = (rest + part).split(b"\n")
                self.check_size(len(rest))
                for line in lines:
                    yield line
            if rest:
                yield rest

    async def whole(self, response: ClientResponse, started: float) -> Reply:
        """The whole of a reply that was opened; raises as `post` does. started: by `time.perf_counter`."""
        received = await self._read(response)
        return self._understand(response, received, time.perf_counter() - started)

    def check_size(self, size: int) -> None:
        """Raise Rejected where a reply has become too large."""
        if size > self._largest_reply:
            raise self._too_large()

    async def send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Any request whose body is bytes and whose reply is JSON; raises as `post` does."""
        started = time.perf_counter()
        try:
            if self._ready is not None:
                await self._ready()
            if self._is_direct:
                return await self._send_direct(method, path, body, headers, started)
            async with self._request(method, path, body, headers) as response:
                return await self.whole(response, started)
        except RequestError:
            raise
        except Exception as error:
            raise self._translate(error) from None

    async def _send_direct(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str] | None, started: float
    ) -> Reply:
        """The short way, for whole replies of a host that is asked without a proxy."""
        head = self._head(method, path, self._signed(method, path, body, headers))
        reply = await self._connections().exchange(head, body, self.timeout)
        return self._understand(reply, reply.body, time.perf_counter() - started)

    def _request(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str] | None
    ) -> AbstractAsyncContextManager[ClientResponse]:
        headers = self._signed(method, path, body, headers)
        return self._session().request(
            method, self._url(path), data=body, headers=headers, allow_redirects=False, proxy=self._proxy
        )

    def _signed(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str] | None
    ) -> Mapping[str, str] | None:
        if self._sign is None:
            return headers
        return self._sign(method, str(self._url(path)), body or b"", headers or {})

    async def _read(self, response: ClientResponse) -> bytes:
        """The body, decompressed, refused as soon as it is too large."""
        first = await response.content.readany()
        if response.content.at_eof():
            if len(first) > self._largest_reply:
                raise self._too_large()
            return first
        parts, size = [first], len(first)
        while part := await response.content.readany():
            size += len(part)
            if size > self._largest_reply:
                raise self._too_large()
            parts.append(part)
        return b"".join(parts)

    def _too_large(self) -> RequestError:
        return Rejected(
            f"{self.where} sent a reply of more than {self._largest_reply} bytes; it was dropped."
        )

    def _understand(self, response: ClientResponse | Received, body: bytes, seconds: float) -> Reply:
        status = response.status
        limits = parse_rate_limits(response.raw_headers)
        if not 200 <= status < 300:
            raise fault_of(
                self.where, status, response.headers, body, key_source=self._key_source, rate_limits=limits
            )
        # A reply without a content type is taken at its word: it must still be JSON.
        kind = _content_type(response.raw_headers)
        if kind is not None and b"json" not in kind.lower():
            shown = clean(kind.decode("latin-1"), 40)
            raise bad_reply(self.where, f"JSON (its content type is '{shown}')", body, status)
        try:
            data = json.loads(body.decode("utf-8"))
        except (ValueError, RecursionError):
            raise bad_reply(self.where, "whole and valid JSON", body, status) from None
        return Reply(data, seconds, limits)

    def _translate(self, error: Exception) -> RequestError:
        """The error tree's name for whatever the wire, aiohttp or the system raised."""
        import aiohttp

        if isinstance(error, TooLarge):
            return self._too_large()
        if isinstance(error, NotHttp):
            return bad_reply(self.where, "HTTP", "")
        if isinstance(error, Broken):
            what = "the answer was whole" if error.began else "any answer came"
            return ConnectionFailed(f"The connection to {self.where} broke before {what}.")
        if isinstance(error, TimeoutError):
            if isinstance(error, (ConnectTimedOut, aiohttp.ConnectionTimeoutError)):
                return TimedOut(
                    f"{self.where} did not take the connection within {self._connect_timeout:g} s."
                )
            return TimedOut(f"{self.where} did not answer within {self.timeout:g} s.")
        if isinstance(error, ssl.SSLError | aiohttp.ClientSSLError | aiohttp.ClientConnectorCertificateError):
            return CertificateRefused(
                f"The certificate of {self.where} cannot be trusted: {clean(str(error), 200)}"
            )
        if isinstance(error, aiohttp.ClientHttpProxyError):
            return ConnectionFailed(f"The proxy on the way to {self.where} refused ({error.status}).")
        if isinstance(error, aiohttp.ClientResponseError):
            return bad_reply(self.where, "HTTP", error.message)
        if isinstance(error, aiohttp.ClientPayloadError):
            return ConnectionFailed(f"The connection to {self.where} broke before the answer was whole.")
        if isinstance(error, aiohttp.InvalidURL | UnicodeError | ValueError):
            return Rejected(f"The request to {self.where} could not be sent: {clean(str(error), 200)}")
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
            return ConnectionFailed(
                f"No connection to {self.where}: too many open files. Lower max_concurrency, or raise 'ulimit -n'."
            )
        if isinstance(error, aiohttp.ClientError | OSError):
            return ConnectionFailed(f"No connection to {self.where}: {_reason(error)}.")
        raise error

    @property
    def _is_direct(self) -> bool:
        """Whether requests go straight to the host; what needs a proxy, or a login of the URL, goes through aiohttp."""
        return self._proxy is None and "@" not in self.base_url

    def _connections(self) -> Connections:
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        if pool is None:
            pool = self._pools[loop] = Connections(
                self._url(""),
                limit=self._max_connections,
                connect_timeout=self._connect_timeout,
                largest=self._largest_reply,
            )
        return pool

    def _head(self, method: str, path: str, headers: Mapping[str, str] | None) -> bytes:
        """The request's head. That of a path is written once, unless the request has headers of its own."""
        ours = headers is None or headers is self._json_headers
        head = self._heads.get((method, path)) if ours else None
        if head is None:
            head = request_head(method, self._url(path), {**self._headers, **(headers or {})})
            if ours:
                self._heads[method, path] = head
        return head

    def _session(self) -> ClientSession:
        loop = asyncio.get_running_loop()
        session = self._sessions.get(loop)
        if session is None:
            session = self._sessions[loop] = self._open()
        return session

    def _open(self) -> ClientSession:
        import aiohttp

        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._max_connections, ttl_dns_cache=300),
            headers=self._headers,
            timeout=aiohttp.ClientTimeout(total=self.timeout, sock_connect=self._connect_timeout),
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
        )

    def _url(self, path: str) -> Any:
        url = self._urls.get(path)
        if url is None:
            from yarl import URL

            # What is percent-encoded in a path is sent as it is: a signature covers it.
            base = str(URL(self.base_url)).rstrip("/")
            url = URL(base + path, encoded=True)
            if len(self._urls) < _URLS_KEPT:
                self._urls[path] = url
        return url


def encode(payload: Any) -> bytes:
    """`payload` as compact JSON in UTF-8. Raises Rejected for what JSON cannot say (NaN, objects)."""
    try:
        return json.dumps(payload, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        # Half a surrogate pair has no UTF-8, but JSON can spell it.
        return json.dumps(payload, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        raise Rejected(f"The request cannot be written as JSON: {error}.") from None


def check_url(url: str, what: str = "base_url") -> str:
    """`url` without a trailing slash; raises ConfigurationError where it is not an absolute http or https URL."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or any(sign.isspace() for sign in url):
        raise ConfigurationError(
            f"'{clean(url, 100)}' is not a usable {what}: write it whole, for example http://localhost:8000/v1."
        )
    return url.rstrip("/")


def proxy_for(url: str) -> str | None:
    """The proxy that the environment names for this URL; None for local addresses and those in NO_PROXY."""
    parts = urlsplit(url)
    if is_local(url) or proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy:
        return None
    if "://" not in proxy:
        proxy = f"http://{proxy}"
    if urlsplit(proxy).scheme not in ("http", "https"):
        raise ConfigurationError(
            f"The environment names a {urlsplit(proxy).scheme} proxy for {parts.hostname}; only http and https proxies "
            f"can be used. Unset it, or add the host to NO_PROXY."
        )
    if password := urlsplit(proxy).password:
        remember(password)
    return proxy


def _content_type(headers: Iterable[tuple[bytes, bytes]]) -> bytes | None:
    return next((value for name, value in headers if name.lower() == b"content-type"), None)


def _reason(error: Exception) -> str:
    inner = getattr(error, "os_error", None) or error
    text = clean(getattr(inner, "strerror", None) or str(inner), 200).rstrip(".")
    return text or type(error).__name__


def _forget(session: ClientSession) -> None:
    """Let go of a session whose loop has ended: its sockets can only be dropped, not closed politely."""
    connector = session.connector
    session.detach()
    if connector is not None:
        connector._conns.clear()
