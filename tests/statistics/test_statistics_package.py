"""The package's front door: sorted public names, and nothing heavy until one of them is used."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import evalwright.statistics as statistics


def test_public_names_are_sorted_and_all_there() -> None:
    assert list(statistics.__all__) == sorted(set(statistics.__all__))
    for name in statistics.__all__:
        assert getattr(statistics, name).__name__ == name
        assert name in dir(statistics)


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import evalwright.statistics", ("numpy", "scipy")),
        ("from evalwright.statistics import compare_paired, mean_interval", ("scipy",)),
        (
            "from evalwright.statistics import mean_interval; mean_interval([0, 1, 1])",
            ("scipy",),
        ),
        (
            "from evalwright.statistics import mean_interval; mean_interval([0.1, 0.5])",
            ("scipy.stats",),
        ),
        (
            "from evalwright.statistics import macro_f1; macro_f1([0, 1, 1], [0, 1, 0])",
            ("scipy.stats",),
        ),
    ],
)
def test_nothing_heavier_than_needed_is_imported(
    code: str, absent: tuple[str, ...]
) -> None:
    check = f"{code}\nimport sys\nfound = [m for m in {absent!r} if m in sys.modules]\nassert not found, found"
    done = subprocess.run(
        [sys.executable, "-c", check], capture_output=True, text=True, timeout=1800
    )
    assert done.returncode == 0, done.stderr


def test_every_public_name_stands_in_the_docs() -> None:
    docs = Path(__file__).resolve().parents[2] / "docs"
    page = (docs / "reference" / "statistics-functions.md").read_text(encoding="utf-8")
    missing = [name for name in statistics.__all__ if f"`{name}`" not in page]
    assert not missing, (
        f"docs/reference/statistics-functions.md lacks {', '.join(missing)}"
    )
    tables = "\n".join(line for line in page.splitlines() if line.startswith("|"))
    unknown = set(re.findall(r"`([A-Za-z_]\w*)`", tables)) - set(statistics.__all__)
    assert not unknown, (
        f"docs/reference/statistics-functions.md names what is not public: {unknown}"
    )
