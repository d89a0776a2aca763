"""The flags of other frameworks' tasks (`DIALECT:NAME`), shared by the commands that load tasks."""

from __future__ import annotations

import click

from evalwright.cli.options import option, several, together
from evalwright.tasks.dialects import SCORINGS

root_options = together(
    several(
        "--task-root task_root",
        "DIR",
        "Where another framework's tasks (DIALECT:NAME) are. Repeatable. Default: those of its installed package.",
    ),
    several("--trust", "DIR", "A folder whose task files may run their Python and read files anywhere."),
)
"""Where their files are, and which of them may run Python."""

scoring_options = together(
    root_options,
    option(
        "--scoring",
        "",
        "How another framework's tasks are scored: as published, or with known flaws corrected. Default: corrected.",
        type=click.Choice(SCORINGS),
    ),
    several(
        "-D dialect_values",
        "KEY=VALUE",
        "A setting of another framework's tasks, e.g. base_model=true, generation.temperature=0.",
    ),
)
"""What holds where answers are scored again, too."""

dialect_options = together(
    scoring_options,
    option("--num-fewshot", "N", "Number of shots, in place of the tasks' own.", type=int),
)
