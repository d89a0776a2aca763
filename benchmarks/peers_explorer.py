"""Looking into runs: the explorer beside `inspect view`, on the same logs of inspect_ai.

    python -m benchmarks peers_explorer [--out FOLDER] [--samples 10000]

inspect_ai evaluates two scripted models on questions with options, summaries with two scores and
questions on pictures (384 samples), and one model on 10,000 sums. Evalwright imports the logs. Both
viewers are then driven in headless Chromium, each time with a new profile: how many clicks or keys
a question takes, and how long until its answer is on the screen (median of three). Pictures of each
step at 1,440 and 390 pixels, light and dark, are written to FOLDER. The table is in
docs/reference/explorer-measured.md.
"""

from __future__ import annotations

import asyncio
import base64
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from measuring import Table, add_numbers, free_port, option_parser, served

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import peers
from support.browser import Tab, open_tab

STEP_TIMEOUT_S = 60
TASKS = Path(__file__).resolve().parent / "peer_tasks" / "viewed.py"
DESKTOP = (1440, 900)
PHONE = (390, 844)

# -- the logs and the servers ----------------------------------------------------------


def make_logs(folder: Path, samples: int) -> None:
    """Evaluate with inspect_ai, and import its logs."""
    peers.INSPECT.ensure()
    command = [str(peers.INSPECT.python), str(TASKS), str(samples)]
    run_quietly(command, folder)
    for logs in ("logs", "many"):
        run_quietly(
            [*ours(), "import", "inspect", logs, "--out", f"runs-{logs}"], folder
        )


def ours() -> list[str]:
    """The command of this checkout."""
    return [sys.executable, "-m", "evalwright"]


def run_quietly(command: list[str], folder: Path) -> None:
    """Run a command to its end; its output is shown where it fails."""
    completed = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False
    )
    if completed.returncode:
        raise RuntimeError(f"{command} failed:\n{completed.stdout}{completed.stderr}")


def inspect_server(logs: str, port: int) -> list[str]:
    program = str(peers.INSPECT.bin / "inspect")
    return [program, "view", "--log-dir", logs, "--port", str(port)]


def our_server(logs: str, port: int) -> list[str]:
    runs = f"runs-{logs}"
    return [*ours(), "view", "--out", runs, "--port", str(port), "--no-browser"]


# -- a person in the browser -----------------------------------------------------------


@dataclass
class Person:
    """Clicks and types in a tab, and takes the time until what it waits for is there.

    Attributes:
        viewer: its name.
        out: where pictures are written.
        n_many: samples of the larger log.
        actions: clicks, keys and typed texts so far.
        seconds: how long each named step took.
    """

    tab: Tab
    viewer: str
    out: Path
    n_many: int
    actions: int = 0
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def searched(self) -> int:
        """The sum that is searched for, near the end of the larger log."""
        return self.n_many * 9876 // 10_000

    async def wait(self, condition: str) -> None:
        began = time.monotonic()
        while not await self.tab.evaluate(f"!!({condition})"):
            await asyncio.sleep(0.02)
            if time.monotonic() - began > STEP_TIMEOUT_S:
                text = await self.tab.evaluate("document.body?.innerText.slice(0, 600)")
                raise RuntimeError(f"{self.viewer}: {condition} never held: {text}")

    async def click(self, element: str) -> None:
        """Click the middle of the element of a JavaScript expression, once it is there."""
        await self.wait(element)
        x, y = await self.tab.evaluate(
            f"(box => [box.x + box.width / 2, box.y + box.height / 2])"
            f"(({element}).getBoundingClientRect())"
        )
        for kind in ("mousePressed", "mouseReleased"):
            await self.tab.send(
                "Input.dispatchMouseEvent",
                type=kind,
                x=x,
                y=y,
                button="left",
                clickCount=1,
            )
        self.actions += 1

    async def key(self, key: str, code: int = 0, text: str = "") -> None:
        await self.tab.press(
            key, code or ord(key.upper()), text or (key if len(key) == 1 else "")
        )
        self.actions += 1

    async def type(self, words: str) -> None:
        for sign in words:
            await self.tab.send(
                "Input.dispatchKeyEvent", type="keyDown", text=sign, key=sign
            )
            await self.tab.send("Input.dispatchKeyEvent", type="keyUp", key=sign)
        self.actions += 1

    async def timed(self, step: str, action: Awaitable[object], condition: str) -> None:
        """Do something, wait for the condition, take the time, and a picture."""
        began = time.monotonic()
        await action
        await self.wait(condition)
        self.seconds[step] = time.monotonic() - began
        await asyncio.sleep(0.6)
        await self.picture(step)

    async def picture(self, name: str) -> None:
        shot = await self.tab.send("Page.captureScreenshot", format="png")
        file = self.out / f"{self.viewer}-{name.replace(' ', '-')}.png"
        file.write_bytes(base64.b64decode(shot["data"]))

    async def size(self, width: int, height: int) -> None:
        await self.tab.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        await asyncio.sleep(0.6)

    async def theme(self, name: str) -> None:
        feature = {"name": "prefers-color-scheme", "value": name}
        await self.tab.send("Emulation.setEmulatedMedia", features=[feature])
        await asyncio.sleep(0.6)

    async def cut_texts(self) -> int:
        """How many texts end beyond the right edge of the window."""
        return int(await self.tab.evaluate(CUT_TEXTS))


TEXT = "(document.body?.innerText ?? '')"
CUT_TEXTS = """(() => {
  let cut = 0;
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const range = document.createRange();
    range.selectNodeContents(texts.currentNode);
    const box = range.getBoundingClientRect();
    const shown = texts.currentNode.data.trim() && box.width > 1 && box.height > 1;
    if (shown && box.top < innerHeight && box.bottom > 0 && box.right > innerWidth + 1) cut++;
  }
  return cut;
})()"""
LOADED_PICTURE = (
    "[...document.images].some(image => image.complete && image.naturalWidth === 48)"
)


def row(words: str) -> str:
    """The first row of a table or list of inspect's viewer that has these words."""
    return (
        "[...document.querySelectorAll('[role=row]')]"
        f".find(row => /{words}/.test(row.innerText))"
    )


def link(words: str) -> str:
    """The first link or button of ours with these words."""
    return (
        "[...document.querySelectorAll('a, button')]"
        f".find(link => /{words}/.test(link.innerText))"
    )


def samples_of(task: str) -> str:
    """The link to the samples of the newest run of a task, in our list of runs."""
    return (
        f"[...document.querySelectorAll('.home-runs > li')].find(row => /{task}/"
        ".test(row.innerText))?.querySelector('.small a')"
    )


def choose(name: str) -> str:
    return f"document.querySelector('[aria-label=\"Choose {name}\"]')"


Steps = Callable[[Person, str], Awaitable[None]]


async def inspect_steps(person: Person, address: str) -> None:
    tab = person.tab
    home = f"/capitals/.test({TEXT}) && /mockllm.weak/.test({TEXT})"
    await person.timed("home", tab.send("Page.navigate", url=address), home)
    person.actions = 0
    await person.timed(
        "list", person.click(row("summaries")), f"/sum-000/.test({TEXT})"
    )
    reason = f"/words are shared/.test({TEXT})"
    await person.timed("sample", person.click(row("sum-001")), reason)
    await person.timed("next", person.key("ArrowRight", 39), f"/sum-002 /.test({TEXT})")
    await person.size(*PHONE)
    await person.picture("sample-phone")
    person.seconds["cut on a phone: sample"] = await person.cut_texts()
    await tab.evaluate("history.go(-2)")
    await person.wait(f"/sum-003/.test({TEXT})")
    await asyncio.sleep(0.6)
    await person.picture("list-phone")
    person.seconds["cut on a phone: list"] = await person.cut_texts()
    await tab.send("Page.navigate", url=address)
    await person.wait(home)
    await asyncio.sleep(0.6)
    await person.picture("home-phone")
    person.seconds["cut on a phone: home"] = await person.cut_texts()
    await person.size(*DESKTOP)
    await person.click(row("capitals"))
    await person.wait(f"/cap-003/.test({TEXT})")
    await person.click("document.querySelector('.cm-content')")
    filtered = f"/10 . 120 Samples/.test({TEXT})"
    await person.timed("filter", person.type('input_contains("Peru")'), filtered)
    await tab.send("Page.navigate", url="about:blank")
    await tab.send("Page.navigate", url=address)
    await person.click(row("pictures"))
    await person.timed("picture", person.click(row("pic-01")), LOADED_PICTURE)
    await person.theme("dark")
    await person.picture("picture-dark")


async def our_steps(person: Person, address: str) -> None:
    tab = person.tab
    home = f"/capitals/.test({TEXT}) && /mockllm.weak/.test({TEXT})"
    await person.timed("home", tab.send("Page.navigate", url=address), home)
    person.actions = 0
    samples = samples_of("summaries")
    await person.timed("list", person.click(samples), f"/sum-000/.test({TEXT})")
    first = "document.querySelectorAll('.table-rows .row .words a')[1]"
    await person.timed(
        "sample", person.click(first), f"/words are shared/.test({TEXT})"
    )
    shown = "/sum-002/.test(location.hash) && document.querySelector('.score')"
    await person.timed("next", person.key("j"), shown)
    await person.size(*PHONE)
    await person.picture("sample-phone")
    person.seconds["cut on a phone: sample"] = await person.cut_texts()
    await person.click(link("All samples"))
    await person.wait("document.querySelectorAll('.table-rows .row').length > 3")
    await asyncio.sleep(0.6)
    await person.picture("list-phone")
    person.seconds["cut on a phone: list"] = await person.cut_texts()
    await person.click(link("All runs"))
    await person.wait(home)
    await asyncio.sleep(0.6)
    await person.picture("home-phone")
    person.seconds["cut on a phone: home"] = await person.cut_texts()
    await person.size(*DESKTOP)
    await person.click(choose("mockllm-strong--capitals"))
    await person.click(choose("mockllm-weak--capitals"))
    compared = "document.querySelectorAll('.answer').length === 2"
    await person.timed("compare", person.click(link("^Compare$")), compared)
    await person.click(link("All runs"))
    await person.click(samples_of("capitals"))
    await person.wait(f"/cap-003/.test({TEXT})")
    await person.click("document.querySelector('.search')")
    filtered = f"/10 of 120 samples/.test({TEXT})"
    await person.timed("filter", person.type("Peru"), filtered)
    await person.click(link("^Search$"))
    await person.wait("document.activeElement.type === 'search'")
    everywhere = f"/\\d+ samples in 2 runs$/m.test({TEXT})"
    await person.timed("search of all runs", person.type("another city"), everywhere)
    await person.click(link("All runs"))
    await person.click(samples_of("pictures"))
    picture = "document.querySelectorAll('.table-rows .row .words a')[1]"
    await person.timed("picture", person.click(picture), LOADED_PICTURE)
    await person.theme("dark")
    await person.picture("picture-dark")


async def inspect_keys(person: Person, address: str) -> None:
    """From the list of runs to the second sample of the first run, with keys alone."""
    await person.tab.send("Page.navigate", url=address)
    await person.wait(f"/capitals/.test({TEXT})")
    await asyncio.sleep(1)
    for _ in range(3):
        await person.key("ArrowDown", 40)
        await person.key("Enter", 13, "\r")
        await asyncio.sleep(2)
        if await person.tab.evaluate("/sample/.test(location.hash)"):
            break
    person.seconds["with keys: presses to a sample"] = person.actions
    await person.wait("/sample/.test(location.hash)")


async def our_keys(person: Person, address: str) -> None:
    await person.tab.send("Page.navigate", url=address)
    await person.wait(f"/capitals/.test({TEXT})")
    await person.key("j")
    await person.key("s")
    await person.wait("document.querySelectorAll('.table-rows .row').length > 1")
    await person.key("j")
    await person.key("Enter", 13, "\r")
    await person.wait("/sample/.test(location.hash)")
    person.seconds["with keys: presses to a sample"] = person.actions


async def inspect_many(person: Person, address: str) -> None:
    # A folder with one log opens it without a click.
    shown = f"/add-00000/.test({TEXT})"
    opening = person.tab.send("Page.navigate", url=address)
    await person.timed("many: list", opening, shown)
    await person.click("document.querySelector('.cm-content')")
    filtered = f"/\\d . {person.n_many} (rows|Samples)/i.test({TEXT})"
    words = f'input_contains("{person.searched} +")'
    await person.timed("many: filter", person.type(words), filtered)
    opened = f"/{person.searched}/.test({TEXT}) && /sample/.test(location.hash)"
    click = person.click(row(str(person.searched)))
    await person.timed("many: sample", click, opened)


async def open_first_samples(person: Person, address: str) -> None:
    await person.tab.send("Page.navigate", url=address)
    await person.click("document.querySelector('.home-runs .small a')")


async def our_many(person: Person, address: str) -> None:
    shown = f"/add-00000/.test({TEXT})"
    opening = open_first_samples(person, address)
    await person.timed("many: list", opening, shown)
    await person.click("document.querySelector('.search')")
    # Until the sample is on the screen; the rest is searched meanwhile.
    words = f"{person.searched} +"
    first_row = "document.querySelector('.table-rows .row')"
    filtered = f"{first_row}?.innerText.includes('{words}')"
    await person.timed("many: filter", person.type(f'"{words}"'), filtered)
    first = "document.querySelector('.table-rows .row .words a')"
    opened = "/sample/.test(location.hash) && document.querySelector('.score')"
    await person.timed("many: sample", person.click(first), opened)


# -- share -----------------------------------------------------------------------------


def share(folder: Path) -> None:
    """Print what each writes for somebody else, and whether it opens without a server."""
    inspect = str(peers.INSPECT.bin / "inspect")
    bundle = [inspect, "view", "bundle", "--log-dir", "logs", "--output-dir", "bundle"]
    page = [*ours(), "view", "--html", "seen.html", "--images"]
    page += [
        "--out",
        "runs-logs",
        *sorted(run.name for run in (folder / "runs-logs").iterdir()),
    ]
    columns = ("shared by", "seconds", "files", "MB", "opens by a double click")
    table = Table(columns)
    for name, command, opened, files in (
        ("inspect_ai", bundle, "bundle/index.html", "bundle"),
        ("evalwright", page, "seen.html", "seen.html"),
    ):
        began = time.monotonic()
        run_quietly(command, folder)
        seconds = time.monotonic() - began
        written = folder / files
        paths = [path for path in written.rglob("*") if path.is_file()] or [written]
        size = sum(path.stat().st_size for path in paths) / 1e6
        shows = asyncio.run(shows_runs((folder / opened).as_uri()))
        opens = "yes" if shows else "no"
        table.add(name, f"{seconds:.1f}", f"{len(paths)}", f"{size:.1f}", opens)


async def shows_runs(address: str) -> bool:
    """Whether a file shows the runs when a browser opens it from the disk."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        async with open_tab(Path(profile)) as tab:
            await tab.open(address)
            await asyncio.sleep(5)
            return bool(await tab.evaluate(f"/mockllm/.test({TEXT})"))


# -- all of it -------------------------------------------------------------------------


async def do_steps(
    steps: Steps, viewer: str, address: str, out: Path, n_many: int
) -> dict[str, float]:
    """One person with a new browser."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        async with open_tab(Path(profile)) as tab:
            await tab.send("Page.enable")
            person = Person(tab, viewer, out, n_many)
            await person.size(*DESKTOP)
            await steps(person, address)
            return person.seconds


VIEWERS: dict[
    str, tuple[Callable[[str, int], list[str]], tuple[Steps, Steps, Steps]]
] = {
    "inspect": (inspect_server, (inspect_steps, inspect_keys, inspect_many)),
    "ours": (our_server, (our_steps, our_keys, our_many)),
}


def measure(folder: Path, out: Path, n_many: int, repeats: int) -> None:
    """Print the median of each step of each viewer."""
    table = Table(["viewer", "step", "seconds"])
    for viewer, (server, (few, keys, many)) in VIEWERS.items():
        measured: list[dict[str, float]] = []
        for logs, all_steps in (("logs", (few, keys)), ("many", (many,))):
            port = free_port()
            url = f"http://127.0.0.1:{port}/"
            with served(server(logs, port), folder, url) as address:
                measured += [
                    asyncio.run(do_steps(steps, viewer, address, out, n_many))
                    for steps in all_steps
                    for _ in range(repeats)
                ]
        names = dict.fromkeys(name for timings in measured for name in timings)
        for name in names:
            values = [timings[name] for timings in measured if name in timings]
            table.add(viewer, name, f"{statistics.median(values):.2f}")


def main(words: Sequence[str] | None = None) -> int:
    """Make the logs, drive both viewers, print."""
    parser = option_parser(__doc__)
    parser.add_argument("--out", type=Path, default=Path("looking"))
    parser.add_argument(
        "--folder", type=Path, help="Keep the logs here, and use them again."
    )
    add_numbers(parser, samples=10_000, repeats=3)
    options = parser.parse_args(words)
    options.out.mkdir(parents=True, exist_ok=True)
    temporary = tempfile.mkdtemp()
    folder = options.folder or Path(temporary)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        if not (folder / "runs-many").exists():
            make_logs(folder, options.samples)
        measure(folder, options.out, options.samples, options.repeats)
        share(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
