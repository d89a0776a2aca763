"""The process of one worker: opens the model that its first line names, and answers what the
further lines ask.

    python -m evalwright.models.local.worker

Lines of JSON come in and go out: the model's name and arguments, answered by its fingerprint or an
error; then groups of requests, each answered by (index, answer) as they finish and by `null` at the
end. What libraries print goes to the standard error.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from queue import SimpleQueue
from typing import IO, Any

from evalwright.core.errors import Failure, reason_of
from evalwright.models.base import LocalModel, answers_of
from evalwright.models.local.processes import request_from
from evalwright.models.registry import open_model


def main() -> None:
    """Work until the input ends."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # whoever started it lets it finish, or ends it
    told = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    asked: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_read, args=(asked,), daemon=True).start()
    try:
        first = json.loads(asked.get())
        model = open_model(first["name"], first["arguments"])
        assert isinstance(model, LocalModel)
        model.load()
    except Exception as error:
        _tell(told, {"error": reason_of(error)})
        os._exit(0)  # the thread that reads could not be ended
    _tell(told, {"fingerprint": model.fingerprint})
    while True:
        requests = [request_from(one) for one in json.loads(asked.get())]
        for index, answer in answers_of(model, requests):
            kind = "failure" if isinstance(answer, Failure) else "response"
            _tell(told, [index, {kind: answer.as_dict()}])
        _tell(told, None)


def _read(asked: SimpleQueue[str]) -> None:
    """Hear what is asked.

    When the input ends, so does this process, whatever it loads or computes: whoever started it is
    gone.
    """
    for line in sys.stdin:
        asked.put(line)
    os._exit(0)


def _tell(told: IO[str], what: Any) -> None:
    told.write(json.dumps(what) + "\n")
    told.flush()


if __name__ == "__main__":
    main()
