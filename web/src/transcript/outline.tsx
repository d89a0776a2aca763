/** The steps of a trajectory in a column: which tools, how long, what failed. */
import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  Virtualizer,
} from "@tanstack/virtual-core";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Step, Trajectory } from "../data/api";
import { count, counted, seconds } from "../samples/values";
import { Line } from "../text/text";
import { stateOf } from "./step";

const ROW_HEIGHT = 30;
/** Names of tools that one row has room for. */
const MOST_TOOLS = 3;

function toolsInWords(step: Step): string {
  const names = [...new Set(step.uses.map((use) => use.call.name || "?"))];
  if (!names.length) return "reply";
  const more = names.length - MOST_TOOLS;
  return names.slice(0, MOST_TOOLS).join(", ") + (more > 0 ? ` +${more}` : "");
}

export function Outline({
  trajectory,
  current,
  hits,
  address,
}: {
  trajectory: Trajectory;
  current: number;
  /** How many hits of a search a step has. */
  hits: Map<number, number>;
  address(step: number): string;
}) {
  const { steps } = trajectory;
  const scroller = useRef<HTMLOListElement>(null);
  const [, draw] = useState(0);
  const options = {
    count: steps.length,
    overscan: 10,
    estimateSize: () => ROW_HEIGHT,
    getScrollElement: () => scroller.current,
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
    onChange: () => draw((old) => old + 1),
  };
  const [virtualizer] = useState(() => new Virtualizer<HTMLOListElement, Element>(options));
  virtualizer.setOptions(options);
  useLayoutEffect(() => virtualizer._didMount(), []);
  useLayoutEffect(() => virtualizer._willUpdate());
  useEffect(() => {
    const list = scroller.current;
    if (!list || current < 0) return;
    const top = current * ROW_HEIGHT;
    const isShown =
      top >= list.scrollTop && top + ROW_HEIGHT <= list.scrollTop + list.clientHeight;
    if (!isShown) list.scrollTop = top - list.clientHeight / 2;
  }, [current]);
  return (
    <nav class="outline" aria-label="Steps">
      <ol ref={scroller}>
        <li class="outline-size" style={{ height: `${virtualizer.getTotalSize()}px` }} />
        {virtualizer.getVirtualItems().map(({ index, start }) => {
          const step = steps[index];
          if (!step) return null;
          const failed = step.uses.filter((use) => use.isError || stateOf(use).bad).length;
          const time = step.used.modelSeconds + step.used.toolSeconds;
          return (
            <li key={index} class="outline-row" style={{ transform: `translateY(${start}px)` }}>
              <a href={address(index)} aria-current={index === current ? "step" : undefined}>
                <span class="outline-number">{count(index + 1)}</span>
                <span class="clip">
                  {step.compacted && <span title="compacted">≡ </span>}
                  <Line value={toolsInWords(step)} />
                </span>
                {hits.has(index) && <span class="chip">{counted(hits.get(index)!, "hit")}</span>}
                {failed > 0 && (
                  <span class="bad" title="failed">
                    ✗<span class="unseen"> failed</span>
                  </span>
                )}
                <span class="quiet outline-time">{time ? seconds(time) : ""}</span>
              </a>
            </li>
          );
        })}
      </ol>
    </nav>
  );
}
