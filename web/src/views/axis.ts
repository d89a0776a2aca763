/** Where a number stands on a drawn axis: round ends, a few round ticks. */

export interface Tick {
  at: number;
  label: string;
}

export interface Axis {
  low: number;
  high: number;
  ticks: Tick[];
  /** 0 at the low end, 1 at the high end; what lies outside stands at the end. */
  place(number: number): number;
}

type Words = (number: number, decimals: number) => string;

const plain: Words = (number, decimals) =>
  number.toLocaleString("en-US", {
    minimumFractionDigits: decimals,
    maximumFractionDigits: decimals,
  });

/** An axis that holds all numbers. limits: beyond which nothing can be. */
export function axisOf(
  numbers: Iterable<number>,
  limits: [number, number] | null,
  words: Words = plain,
  steps = 4,
): Axis {
  let low = Infinity;
  let high = -Infinity;
  for (const number of numbers) {
    if (!Number.isFinite(number)) continue;
    low = Math.min(low, number);
    high = Math.max(high, number);
  }
  if (low > high) [low, high] = limits ?? [0, 1];
  if (limits) [low, high] = [Math.max(limits[0], low), Math.min(limits[1], high)];
  if (high - low <= 1e-9 * Math.max(1e-6, Math.abs(low), Math.abs(high))) {
    const about = Math.abs(low) / 2 || 0.5;
    [low, high] = limits ?? [low - about, high + about];
  }
  const rough = (high - low) / steps;
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = size * ([1, 2, 5].find((k) => size * k >= rough * (1 - 1e-9)) ?? 10);
  const first = Math.floor(low / step + 1e-9);
  const last = Math.ceil(high / step - 1e-9);
  const decimals = Math.min(9, Math.max(0, -Math.floor(Math.log10(step) + 1e-9)));
  const ends: [number, number] = [first * step, last * step];
  const position = (number: number) =>
    Math.min(1, Math.max(0, (number - ends[0]) / (ends[1] - ends[0])));
  const ticks: Tick[] = [];
  for (let i = first; i <= last; i++)
    ticks.push({ at: position(i * step), label: words(i * step, decimals) });
  return { low: ends[0], high: ends[1], ticks, place: position };
}

/** An axis of shares, shown in points of 100. */
export function pointsAxis(
  numbers: Iterable<number>,
  limits: [number, number] = [0, 1],
  steps = 4,
): Axis {
  const scaled: number[] = [];
  for (const number of numbers) scaled.push(100 * number);
  const axis = axisOf(scaled, [100 * limits[0], 100 * limits[1]], plain, steps);
  return {
    ...axis,
    low: axis.low / 100,
    high: axis.high / 100,
    place: (number) => axis.place(100 * number),
  };
}

/**
 * An axis of powers of ten, for numbers above 0 that span much; the ticks are 1, 2 and 5 where
 * there is room.
 */
export function logAxis(numbers: Iterable<number>, words: (number: number) => string): Axis {
  const logs: number[] = [];
  for (const number of numbers)
    if (number > 0 && Number.isFinite(number)) logs.push(Math.log10(number));
  const low = logs.length ? Math.min(...logs) : 0;
  const high = logs.length ? Math.max(...logs) : 1;
  const room = Math.max(0.05, (high - low) * 0.04);
  const ends: [number, number] = [low - room, high + room];
  const position = (number: number) =>
    Math.min(1, Math.max(0, (Math.log10(number) - ends[0]) / (ends[1] - ends[0])));
  const marks =
    ends[1] - ends[0] > 3
      ? [1]
      : ends[1] - ends[0] > 1
        ? [1, 3]
        : ends[1] - ends[0] > 0.5
          ? [1, 2, 5]
          : [1, 1.5, 2, 3, 4, 5, 7];
  const ticks: Tick[] = [];
  for (let power = Math.floor(ends[0]); power <= ends[1]; power++) {
    for (const mark of marks) {
      const tick = mark * 10 ** power;
      const at = (Math.log10(tick) - ends[0]) / (ends[1] - ends[0]);
      if (at >= 0 && at <= 1) ticks.push({ at, label: words(tick) });
    }
  }
  return { low: 10 ** ends[0], high: 10 ** ends[1], ticks, place: position };
}

/** An axis of moments (milliseconds), with the days or hours that suit it. */
export function timeAxis(times: number[]): Axis {
  const finite = times.filter(Number.isFinite);
  const begin = finite.length ? Math.min(...finite) : 0;
  const end = finite.length ? Math.max(...finite) : 1;
  const span = Math.max(end - begin, 10_000);
  const middle = (begin + end) / 2;
  const [low, high] = [middle - span * 0.55, middle + span * 0.55];
  const [minute, day] = [60_000, 86_400_000];
  // No size is more than three times the one before, so there are always two ticks.
  const seconds = [1, 2, 5, 15, 30, 60, 120, 300, 900, 1800, 3600, 10_800, 21_600, 43_200].map(
    (n) => n * 1000,
  );
  const sizes = [...seconds, ...[1, 2, 5, 10, 30, 90, 180, 365].map((n) => n * day)];
  const step = sizes.find((size) => (high - low) / size <= 6) ?? (high - low) / 5;
  const ticks: Tick[] = [];
  for (let at = Math.ceil(low / step) * step; at <= high; at += step) {
    const text = new Date(at).toISOString();
    ticks.push({
      at: (at - low) / (high - low),
      label:
        step >= day ? text.slice(0, 10) : text.slice(5, step < minute ? 19 : 16).replace("T", " "),
    });
  }
  return {
    low,
    high,
    ticks,
    place: (number) => Math.min(1, Math.max(0, (number - low) / (high - low))),
  };
}
