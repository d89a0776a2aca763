"""Splits the input `options` into words as a shell would, and runs nothing of it.

Reads OPTIONS, and writes the words, each ended by a NUL. With `--without-trust-file` it leaves that
option out, for a suite that asks for no permission.
"""

import os
import shlex
import sys


def main() -> None:
    """Write the words, or end with 2 and a message where a quotation is not closed."""
    # A backslash at the end of a line continues it, as in a shell.
    options = os.environ.get("OPTIONS", "").replace("\\\n", " ")
    try:
        words = shlex.split(options)
    except ValueError as error:
        print(
            f"Error: The input 'options' cannot be read: {error}. Its text is:"
            f" {options.strip()}",
            file=sys.stderr,
        )
        sys.exit(2)
    if "--without-trust-file" in sys.argv[1:]:
        words = leave_out_trust_file(words)
    sys.stdout.write("".join(f"{word}\0" for word in words))


def leave_out_trust_file(words: list[str]) -> list[str]:
    """Leave out `--trust-file FILE` and `--trust-file=FILE`."""
    kept = []
    is_its_file = False
    for word in words:
        if is_its_file:
            is_its_file = False
        elif word == "--trust-file":
            is_its_file = True
        elif not word.startswith("--trust-file="):
            kept.append(word)
    return kept


if __name__ == "__main__":
    main()
