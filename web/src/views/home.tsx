/** All runs of a folder, newest first: searched, and opened one by one, as a pair or as a board. */
import { useMemo, useRef, useState } from "preact/hooks";
import type { Catalog, Metric, RunInfo } from "../data/api";
import type { PageProps } from "../pages";
import { links, runAddress } from "../pages";
import { useKeys } from "../shell/keys";
import { Line } from "../text/text";
import * as numbers from "./numbers";
import { axisFor, Bar, EmptyNote, RunLink, Score, StateLine, useCatalog, useFirst } from "./parts";

/** Tasks whose scores a row shows; the page of the run has all. */
const SHOWN_TASKS = 3;
/** Scores that are shares have one axis, so that rows can be compared. */
const POINTS_OF_100 = axisFor([], true, [0, 1]);
/** As many as the server makes a board of. */
const MOST_CHOSEN = 200;

export function HomePage({ data, query, go }: PageProps) {
  const catalog = useCatalog(data);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const box = useRef<HTMLInputElement>(null);
  const words = query.get("q") ?? "";
  const runs = useMemo(() => newestFirst(catalog.runs), [catalog]);
  const matching = useMemo(() => matchingRuns(runs, words), [runs, words]);
  const [listed, showMore] = useFirst(matching, "runs");
  const search = (typed: string) => go(typed ? `#/?${new URLSearchParams({ q: typed })}` : links.first(), true);
  const toggle = (key: string) => {
    const next = new Set(chosen);
    if (!next.delete(key)) next.add(key);
    setChosen(next);
  };
  useKeys([{ keys: ["/"], does: "Search runs", run: () => box.current?.focus() }]);
  const running = runs.filter((run) => run.state === "running").length;
  return (
    <div class="page views home-page">
      <header>
        <h1>
          <Line value={catalog.title} />
        </h1>
        <p class="lede">
          {numbers.counted(runs.length, "run")}, newest first
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
          onInput={(event) => search(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Escape") event.currentTarget.blur();
          }}
        />
        <ChosenRuns catalog={catalog} chosen={chosen} clear={() => setChosen(new Set())} go={go} />
      </div>
      {matching.length === 0 ? (
        <EmptyNote>
          {runs.length === 0
            ? "There are no runs in this folder now."
            : "No run, model or task has these words."}
        </EmptyNote>
      ) : (
        <ul class="home-runs" aria-label="Runs">
          {listed.map((run) => (
            <HomeRow
              key={run.key}
              catalog={catalog}
              run={run}
              chosen={chosen.has(run.key)}
              toggle={() => toggle(run.key)}
            />
          ))}
        </ul>
      )}
      {showMore}
    </div>
  );
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

function HomeRow(props: { catalog: Catalog; run: RunInfo; chosen: boolean; toggle(): void }) {
  const { run } = props;
  const problem = run.facts.find(([name]) => name === "Cannot be read")?.[1];
  return (
    <li class={props.chosen ? "chosen" : undefined}>
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
        <HomeScores run={run} />
      )}
    </li>
  );
}

/** The overall score where there is one, and the first tasks. */
function HomeScores({ run }: { run: RunInfo }) {
  const overall = run.groups.find((group) => group.metric?.value != null);
  const lines: [name: string, metric: Metric | null][] = [];
  if (overall && run.tasks.length > 1) lines.push([overall.label || overall.name, overall.metric]);
  for (const task of run.tasks.slice(0, SHOWN_TASKS - lines.length))
    lines.push([task.name, task.metrics[0] ?? null]);
  const hidden = run.tasks.length - lines.length + (overall && run.tasks.length > 1 ? 1 : 0);
  return (
    <div class="home-scores">
      {lines.map(([name, metric]) => (
        <div key={name} class="home-score">
          <span class="clip" title={numbers.plainName(name)}>
            <Line value={name} />
            {metric && <span class="small"><Line value={metric.name} /></span>}
          </span>
          <Score metric={metric} />
          {metric?.bounded && <Bar estimate={metric} axis={POINTS_OF_100} />}
        </div>
      ))}
      {hidden > 0 && <span class="small">and {numbers.counted(hidden, "more task")}</span>}
    </div>
  );
}

const newestFirst = (runs: RunInfo[]): RunInfo[] =>
  [...runs].sort((a, b) => (a.started < b.started ? 1 : a.started > b.started ? -1 : 0));

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
