"""A column of images of a data file is sent, or a warning says that it is not and what to write."""

from __future__ import annotations

import base64
import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.image_files import image_bytes
from support.openai_server import OpenAIServer, serving
from support.typed import typed

pytestmark = pytest.mark.usefixtures("own_folder")

KEY = "test-key-0123456789abcdef"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    monkeypatch.setenv("TEST_KEY", KEY)
    with serving(lambda prompt: "red", key=KEY) as running:
        yield running


def write_rows(
    file: str, *cells: str, column: str = "image", answer: str = "target"
) -> None:
    """A table of questions about images."""
    path = Path(file)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as out:
        table = csv.writer(out)
        table.writerow(["question", column, answer])
        table.writerows(
            [f"What colour is number {number}?", cell, "red"]
            for number, cell in enumerate(cells)
        )


def write_image(file: str, colour: str = "red") -> bytes:
    path = Path(file)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(image_bytes(colour=colour))
    return path.read_bytes()


def run(server: OpenAIServer, file: str, *more: str) -> tuple[int, str]:
    done = typed(
        "run",
        file,
        "--model",
        f"openai/{server.url}#m",
        "-M",
        "api_key_env=TEST_KEY",
        *more,
    )
    return done.code, " ".join(done.text.split())


def bodies(server: OpenAIServer) -> list[str]:
    assert server.log is not None
    return [json.dumps(entry["body"]) for entry in server.log]


@pytest.mark.parametrize("column", ["image", "Image Path", "picture", "image_url"])
def test_files_beside_the_data_and_data_urls_are_sent(
    server: OpenAIServer, column: str
) -> None:
    red = write_image("data/pictures/red.png")
    blue = image_bytes(colour="blue")
    url = f"data:image/png;base64,{base64.b64encode(blue).decode()}"
    write_rows("data/rows.csv", "pictures/red.png", url, "", column=column)
    code, text = run(server, "data/rows.csv", "--name", "a")
    assert code == 0 and f"images = {column}" in text and "Warning" not in text, text
    sent = bodies(server)
    assert sorted(body.count('"image_url"') > 0 for body in sent) == [False, True, True]
    for image in (red, blue):
        assert sum(base64.b64encode(image).decode() in body for body in sent) == 1
    rows = [
        json.loads(line)
        for line in Path("runs/a/samples.jsonl").read_text().splitlines()
    ]
    assert all(column not in row.get("metadata", {}) for row in rows)
    assert len({row["prompt"][0][1] if isinstance(row["prompt"][0][1], str) else row["prompt"][0][1][0]["image"] for row in rows}) == 3  # fmt: skip


def test_paths_may_start_from_the_working_folder_where_the_data_lie_in_it(
    server: OpenAIServer,
) -> None:
    write_image("data/red.png", "blue")
    write_image("red.png", "red")
    write_rows("data/rows.csv", "data/red.png", "red.png")
    code, text = run(server, "data/rows.csv")
    assert code == 0, text
    # Beside the data comes first.
    assert all(
        base64.b64encode(image_bytes(colour="blue")).decode() in body
        for body in bodies(server)
    )


def test_nothing_is_read_outside_the_folder_of_the_data(
    server: OpenAIServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    secret = write_image("secret.png")
    (elsewhere / "link.png").symlink_to(Path("secret.png").resolve())
    for cell in (
        "secret.png",
        "../secret.png",
        str(Path("secret.png").resolve()),
        "link.png",
        "/dev/zero",
    ):
        write_rows(str(elsewhere / "rows.csv"), cell)
        code, text = run(
            server, str(elsewhere / "rows.csv"), "--column", "images=image"
        )
        assert code == 2 and "row 1" in text, text
        assert (
            "outside the data file's folder" in text
            or "cannot be read: no such file" in text
        )
    assert base64.b64encode(secret).decode() not in str(bodies(server)) and not bodies(
        server
    )


def test_an_address_is_not_fetched_unasked(server: OpenAIServer) -> None:
    write_rows("rows.csv", f"{server.root}/a.png")
    code, text = run(server, "rows.csv")
    assert (
        code == 2
        and "add --image-urls" in text
        and "`--column images=` leaves out" in text
    ), text
    assert not bodies(server)
    code, text = run(server, "rows.csv", "--column", "images=")
    assert code == 0 and "image" not in text.partition("Run ")[0].replace(
        "images=", ""
    ), text
    assert "image_url" not in str(bodies(server))


@pytest.mark.parametrize("cell", ["42", "a red house", "drawing.svg", "[1, 2]"])
def test_a_column_of_something_else_is_not_sent_and_a_warning_says_so(
    server: OpenAIServer, cell: str
) -> None:
    write_rows("rows.csv", "", cell)
    code, text = run(server, "rows.csv", "--name", "a")
    assert code == 0, text
    assert (
        f"Warning: the column 'image' is not sent as images: its first cell ('{cell}')"
        in text
    )
    assert "`--column images=image` sends it all the same" in text
    assert "image_url" not in str(bodies(server))
    assert json.loads(Path("runs/a/samples.jsonl").read_text().splitlines()[-1])[
        "metadata"
    ]["image"]
    preview = typed("tasks", "preview", "rows.csv")
    assert preview.code == 0 and "is not sent as images" in preview.text
    for command in (
        ("run", "rows.csv", "--model", "scripted/constant", "--column", "images="),
        ("tasks", "preview", "rows.csv", "-T", "columns.images="),
    ):
        without = typed(*command)
        assert without.code == 0 and "Warning" not in without.text, without.text


@pytest.mark.parametrize("from_suite", [False, True], ids=["typed", "suite"])
def test_the_warning_is_there_with_quiet_and_in_the_record(
    server: OpenAIServer, from_suite: bool
) -> None:
    write_rows("rows.csv", "", "a red house")
    if from_suite:
        Path("suite.yaml").write_text(
            f"tasks: [rows.csv]\nmodels:\n- model: openai/{server.url}#m\n  arguments: {{api_key_env: TEST_KEY}}\n"
        )
        done = typed(
            "run",
            "--config",
            "suite.yaml",
            "--trust-file",
            "suite.yaml",
            "--quiet",
            "--name",
            "a",
        )
    else:
        model = (f"openai/{server.url}#m", "-M", "api_key_env=TEST_KEY")
        done = typed("run", "rows.csv", "--model", *model, "--quiet", "--name", "a")
    assert done.code == 0, done.text
    warning = "Warning: the column 'image' is not sent as images: its first cell ('a red house')"
    assert " ".join(done.err.split()).count(warning) == 1, done.text
    record = json.loads(Path("runs/a/run.json").read_text())
    assert record["tasks"][0]["metadata"]["images_not_sent"].startswith(warning)


def test_a_first_row_without_an_image_does_not_leave_out_the_others(
    server: OpenAIServer,
) -> None:
    write_image("red.png")
    write_rows("rows.csv", "", "red.png")
    code, text = run(server, "rows.csv", "--quiet", "--name", "a")
    assert code == 0 and "Warning" not in text, text
    assert sum("image_url" in body for body in bodies(server)) == 1


def test_a_column_that_a_person_names_is_taken_at_their_word(
    server: OpenAIServer,
) -> None:
    write_image("pictures/1")
    write_rows("rows.csv", "", "pictures/1", column="Foto")
    code, text = run(server, "rows.csv", "--column", "images=Foto", "--name", "a")
    assert (
        code == 0 and "images = Foto" in text and "image_url" in str(bodies(server))
    ), text
    write_rows("rows.csv", "a red house", column="image")
    code, text = run(server, "rows.csv", "--column", "images=image")
    assert code == 2 and "The image 'a red house' cannot be read" in text, text


def test_with_the_answers_in_the_file_a_warning_says_that_no_model_sees_them(
    server: OpenAIServer,
) -> None:
    Path("rows.csv").write_text("question,image,answer,target\nWhich?,a.png,red,red\n")
    done = typed("run", "rows.csv")
    text = " ".join(done.text.split())
    assert (
        done.code == 0
        and "the column 'image' is not sent as images, because the answers are those in the file"
        in text
    )
    assert "To ask one: --model NAME" in text
    write_image("a.png")
    code, text = run(server, "rows.csv")
    assert code == 0 and "Warning" not in text and "image_url" in str(bodies(server)), (
        text
    )


def test_a_model_without_eyes_is_told_how_to_go_on_without_images() -> None:
    write_image("a.png")
    write_rows("rows.csv", "a.png")
    done = typed("run", "rows.csv", "--model", "demo/small")
    text = " ".join(done.text.split())
    assert (
        done.code == 2
        and "`--column images=` leaves out the images of its data file" in text
    )
    assert (
        typed("run", "rows.csv", "--model", "demo/small", "--column", "images=").code
        == 0
    )


def test_a_task_file_that_is_begun_from_such_data_has_the_images(
    server: OpenAIServer,
) -> None:
    write_image("data/a.png")
    write_rows("data/rows.csv", "a.png")
    assert typed("init", "--task", "data/rows.csv", "--model", "demo/small").code == 0
    assert 'images: "{{ image }}"' in Path("rows.yaml").read_text()
    code, text = run(server, "rows.yaml")
    assert code == 0 and "image_url" in str(bodies(server)), text


def test_columns_of_images_in_other_files(server: OpenAIServer) -> None:
    """JSON Lines may have lists of images, and bytes as the hub keeps them."""
    image = write_image("data/a.png")
    cells = [
        ["a.png", "a.png"],
        {"bytes": base64.b64encode(image).decode(), "path": None},
        "a.png",
        None,
    ]
    lines = [
        json.dumps({"question": f"{number}?", "image": cell, "target": "red"})
        for number, cell in enumerate(cells)
    ]
    Path("data/rows.jsonl").write_text("\n".join(lines) + "\n")
    code, text = run(server, "data/rows.jsonl")
    assert code == 0 and "Warning" not in text, text
    assert sorted(body.count("data:image/png") for body in bodies(server)) == [
        0,
        1,
        1,
        2,
    ]
