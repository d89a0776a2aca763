/**
 * The answers of several runs side by side: a row for each item, a column for each run, such as the
 * prompts and models of one evaluation.
 */
import { useLayoutEffect, useMemo, useState } from "preact/hooks";
import type { Catalog, RunData, RunInfo } from "../data/api";
import type { PageProps } from "../pages";
import { findRun, links, runAddress, useRead } from "../pages";
import { Line, Text } from "../text/text";
import * as numbers from "./numbers";
import { taskNames } from "./pairs";
import { Choice, EmptyNote, Reading, RunLink, Score, ScrollBox, useCatalog } from "./parts";

/** More columns than these are too narrow to read. */
export const MOST_GRID_RUNS = 8;
const ROWS_OF_A_PAGE = 25;

/** Right is what scores at least half. */
type GridKind = "differing" | "all-wrong" | "all-right" | "unscored" | "all";

const GRID_KINDS: [GridKind, string][] = [
  ["differing", "Scored differently"],
  ["all-wrong", "All wrong"],
  ["all-right", "All right"],
  ["unscored", "Without a score"],
  ["all", "All"],
];

/** One item: its place in each run (-1: the run lacks it), and the mean score of its repeats. */
interface GridRow {
  task: string;
  places: number[];
  scores: number[];
}

export function AnswersPage({ data, query, go }: PageProps) {
  const catalog = useCatalog(data);
  const named = query.getAll("run").flatMap((name) => findRun(catalog, name) ?? []);
  const runs = [...new Set(named)].slice(0, MOST_GRID_RUNS);
  const keys = runs.map((run) => run.key);
  const read = useRead(
    () => Promise.all(keys.map((key) => data.run(key))),
    [data, keys.join("\n"), ...runs.map((run) => run.records)],
  );
  const isCurrent = read.value?.map((run) => run.info.key).join("\n") === keys.join("\n");
  return (
    <div class="page views">
      <header>
        <h1>Answers side by side</h1>
        {named.length > runs.length && (
          <p class="note warn">
            {named.length} runs were chosen; these are the first {runs.length}.
          </p>
        )}
      </header>
      {runs.length < 2 ? (
        <EmptyNote>
          Answers of at least two runs are set side by side.{" "}
          <a href={links.first()}>Choose runs</a>
        </EmptyNote>
      ) : read.value === null || !isCurrent ? (
        <Reading error={read.error} noun="the samples of all runs" />
      ) : (
        <Grid catalog={catalog} runs={runs} contents={read.value} query={query} go={go} />
      )}
    </div>
  );
}

function Grid({
  catalog,
  runs,
  contents,
  query,
  go,
}: {
  catalog: Catalog;
  runs: RunInfo[];
  contents: RunData[];
  query: URLSearchParams;
  go: PageProps["go"];
}) {
  const [, again] = useState(0);
  // Before painting: texts may be there as soon as they are asked for.
  useLayoutEffect(() => {
    const stops = contents.map((run) => run.onPreviews(() => again((n) => n + 1)));
    again((n) => n + 1);
    return () => stops.forEach((stop) => stop());
  }, [contents]);
  const rows = useMemo(() => gridRows(contents), [contents]);
  const tasks = useMemo(() => [...new Set(rows.map((row) => row.task))], [rows]);
  const task = query.get("task") ?? "";
  const ofTask = useMemo(
    () => (task ? rows.filter((row) => row.task === task) : rows),
    [rows, task],
  );
  const counts = useMemo(
    () =>
      new Map(
        GRID_KINDS.map(([kind]) => [kind, ofTask.filter((row) => isOfKind(kind, row.scores)).length]),
      ),
    [ofTask],
  );
  const askedKind = GRID_KINDS.find(([kind]) => kind === query.get("show"))?.[0];
  const kind = askedKind ?? (counts.get("differing") ? "differing" : "all");
  const chosen = useMemo(
    () => ofTask.filter((row) => isOfKind(kind, row.scores)),
    [ofTask, kind],
  );
  const wanted = Number(query.get("from") ?? 0);
  const isPlace = Number.isInteger(wanted) && wanted >= 0 && wanted < chosen.length;
  const from = isPlace ? wanted : 0;
  const listed = chosen.slice(from, from + ROWS_OF_A_PAGE);

  const address = (change: Record<string, string>) => {
    const next = new URLSearchParams(query);
    for (const [name, value] of Object.entries(change))
      if (value) next.set(name, value);
      else next.delete(name);
    return links.answers([], next);
  };
  return (
    <section>
      <div class="kinds" role="group" aria-label="Which items">
        {GRID_KINDS.filter(([name]) => counts.get(name)! > 0 || name === kind).map(
          ([name, words]) => (
            <a
              key={name}
              href={address({ show: name, from: "" })}
              aria-current={name === kind ? "true" : undefined}
            >
              {words} <span class="quiet">{numbers.count(counts.get(name)!)}</span>
            </a>
          ),
        )}
      </div>
      {tasks.length > 1 && (
        <Choice
          label="Task"
          chosen={task}
          options={[["", "all tasks"], ...tasks.map((name): [string, string] => [name, name])]}
          choose={(name) => go(address({ task: name, from: "" }), true)}
        />
      )}
      {chosen.length === 0 ? (
        <EmptyNote>No item is of this kind.</EmptyNote>
      ) : (
        <>
          <ScrollBox label="Answers by item and run">
            <table class="plain answers-grid">
              <caption class="unseen">Answers by item and run</caption>
              <thead>
                <tr>
                  <th scope="col" class="item">
                    Item
                  </th>
                  {runs.map((run) => (
                    <th key={run.key} scope="col">
                      <RunLink catalog={catalog} run={run} />
                      <span class="small">
                        <Score metric={run.tasks[0]?.metrics[0] ?? null} />
                      </span>
                      {run.prompt && (
                        <details class="prompt small">
                          <summary>Prompt</summary>
                          <Text value={run.prompt} label="Prompt" />
                        </details>
                      )}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {listed.map((row) => (
                  <ItemRow
                    key={`${row.task}\0${row.places.join()}`}
                    catalog={catalog}
                    runs={runs}
                    contents={contents}
                    row={row}
                    showTask={tasks.length > 1}
                  />
                ))}
              </tbody>
            </table>
          </ScrollBox>
          {chosen.length > ROWS_OF_A_PAGE && (
            <p class="paging">
              <button
                type="button"
                disabled={from === 0}
                onClick={() =>
                  go(address({ from: String(Math.max(0, from - ROWS_OF_A_PAGE) || "") }), true)
                }
              >
                ‹ Previous
              </button>
              <span role="status">
                {numbers.count(from + 1)} to {numbers.count(from + listed.length)} of{" "}
                {numbers.count(chosen.length)}
              </span>
              <button
                type="button"
                disabled={from + ROWS_OF_A_PAGE >= chosen.length}
                onClick={() => go(address({ from: String(from + ROWS_OF_A_PAGE) }), true)}
              >
                Next ›
              </button>
            </p>
          )}
        </>
      )}
    </section>
  );
}

function ItemRow({
  catalog,
  runs,
  contents,
  row,
  showTask,
}: {
  catalog: Catalog;
  runs: RunInfo[];
  contents: RunData[];
  row: GridRow;
  showTask: boolean;
}) {
  const first = row.places.findIndex((place) => place >= 0);
  const content = contents[first]!;
  const place = row.places[first]!;
  const preview = content.preview(place);
  return (
    <tr>
      <th scope="row" class="item">
        <span class="cut">
          <Line value={preview?.question || content.id(place)} />
        </span>
        {preview?.expected && (
          <span class="small">
            Expected: <Line value={preview.expected} />
          </span>
        )}
        <span class="small">
          {!isHash(content.id(place)) && <Line value={content.id(place)} />}
          {showTask && (
            <>
              {!isHash(content.id(place)) && " · "}
              <Line value={row.task} />
            </>
          )}
        </span>
      </th>
      {runs.map((run, index) => (
        <td key={run.key}>
          <AnswerCell
            address={runAddress(catalog, run)}
            content={contents[index]!}
            task={row.task}
            place={row.places[index]!}
            score={row.scores[index]!}
          />
        </td>
      ))}
    </tr>
  );
}

function AnswerCell({
  address,
  content,
  task,
  place,
  score,
}: {
  address: string;
  content: RunData;
  task: string;
  place: number;
  score: number;
}) {
  if (place < 0) return <span class="quiet">not asked</span>;
  const { answer = "", reason = "" } = content.preview(place) ?? {};
  const words =
    score === 1 ? "right" : score === 0 ? "wrong" : `score ${numbers.number(score, false)}`;
  const tone = score === 1 ? "good" : score === 0 ? "bad" : "strong";
  return (
    <>
      <a
        class={Number.isNaN(score) ? "warn" : tone}
        href={links.sample(address, task, content.id(place), content.draw(place))}
      >
        {Number.isNaN(score) ? "no score" : words}
      </a>
      <span class="cut">
        <Line value={answer} />
      </span>
      {reason && (
        <span class="cut small">
          Judge: <Line value={reason} />
        </span>
      )}
    </>
  );
}

/** Whether an id was made of the sample's content, and so tells a reader nothing. */
function isHash(id: string): boolean {
  return /^[0-9a-f]{16}$/.test(id);
}

/** Every item that any run has, in the order of the first run that has it. */
function gridRows(contents: RunData[]): GridRow[] {
  const rows = new Map<string, GridRow & { sums: number[]; scored: number[] }>();
  contents.forEach((run, runIndex) => {
    const taskOf = taskNames(run);
    const column = run.columns.find(({ name, kind }) => name === "score" && kind === "number");
    for (let place = 0; place < run.size; place++) {
      const task = taskOf(place);
      const key = `${task}\0${run.id(place)}`;
      let row = rows.get(key);
      if (!row) {
        row = {
          task,
          places: contents.map(() => -1),
          scores: contents.map(() => NaN),
          sums: contents.map(() => 0),
          scored: contents.map(() => 0),
        };
        rows.set(key, row);
      }
      const before = row.places[runIndex]!;
      if (before < 0 || run.draw(place) < run.draw(before)) row.places[runIndex] = place;
      const score = column?.kind === "number" ? column.values[place]! : NaN;
      if (Number.isNaN(score)) continue;
      row.sums[runIndex]! += score;
      row.scored[runIndex]! += 1;
      row.scores[runIndex] = row.sums[runIndex]! / row.scored[runIndex]!;
    }
  });
  return [...rows.values()];
}

function isOfKind(kind: GridKind, scores: number[]): boolean {
  if (kind === "all") return true;
  if (kind === "unscored") return scores.some(Number.isNaN);
  const scored = scores.filter((score) => !Number.isNaN(score));
  if (scored.length === 0) return false;
  if (kind === "differing") return scored.some((score) => score !== scored[0]);
  if (scored.length < scores.length) return false;
  // Outside of 0 to 1 a score is no share: nothing is right or wrong.
  if (scored.some((score) => score < 0 || score > 1)) return false;
  return kind === "all-wrong"
    ? scored.every((score) => score < 0.5)
    : scored.every((score) => score >= 0.5);
}
