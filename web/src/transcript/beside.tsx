/** Two trajectories of one item side by side, aligned by equal calls. */
import { useMemo, useRef, useState } from "preact/hooks";
import type { RunData, RunInfo, Sample, Step, Trajectory } from "../data/api";
import { type AlignedRow, align } from "../data/align";
import { argumentsOf, endingInWords } from "../data/trajectory";
import { findRun, links, type PageProps, useRead, useRun } from "../pages";
import { Fold } from "../sample/fold";
import { mainScore, outcomeInWords, tone } from "../sample/words";
import { areShares } from "../samples/shares";
import { count, counted, number } from "../samples/values";
import { announce } from "../shell/copy";
import { useKeys } from "../shell/keys";
import { Line } from "../text/text";
import { EmptyNote, Reading, RunLink } from "../views/parts";
import { headEnd } from "./output";
import { callInOneLine, stateOf, StepView, totalInWords, usedInWords } from "./step";

/** Rows that are laid out at first, and with each further click. */
const WINDOW_ROWS = 60;
/** Equal steps in a row beyond which the middle ones are folded. */
const FEW_EQUAL = 4;
/** Of a result, in a row. */
const RESULT_CHARS = 240;
const RESULT_LINES = 4;

interface Side {
  name: "A" | "B";
  info: RunInfo;
  run: RunData;
  sample: Sample;
  trajectory: Trajectory;
  address(step: number): string;
}

export function StepsPage({ data, parameters }: PageProps) {
  const { A = "", FIRST = "0", B = "", SECOND = "0", TASK = "", ID = "" } = parameters;
  const [infoA, infoB] = [findRun(data.catalog, A), findRun(data.catalog, B)];
  const runA = useRun(data, infoA?.key ?? "");
  const runB = useRun(data, infoB?.key ?? "");
  const samples = useRead(async () => {
    if (!runA.value || !runB.value) return null;
    const [a, b] = [runA.value.find(TASK, ID, Number(FIRST)), runB.value.find(TASK, ID, Number(SECOND))];
    return Promise.all([
      a < 0 ? null : runA.value.sample(a),
      b < 0 ? null : runB.value.sample(b),
    ]);
  }, [runA.value, runB.value]);
  const missing = !infoA ? A : !infoB ? B : null;
  const body = () => {
    if (missing !== null)
      return (
        <EmptyNote>
          This page holds no run called <Line value={missing} />.
        </EmptyNote>
      );
    if (!samples.value || !runA.value || !runB.value)
      return (
        <Reading error={runA.error ?? runB.error ?? samples.error} noun="both trajectories" />
      );
    const [a, b] = samples.value;
    if (!a?.trajectory || !b?.trajectory)
      return (
        <EmptyNote>
          {a && b
            ? "These samples have no steps to compare."
            : "One of the two runs does not have this sample."}
        </EmptyNote>
      );
    const side = (name: "A" | "B", info: RunInfo, run: RunData, sample: Sample, address: string): Side => ({
      name,
      info,
      run,
      sample,
      trajectory: sample.trajectory!,
      address: (step) =>
        links.sample(address, sample.task, sample.id, sample.draw, { step: String(step + 1) }),
    });
    return (
      <TwoTrajectories
        catalog={data.catalog}
        a={side("A", infoA!, runA.value, a, A)}
        b={side("B", infoB!, runB.value, b, B)}
      />
    );
  };
  return (
    <div class="page sample views">
      <h1 class="id">
        <Line value={ID} />, step by step
      </h1>
      {body()}
    </div>
  );
}

function TwoTrajectories({
  catalog,
  a,
  b,
}: {
  catalog: Parameters<typeof RunLink>[0]["catalog"];
  a: Side;
  b: Side;
}) {
  const rows = useMemo(
    () => align(a.trajectory.steps, b.trajectory.steps),
    [a.trajectory, b.trajectory],
  );
  const root = useRef<HTMLDivElement>(null);
  const [shown, setShown] = useState(WINDOW_ROWS);
  const [opened, setOpened] = useState<ReadonlySet<number>>(new Set());
  const [current, setCurrent] = useState(-1);
  const groups = useMemo(() => grouped(rows), [rows]);
  const equal = rows.filter((row) => row.same).length;
  const first = rows.findIndex((row) => !row.same);
  const to = (by: number) => {
    const differing = rows.flatMap((row, i) => (row.same ? [] : [i]));
    const next =
      by > 0
        ? differing.find((i) => i > current)
        : differing.filter((i) => i < current).at(-1);
    if (next === undefined) return announce("No further step differs.");
    setCurrent(next);
    setShown((old) => Math.max(old, next + WINDOW_ROWS));
    requestAnimationFrame(() =>
      root.current?.querySelector(`#pair-${next + 1}`)?.scrollIntoView({ block: "center" }),
    );
  };
  useKeys([
    { keys: ["j"], does: "Next step that differs", run: () => to(1) },
    { keys: ["k"], does: "Previous step that differs", run: () => to(-1) },
  ]);
  return (
    <div ref={root}>
      <p class="lede">
        <Line value={a.sample.task} /> ·{" "}
        {first < 0
          ? `all ${counted(equal, "step")} are the same`
          : `${count(equal)} of ${counted(rows.length, "step")} the same; they part at step ${count(
              (rows[first]!.a ?? rows[first]!.b ?? 0) + 1,
            )}`}
      </p>
      <div class="pairs-head">
        {[a, b].map((side) => (
          <SideHead key={side.name} catalog={catalog} side={side} />
        ))}
      </div>
      <ol class="step-pairs">
        {groups.map(({ begin, end, folded }) => {
          if (begin >= shown) return null;
          if (folded && !opened.has(begin))
            return (
              <li key={begin} class="pair-fold">
                <button
                  type="button"
                  onClick={() => setOpened(new Set([...opened, begin]))}
                >
                  {counted(end - begin, "equal step")}: show
                </button>
              </li>
            );
          return rows.slice(begin, Math.min(end, shown)).map((row, i) => (
            <PairRow
              key={begin + i}
              number={begin + i}
              row={row}
              a={a}
              b={b}
              current={begin + i === current}
            />
          ));
        })}
      </ol>
      {shown < rows.length && (
        <p class="more-steps">
          <button type="button" onClick={() => setShown(shown + WINDOW_ROWS)}>
            Show more
          </button>{" "}
          <span class="quiet">{counted(rows.length - shown, "row")} below</span>
        </p>
      )}
      <div class="pairs-head">
        {[a, b].map((side) => (
          <p key={side.name} class="mark-line">
            {side.trajectory.ended && <Line value={endingInWords(side.trajectory.ended)} />}
          </p>
        ))}
      </div>
    </div>
  );
}

/** Rows in groups: the middle of many equal steps is folded. */
function grouped(rows: AlignedRow[]): { begin: number; end: number; folded: boolean }[] {
  const groups: { begin: number; end: number; folded: boolean }[] = [];
  let begin = 0;
  while (begin < rows.length) {
    let end = begin;
    while (end < rows.length && rows[end]!.same === rows[begin]!.same) end++;
    if (rows[begin]!.same && end - begin > FEW_EQUAL) {
      groups.push({ begin, end: begin + 1, folded: false });
      groups.push({ begin: begin + 1, end: end - 1, folded: true });
      groups.push({ begin: end - 1, end, folded: false });
    } else groups.push({ begin, end, folded: false });
    begin = end;
  }
  return groups;
}

function SideHead({
  catalog,
  side,
}: {
  catalog: Parameters<typeof RunLink>[0]["catalog"];
  side: Side;
}) {
  const { sample, trajectory } = side;
  const score = mainScore(sample);
  const total = trajectory.steps.at(-1)?.total;
  return (
    <div class={`side side-${side.name.toLowerCase()}`}>
      <p class="side-name">
        <b>{side.name}</b> <RunLink catalog={catalog} run={side.info} />
        {sample.draw > 0 && `, repeat ${sample.draw + 1}`}
      </p>
      <p class="small">
        <span
          class={`verdict ${tone(
            sample.outcome,
            score?.value ?? null,
            sample.failure ? "failed" : null,
            areShares(side.run, score?.scorer ?? ""),
          )}`}
        >
          {score?.label ? <Line value={score.label} /> : outcomeInWords(sample.outcome)}
        </span>
        {score && score.value !== null && ` ${number(score.value)}`}
        {" · "}
        {counted(trajectory.steps.length, "step")}
        {total && totalInWords(total) && ` · ${totalInWords(total)}`}
      </p>
    </div>
  );
}

const resultOf = (step: Step): string =>
  step.uses
    .flatMap(({ result }) => result?.parts ?? [])
    .filter((part) => typeof part === "string")
    .join("\n");

function PairRow({
  number,
  row,
  a,
  b,
  current,
}: {
  number: number;
  row: AlignedRow;
  a: Side;
  b: Side;
  current: boolean;
}) {
  const [stepA, stepB] = [
    row.a === null ? null : a.trajectory.steps[row.a]!,
    row.b === null ? null : b.trajectory.steps[row.b]!,
  ];
  const otherResult = row.same && resultOf(stepA!) !== resultOf(stepB!);
  const words = row.same
    ? otherResult
      ? "same calls, other results"
      : "the same"
    : stepA && stepB
      ? "differs"
      : `only in ${stepA ? "A" : "B"}`;
  return (
    <li
      id={`pair-${number + 1}`}
      class={`step-pair${row.same ? "" : " differs"}${current ? " current" : ""}`}
      aria-current={current ? "true" : undefined}
    >
      <p class={`pair-words ${row.same ? "quiet" : "strong"}`}>{words}</p>
      <PairCell side={a} place={row.a} step={stepA} />
      <PairCell side={b} place={row.b} step={stepB} />
    </li>
  );
}

function PairCell({
  side,
  place,
  step,
}: {
  side: Side;
  place: number | null;
  step: Step | null;
}) {
  if (!step || place === null)
    return (
      <div class={`pair-cell pair-${side.name.toLowerCase()} quiet`}>
        <span class="unseen">no step in {side.name}</span>
      </div>
    );
  const result = resultOf(step);
  const end = headEnd(result, RESULT_CHARS, RESULT_LINES);
  return (
    <div class={`pair-cell pair-${side.name.toLowerCase()}`} data-side={side.name}>
      <p class="step-head">
        <a href={side.address(place)}>Step {count(place + 1)}</a>
        <span class="quiet">{usedInWords(step.used).join(" · ")}</span>
      </p>
      {!step.uses.length && (
        <p class="pair-text">
          <Line value={step.text} />
        </p>
      )}
      {step.uses.slice(0, 20).map((use) => {
        const state = stateOf(use);
        return (
          <p class="use-head">
            <code class="use-name">
              <Line value={use.call.name} />
            </code>
            <code class="use-line">
              <Line value={callInOneLine(argumentsOf(use.call))} most={RESULT_CHARS} />
            </code>
            {state.words && <span class={state.bad ? "bad" : "quiet"}>{state.words}</span>}
          </p>
        );
      })}
      {result !== "" && (
        <p class="pair-text pair-result quiet">
          <Line value={result.slice(0, end) + (end < result.length ? "…" : "")} />
        </p>
      )}
      <Fold summary="The whole step" printed={false}>
        {() => (
          <StepView
            step={step}
            number={place}
            current={false}
            href=""
            words=""
            hit={null}
            hits={0}
            named={false}
          />
        )}
      </Fold>
    </div>
  );
}
