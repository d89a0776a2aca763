"""API keys: found in the environment or a `.env` file, bound to hosts, shown nowhere.

A provider's key is sent only to the provider's own hosts. Any other server gets only a key that the
user names for it: by `api_key_env`, or by its host in their trust file. A `.env` file gives values
to such variables and is read for nothing else.

A key is kept in a `Secret`, whose `str` and `repr` never show it, and every key that was ever read
in this process is known to `core.secrets.mask`, which removes it from any text before a person or a
file sees it.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlsplit

from evalwright.core.errors import ConfigurationError
from evalwright.core.private import check_ordinary
from evalwright.core.secrets import MASKED, remember
from evalwright.models.trust import trust_path, trusted


class Secret:
    """A key, whose text only `reveal` gives."""

    __slots__ = ("_value", "source")

    def __init__(self, text: str, source: str = "") -> None:
        self._value = text
        self.source = source
        remember(text)

    def reveal(self) -> str:
        """Return the key itself."""
        return self._value

    def __repr__(self) -> str:
        return f"Secret({self.source or MASKED})"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("A secret cannot be serialised.")


def find_key(variable: str, folder: Path | None = None) -> Secret | None:
    """Find a key in an environment variable, else in `.env` of the working folder (or `folder`).

    A variable that is set but empty counts as "no key", whatever `.env` says, because the
    environment takes precedence. Without a key the result is None.

    Raises:
        ConfigurationError: no HTTP header can carry the key.
    """
    if variable in os.environ:
        key = os.environ[variable].strip()
        source = f"${variable}"
    else:
        key = read_env_file((folder or Path.cwd()) / ".env").get(variable, "")
        source = f".env:{variable}"
    if not key:
        return None
    secret = Secret(key, source)
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigurationError(
            f"The key in {source} has spaces, line breaks or other characters that are"
            " not part of a key. Copy it again."
        )
    return secret


def key_variables(
    url: str, named: str | None, provider_keys: Sequence[str], is_own: bool
) -> tuple[str, ...]:
    """Return the variables that may hold the key for a URL.

    For a host that is not the provider's own, they are those of the provider's that the trust file
    allows for it, else all that the trust file has for it.

    Args:
        url: the server.
        named: the variable that the user names.
        provider_keys: the provider's variables.
        is_own: whether the URL is one of the provider's own hosts.

    Raises:
        ConfigurationError: `named` is not the name of a variable.
    """
    if named and re.fullmatch(r"[A-Za-z_]\w*", named, re.ASCII) is None:
        raise ConfigurationError(  # more likely a key, so it is not repeated
            "api_key_env is the name of the environment variable that holds the key,"
            " such as OPENAI_API_KEY, and not the key itself; what was given is no"
            " variable's name."
        )
    if named:
        return (named,)
    if is_own:
        return tuple(provider_keys)
    bound = trusted().keys.get((urlsplit(url).hostname or "").lower(), ())
    return tuple(variable for variable in provider_keys if variable in bound) or bound


def missing_key(
    variables: Sequence[str], provider_keys: Sequence[str], subject: str, url: str = ""
) -> str:
    """Make the message for a missing key.

    Args:
        variables: the variables, from `key_variables`.
        provider_keys: the provider's own variables.
        subject: what needs the key.
        url: the server.
    """
    if not variables:
        variable = (provider_keys or ("VARIABLE",))[0]
        host = urlsplit(url).hostname
        return (
            f"{subject}: a provider's key is only sent to the provider's own hosts, not to"
            f" {host}. If the key in {variable} is meant "
            f'for it, add -M api_key_env={variable}; for every run, write "{host}" ='
            f' ["{variable}"] under [keys] of {trust_path()}.'
        )
    variable = variables[0]
    return (
        f"{subject} needs an API key: set the environment variable {variable}, or write a"
        f" line {variable}=... into a file named .env in the working folder."
    )


def read_env_file(path: Path) -> dict[str, str]:
    """Read the `KEY=VALUE` lines of a file; {} if it does not exist.

    `export KEY=VALUE`, quotes and comments are understood; nothing is expanded or executed.

    Raises:
        ConfigurationError: the file is not text.
    """
    try:
        text = check_ordinary(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        reason = (
            "it is not UTF-8 text"
            if isinstance(error, UnicodeDecodeError)
            else error.strerror
        )
        raise ConfigurationError(f"The file {path} cannot be read: {reason}.") from None
    variables = {}
    for line in text.splitlines():
        name, equals, content = line.strip().removeprefix("export ").partition("=")
        name = name.strip()
        if equals and name and not name.startswith("#"):
            variables[name] = _unquote(content.strip())
    return variables


def _unquote(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    return text.split(" #", 1)[0].rstrip()


@lru_cache(maxsize=64)
def is_local(url: str) -> bool:
    """Return whether a URL leads to this machine or the private network around it.

    Such servers need no key. They are loopback, private and link-local addresses, names without a
    dot, and names under .localhost, .local, .lan and .internal.
    """
    host = (urlsplit(url).hostname or "").rstrip(".")
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith(
            (".localhost", ".local", ".lan", ".internal")
        )
    return address.is_loopback or address.is_private or address.is_link_local
