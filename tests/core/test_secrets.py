"""Secrets are looked for in every form, whatever else a document holds."""

from __future__ import annotations

import pytest

from evalwright.core import secrets


@pytest.mark.parametrize("secret", ["sk-a/b+c 1&2", "8 octets", "deadbeefdeadbeef"])
@pytest.mark.parametrize(
    "before", ["", "50% of ", "a&b ", 'a \\" b ', "0f" * 40, "0f:" * 40, "0f " * 40]
)
def test_a_document_with_any_form_of_a_secret_is_found(
    before: str, secret: str
) -> None:
    forms = secrets._encoded_forms(secret)
    encoded = tuple(form.encode("utf-8", "surrogatepass") for form in sorted(forms))
    assert len(encoded) > 5
    assert not secrets._is_within(encoded, f"{before}nothing here".encode())
    for form in encoded:
        assert secrets._is_within(encoded, before.encode() + form + b" after")
