/**
 * Several runs as a table: ranks that the data leave open, scores with intervals, and what to
 * compare.
 */
import { useMemo, useState } from "preact/hooks";
import type { Board, BoardRow, Catalog, Metric, RunInfo } from "../data/api";
import type { PageProps } from "../pages";
import { findRun, links, runAddress, useRead } from "../pages";
import { Line } from "../text/text";
import * as numbers from "./numbers";
import {
  AxisWords,
  Bar,
  Choice,
  Note,
  EmptyNote,
  Reading,
  RunChoice,
  RunLink,
  runLabels,
  Score,
  ScrollBox,
  StateLine,
  TaskScores,
  axisFor,
  useCatalog,
  useFirst,
  useWidth,
} from "./parts";
import { MOST_GRID_RUNS } from "./grid";
import { HomePage } from "./home";
import { toItem } from "./pairs";
import { RunView } from "./run";

/** The first page: the runs of a folder, the only run, or the board of all. */
export function FirstPage(props: PageProps) {
  const { data, query, go } = props;
  const catalog = useCatalog(data);
  if (catalog.chosenFromFolder) return <HomePage {...props} />;
  const only = catalog.runs[0];
  if (only === undefined)
    return (
      <div class="page views">
        <h1>No runs</h1>
        <EmptyNote>
          {catalog.live ? "No run has begun yet. This page follows." : "This file holds no run."}
        </EmptyNote>
      </div>
    );
  if (catalog.runs.length === 1) return <RunView catalog={catalog} run={only} />;
  const address = (sort: string) =>
    sort ? `#/?sort=${encodeURIComponent(sort)}` : links.first();
  return <BoardView catalog={catalog} query={query} go={go} address={address} />;
}

/** The board of the runs that the address names. */
export function BoardPage({ data, query, go }: PageProps) {
  const catalog = useCatalog(data);
  const names = query.getAll("run");
  const runs = names.flatMap((name) => findRun(catalog, name) ?? []);
  const keys = runs.map((run) => run.key);
  const read = useRead(
    () => data.board(keys),
    [data, keys.join(), ...runs.map((run) => `${run.state} ${run.records}`)],
  );
  const unknown = names.filter((name) => !findRun(catalog, name));
  if (runs.length < 2)
    return (
      <div class="page views">
        <h1>Board</h1>
        <EmptyNote>
          A board needs at least two runs. <a href={links.first()}>Choose runs</a>
        </EmptyNote>
      </div>
    );
  if (read.value === null && read.error === null && catalog.chosenFromFolder)
    return (
      <div class="page views">
        <h1>Board</h1>
        <Reading error={null} noun="the runs" />
      </div>
    );
  const addresses = runs.map((run) => runAddress(catalog, run));
  const chosen = { ...catalog, title: `Board of ${runs.length} runs`, runs, board: read.value };
  return (
    <>
      {unknown.length > 0 && (
        <p class="page note warn">
          There is no run called <Line value={unknown.join(", ")} />.
        </p>
      )}
      <BoardView
        catalog={chosen}
        query={query}
        go={go}
        address={(sort) => links.board(addresses, sort ? { sort } : {})}
      />
    </>
  );
}

/**
 * Pixels that columns of tasks take at least, and where there is room; and what stands before them.
 */
const COLUMN = 116;
const ROOMY = 188;
const BEFORE = { wide: 570, middle: 400, narrow: 190 };
const COUNTS = 200;
/** Labels that the narrowest axis has room for. */
const TICKS = 4;
/**
 * The place of the overall score among the columns of a narrow page, where it has none of its own.
 */
const OVERALL = -1;

/** More values of a key, or rows, than these make a table that nobody reads. */
const MOST_SLICES = 60;
const MOST_SLICE_ROWS = 200;

interface SortedRow {
  row: BoardRow;
  run: RunInfo;
}

function BoardView({
  catalog,
  query,
  go,
  address,
}: {
  catalog: Catalog;
  query: URLSearchParams;
  go: PageProps["go"];
  /** Of this board in another order. */
  address(sort: string): string;
}) {
  const [watch, width] = useWidth();
  const [from, setFrom] = useState(0);
  const board = withAllRuns(catalog.board ?? boardOf(catalog), catalog);
  const size = width < 620 ? "narrow" : width < 980 ? "middle" : "wide";
  const narrow = size === "narrow";
  const room = width - BEFORE[size] - (narrow ? 0 : COUNTS);
  const fit = Math.max(1, Math.floor(room / COLUMN));

  const sort = query.get("sort") ?? "";
  const ids = columnIds(board);
  const rows = sorted(
    board.rows.flatMap((row) => {
      const run = catalog.runs.find((run) => run.key === row.run);
      return run ? [{ row, run }] : [];
    }),
    sort,
    ids,
  );
  const overall = rows.map(({ row }) => row.overall);
  const hasOverall = overall.some((metric) => metric !== null && metric.value !== null);
  const all = board.columns.map((column, index) => ({
    ...column,
    place: index,
    sort: `=${ids[index]}`,
  }));
  if (narrow && hasOverall)
    all.unshift({ name: "Overall", note: "", place: OVERALL, sort: "overall" });
  const withAxes = all.map((column) => {
    const metrics = rows.map(({ row }) =>
      column.place === OVERALL ? row.overall : (row.cells[column.place] ?? null),
    );
    return { ...column, axis: axisFor(metrics, metrics.every((metric) => metric?.bounded ?? true)) };
  });
  const ranked = rows.some(({ row }) => row.ranks !== null);
  // Columns that few runs have would be paged through for the sake of dashes.
  const inLists = !ranked && !hasOverall && all.length > fit && areMostlyEmpty(rows);
  const begin = Math.min(from, Math.max(0, all.length - fit));
  const columns = inLists ? [] : withAxes.slice(begin, begin + fit);
  const axis = axisFor(
    overall,
    overall.every((metric) => metric === null || metric.bounded),
  );
  const order = (column: string) => {
    const next =
      column === "" ? "" : sort === column ? `-${column}` : sort === `-${column}` ? "" : column;
    go(address(next), true);
  };
  const head = (column: string, words: preact.ComponentChildren, kind = "number") => (
    <th
      scope="col"
      class={kind}
      aria-sort={
        column === ""
          ? sort === ""
            ? "ascending"
            : undefined
          : sort === column
            ? "descending"
            : sort === `-${column}`
              ? "ascending"
              : undefined
      }
    >
      <button type="button" onClick={() => order(column)}>
        {words}
      </button>
    </th>
  );
  const running = catalog.runs.filter((run) => run.state === "running").length;
  const [listed, showMore] = useFirst(rows, "runs");
  return (
    <div class="page views board-page">
      <header>
        <h1>
          <Line value={catalog.title} />
        </h1>
        <p class="lede">
          {numbers.counted(catalog.runs.length, "run")} · made {numbers.moment(catalog.made)}
          {running > 0 && (
            <>
              {" "}
              ·{" "}
              <span class="how running" role="status">
                {running} running
              </span>
            </>
          )}
        </p>
        {catalog.runs.length > 1 && (
          <p class="doors">
            <a
              href={links.answers(
                catalog.runs.slice(0, MOST_GRID_RUNS).map((run) => runAddress(catalog, run)),
              )}
            >
              Answers side by side
            </a>
          </p>
        )}
      </header>
      <div ref={watch}>
        {columns.length > 0 && all.length > fit && (
          <p class="paging">
            <button
              type="button"
              disabled={begin === 0}
              onClick={() => setFrom(Math.max(0, begin - fit))}
            >
              ‹ Previous
            </button>
            <span role="status">
              {columns.length === 1
                ? `Column ${begin + 1}`
                : `Columns ${begin + 1} to ${begin + columns.length}`}{" "}
              of {all.length}
            </span>
            <button
              type="button"
              disabled={begin + fit >= all.length}
              onClick={() => setFrom(begin + fit)}
            >
              Next ›
            </button>
          </p>
        )}
        {narrow && (
          <Choice
            label="Sort by"
            chosen={sort}
            choose={(next) => go(address(next), true)}
            options={[
              ["", ranked ? "rank" : "as listed"],
              ...(hasOverall ? [["overall", "overall"] as [string, string]] : []),
              ["items", "items"],
              ["missing", "missing"],
              ...ids.map((id): [string, string] => [`=${id}`, id]),
            ]}
          />
        )}
        <table class={`grid ${size}`}>
          <caption class="unseen">Runs, best first</caption>
          <thead>
            <tr>
              {ranked && head("", "Rank", "rank")}
              <th scope="col" class="who">
                Run
              </th>
              {!narrow && hasOverall && (
                <th
                  scope="col"
                  class="drawn"
                  aria-sort={sort === "overall" ? "descending" : undefined}
                >
                  <button type="button" onClick={() => order("overall")}>
                    Overall
                  </button>
                  {size === "wide" && <AxisWords axis={axis} most={TICKS} />}
                </th>
              )}
              {columns.map((column) => (
                <th
                  key={column.place}
                  scope="col"
                  class="number"
                  style={
                    narrow
                      ? undefined
                      : {
                          width: `${Math.max(COLUMN, Math.min(ROOMY, Math.floor(room / columns.length)))}px`,
                        }
                  }
                  aria-sort={
                    sort === column.sort
                      ? "descending"
                      : sort === `-${column.sort}`
                        ? "ascending"
                        : undefined
                  }
                >
                  <button type="button" onClick={() => order(column.sort)}>
                    <Line value={column.name} />
                  </button>
                  {column.note && (
                    <span class="small">
                      <Line value={column.note} />
                    </span>
                  )}
                </th>
              ))}
              {inLists && !narrow && (
                <th scope="col" class="own-scores">
                  Scores
                </th>
              )}
              {!narrow && head("items", "Items", "number count")}
              {!narrow && head("missing", "Missing", "number count")}
            </tr>
          </thead>
          <tbody>
            {listed.map(({ row, run }) => (
              <tr key={run.key}>
                {ranked && <td class="rank">{numbers.ranks(row.ranks)}</td>}
                <th scope="row" class="who">
                  <RunLink catalog={catalog} run={run} />
                  <span class="small">
                    <Line value={run.name} />
                  </span>
                  <span class="small">
                    <StateLine run={run} brief />
                  </span>
                  {inLists && narrow && <TaskScores run={run} />}
                  {narrow && (
                    <span class="small">
                      {itemsText(run)}
                      {countAsked(run) === 1 ? " item" : " items"}
                      {countMissing(run) > 0 && (
                        <span class="warn">, {numbers.count(countMissing(run))} missing</span>
                      )}
                    </span>
                  )}
                </th>
                {!narrow && hasOverall && (
                  <td class="drawn">
                    <div class="pair">
                      <Score metric={row.overall} />
                      {size === "wide" && row.overall !== null && row.overall.value !== null && (
                        <Bar estimate={row.overall} axis={axis} most={TICKS} />
                      )}
                    </div>
                  </td>
                )}
                {columns.map((column) => {
                  const metric =
                    column.place === OVERALL ? row.overall : (row.cells[column.place] ?? null);
                  return (
                    <td key={column.place} class="number">
                      {metric === null ? <NotInRun /> : <Score metric={metric} below />}
                      {metric !== null && metric.value !== null && (
                        <Bar estimate={metric} axis={column.axis} most={TICKS} />
                      )}
                    </td>
                  );
                })}
                {inLists && !narrow && (
                  <td class="own-scores">
                    <TaskScores run={run} />
                  </td>
                )}
                {!narrow && <td class="number">{itemsText(run)}</td>}
                {!narrow && (
                  <td class="number">
                    <span class={countMissing(run) ? "warn" : "quiet"}>
                      {numbers.count(countMissing(run))}
                    </span>
                  </td>
                )}
              </tr>
            ))}
          </tbody>
        </table>
        {showMore}
      </div>
      {ranked && board.notes.length === 0 && (
        <p class="note quiet">
          A rank such as 2–4 says between which places the data leave a run. Runs stand by their
          overall score; where two ranges overlap, their order may be chance.
        </p>
      )}
      {board.notes.length > 0 && (
        <ul class="notes">
          {board.notes.map((note, index) => (
            <li key={index}>
              <Note text={note} />
            </li>
          ))}
        </ul>
      )}
      <SliceTables catalog={catalog} rows={rows} />
      <PickPair key={rows.map(({ run }) => run.key).join()} catalog={catalog} rows={rows} go={go} />
    </div>
  );
}

/** Whether most runs have most columns not. */
function areMostlyEmpty(rows: SortedRow[]): boolean {
  const cells = rows.flatMap(({ row }) => row.cells);
  return cells.filter((metric) => metric === null).length > cells.length / 2;
}

/** The cell of a run that does not have the column's task and metric; "n/a" is a score that is not there. */
function NotInRun() {
  return (
    <span class="quiet" title="This run does not have it.">
      –
    </span>
  );
}

/** The scores on the slices of a task, such as its languages: runs by values of one metadata key. */
function SliceTables({ catalog, rows }: { catalog: Catalog; rows: SortedRow[] }) {
  const choices = useMemo(() => sliceChoices(rows), [rows]);
  const [chosen, setChosen] = useState("");
  const choice = choices.find(({ id }) => id === chosen) ?? choices[0];
  if (choice === undefined) return null;
  const having = rows.filter(({ run }) => slicesOf(run, choice).length > 0);
  const labels = runLabels(catalog);
  return (
    <section>
      <h2>By slice</h2>
      <Choice
        label="Slice"
        chosen={choice.id}
        choose={setChosen}
        options={choices.map(({ id, task, key, metric }): [string, string] => [
          id,
          `${task}, ${metric}, by ${key}`,
        ])}
      />
      <ScrollBox label="Scores by slice">
        <table class="plain slices">
          <thead>
            <tr>
              <th scope="col">Run</th>
              {choice.names.map((name) => (
                <th key={name} scope="col" class="number">
                  <Line value={name} />
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {having.slice(0, MOST_SLICE_ROWS).map(({ run }) => (
              <tr key={run.key}>
                <th scope="row">
                  <a href={links.run(runAddress(catalog, run))}>
                    <Line value={labels.get(run.key) ?? run.name} />
                  </a>
                </th>
                {choice.names.map((name) => (
                  <td key={name} class="number">
                    <SliceScore
                      metric={slicesOf(run, choice).find((part) => part.name === name)?.metric}
                    />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </ScrollBox>
    </section>
  );
}

function SliceScore({ metric }: { metric: Metric | undefined }) {
  return metric === undefined ? <NotInRun /> : <Score metric={metric} below />;
}

interface SliceChoice {
  id: string;
  task: string;
  metric: string;
  key: string;
  /** The values that any run has. */
  names: string[];
}

/** The slices of a run that a choice names; none where the run has another metric there. */
function slicesOf(run: RunInfo, choice: { task: string; metric: string; key: string }) {
  const task = run.tasks.find(({ name }) => name === choice.task);
  const parts = task?.slices.find(({ key }) => key === choice.key)?.parts ?? [];
  return parts.filter((part) => part.metric.name === choice.metric);
}

/** Every task, metric and metadata key by which some run has scores. */
function sliceChoices(rows: SortedRow[]): SliceChoice[] {
  const choices = new Map<string, SliceChoice>();
  for (const { run } of rows)
    for (const task of run.tasks)
      for (const { key, parts } of task.slices)
        for (const part of parts) {
          const metric = part.metric.name;
          const id = JSON.stringify([task.name, metric, key]);
          const choice = choices.get(id) ?? { id, task: task.name, metric, key, names: [] };
          choices.set(id, choice);
          if (!choice.names.includes(part.name) && choice.names.length < MOST_SLICES)
            choice.names.push(part.name);
        }
  return [...choices.values()];
}

/** Items that the main scores of a run rest on, over all tasks. */
const scored = (run: RunInfo) =>
  run.tasks.reduce((sum, task) => sum + (task.metrics[0]?.n ?? 0), 0);

const countAsked = (run: RunInfo) => run.tasks.reduce((sum, task) => sum + task.samples, 0);

/** Scored items, with all where some have no score: "39 of 40". */
const itemsText = (run: RunInfo) =>
  scored(run) < countAsked(run)
    ? `${numbers.count(scored(run))} of ${numbers.count(countAsked(run))}`
    : numbers.count(scored(run));

const countMissing = (run: RunInfo) => run.tasks.reduce((sum, task) => sum + task.missing, 0);

/** What an address calls each column: the task, with its metric where two columns have one task. */
function columnIds(board: Board): string[] {
  const names = board.columns.map((column) => column.name);
  return board.columns.map(({ name, note }) =>
    names.indexOf(name) === names.lastIndexOf(name) ? name : `${name} (${note})`,
  );
}

/** The board with rows for runs that have no place on it yet: those that are still going. */
function withAllRuns(board: Board, catalog: Catalog): Board {
  const placed = new Set(board.rows.map((row) => row.run));
  const others = boardOf(catalog);
  const rows = others.rows
    .filter((row) => !placed.has(row.run))
    .map((row) => ({
      ...row,
      cells: board.columns.map(
        ({ name, note }) =>
          row.cells[
            others.columns.findIndex((column) => column.name === name && column.note === note)
          ] ?? null,
      ),
    }));
  return rows.length ? { ...board, rows: [...board.rows, ...rows] } : board;
}

/** Without a board: the runs as they are, with the main metric of every task. */
function boardOf(catalog: Catalog): Board {
  const columns: Board["columns"] = [];
  const scoresByRun = catalog.runs.map((run) => {
    const scores = new Map<number, Metric>();
    for (const task of run.tasks) {
      const metric = task.metrics[0];
      if (metric === undefined) continue;
      const note = metric.name + (metric.lowerIsBetter ? ", less is better" : "");
      let place = columns.findIndex((column) => column.name === task.name && column.note === note);
      if (place < 0) place = columns.push({ name: task.name, note }) - 1;
      scores.set(place, metric);
    }
    return scores;
  });
  return {
    columns,
    rows: catalog.runs.map((run, index) => ({
      run: run.key,
      ranks: null,
      overall: null,
      cells: columns.map((_, place) => scoresByRun[index]!.get(place) ?? null),
    })),
    notes: [],
  };
}

/** By a column, best or highest first; runs without a value come last. */
function sorted(rows: SortedRow[], sort: string, columns: string[]): SortedRow[] {
  const up = sort.startsWith("-");
  const column = up ? sort.slice(1) : sort;
  if (!column) return rows;
  const key = ({ row, run }: SortedRow): [number, boolean] => {
    if (column === "items") return [scored(run), false];
    if (column === "missing") return [countMissing(run), false];
    const metric =
      column === "overall" ? row.overall : (row.cells[columns.indexOf(column.slice(1))] ?? null);
    return [metric?.value ?? NaN, metric?.lowerIsBetter ?? false];
  };
  return [...rows].sort((a, b) => {
    const [[x, less], [y]] = [key(a), key(b)];
    if (Number.isNaN(x) || Number.isNaN(y))
      return Number(Number.isNaN(x)) - Number(Number.isNaN(y));
    return (less ? x - y : y - x) * (up ? -1 : 1);
  });
}

/** Two runs to set side by side. */
function PickPair({
  catalog,
  rows,
  go,
}: {
  catalog: Catalog;
  rows: SortedRow[];
  go: PageProps["go"];
}) {
  const [a, setA] = useState(rows[0]?.run.key ?? "");
  const [b, setB] = useState(rows[1]?.run.key ?? "");
  const address = (key: string) => {
    const run = catalog.runs.find((run) => run.key === key);
    return run ? runAddress(catalog, run) : "";
  };
  return (
    <form
      class="pick"
      onSubmit={(event) => {
        event.preventDefault();
        toItem.wanted = true;
        go(links.compare(address(a), address(b)));
      }}
    >
      <h2>Two runs side by side</h2>
      <RunChoice catalog={catalog} label="A" chosen={a} choose={setA} />
      <RunChoice catalog={catalog} label="B" chosen={b} choose={setB} />
      <button type="submit" disabled={a === b}>
        Compare
      </button>
    </form>
  );
}
