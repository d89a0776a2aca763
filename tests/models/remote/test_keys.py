"""Keys are found where they should be and shown nowhere."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core import secrets
from evalwright.core.errors import ConfigurationError
from evalwright.core.secrets import MASKED, mask, mask_message, remember
from evalwright.models.registry import open_model
from evalwright.models.remote.keys import Secret, find_key, is_local, read_env_file
from support.tables import rows

KEY = "abc123-very-secret-value"


@pytest.fixture(autouse=True)
def empty_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("A_KEY", raising=False)
    return tmp_path


def test_a_secret_shows_itself_only_when_asked() -> None:
    secret = Secret(KEY, "$A_KEY")
    shown = [
        str(secret),
        repr(secret),
        f"{secret}",
        f"{secret!r:>40}",
        str({"key": secret}),
        str([secret]),
    ]
    assert not any(KEY in text for text in shown)
    assert secret.reveal() == KEY
    assert secret == Secret(KEY) != Secret("other-value")
    with pytest.raises(TypeError):
        pickle.dumps(secret)
    assert not hasattr(secret, "__dict__")


def test_the_environment_wins_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text("A_KEY=from-the-file\n")
    found = find_key("A_KEY")
    assert found is not None
    assert (found.reveal(), found.source) == ("from-the-file", ".env:A_KEY")
    monkeypatch.setenv("A_KEY", " from-the-environment\n")
    found = find_key("A_KEY")
    assert found is not None
    assert (found.reveal(), found.source) == ("from-the-environment", "$A_KEY")
    monkeypatch.setenv("A_KEY", "")
    assert find_key("A_KEY") is None


def test_env_file_lines(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text(
        "# a comment\n\nPLAIN=one\nexport EXPORTED=two\nQUOTED=\"three # not a comment\"\nSINGLE='four'\n"
        "SPACED = five # a comment\nEMPTY=\nNO_EXPANSION=$PLAIN `id`\nWITH_EQUALS=a=b==\nnot a line\n=nothing\n#OFF=six\n"
    )
    assert read_env_file(file) == {
        "PLAIN": "one",
        "EXPORTED": "two",
        "QUOTED": "three # not a comment",
        "SINGLE": "four",
        "SPACED": "five",
        "EMPTY": "",
        "NO_EXPANSION": "$PLAIN `id`",
        "WITH_EQUALS": "a=b==",
    }
    assert read_env_file(tmp_path / "none") == {}


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", None])
def test_an_env_file_that_cannot_be_read_is_said(
    tmp_path: Path, content: bytes | None
) -> None:
    file = tmp_path / ".env"
    if content is None:
        file.mkdir()
    else:
        file.write_bytes(content)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        find_key("A_KEY")


@pytest.mark.parametrize(
    "value",
    ["two words-secret", "line\nbreak-secret", "schlüssel-secret", "nul\x7f-secret"],
)
def test_a_key_that_no_header_can_carry_is_refused_unseen(
    tmp_path: Path, value: str
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("A_KEY", value)
        with pytest.raises(ConfigurationError, match=r"\$A_KEY") as caught:
            find_key("A_KEY")
    assert "secret" not in str(caught.value)


@given(
    st.text(alphabet=st.characters(min_codepoint=33, max_codepoint=126), min_size=9),
    st.text(),
    st.text(),
)
def test_mask_removes_every_known_key(key: str, before: str, after: str) -> None:
    # "000000000" would be a secret of all tests after this one
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secrets, "_forms", secrets._forms)
        patch.setattr(secrets, "_bytes", secrets._bytes)
        remember(key)
        shown = mask(f"{before} {key} {after}")
    assert key not in shown.replace(MASKED, "") or key.isdecimal()


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("Incorrect API key provided: sk-proj-ab***************wxyz. Find", "wxyz"),
        ("Authorization: Bearer eyJhbGciOi.abc-def", "eyJ"),
        ("hf_abcdefghijklmnop is wrong", "abcdefgh"),
    ],
)
def test_mask_removes_what_looks_like_a_key(text: str, gone: str) -> None:
    assert gone not in mask_message(text)
    assert MASKED in mask_message(text)


def test_mask_leaves_words_alone() -> None:
    for word in ("test", "EMPTY", "none"):
        Secret(word)
    text = "The test found none; the queue is EMPTY. Use scikit-learn, risk-averse, task_name."
    assert mask(text) == mask_message(text) == text


@pytest.mark.parametrize("name", ["openai/m", "vllm/m", "litellm/openai/m"])
def test_a_key_in_the_place_of_its_variables_name_is_not_repeated(name: str) -> None:
    if name.startswith("litellm"):
        pytest.importorskip("litellm")
    key = "sk-proj-0123456789abcdef"
    with pytest.raises(
        ConfigurationError, match="name of the environment variable"
    ) as caught:
        open_model(name, {"api_key_env": key})
    assert key not in str(caught.value)


@pytest.mark.parametrize(("url", "local"), rows(__file__, "local"))
def test_what_is_local(url: str, local: bool) -> None:
    assert is_local(url) is local
