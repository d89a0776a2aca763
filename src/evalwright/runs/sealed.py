"""A cache of what was computed from runs: sealed files (`core.sealed_files`) in the home folder."""

from __future__ import annotations

from evalwright.core.private import cache_folder
from evalwright.core.sealed_files import SealedFolder

SCORES = SealedFolder("scores", cache_folder)
"""Tables of scores, confirmed numbers, and indexes of the explorer."""
