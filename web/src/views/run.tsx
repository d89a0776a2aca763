/** One run: its scores with intervals, slices, failures, cost, and how it was made. */
import type { Catalog, GroupInfo, Metric, RunInfo, Slice, TaskInfo } from "../data/api";
import { useState } from "preact/hooks";
import type { PageProps } from "../pages";
import { findRun, links, runAddress } from "../pages";
import { useKeys } from "../shell/keys";
import { Line } from "../text/text";
import type { Axis } from "./axis";
import * as numbers from "./numbers";
import {
  AxisWords,
  Bar,
  MetricName,
  EmptyNote,
  Score,
  StateLine,
  axisFor,
  useCatalog,
  useFirst,
} from "./parts";

const FIRST_SLICES = 12;

export function RunPage({ data, parameters, go }: PageProps) {
  const catalog = useCatalog(data);
  const name = parameters["RUN"] ?? "";
  const run = findRun(catalog, name);
  useKeys([{ keys: ["Enter", "o"], does: "All samples", run: () => go(links.samples(name)) }]);
  if (run === undefined) return null; // the shell says so
  return <RunView catalog={catalog} run={run} />;
}

export function RunView({ catalog, run }: { catalog: Catalog; run: RunInfo }) {
  const address = runAddress(catalog, run);
  const kinds = [...new Set(run.tasks.flatMap((task) => Object.keys(task.failures)))];
  const missing = run.tasks.reduce((sum, task) => sum + task.missing, 0);
  const unsure = run.tasks.reduce((sum, task) => sum + task.unsure, 0);
  const [tasks, moreTasks] = useFirst(run.tasks, "tasks");
  return (
    <div class="page views run-page">
      <header>
        <h1>
          <Line value={run.label || run.model || run.name} />
        </h1>
        <p class="lede">
          <Line value={run.name} /> · {numbers.moment(run.started)} ·{" "}
          <span role="status">
            <StateLine run={run} />
          </span>
        </p>
        <p class="doors">
          <a href={links.samples(address)}>All samples</a>
          {missing > 0 && kinds.length > 0 && (
            <a
              href={links.samples(
                address,
                new URLSearchParams(kinds.map((kind) => ["in.failure", kind])),
              )}
            >
              {numbers.count(missing)} missing
            </a>
          )}
          {unsure > 0 && (
            <a href={links.samples(address, { "in.unsure": "unsure" })}>
              {numbers.count(unsure)} unsure
            </a>
          )}
          <a href={links.plots({ run: address })}>Plots</a>
        </p>
      </header>
      <Scores run={run} address={address} />
      <Failures run={run} address={address} />
      {tasks.map((task) => (
        <TaskDetails
          key={task.name}
          task={task}
          address={address}
          single={run.tasks.length === 1}
        />
      ))}
      {moreTasks}
      <Facts run={run} />
    </div>
  );
}

interface Row {
  depth: number;
  group: GroupInfo | null;
  task: TaskInfo | null;
  metric: Metric | null;
}

/** Groups with what they hold below them, then the tasks that are in none. */
export function tree(run: RunInfo): Row[] {
  const groups = new Map(run.groups.map((group) => [group.name, group]));
  const tasks = new Map(run.tasks.map((task) => [task.name, task]));
  const inside = new Set(run.groups.flatMap((group) => group.parts));
  const rows: Row[] = [];
  const seen = new Set<string>();
  const add = (name: string, depth: number) => {
    const group = groups.get(name);
    if (group && !seen.has(name)) {
      seen.add(name);
      rows.push({ depth, group, task: null, metric: group.metric });
      for (const part of group.parts) add(part, Math.min(depth + 1, 8));
      return;
    }
    const task = tasks.get(name);
    if (task) rows.push({ depth, group: null, task, metric: task.metrics[0] ?? null });
  };
  for (const group of [...run.groups].reverse()) if (!inside.has(group.name)) add(group.name, 0);
  for (const task of run.tasks) if (!inside.has(task.name)) add(task.name, 0);
  return rows;
}

function Scores({ run, address }: { run: RunInfo; address: string }) {
  const rows = tree(run);
  const [listed, showMore] = useFirst(rows, "rows");
  if (rows.length === 0)
    return (
      <EmptyNote>
        {run.state === "running" ? "No task has a sample yet." : "This run has no tasks."}
      </EmptyNote>
    );
  const bounded = rows.flatMap((row) => (row.metric?.bounded ? [row.metric] : []));
  const axis = axisFor(bounded, true);
  const drawn = bounded.some((metric) => metric.value !== null);
  const unsure = run.tasks.some((task) => task.unsure > 0);
  return (
    <section>
      <h2>Scores</h2>
      <table class="plain scores">
        <thead>
          <tr>
            <th scope="col">Task</th>
            <th scope="col">Metric</th>
            <th scope="col" class="number">
              Score{bounded.length > 0 && <span class="unit"> of 100</span>}
            </th>
            {drawn && (
              <th class="drawn" aria-hidden="true">
                <AxisWords axis={axis} />
              </th>
            )}
            <th scope="col" class="number">
              Items
            </th>
            <th scope="col" class="number">
              Missing
            </th>
            {unsure && (
              <th scope="col" class="number">
                Unsure
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {listed.map((row, index) => (
            <tr key={index} class={row.group ? "group" : undefined}>
              <th scope="row" class={`depth${row.depth}`}>
                {row.task ? (
                  <a href={links.samples(address, { "in.task": row.task.name })}>
                    <Line value={row.task.name} />
                  </a>
                ) : (
                  <Line value={row.group!.label || row.group!.name} />
                )}
                {row.group && (
                  <span class="quiet"> mean of {numbers.count(row.group.parts.length)}</span>
                )}
              </th>
              <td class="metric" data-title="Metric">
                {row.metric ? <MetricName metric={row.metric} /> : ""}
              </td>
              <td class="number" data-title="Score">
                <Score metric={row.metric} />
              </td>
              {drawn && (
                <td class="drawn" aria-hidden="true">
                  {row.metric?.bounded && <Bar estimate={row.metric} axis={axis} />}
                </td>
              )}
              <td class="number" data-title="Items">
                {row.metric ? numbers.count(row.metric.n) : ""}
              </td>
              <td class="number" data-title="Missing">
                {row.task ? <MissingCount n={row.task.missing} /> : ""}
              </td>
              {unsure && (
                <td class="number" data-title="Unsure">
                  {row.task ? (
                    <UnsureCount
                      n={row.task.unsure}
                      href={links.samples(address, {
                        "in.task": row.task.name,
                        "in.unsure": "unsure",
                      })}
                    />
                  ) : (
                    ""
                  )}
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
      {showMore}
      {drawn && (
        <p class="note quiet">
          Lines are 95% intervals. Hover over a score for how its interval was made.
        </p>
      )}
    </section>
  );
}

function UnsureCount({ n, href }: { n: number; href: string }) {
  return n ? <a href={href}>{numbers.count(n)}</a> : <span class="quiet">0</span>;
}

function MissingCount({ n }: { n: number }) {
  return <span class={n ? "warn" : "quiet"}>{numbers.count(n)}</span>;
}

/** "judge: timeout" is a judge's; what stands alone is the model's. */
function describeParty(kind: string): [who: string, what: string] {
  const cut = kind.indexOf(": ");
  return cut > 0 ? [kind.slice(0, cut), kind.slice(cut + 2)] : ["model", kind];
}

function Failures({ run, address }: { run: RunInfo; address: string }) {
  const kinds = new Map<string, number>();
  for (const task of run.tasks)
    for (const [kind, n] of Object.entries(task.failures))
      kinds.set(kind, (kinds.get(kind) ?? 0) + n);
  const [rows, showMore] = useFirst(
    [...kinds].sort((a, b) => b[1] - a[1]),
    "kinds",
  );
  if (kinds.size === 0) return null;
  return (
    <section>
      <h2>Missing answers</h2>
      <table class="plain">
        <thead>
          <tr>
            <th scope="col">Whose</th>
            <th scope="col">What</th>
            <th scope="col" class="number">
              How many
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map(([kind, n]) => (
            <tr key={kind}>
              <td>
                <Line value={describeParty(kind)[0]} />
              </td>
              <th scope="row">
                <a href={links.samples(address, { "in.failure": kind })}>
                  <Line value={describeParty(kind)[1]} />
                </a>
              </th>
              <td class="number">{numbers.count(n)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {showMore}
    </section>
  );
}

function TaskDetails({
  task,
  address,
  single,
}: {
  task: TaskInfo;
  address: string;
  single: boolean;
}) {
  const [open, setOpen] = useState(single);
  return (
    <details class="task" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <span class="who">
          <Line value={task.name} />
        </span>
        <span class="mark">
          {numbers.counted(task.samples, "sample")}
          {task.slices.length > 0 &&
            `, by ${task.slices.length === 1 ? "slice" : `${task.slices.length} kinds of slices`}`}
        </span>
      </summary>
      {open && <OpenTask task={task} address={address} />}
    </details>
  );
}

function OpenTask({ task, address }: { task: TaskInfo; address: string }) {
  const outcomes = Object.entries(task.outcomes).sort((a, b) => b[1] - a[1]);
  const all = outcomes.reduce((sum, [, n]) => sum + n, 0);
  return (
    <>
      {task.description && (
        <p class="note">
          <Line value={task.description} />
        </p>
      )}
      {outcomes.length > 0 && (
        <dl class="facts outcomes">
          {outcomes.map(([name, n]) => (
            <div key={name}>
              <dt>
                <a href={links.samples(address, { "in.task": task.name, "in.outcome": name })}>
                  <Line value={name} />
                </a>
              </dt>
              <dd>
                {numbers.count(n)}{" "}
                <span class="quiet">{all ? `${numbers.number(n / all, true)}%` : ""}</span>
              </dd>
            </div>
          ))}
        </dl>
      )}
      {task.metrics.length > 0 && (
        <table class="plain">
          <caption>Metrics</caption>
          <thead>
            <tr>
              <th scope="col">Metric</th>
              <th scope="col" class="number">
                Score
              </th>
              <th scope="col" class="number">
                Items
              </th>
              <th scope="col" class="method">
                Interval by
              </th>
            </tr>
          </thead>
          <tbody>
            {task.metrics.map((metric) => (
              <tr key={metric.name}>
                <th scope="row">
                  <MetricName metric={metric} />
                </th>
                <td class="number">
                  <Score metric={metric} />
                </td>
                <td class="number">{numbers.basisText(metric)}</td>
                <td class="method quiet">
                  <Line value={metric.method} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {task.slices.map((slice) => (
        <SliceTable key={slice.key} slice={slice} task={task.name} address={address} />
      ))}
    </>
  );
}

function SliceTable({ slice, task, address }: { slice: Slice; task: string; address: string }) {
  const slices = [...slice.parts].sort((a, b) => b.metric.n - a.metric.n);
  const [listed, showMore] = useFirst(slices, "slices", FIRST_SLICES);
  const bounded = slices.every((subset) => subset.metric.bounded);
  const axis = axisFor(
    slices.map((subset) => subset.metric),
    bounded,
  );
  return (
    <>
      <table class="plain scores">
        <caption>
          By <Line value={slice.key} />, <Line value={slices[0]?.metric.name ?? ""} />
        </caption>
        <thead>
          <tr>
            <th scope="col">
              <Line value={slice.key} />
            </th>
            <th scope="col" class="number">
              Score
            </th>
            <th class="drawn" aria-hidden="true">
              <AxisWords axis={axis} />
            </th>
            <th scope="col" class="number">
              Items
            </th>
          </tr>
        </thead>
        <tbody>
          {listed.map((subset) => (
            <SliceRow
              key={subset.name}
              part={subset}
              axis={axis}
              href={links.samples(address, { "in.task": task, [`in.${slice.key}`]: subset.name })}
            />
          ))}
        </tbody>
      </table>
      {showMore}
    </>
  );
}

function SliceRow({
  part,
  axis,
  href,
}: {
  part: Slice["parts"][number];
  axis: Axis;
  href: string;
}) {
  return (
    <tr>
      <th scope="row">
        <a href={href}>
          <Line value={part.name || "(empty)"} />
        </a>
      </th>
      <td class="number" data-title="Score">
        <Score metric={part.metric} />
      </td>
      <td class="drawn" aria-hidden="true">
        <Bar estimate={part.metric} axis={axis} />
      </td>
      <td class="number" data-title="Items">
        {numbers.basisText(part.metric)}
      </td>
    </tr>
  );
}

function Facts({ run }: { run: RunInfo }) {
  const facts: [string, string][] = [
    ["Model", run.model],
    ["Cost", run.cost === null ? "not known" : numbers.money(run.cost)],
    [
      "Tokens",
      `${numbers.shortNumber(run.inputTokens)} in, ${numbers.shortNumber(run.outputTokens)} out`,
    ],
    ["Time", numbers.duration(run.seconds)],
  ];
  const recorded = new Set(run.facts.map(([name]) => name));
  const [listed, showMore] = useFirst(
    [...facts.filter(([name]) => !recorded.has(name)), ...run.facts],
    "facts",
  );
  return (
    <section>
      <h2>How it was made</h2>
      <dl class="facts">
        {listed.map(([name, value], index) => (
          <div key={index} class={value.length > 80 ? "long" : undefined}>
            <dt>
              <Line value={name} />
            </dt>
            <dd>
              <FactText value={value} />
            </dd>
          </div>
        ))}
      </dl>
      {showMore}
    </section>
  );
}

/** A fact's text; one of several lines, such as a prompt's template, is folded. */
function FactText({ value }: { value: string }) {
  if (!value.includes("\n")) return <Line value={value} />;
  return (
    <details>
      <summary>
        <Line value={value.slice(0, value.indexOf("\n"))} most={80} />
      </summary>
      <div class="said-text">
        {value.split("\n").map((line, index) => (
          <div key={index}>{line ? <Line value={line} /> : "\u00a0"}</div>
        ))}
      </div>
    </details>
  );
}
