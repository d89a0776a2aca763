/**
 * Pictures of numbers, drawn as SVG in the colours of the page; whoever uses one puts the numbers
 * in a table beside it.
 */
import type { Axis } from "./axis";
import { plainName } from "./numbers";
import { useWidth } from "./parts";

export interface Point {
  x: number;
  y: number;
  /** The ends of the intervals, where there are some. */
  low?: number;
  high?: number;
  /** What it is, said on hovering. */
  title: string;
  /** Stands beside it. */
  name?: string;
}

export interface Series {
  name: string;
  /** Which of the eight colours and marks. */
  style: number;
  points: Point[];
  line: boolean;
}

const LEFT = 52;
const RIGHT = 18;
const TOP = 14;
const BOTTOM = 46;
const LETTER = 6.6;

/** Points, with lines between them where a series is one, and the intervals of y. */
export function Chart(props: {
  label: string;
  series: Series[];
  x: Axis;
  y: Axis;
  xTitle: string;
  yTitle: string;
  diagonal?: boolean;
}) {
  const [watch, width] = useWidth();
  const { x, y } = props;
  const height = Math.round(Math.min(440, Math.max(260, width * 0.5)));
  const inner = { width: Math.max(10, width - LEFT - RIGHT), height: height - TOP - BOTTOM };
  const px = (value: number) => LEFT + x.place(value) * inner.width;
  const py = (value: number) => TOP + (1 - y.place(value)) * inner.height;
  // Series of the same x stand beside each other, so that no interval covers another.
  const beside = (index: number) => (index - (props.series.length - 1) / 2) * 4;
  const names = placeNames(props.series, px, py, width, height - BOTTOM);
  let words = -Infinity;
  return (
    <div class="chart" ref={watch}>
      {width > 0 && (
        <svg width={width} height={height} role="img" aria-label={props.label}>
          {y.ticks.map((tick) => {
            const at = TOP + (1 - tick.at) * inner.height;
            return (
              <g key={`y${tick.at}`}>
                <line class="tick" x1={LEFT} x2={width - RIGHT} y1={at} y2={at} />
                <text x={LEFT - 8} y={at + 4} text-anchor="end">
                  {tick.label}
                </text>
              </g>
            );
          })}
          {x.ticks.map((tick) => {
            const at = LEFT + tick.at * inner.width;
            const room = tick.label.length * LETTER;
            const isLabelled = at - room / 2 > words + 8;
            if (isLabelled) words = at + room / 2;
            return (
              <g key={`x${tick.at}`}>
                <line class="tick" x1={at} x2={at} y1={TOP} y2={TOP + inner.height} />
                {isLabelled && (
                  <text
                    x={at}
                    y={height - BOTTOM + 18}
                    text-anchor={at + room / 2 > width ? "end" : "middle"}
                  >
                    {tick.label}
                  </text>
                )}
              </g>
            );
          })}
          <text class="title" x={LEFT + inner.width / 2} y={height - 6} text-anchor="middle">
            {props.xTitle}
          </text>
          {props.diagonal && (
            <line class="zero" x1={px(x.low)} y1={py(x.low)} x2={px(x.high)} y2={py(x.high)} />
          )}
          {props.series.map((series, nth) => (
            <g key={series.style + series.name} class={`series s${series.style % 8}`}>
              {series.line && series.points.length > 1 && (
                <polyline
                  points={series.points
                    .map(
                      (point) =>
                        `${(px(point.x) + beside(nth)).toFixed(1)},${py(point.y).toFixed(1)}`,
                    )
                    .join(" ")}
                />
              )}
              {series.points.map((point, index) => {
                const [cx, cy] = [px(point.x) + beside(nth), py(point.y)];
                const mark = (
                  <g class="spot">
                    <title>{plainName(point.title, 300)}</title>
                    <Mark style={series.style} x={cx} y={cy} />
                  </g>
                );
                return (
                  <g key={index}>
                    {point.low !== undefined && point.high !== undefined && (
                      <line
                        class="whisker"
                        x1={cx}
                        x2={cx}
                        y1={py(point.low)}
                        y2={py(point.high)}
                      />
                    )}
                    {mark}
                  </g>
                );
              })}
            </g>
          ))}
          {names.map((name, index) => (
            <text key={index} class="name" x={name.x} y={name.y} text-anchor={name.anchor}>
              {name.text}
            </text>
          ))}
        </svg>
      )}
      <p class="chart-y quiet" aria-hidden="true">
        {props.yTitle}
      </p>
    </div>
  );
}

/** Eight marks that can be told apart without colour. */
function Mark({ style, x, y }: { style: number; x: number; y: number }) {
  const r = 4.5;
  const poly = (...points: [number, number][]) => (
    <polygon
      points={points
        .map(([dx, dy]) => `${(x + dx * r).toFixed(1)},${(y + dy * r).toFixed(1)}`)
        .join(" ")}
    />
  );
  switch (style % 8) {
    case 1:
      return poly([-0.95, -0.95], [0.95, -0.95], [0.95, 0.95], [-0.95, 0.95]);
    case 2:
      return poly([0, -1.2], [1.15, 0.85], [-1.15, 0.85]);
    case 3:
      return poly([0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]);
    case 4:
      return poly([0, 1.2], [1.15, -0.85], [-1.15, -0.85]);
    case 5:
      return <circle class="hollow" cx={x} cy={y} r={r - 0.5} />;
    case 6:
      return poly(
        [-0.4, -1.2],
        [0.4, -1.2],
        [0.4, -0.4],
        [1.2, -0.4],
        [1.2, 0.4],
        [0.4, 0.4],
        [0.4, 1.2],
        [-0.4, 1.2],
        [-0.4, 0.4],
        [-1.2, 0.4],
        [-1.2, -0.4],
        [-0.4, -0.4],
      );
    case 7:
      return <g class="hollow">{poly([-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9])}</g>;
    default:
      return <circle cx={x} cy={y} r={r} />;
  }
}

/** The mark of a series in a list of them. */
export function Key({ style }: { style: number }) {
  return (
    <svg class={`key series s${style % 8}`} width="14" height="14" aria-hidden="true">
      <Mark style={style} x={7} y={7} />
    </svg>
  );
}

interface Name {
  x: number;
  y: number;
  anchor: "start" | "middle" | "end";
  text: string;
}

/**
 * Names where they cover no mark, no interval and no other name; one that finds no place is left to
 * the table.
 */
function placeNames(
  series: Series[],
  px: (x: number) => number,
  py: (y: number) => number,
  width: number,
  bottom: number,
): Name[] {
  const boxes: [left: number, top: number, right: number, bottom: number][] = [];
  const points = series.flatMap((series) => series.points);
  for (const point of points) {
    const [cx, cy] = [px(point.x), py(point.y)];
    boxes.push([cx - 6, cy - 6, cx + 6, cy + 6]);
    if (point.low !== undefined && point.high !== undefined)
      boxes.push([cx - 2, py(point.high), cx + 2, py(point.low)]);
  }
  const names: Name[] = [];
  for (const point of points) {
    if (!point.name) continue;
    const text = plainName(point.name, 22);
    const room = [...text].reduce(
      (sum, letter) => sum + (letter.codePointAt(0)! > 0x2e7f ? 12 : LETTER),
      0,
    );
    const [cx, cy] = [px(point.x), py(point.y)];
    const above = py(point.high ?? point.y) - cy - 6;
    const below = py(point.low ?? point.y) - cy + 14;
    for (const [dx, dy, anchor] of [
      [9, 4, "start"],
      [-9, 4, "end"],
      [0, above, "middle"],
      [0, below, "middle"],
      [4, above, "start"],
      [-4, above, "end"],
      [4, below, "start"],
      [-4, below, "end"],
      [0, above - 14, "middle"],
      [0, below + 14, "middle"],
      [9, -9, "start"],
      [9, 17, "start"],
      [-9, -9, "end"],
      [-9, 17, "end"],
    ] as const) {
      const left =
        anchor === "start" ? cx + dx : anchor === "end" ? cx + dx - room : cx + dx - room / 2;
      const box: [number, number, number, number] = [left, cy + dy - 11, left + room, cy + dy + 3];
      if (left < LEFT || box[2] > width || box[1] < 0 || box[3] > bottom) continue;
      if (boxes.some(([l, t, r, b]) => l < box[2] && r > box[0] && t < box[3] && b > box[1]))
        continue;
      boxes.push(box);
      names.push({ x: cx + dx, y: cy + dy, anchor, text });
      break;
    }
  }
  return names;
}
