"""What a task says of an MCP server: its command or its address, and what it may have of ours.

    {mcp: [uvx, mcp-server-time], env: [TZ], prefix: time_}
    {mcp: "https://tools.example.com/mcp", headers: {Authorization: "Bearer ${TOOLS_TOKEN}"}}

A server that is a process has PATH, and no other variable of this process but those that are named.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from evalwright.core.errors import ConfigurationError, check_known
from evalwright.core.secrets import remember_variable, without_login

KEYS = ("env", "headers", "mcp", "only", "prefix", "session", "start_seconds")
START_SECONDS = 30.0
"""Most seconds until a server has listed its tools."""
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_PREFIX = re.compile(r"[A-Za-z0-9_-]{0,40}")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class McpServer:
    """An MCP server, as a task names it.

    Args:
        command: the program with its arguments; empty for a server at an address.
        url: its address; "" for a program.
        folder: the folder in which the program runs.
        env: by variable of the program, its value, in which "${NAME}" stands for a variable of this
            process.
        headers: by header of each HTTP request, its value, with such variables.
        only: the server's tools that are used; empty for all.
        prefix: begins the names that models see.
        session: "sample" for a session for each sample, "run" for one that all samples share.
        start_seconds: most seconds until it has listed its tools.
    """

    command: tuple[str, ...] = ()
    url: str = ""
    folder: Path | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    only: tuple[str, ...] = ()
    prefix: str = ""
    session: Literal["sample", "run"] = "sample"
    start_seconds: float = START_SECONDS

    @property
    def label(self) -> str:
        """What messages call it."""
        parts = [Path(part).name if part[:1] == "/" else part for part in self.command]
        where = without_login(self.url) if self.url else shlex.join(parts)
        return f"the MCP server '{where[:120]}'"

    @property
    def permission(self) -> str:
        """What it would do and get, for whoever decides whether it may: nothing is left out."""
        places = [*sorted(self.env.items()), *sorted(self.headers.items())]
        having = ", ".join(_with_variables(*place) for place in places)
        end = f" with {having}" if having else ""
        if self.url:
            return f"sends what models call to {self.label}{end}"
        return f"starts the MCP server '{shlex.join(self.command)}'{end}"

    def as_dict(self) -> dict[str, Any]:
        """Return its settings for records: plain JSON, with the names of variables alone."""
        settings: dict[str, Any] = {
            "mcp": without_login(self.url) if self.url else list(self.command),
            "env": sorted(self.env),
            "headers": sorted(self.headers),
            "only": list(self.only),
            "prefix": self.prefix,
            "session": self.session,
        }
        return {name: setting for name, setting in settings.items() if setting}

    def environment(self) -> dict[str, str]:
        """Return the variables of the program.

        Raises:
            ConfigurationError: a variable that it should have is not set.
        """
        inherited = {
            name: os.environ[name]
            for name in ("PATH", "SYSTEMROOT", "PATHEXT")
            if name in os.environ
        }
        settings = {"LANG": "C.UTF-8", "PYTHONUNBUFFERED": "1"}
        return {**inherited, **settings, **self._filled(self.env)}

    def request_headers(self) -> dict[str, str]:
        """Return the headers of requests.

        Raises:
            ConfigurationError: a variable that they should have is not set.
        """
        return self._filled(self.headers)

    def _filled(self, texts: Mapping[str, str]) -> dict[str, str]:
        def value_of(match: re.Match[str]) -> str:
            variable = match[1]
            if variable not in os.environ:
                raise ConfigurationError(
                    f"The variable {variable} is not set, and {self.label} needs it."
                )
            content = os.environ[variable]
            remember_variable(variable, variable, content)
            return content

        return {name: _VARIABLE.sub(value_of, text) for name, text in texts.items()}


def read_server(settings: Mapping[str, Any], folder: Path | None) -> McpServer:
    """Read the settings of a server.

    Args:
        settings: as a task file has them.
        folder: the folder in which a program runs.

    Raises:
        ConfigurationError: they cannot be used.
    """
    check_known("key of an MCP server", settings, KEYS)
    command, url = _command_or_url(settings.get("mcp"))
    if url and settings.get("env"):
        raise ConfigurationError("`env` is for MCP servers that are programs.")
    if command and settings.get("headers"):
        raise ConfigurationError("`headers` is for MCP servers at an address.")
    headers = _texts_by_name(settings.get("headers"), "headers")
    if headers and urlsplit(url).scheme == "http" and not _is_loopback(url):
        raise ConfigurationError(
            f"The headers of the MCP server at '{without_login(url)}' would be sent"
            " unencrypted: use https."
        )
    only = settings.get("only") or ()
    if isinstance(only, str) or not all(isinstance(name, str) for name in only):
        raise ConfigurationError(
            "`only` of an MCP server is a list of its tools' names."
        )
    prefix = settings.get("prefix", "")
    if not isinstance(prefix, str) or not _PREFIX.fullmatch(prefix):
        raise ConfigurationError(
            "The `prefix` of an MCP server is up to 40 letters, digits, '_' or '-'."
        )
    session = settings.get("session", "sample")
    if session not in ("sample", "run"):
        raise ConfigurationError(
            "`session` of an MCP server is 'sample', a session for each sample, or 'run',"
            " one for all."
        )
    seconds = settings.get("start_seconds", START_SECONDS)
    if (
        isinstance(seconds, bool)
        or not isinstance(seconds, int | float)
        or not seconds > 0
    ):
        raise ConfigurationError(
            "`start_seconds` of an MCP server is a number above 0."
        )
    return McpServer(
        command,
        url,
        folder,
        _texts_by_name(settings.get("env"), "env"),
        headers,
        tuple(only),
        prefix,
        session,
        float(seconds),
    )


def _command_or_url(setting: Any) -> tuple[tuple[str, ...], str]:
    if isinstance(setting, str):
        if setting.startswith(("http://", "https://")):
            if not urlsplit(setting).hostname:
                raise ConfigurationError(f"'{setting[:80]}' is no address of a server.")
            return (), setting
        try:
            setting = shlex.split(setting)
        except ValueError:
            setting = []
    is_command = (
        isinstance(setting, list | tuple)
        and len(setting) > 0
        and all(isinstance(part, str) and "\0" not in part for part in setting)
        and bool(setting[0].strip())
    )
    if not is_command:
        raise ConfigurationError(
            "An MCP server is named by its command (`mcp: [uvx, mcp-server-time]`) or by its"
            " address (`mcp: https://...`)."
        )
    return tuple(setting), ""


def _texts_by_name(setting: Any, key: str) -> dict[str, str]:
    """Read a mapping of names to texts, or a list of names that each have their own value."""
    if setting is None:
        return {}
    if isinstance(setting, list | tuple) and key == "env":
        setting = {str(name): f"${{{name}}}" for name in setting}
    if not isinstance(setting, Mapping) or not all(
        isinstance(name, str) and isinstance(text, str) and name
        for name, text in setting.items()
    ):
        raise ConfigurationError(
            f"`{key}` of an MCP server is a mapping of names to texts, such as"
            ' {NAME: "${NAME}"}.'
        )
    return dict(setting)


def _with_variables(name: str, text: str) -> str:
    """Return the name of a variable or header, and which variables of ours fill it."""
    ours = [variable for variable in _VARIABLE.findall(text) if variable != name]
    return f"{name} (your {', '.join(ours)})" if ours else name


def _is_loopback(url: str) -> bool:
    return urlsplit(url).hostname in _LOOPBACK
