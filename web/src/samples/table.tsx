import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  Virtualizer,
} from "@tanstack/virtual-core";
import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Column, RunData } from "../data/api";
import { Line } from "../text/text";
import { tone } from "../sample/words";
import type { Order } from "./state";
import { categoryOf, count, number, numberOf } from "./values";

/** Browsers end a page's height somewhere; more rows than this want a filter. */
export const MOST_ROWS = 300_000;
/** Rows that a printed list has. */
const PRINTED = 300;
const NARROW = "(max-width: 56rem)";

/** Whether a condition of the style sheets holds now. */
export function useMedia(condition: string): boolean {
  const [holds, set] = useState(() => matchMedia(condition).matches);
  useEffect(() => {
    const media = matchMedia(condition);
    const listener = () => set(media.matches);
    media.addEventListener("change", listener);
    return () => media.removeEventListener("change", listener);
  }, [condition]);
  return holds;
}

function usePrinting(): boolean {
  const [printing, set] = useState(false);
  useEffect(() => {
    const listeners = [
      ["beforeprint", () => set(true)],
      ["afterprint", () => set(false)],
    ] as const;
    for (const [name, listener] of listeners) window.addEventListener(name, listener);
    return () =>
      listeners.forEach(([name, listener]) => window.removeEventListener(name, listener));
  }, []);
  return printing;
}

export interface TableHandle {
  /** Brings a row into view. */
  show(row: number): void;
  /** Rows of a screen. */
  page(): number;
  focus(): void;
}

interface Props {
  run: RunData;
  places: Int32Array;
  active: number;
  order: Order | null;
  handle: RefObject<TableHandle | null>;
  address(place: number): string;
  setActive(row: number): void;
  setOrder(order: Order | null): void;
  /** Shown in place of rows. */
  empty: string;
}

/** Columns beside question and answer: those that tell samples of this run apart. */
function extraColumnsOf(run: RunData): Column[] {
  const many = (column: Column) => column.kind === "number" || column.names.length > 1;
  const preferred = ["task", "latency", "tokens", "cost"];
  return preferred.flatMap(
    (name) => run.columns.find((column) => column.name === name && many(column)) ?? [],
  );
}

export function Table({
  run,
  places,
  active,
  order,
  handle,
  address,
  setActive,
  setOrder,
  empty,
}: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const [, draw] = useState(0);
  const narrow = useMedia(NARROW);
  const printing = usePrinting();
  const height = narrow ? 92 : 46;
  const rows = Math.min(places.length, MOST_ROWS);
  const options = {
    count: rows,
    overscan: 6,
    estimateSize: () => height,
    getScrollElement: () => scroller.current,
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
    onChange: () => draw((old) => old + 1),
  };
  const [virtualizer] = useState(() => new Virtualizer<HTMLDivElement, Element>(options));
  virtualizer.setOptions(options);
  useLayoutEffect(() => virtualizer._didMount(), []);
  useLayoutEffect(() => virtualizer._willUpdate());
  useLayoutEffect(() => virtualizer.measure(), [height]);
  useEffect(() => run.onPreviews(() => draw((old) => old + 1)), [run]);
  handle.current = {
    show: (row) => virtualizer.scrollToIndex(row, { align: "auto" }),
    page: () => Math.max(1, Math.floor((scroller.current?.clientHeight ?? 0) / height) - 1),
    focus: () => scroller.current?.focus({ preventScroll: true }),
  };

  const column = (name: string) => run.columns.find((column) => column.name === name);
  const [outcome, label, failure, unsure, score, extraColumns] = [
    column("outcome"),
    column("label"),
    column("failure"),
    column("unsure"),
    column("score"),
    extraColumnsOf(run),
  ];
  const template = [
    "minmax(8.5rem, .6fr)",
    score ? "4rem" : null,
    "minmax(0, 2fr)",
    "minmax(0, 2fr)",
    ...extraColumns.map((column) => (column.kind === "number" ? "5.25rem" : "minmax(7rem, .7fr)")),
  ]
    .filter(Boolean)
    .join(" ");
  const head = (column: Column | undefined, title: string) => {
    const sorted =
      column && order?.column === column.name
        ? order.descending
          ? "descending"
          : "ascending"
        : "none";
    return (
      <div
        role="columnheader"
        class={column?.kind === "number" ? "cell number" : "cell"}
        aria-sort={column ? sorted : undefined}
      >
        {column ? (
          <button
            type="button"
            tabIndex={-1}
            onClick={() => setOrder(nextOrder(order, column.name))}
          >
            {title}
            <span aria-hidden="true">
              {sorted === "ascending" ? " ↑" : sorted === "descending" ? " ↓" : ""}
            </span>
          </button>
        ) : (
          title
        )}
      </div>
    );
  };
  const items = printing
    ? Array.from({ length: Math.min(rows, PRINTED) }, (_, index) => ({
        index,
        start: index * height,
      }))
    : virtualizer.getVirtualItems();
  const shownActive = items.some((item) => item.index === active);
  return (
    <div
      class="table"
      role="grid"
      tabIndex={0}
      ref={scroller}
      aria-label="Samples"
      aria-rowcount={rows + 1}
      aria-activedescendant={shownActive ? `row-${active}` : undefined}
      style={{ "--columns": template, "--row": `${height}px` }}
    >
      <div role="rowgroup" class="table-head">
        <div role="row" class="row" aria-rowindex={1}>
          {head(label ?? outcome, "Outcome")}
          {score && head(score, score.title)}
          {head(undefined, "Question")}
          {head(undefined, "Answer")}
          {extraColumns.map((column) => head(column, column.title))}
        </div>
      </div>
      {rows === 0 && (
        <div role="row" aria-rowindex={2}>
          <p role="gridcell" class="table-empty">
            {empty}
          </p>
        </div>
      )}
      <div
        role="rowgroup"
        class="table-rows"
        style={{ height: `${printing ? items.length * height : virtualizer.getTotalSize()}px` }}
      >
        {items.map(({ index, start }) => {
          const sampleIndex = places[index] ?? 0;
          const preview = run.preview(sampleIndex);
          const failed = categoryOf(failure, sampleIndex);
          const [labelText, happened, value] = [
            categoryOf(label, sampleIndex),
            categoryOf(outcome, sampleIndex),
            numberOf(score, sampleIndex),
          ];
          return (
            <div
              key={sampleIndex}
              id={`row-${index}`}
              role="row"
              aria-rowindex={index + 2}
              aria-selected={index === active}
              class={`row${index === active ? " active" : ""}`}
              style={{ transform: `translateY(${start}px)` }}
              onPointerDown={() => setActive(index)}
            >
              <div role="gridcell" class="cell state">
                <span class={`dot ${tone(happened, value, failed)}`} aria-hidden="true" />
                <span class="clip">
                  <Line value={labelText || happened || "–"} />
                  {failed || categoryOf(unsure, sampleIndex) ? (
                    <small>
                      <Line value={failed ?? "unsure"} />
                    </small>
                  ) : null}
                </span>
              </div>
              {score && (
                <div role="gridcell" class="cell number">
                  {number(value)}
                </div>
              )}
              <div role="gridcell" class="cell words">
                <a tabIndex={-1} href={address(sampleIndex)}>
                  <span class="two">
                    {preview ? (
                      <Line value={preview.question || run.id(sampleIndex)} />
                    ) : (
                      <span class="wait">…</span>
                    )}
                  </span>
                </a>
              </div>
              <div role="gridcell" class="cell words answer">
                <span class="two">
                  {preview ? (
                    preview.answer ? (
                      <Line value={preview.answer} />
                    ) : (
                      <span class="quiet">no answer</span>
                    )
                  ) : (
                    <span class="wait">…</span>
                  )}
                </span>
              </div>
              {extraColumns.map((column) => (
                <div
                  role="gridcell"
                  class={column.kind === "number" ? "cell number more" : "cell more"}
                >
                  {column.kind === "number" ? (
                    number(numberOf(column, sampleIndex))
                  ) : (
                    <span class="two">
                      <Line value={categoryOf(column, sampleIndex) ?? "–"} />
                    </span>
                  )}
                </div>
              ))}
            </div>
          );
        })}
      </div>
      {printing && rows > items.length && (
        <p>
          The first {count(items.length)} of {count(rows)} samples.
        </p>
      )}
    </div>
  );
}

/** The order after a press on a column's head: rising, falling, as recorded. */
export function nextOrder(order: Order | null, column: string): Order | null {
  if (order?.column !== column) return { column, descending: false };
  return order.descending ? null : { column, descending: true };
}
