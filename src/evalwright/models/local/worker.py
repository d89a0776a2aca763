"""The process of one worker: opens the model that its first line names, and answers what the further lines ask.

    python -m evalwright.models.local.worker

Lines of JSON come in and go out: the model's name and arguments, answered by its fingerprint or an error; then groups of requests, each
answered by (index, answer) as they finish and by `null` at the end. What libraries print goes to the standard error.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from typing import IO, Any

from evalwright.core.errors import EvalwrightError, Failure, ModelError
from evalwright.models.base import LocalModel
from evalwright.models.local.lines import request_from
from evalwright.models.registry import open_model


def main() -> None:
    """Work until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it lets it finish, or ends it
    told = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    asked = sys.stdin
    try:
        first = json.loads(asked.readline() or "null")
        model = open_model(first["name"], first["arguments"])
        assert isinstance(model, LocalModel)
        model.load()
    except Exception as error:
        known = isinstance(error, EvalwrightError)
        _tell(told, {"error": str(error) if known else f"{type(error).__name__}: {error}"})
        return
    _tell(told, {"fingerprint": model.fingerprint})
    for line in asked:
        for index, answer in _answered(model, [request_from(one) for one in json.loads(line)]):
            kind = "failure" if isinstance(answer, Failure) else "response"
            _tell(told, [index, {kind: answer.as_dict()}])
        _tell(told, None)


def _answered(model: LocalModel, requests: list[Any]) -> Iterator[tuple[int, Any]]:
    """As the model; where it raises, what it has not answered has failed."""
    left = set(range(len(requests)))
    try:
        for index, answer in model.answer_batch(requests):
            left.discard(index)
            yield index, answer
    except Exception as error:
        failure = ModelError(f"The model {model.name} failed: {type(error).__name__}: {error}").as_failure()
        for index in sorted(left):
            yield index, failure


def _tell(told: IO[str], what: Any) -> None:
    told.write(json.dumps(what) + "\n")
    told.flush()


if __name__ == "__main__":
    main()
