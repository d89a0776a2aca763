/** A search through the samples of all runs, the newest run first. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Catalog, Data, RunData, RunInfo } from "../data/api";
import { links, type PageProps, runAddress } from "../pages";
import { useKeys } from "../shell/keys";
import { tone } from "../sample/words";
import { Line } from "../text/text";
import { areShares } from "./shares";
import { categoryOf, counted, count, number, numberOf } from "./values";

/** Milliseconds without a key after which the search begins. */
const PAUSE_MS = 250;
/** Milliseconds between two looks at a run that a server is reading. */
const LOOK_MS = 100;
/** Milliseconds without a new sample after which a run counts as unreadable. */
const STALLED_MS = 30_000;
/** Samples of a run that are listed; the list of its samples has all. */
const LISTED = 5;

interface RunHits {
  info: RunInfo;
  run: RunData;
  indices: number[];
}

interface Progress {
  hits: RunHits[];
  runsRead: number;
  unread: string[];
  isDone: boolean;
}

const NOTHING_READ: Progress = { hits: [], runsRead: 0, unread: [], isDone: false };

export function SearchPage({ data, query, go }: PageProps) {
  const words = query.get("q") ?? "";
  const [typed, setTyped] = useState(words);
  const box = useRef<HTMLInputElement>(null);
  const progress = useSearchOfAll(data, words);
  useEffect(() => {
    if (typed === words) return;
    const timer = setTimeout(() => go(links.search(typed), true), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  useEffect(() => box.current?.focus(), []);
  useKeys([{ keys: ["/"], does: "Search", run: () => box.current?.focus() }]);
  const runCount = data.catalog.runs.length;
  return (
    <div class="page views search-page">
      <header>
        <h1>Search all samples</h1>
      </header>
      <div class="home-tools">
        <input
          ref={box}
          class="search"
          type="search"
          value={typed}
          placeholder="Questions, answers, reasons, ids"
          aria-label="Search the samples of all runs"
          autocomplete="off"
          spellcheck={false}
          onInput={(event) => setTyped(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== "Escape") return;
            event.preventDefault();
            if (typed === "") event.currentTarget.blur();
            else setTyped("");
          }}
        />
        <p class="quiet" role="status">
          {statusOf(words, progress, runCount)}
        </p>
      </div>
      {progress.unread.length > 0 && (
        <p class="note warn">
          Not searched, as they cannot be read: <Line value={progress.unread.join(", ")} />
        </p>
      )}
      {words.trim() !== "" &&
        progress.hits.map((hits) => (
          <HitsOfRun key={hits.info.key} catalog={data.catalog} hits={hits} words={words} />
        ))}
    </div>
  );
}

function statusOf(words: string, progress: Progress, runCount: number): string {
  if (words.trim() === "") return `Words that must all occur, in any of ${counted(runCount, "run")}.`;
  const hitCount = progress.hits.reduce((sum, { indices }) => sum + indices.length, 0);
  const samples = `${counted(hitCount, "sample")} in ${counted(progress.hits.length, "run")}`;
  return progress.isDone
    ? samples
    : `${samples}; searched ${count(progress.runsRead)} of ${counted(runCount, "run")}`;
}

function HitsOfRun(props: { catalog: Catalog; hits: RunHits; words: string }) {
  const { info, run, indices } = props.hits;
  const [, redraw] = useState(0);
  useEffect(() => run.onPreviews(() => redraw((n) => n + 1)), [run]);
  const address = runAddress(props.catalog, info);
  const columns = useMemo(() => new Map(run.columns.map((column) => [column.name, column])), [run]);
  return (
    <section>
      <h2>
        <a href={links.run(address)}>
          <Line value={info.label || info.name} />
        </a>{" "}
        <span class="small">
          <Line value={info.name} />
        </span>
      </h2>
      <ul class="search-hits">
        {indices.slice(0, LISTED).map((index) => {
          const task = categoryOf(columns.get("task"), index) ?? info.tasks[0]?.name ?? "";
          const score = numberOf(columns.get("score"), index);
          const outcome = categoryOf(columns.get("outcome"), index);
          const failure = categoryOf(columns.get("failure"), index);
          const share = areShares(run, categoryOf(columns.get("scorer"), index) ?? "");
          const preview = run.preview(index);
          return (
            <li key={index}>
              <span class="search-verdict">
                <span class={`dot ${tone(outcome, score, failure, share)}`} aria-hidden="true" />{" "}
                <Line value={categoryOf(columns.get("label"), index) ?? outcome ?? "–"} />{" "}
                {score !== null && number(score)}
              </span>
              <a class="two" href={links.sample(address, task, run.id(index), run.draw(index), { q: props.words })}>
                <Line value={preview?.question || run.id(index)} />
              </a>
              <span class="two quiet">
                <Line value={preview?.answer ?? ""} />
              </span>
            </li>
          );
        })}
      </ul>
      <p>
        <a href={links.samples(address, { q: props.words })}>
          {indices.length > LISTED ? `All ${counted(indices.length, "sample")}` : "In the list of samples"}
        </a>
      </p>
    </section>
  );
}

/** Reads one run after another: each takes memory, and the first hits are seen at once. */
function useSearchOfAll(data: Data, words: string): Progress {
  const [progress, setProgress] = useState(NOTHING_READ);
  useEffect(() => {
    setProgress(NOTHING_READ);
    if (words.trim() === "") return;
    const stop = new AbortController();
    const newestFirst = [...data.catalog.runs].sort((a, b) => (a.started < b.started ? 1 : -1));
    void searchRuns(data, newestFirst, words, stop.signal, setProgress);
    return () => stop.abort();
  }, [data, words]);
  return progress;
}

/**
 * The samples of a run, all of them: a server reads a finished run when it is first looked at, and
 * has its first samples before the last ones.
 */
async function readWhole(data: Data, info: RunInfo, stop: AbortSignal): Promise<RunData> {
  let size = -1;
  let grewAt = performance.now();
  for (;;) {
    const run = await data.run(info.key);
    const now = data.catalog.runs.find(({ key }) => key === info.key) ?? info;
    if (stop.aborted || now.state !== "finished" || run.size >= now.records) return run;
    if (run.size > size) {
      size = run.size;
      grewAt = performance.now();
    }
    if (performance.now() - grewAt > STALLED_MS) throw new Error("its samples are not all there");
    await new Promise((resume) => setTimeout(resume, LOOK_MS));
  }
}

async function searchRuns(
  data: Data,
  runs: RunInfo[],
  words: string,
  stop: AbortSignal,
  report: (progress: Progress) => void,
): Promise<void> {
  let progress = NOTHING_READ;
  for (const info of runs) {
    const indices: number[] = [];
    let { hits, unread } = progress;
    try {
      const run = await readWhole(data, info, stop);
      if (stop.aborted) return;
      const everyIndex = Int32Array.from({ length: run.size }, (_, index) => index);
      await run.search(words, everyIndex, (matches) => indices.push(...matches), stop);
      if (indices.length > 0) hits = [...hits, { info, run, indices }];
    } catch {
      unread = [...unread, info.name];
    }
    if (stop.aborted) return;
    progress = { hits, unread, runsRead: progress.runsRead + 1, isDone: false };
    report(progress);
  }
  report({ ...progress, isDone: true });
}
