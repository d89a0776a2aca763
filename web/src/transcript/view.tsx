/** The transcript of a trajectory: its steps in order, an outline beside them, and a search. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Step, Trajectory } from "../data/api";
import { endingInWords, isLimit } from "../data/trajectory";
import { Fold } from "../sample/fold";
import { Messages } from "../sample/story";
import { count, counted, dollars } from "../samples/values";
import { useMedia } from "../samples/table";
import { announce } from "../shell/copy";
import { useKeys } from "../shell/keys";
import { Line } from "../text/text";
import { Outline } from "./outline";
import { type Hit, searchSteps } from "./search";
import { stepAnchor, StepView, totalInWords } from "./step";

/** Steps that are laid out at first, and with each further click. */
const WINDOW_STEPS = 40;
/** Steps above the wanted one, so that one sees where it comes from. */
const STEPS_ABOVE = 3;
const NARROW = "(max-width: 62rem)";
/** Milliseconds between a letter that is typed and the search for it. */
const TYPING = 150;
/** Opening turns in which nothing is folded. */
const FEW_OPENING_CHARS = 3_000;

interface Span {
  begin: number;
  end: number;
}

/** The steps that are laid out around a wanted one. */
function spanAround(step: number, size: number): Span {
  const begin = Math.max(0, Math.min(step - STEPS_ABOVE, size - WINDOW_STEPS));
  return { begin, end: Math.min(size, begin + WINDOW_STEPS) };
}

export interface TranscriptProps {
  trajectory: Trajectory;
  /** The step that the address names, from 0; -1 where it names none. */
  wanted: number;
  /** Words to search for at first. */
  words: string;
  /** The address of a step. */
  address(step: number): string;
  go(hash: string, replace?: boolean): void;
}

export function Transcript({ trajectory, wanted, words, address, go }: TranscriptProps) {
  const { steps } = trajectory;
  const inRange = wanted < steps.length ? wanted : -1;
  const [current, setCurrent] = useState(inRange);
  const [span, setSpan] = useState(() => spanAround(Math.max(0, inRange), steps.length));
  const [typed, setTyped] = useState(words);
  const [searched, setSearched] = useState(words);
  const [hitIndex, setHitIndex] = useState(-1);
  const narrow = useMedia(NARROW);
  const root = useRef<HTMLElement>(null);
  const box = useRef<HTMLInputElement>(null);
  /** What is brought into view once it is laid out. */
  const target = useRef<string | null>(inRange >= 0 ? `#${stepAnchor(inRange)}` : null);
  const found = useMemo(() => searchSteps(steps, searched), [steps, searched]);
  const hit = found.all[hitIndex] ?? null;

  const layOut = (step: number) =>
    setSpan((old) => (step >= old.begin && step < old.end ? old : spanAround(step, steps.length)));
  const show = (step: number) => {
    const next = Math.max(0, Math.min(steps.length - 1, step));
    target.current = `#${stepAnchor(next)}`;
    layOut(next);
    setCurrent(next);
    // The address says where one is, so that a copied link leads there.
    go(address(next), true);
  };
  // A link to another step of the same sample.
  useEffect(() => {
    if (inRange < 0 || inRange === current) return;
    target.current = `#${stepAnchor(inRange)}`;
    layOut(inRange);
    setCurrent(inRange);
  }, [inRange]);
  const toHit = (by: number) => {
    if (!found.all.length) return;
    // The first press looks at the first hit at or below the step where one is.
    const near = Math.max(0, found.all.findIndex(({ step }) => step >= current));
    const next =
      hitIndex < 0 && by > 0 ? near : (hitIndex + by + found.all.length) % found.all.length;
    const { step } = found.all[next]!;
    target.current = "mark.current-hit";
    setHitIndex(next);
    layOut(step);
    setCurrent(step);
  };
  useEffect(() => {
    const timer = setTimeout(() => {
      setSearched(typed);
      setHitIndex(-1);
    }, TYPING);
    return () => clearTimeout(timer);
  }, [typed]);
  useLayoutEffect(() => {
    if (!target.current) return;
    const step = hit ? `#${stepAnchor(hit.step)}` : "";
    const element =
      root.current?.querySelector(target.current) ?? (step ? root.current?.querySelector(step) : null);
    if (!element) return;
    element.scrollIntoView({ block: target.current.startsWith("#") ? "start" : "center" });
    target.current = null;
  });
  useKeys([
    { keys: ["j"], does: "Next step", run: () => show(current + 1) },
    { keys: ["k"], does: "Previous step", run: () => show(current - 1) },
    { keys: ["Home"], does: "First step", run: () => show(0) },
    { keys: ["End"], does: "Last step", run: () => show(steps.length - 1) },
    {
      keys: ["e"],
      does: "Next step with an error",
      run: () => {
        const next = steps.findIndex((step, i) => i > current && hasError(step));
        if (next >= 0) show(next);
        else announce("No further step has an error.");
      },
    },
    { keys: ["/"], does: "Search this transcript", run: () => box.current?.focus() },
    { keys: ["n"], does: "Next hit", run: () => toHit(1) },
    { keys: ["N"], does: "Previous hit", run: () => toHit(-1) },
  ]);
  const outline = (
    <Outline trajectory={trajectory} current={current} hits={found.byStep} address={address} />
  );
  const last = steps.at(-1);
  return (
    <section class="transcript" ref={root} aria-label="Transcript">
      {!narrow && steps.length > 0 && outline}
      <div class="transcript-steps">
        <h2>
          Transcript{" "}
          <span class="quiet">
            {counted(steps.length, "step")}
            {last && totalInWords(last.total) && ` · ${totalInWords(last.total)}`}
          </span>
        </h2>
        <Marks trajectory={trajectory} />
        {narrow && steps.length > 1 && (
          <Fold summary={`Outline (${counted(steps.length, "step")})`} printed={false}>
            {() => outline}
          </Fold>
        )}
        <div class="transcript-search">
          <input
            ref={box}
            class="search"
            type="search"
            value={typed}
            placeholder="Search this transcript"
            aria-label="Search this transcript"
            autocomplete="off"
            spellcheck={false}
            onInput={(event) => setTyped(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key === "Enter") (event.preventDefault(), toHit(event.shiftKey ? -1 : 1));
              if (event.key === "Escape")
                (event.preventDefault(), typed ? setTyped("") : box.current?.blur());
            }}
          />
          {searched.trim() !== "" && (
            <HitCount hits={found} at={hitIndex} step={(by) => toHit(by)} />
          )}
        </div>
        <Opening trajectory={trajectory} words={searched} />
        {span.begin > 0 && (
          <p class="more-steps">
            <button
              type="button"
              onClick={() => setSpan({ ...span, begin: Math.max(0, span.begin - WINDOW_STEPS) })}
            >
              Show earlier steps
            </button>{" "}
            <span class="quiet">{counted(span.begin, "step")} above</span>
          </p>
        )}
        {steps.slice(span.begin, span.end).map((step, i) => {
          const number = span.begin + i;
          return (
            <StepView
              key={number}
              step={step}
              number={number}
              current={number === current}
              href={address(number)}
              words={searched}
              hit={hit?.step === number ? hit : null}
              hits={found.byStep.get(number) ?? 0}
            />
          );
        })}
        {span.end < steps.length && (
          <p class="more-steps">
            <button
              type="button"
              onClick={() => setSpan({ ...span, end: Math.min(steps.length, span.end + WINDOW_STEPS) })}
            >
              Show later steps
            </button>{" "}
            <span class="quiet">{counted(steps.length - span.end, "step")} below</span>
          </p>
        )}
        {span.end >= steps.length && (
          <>
            {trajectory.after.length > 0 && (
              <div class="between">
                <Messages messages={trajectory.after} words={searched} />
              </div>
            )}
            {trajectory.ended && (
              <p class={`mark-line${isLimit(trajectory.ended) ? " warn" : ""}`}>
                <Line value={endingInWords(trajectory.ended)} />
              </p>
            )}
          </>
        )}
      </div>
    </section>
  );
}

export const hasError = (step: Step): boolean =>
  step.uses.some((use) => use.isError || (use.exitCode ?? 0) !== 0);

function HitCount({
  hits,
  at,
  step,
}: {
  hits: { all: Hit[]; byStep: Map<number, number>; isCut: boolean };
  at: number;
  step(by: number): void;
}) {
  const n = hits.all.length;
  const where = `in ${counted(hits.byStep.size, "step")}`;
  return (
    <>
      <span role="status" class="quiet">
        {n === 0
          ? "No hits in the steps."
          : `${at >= 0 ? `${count(at + 1)} of ` : ""}${counted(n, "hit")}${hits.isCut ? " and more" : ""} ${where}`}
      </span>
      <button type="button" disabled={!n} onClick={() => step(-1)}>
        ‹<span class="unseen"> Previous hit</span>
      </button>
      <button type="button" disabled={!n} onClick={() => step(1)}>
        ›<span class="unseen"> Next hit</span>
      </button>
    </>
  );
}

/** What a reader should know before the steps: a limit, a beginning anew. */
function Marks({ trajectory }: { trajectory: Trajectory }) {
  const { ended, startedAnew, sandbox } = trajectory;
  const [isLimited, starts] = [isLimit(ended), startedAnew.slice(0, 20)];
  const failed = trajectory.steps.filter(hasError).length;
  const facts = [
    failed > 0 && `${counted(failed, "step")} with an error`,
    sandbox && `sandbox: ${sandbox}`,
    trajectory.attempts > 1 && counted(trajectory.attempts, "attempt"),
  ].filter(Boolean);
  return (
    <>
      {isLimited && <p class="mark-line warn">{endingInWords(ended)}</p>}
      {starts.map((start) => (
        <p class="mark-line warn">
          Started again after {counted(start.afterCalls, "call")}
          {start.why && (
            <>
              : <Line value={start.why.replace(/\.$/, "")} />
            </>
          )}
          .{start.dollars !== null && ` Its replies until then had cost ${dollars(start.dollars)}.`}
        </p>
      ))}
      {facts.length > 0 && (
        <p class="note quiet">
          <Line value={facts.join(" · ")} />
        </p>
      )}
    </>
  );
}

function Opening({ trajectory, words }: { trajectory: Trajectory; words: string }) {
  const { opening } = trajectory;
  if (!opening.length) return null;
  const chars = opening
    .flatMap(({ parts }) => parts)
    .reduce((sum, part) => sum + (typeof part === "string" ? part.length : 0), 0);
  return (
    <Fold
      summary={`What the model was sent (${counted(opening.length, "message")})`}
      open={chars <= FEW_OPENING_CHARS}
    >
      {() => <Messages messages={opening} words={words} />}
    </Fold>
  );
}

/** The step that an address names, from 0; -1 where it names none. */
export const stepOf = (query: URLSearchParams): number => {
  const text = query.get("step") ?? "";
  return /^\d{1,6}$/.test(text) ? Number(text) - 1 : -1;
};

export const withStep = (query: URLSearchParams, step: number): URLSearchParams => {
  const next = new URLSearchParams(query);
  next.set("step", String(step + 1));
  return next;
};
