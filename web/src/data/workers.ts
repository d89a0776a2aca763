/**
 * Full-text search over the blocks of a run by a few workers, with hits in the order of the run.
 */
import { wordsOf } from "./search";
import type { SearchRequest, SearchReply } from "./search.worker";
import SearchWorker from "./search.worker?worker&inline";

/**
 * A block to search: its name, how it is had, where it begins and which of its lines are wanted
 * (null: all).
 */
export interface WantedBlock {
  block: string;
  packed: () => Promise<Uint8Array | string>;
  start: number;
  lines: Int32Array | null;
  rows: number;
}

interface PooledWorker {
  worker: Worker;
  sent: Set<string>;
  busy: number;
}

const AHEAD = 2;
let pool: PooledWorker[] = [];
let query = 0;
const waiting = new Map<string, (told: SearchReply) => void>();

/** The workers, started the first time. */
export function workers(): PooledWorker[] {
  if (!pool.length) {
    // One for each processor: while they search, the page has little to do.
    const count = Math.min(8, navigator.hardwareConcurrency || 2);
    pool = Array.from({ length: count }, () => {
      const worker = new SearchWorker();
      worker.onmessage = ({ data }: MessageEvent<SearchReply>) =>
        waiting.get(`${data.query} ${data.block}`)?.(data);
      return { worker, sent: new Set<string>(), busy: 0 };
    });
  }
  return pool;
}

export async function searchBlocks(
  text: string,
  blocks: WantedBlock[],
  onHits: (hits: Int32Array, done: number, of: number) => void,
  stop: AbortSignal,
): Promise<void> {
  const words = wordsOf(text);
  const of = blocks.reduce((sum, block) => sum + block.rows, 0);
  const number = ++query;
  const hitsByBlock = new Map<number, number[]>();
  let reported = 0;
  let done = 0;
  const tell = (): void => {
    const hits: number[] = [];
    for (let block = hitsByBlock.get(reported); block; block = hitsByBlock.get(reported)) {
      const { start, rows } = blocks[reported]!;
      for (const line of block) hits.push(start + line);
      done += rows;
      hitsByBlock.delete(reported++);
    }
    if (!stop.aborted) onHits(Int32Array.from(hits), done, of);
  };
  const searchIn = async (worker: PooledWorker, at: number): Promise<void> => {
    const { block, packed, lines } = blocks[at]!;
    const ask: SearchRequest = { query: number, words, block, wanted: lines };
    if (!worker.sent.has(block)) {
      ask.packed = await packed();
      worker.sent.add(block);
    }
    const answer = await new Promise<SearchReply>((go) => {
      waiting.set(`${number} ${block}`, go);
      worker.worker.postMessage(ask);
    });
    waiting.delete(`${number} ${block}`);
    if (answer.error) throw new Error(answer.error);
    hitsByBlock.set(at, answer.hits);
    if (at === reported) tell();
  };
  // A block always goes to the same worker, which keeps it.
  const all = workers();
  await Promise.all(
    all.flatMap((worker, which) => {
      let next = which;
      return Array.from({ length: AHEAD }, async () => {
        while (next < blocks.length && !stop.aborted) {
          const at = next;
          next += all.length;
          await searchIn(worker, at);
        }
      });
    }),
  );
  if (!blocks.length) onHits(new Int32Array(0), 0, 0);
}
