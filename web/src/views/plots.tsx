/** Plots of one or more runs. Every plot has its numbers in a table below it. */
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import type {
  Catalog,
  Comparison,
  Curve,
  Data,
  Estimate,
  Metric,
  Plots,
  RunInfo,
} from "../data/api";
import type { PageProps } from "../pages";
import { findRun, links, runAddress, useRead } from "../pages";
import { Line } from "../text/text";
import type { Axis } from "./axis";
import { axisOf, logAxis, pointsAxis, timeAxis } from "./axis";
import { Chart, Key, type Series } from "./chart";
import { differenceAxis } from "./compare";
import * as numbers from "./numbers";
import {
  AxisWords,
  Bar,
  Choice,
  EmptyNote,
  Reading,
  RunChoice,
  RunLink,
  Score,
  ScrollBox,
  axisFor,
  runLabels,
  useCatalog,
  useFirst,
} from "./parts";
import { flipComparison } from "./pairs";
import { tree } from "./run";

type Against = Curve["against"];

const PLOTS: [name: string, words: string][] = [
  ["scores", "Scores"],
  ["differences", "Paired differences"],
  ["length", "By length"],
  ["latency", "By latency"],
  ["cost", "By cost"],
  ["date", "By date"],
  ["confidence", "Calibration"],
  ["agreement", "Judges"],
];

/** Runs in a plot with lines, unless one asks for others. */
const FIRST_LINES = 4;
/** As many as there are marks to tell them apart. */
const MOST_LINES = 8;

interface PlotProps {
  data: Data;
  catalog: Catalog;
  query: URLSearchParams;
  /** The runs that were asked for, all where none was. */
  runs: RunInfo[];
  set(change: Record<string, string | string[]>): void;
  go: PageProps["go"];
}

export function PlotsPage({ data, query, go }: PageProps) {
  const catalog = useCatalog(data);
  const askedRuns = query.getAll("run").flatMap((name) => findRun(catalog, name) ?? []);
  const runs = askedRuns.length
    ? catalog.runs.filter((run) => askedRuns.includes(run))
    : catalog.runs;
  const plot = PLOTS.find(([name]) => name === query.get("plot"))?.[0] ?? "scores";
  const change = (changes: Record<string, string | string[]>) => {
    const next = new URLSearchParams(query);
    for (const [name, value] of Object.entries(changes)) {
      next.delete(name);
      for (const chosen of Array.isArray(value) ? value : value ? [value] : [])
        next.append(name, chosen);
    }
    return links.plots(next);
  };
  const plotProps: PlotProps = {
    data,
    catalog,
    query,
    runs,
    go,
    set: (changes) => go(change(changes), true),
  };
  const isPlural = catalog.runs.length > 1;
  return (
    <div class="page views plots-page">
      <h1>Plots</h1>
      <nav class="tabs" aria-label="Plots">
        {PLOTS.filter(([name]) => isPlural || !["differences", "date"].includes(name)).map(
          ([name, words]) => (
            <a
              key={name}
              href={change({ plot: name === "scores" ? "" : name })}
              aria-current={name === plot ? "page" : undefined}
            >
              {words}
            </a>
          ),
        )}
      </nav>
      {catalog.runs.length === 0 ? (
        <EmptyNote>There is no run to plot.</EmptyNote>
      ) : (
        <ChosenPlot plot={plot} plotProps={plotProps} />
      )}
    </div>
  );
}

function ChosenPlot({ plot, plotProps }: { plot: string; plotProps: PlotProps }) {
  if (plot === "differences") return <Differences {...plotProps} />;
  if (plot === "date") return <BetweenRuns {...plotProps} against="date" />;
  if (plot === "agreement") return <Judges {...plotProps} />;
  if (plot === "length" || plot === "latency" || plot === "cost" || plot === "confidence")
    return <Curves key={plot} {...plotProps} against={plot} />;
  return <Scores {...plotProps} />;
}

/** The word for the overall score in a choice of tasks. */
const OVERALL = "";

/** Tasks of the runs, each once. */
function taskNames(runs: RunInfo[]): string[] {
  return [...new Set(runs.flatMap((run) => run.tasks.map((task) => task.name)))];
}

function hasOverall(catalog: Catalog): boolean {
  return (
    catalog.board?.rows.some((row) => row.overall !== null && row.overall.value !== null) ?? false
  );
}

/** A run's overall score, or the main one of a task. */
function scoreOf(catalog: Catalog, run: RunInfo, task: string): Metric | null {
  if (task === OVERALL)
    return catalog.board?.rows.find((row) => row.run === run.key)?.overall ?? null;
  return run.tasks.find((taskInfo) => taskInfo.name === task)?.metrics[0] ?? null;
}

function useTask({ catalog, query, runs }: PlotProps): {
  task: string;
  options: [string, string][];
} {
  const names = taskNames(runs);
  const overall = names.length > 1 && hasOverall(catalog);
  const askedTask = query.get("task") ?? (overall ? OVERALL : (names[0] ?? ""));
  const task = names.includes(askedTask) ? askedTask : overall ? OVERALL : (names[0] ?? "");
  return {
    task,
    options: [
      ...(overall ? [[OVERALL, "overall"] as [string, string]] : []),
      ...names.map((name): [string, string] => [name, name]),
    ],
  };
}

function TaskChoice({
  plotProps,
  task,
  options,
}: {
  plotProps: PlotProps;
  task: string;
  options: [string, string][];
}) {
  return options.length < 2 ? null : (
    <Choice
      label="Task"
      chosen={task}
      options={options}
      choose={(name) => plotProps.set({ task: name })}
    />
  );
}

function Numbers({ children, open = false }: { children: ComponentChildren; open?: boolean }) {
  return (
    <details class="more numbers" open={open}>
      <summary>The numbers</summary>
      {children}
    </details>
  );
}

function unit(metric: Metric | null): string {
  if (metric === null) return "";
  const scale = metric.bounded ? ", points of 100" : "";
  if (metric.noDirection) return `${numbers.plainName(metric.name)}${scale}`;
  const direction = metric.lowerIsBetter ? "lower" : "higher";
  return `${numbers.plainName(metric.name)}${scale}, ${direction} is better`;
}

/** All runs on one task (or overall), or all tasks of the only run. */
function Scores(props: PlotProps) {
  const { catalog, runs } = props;
  const { task, options } = useTask(props);
  const only = runs.length === 1 ? runs[0] : undefined;
  const rows = only
    ? tree(only).map((row) => ({
        key: row.task?.name ?? row.group!.name,
        name: <Line value={row.task?.name ?? (row.group!.label || row.group!.name)} />,
        metric: row.metric,
      }))
    : runs.map((run) => ({
        key: run.key,
        name: <RunLink catalog={catalog} run={run} />,
        metric: scoreOf(catalog, run, task),
      }));
  const scored = rows.filter((row) => row.metric !== null && row.metric.value !== null);
  if (!only) {
    const sign = scored[0]?.metric?.lowerIsBetter ? 1 : -1;
    rows.sort((a, b) =>
      a.metric?.value == null
        ? 1
        : b.metric?.value == null
          ? -1
          : sign * (a.metric.value - b.metric.value),
    );
  }
  const units = new Set(scored.map((row) => (row.metric!.bounded ? "points" : row.metric!.name)));
  return (
    <figure>
      <figcaption>
        <h2>Scores with intervals</h2>
        {!only && <TaskChoice plotProps={props} task={task} options={options} />}
        {units.size === 1 && (
          <p class="quiet">
            {only ? "Points of 100 where the metric is a share" : unit(scored[0]!.metric)}
          </p>
        )}
      </figcaption>
      {scored.length === 0 ? (
        <EmptyNote>Nothing has a score yet.</EmptyNote>
      ) : (
        [...units].map((name) => {
          const those = rows.filter(
            (row) => row.metric && (row.metric.bounded ? "points" : row.metric.name) === name,
          );
          return (
            <Forest
              key={name}
              first={only ? "Task" : "Run"}
              rows={those.map((row) => ({
                key: row.key,
                name: row.name,
                estimate: row.metric!,
                bounded: row.metric!.bounded,
              }))}
            />
          );
        })
      )}
    </figure>
  );
}

interface ForestRow {
  key: string;
  name: ComponentChildren;
  estimate: Estimate;
  bounded: boolean;
}

/** Estimates below each other on one axis: the picture and the table in one. */
function Forest({ rows, first, zero }: { rows: ForestRow[]; first: string; zero?: number }) {
  const bounded = rows[0]?.bounded ?? true;
  const axis =
    zero === undefined
      ? axisFor(
          rows.map((row) => row.estimate),
          bounded,
        )
      : differenceAxis(
          rows.map((row) => row.estimate),
          bounded,
        );
  const [listed, showMore] = useFirst(rows, "rows");
  const table = (
    <table class="plain scores forest">
      <thead>
        <tr>
          <th scope="col">{first}</th>
          <th class="drawn" aria-hidden="true">
            <AxisWords axis={axis} />
          </th>
          <th scope="col" class="number">
            {zero === undefined ? "Score" : "Difference"}
          </th>
          <th scope="col" class="number">
            Items
          </th>
        </tr>
      </thead>
      <tbody>
        {listed.map((row) => (
          <tr key={row.key}>
            <th scope="row">{row.name}</th>
            <td class="drawn" aria-hidden="true">
              <Bar estimate={row.estimate} axis={axis} zero={zero} />
            </td>
            <td class="number" data-title={zero === undefined ? "Score" : "Difference"}>
              {zero === undefined ? (
                <Score metric={{ ...row.estimate, bounded }} />
              ) : (
                <span
                  class={
                    numbers.hasInterval(row.estimate) &&
                    (row.estimate.low > 0 || row.estimate.high < 0)
                      ? "measure strong"
                      : "measure"
                  }
                >
                  <span class="value">{numbers.signed(row.estimate, bounded)}</span>{" "}
                  <span class="interval">{numbers.interval(row.estimate, bounded)}</span>
                </span>
              )}
            </td>
            <td class="number" data-title="Items">
              {numbers.basisText(row.estimate)}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
  return (
    <>
      {table}
      {showMore}
    </>
  );
}

function Differences(props: PlotProps) {
  const { data, catalog, query } = props;
  const base = findRun(catalog, query.get("base") ?? "") ?? bestRun(catalog);
  const others = catalog.runs.filter((run) => run.key !== base?.key);
  const read = useRead(
    async () =>
      base
        ? Promise.all(
            others.map((run) =>
              data
                .comparison(run.key, base.key)
                .then((comparison) =>
                  comparison && comparison.a !== run.key ? flipComparison(comparison) : comparison,
                ),
            ),
          )
        : [],
    [data, base?.key, catalog.made, ...catalog.runs.map((run) => run.records)],
  );
  if (base === undefined || others.length === 0)
    return <EmptyNote>A difference needs two runs.</EmptyNote>;
  const compared = (read.value ?? []).flatMap(
    (comparison, index): { run: RunInfo; comparison: Comparison }[] =>
      comparison ? [{ run: others[index]!, comparison }] : [],
  );
  const tasks = [
    ...new Set(compared.flatMap(({ comparison }) => comparison.tasks.map((task) => task.task))),
  ];
  const overall =
    compared.some(({ comparison }) => comparison.overall !== null) && tasks.length > 1;
  const askedTask = query.get("task") ?? "";
  const task = tasks.includes(askedTask) ? askedTask : overall ? OVERALL : (tasks[0] ?? "");
  const rows = compared.flatMap(({ run, comparison }): ForestRow[] => {
    const name = (
      <a href={links.compare(runAddress(catalog, run), runAddress(catalog, base))}>
        <Line value={run.label || run.name} />
      </a>
    );
    if (task === OVERALL)
      return comparison.overall
        ? [{ key: run.key, name, estimate: comparison.overall.difference, bounded: true }]
        : [];
    const difference = comparison.tasks.find((difference) => difference.task === task);
    return difference
      ? [{ key: run.key, name, estimate: difference.difference, bounded: difference.bounded }]
      : [];
  });
  rows.sort((a, b) => (b.estimate.value ?? -Infinity) - (a.estimate.value ?? -Infinity));
  const missing = others.length - compared.length;
  return (
    <figure>
      <figcaption>
        <h2>Paired differences</h2>
        <RunChoice
          catalog={catalog}
          label="Baseline"
          chosen={base.key}
          choose={(key) => {
            const run = catalog.runs.find((run) => run.key === key);
            if (run) props.set({ base: runAddress(catalog, run) });
          }}
        />
        <TaskChoice
          plotProps={props}
          task={task}
          options={[
            ...(overall ? [[OVERALL, "overall"] as [string, string]] : []),
            ...tasks.map((name): [string, string] => [name, name]),
          ]}
        />
        <p class="quiet">
          Baseline: <Line value={runLabels(catalog).get(base.key) ?? ""} />, on the items that both
          have. Where an interval leaves out 0, the two differ significantly (5%, each pair by
          itself).
        </p>
      </figcaption>
      {read.value === null ? (
        <Reading error={read.error} noun="the comparisons" />
      ) : rows.length === 0 ? (
        <EmptyNote>No comparison with this run is at hand.</EmptyNote>
      ) : (
        <Forest first="Run" rows={rows} zero={0} />
      )}
      {read.value !== null && rows.length > 0 && missing > 0 && (
        <p class="note quiet">{numbers.counted(missing, "run")} without a comparison at hand.</p>
      )}
    </figure>
  );
}

function bestRun(catalog: Catalog): RunInfo | undefined {
  const first = catalog.board?.rows[0]?.run;
  return catalog.runs.find((run) => run.key === first) ?? catalog.runs[0];
}

/** A point for each run: its score against what it cost, how long it took, or when it was made. */
function BetweenRuns(props: PlotProps & { against: "date" | "cost" | "latency" | "length" }) {
  const { catalog, runs, against } = props;
  const { task, options } = useTask(props);
  const labels = runLabels(catalog);
  const points = runs.flatMap((run) => {
    const metric = scoreOf(catalog, run, task);
    const x = betweenOf(run, against);
    return metric && metric.value !== null && Number.isFinite(x) && (against === "date" || x > 0)
      ? [{ run, metric, x }]
      : [];
  });
  const bounded = points.every((point) => point.metric.bounded);
  const words = WORDS[against];
  const x =
    against === "date"
      ? timeAxis(points.map((point) => point.x))
      : wide(points.map((point) => point.x))
        ? logAxis(
            points.map((point) => point.x),
            words.tick,
          )
        : axisOf(
            points.map((point) => point.x),
            null,
            words.tick,
          );
  const y = axisFor(
    points.map((point) => point.metric),
    bounded,
  );
  const series: Series[] = [
    {
      name: "runs",
      style: 0,
      line: false,
      points: points.map(({ run, metric, x: at }) => ({
        x: at,
        y: metric.value!,
        low: metric.low,
        high: metric.high,
        name: labels.get(run.key) ?? "",
        title: [
          `${labels.get(run.key)}: ${numbers.value(metric, metric.bounded)} `,
          `${numbers.interval(metric, metric.bounded)}, ${words.full(at)}`,
        ].join(""),
      })),
    },
  ];
  return (
    <figure>
      <figcaption>
        <h2>{words.between}</h2>
        <TaskChoice plotProps={props} task={task} options={options} />
      </figcaption>
      {points.length === 0 ? (
        <EmptyNote>No run has both a score and {words.known}.</EmptyNote>
      ) : (
        <>
          <Chart
            label={`${words.between}: ${numbers.counted(points.length, "run")}, in the table below`}
            series={series}
            x={x}
            y={y}
            xTitle={words.runs}
            yTitle={unit(points[0]!.metric)}
          />
          <Numbers open>
            <ScrollBox label="The numbers">
              <table class="plain">
                <thead>
                  <tr>
                    <th scope="col">Run</th>
                    <th scope="col" class="number">
                      Score
                    </th>
                    <th scope="col" class="number">
                      {words.column}
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {[...points]
                    .sort((a, b) => a.x - b.x)
                    .map(({ run, metric, x: at }) => (
                      <tr key={run.key}>
                        <th scope="row">
                          <RunLink catalog={catalog} run={run} />
                        </th>
                        <td class="number">
                          <Score metric={metric} />
                        </td>
                        <td class="number">{words.full(at)}</td>
                      </tr>
                    ))}
                </tbody>
              </table>
            </ScrollBox>
          </Numbers>
        </>
      )}
      {points.length > 0 && points.length < runs.length && (
        <p class="note quiet">
          {numbers.counted(runs.length - points.length, "run")} left out: no score, or not{" "}
          {words.known}.
        </p>
      )}
    </figure>
  );
}

/** Of a whole run: when it began, and dollars, seconds and tokens for each sample. */
function betweenOf(run: RunInfo, against: "date" | "cost" | "latency" | "length"): number {
  if (against === "date") return new Date(run.started).getTime();
  const per = run.records || NaN;
  if (against === "cost") return run.cost === null ? NaN : run.cost / per;
  if (against === "latency") return run.seconds === null ? NaN : run.seconds / per;
  return run.outputTokens / per;
}

interface Words {
  between: string;
  within: string;
  /** Of an axis over runs, over samples. */
  runs: string;
  samples: string;
  column: string;
  known: string;
  tick(x: number): string;
  full(x: number): string;
}

const WORDS: Record<"date" | Against, Words> = {
  date: {
    between: "Score by date",
    within: "",
    runs: "When the run began (UTC)",
    samples: "",
    column: "Began",
    known: "a date",
    tick: String,
    full: (x) => numbers.moment(new Date(x).toISOString()),
  },
  length: {
    between: "Score by length, run by run",
    within: "Score by the answer's length",
    runs: "Output tokens per sample",
    samples: "Characters of the answer",
    column: "Tokens per sample",
    known: "a number of tokens",
    tick: numbers.tickText,
    full: numbers.shortNumber,
  },
  latency: {
    between: "Score by time, run by run",
    within: "Score by latency",
    runs: "Seconds of the run per sample",
    samples: "Seconds until the answer was there",
    column: "Seconds per sample",
    known: "a time",
    tick: numbers.tickText,
    full: numbers.duration,
  },
  cost: {
    between: "Score by cost, run by run",
    within: "Score by cost",
    runs: "US dollars per sample",
    samples: "US dollars of the sample",
    column: "Cost per sample",
    known: "a cost",
    tick: numbers.money,
    full: numbers.money,
  },
  confidence: {
    between: "",
    within: "Calibration",
    runs: "",
    samples: "How sure the model says it is, percent",
    column: "Confidence",
    known: "a confidence",
    tick: (x) => `${Math.round(100 * x)}`,
    full: (x) => `${numbers.number(x, true)}%`,
  },
};

/** Scores of bins of samples, a line for each run. */
function Curves(props: PlotProps & { against: Against }) {
  const { data, catalog, query, runs, against } = props;
  const labels = runLabels(catalog);
  const read = useRead<(Plots | null)[]>(
    () => Promise.all(runs.map((run) => data.plots(run.key))),
    [data, ...runs.map((run) => `${run.key} ${run.state}`)],
  );
  const curves = useMemo(
    () =>
      (read.value ?? []).flatMap((plots, index) =>
        (plots?.curves ?? []).flatMap((curve) =>
          curve.against === against && runs[index] ? [{ run: runs[index]!, curve }] : [],
        ),
      ),
    [read.value, against],
  );
  const words = WORDS[against];
  const between = against !== "confidence" && catalog.runs.length > 1 && (
    <BetweenRuns {...props} against={against} />
  );
  if (read.value === null) return <Reading error={read.error} noun="the plots" />;
  const tasks = [...new Set(curves.map(({ curve }) => curve.task))];
  const task = tasks.includes(query.get("task") ?? "") ? query.get("task")! : (tasks[0] ?? "");
  const those = curves.filter(({ curve }) => curve.task === task);
  const askedLines = query.getAll("line");
  const drawn = those
    .filter(({ run }, index) =>
      askedLines.length ? askedLines.includes(runAddress(catalog, run)) : index < FIRST_LINES,
    )
    .slice(0, MOST_LINES);
  const style = (run: RunInfo) => drawn.findIndex((line) => line.run === run);
  const bounded = those.every(({ curve }) => curve.bounded);
  const bins = drawn.flatMap(({ curve }) => curve.bins);
  const x: Axis =
    against === "confidence"
      ? pointsAxis([0, 1], [0, 1], 5)
      : wide(bins.map((bin) => bin.mean))
        ? logAxis(
            bins.map((bin) => bin.mean),
            words.tick,
          )
        : axisOf(
            bins.map((bin) => bin.mean),
            null,
            (at) => words.tick(at),
          );
  const y =
    against === "confidence"
      ? pointsAxis([0, 1], [0, 1], 5)
      : axisFor(
          bins.map((bin) => bin.score),
          bounded,
        );
  const series = drawn.map(({ run, curve }): Series => ({
    name: labels.get(run.key) ?? "",
    style: style(run),
    line: true,
    points: curve.bins
      .filter((bin) => bin.score.value !== null)
      .map((bin) => ({
        x: bin.mean,
        y: bin.score.value!,
        low: bin.score.low,
        high: bin.score.high,
        title: [
          `${labels.get(run.key)}: ${numbers.value(bin.score, curve.bounded)} `,
          `${numbers.interval(bin.score, curve.bounded)}, `,
          `${words.full(bin.low)} to ${words.full(bin.high)}, `,
          numbers.counted(bin.score.n, "item"),
        ].join(""),
      })),
  }));
  const toggle = (run: RunInfo) => {
    const now = drawn.map((line) => runAddress(catalog, line.run));
    const toggled = runAddress(catalog, run);
    const without = now.filter((address) => address !== toggled);
    props.set({ line: now.includes(toggled) ? without : [...now, toggled] });
  };
  return (
    <>
      <figure>
        <figcaption>
          <h2>{words.within}</h2>
          <TaskChoice plotProps={props} task={task} options={tasks.map((name) => [name, name])} />
        </figcaption>
        {those.length === 0 ? (
          <EmptyNote>{none(against, runs)}</EmptyNote>
        ) : (
          <>
            {those.length > 1 && (
              <fieldset class="lines">
                <legend class="unseen">Runs drawn</legend>
                {those.map(({ run }) => (
                  <label key={run.key}>
                    <input
                      type="checkbox"
                      checked={style(run) >= 0}
                      disabled={style(run) < 0 && drawn.length >= MOST_LINES}
                      onChange={() => toggle(run)}
                    />{" "}
                    {style(run) >= 0 && <Key style={style(run)} />}{" "}
                    <Line value={labels.get(run.key) ?? ""} />
                  </label>
                ))}
              </fieldset>
            )}
            {drawn.length === 0 ? (
              <EmptyNote>No run is chosen.</EmptyNote>
            ) : (
              <Chart
                label={`${words.within}: ${numbers.counted(drawn.length, "run")}, in the table below`}
                series={series}
                x={x}
                y={y}
                xTitle={words.samples}
                yTitle={`${numbers.plainName(those[0]!.curve.metric)}${bounded ? ", points of 100" : ""}`}
                diagonal={against === "confidence"}
              />
            )}
            <p class="note quiet">
              {against === "confidence"
                ? "On the dotted line the model is right as often as it says. "
                : ""}
              Points are means over equal-sized bins, with 95% intervals.
            </p>
            {drawn.flatMap(({ run, curve }) =>
              curve.notes.map((note) => (
                <p key={run.key + note} class="note quiet">
                  {drawn.length > 1 && (
                    <>
                      <Line value={labels.get(run.key) ?? ""} />:{" "}
                    </>
                  )}
                  <Line value={note} />
                </p>
              )),
            )}
            <Numbers>
              <ScrollBox label="The numbers">
                <table class="plain">
                  <thead>
                    <tr>
                      {drawn.length > 1 && <th scope="col">Run</th>}
                      <th scope="col" class="number">
                        From
                      </th>
                      <th scope="col" class="number">
                        To
                      </th>
                      <th scope="col" class="number">
                        Mean
                      </th>
                      <th scope="col" class="number">
                        Score
                      </th>
                      <th scope="col" class="number">
                        Items
                      </th>
                    </tr>
                  </thead>
                  <tbody>
                    {drawn.flatMap(({ run, curve }) =>
                      curve.bins.map((bin, index) => (
                        <tr key={`${run.key} ${index}`}>
                          {drawn.length > 1 && (
                            <th scope="row">
                              <Line value={labels.get(run.key) ?? ""} />
                            </th>
                          )}
                          <td class="number">{words.full(bin.low)}</td>
                          <td class="number">{words.full(bin.high)}</td>
                          <td class="number">{words.full(bin.mean)}</td>
                          <td class="number">
                            <Score metric={{ ...bin.score, bounded: curve.bounded }} />
                          </td>
                          <td class="number">{numbers.count(bin.score.n)}</td>
                        </tr>
                      )),
                    )}
                  </tbody>
                </table>
              </ScrollBox>
            </Numbers>
          </>
        )}
      </figure>
      {between}
    </>
  );
}

/** Numbers above 0 that span more than a factor of 20. */
function wide(numbers: number[]): boolean {
  return (
    numbers.length > 1 &&
    Math.min(...numbers) > 0 &&
    Math.max(...numbers) > 20 * Math.min(...numbers)
  );
}

function none(against: Against, runs: RunInfo[]): string {
  if (runs.every((run) => run.state === "running"))
    return "This plot is made when the run has finished.";
  const why: Record<Against, string> = {
    length: "No task has enough scored answers of different lengths (at least 20).",
    latency: "No task has enough scored answers with a time (at least 20).",
    cost: "No task has enough answers with a cost (at least 20): no provider named one, or all cost the same.",
    confidence:
      "No answer says how sure the model is, and none was chosen by the probabilities of options.",
  };
  return why[against];
}

/** How far judges agree. */
function Judges(props: PlotProps) {
  const { data, catalog, runs } = props;
  const labels = runLabels(catalog);
  const read = useRead<(Plots | null)[]>(
    () => Promise.all(runs.map((run) => data.plots(run.key))),
    [data, ...runs.map((run) => `${run.key} ${run.state}`)],
  );
  if (read.value === null) return <Reading error={read.error} noun="the plots" />;
  const judged = read.value.flatMap((plots, index) =>
    plots && plots.agreement.length ? [{ run: runs[index]!, agreement: plots.agreement }] : [],
  );
  if (judged.length === 0) {
    return (
      <figure>
        <figcaption>
          <h2>Agreement of judges</h2>
        </figcaption>
        <EmptyNote>
          No run has the verdicts of two judges. A scorer asks several where its <code>judges</code>{" "}
          names them.
        </EmptyNote>
      </figure>
    );
  }
  return (
    <>
      {judged.map(({ run, agreement }) => {
        const axis = differenceAxis(
          agreement.map((pair) => pair.kappa),
          false,
        );
        return (
          <figure key={run.key}>
            <figcaption>
              <h2>
                Agreement of judges: <Line value={labels.get(run.key) ?? ""} />
              </h2>
              <p class="quiet">
                Cohen's kappa: 1 is full agreement, 0 what chance alone would give.
              </p>
            </figcaption>
            <table class="plain scores judges">
              <thead>
                <tr>
                  <th scope="col">Judges</th>
                  <th class="drawn" aria-hidden="true">
                    <AxisWords axis={axis} />
                  </th>
                  <th scope="col" class="number">
                    Kappa
                  </th>
                  <th scope="col" class="number">
                    Same verdict
                  </th>
                  <th scope="col" class="number">
                    Only the first passes
                  </th>
                  <th scope="col" class="number">
                    Only the second
                  </th>
                  <th scope="col" class="number">
                    Answers
                  </th>
                </tr>
              </thead>
              <tbody>
                {agreement.map((pair) => (
                  <tr key={`${pair.a}\n${pair.b}`}>
                    <th scope="row">
                      <Line value={pair.a} /> and <Line value={pair.b} />
                    </th>
                    <td class="drawn" aria-hidden="true">
                      <Bar estimate={pair.kappa} axis={axis} zero={0} />
                    </td>
                    <td class="number" data-title="Kappa">
                      <Score metric={{ ...pair.kappa, bounded: false }} />
                    </td>
                    <td class="number" data-title="Same verdict">
                      <Score metric={{ ...pair.raw, bounded: true }} />
                    </td>
                    <td class="number" data-title="Only the first passes">
                      {numbers.count(pair.onlyA)}
                    </td>
                    <td class="number" data-title="Only the second">
                      {numbers.count(pair.onlyB)}
                    </td>
                    <td class="number" data-title="Answers">
                      {numbers.count(pair.raw.n)}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </figure>
        );
      })}
    </>
  );
}
