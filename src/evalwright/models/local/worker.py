"""The process of one worker: opens the model named in its first line, and answers further lines.

    python -m evalwright.models.local.worker

Lines of JSON come in and go out: the model's name and arguments, answered by its fingerprint or an
error; then groups of requests, each answered by (index, answer) as they finish and by `null` at the
end. Whatever libraries print goes to standard error.
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
from evalwright.models.local.hardware.machine import share_memory
from evalwright.models.local.processes import request_from
from evalwright.models.model_interface import LocalModel, answers_of
from evalwright.models.registry import open_model


def main() -> None:
    """Work until the input ends."""
    # The parent lets it finish what it computes, or ends it. Schedulers that end a job send these
    # signals to all of its processes.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    output = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    lines: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_read, args=(lines,), daemon=True).start()
    try:
        first = json.loads(lines.get())
        share_memory(first["sharers"])
        model = open_model(first["name"], first["arguments"])
        assert isinstance(model, LocalModel)
        model.load()
    except Exception as error:
        _send_message(output, {"error": reason_of(error)})
        os._exit(0)  # the thread that reads could not be ended otherwise
    _send_message(output, {"fingerprint": model.fingerprint})
    while True:
        requests = [request_from(request) for request in json.loads(lines.get())]
        for index, answer in answers_of(model, requests):
            outcome_key = "failure" if isinstance(answer, Failure) else "response"
            _send_message(output, [index, {outcome_key: answer.as_dict()}])
        _send_message(output, None)


def _read(lines: SimpleQueue[str]) -> None:
    """Read lines from standard input.

    When it ends, so does this process, whatever it is doing: its parent is gone.
    """
    for line in sys.stdin:
        lines.put(line)
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)  # with processes of its libraries
    os._exit(0)


def _send_message(output: IO[str], message: Any) -> None:
    output.write(json.dumps(message) + "\n")
    output.flush()


if __name__ == "__main__":
    main()
