/**
 * The samples of one run: columns that are held, previews and records that are read when they are
 * wanted.
 */
import type { Column, Filter, Preview, RunData, RunInfo, Sample } from "./api";
import { inflate, json, withArrays } from "./parts";
import { linesOf, sampleOf } from "./sample";
import { matcher, wordsOf } from "./search";
import { Embedded, type Source } from "./source";
import { countRows, filterRows, sortRows } from "./table";
import { searchBlocks, type WantedBlock } from "./workers";

interface Index {
  generation: number;
  size: number;
  chunk: number;
  columns: {
    name: string;
    title: string;
    kind: "number" | "category";
    names?: string[];
    sets?: { members: string[]; of: number[][] };
  }[];
  /** The first row of each block. */
  blocks: number[];
}

interface Chunk {
  ids: string[];
  draws: Int32Array;
  columns: Map<string, Float64Array | Int32Array>;
}

type Previews = [
  questions: string[],
  answers: string[],
  expected?: string[],
  reasons?: string[],
];

const BLOCKS_KEPT = 8;
/** Previews that are read before anybody scrolls to them, where that costs no network. */
const READ_AHEAD = 100;

/** What a run that grew need not read again: parts that were full. */
class PartCache {
  chunks = new Map<number, Chunk>();
  previews = new Map<number, Previews>();
  constructor(readonly generation: number) {}
}

export class RunTable implements RunData {
  readonly size: number;
  readonly columns: Column[];
  private listeners = new Set<() => void>();
  private reading = new Set<number>();
  private blocks = new Map<number, Promise<string[]>>();
  private places: Map<string, number> | null = null;

  private constructor(
    readonly info: RunInfo,
    private source: Source,
    private index: Index,
    private chunks: Chunk[],
    private cache: PartCache,
  ) {
    this.size = index.size;
    this.columns = index.columns.map(({ name, title, kind, names, sets }) => {
      const values = joined(
        chunks.map((chunk) => chunk.columns.get(name)),
        chunks,
        kind,
        index.size,
      );
      return kind === "number"
        ? { name, title, kind, values: values as Float64Array }
        : {
            name,
            title,
            kind,
            names: names ?? [],
            codes: values as Int32Array,
            ...(sets ? { sets } : {}),
          };
    });
  }

  /** Reads what the table needs; again where a growing run became another while it was read. */
  static async read(
    source: Source,
    info: RunInfo,
    before?: RunTable,
    tries = 3,
  ): Promise<RunTable> {
    try {
      return await RunTable.readOnce(source, info, before);
    } catch (error) {
      if (tries <= 1 || source instanceof Embedded) throw error;
      await new Promise((go) => setTimeout(go, 300));
      return RunTable.read(source, info, before, tries - 1);
    }
  }

  private static async readOnce(
    source: Source,
    info: RunInfo,
    before?: RunTable,
  ): Promise<RunTable> {
    const index = json<Index>(await inflate(await source.part(`run/${info.key}/index`)));
    const cache =
      before?.cache.generation === index.generation
        ? before.cache
        : new PartCache(index.generation);
    const count = Math.ceil(index.size / index.chunk);
    const chunks = await Promise.all(
      Array.from({ length: count }, async (_, number) => {
        const had = cache.chunks.get(number);
        if (had) return had;
        const { head, arrays } = withArrays<{ ids: string[]; columns: string[] }>(
          await inflate(await source.part(`run/${info.key}/columns/${number}`, index.generation)),
        );
        const columns = new Map(head.columns.map((name, i) => [name, arrays[i + 1]!]));
        const chunk = { ids: head.ids, draws: arrays[0] as Int32Array, columns };
        if (head.ids.length === index.chunk) cache.chunks.set(number, chunk);
        return chunk;
      }),
    );
    return new RunTable(info, source, index, chunks, cache);
  }

  id(sampleIndex: number): string {
    return (
      this.chunks[Math.floor(sampleIndex / this.index.chunk)]?.ids[
        sampleIndex % this.index.chunk
      ] ?? ""
    );
  }

  draw(sampleIndex: number): number {
    return (
      this.chunks[Math.floor(sampleIndex / this.index.chunk)]?.draws[
        sampleIndex % this.index.chunk
      ] ?? 0
    );
  }

  find(task: string, id: string, draw: number): number {
    if (!this.places) {
      this.places = new Map();
      const tasks = this.columns.find((column) => column.name === "task");
      for (let sampleIndex = this.size - 1; sampleIndex >= 0; sampleIndex--) {
        const name = tasks?.kind === "category" ? tasks.names[tasks.codes[sampleIndex]!] : "";
        this.places.set(`${name}\0${this.id(sampleIndex)}\0${this.draw(sampleIndex)}`, sampleIndex);
      }
    }
    return this.places.get(`${task}\0${id}\0${draw}`) ?? -1;
  }

  filter(filter: Filter): Int32Array {
    return filterRows(this.columns, this.size, filter);
  }

  counts(column: string, places: Int32Array | null): Int32Array {
    return countRows(this.column(column), places);
  }

  sort(places: Int32Array, column: string, descending: boolean): Int32Array {
    return sortRows(places, this.column(column), descending);
  }

  preview(sampleIndex: number): Preview | null {
    const number = Math.floor(sampleIndex / this.index.chunk);
    const preview = this.cache.previews.get(number);
    const at = sampleIndex % this.index.chunk;
    if (!preview || at >= preview[0].length) {
      void this.readPreviews(number);
      return null;
    }
    return {
      question: preview[0][at]!,
      answer: preview[1][at]!,
      expected: preview[2]?.[at] ?? "",
      reason: preview[3]?.[at] ?? "",
    };
  }

  onPreviews(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  async sample(sampleIndex: number): Promise<Sample> {
    const number = this.blockOf(sampleIndex);
    const lines = await this.lines(number);
    const line = lines[sampleIndex - this.index.blocks[number]!];
    if (line === undefined)
      throw new Error(
        "This sample is not where the index says: the file is damaged. Make it again.",
      );
    return { ...sampleOf(line), id: this.id(sampleIndex) };
  }

  likelyHits(query: string): Int32Array {
    const holdsWords = matcher(wordsOf(query));
    const hits: number[] = [];
    this.chunks.forEach((chunk, number) => {
      const [questions, answers] = this.cache.previews.get(number) ?? [[], []];
      chunk.ids.forEach((id, at) => {
        if (holdsWords([id, questions[at] ?? "", answers[at] ?? ""]))
          hits.push(number * this.index.chunk + at);
      });
    });
    return Int32Array.from(hits);
  }

  search(
    query: string,
    places: Int32Array,
    onHits: (hits: Int32Array, done: number, of: number) => void,
    stop: AbortSignal,
  ): Promise<void> {
    // Hits come in the order of the run, whatever order the places have.
    const sorted = places.every((sampleIndex, i) => i === 0 || places[i - 1]! < sampleIndex)
      ? places
      : places.slice().sort();
    const blocks: WantedBlock[] = [];
    let at = 0;
    this.index.blocks.forEach((start, number) => {
      const end = this.index.blocks[number + 1] ?? this.size;
      const from = at;
      while (at < sorted.length && sorted[at]! < end) at++;
      if (at === from) return;
      const lines =
        at - from === end - start
          ? null
          : sorted.slice(from, at).map((sampleIndex) => sampleIndex - start);
      const block = `${this.info.key}/${this.index.generation}/${number}/${end}`;
      blocks.push({
        block,
        packed: () => this.source.part(this.blockKey(number), this.index.generation),
        start,
        lines,
        rows: at - from,
      });
    });
    return searchBlocks(query, blocks, onHits, stop);
  }

  /** Reads the previews that are not there yet, one part after another. */
  async readAhead(): Promise<void> {
    for (let number = 0; number < Math.min(this.chunks.length, READ_AHEAD); number++) {
      await this.readPreviews(number);
      await new Promise((go) => setTimeout(go, 20));
    }
  }

  private column(name: string): Column | undefined {
    return this.columns.find((column) => column.name === name);
  }

  private async readPreviews(number: number): Promise<void> {
    const rows = Math.min(this.index.chunk, this.size - number * this.index.chunk);
    if (this.reading.has(number) || (this.cache.previews.get(number)?.[0].length ?? 0) >= rows)
      return;
    this.reading.add(number);
    try {
      const packed = await this.source.part(
        `run/${this.info.key}/previews/${number}`,
        this.index.generation,
      );
      this.cache.previews.set(number, json<Previews>(await inflate(packed)));
      for (const listener of this.listeners) listener();
      this.reading.delete(number);
    } catch {
      // Asked again with the next reading of the run: a preview that cannot be read stays empty.
    }
  }

  private blockOf(sampleIndex: number): number {
    const starts = this.index.blocks;
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (starts[middle]! <= sampleIndex) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  private blockKey(number: number): string {
    return `run/${this.info.key}/block/${number}`;
  }

  private lines(number: number): Promise<string[]> {
    const had = this.blocks.get(number);
    const stored =
      had ??
      (async () => {
        const packed = await this.source.part(this.blockKey(number), this.index.generation);
        const { lines, order } = linesOf(new TextDecoder().decode(await inflate(packed)));
        const rows: string[] = [];
        lines.forEach((line, i) => (rows[order[i]!] = line));
        return rows;
      })();
    this.blocks.delete(number);
    this.blocks.set(number, stored);
    stored.catch(() => this.blocks.delete(number));
    for (const oldest of this.blocks.keys()) {
      if (this.blocks.size <= BLOCKS_KEPT) break;
      this.blocks.delete(oldest);
    }
    return stored;
  }
}

function joined(
  chunkValues: (Float64Array | Int32Array | undefined)[],
  chunks: Chunk[],
  kind: "number" | "category",
  size: number,
): Float64Array | Int32Array {
  const joinedValues =
    kind === "number" ? new Float64Array(size).fill(NaN) : new Int32Array(size).fill(-1);
  let at = 0;
  chunkValues.forEach((values, i) => {
    const rows = Math.min(chunks[i]!.ids.length, size - at);
    if (values) joinedValues.set(values.length > rows ? values.subarray(0, rows) : values, at);
    at += rows;
  });
  return joinedValues;
}
