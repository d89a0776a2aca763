"""The repository of a leaderboard, as `evalwright init --leaderboard` writes it.

Workflows are written for a `board.yaml`: its providers say which secrets the steps that send
requests get. No text of a contributor is in them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from evalwright.entries.board_file import BoardFile
from evalwright.entries.entry_file import MAX_ENTRY_BYTES
from evalwright.evaluation.configuration import ModelSpec
from evalwright.evaluation.needs import extras_of, keys_of
from evalwright.reports.workflow import Requirement, requirement_here

SEA_HELM = "sea-helm"
KINDS = ("blank", "hhem", SEA_HELM)
"""The boards that there are templates of."""
WORKFLOWS = ("entry.yml", "trial.yml", "publish.yml", "drift.yml")
WORKFLOWS_FOLDER = ".github/workflows"
BRANCH = "main"
CHECKOUT = """\
      - uses: actions/checkout@v5
        with:
"""
CHECKOUT_WITH_SUBMODULES = f"{CHECKOUT}          submodules: true\n"
_CRONS = {"day": "41 4 * * *", "week": "41 4 * * 1", "month": "41 4 1 * *"}
_TEXTS = {
    "README.md": "readme.md",
    "CONTRIBUTING.md": "contributing.md",
    ".github/CODEOWNERS": "codeowners",
    ".gitignore": "gitignore",
}
"""Files of the repository besides the board and the workflows, and the template of each."""
EXAMPLE = "entries/example.yaml"
EMPTY_FOLDER = "entries/.gitkeep"


@dataclass(frozen=True, slots=True)
class Workflows:
    """The workflows of a board.

    Attributes:
        texts: by path in the repository.
        secrets: the names of the secrets that they use.
        requirement: what they install.
    """

    texts: Mapping[str, str]
    secrets: tuple[str, ...]
    requirement: Requirement


def board_text(kind: str) -> str:
    """The `board.yaml` of a kind of board; one of KINDS."""
    rules = _template("board-rules.yaml")
    if kind == SEA_HELM:
        # Its tasks send messages, which the demo models do not take.
        rules = rules.replace(", demo]", "]      ").replace(
            "; demo is for the example", ""
        )
    return _template(f"board-{kind}.yaml") + rules


def repository_texts(board: BoardFile) -> dict[str, str]:
    """Write the files of a repository besides the board and the workflows, by path."""
    marks = {"@TITLE@": board.title, "@RULES@": _rules_text(board)}
    texts = {path: _template(name) for path, name in _TEXTS.items()}
    if "demo" in board.entries.providers:
        texts[EXAMPLE] = _template("example.yaml")
    else:
        texts[EMPTY_FOLDER] = ""  # git keeps no empty folder
    for mark, replacement in marks.items():
        texts = {path: text.replace(mark, replacement) for path, text in texts.items()}
    return texts


def workflows(board: BoardFile) -> Workflows:
    """Write the workflows of a board."""
    secrets = secrets_of(board)
    publish = board.publish
    requirement = requirement_here(_extras_of(board))
    published = [path for path in (publish.readme, publish.plot, publish.site) if path]
    # Artifacts of a public repository are public: only samples of a release pass through one.
    is_release = publish.samples == "release"
    dataset = publish.samples.removeprefix("hub:")
    hub_step = _template("hub.yml").replace("@DATASET@", dataset)
    marks = {
        "@INSTALL@": f"python -m pip install {_quoted(requirement.text)}",
        "@BRANCH@": BRANCH,
        "@CRON@": _CRONS[board.drift.every],
        "@PUBLISHED@": shlex.join(published),
        "@SAMPLES@": " --samples-into out/samples" if is_release else "",
        "@RELEASE@": _template("release.yml") if is_release else "",
        "@HUB@": hub_step if publish.samples.startswith("hub:") else "",
        "        @KEYS@\n": _keys_text(secrets),
        "          @KEY_ROWS@\n": _key_rows(secrets),
        "@ISSUE@": _template("issue.sh").rstrip().replace("\n", "\n          "),
    }
    texts = {}
    for name in WORKFLOWS:
        text = _template(name)
        if task_folder_of(board):
            text = text.replace(CHECKOUT, CHECKOUT_WITH_SUBMODULES)
        for mark, replacement in marks.items():
            text = text.replace(mark, replacement)
        texts[f"{WORKFLOWS_FOLDER}/{name}"] = text
    return Workflows(texts, tuple(secrets), requirement)


def task_folder_of(board: BoardFile) -> str:
    """Return the folder of another framework's tasks, which is a submodule; "" without one."""
    return str(board.suite.dialect.get("task_root") or "")


def secrets_of(board: BoardFile) -> list[str]:
    """List the environment variables of the keys that a board's models and judges need."""
    specs = [ModelSpec(f"{provider}/any") for provider in board.entries.providers]
    names = keys_of(board.configuration(specs))
    names += [key for key in board.entries.base_urls.values() if key]
    if board.publish.samples.startswith("s3:"):
        names += ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]
    if board.publish.samples.startswith("hub:"):
        names.append("HF_TOKEN")
    return list(dict.fromkeys(names))


def has_entries(folder: Path) -> bool:
    """Whether a repository has entries, so that it needs no example."""
    entries_folder = folder / "entries"
    return entries_folder.is_dir() and any(entries_folder.glob("*.yaml"))


def _extras_of(board: BoardFile) -> list[str]:
    specs = [ModelSpec(f"{provider}/any") for provider in board.entries.providers]
    extras = extras_of(board.configuration(specs))
    if board.publish.plot:
        extras.append("plot")
    if board.publish.samples.startswith("s3:"):
        extras.append("s3")
    if board.publish.samples.startswith("hub:"):
        extras.append("hub")
    return extras


def _rules_text(board: BoardFile) -> str:
    rules = board.entries
    addresses = ", ".join(f"`{address}`" for address in rules.base_urls)
    arguments = ", ".join(f"`{name}`" for name in rules.arguments)
    return (
        f"An entry has the keys `model`, `label`, `arguments`, `base_url`, `facts` and `by`, and at"
        f" most {MAX_ENTRY_BYTES:,} bytes of plain values.\n"
        f"Providers: {', '.join(f'`{name}`' for name in rules.providers)}."
        f" Arguments: {arguments or 'none'}. Addresses: {addresses or 'the providers own'}.\n"
        f"A whole run may cost ${rules.most_dollars:g}."
    )


def _keys_text(secrets: list[str]) -> str:
    return f"        env:\n{_key_rows(secrets)}" if secrets else ""


def _key_rows(secrets: list[str]) -> str:
    return "".join(f"          {name}: ${{{{ secrets.{name} }}}}\n" for name in secrets)


def _quoted(requirement: str) -> str:
    if re.search(r"[\x00-\x1f\x7f]|\$\{\{", requirement):
        requirement = "evalwright"
    return f"'{requirement}'" if "'" not in requirement else shlex.quote(requirement)


def _template(name: str) -> str:
    folder = files("evalwright.entries") / "template"
    return (folder / name).read_text(encoding="utf-8")
