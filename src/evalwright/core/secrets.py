"""Which values are secrets, which of them this process has read, and how output masks them.

The lists below say which arguments and headers hold secrets; no other module decides that.
`mask` finds a value that was read as a secret in every form in which a text may contain it
(percent-encoded, JSON- and HTML-escaped, base64, alone or within `user:password`). Whatever is
stored, recorded, exported or printed goes through `mask` or `masked`.
"""

from __future__ import annotations

import json
import os
import re
from binascii import Error, a2b_base64, b2a_base64
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b
from typing import Any, overload
from urllib.parse import quote, quote_plus, unquote

MASKED = "[key]"
MIN_SECRET_CHARS = 8
"""Shortest secret that `mask` looks for in texts: masking shorter ones would garble them.

In a record, a shorter secret is still hidden by its argument's name.
"""

_NAMES = frozenset({
    "access_key", "access_token", "account_key", "api_key", "api_token", "apikey",
    "app_key", "auth", "auth_key", "auth_token", "authorization", "aws_access_key_id",
    "aws_secret_access_key", "aws_session_token", "azure_ad_token", "bearer",
    "bearer_token", "client_secret", "cookie", "credential", "credentials",
    "github_token", "hf_token", "hub_token", "id_token", "jwt", "key",
    "ocp_apim_subscription_key", "passphrase", "passwd", "password", "private_key",
    "proxy_authorization", "pwd", "refresh_token", "secret", "secret_access_key",
    "secret_key", "session_token", "set_cookie", "signature", "subscription_key",
    "token", "use_auth_token", "vertex_credentials", "x_amz_security_token",
})  # fmt: skip
"""Names of arguments that hold a secret, in lower case with underscores."""
_AMBIGUOUS_NAMES = ("auth", "credential", "credentials", "key", "signature")
"""Names that may or may not mean a secret.

Their values are hidden in a record, but masked in texts only where they look like a key.
"""
_NAME_ENDINGS = (
    "_access_key",
    "_access_token",
    "_api_key",
    "_api_token",
    "_apikey",
    "_auth_token",
    "_client_secret",
    "_password",
    "_private_key",
    "_secret",
    "_secret_key",
)
"""Endings of product-specific argument names that hold a secret, such as openai_api_key."""
_SECRET_VARIABLES = ("_KEY", "_TOKEN")
"""Endings of the names of environment variables that hold a secret."""
_HEADERS = ("headers", "extra_headers", "default_headers")
_IDLE_HEADERS = frozenset(
    {
        "accept",
        "accept_encoding",
        "http_referer",
        "openai_organization",
        "openai_project",
        "referer",
        "user_agent",
        "x_title",
    }
)
"""Headers that hold no secret and affect no response: they say who sends."""
_OPEN_HEADERS = _IDLE_HEADERS.union(
    (
        "accept_language",
        "anthropic_beta",
        "anthropic_version",
        "content_type",
        "openai_beta",
    )
)
"""Headers that hold no secret. Any other header is assumed to hold one, whatever its name."""
_PLACEHOLDERS = frozenset({
    "00000000", "12345678", "123456789", "1234567890", "anything", "api-key",
    "api_key", "changeme", "dummy-key", "fake-key", "llama.cpp", "lm-studio",
    "local-key", "localhost", "my-api-key", "no-api-key", "no-key-required",
    "not-needed", "not-used", "notneeded", "password", "placeholder",
    "sk-no-key-required", "test-key", "undefined", "your-api-key",
})  # fmt: skip
"""What people write where a server needs no key. Masking these words would only garble texts."""

_LOOKS_LIKE_KEY = re.compile(
    r"\b(?:sk|pk|rk|gsk|hf|xai|nvapi|r8|pplx|AIza)[-_][A-Za-z0-9_*.-]{8,}|(?<=Bearer"
    r" )[A-Za-z0-9._~+/=*-]{8,}"
)
_SHAPES = re.compile(
    r"\b(?:sk|rk|pk)[-_](?=[A-Za-z_-]{0,200}\d)[A-Za-z0-9_-]{20,200}|\b(?:hf_|gsk_|r8_|pplx-|xai-)[A-Za-z0-9]{30,200}"
    r"|\b(?:nvapi-|glpat-|github_pat_)[A-Za-z0-9_-]{20,200}|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[A-Za-z0-9_-]{35}"
    r"|\bgh[pousr]_[A-Za-z0-9]{36}|\bxox[abprs]-[A-Za-z0-9-]{20,200}|-----BEGIN [A-Z"
    r" ]{0,30}PRIVATE KEY-----"
    r"|\beyJ[A-Za-z0-9_-]{16,300}\.eyJ[A-Za-z0-9_-]{16}"
    r"|\b(?:Bearer|Basic) (?=[A-Za-z._~+/-]{0,200}\d)[A-Za-z0-9._~+/-]{20,2000}"
)
_ADDRESS_BEFORE_NAME = re.compile(r"https?://[^\s#]*#(?=.)", re.IGNORECASE)
"""The address of a server in a model's name, which has the name there after '#'."""
_LOGIN = re.compile(r"(?<=://)([^/?#\s]{1,1000})@")
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NOT_NAME = re.compile(r"[^a-z0-9]+")

_forms: tuple[str, ...] = ()
_bytes: tuple[bytes, ...] = ()


# -- which names


def is_secret(name: str) -> bool:
    """Whether an argument of this name holds a secret.

    Args:
        name: the argument's name: `api_key`, `X-Api-Key` and `apiKey` hold one, `add_bos_token`
            does not.

    Returns:
        Whether it does.
    """
    plain = _plain(name)
    return (
        plain.removeprefix("x_") in _NAMES
        or plain in _NAMES
        or plain.endswith(_NAME_ENDINGS)
    )


def changing_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Select the headers that may change a response, for a fingerprint.

    Headers that only authenticate a request, or say who sends it, are left out.
    """
    sent_headers = {
        name: text
        for name, text in headers.items()
        if _plain(name) not in _IDLE_HEADERS
    }
    open_headers = {
        name.lower(): text for name, text in sent_headers.items() if not is_secret(name)
    }
    digested: dict[str, str] = digested_arguments(open_headers, "headers")
    return digested


def _plain(name: str) -> str:
    return _NOT_NAME.sub("_", _CAPITAL.sub("_", str(name)).lower()).strip("_")


# -- which values


def remember(secret: str) -> None:
    """Register a secret, so that `mask` removes it from now on.

    Secrets shorter than `MIN_SECRET_CHARS` and mere placeholders are ignored.
    """
    global _forms, _bytes
    scheme, _, credentials = secret.partition(" ")
    if credentials and scheme.lower() in ("bearer", "basic", "token"):
        remember(credentials.strip())
        if scheme.lower() == "basic":
            remember(_decode_base64(credentials))
            remember(_decode_base64(credentials).partition(":")[2])
        return
    if (
        len(secret) < MIN_SECRET_CHARS
        or secret.lower() in _PLACEHOLDERS
        or secret in _forms
    ):
        return
    _forms = tuple(sorted({*_forms, *_encoded_forms(secret)}, key=len, reverse=True))
    _bytes = tuple(form.encode("utf-8", "surrogatepass") for form in _forms)


def remember_within(value: Any, name: str = "") -> None:
    """Register every secret in a value: an argument, a mapping of arguments, or a URL with a login.

    Args:
        value: the value to search.
        name: the name of the argument, which says whether the value itself is a secret.
    """
    with suppress(RecursionError):  # nested too deep: records hide it as a whole
        for secret in _iter_secrets(value, name):
            remember(secret)


def remember_environment(variables: Mapping[str, str] = os.environ) -> None:
    """Register the secrets among environment variables.

    For code that may receive a secret which this process has not sent itself.
    """
    for name, value in variables.items():
        if (
            is_secret(name) or name.endswith(_SECRET_VARIABLES)
        ) and not value.startswith(("/", "~", ".")):
            remember(value)


def remember_variable(name: str, variable: str, value: str) -> None:
    """Register a value in an address if its name, variable or form marks it as a secret."""
    named = (
        is_secret(name) or is_secret(variable) or variable.endswith(_SECRET_VARIABLES)
    )
    if named or _plain(name).endswith("_token") or find_key_prefix(value):
        remember(value)


def remember_within_address(
    url: str, variables: Mapping[str, str] = os.environ
) -> None:
    """Register the parts of an address that are secrets.

    These are the values of secret environment variables, and what looks like a well-known kind of
    key.
    """
    plain = unquote(url)
    for name, value in variables.items():
        if (
            (is_secret(name) or name.endswith(_SECRET_VARIABLES))
            and len(value) >= MIN_SECRET_CHARS
            and value in plain
        ):
            remember(value)
    for match in _SHAPES.finditer(plain):
        remember(match[0])


def _iter_secrets(value: Any, name: str) -> Iterator[str]:
    if is_secret(name) and not isinstance(value, Mapping | list | tuple):
        if _plain(name) not in _AMBIGUOUS_NAMES or _is_like_a_key(str(value)):
            yield str(value)
    elif isinstance(value, str):
        for login in _LOGIN.findall(value):
            user, _, password = unquote(login).partition(":")
            yield from (unquote(login), password or user)
        if (inner := _as_json(value)) is not None:
            yield from _iter_secrets(inner, name)
    elif isinstance(value, Mapping):
        for key, member in value.items():
            may_be_secret = (
                name in _HEADERS
                and _plain(key) not in _OPEN_HEADERS
                and not is_secret(key)
            )
            yield from _iter_secrets(
                member,
                name if is_secret(name) else "key" if may_be_secret else str(key),
            )
    elif isinstance(value, list | tuple):
        for member in value:
            yield from _iter_secrets(member, name)


def _is_like_a_key(text: str) -> bool:
    """Tell whether a value that may or may not be a key ("us-east-1") looks like one."""
    is_mixed = any(map(str.isdigit, text)) and any(map(str.isalpha, text))
    return len(text) >= 12 and is_mixed and text.find(" ", 8) < 0


def _encoded_forms(secret: str) -> set[str]:
    """List the encoded forms in which a secret may appear in texts."""
    encoded = {quote(secret, safe=""), quote(secret), quote_plus(secret)}
    lower = {re.sub("%..", lambda match: match[0].lower(), form) for form in encoded}
    escaped = {json.dumps(form)[1:-1] for form in (secret, json.dumps(secret)[1:-1])}
    escaped.add(json.dumps(secret, ensure_ascii=False)[1:-1])
    html = secret.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for quotes in (("&#34;", "&#39;"), ("&quot;", "&#x27;"), ('"', "'")):
        escaped.add(html.replace('"', quotes[0]).replace("'", quotes[1]))
    raw = secret.encode("utf-8", "surrogatepass")
    # Every character escaped (percent, JSON, HTML), in hexadecimal, in upper and lower case.
    units = re.findall("....", secret.encode("utf-16-be", "surrogatepass").hex())
    whole_forms = [
        "%" + raw.hex("%"),
        "\\u" + "\\u".join(units),
        raw.hex(),
        raw.hex(" "),
        raw.hex(":"),
    ]
    encoded |= {
        *whole_forms,
        *(
            re.sub("[0-9a-f]{2}", lambda match: match[0].upper(), form)
            for form in whole_forms
        ),
    }
    escaped |= {
        form.replace("\\", "\\\\") for form in encoded if form.startswith("\\u")
    }
    escaped |= {
        "".join(f"&#{form.format(ord(sign))};" for sign in secret)
        for form in ("{}", "x{:x}")
    }
    if _is_like_a_key(secret):
        escaped |= {secret.lower(), secret.upper()}
    for shift in range(3):
        # In base64, the characters that depend on the secret alone, at each of the three
        # alignments: the secret may follow other text, as in the "user:secret" of a Basic login.
        padded = b2a_base64(bytes(shift) + raw + bytes(2), newline=False).decode()
        core = padded[-(-shift * 8 // 6) : (shift + len(raw)) * 8 // 6]
        encoded |= {core, core.replace("+", "-").replace("/", "_")}
    return {
        form
        for form in {secret, *encoded, *lower, *escaped}
        if len(form) >= MIN_SECRET_CHARS
    }


def _decode_base64(text: str) -> str:
    try:
        return a2b_base64(text.strip()).decode("utf-8")
    except (Error, ValueError):
        return ""


# -- what is written


def mask(text: str) -> str:
    """Replace every secret that this process has read.

    Args:
        text: a text to be shown or written.

    Returns:
        The text with a mark in place of each secret; the same text if it has none.
    """
    for form in _forms:
        if form in text:
            # A secret of digits only must not be found inside a longer number.
            pattern = rf"(?<![\d.]){form}(?!\d)" if form.isdecimal() else ""
            text = (
                re.sub(pattern, MASKED, text) if pattern else text.replace(form, MASKED)
            )
    return text


def mask_message(text: str) -> str:
    """Mask known secrets and everything that looks like a key.

    Servers repeat a part of a wrong key ("sk-ab***yz"), which is no known secret.

    Args:
        text: a message from outside, such as a server's error.

    Returns:
        The text with a mark in place of each secret.
    """
    return _LOOKS_LIKE_KEY.sub(MASKED, mask(text))


def mask_json(document: bytes) -> bytes:
    """Mask the secrets of a JSON document.

    Returns compact JSON, or the same bytes if it has none.
    """
    if not _is_within(_bytes, document):
        return document
    cleaned = masked(json.loads(document.decode("utf-8", "surrogatepass")))
    return json.dumps(cleaned, separators=(",", ":"), ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )


_MARKERS = (b"%", b"&", b"\\")
"""Of escaped forms: a document without one of them has none of the forms that have it."""
_HEX_DIGITS = b"0123456789ABCDEFabcdef"
_HEX_SIGNS = bytes.maketrans(
    bytes(range(256)),
    bytes(
        ord("x" if sign in _HEX_DIGITS else "-" if sign in b" :" else ".")
        for sign in range(256)
    ),
)
"""Writes x for a hexadecimal digit, - for what may stand between two pairs, a point for others."""
_HEX_SHAPES = (b"xx" * MIN_SECRET_CHARS, b"-".join([b"xx"] * MIN_SECRET_CHARS))
"""The least that a form in hexadecimal has, without and with signs between."""


@lru_cache(maxsize=4)
def _by_marker(
    forms: tuple[bytes, ...],
) -> tuple[
    tuple[tuple[bytes, list[bytes]], ...], tuple[tuple[bytes, list[bytes]], ...]
]:
    """Group forms by what a document with them has: a marker, and a shape of hexadecimal digits.

    The forms with neither are under the empty marker.
    """
    marked: dict[bytes, list[bytes]] = {}
    shaped: dict[bytes, list[bytes]] = {}
    for form in forms:
        marker = next((sign for sign in _MARKERS if sign in form), b"")
        signs = form.translate(_HEX_SIGNS)
        shape = next(
            (hex_shape for hex_shape in _HEX_SHAPES if hex_shape in signs), b""
        )
        if shape and not marker:
            shaped.setdefault(shape, []).append(form)
        else:
            marked.setdefault(marker, []).append(form)
    return tuple(marked.items()), tuple(shaped.items())


def _is_within(forms: tuple[bytes, ...], document: bytes) -> bool:
    """Return whether a document has one of the forms."""
    marked, shaped = _by_marker(forms)
    for marker, marked_forms in marked:
        if marker in document:
            for form in marked_forms:
                if form in document:
                    return True
    if not shaped:
        return False
    signs = document.translate(_HEX_SIGNS)
    for shape, shaped_forms in shaped:
        if shape in signs:
            for form in shaped_forms:
                if form in document:
                    return True
    return False


def holds_secret(text: str) -> bool:
    """Tell whether a text contains a secret that this process has read."""
    for form in _forms:  # noqa: SIM110  # several times for each request: `any` takes twice the time
        if form in text:
            return True
    return False


@overload
def masked(value: str) -> str: ...
@overload
def masked(value: Any) -> Any: ...
def masked(value: Any) -> Any:
    """Remove every secret that this process has read.

    Args:
        value: a text to be shown or written, or plain values with texts in them.

    Returns:
        The same with a mark in place of each secret, in keys too; what is not text stays as it is.
    """
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, Mapping):
        return {
            mask(key) if isinstance(key, str) else key: masked(member)
            for key, member in value.items()
        }
    return (
        [masked(element) for element in value]
        if isinstance(value, list | tuple)
        else value
    )


def masked_arguments(value: Any, name: str = "") -> Any:
    """Mask the secrets among a model's arguments, for a record.

    Args:
        value: an argument, or a mapping or list of arguments.
        name: the argument's name, which can mark it as a secret ("api_key").

    Returns:
        The same with a mark in place of each secret, recognised by its name, in a URL, or because
        this process has read it.
    """
    try:
        return _replace_secrets(value, name, lambda _: MASKED, mask)
    except RecursionError:
        return MASKED


def without_login(url: str) -> str:
    """Remove user and password from a URL, or from the URLs in a text."""
    return _LOGIN.sub("", url)


def without_address(name: str) -> str:
    """Remove a server's address from a model's name: "openai/http://host:8000/v1#beta" is shown as
    "openai/beta".
    """
    return _ADDRESS_BEFORE_NAME.sub("", name)


def digested_arguments(value: Any, name: str = "") -> Any:
    """Replace each secret among arguments by a digest, for a fingerprint.

    Another secret gives another fingerprint, and none can be read from it.

    Args:
        value: an argument, or a mapping or list of arguments.
        name: the argument's name, by which a secret is told ("api_key").

    Returns:
        The same with digests.
    """
    try:
        return _replace_secrets(value, name, digest, str)
    except RecursionError:
        return digest(str(value))


def digest(secret: Any) -> str:
    """Hash a secret, so that equal secrets can be recognised but not read."""
    text = json.dumps(secret, sort_keys=True, default=str).encode()
    return (
        "secret:" + blake2b(text, digest_size=16, key=b"evalwright secret").hexdigest()
    )


def _replace_secrets(
    value: Any, name: str, instead: Callable[[Any], str], text: Callable[[str], str]
) -> Any:
    if value is None or isinstance(value, bool) or value == "":
        return value
    if is_secret(name):
        return instead(value)
    if isinstance(value, Mapping):
        return {
            key: (
                instead(member)
                if name in _HEADERS and _plain(key) not in _OPEN_HEADERS
                else _replace_secrets(member, str(key), instead, text)
            )
            for key, member in value.items()
        }
    if isinstance(value, list | tuple):
        return [_replace_secrets(element, name, instead, text) for element in value]
    if not isinstance(value, str):
        return value
    if (inner := _as_json(value)) is not None:
        replaced = _replace_secrets(inner, name, instead, text)
        return value if replaced == inner else json.dumps(replaced, ensure_ascii=False)
    return text(_LOGIN.sub(lambda match: f"{instead(match[1])}@", value))


def _as_json(text: str) -> Mapping[str, Any] | None:
    """Parse an argument that holds a mapping as JSON text; None if it does not."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, Mapping) else None


def find_key_prefix(text: str) -> str:
    """Return the first characters of the first well-known kind of key in a text; "" without one."""
    match = _SHAPES.search(text)
    return match[0][:6] if match else ""
