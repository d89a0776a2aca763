import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  Virtualizer,
} from "@tanstack/virtual-core";
import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Column, Preview, RunData } from "../data/api";
import { Line } from "../text/text";
import { tone } from "../sample/words";
import type { TableColumn } from "./columns";
import { DATE, type Order } from "./state";
import { areShares } from "./shares";
import { categoryOf, count, dayOf, number, numberOf } from "./values";

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
  /** What is shown beside the outcome, in this order. */
  columns: TableColumn[];
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

export function Table({
  run,
  columns,
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
  const [outcome, label, failure, unsure, score, scorer] = [
    column("outcome"),
    column("label"),
    column("failure"),
    column("unsure"),
    column("score"),
    column("scorer"),
  ];
  const template = ["minmax(7.5rem, .6fr)", ...columns.map((column) => column.width)].join(" ");
  const head = (column: Column | undefined, title: string, note = "") => {
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
            {note && (
              <small>
                <Line value={note} />
              </small>
            )}
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
          {columns.map((shown) => head(shown.column, shown.title, shown.note))}
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
          const share = areShares(run, categoryOf(scorer, sampleIndex) ?? "");
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
                <span class={`dot ${tone(happened, value, failed, share)}`} aria-hidden="true" />
                <span class="clip">
                  <Line value={labelText || happened || "–"} />
                  {failed || categoryOf(unsure, sampleIndex) ? (
                    <small>
                      <Line value={failed ?? "unsure"} />
                    </small>
                  ) : null}
                </span>
              </div>
              {columns.map((shown) => (
                <TableCell
                  run={run}
                  shown={shown}
                  index={sampleIndex}
                  preview={preview}
                  href={address(sampleIndex)}
                />
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

function TableCell(props: {
  run: RunData;
  shown: TableColumn;
  index: number;
  preview: Preview | null;
  href: string;
}) {
  const { run, shown, index, preview } = props;
  if (shown.name === "question")
    return (
      <div role="gridcell" class="cell words">
        <a tabIndex={-1} href={props.href}>
          <PreviewText preview={preview} text={preview?.question || run.id(index)} />
        </a>
      </div>
    );
  if (shown.name === "answer")
    return (
      <div role="gridcell" class="cell words answer">
        <PreviewText preview={preview} text={preview?.answer ?? ""} empty="no answer" />
      </div>
    );
  if (shown.name === "expected")
    return (
      <div role="gridcell" class="cell words more">
        <PreviewText preview={preview} text={preview?.expected ?? ""} empty="–" />
      </div>
    );
  if (shown.name === "id")
    return (
      <div role="gridcell" class="cell id more">
        <span class="two">
          <Line value={run.id(index)} />
        </span>
      </div>
    );
  const column = shown.column;
  if (column?.kind === "number")
    return (
      <div
        role="gridcell"
        class={column.name === "score" ? "cell number" : "cell number more"}
      >
        {column.name === DATE
          ? dayText(numberOf(column, index))
          : number(numberOf(column, index))}
      </div>
    );
  return (
    <div role="gridcell" class="cell more">
      <span class="two">
        <Line value={categoryOf(column, index) ?? "–"} />
      </span>
    </div>
  );
}

const dayText = (time: number | null) => (time === null ? "–" : dayOf(time));

/** Two lines of a text; a mark where it is not read yet, and words where there is none. */
function PreviewText(props: { preview: Preview | null; text: string; empty?: string }) {
  return (
    <span class="two">
      {props.preview === null ? (
        <span class="wait">…</span>
      ) : props.text ? (
        <Line value={props.text} />
      ) : (
        <span class="quiet">{props.empty}</span>
      )}
    </span>
  );
}

/** The order after a press on a column's head: rising, falling, as recorded. */
export function nextOrder(order: Order | null, column: string): Order | null {
  if (order?.column !== column) return { column, descending: false };
  return order.descending ? null : { column, descending: true };
}
