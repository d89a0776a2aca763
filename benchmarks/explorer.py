"""The explorer with many samples in a real browser: first paint, filters, the first hit of a
search, scrolling, the file's size.

    python -m benchmarks explorer [--samples 100000] [--folder DIR]

The corpus is made, not collected, so that anybody has the same: a run of `--samples` answers of 1
to 4 kB of text each (question and answer, in UTF-8 bytes, evenly spread), half English, a quarter
Chinese, an eighth each Thai and Burmese. Words are drawn one by one, independently, by Zipf's law
(exponent 0.9) from vocabularies of made-up words: 30,000 of one to four English syllables, 12,000
each of one to three Thai or Burmese syllables (consonant, vowel, tone or final), 3,500 Chinese
characters of which words of one or two are made. No phrase comes twice but by chance, so it
compresses less than what people write: the benchmark prints by how much deflate shortens a text of
each language by itself. Each record is what a run writes: question, prompt (an instruction, then
the question), answer, the reply once more, a score with its explanation, and metadata; so a text of
a sample stands about twice in its line.

    python -m benchmarks explorer --served [--samples 1000000] [--text 80 420]

measures `evalwright view` instead, in a home of its own: the first opening reads all records, the
second uses the index that the first made. Of both: seconds and the server's processor time until
the page has all columns, peak memory, the size of the index; then the same filters and searches.

The page is opened from `file://` with the network off, in a browser that has just been started,
once the file was read once (a cold disk is not the page's). Every time is the median of several,
measured in the page; the machine and its load are printed beside them.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from evalwright.core.requests import Message
from evalwright.core.responses import Response, Usage
from evalwright.core.samples import Answer, Sample, SampleRecord, Score
from evalwright.core.tasks import MetricSpec
from evalwright.reports.explorer.page import write_page
from evalwright.runs.aggregation import TaskTally
from evalwright.runs.reader import Run, open_run
from evalwright.runs.writer import SCHEMA_VERSION, RunWriter
from measuring import Table, option_parser
from support.browser import Tab, open_tab

LANGUAGES = ("en", "zh", "en", "th", "en", "zh", "en", "my")
TEXT_BYTES = (1000, 4000)
"""Least and most bytes of a question and its answer."""
TASK = "mixed"
SCORER = "short-answer"
NEEDLE = "quixotry"
"""A word of no vocabulary, put into one answer in the middle: a search for it has to read half of
everything.
"""


# -- the corpus ------------------------------------------------------------------------


ONSETS = "b c d f g h j k l m n p r s t v w br cl dr fl gr pl pr sh st th tr ch"
ENDS = (
    "a e i o u ai ea ee oo ou an en in on un ar er or al el is es ed ing ion ant ent"
    " ate ous ly"
)
THAI_VOWELS = "ะ า ิ ี ึ ุ ู ำ ัน าง อน ียน ือ"
BURMESE_VOWELS = "ာ ိ ီ ု ူ ေ ဲ ော ို န် င် တ်"


def vocabulary(language: str, rng: np.random.Generator) -> list[str]:
    """Made-up words of a language, the most frequent first."""
    sizes: tuple[int, ...] = (1, 2, 3)
    count = 12_000
    mark = ""
    if language == "en":
        syllables = [a + b for a in ONSETS.split() for b in ENDS.split()]
        sizes = (1, 2, 3, 4)
        count = 30_000
        mark = " "
    elif language == "zh":
        syllables = [
            chr(0x4E00 + int(code)) for code in rng.choice(20_000, 3_500, replace=False)
        ]
        sizes = (1, 2)
    elif language == "th":
        consonants = [chr(code) for code in range(0x0E01, 0x0E2F)]
        syllables = [
            a + b + tone
            for a in consonants
            for b in THAI_VOWELS.split()
            for tone in ("", "", "่", "้")
        ]
    else:
        consonants = [chr(code) for code in range(0x1000, 0x1021)]
        syllables = [
            a + b + tone
            for a in consonants
            for b in BURMESE_VOWELS.split()
            for tone in ("", "း", "့")
        ]
    words: dict[str, None] = {}
    while len(words) < count:
        picked = rng.integers(len(syllables), size=int(rng.choice(sizes)))
        words["".join(syllables[index] for index in picked) + mark] = None
    return list(words)


class Texts:
    """Texts of a language. ends: where the words are drawn, up to which each stands."""

    def __init__(self, language: str, rng: np.random.Generator) -> None:
        self.words = np.array(vocabulary(language, rng), dtype=object)
        shares = 1 / np.arange(1, len(self.words) + 1) ** 0.9
        self.ends: NDArray[np.float64] = np.cumsum(shares / shares.sum())
        self.stop = {"en": ". ", "zh": "\u3002", "th": " ", "my": "\u104b "}[language]
        mean = float(
            sum(
                len(word.encode()) * share
                for word, share in zip(
                    self.words, np.diff(self.ends, prepend=0), strict=True
                )
            )
        )
        self.bytes_a_word = mean + len(self.stop.encode()) / 12

    def draw(self, size: int, rng: np.random.Generator) -> str:
        """A text of about so many bytes, in sentences of twelve words."""
        count = max(1, round(size / self.bytes_a_word))
        picked = self.words[np.searchsorted(self.ends, rng.random(count))]
        return (
            "".join(
                self.stop.join(
                    "".join(picked[start : start + 12]).strip()
                    for start in range(0, count, 12)
                )
            )
            + self.stop.strip()
        )


def make_run(
    folder: Path, samples: int, sizes: tuple[int, int] = TEXT_BYTES, seed: int = 17
) -> Run:
    """The run of the corpus.

    Args:
        folder: the run's folder.
        samples: number of samples.
        sizes: least and most bytes of a sample's question and answer together.
        seed: seeds the generator.
    """
    rng = np.random.default_rng(seed)
    texts = {language: Texts(language, rng) for language in dict.fromkeys(LANGUAGES)}
    for language, source in texts.items():
        data = source.draw(50_000, rng).encode()
        print(
            f"  deflate shortens a text of {language} alone to"
            f" {len(zlib.compress(data, 6)) / len(data):.0%}",
            flush=True,
        )
    tally = TaskTally([SCORER], ["language", "subject"])
    with RunWriter(folder) as writer:
        for index in range(samples):
            record = make_record(index, samples, sizes, texts, rng)
            writer.add(index, record)
            tally.add(record)
        metrics = (MetricSpec("accuracy", "accuracy", SCORER),)
        task = {
            **tally.result(TASK, "1", metrics).as_dict(),
            "description": "Made-up texts in four languages.",
            "definition": {},
            "content_hash": "",
            "scorers": [{"name": SCORER, "kind": SCORER, "options": {}}],
            "slice_keys": ["language", "subject"],
            "metric_specs": [
                {
                    "label": "accuracy",
                    "kind": "accuracy",
                    "scorer": SCORER,
                    "options": {},
                }
            ],
        }
        usage = {
            "asked": samples,
            "sent": samples,
            "stored": 0,
            "answers": {"input_tokens": 1, "output_tokens": 1},
        }
        writer.finish(
            {
                "schema": SCHEMA_VERSION,
                "evalwright": "0",
                "id": folder.name,
                "identity": folder.name,
                "started": "2026-01-01T00:00:00+00:00",
                "seconds": 1.0,
                "model": {"name": "made/up"},
                "roles": {},
                "configuration": {},
                "environment": {},
                "usage": usage,
                "tasks": [task],
            }
        )
    return open_run(folder)


def make_record(
    index: int,
    samples: int,
    sizes: tuple[int, int],
    texts: dict[str, Texts],
    rng: np.random.Generator,
) -> SampleRecord:
    """One answered and scored sample."""
    language = LANGUAGES[index % len(LANGUAGES)]
    source = texts[language]
    size = rng.uniform(*sizes)
    question_size = size * rng.uniform(0.1, 0.5)
    question = source.draw(int(question_size), rng)
    answer = source.draw(int(size - question_size), rng)
    if index == samples // 2:
        answer += f" {NEEDLE}"
    right = float(rng.random() < 0.6)
    name = hashlib.blake2b(str(index).encode(), digest_size=6).hexdigest()
    metadata = {
        "language": language,
        "subject": f"subject {int(rng.integers(57))}",
        "year": int(rng.integers(1950, 2026)),
    }
    sample = Sample(
        id=f"{language}-{name}",
        input=question,
        targets=(source.draw(20, rng),),
        metadata=metadata,
    )
    prompt = (
        Message("system", "Answer the question in a few sentences."),
        Message("user", f"Question: {question}\nAnswer:"),
    )
    usage = Usage(
        input_tokens=int(question_size / 4),
        output_tokens=int((size - question_size) / 4),
    )
    response = Response(
        answer,
        finish_reason="stop",
        usage=usage,
        latency=round(float(rng.gamma(3, 0.7)), 3),
        cost=round(float(rng.gamma(2, 1e-4)), 7),
    )
    explanation = (
        "the answer holds the target"
        if right
        else f"'{answer[:40]}' is none of the targets"
    )
    score = Score(right, "correct" if right else "incorrect", explanation)
    return SampleRecord(
        TASK,
        index,
        0,
        sample,
        Answer(text=answer, prompt=prompt, responses=(response,)),
        {SCORER: score},
    )


# -- the browser -----------------------------------------------------------------------

DATA = """
(async () => {
  const data = window.explorerData;
  const run = await data.run('0');
  const median = (times) => times.sort((a, b) => a - b)[times.length >> 1];
  const timed = (work) => {
    const from = performance.now();
    work();
    return performance.now() - from;
  };
  const filters = [
    {categories: {language: ['th']}, numbers: {}},
    {categories: {label: ['incorrect'], subject: ['subject 7']}, numbers: {}},
    {categories: {}, numbers: {latency: [1, 2]}},
    {categories: {language: ['zh']}, numbers: {year: [1980, 1990], score: [0, 0]}},
  ];
  const filter = [], count = [], sort = [];
  for (let i = 0; i < 5; i++) for (const one of filters) {
    let places;
    filter.push(timed(() => { places = run.filter(one); }));
    count.push(timed(() => {
      for (const column of run.columns) {
        if (column.kind === 'category') run.counts(column.name, places);
      }
    }));
    const everything = {categories: {}, numbers: {}};
    sort.push(timed(() => run.sort(run.filter(everything), 'latency', i % 2 > 0)));
  }
  const all = run.filter({categories: {}, numbers: {}});
  const search = async (query) => {
    const from = performance.now();
    let first = null, hits = 0;
    const collect = (matches) => {
      hits += matches.length;
      if (matches.length && first === null) first = performance.now() - from;
    };
    await run.search(query, all, collect, new AbortController().signal);
    return {query, first, whole: performance.now() - from, hits};
  };
  const words = [
    (await run.sample(0)).answer.split(' ')[3],
    (await run.sample(1)).answer.slice(5, 7),
    (await run.sample(3)).answer.slice(10, 14),
  ];
  const searches = [];
  for (const word of [...words, QUERY, words[0]]) searches.push(await search(word));
  const opened = [];
  for (const place of [5, 50000, 99999, 70001, 30003]) if (place < run.size) {
    const from = performance.now(); await run.sample(place); opened.push(performance.now() - from);
  }
  return JSON.stringify({
    size: run.size,
    filter: median(filter),
    slowest: Math.max(...filter),
    count: median(count),
    sort: median(sort),
    searches,
    opened: median(opened),
  });
})()
"""

SCROLL = """
(async () => {
  const isLong = (node) => node.scrollHeight > 100 * node.clientHeight && node.clientHeight > 100;
  const box = [...document.querySelectorAll('*')].filter(isLong).pop();
  if (!box) return JSON.stringify(null);
  let frames = 0, blank = 0, longest = 0, last = performance.now();
  const height = box.scrollHeight;
  for (let step = 0; step < 300; step++) {
    // Sixty rows a frame, and every fiftieth frame a leap to anywhere.
    const leap = (height * ((step * 7919) % 1000)) / 1000;
    box.scrollTop = step % 50 === 49 ? leap : box.scrollTop + 2000;
    await new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)));
    const now = performance.now();
    longest = Math.max(longest, now - last); last = now;
    frames++;
    const area = box.getBoundingClientRect();
    const x = area.left + area.width / 2;
    const y = area.top + area.height / 2;
    const middle = document.elementFromPoint(x, y);
    const inside = middle && box.contains(middle) && middle !== box;
    if (!inside || !middle.textContent.trim() || middle.textContent.length > 5000) blank++;
  }
  return JSON.stringify({frames, blank, longest});
})()
"""


CLICKS = """
(async () => {
  const frame = () => new Promise((go) => requestAnimationFrame(go));
  for (const one of document.querySelectorAll('details.facet')) one.open = true;
  await new Promise((go) => setTimeout(go, 500));
  const grid = document.querySelector('[role=grid]');
  const rows = () => grid.getAttribute('aria-rowcount');
  const took = {names: [], numbers: []};
  const timed = async (kind, act) => {
    const before = rows(), from = performance.now();
    act();
    while (rows() === before && performance.now() - from < 5000) await frame();
    await frame();
    if (rows() !== before) took[kind].push(performance.now() - from);
    await frame();
  };
  const firstBoxes = (facet) => [...facet.querySelectorAll('input[type=checkbox]')].slice(0, 3);
  const names = [...document.querySelectorAll('details.facet')].flatMap(firstBoxes);
  for (const box of names) {
    for (let turn = 0; turn < 2; turn++) await timed('names', () => box.click());
  }
  const placeholder = (input) => Number(input.placeholder.replaceAll(',', ''));
  for (const end of document.querySelectorAll('.facet-ends input')) {
    for (const middle of [true, false]) {
      await timed('numbers', () => {
        const ends = end.closest('.facet-ends').querySelectorAll('input');
        const extremes = [...ends].map(placeholder);
        end.value = middle ? String((extremes[0] + extremes[1]) / 2) : '';
        end.dispatchEvent(new Event('change', {bubbles: true}));
      });
    }
  }
  const summary = (times) => {
    times.sort((a, b) => a - b);
    const quantile = (share) => Math.round(times[Math.floor(share * (times.length - 1))]);
    return [times.length, ...[0, 0.5, 1].map(quantile)];
  };
  const count = names.length * 2 + took.numbers.length;
  return JSON.stringify([count, summary(took.names), summary(took.numbers)]);
})()
"""
"""Filters of names and of numbers, set and taken away with all facets open, until the list is
drawn: how many, fastest, median, slowest (ms).
"""


async def ask(tab: Tab, expression: str) -> Any:
    """What a promise of the page comes to."""
    reply = await tab.send(
        "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
    )
    assert "exceptionDetails" not in reply, reply
    return json.loads(reply["result"]["value"])


async def page_seconds(tab: Tab) -> float:
    """Processor time of the page's thread so far: what waits for a busy machine is not in it."""
    metrics = (await tab.send("Performance.getMetrics"))["metrics"]
    return float(
        next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")
    )


async def measure(file: Path) -> dict[str, Any]:
    """Open the file as a person would, and time what they do."""
    return await measure_page(file.resolve().as_uri(), "explorer", offline=True)


async def measure_page(address: str, name: str, *, offline: bool) -> dict[str, Any]:
    """Open a page of one run, and time what people do there.

    Args:
        address: the page's address.
        name: the run's name.
        offline: whether the network is off.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        async with open_tab(Path(profile)) as tab:
            for domain in ("Page", "Network", "Runtime", "Log"):
                await tab.send(f"{domain}.enable")
            if offline:
                no_network = {
                    "offline": True,
                    "latency": 0,
                    "downloadThroughput": 0,
                    "uploadThroughput": 0,
                }
                await tab.send("Network.emulateNetworkConditions", **no_network)
            await tab.send(
                "Emulation.setDeviceMetricsOverride",
                width=1440,
                height=900,
                deviceScaleFactor=1,
                mobile=False,
            )
            began = time.monotonic()
            await tab.send("Page.navigate", url=f"{address}#/run/{name}/samples")
            paint = None
            while paint is None:
                await asyncio.sleep(0.02)
                paint = await tab.evaluate(
                    "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
                    " ?? null"
                )
                assert time.monotonic() - began < 120, "nothing was painted"
            # The shell is not enough: a row of the table counts.
            rows = await ask(
                tab,
                """(async () => {
              const pause = () => new Promise((go) => setTimeout(go, 5));
              while (!window.explorerData) await pause();
              await window.explorerData.run('0'); return JSON.stringify(performance.now()); })()""",
            )
            timings = {"first paint": paint, "columns there": rows}
            timings |= await ask(tab, DATA.replace("QUERY", json.dumps(NEEDLE)))
            timings["read to the end"] = await tab.evaluate(
                "performance.timing.domContentLoadedEventEnd -"
                " performance.timing.navigationStart"
            )
            timings["scroll"] = await ask(tab, SCROLL)
            await tab.send("Performance.enable", timeDomain="threadTicks")
            before = await page_seconds(tab)
            timings["clicks"] = await ask(tab, CLICKS)
            timings["click"] = (
                1000 * (await page_seconds(tab) - before) / max(1, timings["clicks"][0])
            )
            timings["console"] = [
                event
                for event in tab.events
                if event[0]
                in (
                    "Log.entryAdded",
                    "Runtime.exceptionThrown",
                    "Runtime.consoleAPICalled",
                )
            ]
            timings["heap"] = await tab.evaluate(
                "performance.memory.usedJSHeapSize / 1e6"
            )
            return timings


@contextmanager
def serving(run_folder: Path, home: Path) -> Iterator[tuple[int, str]]:
    """The process id and address of `evalwright view`, which has just been started."""
    environment = {
        **os.environ,
        "EVALWRIGHT_HOME": str(home),
        "XDG_CONFIG_HOME": str(home / "config"),
    }
    command = [sys.executable, "-m", "evalwright", "view", str(run_folder)]
    with subprocess.Popen(
        [*command, "--no-browser"], stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        try:
            yield process.pid, process.stdout.readline().strip()
        finally:
            process.send_signal(signal.SIGINT)
            process.wait()


def usage_of(process: int) -> tuple[float, float]:
    """Processor seconds of a process so far, and its peak memory in MiB."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    status = Path(f"/proc/{process}/status").read_text().splitlines()
    peak = next(line for line in status if line.startswith("VmHWM"))
    return ticks / os.sysconf("SC_CLK_TCK"), int(peak.split()[1]) / 1024


def read_part(address: str, key: str) -> Any:
    """A part of the page that is only JSON."""
    with urllib.request.urlopen(f"{address}part/{key}") as reply:
        return json.loads(zlib.decompress(reply.read(), -15))


def measure_served(run: Run, samples: int, times: int, kept_home: Path | None) -> None:
    """Open a run by `evalwright view` for the first time, and then again; print.

    Args:
        run: the run.
        samples: how many samples it has.
        times: how often it is opened again.
        kept_home: where an earlier call left its index: then there is no first time.
    """
    run_folder = run.folder
    with tempfile.TemporaryDirectory() as temporary:
        home = kept_home or Path(temporary)
        openings: list[dict[str, Any]] = []
        times_s = ("address after s", "all samples after s", "CPU s")
        table = Table(["opening", *times_s, "peak MiB"])
        for opening in range(1 if kept_home else 0, 1 + times):
            began = time.monotonic()
            with serving(run_folder, home) as (process, address):
                printed = time.monotonic() - began
                while read_part(address, "run/0/index")["size"] < samples:
                    time.sleep(0.02)
                ready = time.monotonic() - began
                cpu, peak = usage_of(process)
                table.add(
                    opening + 1,
                    f"{printed:.2f}",
                    f"{ready:.2f}",
                    f"{cpu:.2f}",
                    f"{peak:.0f}",
                )
                if opening == 0:
                    continue
                page = measure_page(address, run.name, offline=False)
                openings.append(asyncio.run(page))
                cpu, peak = usage_of(process)
                table.add("after the page", "", "", f"{cpu:.2f}", f"{peak:.0f}")
        raw = (run_folder / "samples.jsonl").stat().st_size
        kept = sum(file.stat().st_size for file in home.glob("scores/*.explorer"))
        if openings:
            print_openings(openings)
        print(f"Index: {kept / 1e6:,.1f} MB, {kept / raw:.1%} of {raw / 1e6:,.1f} MB")


def main() -> None:
    """Make what is missing, measure, print."""
    parser = option_parser(__doc__)
    parser.add_argument("--samples", type=int, default=100_000)
    parser.add_argument(
        "--folder",
        type=Path,
        help="Keep the run and the page here, and use them again.",
    )
    parser.add_argument(
        "--times", type=int, default=3, help="How often the page is opened."
    )
    parser.add_argument(
        "--text",
        type=int,
        nargs=2,
        default=TEXT_BYTES,
        metavar=("LEAST", "MOST"),
        help="Bytes of a question and its answer.",
    )
    parser.add_argument(
        "--served", action="store_true", help="Measure `evalwright view`."
    )
    parser.add_argument(
        "--home", type=Path, help="With --served: use the index that is kept here."
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        run_folder = folder / "explorer"
        page = folder / "explorer.html"
        run = (
            open_run(run_folder)
            if (run_folder / "run.json").exists()
            else make_run(run_folder, options.samples, tuple(options.text))
        )
        if options.served:
            measure_served(run, options.samples, options.times, options.home)
            return
        began = time.monotonic()
        write_page([run], page, title="explorer", progress=lambda words: None)
        raw = run.samples_file.stat().st_size
        size = page.stat().st_size
        print(
            f"  {options.samples:,} samples, {raw / 1e6:,.1f} MB of JSONL ->"
            f" {size / 1e6:,.1f} MB of page ({size / raw:.1%}), in"
            f" {time.monotonic() - began:.1f} s"
        )
        page.read_bytes()
        openings = [asyncio.run(measure(page)) for _ in range(options.times)]
        print_openings(openings)


STEPS = (
    "first paint",
    "columns there",
    "read to the end",
    "filter",
    "slowest",
    "count",
    "sort",
    "opened",
    "click",
)


def print_openings(openings: Sequence[dict[str, Any]]) -> None:
    """Print the medians of several openings of a page."""

    def median(figures: Iterable[float]) -> str:
        return f"{statistics.median(figures):,.1f}"

    table = Table(["step", "ms"])
    for name in STEPS:
        table.add(name, median(timings[name] for timings in openings))
    for number, search in enumerate(openings[0]["searches"]):
        of_search = [timings["searches"][number] for timings in openings]
        label = f"search {search['query']!r}, {search['hits']:,} hits"
        table.add(f"{label}: first", median(hits["first"] or 0 for hits in of_search))
        table.add(f"{label}: all", median(hits["whole"] for hits in of_search))
    print(
        "\nFilters set on the page, until the list shows it: of names and of numbers, how many,"
        " fastest, median, slowest ms ('click' is processor time of each):"
    )
    print([timings["clicks"][1:] for timings in openings])
    print(
        f"Scrolling {[timings['scroll'] for timings in openings]}, console"
        f" {openings[0]['console']}, heap {openings[0]['heap']:,.0f} MB"
    )


if __name__ == "__main__":
    main()
