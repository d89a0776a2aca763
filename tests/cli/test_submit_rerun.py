"""`runs submit verify --rerun`: the model of a submission is asked again, and never by the file."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.boards import add_up, make_board
from support.command import Done
from support.openai_faults import Faults
from support.openai_server import OpenAIServer, serving
from support.typed import typed

N_SUMS = 100


def requests(server: OpenAIServer) -> int:
    return sum(server.received.values())


def at_random(share: float, seed: int) -> Callable[[str], str]:
    """A model that is wrong in a share of its answers, other ones each time.

    Its answers depend on how often a prompt was asked, not on the order of the requests.
    """
    n_asked: Counter[str] = Counter()

    def answer(prompt: str) -> str:
        n_asked[prompt] += 1
        generator = random.Random(f"{seed} {n_asked[prompt]} {prompt}")
        return add_up(prompt) if generator.random() > share else "-1"

    return answer


@pytest.fixture
def place(tmp_path: Path) -> Path:
    make_board(tmp_path, {"m": "http://127.0.0.1:9/v1"}, n_items=N_SUMS)
    return tmp_path


def evalwright(place: Path, *arguments: str) -> Done:
    done = typed(*arguments, folder=place)
    assert "Traceback" not in done.text and "bug in evalwright" not in done.text
    return done


def submit(place: Path, server: OpenAIServer) -> None:
    """Make a submission of a run on the sums."""
    model = ("--model", "openai/m", "-M", f"base_url={server.url}")
    done = evalwright(place, "run", "sums.yaml", *model, "--name", "mine", "--quiet")
    assert done.code == 0, done.text
    done = evalwright(place, "runs", "submit", "make", "mine", "--into", "mine.json.gz")
    assert done.code == 0, done.text


def read_document(file: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(gzip.decompress(file.read_bytes()))
    return document


def verify(place: Path, server: OpenAIServer, *more: str) -> Done:
    return evalwright(
        place,
        *("runs", "submit", "verify", "mine.json.gz", "--task", "sums.yaml"),
        *("--rerun", "50", "--model", "openai/m", "-M", f"base_url={server.url}"),
        *more,
    )


def test_an_honest_file(place: Path) -> None:
    with serving(add_up) as server:
        submit(place, server)
        done = verify(place, server)
        assert done.code == 0, done.text
        assert requests(server) == N_SUMS + 100  # nothing came from the store
        assert "Asked again: 50 of 100 answered items, twice each" in done.out
        assert "Texts: 50 of 50 are the same as one of our two" in done.out
        assert "Nothing speaks against the file." in done.out
        assert "fewer than 6% of its answers were changed" in done.out
        assert "It is not shown that every answer came from the model" in done.out

        seed = done.out.partition("--rerun-seed ")[2].split(".")[0]
        drawn = json.loads(verify(place, server, "--json").out)["rerun"]
        again = json.loads(verify(place, server, "--json", "--rerun-seed", seed).out)[
            "rerun"
        ]
        third = json.loads(verify(place, server, "--json", "--rerun-seed", seed).out)[
            "rerun"
        ]
        ids = [item["id"] for item in again["items"]]
        assert ids == [item["id"] for item in third["items"]]
        assert ids != [item["id"] for item in drawn["items"]]


def test_answers_of_a_better_model_are_seen(place: Path) -> None:
    with serving(add_up) as better, serving(at_random(0.3, 1)) as claimed:
        submit(place, better)
        done = verify(place, claimed)
        assert done.code == 1, done.text
        assert "are not like those of this model today" in done.out
        assert "That does not show who is wrong" in done.out
        assert "Scored better in the file than in both of ours" in done.out


def test_a_model_that_varies_is_not_accused(place: Path) -> None:
    with serving(at_random(0.3, 2)) as server:
        submit(place, server)
        # One draw of items in fifty accuses an honest file (ALARM_P twice); this one does not.
        done = verify(place, server, "--rerun-seed", "0123456789abcdef")
        assert done.code == 0, done.text
        assert "Nothing speaks against the file." in done.out
        assert "A difference of 0." in done.out


def test_replaced_answers_are_seen(place: Path) -> None:
    def sometimes_wrong(prompt: str) -> str:
        return add_up(prompt) if int(add_up(prompt)) % 4 else "-1"

    with serving(sometimes_wrong) as server:
        with serving(add_up) as forger:
            submit(place, forger)  # every answer is right, and scored as what it is
        done = verify(place, server)
        assert done.code == 1 and "are not like those of this model" in done.out


def test_an_edited_file_is_not_asked_about(place: Path) -> None:
    with serving(add_up) as server:
        submit(place, server)
        file = place / "mine.json.gz"
        document = read_document(file)
        document["samples"][0]["answer"] = "0 0"
        file.write_bytes(gzip.compress(json.dumps(document).encode()))
        n_before = requests(server)
        done = verify(place, server)
        assert done.code == 1 and "was not asked again" in done.err, done.text
        assert requests(server) == n_before


def test_the_file_names_no_address(place: Path) -> None:
    with serving(add_up) as server, serving(add_up) as elsewhere:
        submit(place, server)
        file = place / "mine.json.gz"
        document = read_document(file)
        document["run"]["model"]["name"] = f"openai/{elsewhere.url}#m"
        document["run"]["configuration"]["base_url"] = elsewhere.url
        file.write_bytes(gzip.compress(json.dumps(document).encode()))
        verify(place, server)
        assert requests(elsewhere) == 0
        done = evalwright(
            place, "runs", "submit", "verify", "mine.json.gz", "--rerun", "5"
        )
        assert done.code == 2 and "The file cannot name it" in done.err


def test_a_budget_and_missing_answers(place: Path) -> None:
    with serving(add_up) as server:
        submit(place, server)
        done = verify(place, server, "--budget", "40 requests")
        assert done.code == 1 and "30 of 50 items could not be compared" in done.out
        assert "the budget of requests was spent" in done.out
        assert requests(server) <= N_SUMS + 40
    with serving(add_up, faults=Faults(script=lambda body, n: "filtered")) as broken:
        done = verify(place, broken)
        assert done.code == 1 and "50 of 50 items could not be compared" in done.out
        assert "Nothing can be concluded" in done.out


def test_an_entry_of_a_board_names_the_model(place: Path) -> None:
    with serving(add_up) as server:
        submit(place, server)
        text = (place / "board.yaml").read_text()
        (place / "board.yaml").write_text(
            text.replace("http://127.0.0.1:9/v1", server.url)
        )
        entry = place / "entries" / "m.yaml"
        entry.write_text(f"model: openai/m\nbase_url: {server.url}\n")
        command = (
            *("runs", "submit", "verify", "mine.json.gz", "--task", "sums.yaml"),
            *("--rerun", "10", "--entry", "entries/m.yaml"),
        )
        done = evalwright(place, *command, "--trust-file", "board.yaml")
        assert done.code == 0, done.text
        assert requests(server) == N_SUMS + 20
        entry.write_text("model: openai/m\nbase_url: https://evil.example/v1\n")
        done = evalwright(place, *command, "--trust-file", "board.yaml")
        assert done.code == 2 and "entries/m.yaml:2" in done.err, done.text


def test_wrong_options(place: Path) -> None:
    submitted = ("runs", "submit", "verify", "mine.json.gz")
    done = evalwright(place, *submitted, "--model", "openai/m")
    assert done.code == 2 and "--rerun" in done.err
    done = evalwright(place, *submitted, "--rerun", "0")
    assert done.code == 2
    with serving(add_up) as server:
        submit(place, server)
        done = verify(place, server, "--rerun-seed", "../x")
        assert done.code == 2 and "8 to 64 digits" in done.err
