"""Tasks with images, from the file to the record: over three wire formats and a transformers
model, and what a stranger's row may not.
"""

from __future__ import annotations

import base64
import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from support.openai_server import OpenAIServer, serving
from support.typed import typed as run_typed

Pictures = pytest.importorskip("PIL.Image")

TASK = """\
task: colours
dataset: rows.jsonl
sample: {id: "{{ id }}", input: What colour is it?, target: "{{ colour }}"}
prompt: {images: "{{ picture }}", user: "{{ input }}"}
answer: {max_tokens: 8, temperature: null}
scorers: [exact-match]
"""
KEY = "test-key-0123456789abcdef"
COLOURS = ("red", "green", "blue")


def typed(arguments: list[str]) -> tuple[int, str]:
    done = run_typed(*arguments)
    return done.code, done.text


def picture(colour: str, kind: str = "PNG") -> bytes:
    data = BytesIO()
    Pictures.new("RGB", (400, 300), colour).save(data, kind)
    return data.getvalue()


def written(
    folder: Path, task: str = TASK, rows: list[dict[str, Any]] | None = None
) -> Path:
    (folder / "pictures").mkdir(parents=True)
    for colour in COLOURS:
        (folder / "pictures" / f"{colour}.png").write_bytes(picture(colour))
    made = rows or [
        {"id": colour, "picture": f"pictures/{colour}.png", "colour": colour}
        for colour in COLOURS
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in made))
    (folder / "task.yaml").write_text(task)
    return folder / "task.yaml"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("EVALWRIGHT_IMAGE_URLS", "")
    monkeypatch.setenv("TEST_KEY", KEY)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with serving(lambda prompt: "red", key=KEY) as found:
        yield found


def records(name: str) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for line in Path("runs", name, "samples.jsonl").read_text().splitlines()
    ]


@pytest.mark.parametrize(
    ("provider", "path", "model"),
    [
        ("openai", "/v1", "m"),
        ("anthropic", "/v1", "claude-sonnet-4-5"),
        ("gemini", "/v1beta", "gemini-2.5-flash"),
    ],
)
def test_a_run_over_each_format(
    server: OpenAIServer, tmp_path: Path, provider: str, path: str, model: str
) -> None:
    task = written(tmp_path / "task")
    command = [
        "run", str(task), "--model", f"{provider}/{server.root}{path}#{model}", "-M", "api_key_env=TEST_KEY",
        "--name", "a",
    ]  # fmt: skip
    code, said = typed(command)
    assert code == 0, said
    assert server.log is not None and len(server.log) == 3
    sent = sorted(json.dumps(entry["body"]) for entry in server.log)
    for colour in COLOURS:
        assert (
            sum(base64.b64encode(picture(colour)).decode() in body for body in sent)
            == 1
        )
    assert all("temperature" not in body for body in sent)
    found = {row["id"]: row for row in records("a")}
    assert [found[colour]["scores"]["exact-match"]["value"] for colour in COLOURS] == [
        1.0,
        0.0,
        0.0,
    ]
    for colour in COLOURS:
        ((role, (image, text)),) = found[colour]["prompt"]
        assert (role, text) == ("user", "What colour is it?")
        assert (
            image["source"] == f"pictures/{colour}.png"
            and image["media_type"] == "image/png"
        )
        assert len(image["image"]) == 64 and len(json.dumps(found[colour])) < 3000
    kept = json.loads(Path("runs/a/run.json").read_text())
    answer = kept["tasks"][0]["definition"]["answer"]
    assert answer["temperature"] is None and "top_k" not in answer
    assert kept["tasks"][0]["definition"]["prompt"]["images"] == "{{ picture }}"
    # Everything is answered from the store; an image with other bytes is another request.
    assert typed([*command[:-1], "b"])[0] == 0 and len(server.log) == 3
    (task.parent / "pictures" / "blue.png").write_bytes(picture("navy"))
    assert typed([*command[:-1], "c"])[0] == 0 and len(server.log) == 4
    assert typed(["runs", "show", "a"])[0] == 0


def test_a_run_with_a_transformers_model(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from support.tiny_models import make_vision_model

    folder = make_vision_model(tmp_path / "llava")
    task = written(
        tmp_path / "task", TASK.replace("temperature: null", "top_logprobs: 1")
    )
    code, said = typed(
        ["run", str(task), "--model", f"hf/{folder}", "-M", "device=cpu", "--name", "a"]
    )
    assert code == 0, said
    rows = records("a")
    assert len(rows) == 3 and all(row["outcome"] == "answered" for row in rows)
    assert all(row["responses"][0]["tokens"] for row in rows if row["answer"])
    code, said = typed(
        [
            "run",
            str(task),
            "--model",
            f"hf/{folder}",
            "-M",
            "device=cpu",
            "--name",
            "b",
            "--json",
        ]
    )
    assert code == 0 and '"stored": 3' in said.replace("\n", " ")


def test_images_stand_where_the_template_puts_them(
    server: OpenAIServer, tmp_path: Path
) -> None:
    two = '["pictures/red.png", "{{ picture }}"]'
    text = TASK.replace(
        '"{{ picture }}", user: "{{ input }}"',
        f'{two}, user: "First {{{{ images[1] }}}}, and {{{{ input | upper }}}}"',
    )
    task = written(tmp_path / "task", text)
    code, said = typed(
        [
            "run", str(task), "--model", f"openai/{server.url}#m", "-M", "api_key_env=TEST_KEY", "--limit",
            "1", "--name", "a",
        ]
    )  # fmt: skip
    assert code == 0, said
    ((_, parts),) = records("a")[0]["prompt"]
    sources = [part if isinstance(part, str) else part["source"] for part in parts]
    assert sources[0] == "pictures/red.png" and sources[1] == "First "
    assert sources[3] == ", and WHAT COLOUR IS IT?"
    code, said = typed(["tasks", "preview", str(task)])
    assert code == 0 and "(image/png " in said


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (["demo/small"], "needs a model that can do: chat"),
        (["deepseek/deepseek-chat", "-M", "api_key_env=TEST_KEY"], "The task 'colours' cannot be run: 'deepseek/deepseek-chat' does not take images"),
        (["scripted/constant", "--format", "text"], "images need the chat form of the prompt"),
    ],
)  # fmt: skip
def test_a_model_without_eyes_is_refused_before_anything_is_sent(
    tmp_path: Path, model: list[str], says: str
) -> None:
    code, said = typed(["run", str(written(tmp_path / "task")), "--model", *model])
    assert code == 2 and says in " ".join(said.split()), said
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("answer.top_k=5", "cannot be run: 'openai/gpt-4o-mini' does not take top_k (it takes: images, json_schema, parallel_tool_calls, tool_choice, tools, top_logprobs)"),
        ("answer.num_beams=4", "beams keep the most probable answers and draw none"),
        ("answer.min_p=2", "answer.min_p"),
        ("answer.json_schema=5", "a JSON schema is a mapping"),
        ("answer.reasoning_effort=low", "does not take reasoning_effort"),
        ("prompt.few_shot.count=1", "`few_shot` cannot be used with images"),
    ],
)  # fmt: skip
def test_options_that_do_not_go_are_one_sentence(
    tmp_path: Path, option: str, says: str
) -> None:
    task = written(
        tmp_path / "task",
        TASK.replace(
            ", temperature: null",
            ", temperature: null" if "top_k" in option or "beams" in option else "",
        ),
    )
    code, said = typed(
        [
            "run",
            str(task),
            "--model",
            "openai/gpt-4o-mini",
            "-M",
            "api_key_env=TEST_KEY",
            "-T",
            option,
        ]
    )
    assert code == 2 and says in " ".join(said.split()), said


def test_images_are_for_answers_in_words(tmp_path: Path) -> None:
    task = written(
        tmp_path / "task",
        TASK.replace("max_tokens: 8, temperature: null", "mode: continuation"),
    )
    code, said = typed(["run", str(task), "--model", "demo/small"])
    assert code == 2 and "images cannot be used with the mode continuation" in " ".join(
        said.split()
    )


def bad(folder: Path, name: str) -> str:
    """What a row names, with whatever must lie there for it."""
    outside = folder.parent / "secret.png"
    outside.write_bytes(picture("red"))
    if name == "link":
        (folder / "link.png").symlink_to(outside)
        return "link.png"
    files: dict[str, bytes] = {
        "text": b"not a picture",
        "svg": b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>",
        "bomb": b"GIF89a\xff\xff\xff\xff\x00\x00\x00;",
        "empty": b"",
    }
    if name in files:
        (folder / f"{name}.png").write_bytes(files[name])
        return f"{name}.png"
    return {
        "outside": "../secret.png",
        "absolute": str(outside),
        "device": "/dev/zero",
        "missing": "pictures/none.png",
        "folder": "pictures",
        "url": "http://127.0.0.1:9/a.png",
        "file url": f"file://{outside}",
        "data": "data:image/png;base64,AAAA",
        "nul": "a\x00b.png",
        "long": "x" * 10_000,
    }[name]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("text", "is not an image that models take: use PNG, JPEG, GIF or WebP"),
        ("svg", "SVG, which can contain scripts"),
        ("bomb", "unpacks to 65,535 x 65,535 pixels"),
        ("empty", "(it is empty)"),
        ("outside", "is outside the task's folder"),
        ("absolute", "is outside the task's folder"),
        ("link", "is outside the task's folder"),
        ("device", "is outside the task's folder"),
        ("missing", "cannot be read: no such file or directory"),
        ("folder", "cannot be read: it is a folder"),
        ("url", "add --image-urls, or set"),
        ("file url", "has an address that is neither http nor https"),
        ("data", "is not an image"),
        ("nul", "cannot be found"),
        ("long", "The image 'xxx"),
    ],
)  # fmt: skip
def test_a_bad_image_is_one_sentence(tmp_path: Path, name: str, says: str) -> None:
    folder = tmp_path / "task"
    task = written(folder)
    row = {"id": "1", "picture": bad(folder, name), "colour": "red"}
    (folder / "rows.jsonl").write_text(json.dumps(row) + "\n")
    code, said = typed(["run", str(task), "--model", "scripted/constant"])
    line = " ".join(said.split())
    assert code == 2 and says in line and "Traceback" not in said, said
    assert "row 1" in line and len(line) < 500


@contextmanager
def pictures_at(data: bytes) -> Iterator[tuple[str, list[str]]]:
    """A server of one picture, at /a.png; /away leads to a file."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(302 if self.path == "/away" else 200)
            if self.path == "/away":
                self.send_header("Location", "file:///etc/passwd")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Silent."""

    found = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=found.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{found.server_port}", asked
    finally:
        found.shutdown()
        found.server_close()


def test_addresses_are_fetched_once_where_the_person_allows_it(
    server: OpenAIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pictures_at(picture("red")) as (url, asked):
        rows = [{"id": "1", "picture": f"{url}/a.png?token=abc", "colour": "red"}]
        task = written(tmp_path / "task", rows=rows)
        command = [
            "run", str(task), "--model", f"openai/{server.url}#m", "-M", "api_key_env=TEST_KEY",
            "--image-urls",
        ]  # fmt: skip
        code, said = typed([*command, "--name", "a"])
        assert code == 0, said
        assert typed([*command, "--name", "b"])[0] == 0 and asked == [
            "/a.png?token=abc"
        ]
        ((_, (image, _)),) = records("a")[0]["prompt"]
        assert image["source"] == f"{url}/a.png"
        (tmp_path / "task" / "rows.jsonl").write_text(
            json.dumps({**rows[0], "picture": f"{url}/away"}) + "\n"
        )
        code, said = typed([*command, "--name", "c"])
        assert code == 2 and "cannot be fetched" in said and "root:" not in said
    monkeypatch.setenv("EVALWRIGHT_IMAGE_URLS", "")
    code, said = typed(
        [
            "run",
            "factual-closed-book",
            "--model",
            "scripted/constant",
            "--limit",
            "2",
            "--image-urls",
        ]
    )
    assert code == 2 and "--image-urls has no effect" in said


# --- a column of images, and what is kept of them
# ---------------------------------------------------------------------


def questions(folder: Path, cells: list[str], column: str = "image") -> Path:
    written(folder)
    rows = [
        f"{colour},{cell},What colour is it?,{colour}"
        for colour, cell in zip(COLOURS, cells, strict=True)
    ]
    (folder / "questions.csv").write_text(
        "\n".join([f"id,{column},question,expected", *rows]) + "\n"
    )
    return folder / "questions.csv"


@pytest.mark.parametrize(
    "column", ["image", "Image", "images", "image_path", "picture"]
)
def test_a_column_of_images_is_sent(
    server: OpenAIServer, tmp_path: Path, column: str
) -> None:
    """The paths are beside the file, not in the working folder."""
    file = questions(
        tmp_path / "elsewhere", [f"pictures/{colour}.png" for colour in COLOURS], column
    )
    command = [
        "run",
        str(file),
        "--model",
        f"openai/{server.root}/v1#m",
        "-M",
        "api_key_env=TEST_KEY",
        "--name",
        "a",
    ]
    code, said = typed(command)
    assert code == 0 and f"images = {column}" in said
    assert server.log is not None
    sent = sorted(json.dumps(entry["body"]) for entry in server.log)
    for colour in COLOURS:
        assert (
            sum(base64.b64encode(picture(colour)).decode() in body for body in sent)
            == 1
        )


def test_a_column_that_only_looks_like_images_is_told_of(
    server: OpenAIServer, tmp_path: Path
) -> None:
    file = questions(tmp_path / "data", ["a red square", "a green one", "a blue one"])
    model = ["--model", f"openai/{server.root}/v1#m", "-M", "api_key_env=TEST_KEY"]
    code, said = typed(["run", str(file), *model, "--name", "a"])
    assert (
        code == 0
        and "the column 'image' is not sent as images" in said
        and "--column images=image" in said
    )
    assert records("a")[0]["metadata"]["image"] in (
        "a red square",
        "a green one",
        "a blue one",
    )
    code, said = typed(
        ["run", str(file), *model, "--name", "b", "--column", "images=image"]
    )
    assert code == 2 and "'a red square' cannot be read" in said


def test_pictures_are_kept_and_shared_only_when_asked(
    server: OpenAIServer, tmp_path: Path
) -> None:
    task = written(tmp_path / "task")
    model = ["--model", f"openai/{server.root}/v1#m", "-M", "api_key_env=TEST_KEY"]
    assert typed(["run", str(task), *model, "--name", "a"])[0] == 0
    assert json.loads(Path("runs/a/run.json").read_text())["images"]["kept"] == 3
    shown = [
        Path(f"runs/a/images/{json.loads(line)['file']}")
        for line in Path("runs/a/images/index.jsonl").read_text().splitlines()
    ]
    data = [base64.b64encode(file.read_bytes()) for file in shown]
    for arguments, expected in (([], 0), (["--images"], 3)):
        assert typed(["view", "a", "--html", "page.html", *arguments])[0] == 0
        page = Path("page.html").read_bytes()
        assert sum(one in page for one in data) == expected
        assert typed(["export", "site", "a", "--out", "site", *arguments])[0] == 0
        assert len(list(Path("site").rglob("image/0/*.bin"))) == expected
    code, said = typed(["view", "a", "--images"])
    assert code == 2 and "--html" in said
    # Scores made again and shards put together keep them.
    assert typed(["score", "a", "--name", "again"])[0] == 0
    assert json.loads(Path("runs/again/run.json").read_text())["images"]["kept"] == 3
    for shard in ("1/2", "2/2"):
        assert (
            typed(["run", str(task), *model, "--name", "parts", "--shard", shard])[0]
            == 0
        )
    code, said = typed(
        [
            "runs",
            "merge",
            *map(str, sorted(Path("runs").glob("parts*"))),
            "--name",
            "whole",
        ]
    )
    assert code == 0, said
    assert json.loads(Path("runs/whole/run.json").read_text())["images"]["kept"] == 3


def test_no_images_keeps_none(server: OpenAIServer, tmp_path: Path) -> None:
    task = written(tmp_path / "task")
    model = ["--model", f"openai/{server.root}/v1#m", "-M", "api_key_env=TEST_KEY"]
    assert typed(["run", str(task), *model, "--name", "a", "--no-images"])[0] == 0
    assert not Path("runs/a/images").exists()
    left_out = json.loads(Path("runs/a/run.json").read_text())["images"]["left_out"]
    assert left_out == {"store_images is false": 3}


def command(server: OpenAIServer, task: Path, name: str, *more: str) -> list[str]:
    return [
        "run", str(task), "--model", f"openai/{server.root}/v1#m", "-M", "api_key_env=TEST_KEY", "--name", name, *more
    ]  # fmt: skip


def images_of(name: str) -> dict[str, Any]:
    """What a run's record says of its images."""
    recorded: dict[str, Any] = json.loads(Path("runs", name, "run.json").read_text())[
        "images"
    ]
    return recorded


def test_a_run_from_the_store_keeps_images_too(
    server: OpenAIServer, tmp_path: Path
) -> None:
    """The store has no bytes of images; the data have them."""
    task = written(tmp_path / "task")
    assert typed(command(server, task, "a"))[0] == 0
    code, said = typed(command(server, task, "b", "--json"))
    assert code == 0 and '"stored": 3' in " ".join(said.split())
    assert images_of("b") == images_of("a") and images_of("a")["kept"] == 3
    code, said = typed(["runs", "check", "a", "b"])
    assert code == 0, said
    one = next(Path("runs/b/images").glob("*.png"))
    one.write_bytes(one.read_bytes()[:-1])
    code, said = typed(["runs", "check", "b"])
    assert code == 1 and "its file is missing or was changed" in " ".join(
        said.split()
    ), said


def test_shards_may_differ_in_what_they_keep(
    server: OpenAIServer, tmp_path: Path
) -> None:
    task = written(tmp_path / "task")
    assert typed(command(server, task, "parts", "--shard", "1/2"))[0] == 0
    assert (
        typed(command(server, task, "parts", "--shard", "2/2", "--no-images"))[0] == 0
    )
    code, said = typed(
        [
            "runs",
            "merge",
            *map(str, sorted(Path("runs").glob("parts*"))),
            "--name",
            "whole",
        ]
    )
    assert code == 0, said
    images = images_of("whole")
    assert images["kept"] + images["left_out"]["store_images is false"] == 3


def test_what_has_no_bytes_of_images_says_so(
    server: OpenAIServer, tmp_path: Path
) -> None:
    """A table that is read back, a run that an earlier version made, and a board's own copy of a
    run.
    """
    pytest.importorskip("pyarrow")
    task = written(tmp_path / "task")
    assert typed(command(server, task, "a"))[0] == 0
    assert typed(["export", "parquet", "a", "--out", "tables"])[0] == 0
    assert (
        typed(["import", "parquet", "tables/a.samples.parquet", "--name", "back"])[0]
        == 0
    )
    nothing = {"what the run was made from has no bytes of them": 3}
    assert images_of("back") == {"kept": 0, "bytes": 0, "left_out": nothing}
    code, said = typed(["score", "back", "--name", "again"])
    assert (
        code == 0
        and images_of("again")["left_out"] == nothing
        and "Images of" not in said
    )

    shutil.rmtree("runs/a/images")
    record = json.loads(Path("runs/a/run.json").read_text())
    del record["images"]
    Path("runs/a/run.json").write_text(json.dumps(record))
    code, said = typed(["score", "a", "--name", "scored"])
    assert code == 0 and images_of("scored")["left_out"] == {
        "not kept by that version": 3
    }


def test_a_board_keeps_runs_without_their_images(
    server: OpenAIServer, tmp_path: Path
) -> None:
    task = written(tmp_path / "task")
    assert typed(command(server, task, "a"))[0] == 0
    assert typed(["leaderboard", "a", "--kept", "kept"])[0] == 0
    assert not Path("kept/a/images").exists()
    code, said = typed(["runs", "check", "kept/a"])
    assert code == 0 and "which was copied without them" in " ".join(said.split()), said
    assert typed(["view", "kept/a", "--html", "page.html", "--images"])[0] == 0


def test_what_is_beyond_a_limit_is_said_at_the_end(
    server: OpenAIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evalwright.runs import images

    monkeypatch.setattr(images, "MOST_RUN_PICTURES", 1)
    task = written(tmp_path / "task")
    code, said = typed(command(server, task, "a"))
    assert (
        code == 0
        and "1 kept in images/, 2 not kept (2: a run keeps at most"
        in " ".join(said.split())
    ), said
    code, said = typed(command(server, task, "b", "--no-images"))
    assert code == 0 and "not kept" not in said


def test_a_suite_may_turn_it_off(server: OpenAIServer, tmp_path: Path) -> None:
    task = written(tmp_path / "task")
    Path("suite.yaml").write_text(
        f"name: quiet\ntasks: ['{task}']\nmodels: ['scripted/constant']\nstore_images: false\n"
    )
    code, said = typed(["run", "--config", "suite.yaml"])
    assert code == 0, said
    (run,) = Path("runs").iterdir()
    assert not (run / "images").exists() and images_of(run.name)["left_out"] == {
        "store_images is false": 3
    }
    Path("suite.yaml").write_text(
        Path("suite.yaml").read_text().replace("false", "perhaps")
    )
    code, said = typed(["run", "--config", "suite.yaml"])
    assert code == 2 and "true or false" in said
