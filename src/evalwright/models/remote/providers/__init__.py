"""Remote providers as rows of data: where each is, what it speaks, and what its models refuse."""

from evalwright.models.remote.providers.table import ModelRule, Provider, add_file, find, names, own, quirks

__all__ = ["ModelRule", "Provider", "add_file", "find", "names", "own", "quirks"]
