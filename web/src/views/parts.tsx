/** Small parts that the pages of runs share. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Catalog, Data, Estimate, Metric, RunInfo } from "../data/api";
import { links, runAddress } from "../pages";
import { Line } from "../text/text";
import type { Axis } from "./axis";
import { axisOf, pointsAxis } from "./axis";
import * as numbers from "./numbers";

/** The catalog, drawn again whenever a run grew. */
export function useCatalog(data: Data): Catalog {
  const [, again] = useState(0);
  useEffect(() => data.onChange(() => again((n) => n + 1)), [data]);
  return data.catalog;
}

/** The width of an element in CSS pixels, 0 before it is known. */
export function useWidth(): [(element: HTMLElement | null) => void, number] {
  const [width, set] = useState(0);
  const watcher = useRef<ResizeObserver | null>(null);
  const watch = useRef((element: HTMLElement | null) => {
    watcher.current?.disconnect();
    if (element === null) return;
    watcher.current = new ResizeObserver(() => set(element.clientWidth));
    watcher.current.observe(element);
    set(element.clientWidth);
  });
  return [watch.current, width];
}

/**
 * The first of many things, and a button for ten times as many: thousands of rows take a browser
 * seconds.
 */
export function useFirst<T>(
  all: T[],
  noun: string,
  first = 100,
): [some: T[], more: ComponentChildren] {
  const [limit, set] = useState(first);
  if (all.length <= limit * 1.2) return [all, null];
  const next = limit * 12 >= all.length ? all.length : limit * 10;
  const showMore = (
    <p class="paging">
      {numbers.count(limit)} of {numbers.count(all.length)} {noun}
      <button type="button" onClick={() => set(limit * 10)}>
        {next === all.length ? "Show all" : `Show ${numbers.count(next)}`}
        <span class="unseen"> {noun}</span>
      </button>
    </p>
  );
  return [all.slice(0, limit), showMore];
}

/** Each of many as it is drawn, the first ones at first. */
export function FirstOf<T>({
  all,
  noun,
  first,
  render,
}: {
  all: T[];
  noun: string;
  first: number;
  render: (one: T, place: number) => ComponentChildren;
}) {
  const [some, showMore] = useFirst(all, noun, first);
  return (
    <>
      {some.map(render)}
      {showMore}
    </>
  );
}

/** A run's label with a link to its page. */
export function RunLink({ catalog, run }: { catalog: Catalog; run: RunInfo }) {
  return (
    <a href={links.run(runAddress(catalog, run))}>
      <Line value={run.label || run.name} />
    </a>
  );
}

/** Labels of runs, with the run's name where two have one label. */
export function runLabels(catalog: Catalog): Map<string, string> {
  const labels = catalog.runs.map((run) => run.label || run.model || run.name);
  return new Map(
    catalog.runs.map((run, index) => {
      const label = labels[index]!;
      return [
        run.key,
        labels.filter((namesake) => namesake === label).length > 1
          ? `${label} (${runAddress(catalog, run)})`
          : label,
      ];
    }),
  );
}

/** A choice among runs. */
export function RunChoice(props: {
  catalog: Catalog;
  label: string;
  chosen: string;
  choose(key: string): void;
  without?: string;
}) {
  const labels = runLabels(props.catalog);
  return (
    <label class="choice">
      <span>{props.label}</span>
      <select value={props.chosen} onChange={(event) => props.choose(event.currentTarget.value)}>
        {props.catalog.runs
          .filter((run) => run.key !== props.without)
          .map((run) => (
            <option key={run.key} value={run.key}>
              {numbers.plainName(labels.get(run.key) ?? "")}
            </option>
          ))}
      </select>
    </label>
  );
}

/** A choice among words; nothing where there is no choice. */
export function Choice(props: {
  label: string;
  options: [value: string, words: string][];
  chosen: string;
  choose(value: string): void;
}) {
  return (
    <label class="choice">
      <span>{props.label}</span>
      <select value={props.chosen} onChange={(event) => props.choose(event.currentTarget.value)}>
        {props.options.map(([value, words]) => (
          <option key={value} value={value}>
            {numbers.plainName(words)}
          </option>
        ))}
      </select>
    </label>
  );
}

/** How much a run recorded: "60 answers to 30 samples" where samples were repeated. */
export function recordedText(run: RunInfo): string {
  const samples = run.tasks.reduce((total, task) => total + task.samples, 0);
  if (run.state !== "running" && samples > 0 && run.records > samples)
    return `${numbers.counted(run.records, "answer")} to ${numbers.counted(samples, "sample")}`;
  return numbers.counted(run.records, "sample");
}

/** How far a run is: n of m samples, running, finished or stopped. */
export function StateLine({ run, brief = false }: { run: RunInfo; brief?: boolean }) {
  const hasTotal = run.expected !== null && run.expected > 0;
  const many =
    hasTotal && run.records < run.expected!
      ? `${numbers.count(run.records)} of ${numbers.counted(run.expected!, "sample")}`
      : recordedText(run);
  const took = run.seconds === null ? "" : ` in ${numbers.duration(run.seconds)}`;
  const words =
    run.state === "running"
      ? `Running: ${many}`
      : run.state === "finished"
        ? `Finished: ${many}${took}`
        : `Stopped: ${many}${took}`;
  if (brief && run.state === "finished") return null;
  return (
    <span class={`how ${run.state}`}>
      {words}
      {run.state === "running" && hasTotal && (
        <progress
          value={Math.min(run.records, run.expected!)}
          max={run.expected!}
          aria-label="Samples recorded"
        />
      )}
    </span>
  );
}

/** The axis that several estimates of one unit share. */
export function axisFor(
  estimates: (Estimate | null)[],
  bounded: boolean,
  also: number[] = [],
): Axis {
  const ends = [
    ...also,
    ...estimates.flatMap((estimate) =>
      estimate ? [estimate.value, estimate.low, estimate.high] : [],
    ),
  ];
  const finite = ends.filter((end): end is number => typeof end === "number");
  const below =
    estimates.some(
      (estimate) => estimate !== null && estimate.value !== null && estimate.value < 0,
    ) ||
    (also.some((end) => end <= 0) && finite.some((end) => end < 0));
  return bounded ? pointsAxis(finite, below ? [-1, 1] : [0, 1]) : axisOf(finite, null);
}

const share = (fraction: number) => `${(100 * fraction).toFixed(2)}%`;

/** The ticks that are drawn and labelled: every second one where there are many, with that of 0. */
function ticksOf(axis: Axis, most: number): Axis["ticks"] {
  const first =
    Math.max(
      0,
      axis.ticks.findIndex((tick) => tick.label === "0"),
    ) % 2;
  return axis.ticks.length > most
    ? axis.ticks.filter((_, index) => index % 2 === first)
    : axis.ticks;
}

/**
 * An estimate on an axis: its interval as a line, its value as a point; a line across where `zero`
 * is.
 */
export function Bar({
  estimate,
  axis,
  zero,
  most = 5,
}: {
  estimate: Estimate | null;
  axis: Axis;
  zero?: number;
  most?: number;
}) {
  return (
    <svg class="bar" width="100%" height="20" aria-hidden="true" focusable="false">
      {ticksOf(axis, most).map((tick) => (
        <line key={tick.at} class="tick" x1={share(tick.at)} x2={share(tick.at)} y1="0" y2="100%" />
      ))}
      {zero !== undefined && (
        <line
          class="zero"
          x1={share(axis.place(zero))}
          x2={share(axis.place(zero))}
          y1="0"
          y2="100%"
        />
      )}
      {estimate !== null && numbers.hasInterval(estimate) && (
        <line
          class="range"
          x1={share(axis.place(estimate.low))}
          x2={share(axis.place(estimate.high))}
          y1="50%"
          y2="50%"
        />
      )}
      {estimate !== null && estimate.value !== null && (
        <circle class="point" cx={share(axis.place(estimate.value))} cy="50%" r="4" />
      )}
    </svg>
  );
}

/** The words of an axis, above the bars of a table. */
export function AxisWords({ axis, most = 5 }: { axis: Axis; most?: number }) {
  return (
    <svg class="axis" aria-hidden="true" focusable="false">
      {ticksOf(axis, most).map((tick) => (
        <text
          key={tick.at}
          x={share(tick.at)}
          y="10"
          text-anchor={tick.at < 0.02 ? "start" : tick.at > 0.98 ? "end" : "middle"}
        >
          {tick.label}
        </text>
      ))}
    </svg>
  );
}

/** A value with its interval behind it, or below it. */
export function Score({
  metric,
  below = false,
}: {
  metric: (Estimate & { bounded: boolean }) | null;
  below?: boolean;
}) {
  if (metric === null || metric.value === null) return <span class="quiet">{numbers.NOTHING}</span>;
  const ends = numbers.interval(metric, metric.bounded);
  return (
    <span class={below ? "measure below" : "measure"} title={metric.method || undefined}>
      <span class="value">{numbers.value(metric, metric.bounded)}</span>
      {ends && (
        <>
          {" "}
          <span class="interval">{ends}</span>
        </>
      )}
    </span>
  );
}

/** What a metric is called, and whether less is better. */
export function MetricName({ metric }: { metric: Metric }) {
  return (
    <>
      <Line value={metric.name} />
      {metric.lowerIsBetter && <span class="quiet"> (lower is better)</span>}
    </>
  );
}

/** Scores that are shares have one axis, so that rows can be compared. */
const POINTS_OF_100 = axisFor([], true, [0, 1]);

/** The score of a task in one line, with its interval drawn where it is a share. */
export function TaskScore({ name, metric }: { name: string; metric: Metric | null }) {
  return (
    <div class="task-score">
      <span class="clip task-score-name" title={numbers.plainName(name)}>
        <Line value={name} />
      </span>
      <span class="clip small task-score-metric">{metric && <Line value={metric.name} />}</span>
      <span class="task-score-value">
        <Score metric={metric} />
      </span>
      {metric?.bounded && metric.value !== null && (
        <Bar estimate={metric} axis={POINTS_OF_100} />
      )}
    </div>
  );
}

/** Tasks of a run whose scores are shown in a list of runs; the page of the run has all. */
const SHOWN_TASKS = 3;

/** The overall score where there is one, and the first tasks. */
export function TaskScores({ run }: { run: RunInfo }) {
  const overall =
    run.tasks.length > 1 ? run.groups.find((group) => group.metric?.value != null) : undefined;
  const tasks = run.tasks.slice(0, SHOWN_TASKS - (overall ? 1 : 0));
  const hidden = run.tasks.length - tasks.length;
  return (
    <div class="task-scores">
      {overall && <TaskScore name={overall.label || overall.name} metric={overall.metric} />}
      {tasks.map((task) => (
        <TaskScore key={task.name} name={task.name} metric={task.metrics[0] ?? null} />
      ))}
      {hidden > 0 && <span class="small">and {numbers.counted(hidden, "more task")}</span>}
    </div>
  );
}

/** A table that may be wider than the page: it scrolls in a box that the keyboard reaches. */
export function ScrollBox({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <div class="scroll" role="region" aria-label={label} tabIndex={0}>
      {children}
    </div>
  );
}

/** A sentence of ours; what stands between backticks is a command or a name. */
export function Note({ text }: { text: string }) {
  return (
    <>
      {text.split(/`([^`\n]+)`/).map((piece, index) =>
        index % 2 ? (
          <code key={index}>
            <Line value={piece} />
          </code>
        ) : (
          piece && <Line key={index} value={piece} most={4000} />
        ),
      )}
    </>
  );
}

/** What is said where there is nothing to show. */
export function EmptyNote({ children }: { children: ComponentChildren }) {
  return <p class="nothing">{children}</p>;
}

/** Something that could not be read, or is being read. */
export function Reading({ error, noun }: { error: string | null; noun: string }) {
  return error === null ? (
    <p class="nothing" role="status">
      Reading {noun}…
    </p>
  ) : (
    <p class="nothing bad" role="alert">
      {noun} cannot be read: <Line value={error} />
    </p>
  );
}
