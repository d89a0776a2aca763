"""The Berkeley Function-Calling Leaderboard (BFCL): its files of questions as a dialect.

`bfcl:simple_python`, `bfcl:live_multiple` and so on read the files that the package `bfcl-eval`
ships, or those of `--task-root`. The dialect is this module. Its functions load their module on
first use.
"""

from evalwright.extend import lazy_names

right_or_wrong = frozenset({"accuracy"})
files_from = "BFCL's files are in a package: `pip install --no-deps bfcl-eval`."
__getattr__, __dir__ = lazy_names(
    __name__, {"averages": "groups", "loading": "load names rules"}
)
