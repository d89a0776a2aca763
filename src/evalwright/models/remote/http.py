"""The one HTTP client of all remote models: sends a `Call`, returns a `Reply` or lines.

Every fault becomes an error of `core.errors`. It sends once: retries, pacing and deadlines belong
to the engine. Connections are kept alive in one pool per event loop, little larger than the pacing
allows. Redirects are never followed, because they would carry the key to another host; cookies are
not kept; .netrc is not read. A proxy is taken from HTTPS_PROXY, HTTP_PROXY and NO_PROXY, read once
and never used for local addresses. Certificates are checked against the system's, or those of
SSL_CERT_FILE and SSL_CERT_DIR.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import ssl
import time
import zlib
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

from evalwright._version import __version__
from evalwright.bounded import from_json
from evalwright.core.errors import (
    BadReply,
    ConfigurationError,
    ConnectionFailed,
    Rejected,
    RequestError,
    StillWriting,
    TimedOut,
)
from evalwright.core.json_text import encode_function
from evalwright.core.secrets import remember
from evalwright.models.remote.events import KINDS, gather_events
from evalwright.models.remote.exchange import Call, Reply
from evalwright.models.remote.http_faults import (
    CertificateRefused,
    bad_reply,
    clean,
    error_of_reply,
    usage_within,
)
from evalwright.models.remote.http_limits import parse_rate_limits
from evalwright.models.remote.keys import is_local

if TYPE_CHECKING:
    from yarl import URL

    from evalwright.models.remote.http_pool import Opened, Pool

CONNECT_TIMEOUT = 30.0
"""Seconds to set up TCP and TLS."""
LARGEST_REPLY = 64 * 2**20
"""Most bytes of a reply, after decompression."""
_SMALLEST_CONNECT_TIMEOUT = 0.001
_LARGEST_PIECE = 2**20
_URLS_KEPT = 16  # each followed job has an address of its own

Sign = Callable[[str, str, bytes, Mapping[str, str]], Mapping[str, str]]
"""Maps (method, URL, body, headers) to the headers that are sent."""
Ready = Callable[[], Awaitable[None]]
"""Awaited before each request, for credentials that expire."""


class HttpClient:
    """A client for one host, usable from any number of event loops.

    Args:
        base_url: scheme, host and path, to which calls append theirs.
        headers: headers sent with every request, including the key.
        max_connections: most requests at a time per event loop; a sixteenth more connections may be
            open.
        timeout: seconds for a whole request.
        largest_reply: most bytes of a reply.
        key_source: the variable that holds the key, for messages.
        sign: makes the headers of each request, for providers that sign them.
        ready: awaited before each request.
    """

    def __init__(
        self,
        base_url: str,
        *,
        headers: Mapping[str, str] | None = None,
        max_connections: int = 512,
        timeout: float = 300.0,
        largest_reply: int = LARGEST_REPLY,
        key_source: str = "",
        sign: Sign | None = None,
        ready: Ready | None = None,
    ) -> None:
        split_url = urlsplit(base_url.rstrip("/"))
        login, _, self.where = split_url.netloc.rpartition("@")
        self.base_url = urlunsplit(split_url._replace(netloc=self.where))
        self.timeout = timeout
        ours = {
            "User-Agent": f"evalwright/{__version__}",
            "Accept": "*/*",
            "Accept-Encoding": "gzip",
        }
        if login:
            ours["Authorization"] = basic_authorization(unquote(login))
        self._headers = _merge_headers(ours, headers or {})
        self._max_connections = max_connections
        self._connect_timeout = max(
            _SMALLEST_CONNECT_TIMEOUT, min(CONNECT_TIMEOUT, timeout)
        )
        self._largest_reply = largest_reply
        self._key_source = key_source
        self._sign = sign
        self._ready = ready
        self._proxy = proxy_for(base_url)
        self._pools: dict[asyncio.AbstractEventLoop, Pool] = {}
        self._header_lines: dict[tuple[str, bool, bool, str], bytes] = {}
        self._urls: dict[str, URL] = {}

    async def send(self, call: Call) -> Reply:
        """Send a call, whole or streamed.

        A server that answers in one piece although asked to stream is accepted.

        Raises:
            RequestError: the reply is not a 2xx with JSON or a whole stream. It is StillWriting,
                not TimedOut, if a piece of the answer had arrived when the time was over.
        """
        started = time.perf_counter()
        try:
            if self._ready is not None:
                await self._ready()
            pool = self._pool()
            with pool.timeouts.limit(self.timeout):
                reply = await pool.open(*self._request(call))
                try:
                    content_type = reply.headers.get("Content-Type")
                    if (
                        call.gatherer is None
                        or reply.status >= 300
                        or "json" in (content_type or "").lower()
                    ):
                        body = await self._read(reply, call.largest)
                        reply.check()
                        return self._understand(
                            reply, content_type, body, time.perf_counter() - started
                        )
                    pieces = self._pieces(reply, call.largest)
                    payload = await gather_events(
                        self.where, content_type, pieces, call.gatherer, call.decoding
                    )
                    reply.check()
                    seconds = time.perf_counter() - started
                    limits = parse_rate_limits(reply.raw_headers)
                    return Reply(payload, seconds, limits, tuple(call.gatherer.names))
                except BadReply:
                    reply.distrusted = True
                    raise
                finally:
                    reply.close()
        except Exception as error:
            failed = self._translate(error)
            if (
                isinstance(failed, TimedOut)
                and call.gatherer is not None
                and call.gatherer.has_text
            ):
                failed = StillWriting(
                    f"{self.where} was still sending the answer after"
                    f" {self.timeout:g} s."
                )
            if (
                call.gatherer is not None
                and isinstance(failed, RequestError)
                and failed.reply is None
            ):
                with suppress(Exception):  # an incomplete stream may lack something
                    failed.reply = call.gatherer.result(), False
            raise failed from None

    async def lines(self, path: str) -> AsyncIterator[bytes]:
        """Yield the lines of a file as they arrive, so that a large one takes no memory.

        It raises like `send`.
        """
        unfinished_line = b""
        try:
            if self._ready is not None:
                await self._ready()
            pool = self._pool()
            with pool.timeouts.limit(self.timeout):
                reply = await pool.open(*self._request(Call(path, method="GET")))
            try:
                if not 200 <= reply.status < 300:
                    self._understand(reply, None, await self._read(reply, None), 0.0)
                pieces = self._pieces(reply, bounded=False)
                while True:
                    with pool.timeouts.limit(self.timeout):
                        piece = await anext(pieces, None)
                    if piece is None:
                        break
                    *lines, unfinished_line = (unfinished_line + piece).split(b"\n")
                    self._check_size(len(unfinished_line))
                    for line in lines:
                        yield line
            finally:
                reply.close()
        except Exception as error:
            raise self._translate(error) from None
        if unfinished_line:
            yield unfinished_line

    async def close(self) -> None:
        """Close this event loop's connections, and drop those of closed loops."""
        loop = asyncio.get_running_loop()
        for closing_loop in [
            closing_loop
            for closing_loop in self._pools
            if closing_loop is loop or closing_loop.is_closed()
        ]:
            await self._pools.pop(closing_loop).close()

    def _request(self, call: Call) -> tuple[str, URL, bytes, bytes | None]:
        """Return method, URL, headers and body as they are sent."""
        method = call.method
        url = self._url(call.path)
        body = call.payload
        if body is not None and not isinstance(body, bytes):
            body = encode(body)
        plain = not call.headers and self._sign is None
        key = (method, body is None, call.gatherer is not None, call.decoding)
        lines = self._header_lines.get(key) if plain else None
        if lines is None:
            headers = {} if body is None else {"Content-Type": "application/json"}
            if call.gatherer is not None:
                headers["Accept"] = KINDS[call.decoding]
            headers |= call.headers
            if self._sign is not None:
                headers = dict(self._sign(method, str(url), body or b"", headers))
            lines = _encode_headers(
                _merge_headers(
                    {"Host": url.host_port_subcomponent or ""}, self._headers, headers
                )
            )
            if plain:
                self._header_lines[key] = lines
        return method, url, lines, body

    async def _read(self, reply: Opened, largest: int | None) -> bytes:
        """Read the body, decompressed; it is refused as soon as it is too large."""
        content = reply.content
        if content.is_eof() and "Content-Encoding" not in reply.headers:
            body: bytes = content.read_nowait(-1)
            self._check_size(len(body), largest)
            return body
        pieces: list[bytes] = []
        try:
            async for piece in self._pieces(reply, largest):
                pieces.append(piece)  # noqa: PERF401  # what came before an error is kept
        except Exception as error:
            failed = self._translate(error)
            if isinstance(failed, RequestError):
                failed.reply = usage_within(b"".join(pieces)), True
            raise failed from None
        return b"".join(pieces)

    async def _pieces(
        self, reply: Opened, largest: int | None = None, *, bounded: bool = True
    ) -> AsyncIterator[bytes]:
        """Yield the decompressed body in chunks; `bounded` refuses one that is too large."""
        packing = reply.headers.get("Content-Encoding", "identity").strip().lower()
        if packing not in ("gzip", "x-gzip", "identity"):
            raise bad_reply(
                self.where, f"compressed by gzip (it says {clean(packing, 40)})", b""
            )
        unpacker = (
            None if packing == "identity" else zlib.decompressobj(zlib.MAX_WBITS | 16)
        )
        size = 0
        is_complete = True
        async for piece in reply.content.iter_any():
            while piece:
                unpacked = piece
                piece = b""
                if unpacker is not None:
                    unpacked = unpacker.decompress(unpacked, _LARGEST_PIECE)
                    piece = unpacker.unconsumed_tail
                    is_complete = unpacker.eof
                    if unpacker.unused_data:  # a second gzip member follows the first
                        piece = unpacker.unused_data
                        unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
                if bounded:
                    size += len(unpacked)
                    self._check_size(size, largest)
                yield unpacked
        if not is_complete:
            raise ConnectionFailed(
                f"{self.where} sent a compressed reply that ends early."
            )

    def _check_size(self, size: int, largest: int | None = None) -> None:
        most = (
            self._largest_reply
            if largest is None
            else min(largest, self._largest_reply)
        )
        if size > most:
            raise Rejected(
                f"{self.where} sent a reply of more than {most} bytes; it was dropped.",
                taken=True,
            )

    def _understand(
        self, reply: Opened, content_type: str | None, body: bytes, seconds: float
    ) -> Reply:
        try:
            return self._understood(reply, content_type, body, seconds)
        except RequestError as error:
            error.reply = usage_within(body), True
            raise

    def _understood(
        self, reply: Opened, content_type: str | None, body: bytes, seconds: float
    ) -> Reply:
        status = reply.status
        limits = parse_rate_limits(reply.raw_headers)
        if not 200 <= status < 300:
            headers = reply.headers
            raise error_of_reply(
                self.where,
                status,
                headers,
                body,
                key_source=self._key_source,
                rate_limits=limits,
            )
        # A reply without a content type is accepted, but it must still be JSON.
        if content_type is not None and "json" not in content_type.lower():
            raise bad_reply(
                self.where,
                f"JSON (its content type is '{clean(content_type, 40)}')",
                body,
                status,
            )
        try:
            payload = from_json(body.decode("utf-8"))
        except ValueError:
            raise bad_reply(
                self.where, "complete and valid JSON", body, status
            ) from None
        return Reply(payload, seconds, limits)

    def _translate(self, error: Exception) -> Exception:
        """Translate an error of aiohttp or the system into one of ours."""
        import aiohttp
        from aiohttp.http_exceptions import HttpProcessingError

        match error:
            case RequestError():
                return error
            case aiohttp.ConnectionTimeoutError():
                return TimedOut(
                    f"{self.where} did not accept the connection within"
                    f" {self._connect_timeout:g} s.",
                    taken=False,
                )
            case TimeoutError():
                return TimedOut(
                    f"{self.where} did not answer within {self.timeout:g} s."
                )
            case (
                ssl.SSLError()
                | aiohttp.ClientSSLError()
                | aiohttp.ClientConnectorCertificateError()
            ):
                return CertificateRefused(
                    f"The certificate of {self.where} cannot be trusted:"
                    f" {clean(str(error), 200)}"
                )
            case aiohttp.ClientHttpProxyError():
                return ConnectionFailed(
                    f"The proxy on the way to {self.where} refused ({error.status}).",
                    taken=False,
                )
            case aiohttp.ClientResponseError() | HttpProcessingError():
                return bad_reply(self.where, "HTTP", error.message)
            case zlib.error():
                return bad_reply(self.where, "compressed as it says (gzip)", "")
            case aiohttp.ClientPayloadError():
                return ConnectionFailed(
                    f"The connection to {self.where} broke before the response was"
                    " complete."
                )
            case aiohttp.InvalidURL() | ValueError():
                return Rejected(
                    f"The request to {self.where} could not be sent:"
                    f" {clean(str(error), 200)}"
                )
            case OSError(errno=errno.EMFILE | errno.ENFILE):
                return ConnectionFailed(
                    f"No connection to {self.where}: too many open files. Lower"
                    " max_concurrency, or raise 'ulimit -n'.",
                    taken=False,
                )
            case aiohttp.ClientConnectorError():
                self._pool().forget_addresses()
                where = self.where
                if self._proxy:
                    where = (
                        f"the proxy {urlsplit(self._proxy).netloc.rpartition('@')[2]}"
                        f" on the way to {where}"
                    )
                return ConnectionFailed(
                    f"No connection to {where}: {_reason(error.os_error)}.", taken=False
                )
            case aiohttp.ClientError() | OSError():
                return ConnectionFailed(
                    f"The connection to {self.where} broke before a response arrived."
                )
        return error

    def _pool(self) -> Pool:
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        if pool is None:
            from evalwright.models.remote.http_pool import Pool

            pool = self._pools[loop] = Pool(
                self.base_url,
                proxy=self._proxy,
                limit=self._max_connections,
                connect_timeout=self._connect_timeout,
            )
        return pool

    def _url(self, path: str) -> URL:
        url = self._urls.get(path)
        if url is None:
            from yarl import URL

            # Percent-encoding in a path is sent as it is, because a signature covers it.
            url = URL(str(URL(self.base_url)).rstrip("/") + path, encoded=True)
            if len(self._urls) < _URLS_KEPT:
                self._urls[path] = url
        return url


_encode = encode_function(
    json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
)


def encode(payload: Any) -> bytes:
    """Encode `payload` as compact JSON in UTF-8.

    Raises:
        Rejected: it has NaN or other values that JSON does not have.
    """
    try:
        return _encode(payload).encode()
    except UnicodeEncodeError:
        # A lone surrogate has no UTF-8 encoding, but JSON can escape it.
        return json.dumps(payload, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        raise Rejected(f"The request cannot be written as JSON: {error}.") from None


def check_url(url: str, setting: str = "base_url") -> str:
    """Return `url` without a trailing slash.

    Raises:
        ConfigurationError: it is not an absolute http(s) URL.
    """
    try:
        split_url = urlsplit(url)
        usable = (
            split_url.scheme in ("http", "https")
            and bool(split_url.hostname)
            and split_url.port != 0
        )
    except ValueError:
        usable = False
    if not usable or any(sign.isspace() for sign in url):
        raise ConfigurationError(
            f"'{clean(url, 100)}' is not a usable {setting}: write it in full, for example"
            " http://localhost:8000/v1."
        )
    return url.rstrip("/")


def proxy_for(url: str) -> str | None:
    """Return the environment's proxy for a URL; None for local addresses, those in NO_PROXY."""
    split_url = urlsplit(url)
    if is_local(url) or proxy_bypass(split_url.netloc.rpartition("@")[2]):
        return None
    proxies = getproxies()
    proxy = proxies.get(split_url.scheme) or proxies.get("all")
    if not proxy:
        return None
    if "://" not in proxy:
        proxy = f"http://{proxy}"
    if urlsplit(proxy).scheme not in ("http", "https"):
        raise ConfigurationError(
            f"The environment names a {urlsplit(proxy).scheme} proxy for"
            f" {split_url.hostname}; only http and https proxies can be used. Unset it, or"
            " add the host to NO_PROXY."
        )
    if password := urlsplit(proxy).password:
        remember(password)
    return proxy


def basic_authorization(login: str) -> str:
    """Make the Authorization header of `user:password`."""
    return "Basic " + b64encode(login.encode()).decode()


def _encode_headers(headers: Mapping[str, str]) -> bytes:
    """Encode headers as lines of the request.

    Raises:
        ValueError: a header has a line break in it.
    """
    lines = [f"{name}: {content}" for name, content in headers.items()]
    if any(sign in line for line in lines for sign in "\r\n\0"):
        raise ValueError("a header has a line break in it")
    return "".join(f"{line}\r\n" for line in lines).encode()


def _merge_headers(*header_groups: Mapping[str, str]) -> dict[str, str]:
    """Merge headers; of names that differ only in case, the last takes precedence."""
    by_lower_name = {
        name.lower(): (name, text)
        for group in header_groups
        for name, text in group.items()
    }
    return dict(by_lower_name.values())


def _reason(error: OSError) -> str:
    # asyncio's own words have the address as Python writes it.
    if error.errno is not None and error.errno in errno.errorcode:
        return os.strerror(error.errno)
    text = clean(error.strerror or str(error), 200).rstrip(".")
    return text or type(error).__name__
