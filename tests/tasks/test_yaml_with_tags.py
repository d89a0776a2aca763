"""YAML of other systems: their tags become what they say, anything else is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from evalwright.extend import parse_yaml


def test_a_tag_becomes_what_the_system_makes_of_it() -> None:
    content = b"prompt: !file question.txt\nshots: [!file a, b]\n"
    parsed = parse_yaml(content, {"!file": Path})
    assert parsed == {"prompt": Path("question.txt"), "shots": [Path("a"), "b"]}
    assert parse_yaml(b"") is None


@pytest.mark.parametrize(
    "content",
    [b"a: !other b", b"a: !!python/object:os.x 1", b"a: !file [1]", b"a: [", b"a: *b"],
)
def test_other_tags_and_broken_files_are_refused(content: bytes) -> None:
    with pytest.raises(yaml.YAMLError):
        parse_yaml(content, {"!file": Path})


def test_depth_and_aliases_are_bounded() -> None:
    with pytest.raises(ValueError, match="deeply"):
        parse_yaml(b"[" * 300)
    lines = ["a0: &a0 [x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    with pytest.raises(ValueError, match="aliases"):
        parse_yaml("\n".join(lines).encode())
