/** All runs of a folder, newest first: searched, and opened one by one, as a pair or as a board. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Catalog, RunInfo } from "../data/api";
import type { PageProps } from "../pages";
import { links, runAddress } from "../pages";
import { useKeys } from "../shell/keys";
import { Line } from "../text/text";
import * as numbers from "./numbers";
import {
  Choice,
  EmptyNote,
  recordedText,
  RunLink,
  StateLine,
  TaskScores,
  useCatalog,
  useFirst,
} from "./parts";

/** As many as the server makes a board of. */
const MOST_CHOSEN = 200;

export function HomePage({ data, query, go }: PageProps) {
  const catalog = useCatalog(data);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const box = useRef<HTMLInputElement>(null);
  const words = query.get("q") ?? "";
  const order = orderOf(query.get("sort"));
  const runs = useMemo(() => orderRuns(catalog.runs, order), [catalog, order]);
  const matching = useMemo(() => matchingRuns(runs, words), [runs, words]);
  const [listed, showMore] = useFirst(matching, "runs");
  const [marked, mark] = useState("");
  const list = useRef<HTMLUListElement>(null);
  const change = (name: "q" | "sort", text: string) => {
    const next = new URLSearchParams(query);
    if (text) next.set(name, text);
    else next.delete(name);
    go(next.size > 0 ? `#/?${next}` : links.first(), true);
  };
  const toggle = (key: string) => {
    const next = new Set(chosen);
    if (!next.delete(key)) next.add(key);
    setChosen(next);
  };
  const at = listed.findIndex((run) => run.key === marked);
  const move = (by: number) => {
    const next = listed[Math.max(0, Math.min(listed.length - 1, at + by))];
    if (next) mark(next.key);
  };
  useEffect(() => {
    list.current?.children[at]?.scrollIntoView({ block: "nearest" });
  }, [at]);
  useKeys([
    { keys: ["/"], does: "Search runs", run: () => box.current?.focus() },
    { keys: ["j", "ArrowDown"], does: "Next run", run: () => move(1) },
    { keys: ["k", "ArrowUp"], does: "Previous run", run: () => move(-1) },
    {
      keys: ["Enter", "o"],
      does: "Open the marked run",
      run: () => at >= 0 && go(links.run(runAddress(catalog, listed[at]!))),
    },
    {
      keys: ["s"],
      does: "Samples of the marked run",
      run: () => at >= 0 && go(links.samples(runAddress(catalog, listed[at]!))),
    },
    { keys: ["x"], does: "Choose the marked run, or not", run: () => at >= 0 && toggle(marked) },
    { keys: ["v"], does: "Compare the chosen runs", run: () => openChosen(catalog, chosen, go) },
  ]);
  const running = runs.filter((run) => run.state === "running").length;
  return (
    <div class="page views home-page">
      <header>
        <h1>
          <Line value={catalog.title} />
        </h1>
        <p class="lede">
          {numbers.counted(runs.length, "run")}, {ORDERS[order]}
          {running > 0 && (
            <>
              {" · "}
              <span class="how running" role="status">
                {running} running
              </span>
            </>
          )}
        </p>
      </header>
      <div class="home-tools">
        <input
          ref={box}
          class="search"
          type="search"
          value={words}
          placeholder="Search runs, models and tasks"
          aria-label="Search runs, models and tasks"
          autocomplete="off"
          spellcheck={false}
          onInput={(event) => change("q", event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Escape") event.currentTarget.blur();
          }}
        />
        <Choice
          label="Sort by"
          chosen={order}
          choose={(next) => change("sort", next === NEWEST ? "" : next)}
          options={Object.entries(ORDERS)}
        />
        <ChosenRuns catalog={catalog} chosen={chosen} clear={() => setChosen(new Set())} go={go} />
      </div>
      {matching.length === 0 ? (
        <EmptyNote>
          {runs.length === 0
            ? "There are no runs in this folder now."
            : "No run, model or task has these words."}{" "}
          {words && <a href={links.search(words)}>Search all samples for them</a>}
        </EmptyNote>
      ) : (
        <ul class="home-runs" aria-label="Runs" ref={list}>
          {listed.map((run) => (
            <HomeRow
              key={run.key}
              catalog={catalog}
              run={run}
              chosen={chosen.has(run.key)}
              marked={run.key === marked}
              toggle={() => toggle(run.key)}
            />
          ))}
        </ul>
      )}
      {showMore}
    </div>
  );
}

/** Two runs side by side, more as a board. */
function openChosen(catalog: Catalog, chosen: ReadonlySet<string>, go: PageProps["go"]): void {
  const runs = catalog.runs.filter((run) => chosen.has(run.key));
  const addresses = runs.map((run) => runAddress(catalog, run));
  const [first, second] = addresses;
  if (first === undefined || second === undefined || runs.length > MOST_CHOSEN) return;
  go(runs.length === 2 ? links.compare(first, second) : links.board(addresses));
}

/** What can be done with the chosen runs. */
function ChosenRuns(props: {
  catalog: Catalog;
  chosen: ReadonlySet<string>;
  clear(): void;
  go: PageProps["go"];
}) {
  const { catalog, go } = props;
  const runs = catalog.runs.filter((run) => props.chosen.has(run.key));
  const addresses = runs.map((run) => runAddress(catalog, run));
  const [first, second] = addresses;
  if (first === undefined)
    return <p class="quiet home-hint">Choose two runs to compare them, or more for a board.</p>;
  const tooMany = runs.length > MOST_CHOSEN;
  return (
    <p class="home-chosen" role="group" aria-label="Chosen runs">
      <span role="status">
        {numbers.counted(runs.length, "run")} chosen
        {tooMany && `; a board has at most ${MOST_CHOSEN}`}
      </span>
      {second === undefined && (
        <button type="button" onClick={() => go(links.run(first))}>
          Open
        </button>
      )}
      {second !== undefined && runs.length === 2 && (
        <button type="button" onClick={() => go(links.compare(first, second))}>
          Compare
        </button>
      )}
      {second !== undefined && (
        <button type="button" disabled={tooMany} onClick={() => go(links.board(addresses))}>
          Board
        </button>
      )}
      {second !== undefined && (
        <button
          type="button"
          onClick={() => go(links.plots(new URLSearchParams(addresses.map((run) => ["run", run]))))}
        >
          Plots
        </button>
      )}
      <button type="button" onClick={props.clear}>
        Clear
      </button>
    </p>
  );
}

function HomeRow(props: {
  catalog: Catalog;
  run: RunInfo;
  chosen: boolean;
  marked: boolean;
  toggle(): void;
}) {
  const { run } = props;
  const classes = [props.chosen ? "chosen" : "", props.marked ? "marked" : ""].join(" ").trim();
  const problem = run.facts.find(([name]) => name === "Cannot be read")?.[1];
  return (
    <li class={classes || undefined} aria-current={props.marked ? "true" : undefined}>
      <input
        type="checkbox"
        checked={props.chosen}
        onChange={props.toggle}
        aria-label={`Choose ${numbers.plainName(run.name)}`}
      />
      <div class="home-who">
        <RunLink catalog={props.catalog} run={run} />
        <span class="small">
          <Line value={run.name} />
        </span>
        <span class="small">
          {run.started && numbers.moment(run.started)}
          {!problem && run.state === "finished" && run.records > 0 && (
            <>
              {run.started && " · "}
              <a href={links.samples(runAddress(props.catalog, run))}>
                {recordedText(run)}
              </a>
            </>
          )}
          {usageText(run)}
          {!problem && <MissingText run={run} />}
          {run.state !== "finished" && (
            <>
              {" · "}
              <StateLine run={run} />
            </>
          )}
        </span>
      </div>
      {problem ? (
        <p class="warn home-problem">
          It cannot be read: <Line value={problem} most={300} />
        </p>
      ) : (
        <TaskScores run={run} />
      )}
    </li>
  );
}

const NEWEST = "newest";
/** The orders of the list, by their names in the address. */
const ORDERS: Record<string, string> = {
  [NEWEST]: "newest first",
  oldest: "oldest first",
  name: "by name",
  model: "by model",
  task: "by task, best first",
  samples: "most samples first",
  cost: "most expensive first",
};

const orderOf = (text: string | null): string =>
  text !== null && Object.hasOwn(ORDERS, text) ? text : NEWEST;

const byText = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

function orderRuns(runs: RunInfo[], order: string): RunInfo[] {
  const newestFirst = [...runs].sort((a, b) => byText(b.started, a.started));
  switch (order) {
    case "oldest":
      return newestFirst.reverse();
    case "name":
      return newestFirst.sort((a, b) => byText(a.name, b.name));
    case "model":
      return newestFirst.sort((a, b) => byText(a.model, b.model));
    case "samples":
      return newestFirst.sort((a, b) => b.records - a.records);
    case "cost":
      return newestFirst.sort((a, b) => (b.cost ?? -1) - (a.cost ?? -1));
    case "task":
      return newestFirst.sort(byTask);
    default:
      return newestFirst;
  }
}

/** By the names of the tasks and of the first metric; of the same ones, the best first. */
function byTask(a: RunInfo, b: RunInfo): number {
  const [metricA, metricB] = [a, b].map((run) => run.tasks[0]?.metrics[0]);
  const [namesA, namesB] = [a, b].map((run) =>
    [...run.tasks.map((task) => task.name), run.tasks[0]?.metrics[0]?.name ?? ""].join("\n"),
  );
  const direction = metricA?.lowerIsBetter ? 1 : -1;
  const none = direction * Infinity; // without a score: last
  const valueA = metricA?.value ?? none;
  const valueB = metricB?.value ?? none;
  return byText(namesA!, namesB!) || (valueA === valueB ? 0 : direction * (valueA - valueB));
}

/** " · 5.6k tokens · 1 s · $0.02", of what is known. */
function usageText(run: RunInfo): string {
  const tokens = run.inputTokens + run.outputTokens;
  return [
    tokens > 0 ? `${numbers.shortNumber(tokens)} tokens` : "",
    run.state === "finished" && run.seconds ? numbers.duration(run.seconds) : "",
    run.cost ? numbers.money(run.cost) : "",
  ]
    .filter(Boolean)
    .map((text) => ` · ${text}`)
    .join("");
}

function MissingText({ run }: { run: RunInfo }) {
  const missing = run.tasks.reduce((sum, task) => sum + task.missing, 0);
  return missing > 0 ? <span class="warn"> · {numbers.count(missing)} missing</span> : null;
}

/** Runs whose name, label, model or tasks have all words. */
function matchingRuns(runs: RunInfo[], query: string): RunInfo[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return runs;
  return runs.filter((run) => {
    const text = [run.name, run.label, run.model, ...run.tasks.map((task) => task.name)]
      .join("\n")
      .toLowerCase();
    return words.every((word) => text.includes(word));
  });
}
