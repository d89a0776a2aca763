"""The released package's clients on tasks of ours, in a process of its own:

    python served_child.py TASKS MODEL MODEL_ARGUMENTS SETTINGS

prints the results as JSON. What its clients need of the library tenacity stands in a module beside
the tasks.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import lm_eval
from lm_eval.tasks import TaskManager


def main() -> None:
    folder, model, arguments, settings = (
        sys.argv[1],
        sys.argv[2],
        *map(json.loads, sys.argv[3:5]),
    )
    tasks: Any = settings.pop("tasks")
    manager = TaskManager(include_path=folder, include_defaults=False)
    found = lm_eval.simple_evaluate(
        model,
        model_args=arguments,
        tasks=tasks,
        task_manager=manager,
        bootstrap_iters=0,
        **settings,
    )
    print("\n@" + json.dumps(found["results"], default=str))


main()
