"""Options of lm-evaluation-harness tasks: folders, trust, few-shot examples, scoring."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from evalwright.extend import ConfigurationError

Scoring = Literal["corrected", "published"]
DIALECT = "lm-eval"
PREFIX = f"{DIALECT}:"
"""Prefix of the names of lm_eval's tasks."""

SEED = 1234
"""The few-shot seed of published numbers."""


@dataclass(frozen=True, slots=True)
class Options:
    """How tasks are run.

    Args:
        roots: folders of task files, later ones win; empty means the installed package's.
        trust: folders whose Python may run.
        num_fewshot: overrides the tasks' number of few-shot examples.
        scoring: "published" reproduces lm_eval's numbers to the last digit, "corrected" fixes their
            flaws.
        chat: prompts are messages.
        multiturn: each example is a turn of its own.
        system: an instruction before the task's own.
        seed: of the few-shot examples.
        generation: overrides the tasks' generation settings.
        metadata: values for tasks that generate their data.
        bootstrap: replicates for published standard errors; 0 for no standard errors at all.
        samples: rows to evaluate, by task; tasks that are not named are evaluated in full.
        predict_only: answers without metrics.
        named_folders: roots named on a command line; their tasks may also read files beside them.
        as_written: pass generation settings on under the task file's names, as lm_eval's model
            classes and
            clients expect them.
    """

    roots: tuple[Path, ...] = ()
    trust: tuple[Path, ...] = ()
    num_fewshot: int | None = None
    scoring: Scoring = "corrected"
    chat: bool = False
    multiturn: bool = True
    system: str = ""
    seed: int = SEED
    generation: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    bootstrap: int = 100_000
    samples: Mapping[str, Sequence[int]] = field(default_factory=dict)
    predict_only: bool = False
    as_written: bool = False
    named_folders: tuple[Path, ...] = ()

    @property
    def published(self) -> bool:
        """Whether lm_eval's own arithmetic is used, flaws included."""
        return self.scoring == "published"

    def trusts(self, folder: Path) -> bool:
        """Whether files of that folder may run."""
        resolved = folder.resolve()
        return any(
            resolved.is_relative_to(Path(trusted).expanduser().resolve())
            for trusted in self.trust
        )

    def is_beside(self, path: Path) -> bool:
        """Whether a file is where usual layouts keep shared settings and data.

        That is beside a folder that the user named, or in the working folder if the named folder is
        inside it. Hidden files, and a whole home folder or disk, do not count.
        """
        resolved = path.resolve()
        working_folder = Path.cwd().resolve()
        for named in self.named_folders:
            folder = named.expanduser().resolve()
            bases = [
                folder.parent,
                *([working_folder] if folder.is_relative_to(working_folder) else []),
            ]
            for base in bases:
                too_wide = base == base.parent or base == Path.home().resolve()
                if not too_wide and resolved.is_relative_to(base):
                    return not any(
                        segment.startswith(".")
                        for segment in resolved.relative_to(base).parts
                    )
        return False

    def folders(self) -> tuple[Path, ...]:
        """The roots, resolved.

        Raises ConfigurationError if there are none or one does not exist.
        """
        roots = (
            tuple(root.expanduser().resolve() for root in self.roots)
            or installed_tasks()
        )
        if not roots:
            raise ConfigurationError(
                "Tasks of lm-evaluation-harness need the library 'lm_eval', which is not"
                " installed. Install it with: pip install 'evalwright[lm-eval]'. Or name"
                " a folder of its task files with --task-root (of `evalwright lm-eval`:"
                " --include_path)."
            )
        for root in roots:
            if not root.is_dir():
                raise ConfigurationError(f"The task folder '{root}' does not exist.")
        return roots


def trust_advice(folder: Path | str) -> str:
    """How to trust a folder, on a command line and in Python."""
    return f"--trust '{folder}' (from Python: trust=['{folder}'])"


def as_paths(folders: Any) -> tuple[Path, ...]:
    """Convert one folder, several or none to paths."""
    return tuple(
        map(Path, [folders] if isinstance(folders, str | Path) else folders or ())
    )


def installed_tasks() -> tuple[Path, ...]:
    """The folder of the installed package's task files; empty if it is not installed."""
    try:
        spec = importlib.util.find_spec("lm_eval")
    except ValueError:  # a module of that name that was put together in this process
        spec = None
    locations = [
        Path(location) / "tasks"
        for location in (spec.submodule_search_locations or [] if spec else [])
    ]
    return tuple(folder.resolve() for folder in locations[:1] if folder.is_dir())
