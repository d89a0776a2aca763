/**
 * Two runs side by side: the differences with intervals, then item by item, those that one run
 * alone got right first.
 */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type {
  Catalog,
  Comparison,
  Data,
  Estimate,
  RunData,
  RunInfo,
  Sample,
  TaskDifference,
  TaskInfo,
} from "../data/api";
import type { PageProps } from "../pages";
import { findRun, links, runAddress, useRead, useRun } from "../pages";
import { useKeys } from "../shell/keys";
import { Line, Text } from "../text/text";
import type { Axis } from "./axis";
import { axisOf, pointsAxis } from "./axis";
import { Targets } from "../sample/scores";
import { areShares } from "../samples/shares";
import { LabelThis } from "./label_this";
import * as numbers from "./numbers";
import {
  KINDS,
  type Kind,
  type Pairs,
  selectPairs,
  counts,
  flipComparison,
  isOf,
  pairUp,
  scoreChange,
  taskNames,
  toItem,
  countWins,
} from "./pairs";
import {
  AxisWords,
  Bar,
  Choice,
  Note,
  EmptyNote,
  Reading,
  RunChoice,
  RunLink,
  FirstOf,
  StateLine,
  TaskScore,
  useCatalog,
  useFirst,
} from "./parts";
import { differences } from "./words";

export function ComparePage({ data, parameters, query, go }: PageProps) {
  const catalog = useCatalog(data);
  const a = findRun(catalog, parameters["A"] ?? "");
  const b = findRun(catalog, parameters["B"] ?? "");
  if (a === undefined || b === undefined || a.key === b.key) {
    return (
      <div class="page views">
        <h1>Compare</h1>
        <EmptyNote>
          {a === undefined || b === undefined ? (
            <>
              This page holds no run called{" "}
              <Line value={(a === undefined ? parameters["A"] : parameters["B"]) ?? ""} />.{" "}
              <a href={links.first()}>All runs</a>
            </>
          ) : (
            <>
              A run is compared with another one, not with itself.{" "}
              <a href={links.first()}>All runs</a>
            </>
          )}
        </EmptyNote>
      </div>
    );
  }
  const open = (first: RunInfo, second: RunInfo) =>
    go(links.compare(runAddress(catalog, first), runAddress(catalog, second), query));
  const by = (key: string) => catalog.runs.find((run) => run.key === key);
  return (
    <div class="page views compare-page">
      <header>
        <h1>Two runs side by side</h1>
        <div class="sides">
          <RunSide
            catalog={catalog}
            name="A"
            run={a}
            without={b.key}
            choose={(key) => {
              const run = by(key);
              if (run) open(run, b);
            }}
          />
          <RunSide
            catalog={catalog}
            name="B"
            run={b}
            without={a.key}
            choose={(key) => {
              const run = by(key);
              if (run) open(a, run);
            }}
          />
          <button type="button" onClick={() => open(b, a)}>
            Swap A and B
          </button>
        </div>
      </header>
      <ComparedRuns
        key={`${a.key}\n${b.key}`}
        data={data}
        catalog={catalog}
        a={a}
        b={b}
        query={query}
        go={go}
      />
    </div>
  );
}

function RunSide(props: {
  catalog: Catalog;
  name: string;
  run: RunInfo;
  without: string;
  choose(key: string): void;
}) {
  return (
    <div class={`side side-${props.name.toLowerCase()}`}>
      <p class="side-name">
        <b>{props.name}</b> <RunLink catalog={props.catalog} run={props.run} />
      </p>
      <p class="small">
        <Line value={props.run.name} /> <StateLine run={props.run} brief />
      </p>
      {props.catalog.runs.length > 2 && (
        <RunChoice
          catalog={props.catalog}
          label="Another"
          chosen={props.run.key}
          choose={props.choose}
          without={props.without}
        />
      )}
    </div>
  );
}

interface ComparedProps {
  data: Data;
  catalog: Catalog;
  a: RunInfo;
  b: RunInfo;
  query: URLSearchParams;
  go: PageProps["go"];
}

function ComparedRuns({ data, catalog, a, b, query, go }: ComparedProps) {
  const runA = useRun(data, a.key);
  const runB = useRun(data, b.key);
  const compared = useRead(
    () =>
      data
        .comparison(a.key, b.key)
        .then((comparison) => ({
          comparison:
            comparison && comparison.a !== a.key ? flipComparison(comparison) : comparison,
        })),
    [data, a.key, b.key, runA.value, runB.value],
  );
  const error = runA.error ?? runB.error;
  const refused = compared.value?.comparison?.refused;
  const comparison = refused ? null : (compared.value?.comparison ?? null);
  if (error !== null || runA.value === null || runB.value === null)
    return <Reading error={error} noun="the samples of both runs" />;
  return (
    <>
      {compared.error !== null ? (
        <Reading error={compared.error} noun="The comparison" />
      ) : compared.value === null ? (
        <Reading error={null} noun="the comparison" />
      ) : refused ? (
        <p class="note warn">
          There is no interval of their difference. <Note text={refused} />
        </p>
      ) : comparison !== null ? (
        <Summary comparison={comparison} taskOf={taskNames(runA.value)} />
      ) : (
        <p class="note quiet">
          No interval of their difference is at hand
          {a.state === "running" || b.state === "running" ? " while a run is going" : " here"}:{" "}
          <code>evalwright compare</code> gives it, or says why there is none.
        </p>
      )}
      <TasksOfOne a={a} b={b} />
      <PairedItems
        data={data}
        catalog={catalog}
        a={a}
        b={b}
        query={query}
        go={go}
        runA={runA.value}
        runB={runB.value}
        comparison={comparison}
      />
    </>
  );
}

/** The scores on tasks, and by metrics, that one of the two runs alone has. */
function TasksOfOne({ a, b }: { a: RunInfo; b: RunInfo }) {
  const sides: [string, RunInfo, TaskInfo[]][] = [
    ["A", a, tasksWithout(a, b)],
    ["B", b, tasksWithout(b, a)],
  ];
  if (sides.every(([, , tasks]) => tasks.length === 0)) return null;
  return (
    <section>
      <h2>What only one run has</h2>
      <div class="alone">
        {sides.map(
          ([name, run, tasks]) =>
            tasks.length > 0 && (
              <div key={name} class={`side side-${name.toLowerCase()}`}>
                <p class="side-name">
                  <b>{name}</b> <Line value={run.label || run.name} />
                </p>
                <FirstOf
                  all={tasks}
                  noun="tasks"
                  first={12}
                  render={(task) => (
                    <TaskScore key={task.name} name={task.name} metric={task.metrics[0] ?? null} />
                  )}
                />
              </div>
            ),
        )}
      </div>
    </section>
  );
}

const tasksWithout = (run: RunInfo, counterpart: RunInfo): TaskInfo[] =>
  run.tasks.filter((task) => {
    const same = counterpart.tasks.find(({ name }) => name === task.name);
    return same === undefined || same.metrics[0]?.name !== task.metrics[0]?.name;
  });

/** An axis for differences, with 0 on it. */
export function differenceAxis(estimates: Estimate[], bounded: boolean): Axis {
  const ends = [
    0,
    ...estimates.flatMap((estimate) => [estimate.value, estimate.low, estimate.high]),
  ].filter((end): end is number => typeof end === "number");
  return bounded ? pointsAxis(ends, [-1, 1]) : axisOf(ends, null);
}

/** bounded: whether it is of shares. */
type DrawnAxis = Axis & { bounded: boolean };

/**
 * The axis of the differences that are drawn: of the shares, or of all where they are by one
 * metric; null where they have no unit in common.
 */
function comparisonAxis({ tasks, overall }: Comparison): DrawnAxis | null {
  const shares = tasks.filter((task) => task.bounded).map((task) => task.difference);
  if (overall) shares.push(overall.difference);
  if (shares.length > 0) return { ...differenceAxis(shares, true), bounded: true };
  const metrics = new Set(tasks.map((task) => task.metric));
  if (metrics.size !== 1) return null;
  const differences = tasks.map((task) => task.difference);
  return { ...differenceAxis(differences, false), bounded: false };
}

function Summary({
  comparison,
  taskOf,
}: {
  comparison: Comparison;
  taskOf(place: number): string;
}) {
  const won = useMemo(() => countWins(comparison.pairs, taskOf), [comparison]);
  const [tasks, moreTasks] = useFirst(comparison.tasks, "tasks");
  const [notes, moreNotes] = useFirst(
    [
      ...comparison.tasks
        .map((task) => task.sentence)
        .filter((sentence) => !comparison.conclusion.includes(sentence)),
      ...comparison.tasks
        .filter((task) => task.onlyA || task.onlyB)
        .map(({ task, onlyA, onlyB }) => {
          const ofA = numbers.counted(onlyA, "item");
          const ofB = numbers.counted(onlyB, "item");
          return `${task}: left out of the comparison, ${ofA} that only A has and ${ofB} that only B has.`;
        }),
      ...comparison.notes,
    ],
    "remarks",
  );
  const axis = comparisonAxis(comparison);
  return (
    <section>
      <p class="conclusion strong">
        <Note text={comparison.headline ?? comparison.conclusion} />
      </p>
      {comparison.tasks.length > 0 && (
        <table class="plain scores differences">
          <caption>A − B, with its interval; in points of 100 where the metric is a share.</caption>
          <thead>
            <tr>
              <th scope="col">Task</th>
              <th scope="col" class="number">
                A
              </th>
              <th scope="col" class="number">
                B
              </th>
              <th scope="col" class="number">
                A − B
              </th>
              {axis !== null && (
                <th class="drawn" aria-hidden="true">
                  <AxisWords axis={axis} />
                </th>
              )}
              <th scope="col" class="number">
                p
              </th>
              <th scope="col" class="number">
                A better : B better
              </th>
              <th scope="col" class="number">
                Items
              </th>
            </tr>
          </thead>
          <tbody>
            {tasks.map((task) => (
              <Difference
                key={task.task + task.metric}
                task={task}
                axis={axis}
                won={won.get(task.task)}
              />
            ))}
            {comparison.overall && (
              <tr class="group">
                <th scope="row">Mean over tasks</th>
                <td class="number" />
                <td class="number" />
                <Gap
                  difference={comparison.overall.difference}
                  bounded
                  axis={axis}
                  claimed={undefined}
                />
                <td class="number" data-title="p">
                  {numbers.pValue(comparison.overall.pValue ?? null)}
                </td>
                <td />
                <td class="number" data-title="Items">
                  {numbers.basisText(comparison.overall.difference)}
                </td>
              </tr>
            )}
          </tbody>
        </table>
      )}
      {moreTasks}
      <details class="more">
        <summary>
          The whole conclusion, what these numbers mean
          {comparison.notes.length > 0 &&
            `, and ${numbers.counted(comparison.notes.length, "remark")} on how the runs were made`}
        </summary>
        <p class="note">
          <Note text={comparison.conclusion} />
        </p>
        <ul class="notes">
          {notes.map((note, index) => (
            <li key={index}>
              <Note text={note} />
            </li>
          ))}
        </ul>
        {moreNotes}
      </details>
    </section>
  );
}

function Gap({
  difference,
  bounded,
  axis,
  claimed,
}: {
  difference: Estimate;
  bounded: boolean;
  axis: DrawnAxis | null;
  /** What the conclusion claims, which counts the other tests; the interval alone where unknown. */
  claimed: boolean | undefined;
}) {
  const clear =
    claimed ??
    (numbers.hasInterval(difference) && (difference.low > 0 || difference.high < 0));
  return (
    <>
      <td class="number" data-title="A − B">
        <span class={clear ? "measure strong" : "measure"} title={difference.method || undefined}>
          <span class="value">{numbers.signed(difference, bounded)}</span>{" "}
          <span class="interval">{numbers.interval(difference, bounded)}</span>
        </span>
      </td>
      {axis !== null && (
        <td class="drawn" aria-hidden="true">
          {bounded === axis.bounded && <Bar estimate={difference} axis={axis} zero={0} />}
        </td>
      )}
    </>
  );
}

function Difference({
  task,
  axis,
  won,
}: {
  task: TaskDifference;
  axis: DrawnAxis | null;
  won: [a: number, b: number] | undefined;
}) {
  return (
    <tr>
      <th scope="row">
        <Line value={task.task} />{" "}
        <span class="small">
          <Line value={task.metric} />
          {task.lowerIsBetter && " (lower is better)"}
          {!task.paired && ", not paired"}
        </span>
      </th>
      <td class="number" data-title="A">
        {numbers.number(task.a, task.bounded)}
      </td>
      <td class="number" data-title="B">
        {numbers.number(task.b, task.bounded)}
      </td>
      <Gap
        difference={task.difference}
        bounded={task.bounded}
        axis={axis}
        claimed={task.claimed}
      />
      <td class="number" data-title="p">
        {numbers.pValue(task.pValue)}
      </td>
      <td class="number" data-title="A better : B better">
        {task.paired && won ? won.map(numbers.count).join(" : ") : ""}
      </td>
      <td class="number" data-title="Items">
        {numbers.basisText(task.difference)}
      </td>
    </tr>
  );
}

const PAGE = 50;

function PairedItems(
  props: ComparedProps & { runA: RunData; runB: RunData; comparison: Comparison | null },
) {
  const { runA, runB, comparison, query, go, catalog, a, b } = props;
  const list = useRef<HTMLOListElement>(null);
  const pairs: Pairs = useMemo(
    () => comparison?.pairs ?? pairUp(runA, runB),
    [comparison, runA, runB],
  );
  const taskOf = useMemo(() => taskNames(runA), [runA]);
  const task = query.get("task") ?? "";
  const tasks = useMemo(
    () => [...new Set(Array.from(pairs.a, (index) => taskOf(index)))],
    [pairs, taskOf],
  );
  const many = useMemo(() => counts(pairs, taskOf, task), [pairs, taskOf, task]);
  const [inTask, id] = [query.get("of") ?? task, query.get("id")];
  const named = useMemo(() => {
    if (id === null) return -1;
    const first = runA.find(inTask, id, 0);
    // An item may lack its first repeat.
    return first >= 0
      ? pairs.a.indexOf(first)
      : pairs.a.findIndex(
          (index) => runA.id(index) === id && (!inTask || taskOf(index) === inTask),
        );
  }, [pairs, runA, taskOf, inTask, id]);
  const unknown = id !== null && named < 0;
  // A link to an item that both runs scored alike shows it among all.
  const askedKind = KINDS.find(([name]) => name === query.get("show"))?.[0];
  const flip =
    named < 0 ? many.get("flips")! > 0 : isOf("flips", pairs.scoreA[named]!, pairs.scoreB[named]!);
  const kind: Kind = askedKind ?? (flip ? "flips" : "all");
  const places = useMemo(() => selectPairs(pairs, kind, taskOf, task), [pairs, kind, taskOf, task]);
  const at = unknown ? -1 : Math.max(0, named < 0 ? 0 : places.indexOf(named));
  const current = places[at];

  const address = (change: Record<string, string>) => {
    const next = new URLSearchParams(query);
    for (const [name, value] of Object.entries(change))
      if (value) next.set(name, value);
      else next.delete(name);
    return links.compare(runAddress(catalog, a), runAddress(catalog, b), next);
  };
  const to = (pairIndex: number) =>
    address({
      show: askedKind ?? "",
      of: task ? "" : taskOf(pairs.a[pairIndex]!),
      id: runA.id(pairs.a[pairIndex]!),
    });
  const wholeSample = (pairIndex: number) => {
    const sampleIndex = pairs.a[pairIndex]!;
    return links.sample(
      runAddress(catalog, a),
      taskOf(sampleIndex),
      runA.id(sampleIndex),
      runA.draw(sampleIndex),
    );
  };
  const step = (by: number) => {
    const next = at + by;
    if (next < 0 || next >= places.length) return;
    toItem.wanted = true;
    go(to(places[next]!), true);
  };
  useKeys([
    {
      keys: ["j", "n", "ArrowDown"],
      does: "Next item",
      run: (event) => {
        event.preventDefault();
        step(1);
      },
    },
    {
      keys: ["k", "p", "ArrowUp"],
      does: "Previous item",
      run: (event) => {
        event.preventDefault();
        step(-1);
      },
    },
    {
      keys: ["Enter", "o"],
      does: "The whole sample of A",
      run: () => current !== undefined && go(wholeSample(current)),
    },
    {
      keys: ["s"],
      does: "Swap A and B",
      run: () => go(links.compare(runAddress(catalog, b), runAddress(catalog, a), query)),
    },
  ]);
  useEffect(() => () => void (toItem.wanted = false), []);
  useEffect(() => {
    // The list alone: the page stays where it is.
    const box = list.current?.parentElement;
    const item = box?.querySelector("[aria-current=true]");
    if (!box || !item) return;
    const [outer, inner] = [box.getBoundingClientRect(), item.getBoundingClientRect()];
    if (inner.top < outer.top) box.scrollTop -= outer.top - inner.top;
    else if (inner.bottom > outer.bottom) box.scrollTop += inner.bottom - outer.bottom;
  }, [at, places]);

  const page = Math.floor(Math.max(0, at) / PAGE) * PAGE;
  const listed = Array.from(places.subarray(page, page + PAGE));
  return (
    <section class="items">
      <h2>Item by item</h2>
      {pairs.a.length === 0 ? (
        <EmptyNote>The two runs have no item in common: no task and id is in both.</EmptyNote>
      ) : (
        <>
          <div class="kinds" role="group" aria-label="Which items">
            {KINDS.filter(([name]) => many.get(name)! > 0 || name === kind).map(([name, words]) => (
              <a
                key={name}
                href={address({ show: name, of: "", id: "" })}
                aria-current={name === kind ? "true" : undefined}
              >
                {words} <span class="quiet">{numbers.count(many.get(name)!)}</span>
              </a>
            ))}
          </div>
          {tasks.length > 1 && (
            <Choice
              label="Task"
              chosen={task}
              options={[["", "all tasks"], ...tasks.map((name): [string, string] => [name, name])]}
              choose={(name) => go(address({ task: name, of: "", id: "" }), true)}
            />
          )}
          {places.length === 0 && !unknown ? (
            <EmptyNote>No item is of this kind.</EmptyNote>
          ) : (
            <div class="beside">
              <nav class="list" aria-label="Items">
                <ol ref={list}>
                  {listed.map((pairIndex, nth) => (
                    <PairedItem
                      key={pairIndex}
                      pairs={pairs}
                      place={pairIndex}
                      run={runA}
                      task={tasks.length > 1 ? taskOf(pairs.a[pairIndex]!) : ""}
                      href={to(pairIndex)}
                      current={page + nth === at}
                    />
                  ))}
                </ol>
                {places.length > PAGE && (
                  <p class="paging">
                    <button
                      type="button"
                      disabled={page === 0}
                      onClick={() => go(to(places[page - PAGE]!), true)}
                    >
                      ‹ Previous
                    </button>
                    <span>
                      {numbers.count(page + 1)} to{" "}
                      {numbers.count(Math.min(page + PAGE, places.length))} of{" "}
                      {numbers.count(places.length)}
                    </span>
                    <button
                      type="button"
                      disabled={page + PAGE >= places.length}
                      onClick={() => go(to(places[page + PAGE]!), true)}
                    >
                      Next ›
                    </button>
                  </p>
                )}
              </nav>
              {current === undefined ? (
                <EmptyNote>
                  These runs have no item '<Line value={id ?? ""} />'
                  {inTask && (
                    <>
                      {" "}
                      of the task <Line value={inTask} />
                    </>
                  )}
                  .
                </EmptyNote>
              ) : (
                <Pair
                  key={current}
                  {...props}
                  pairs={pairs}
                  place={current}
                  at={at}
                  of={places.length}
                  step={step}
                />
              )}
            </div>
          )}
        </>
      )}
    </section>
  );
}

function PairedItem(props: {
  pairs: Pairs;
  place: number;
  run: RunData;
  task: string;
  href: string;
  current: boolean;
}) {
  const { pairs, place, run } = props;
  const [, again] = useState(0);
  useEffect(() => run.onPreviews(() => again((n) => n + 1)), [run]);
  const sampleIndex = pairs.a[place]!;
  const words = scoreChange(pairs.scoreA[place]!, pairs.scoreB[place]!);
  return (
    <li>
      <a href={props.href} aria-current={props.current ? "true" : undefined}>
        <span class="question">
          <Line value={run.preview(sampleIndex)?.question || run.id(sampleIndex)} />
        </span>
        <span class="small">
          {words}
          {props.task && (
            <>
              {" "}
              · <Line value={props.task} />
            </>
          )}{" "}
          · <Line value={run.id(sampleIndex)} />
        </span>
      </a>
    </li>
  );
}

interface PairProps extends ComparedProps {
  runA: RunData;
  runB: RunData;
  pairs: Pairs;
  place: number;
  at: number;
  of: number;
  step(by: number): void;
}

const sameTexts = (a: Sample, b: Sample) =>
  questionOf(a) === questionOf(b) && JSON.stringify(a.choices) === JSON.stringify(b.choices);

function Pair({ catalog, a, b, runA, runB, pairs, place, at, of, step }: PairProps) {
  const samples = useRead(
    () => Promise.all([runA.sample(pairs.a[place]!), runB.sample(pairs.b[place]!)]),
    [runA, runB, pairs, place],
  );
  const panel = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    if (!toItem.wanted || samples.value === null) return;
    toItem.wanted = false;
    panel.current?.scrollIntoView({ block: "start" });
  }, [samples.value]);
  return (
    <article ref={panel} class="pair-of-samples" aria-label="Both answers">
      <p class="paging">
        <button type="button" disabled={at === 0} onClick={() => step(-1)}>
          ‹ Previous <kbd>k</kbd>
        </button>
        <span role="status">
          {numbers.count(at + 1)} of {numbers.count(of)}:{" "}
          {scoreChange(pairs.scoreA[place]!, pairs.scoreB[place]!)}
        </span>
        <button type="button" disabled={at + 1 >= of} onClick={() => step(1)}>
          Next <kbd>j</kbd> ›
        </button>
      </p>
      {samples.value === null ? (
        <Reading error={samples.error} noun="both samples" />
      ) : (
        <TwoSamples
          catalog={catalog}
          a={a}
          b={b}
          sampleA={samples.value[0]}
          sampleB={samples.value[1]}
          scores={[pairs.scoreA[place]!, pairs.scoreB[place]!]}
          runA={runA}
          runB={runB}
        />
      )}
    </article>
  );
}

/** The sample's input, else what the user said last. */
function questionOf(sample: Sample): string {
  const message = sample.messages.filter(({ role }) => role === "user").at(-1);
  const parts = message?.parts.filter((part) => typeof part === "string") ?? [];
  return sample.input || parts.join("\n");
}

/** The text of the answer, and a line for each call of a tool in the last reply. */
function answerOf(sample: Sample): string {
  // The call that submits an answer says what the answer says.
  const isSubmitted = sample.answer !== "" && sample.trajectory?.ended === "submit";
  const calls = (isSubmitted ? [] : (sample.replies.at(-1)?.calls ?? [])).map(
    (call) => `${call.name}(${call.arguments === "{}" ? "" : call.arguments})`,
  );
  const choice = sample.choice === null ? "" : (sample.choices[sample.choice] ?? "");
  return [sample.answer || choice, ...calls].filter(Boolean).join("\n");
}

function TwoSamples({
  catalog,
  a,
  b,
  sampleA,
  sampleB,
  scores,
  runA,
  runB,
}: {
  catalog: Catalog;
  a: RunInfo;
  b: RunInfo;
  sampleA: Sample;
  sampleB: Sample;
  scores: [number, number];
  runA: RunData;
  runB: RunData;
}) {
  const [texts, reasons] = useMemo(
    () => [
      differences(answerOf(sampleA), answerOf(sampleB)),
      differences(sampleA.reasoning, sampleB.reasoning),
    ],
    [sampleA, sampleB],
  );
  const same = sameTexts(sampleA, sampleB);
  const targets = sampleA.targets.length
    ? sampleA.targets
    : sampleA.gold.map((index) => sampleA.choices[index] ?? "");
  return (
    <>
      <p class="small">
        <Line value={sampleA.task} /> · <Line value={sampleA.id} />
        {sampleA.draw > 0 && `, repeat ${sampleA.draw + 1}`}
      </p>
      {same ? (
        <Question sample={sampleA} />
      ) : (
        <p class="note warn">
          The two runs asked different things here: each question stands above its answer.
        </p>
      )}
      {targets.length > 0 && (
        <>
          <h3>Expected</h3>
          <Targets targets={targets} />
        </>
      )}
      <div class="answers">
        {(
          [
            [a, sampleA, texts.a, reasons.a, "A"],
            [b, sampleB, texts.b, reasons.b, "B"],
          ] as const
        ).map(([run, sample, marks, thought, name], nth) => (
          <div key={name} class={`answer answer-${name.toLowerCase()}`}>
            <h3>
              {name} <RunLink catalog={catalog} run={run} />
            </h3>
            <p class="judged">
              <Verdict
                sample={sample}
                score={scores[nth]!}
                share={areShares(nth ? runB : runA, sample.scores[0]?.scorer ?? "")}
              />
            </p>
            {!same && <Question sample={sample} />}
            {sample.failure ? (
              <p class="bad">
                <Line
                  value={`${sample.failure.party || "The model"}: ${sample.failure.kind}. ${sample.failure.message}`}
                />
              </p>
            ) : (
              <Text value={answerOf(sample)} marks={marks} />
            )}
            {sample.reasoning && (
              <details class="more">
                <summary>Reasoning</summary>
                <Text value={sample.reasoning} marks={thought} />
              </details>
            )}
            <FirstOf
              all={sample.scores.filter((score) => score.explanation)}
              noun="reasons"
              first={50}
              render={(score) => (
                <div key={score.scorer} class="why">
                  <h4>
                    <Line value={score.scorer} />:
                  </h4>
                  <Text value={score.explanation} />
                </div>
              )}
            />
            <p class="doors">
              <a href={links.sample(runAddress(catalog, run), sample.task, sample.id, sample.draw)}>
                The whole sample
              </a>
              <LabelThis run={run} task={sample.task} id={sample.id} draw={sample.draw} />
            </p>
          </div>
        ))}
      </div>
      {sampleA.trajectory && sampleB.trajectory && (
        <p>
          <a
            href={links.steps(
              [runAddress(catalog, a), sampleA.draw],
              [runAddress(catalog, b), sampleB.draw],
              sampleA.task,
              sampleA.id,
            )}
          >
            Both transcripts, step by step
          </a>
        </p>
      )}
      <p class="note quiet">Highlighted words appear in only one answer.</p>
    </>
  );
}

function Question({ sample }: { sample: Sample }) {
  const [choices, showMore] = useFirst(sample.choices, "choices");
  return (
    <>
      <h3>Question</h3>
      <Text value={questionOf(sample)} />
      {sample.choices.length > 0 && (
        <ol class="choices" type="A">
          {choices.map((choice, index) => (
            <li key={index} class={sample.gold.includes(index) ? "strong" : undefined}>
              <Line value={choice} />
            </li>
          ))}
        </ol>
      )}
      {showMore}
    </>
  );
}

function Verdict({ sample, score, share }: { sample: Sample; score: number; share: boolean }) {
  const right = share && score === 1;
  const wrong = share && score === 0;
  const words = right ? "right" : wrong ? "wrong" : `score ${numbers.number(score, false)}`;
  return (
    <>
      {Number.isNaN(score) ? (
        <span class="warn">no score</span>
      ) : (
        <span class={right ? "good" : wrong ? "bad" : "strong"}>{words}</span>
      )}
      {sample.outcome && (
        <span class="quiet">
          {" "}
          · <Line value={sample.outcome} />
        </span>
      )}
      {sample.scores.slice(0, 20).map(
        (score) =>
          score.label && (
            <span key={score.scorer} class="quiet">
              {" "}
              · <Line value={score.scorer} />: <Line value={score.label} />
            </span>
          ),
      )}
    </>
  );
}
