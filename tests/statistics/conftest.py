"""The reference statistics beside a checkout, where there are any: short formulas in numpy and
scipy, not ours.
"""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

_PLACES = [
    folder / "shared" / "oracles" / "stats_reference.py"
    for folder in Path(__file__).resolve().parents
]


@pytest.fixture(scope="session")
def reference() -> ModuleType:
    path = next((path for path in _PLACES if path.exists()), None)
    if path is None:
        pytest.skip("the reference statistics are not beside this checkout")
    spec = importlib.util.spec_from_file_location("stats_reference", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
