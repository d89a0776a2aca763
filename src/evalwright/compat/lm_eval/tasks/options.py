"""How lm-evaluation-harness tasks are run: where they are, what is trusted, how many shots, whose
arithmetic.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from evalwright.core.errors import ConfigurationError

Scoring = Literal["corrected", "published"]
DIALECT = "lm-eval"
PREFIX = f"{DIALECT}:"
"""What a task's name begins with where it is one of theirs."""

SEED = 1234
"""The seed of shots that its published numbers were made with."""


@dataclass(frozen=True, slots=True)
class Options:
    """roots: folders of task files, later ones win; empty means the installed package's. trust:
    folders whose Python may run.

    num_fewshot: shots in place of the tasks' own. scoring: "published" gives its numbers to the
    last digit, "corrected" mends what is flawed in them. chat: prompts as messages; multiturn: each
    shot a turn of its own. system: an instruction before the task's own. seed: of the shots.
    generation: settings put over the tasks' own. metadata: values that data made by Python gets.
    bootstrap: replicates behind published standard errors that are no formula's; 0 for none of any
    kind. samples: the rows that are asked, by task; tasks that are not named are asked in full.
    predict_only: answers without metrics. named_folders: those of the roots that a person named on
    a command line: their tasks may also read what is beside them. as_written: settings of
    generation reach the model under the names of the task's file, which classes of
    lm-evaluation-harness's own interface and its clients of servers want.
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
        """Whether its own arithmetic is wanted, flaws included."""
        return self.scoring == "published"

    def trusts(self, folder: Path) -> bool:
        """Whether files of that folder may run."""
        real = folder.resolve()
        return any(
            real.is_relative_to(Path(trusted).expanduser().resolve())
            for trusted in self.trust
        )

    def is_beside(self, path: Path) -> bool:
        """Whether a file is where the usual layouts have shared settings and data: beside a folder
        that a person named, or below the working folder where that folder is below it, too. Hidden
        files, and those of a home folder or of a whole disk, are not.
        """
        real = path.resolve()
        here = Path.cwd().resolve()
        for named in self.named_folders:
            folder = named.expanduser().resolve()
            bases = [folder.parent, *([here] if folder.is_relative_to(here) else [])]
            for base in bases:
                too_wide = base == base.parent or base == Path.home().resolve()
                if not too_wide and real.is_relative_to(base):
                    return not any(
                        segment.startswith(".")
                        for segment in real.relative_to(base).parts
                    )
        return False

    def folders(self) -> tuple[Path, ...]:
        """The roots, resolved.

        Raises ConfigurationError where there are none or one does not exist.
        """
        roots = (
            tuple(root.expanduser().resolve() for root in self.roots)
            or installed_tasks()
        )
        if not roots:
            raise ConfigurationError(
                "lm-evaluation-harness is not installed here, so its tasks are not"
                " known: name the folder of its task files with --task-root (of"
                " `evalwright lm-eval`: --include_path)."
            )
        for root in roots:
            if not root.is_dir():
                raise ConfigurationError(f"The task folder '{root}' does not exist.")
        return roots


def trust_advice(folder: Path | str) -> str:
    """How a person trusts a folder, on a command line and in Python."""
    return f"--trust '{folder}' (from Python: trust=['{folder}'])"


def as_paths(folders: Any) -> tuple[Path, ...]:
    """One folder, several or none as paths."""
    return tuple(
        map(Path, [folders] if isinstance(folders, str | Path) else folders or ())
    )


def installed_tasks() -> tuple[Path, ...]:
    """The folder of the installed package's task files; none where it is not installed."""
    try:
        spec = importlib.util.find_spec("lm_eval")
    except ValueError:  # a module of that name that was put together in this process
        spec = None
    locations = [
        Path(location) / "tasks"
        for location in (spec.submodule_search_locations or [] if spec else [])
    ]
    return tuple(folder.resolve() for folder in locations[:1] if folder.is_dir())
