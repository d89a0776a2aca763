"""A key that was read stands in nothing that is written, and what is kept between runs is its
owner's alone.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import os
import re
import sqlite3
import stat
import zlib
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from aiohttp import web

from evalwright.cli import main
from evalwright.core import secrets
from evalwright.core.private import home_folder, open_private, private_folder
from evalwright.core.secrets import (
    MASKED,
    find_key_prefix,
    is_secret,
    mask,
    masked_arguments,
    remember,
    remember_within,
)
from evalwright.models.registry import open_model
from support.command import record, records, write_questions
from support.openai_server import OpenAIServer, running

KEY = "mk-9Zx/81+very?private=&\"value'"
"""With characters that every encoding writes in a way of its own."""
HEADER = "gateway-pass-5510"
PASSWORD = "pass/wörd-7731"
BODY = "body-credential-2209"
SHORT = "x1y2"
SECRETS = (HEADER, PASSWORD, BODY, "plain-key-448123")


class EchoServer(OpenAIServer):
    """Answers with everything that it was sent, in every encoding."""

    def __init__(self) -> None:
        super().__init__(str, extra=("api_key", "note"))
        self.said = ""

    async def _handle(
        self, request: web.Request, interface: str, entry: dict[str, Any]
    ) -> Any:
        auth = request.headers.get("Authorization", "")
        sent = [
            auth,
            auth.partition(" ")[2],
            *request.headers.values(),
            str((await request.json()).get("api_key")),
        ]
        if auth.startswith("Basic "):
            login = base64.b64decode(auth.removeprefix("Basic ")).decode()
            sent += [login, login.partition(":")[2]]
        forms = []
        for text in sent:
            encoded = base64.b64encode(f"user:{text}".encode()).decode()
            forms += [
                text, quote(text, safe=""), json.dumps(text), json.dumps(json.dumps(text)), escape(text),
                encoded,
            ]  # fmt: skip
        self.said = "\n".join(forms)
        self.edit = self._echoing
        return await super()._handle(request, interface, entry)

    def _echoing(self, reply: dict[str, Any], body: Any) -> dict[str, Any]:
        reply["choices"][0]["message"]["content"] = self.said
        return reply


@pytest.fixture
def server() -> Iterator[EchoServer]:
    with running(EchoServer()) as found:
        yield found


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_forms", ())
    monkeypatch.setattr(secrets, "_bytes", ())


def everything(folder: Path) -> Iterator[tuple[Path, str]]:
    """Every file below a folder as text, and the rows of stores unpacked."""
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".sqlite":
            with sqlite3.connect(path) as store:
                tables = [
                    name
                    for (name,) in store.execute(
                        "SELECT name FROM sqlite_master WHERE type='table'"
                    )
                ]
                for table in tables:
                    for row in store.execute(f"SELECT * FROM {table}"):
                        for value in row:
                            if isinstance(value, bytes):
                                with contextlib.suppress(zlib.error):
                                    value = zlib.decompress(value)
                                yield path, value.decode("utf-8", "replace")
                            else:
                                yield path, str(value)
            store.close()
        elif path.is_file():
            data = path.read_bytes()
            yield (
                path,
                (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode(
                    "utf-8", "replace"
                ),
            )
        yield path, path.name


def forms(text: str) -> set[str]:
    core = base64.b64encode(text.encode()).decode()[: len(text.encode()) // 3 * 4]
    return {
        text,
        quote(text, safe=""),
        json.dumps(text)[1:-1],
        json.dumps(text, ensure_ascii=False)[1:-1],
        escape(text),
        core,
    }


def test_no_key_in_anything_that_a_run_writes(
    server: EchoServer,
    own_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("MY_KEY", "plain-key-448123")
    write_questions(own_folder, 2)
    login = server.url.replace("//", f"//user:{quote(PASSWORD, safe='')}@")
    runs = {
        "key": [
            f"openai/{server.url}#m",
            "api_key_env=MY_KEY",
            f"headers.X-Gateway-Pass={HEADER}",
        ],
        "login": [f"openai/{login}#m"],
        "base": [
            "openai/m",
            f"base_url={login}",
            f"extra_body.api_key={BODY}",
            f"extra_body.note={SHORT}",
        ],
        "json": [
            f"openai/{server.url}#m",
            f'headers={{"X-Api-Key": "{HEADER}"}}',
            f'extra_body={{"api_key": "{SHORT}"}}',
        ],
    }
    for name, (model, *given) in runs.items():
        options = [word for one in given for word in ("-M", one)]
        # the folder's name is made of the model's
        named = ["--name", name] if name != "login" else []
        assert main(["run", "questions.yaml", "--model", model, *options, *named]) == 0
    assert main(["runs", "show", "key"]) == 0
    assert main(["run", "questions.yaml", "--config", "runs/key", "--json"]) == 2
    assert main(["runs", "submit", "make", "key", "--into", "key.json.gz"]) == 0
    assert (
        main(
            [
                "leaderboard",
                "runs/key",
                "runs/base",
                "--html",
                "board.html",
                "--markdown",
                "board.md",
            ]
        )
        == 0
    )
    assert main(["export", "lm-eval", "key", "--out", "exported"]) == 0
    shown = capsys.readouterr()
    written = [(Path("terminal"), shown.out + shown.err), *everything(own_folder)]
    assert sum(MASKED in text for _, text in written) > 10
    for path, text in written:
        for secret in SECRETS:
            assert not [form for form in forms(secret) if form in text], (
                f"{secret} in {path}"
            )
    assert record(own_folder / "runs" / "json")["configuration"]["models"][0]["arguments"] == {
        "headers": {"X-Api-Key": MASKED}, "extra_body": {"api_key": MASKED},
    }  # fmt: skip
    assert record(own_folder / "runs" / "base")["configuration"]["models"][0]["arguments"]["extra_body"] == {
        "api_key": MASKED, "note": SHORT,
    }  # fmt: skip


def test_masking_changes_neither_what_is_asked_again_nor_what_is_scored(
    server: EchoServer, own_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_questions(own_folder, 3)
    rows = []
    for name, key in (("one", "first-key-118822"), ("two", "other-key-773311")):
        monkeypatch.setenv("MY_KEY", key)
        arguments = ["-M", "api_key_env=MY_KEY", "--name", name]
        assert (
            main(
                [
                    "run",
                    "questions.yaml",
                    "--model",
                    f"openai/{server.url}#m",
                    *arguments,
                ]
            )
            == 0
        )
        rows.append(records(own_folder / "runs" / name))
    assert sum(server.received.values()) == 3, (
        "another key to the same model is no other model"
    )
    assert rows[0] == rows[1]
    assert MASKED in str(rows[0][0]["answer"])


def test_a_refused_key_is_not_repeated(
    own_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_questions(own_folder, 1)
    monkeypatch.setenv("MY_KEY", "wrong-key-556677")
    with running(OpenAIServer(key="right")) as server:
        model = ["--model", f"openai/{server.url}#m", "-M", "api_key_env=MY_KEY"]
        assert main(["run", "questions.yaml", *model]) == 1
    for path, text in [
        (Path("terminal"), "".join(capsys.readouterr())),
        *everything(own_folder),
    ]:
        assert "wrong-key-556677" not in text, path


@pytest.mark.parametrize(
    "secret", [KEY, "simple-key-12345", "20261122", "schlüssel-und-mehr"]
)
def test_a_secret_is_found_in_every_encoding(secret: str) -> None:
    remember(secret)
    login = base64.b64encode(f"some user:{secret}".encode()).decode()
    texts = [
        secret, quote(secret, safe=""), quote(secret), json.dumps(secret), json.dumps(json.dumps(secret)),
        escape(secret), "".join(f"%{byte:02x}" for byte in secret.encode()),
        "".join(f"%{byte:02X}" for byte in secret.encode()),
        "".join(f"\\u{ord(sign):04x}" for sign in secret), "".join(f"\\u{ord(sign):04X}" for sign in secret),
        json.dumps("".join(f"\\u{ord(sign):04x}" for sign in secret)),
        "".join(f"&#{ord(sign)};" for sign in secret), "".join(f"&#x{ord(sign):x};" for sign in secret),
        secret.encode().hex(), secret.encode().hex().upper(), secret.encode().hex(":"),
    ]  # fmt: skip
    for text in (*texts, login):
        shown = mask(f"before {text} after")
        assert MASKED in shown
        assert secret not in shown
        assert shown.startswith("before ") and shown.endswith(" after")
    assert secret not in base64.b64decode(
        re.sub(r"\[key\]|=", "", mask(login)) + "==="
    ).decode("utf-8", "replace")


def test_a_key_in_letters_of_one_size_is_found() -> None:
    remember("sk-Abc123Def456Ghi789")
    for text in ("sk-abc123def456ghi789", "SK-ABC123DEF456GHI789"):
        assert mask(f"the key {text} is wrong") == f"the key {MASKED} is wrong"


def test_short_secrets_and_placeholders_garble_nothing() -> None:
    for value in (
        "x",
        "test",
        "none",
        "EMPTY",
        "1234567",
        "not-needed",
        "password",
        "12345678",
    ):
        remember(value)
    remember_within(
        {
            "headers": {"X-Region": "us-east-1", "X-Purpose": "an evaluation"},
            "extra_body": {"key": "question"},
        }
    )
    text = "The test of the next password is not-needed; none of 12345678. A question in us-east-1 for an evaluation."
    assert mask(text) is text
    assert masked_arguments({"api_key": "x", "headers": {"X-Y": "z"}}) == {
        "api_key": MASKED,
        "headers": {"X-Y": MASKED},
    }


def test_a_secret_of_digits_leaves_numbers_whole(own_folder: Path) -> None:
    from evalwright.runs.writer import to_json

    remember("20261122")
    assert json.loads(to_json({"n": 20261122, "said": "20261122", "20261122": [float("inf")]})) == {
        "n": 20261122, "said": MASKED, MASKED: [float("inf")],
    }  # fmt: skip


@pytest.mark.parametrize("name", ["api_key", "X-Api-Key", "apiKey", "OPENAI_API_KEY", "token", "hf_token", "x-goog-api-key",
    "Authorization", "client_secret", "db_password", "aws_session_token"])  # fmt: skip
def test_these_names_hold_secrets(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize("name", ["add_bos_token", "think_end_token", "tokenized_requests", "prefix_token_id", "max_tokens",
    "tokenizer", "pad_token", "author", "authority", "keyword", "monkey", "max_tokens_field", "eos_token"])  # fmt: skip
def test_these_do_not(name: str) -> None:
    assert not is_secret(name)
    assert masked_arguments({name: "value"}) == {name: "value"}


def test_a_record_without_its_secret_is_not_run_as_if_it_were_one() -> None:
    for name, given in (
        ("openai/m", {"headers": {"X-Api-Key": MASKED}}),
        (f"openai/http://{MASKED}@h/v1#m", {}),
        ("openai/m", {"base_url": f"http://{MASKED}@h/v1"}),
    ):
        with pytest.raises(Exception, match="Give the secret again"):
            open_model(name, given)


@pytest.mark.parametrize(
    ("answer", "allowed"),
    [
        ("my key is sk-proj-4bC9dE2fG7hJ1kL8mN3pQ6", True),
        ("hf_abcdefghijklmnopqrstuvwxyzABCDEF12", True),
        ("AKIAIOSFODNN7EXAMPLE", True),
        ("the known-key-998877 itself", False),
    ],
)
def test_a_submission_has_no_key(
    own_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    answer: str,
    allowed: bool,
) -> None:
    write_questions(own_folder, 3)
    options = ["-M", f"text={answer}", "--name", "made"]
    assert (
        main(["run", "questions.yaml", "--model", "scripted/constant", *options]) == 0
    )
    monkeypatch.setenv("SOME_API_KEY", "known-key-998877")
    capsys.readouterr()
    command = ["runs", "submit", "make", "made", "--into", "made.json"]
    assert main(command) == 2
    said = capsys.readouterr().err
    assert "run.json" in said or "Line 1 of samples.jsonl" in said
    assert not (own_folder / "made.json").exists()
    assert main([*command, "--allow-key-like"]) == (0 if allowed else 2)


def test_ordinary_texts_do_not_look_like_keys() -> None:
    for text in ("sk-learn-and-other-libraries-of-python", "hf_hub_download_from_local_cache_folder", "Basic understanding-of-the-matter",
        "the risk-averse pk_constraint_of_the_table_in_question", "Bearer of the very-bad-and-long-news"):  # fmt: skip
        assert find_key_prefix(text) == ""


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
@pytest.mark.parametrize("umask", [0, 0o777 & ~0o700, 0o377])
def test_stores_and_runs_are_their_owners(own_folder: Path, umask: int) -> None:
    write_questions(own_folder, 1)
    before = os.umask(umask)
    try:
        assert (
            main(
                [
                    "run",
                    "questions.yaml",
                    "--model",
                    "scripted/echo",
                    "--name",
                    "r",
                    "--out",
                    "deep/out",
                ]
            )
            == 0
        )
    finally:
        os.umask(before)
    made = [
        path
        for top in ("home", "deep")
        for path in (own_folder / top, *(own_folder / top).rglob("*"))
    ]
    assert {"store.sqlite", "run.json", "samples.jsonl"} <= {path.name for path in made}
    for path in made:
        if path.suffix != ".lock":
            assert stat.S_IMODE(path.stat().st_mode) == (
                0o700 if path.is_dir() else 0o600
            ), path


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
def test_what_is_there_keeps_its_permissions_and_sharing_can_be_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "there").mkdir(mode=0o755)
    (tmp_path / "there").chmod(0o755)
    private_folder(tmp_path / "there")
    assert stat.S_IMODE((tmp_path / "there").stat().st_mode) == 0o755
    monkeypatch.setenv("EVALWRIGHT_SHARED", "1")
    before = os.umask(0o022)
    try:
        private_folder(tmp_path / "new" / "inner")
        open_private(tmp_path / "new" / "file").close()
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new" / "inner").stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "new" / "file").stat().st_mode) == 0o644


@pytest.mark.skipif(os.name != "posix", reason="owners are those of POSIX")
def test_a_home_of_another_user_is_not_used_silently(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EVALWRIGHT_HOME", raising=False)
    write_questions(tmp_path, 1)
    (tmp_path / ".evalwright").mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: 12345678)
    command = ["run", "questions.yaml", "--model", "scripted/echo"]
    assert main(command) == 2
    assert "belongs to another user" in capsys.readouterr().err
    assert not list((tmp_path / ".evalwright").iterdir())
    assert home_folder(".evalwright") == Path(".evalwright")
    assert main([*command, "--home", ".evalwright"]) == 0


def test_a_login_with_more_signs_than_it_should_have() -> None:
    name = "openai/http://user:first@second-77x1@localhost:1/v1#m"
    opened = open_model(name)
    assert opened.name == "openai/http://localhost:1/v1#m"
    assert masked_arguments(name) == f"openai/http://{MASKED}@localhost:1/v1#m"
    assert mask("it said first@second-77x1 twice") == f"it said {MASKED} twice"
    remember("Basic " + base64.b64encode(b"user:another-pass-1").decode())
    assert mask("another-pass-1") == MASKED


ADDRESS_KEY = "addr-4f81c0d2e9"


@pytest.mark.parametrize(
    "how", ["variable", "argument", "path", "in the name", "well-known form"]
)
def test_a_secret_in_an_address_is_written_nowhere(
    how: str,
    server: EchoServer,
    own_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of a plug-in's variables by their names, and in the path of an address where the
    environment or the form says that it is one.
    """
    secret = (
        "sk-proj-4f81c0d2e9a7b6c5d4e3f2a1" if how == "well-known form" else ADDRESS_KEY
    )
    write_questions(own_folder, 2)
    Path("mine.toml").write_text(
        '[mine]\nbase_url = "'
        + server.url
        + '/{tok}"\nvariables = { tok = "MINE_TOKEN" }\n'
    )
    address = f"{server.url}/{secret}"
    if how in ("variable", "path", "in the name"):
        monkeypatch.setenv("MINE_TOKEN", secret)
    arguments = {
        "variable": ["--plugin", "mine.toml", "--model", "mine/m"],
        "argument": [
            "--plugin",
            "mine.toml",
            "--model",
            "mine/m",
            "-M",
            f"variables.tok={secret}",
        ],
        "path": ["--model", "vllm/m", "-M", f"base_url={address}"],
        "in the name": ["--model", f"vllm/{address}#m"],
        "well-known form": ["--model", f"vllm/{address}#m"],
    }[how]
    monkeypatch.setenv("EVALWRIGHT_HOME", "home")
    main(["run", "questions.yaml", *arguments, "-M", "max_attempts=1", "--verbose", "--log-file", "log.txt"])  # fmt: skip
    printed = capsys.readouterr()
    assert secret not in printed.out + printed.err
    seen = [
        (path, text)
        for path, text in everything(own_folder)
        if path.name != "mine.toml" and secret in text
    ]
    assert not seen
    assert Path("runs").exists() and any(Path("runs").iterdir())


def test_what_the_packages_providers_need_in_an_address_is_no_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1-and-more")
    open_model("bedrock/m")
    assert mask("eu-west-1-and-more") == "eu-west-1-and-more"
