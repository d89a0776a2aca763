"""What a Dockerfile comes to where no image is built."""

from __future__ import annotations

import pytest

from evalwright.compat.terminal_bench.dockerfiles import (
    doable,
    plan_build,
    read_steps,
)

INSTALLED = {"git", "python3", "gcc"}


def test_steps_of_a_file() -> None:
    text = (
        "# a comment\nFROM python:3.12-slim AS base\n\nRUN apt-get update && \\\n"
        "    # of a part\n    apt-get install -y \\\n      curl \\\n      git\n"
        "run <<EOF\nmkdir a\ncd a\nEOF\nWORKDIR /app\n"
    )
    steps = read_steps(text)
    assert [(step.word, step.line) for step in steps] == [
        ("FROM", 2),
        ("RUN", 4),
        ("RUN", 9),
        ("WORKDIR", 13),
    ]
    assert steps[1].text == "apt-get update && apt-get install -y curl git"
    assert steps[2].text == "<<EOF\nmkdir a\ncd a\nEOF"


def test_what_can_be_done_is_kept_in_its_order() -> None:
    build = plan_build(
        "FROM ghcr.io/laude-institute/t-bench/ubuntu-24-04:20250624\n"
        "ARG NAME=data\nENV DEBIAN_FRONTEND=noninteractive \\\n    DATA=/srv/$NAME\n"
        "ENV PATH=/opt/venv/bin:$PATH\n"
        "RUN apt-get update && apt-get install -y tmux git=1.2 && rm -rf /var/lib/apt/lists/*\n"
        "RUN pip install --no-cache-dir pytest==8.4.1\n"
        "RUN ln -s /usr/bin/python3 /usr/bin/python\n"
        "COPY --chown=root:root a.txt b.txt ${DATA}/\n"
        'COPY ["c d.txt", "/e"]\n'
        "WORKDIR /app\nCOPY src/ ./\nRUN mkdir out && echo 1 > out/x\n"
        "WORKDIR inner\nCMD sleep 1\n",
        INSTALLED,
        (),
    )
    assert build.refusals == []
    assert build.folder == "/app/inner"
    assert build.environment == {
        "DEBIAN_FRONTEND": "noninteractive",
        "DATA": "/srv/data",
    }
    assert build.copies == [
        (["a.txt", "b.txt"], "/srv/data/", "/"),
        (["c d.txt"], "/e", "/"),
        (["src/"], "./", "/app"),
    ]
    assert build.scripts == [
        ("/", "mkdir -p /app"),
        ("/app", "mkdir out\necho 1 > out/x"),
        ("/", "mkdir -p /app/inner"),
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("FROM rust:1.80", "the image 'rust:1.80' may have programs"),
        ("RUN apt-get install -y ffmpeg git", "the packages ffmpeg are not installed"),
        ("RUN pip3 install numpy 'scipy>=1'", "the Python packages numpy, scipy"),
        ("RUN pip install -r requirements.txt", "needs packages that are not here"),
        ("RUN uv pip install --system polars", "the Python packages polars"),
        ("RUN python -m pip install torch", "the Python packages torch"),
        ("RUN npm install -g yarn", "'npm install -g' needs the network"),
        ("RUN git clone https://example.com/x", "'git clone https://example.com/x'"),
        ("RUN wget -q http://example.com/x.tgz", "needs the network"),
        ("RUN if true; then curl https://a.example; fi", "needs the network"),
        ("COPY --from=base /a /b", "copies from another image"),
        ("ADD https://a.example/x /x", "needs the network"),
        ("COPY <<EOF /x\nhello\nEOF", "copies a text of the Dockerfile"),
        ("COPY alone", "copies nothing"),
        ("FROM debian:12", "it builds 2 images"),
    ],
)
def test_what_cannot_be_done_is_named(line: str, reason: str) -> None:
    text = line if line.startswith("FROM rust") else f"FROM debian:12\n{line}\n"
    (refusal,) = plan_build(text, INSTALLED, ()).refusals
    assert reason in refusal


def test_a_script_with_structures_is_kept_whole() -> None:
    script = "for i in 1 2; do echo $i >> a; done && x=$(pwd)"
    assert doable(script, INSTALLED, ()) == (script, [])
    kept, reasons = doable("mkdir a; apt-get install -y nothing && touch b", INSTALLED, ())
    assert kept == "mkdir a\ntouch b"
    assert reasons == ["the packages nothing are not installed here"]
