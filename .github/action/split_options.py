"""Splits the input `options` into words as a shell would, and runs nothing of it.

Reads OPTIONS, and writes the words, each ended by a NUL.
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
    sys.stdout.write("".join(f"{word}\0" for word in words))


if __name__ == "__main__":
    main()
