"""YAML without surprises: what a scalar means, where a value stands, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core.errors import TaskError
from evalwright.tasks.yaml_files import Document, read_document


def read(tmp_path: Path, text: str | bytes) -> Document:
    path = tmp_path / "t.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_document(path)


TEXTS = [
    "9" * 301,
    "no", "on", "Yes", "y", "1_000", "12:30:45", "2024-01-31", "007", "0x1F", "0o17", "+1", ".inf", "1e", "=",
]  # fmt: skip
VALUES = {
    "'5'": "5", '"null"': "null", "!!str 5": "5", "5": 5, "-12": -12, "0": 0, "1.5": 1.5, "-.5": -0.5, "1e3": 1000.0,
    "true": True, "FALSE": False, "null": None, "~": None, "": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("written", "value"), [*zip(TEXTS, TEXTS, strict=True), *VALUES.items()]
)
def test_a_plain_scalar_means_what_it_says(
    tmp_path: Path, written: str, value: object
) -> None:
    found = read(tmp_path, f"key: {written}\n").value["key"]
    assert found == value
    assert isinstance(found, type(value))


def test_every_value_knows_its_line(tmp_path: Path) -> None:
    document = read(tmp_path, "a:\n  b:\n    - x\n    - c: 1\nd: 2\n")
    assert document.at(("a", "b", 1, "c")).endswith("t.yaml:4")
    assert document.at(("a", "b", 1, "missing")).endswith("t.yaml:4")
    assert document.at(("d",)).endswith("t.yaml:5")
    assert document.at(()).endswith("t.yaml:1")


def test_a_byte_order_mark_and_windows_line_ends_are_taken(tmp_path: Path) -> None:
    assert read(tmp_path, b"\xef\xbb\xbfa: 1\r\nb: two\r\n").value == {
        "a": 1,
        "b": "two",
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a: 1\nb: 2\na: 3\n",
            "t.yaml:3: the key 'a' is given twice (first in line 1).",
        ),
        (
            "a: [1, 2\nb: 3\n",
            "t.yaml:2: this is not YAML: did not find expected ',' or ']'.",
        ),
        ("a: 1\n\tb: 2\n", "(indent with spaces)."),
        (
            "a: !!python/object/apply:os.system [ls]\n",
            "t.yaml:1: the tag '!!python/object/apply:os.system' is not",
        ),
        (
            "a: !function utils.f\n",
            "t.yaml:1: the tag '!function' is not allowed here; write plain values.",
        ),
        ("a: !!int 5\n", "t.yaml:1: the tag '!!int' is not allowed here"),
        (
            "a: &x\n  b: *x\n",
            "t.yaml:1: an alias (*) is inside the value that it refers to.",
        ),
        (
            "a: {{ question }}\n",
            "t.yaml:1: a key must be text; put quotes around a value that begins with { or [.",
        ),
        (
            "a: 1\n---\nb: 2\n",
            "t.yaml:2: this is not YAML: but found another document.",
        ),
        (
            "- 1\n- 2\n",
            "t.yaml:1: a task file is a mapping (`key: value`), not a list.",
        ),
        ("", "t.yaml: the task file is empty; it begins with `task: name`."),
        (
            b"a: 1\nb: \xff\xfe\n",
            "t.yaml:2: the file is not UTF-8 text; save it as UTF-8.",
        ),
        (
            "a: 1\nb: x\u2028y\n",
            "t.yaml:2: the file has a character (U+2028) that YAML treats as a line break; write it as \\u2028",
        ),
        ("a: *nobody\n", "t.yaml:1: this is not YAML: found undefined alias."),
        ("a: " + "[" * 3000 + "]" * 3000, "t.yaml"),
    ],
)
def test_what_is_refused_says_where(
    tmp_path: Path, text: str | bytes, message: str
) -> None:
    with pytest.raises(TaskError) as caught:
        read(tmp_path, text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_merge_keys_put_mappings_under_the_own_keys(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(
        "x: &x {a: 1, b: 1}\ny: &y {b: 2, c: 2}\none:\n  c: 3\n  <<: *y\nlist: {<<: [*x, *y], d: 4}\n'<<': text\n"
    )
    document = read_document(tmp_path / "a.yaml")
    assert document.value["one"] == {"b": 2, "c": 3}
    assert document.value["list"] == {"b": 1, "c": 2, "a": 1, "d": 4}
    assert document.value["<<"] == "text"
    assert document.at(("one", "c")).endswith("a.yaml:4")
    for wrong in ("a: {<<: 5}", "a: {<<: [5]}", "a: &a {<<: *a}"):
        (tmp_path / "b.yaml").write_text(f"{wrong}\n")
        with pytest.raises(TaskError, match=r"b\.yaml:1: "):
            read_document(tmp_path / "b.yaml")


def test_aliases_cannot_blow_up(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(TaskError, match="more than 2,000,000 values"):
        read(tmp_path, "\n".join(lines))


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(10**9), 10**9)
        | st.text(
            st.characters(codec="utf-8", exclude_characters="\x85\u2028\u2029"),
            max_size=20,
        ).filter(
            # PyYAML writes YAML 1.1, where 0E0 is text and needs no quotes; YAML 1.2 reads a
            # number.
            lambda text: not re.fullmatch(r"-?[0-9.]+[eE][-+]?[0-9]+", text)
        ),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(st.text("abc", min_size=1), inner, max_size=4)
        ),
        max_leaves=12,
    )
)
def test_what_a_yaml_writer_quotes_comes_back(
    tmp_path_factory: pytest.TempPathFactory, value: object
) -> None:
    text = yaml.safe_dump({"value": value}, allow_unicode=True)
    path = tmp_path_factory.getbasetemp() / "written.yaml"
    path.write_text(text, encoding="utf-8", newline="")
    assert read_document(path).value == {"value": value}
