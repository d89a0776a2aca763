/** The same item elsewhere: its other repeats, and the other runs. */
import type { Data, RunData, RunInfo } from "../data/api";
import { links, runAddress, useRead } from "../pages";
import { useState } from "preact/hooks";
import { areShares } from "../samples/shares";
import { categoryOf, number, numberOf } from "../samples/values";
import { Line } from "../text/text";
import { MessagePart } from "./story";
import { tone } from "./words";

/** Runs that are looked into without being asked: reading an index costs time and memory. */
const AT_ONCE = 6;
const REPEATS = 256;

/** Repeats whose labels are written out; of more, the colour is shown and the label is said. */
const IN_WORDS = 8;

function Verdict({ run, index, brief = false }: { run: RunData; index: number; brief?: boolean }) {
  const column = (name: string) => run.columns.find((column) => column.name === name);
  const [outcome, label, failure] = ["outcome", "label", "failure"].map((name) =>
    categoryOf(column(name), index),
  );
  const value = numberOf(column("score"), index);
  const share = areShares(run, categoryOf(column("scorer"), index) ?? "");
  return (
    <>
      <span class={`dot ${tone(outcome ?? null, value, failure ?? null, share)}`} aria-hidden="true" />
      <span class={brief ? "unseen" : "verdict-words"}>
        <Line value={label || outcome || "–"} />{" "}
        <span class="quiet">{value === null ? "" : number(value)}</span>
      </span>
    </>
  );
}

export function Repeats({
  run,
  address,
  task,
  id,
  draw,
  hasSteps,
}: {
  run: RunData;
  address: string;
  task: string;
  id: string;
  draw: number;
  /** Whether it is a trajectory, whose steps can be seen beside another's. */
  hasSteps: boolean;
}) {
  const draws: number[] = [];
  for (let repeat = 0; repeat < REPEATS; repeat++)
    if (run.find(task, id, repeat) >= 0) draws.push(repeat);
  if (draws.length < 2) return null;
  const counterpart = draws.find((repeat) => repeat > draw) ?? draws[0]!;
  return (
    <nav class="repeats" aria-label="Repeats of this item">
      <span class="quiet">Repeat</span>
      {draws.map((repeat) => (
        <a
          href={links.sample(address, task, id, repeat)}
          aria-current={repeat === draw ? "page" : undefined}
        >
          {repeat + 1}{" "}
          <Verdict run={run} index={run.find(task, id, repeat)} brief={draws.length > IN_WORDS} />
        </a>
      ))}
      {hasSteps && (
        <a
          class="plain-link"
          href={links.steps([address, draw], [address, counterpart], task, id)}
        >
          Steps beside repeat {counterpart + 1}
        </a>
      )}
    </nav>
  );
}

export function OtherRuns({
  data,
  info,
  task,
  id,
  draw,
  hasSteps,
}: {
  data: Data;
  info: RunInfo;
  task: string;
  id: string;
  draw: number;
  hasSteps: boolean;
}) {
  const others = data.catalog.runs.filter(
    (run) => run.key !== info.key && run.tasks.some((taskInfo) => taskInfo.name === task),
  );
  const [all, setAll] = useState(others.length <= AT_ONCE);
  if (!others.length) return null;
  const looked = all ? others : others.slice(0, AT_ONCE);
  return (
    <MessagePart title="Other runs">
      <ul class="others">
        {looked.map((run) => (
          <OtherRun
            key={run.key}
            data={data}
            viewed={info}
            run={run}
            task={task}
            id={id}
            draw={draw}
            hasSteps={hasSteps}
          />
        ))}
      </ul>
      {!all && (
        <button type="button" onClick={() => setAll(true)}>
          Look into the other {others.length - looked.length} runs
        </button>
      )}
    </MessagePart>
  );
}

function OtherRun({
  data,
  viewed,
  run,
  task,
  id,
  draw,
  hasSteps,
}: {
  data: Data;
  viewed: RunInfo;
  run: RunInfo;
  task: string;
  id: string;
  draw: number;
  hasSteps: boolean;
}) {
  const { value: runData, error } = useRead(() => data.run(run.key), [data.catalog, run.key]);
  const index = runData
    ? ([draw, 0].map((repeat) => runData.find(task, id, repeat)).find((index) => index >= 0) ?? -1)
    : -1;
  const address = runAddress(data.catalog, run);
  const name = <Line value={run.label || run.name} />;
  if (!runData || index < 0)
    return (
      <li>
        <span class="others-name">{name}</span>{" "}
        <span class="quiet">{runData ? "does not have this item" : (error ?? "reading…")}</span>
      </li>
    );
  return (
    <li>
      <a class="others-name" href={links.sample(address, task, id, runData.draw(index))}>
        {name}
      </a>
      <span>
        <Verdict run={runData} index={index} />
      </span>
      <a href={links.compare(runAddress(data.catalog, viewed), address, { task, id })}>
        side by side
      </a>
      {hasSteps && (
        <a
          href={links.steps(
            [runAddress(data.catalog, viewed), draw],
            [address, runData.draw(index)],
            task,
            id,
          )}
        >
          step by step
        </a>
      )}
    </li>
  );
}
