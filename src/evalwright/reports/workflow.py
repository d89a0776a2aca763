"""A GitHub Actions workflow that runs a suite and commits its leaderboard when it changes.

Answers are kept in the workflow's cache, so that a rerun requests only what is new. Keys come
from the repository's secrets and are only given to the step that sends requests. A run with
failures is not published, but its answers are kept too.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution, metadata
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from evalwright._version import __version__
from evalwright.core.errors import ConfigurationError

_SECRET = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Publication:
    """What the workflow runs and publishes.

    Attributes:
        config: The suite file.
        options: Options of `evalwright leaderboard`, as typed.
        published: The files that are committed.
        secrets: Names of the repository's secrets that the suite needs.
        extras: Extras of the package to install.
        watched: Files beside `config` whose change starts the workflow.
        trusted: Whether the suite file may make settings that only a user may make.
        suite: Which suite of the file to run; "" where it has only one.
        plugins: Plug-ins named on the command line.
        requirements: What pip installs; by default this version of the package with its extras.
    """

    config: str
    options: tuple[str, ...]
    published: tuple[str, ...]
    secrets: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    watched: tuple[str, ...] = ()
    trusted: bool = False
    suite: str = ""
    plugins: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Requirement:
    """What pip installs to get this package elsewhere.

    Attributes:
        note: A remark on it for the user; "" for none.
    """

    text: str
    note: str = ""


def requirement_here(extras: Sequence[str]) -> Requirement:
    """Say how to install this package, with extras, on another machine.

    It is named by its version if it came from an index, and by address and commit if it came from a
    repository. A folder is named by its path in the working folder, or else by the project's
    repository.
    """
    name = f"evalwright[{','.join(sorted(set(extras)))}]" if extras else "evalwright"
    origin = _origin()
    if origin is None:
        return Requirement(f"{name}=={__version__}")
    address = str(origin.get("url", ""))
    source = origin.get("vcs_info")
    if isinstance(source, Mapping) and source.get("vcs") and _is_public(address):
        commit = source.get("commit_id", "")
        return Requirement(
            f"{name} @ {source['vcs']}+{address}{f'@{commit}' if commit else ''}"
        )
    folder = (
        Path(unquote(urlsplit(address).path)) if address.startswith("file:") else None
    )
    if (
        folder is not None
        and folder.is_dir()
        and folder.resolve().is_relative_to(Path.cwd().resolve())
    ):
        relative = folder.resolve().relative_to(Path.cwd().resolve()).as_posix()
        return Requirement(
            f"./{relative}{name.removeprefix('evalwright')}"
            if relative != "."
            else f".{name.removeprefix('evalwright')}"
        )
    repository = _repository()
    return Requirement(
        f"{name} @ git+{repository}",
        "This evalwright is installed from a folder, so the workflow installs"
        f" {repository}. To install another one, add --install REQUIREMENT, such as"
        f" --install '{name}=={__version__}'.",
    )


def _origin() -> Mapping[str, Any] | None:
    """Read where pip installed this package from; None for an index (PEP 610)."""
    try:
        text = distribution("evalwright").read_text("direct_url.json")
        origin = json.loads(text) if text else None
    except (PackageNotFoundError, ValueError):
        return {}
    return origin if isinstance(origin, dict) else None


def _is_public(address: str) -> bool:
    """Whether an address is public: HTTPS without a user name."""
    url = urlsplit(address)
    return url.scheme == "https" and "@" not in url.netloc


def _repository() -> str:
    addresses = metadata("evalwright").get_all("Project-URL") or []
    url_by_name: dict[str, str] = dict(
        address.split(", ", 1) for address in addresses if ", " in address
    )
    return url_by_name.get("Source", "https://github.com/evalwright/evalwright")


def _quote(requirement: str) -> str:
    return f"'{requirement}'" if "'" not in requirement else shlex.quote(requirement)


def workflow(publication: Publication) -> str:
    """Write the workflow as YAML.

    Raises ConfigurationError for names that a workflow cannot contain.
    """
    if not publication.published:
        raise ConfigurationError(
            "The workflow would publish nothing: name at least one file, for example"
            " --into README.md."
        )
    for text in (
        publication.config,
        publication.suite,
        *publication.watched,
        *publication.options,
        *publication.plugins,
        *publication.requirements,
    ):
        if "${{" in text or re.search(r"[\x00-\x1f\x7f]", text):
            raise ConfigurationError(
                f"A workflow cannot contain {text!r}: it has line breaks or '${{{{'."
            )
    for text in (
        publication.config,
        *publication.watched,
        *publication.plugins,
        *publication.published,
    ):
        if (
            text.startswith(("/", "~"))
            or ".." in re.split(r"[/\\]", text)
            or re.match("[A-Za-z]:", text)
        ):
            raise ConfigurationError(
                f"'{text}' is outside the repository: give a path relative to its root."
            )
    for name in publication.secrets:
        if not _SECRET.fullmatch(name) or name.upper().startswith("GITHUB_"):
            raise ConfigurationError(
                f"'{name}' cannot be the name of a secret: use letters, digits and"
                " underscores, and not beginning with GITHUB_."
            )
    extra = (
        f"[{','.join(sorted(set(publication.extras)))}]" if publication.extras else ""
    )
    requirements = publication.requirements or (f"evalwright{extra}=={__version__}",)
    plugins = "".join(f" --plugin {shlex.quote(file)}" for file in publication.plugins)
    paths = [
        path.replace("\\", "/").replace("'", "''")
        for path in (publication.config, *publication.watched)
    ]
    keys = "".join(
        f"          {name}: ${{{{ secrets.{name} }}}}\n" for name in publication.secrets
    )
    texts = {
        "@PATH@": "\n      - ".join(f"'{path}'" for path in paths),
        "@INSTALL@": f"python -m pip install {' '.join(map(_quote, requirements))}",
        "@CONFIG@": (
            shlex.quote(publication.config)
            + (
                f" --suite {shlex.quote(publication.suite)}"
                if publication.suite
                else ""
            )
            + (
                f" --trust-file {shlex.quote(publication.config)}"
                if publication.trusted
                else ""
            )
            + plugins
        ),
        "@OPTIONS@": shlex.join(publication.options),
        "@PUBLISHED@": shlex.join(publication.published),
        "        @KEYS@\n": f"        env:\n{keys}" if keys else "",
    }
    text = (files("evalwright.reports") / "templates" / "workflow.yml").read_text(
        encoding="utf-8"
    )
    for mark, replacement in texts.items():
        text = text.replace(mark, replacement)
    return text
