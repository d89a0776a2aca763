"""`lm_eval.__main__`: the command, for scripts that register a model class and call it."""

from __future__ import annotations

import sys
from runpy import run_module


def cli_evaluate() -> None:
    """Run `evalwright lm-eval` with this process's command line; exits if the command fails."""
    sys.argv[1:1] = ["lm-eval"]
    try:
        run_module("evalwright", run_name="__main__", alter_sys=False)
    except SystemExit as end:
        if end.code:
            raise


if __name__ == "__main__":
    cli_evaluate()
