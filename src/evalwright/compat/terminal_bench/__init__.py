"""Terminal-Bench: folders of tasks as a dialect, in its first format and in Harbor's.

`terminal-bench:FOLDER` reads the tasks in a folder of `--task-root`, `terminal-bench:FOLDER/TASK`
one of them. The dialect is this module. Its functions load their module on first use.
"""

from evalwright.extend import lazy_names

right_or_wrong = frozenset({"accuracy"})
files_from = (
    "Terminal-Bench's tasks are folders with a task.yaml or a task.toml: clone the repository"
    " that has them, and name its folder with --task-root."
)
__getattr__, __dir__ = lazy_names(
    __name__, {"loading": "load names", "scoring": "groups rules"}
)
