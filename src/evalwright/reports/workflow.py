"""Writes a GitHub Actions workflow that runs a suite file and commits its leaderboard where it changed.

Answers are kept in the workflow's cache, so that a rerun requests only what is new. Keys come from the repository's secrets and are known
to the one step that sends requests. A run in which something failed is not published; what was answered is kept all the same.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from importlib.resources import files

from evalwright._version import __version__
from evalwright.core.errors import ConfigurationError

_SECRET = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Publication:
    """What the workflow does. options: of `evalwright leaderboard`, as typed; published: the files that are committed.

    suite: the one of the file's that is run, "" where it has none. extras: of the package, to be installed. watched: files beside
    `config` whose change starts it. trusted: the person lets the file set what only a person decides.
    """

    config: str
    options: tuple[str, ...]
    published: tuple[str, ...]
    secrets: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    watched: tuple[str, ...] = ()
    trusted: bool = False
    suite: str = ""


def workflow(made: Publication) -> str:
    """The workflow as YAML. Raises ConfigurationError for names that a workflow cannot hold."""
    if not made.published:
        raise ConfigurationError(
            "The workflow would publish nothing: name at least one file, for example --into README.md."
        )
    for text in (made.config, made.suite, *made.watched, *made.options):
        if "${{" in text or re.search(r"[\x00-\x1f\x7f]", text):
            raise ConfigurationError(f"A workflow cannot contain {text!r}: it has line breaks or '${{{{'.")
    for text in (made.config, *made.watched, *made.published):
        if text.startswith(("/", "~")) or ".." in re.split(r"[/\\]", text) or re.match("[A-Za-z]:", text):
            raise ConfigurationError(f"'{text}' is outside the repository: give a path relative to its root.")
    for name in made.secrets:
        if not _SECRET.fullmatch(name) or name.upper().startswith("GITHUB_"):
            raise ConfigurationError(
                f"'{name}' cannot be the name of a secret: use letters, digits and underscores, and not beginning with GITHUB_."
            )
    extra = f"[{','.join(sorted(set(made.extras)))}]" if made.extras else ""
    paths = [path.replace("\\", "/").replace("'", "''") for path in (made.config, *made.watched)]
    keys = "".join(f"          {name}: ${{{{ secrets.{name} }}}}\n" for name in made.secrets)
    texts = {
        "@PATH@": "\n      - ".join(f"'{path}'" for path in paths),
        "@INSTALL@": f"python -m pip install 'evalwright{extra}=={__version__}'",
        "@CONFIG@": shlex.quote(made.config)
        + (f" --suite {shlex.quote(made.suite)}" if made.suite else "")
        + (f" --trust-file {shlex.quote(made.config)}" if made.trusted else ""),
        "@OPTIONS@": shlex.join(made.options),
        "@PUBLISHED@": shlex.join(made.published),
        "        @KEYS@\n": f"        env:\n{keys}" if keys else "",
    }
    text = (files("evalwright.reports") / "templates" / "workflow.yml").read_text(encoding="utf-8")
    for mark, value in texts.items():
        text = text.replace(mark, value)
    return text
