/** What goes on in a run: its open trajectories, growing without a reload. */
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Data, OpenTrajectory, OpenTurns } from "../data/api";
import { trajectoryOf } from "../data/trajectory";
import { findRun, links, type PageProps, useRead } from "../pages";
import { count, counted } from "../samples/values";
import { useKeys } from "../shell/keys";
import { Line } from "../text/text";
import { EmptyNote, Reading, StateLine } from "../views/parts";
import { StepView } from "./step";
import { Messages } from "../sample/story";

/** Steps of a growing trajectory that are laid out. */
const LAST_STEPS = 30;

/** Rises whenever the trajectories of a run grow, begin or end. */
function useLive(data: Data, run: string): number {
  const [version, set] = useState(0);
  useEffect(() => data.onLive((key) => key === run && set((old) => old + 1)), [data, run]);
  return version;
}

export function LivePage({ data, parameters, query, go }: PageProps) {
  const address = parameters.RUN ?? "";
  const info = findRun(data.catalog, address);
  const key = info?.key ?? "";
  const version = useLive(data, key);
  const { value: live, error } = useRead(() => data.live(key), [data, key, version]);
  const shown = query.get("show");
  const open = live?.open ?? [];
  // What one reads stays when it ends and others go on.
  const [kept, keep] = useState<number | undefined>();
  const first = open[0]?.number;
  useEffect(() => {
    if (kept === undefined && first !== undefined) keep(first);
  }, [first]);
  const chosen = shown !== null && /^\d{1,9}$/.test(shown) ? Number(shown) : (kept ?? first);
  const place = open.findIndex(({ number }) => number === chosen);
  const step = (by: number) => {
    const next = open[Math.max(0, place + by)];
    if (next) go(links.live(address, next.number), true);
  };
  useKeys([
    { keys: ["j", "ArrowDown"], does: "Next trajectory", run: () => step(1) },
    { keys: ["k", "ArrowUp"], does: "Previous trajectory", run: () => step(-1) },
    { keys: ["u", "Escape"], does: "The samples that are done", run: () => go(links.samples(address)) },
  ]);
  if (!info) return null;
  return (
    <div class="page sample views">
      <h1>Going on now</h1>
      <p class="lede">
        <StateLine run={info} brief /> · {counted(open.length + (live?.more ?? 0), "open trajectory", "open trajectories")}
      </p>
      {!live ? (
        <Reading error={error} noun="what goes on" />
      ) : !open.length && chosen === undefined ? (
        <EmptyNote>
          {info.state === "running"
            ? "No model acts at the moment. This page shows it by itself."
            : "The run has ended."}{" "}
          <a href={links.samples(address)}>Samples that are done</a>
        </EmptyNote>
      ) : (
        <div class="live">
          <nav class="list" aria-label="Open trajectories">
            <ol>
              {open.map((trajectory) => (
                <li key={trajectory.number}>
                  <OpenLink
                    trajectory={trajectory}
                    href={links.live(address, trajectory.number)}
                    current={trajectory.number === chosen}
                  />
                </li>
              ))}
            </ol>
            {live.more > 0 && <p class="quiet">and {count(live.more)} more</p>}
          </nav>
          {chosen !== undefined && (
            <GrowingTrajectory
              key={chosen}
              data={data}
              run={key}
              number={chosen}
              version={version}
              samples={links.samples(address)}
            />
          )}
        </div>
      )}
    </div>
  );
}

function OpenLink(props: { trajectory: OpenTrajectory; href: string; current: boolean }) {
  const { trajectory } = props;
  return (
    <a href={props.href} aria-current={props.current ? "true" : undefined}>
      <Line value={trajectory.id} />
      {trajectory.draw > 0 && `, repeat ${trajectory.draw + 1}`}
      <span class="small quiet">
        {counted(trajectory.turns, "turn")}
        {trajectory.attempt > 1 && `, attempt ${trajectory.attempt}`} ·{" "}
        <Line value={trajectory.last} most={80} />
      </span>
    </a>
  );
}

function GrowingTrajectory(props: {
  data: Data;
  run: string;
  number: number;
  version: number;
  samples: string;
}) {
  const { data, run, number } = props;
  const { value, error } = useRead(
    // An answer of null is one: the trajectory has ended.
    async () => ({ turns: await data.liveTurns(run, number) }),
    [data, run, number, props.version],
  );
  const [last, setLast] = useState<OpenTurns | null>(null);
  useEffect(() => {
    if (value?.turns) setLast(value.turns);
  }, [value]);
  const turns = value?.turns ?? last;
  const trajectory = useMemo(
    () =>
      turns &&
      trajectoryOf(
        { steps: turns.messages.filter(({ role }) => role === "assistant").length },
        turns.messages,
        [],
      ),
    [turns],
  );
  if (!value && error === null) return <Reading error={null} noun="the trajectory" />;
  if (!turns || !trajectory)
    return (
      <EmptyNote>
        {error ?? "This trajectory has ended."} <a href={props.samples}>Samples that are done</a>
      </EmptyNote>
    );
  const steps = trajectory.steps;
  const hidden = Math.max(0, steps.length - LAST_STEPS);
  return (
    <article class="live-steps" aria-label="The trajectory">
      <h2>
        <Line value={turns.id} />
        {turns.draw > 0 && `, repeat ${turns.draw + 1}`}{" "}
        <span class="quiet">
          <Line value={turns.task} />
        </span>
      </h2>
      {(turns.dropped > 0 || hidden > 0) && (
        <p class="note quiet">The latest steps are shown; all are in the sample once it is done.</p>
      )}
      {hidden === 0 && trajectory.opening.length > 0 && (
        <Messages messages={trajectory.opening} />
      )}
      {steps.slice(hidden).map((step, i) => (
        <StepView
          key={hidden + i}
          step={step}
          number={turns.droppedReplies + hidden + i}
          current={false}
          href=""
          words=""
          hit={null}
          hits={0}
          named={false}
          goesOn={value?.turns != null && hidden + i + 1 === steps.length}
        />
      ))}
      {trajectory.after.length > 0 && <Messages messages={trajectory.after} />}
      <p class="mark-line" role="status">
        {value?.turns ? (
          `${counted(turns.turns, "turn")} so far`
        ) : (
          <>
            This trajectory has ended. <a href={props.samples}>Samples that are done</a>
          </>
        )}
      </p>
    </article>
  );
}
