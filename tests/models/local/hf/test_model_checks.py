"""What trying out a model has shown is kept, and found again where anything is different."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import Failure
from evalwright.core.requests import LogLikelihood, Request
from evalwright.models.local.hf.transformers_model import TransformersModel
from support.local_models import agree, answers

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from evalwright.models.local.answering import PairScore  # noqa: E402
from evalwright.models.local.hf.model_checks import KIND, ModelChecks  # noqa: E402
from evalwright.models.local.hf.reading import LogitReader  # noqa: E402
from evalwright.models.local.hf.tree_forward import TreeForward  # noqa: E402
from evalwright.models.local.hf.tree_scoring import TreeScorer, _UnsuitableModel  # noqa: E402

REQUESTS: list[Request] = [
    LogLikelihood(f"river hills town {word} mill sea", f" {ending}")
    for word in ("spring", "water", "gold")
    for ending in ("baker", "street", "oven")
]
CHECKS = (
    (LogitReader, "_can_slice"),
    (TreeForward, "_tried_refusal"),
    (TreeScorer, "_compare_short_cuts"),
)


@pytest.fixture
def executed_checks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the checks that are made, as they are made."""
    names: list[str] = []
    for owner, name in CHECKS:
        check = getattr(owner, name)

        def counted(
            self: Any,
            *arguments: Any,
            check: Any = check,
            name: str = name,
        ) -> Any:
            names.append(name)
            return check(self, *arguments)

        monkeypatch.setattr(owner, name, counted)
    return names


def test_a_second_process_need_not_try_the_model_again(
    folders: dict[str, Path], home: Path, executed_checks: list[str]
) -> None:
    def scored() -> list[object]:
        executed_checks.clear()
        return answers(TransformersModel(str(folders["llama"]), device="cpu"), REQUESTS)

    first = scored()
    all_checks = [name for _, name in CHECKS]
    assert executed_checks == all_checks
    second = scored()
    assert executed_checks == []
    agree(second, first)
    [note] = (home / KIND).iterdir()
    note.write_bytes(note.read_bytes().replace(b"true", b"True"))
    scored()
    assert executed_checks == all_checks, "the note is damaged"
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    try:
        scored()
    finally:
        torch.set_num_threads(threads)
    assert executed_checks == all_checks, "another number of threads rounds differently"


def test_a_way_of_attending_that_was_wrong_is_not_taken_again(
    folders: dict[str, Path], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = TreeScorer._check
    cascading_when_checked: list[bool] = []

    def check_portable_only(
        self: TreeScorer,
        expected: Iterable[tuple[int, PairScore | Failure]],
        scores: Sequence[PairScore],
    ) -> None:
        cascading_when_checked.append(self.forward.cascading)
        if self.forward.cascading:
            raise _UnsuitableModel("its scores differ")
        check(self, expected, scores)

    monkeypatch.setattr(TreeScorer, "_check", check_portable_only)
    plain = TransformersModel(str(folders["llama"]), device="cpu", scoring="plain")
    expected_answers = answers(plain, REQUESTS)
    for ways in ([True, False], []):
        cascading_when_checked.clear()
        model = TransformersModel(str(folders["llama"]), device="cpu")
        agree(answers(model, REQUESTS), expected_answers)
        assert list(dict.fromkeys(cascading_when_checked)) == ways
        assert model.describe()["scoring"]["attention"] == "portable"


def test_nothing_is_kept_without_an_identity(home: Path) -> None:
    checks = ModelChecks()
    checks.note("separate head", True)
    assert checks.passed("separate head") is None
    assert not home.exists()
