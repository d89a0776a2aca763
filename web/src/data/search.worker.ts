/**
 * Searches blocks away from the page, so that it stays fluid. Blocks stay here packed, for the next
 * query.
 */
import { fromBase64, inflate } from "./parts";
import { searcher } from "./search";

export interface SearchRequest {
  query: number;
  words: string[];
  /** Names a block and what it held when it was sent. */
  block: string;
  /** The block, packed, as bytes or base64; absent where it was sent before. */
  packed?: Uint8Array | string;
  /** Lines to look at, null for all. */
  wanted: Int32Array | null;
}

export interface SearchReply {
  query: number;
  block: string;
  hits: number[];
  error?: string;
}

const packedBlocks = new Map<string, Uint8Array>();
let current = { words: "", search: searcher([]) };

self.onmessage = async ({ data }: MessageEvent<SearchRequest>): Promise<void> => {
  const answer: SearchReply = { query: data.query, block: data.block, hits: [] };
  try {
    if (data.packed !== undefined)
      packedBlocks.set(
        data.block,
        typeof data.packed === "string" ? fromBase64(data.packed) : data.packed,
      );
    const words = JSON.stringify(data.words);
    if (current.words !== words) current = { words, search: searcher(data.words) };
    const packed = packedBlocks.get(data.block);
    if (packed)
      answer.hits = current.search(new TextDecoder().decode(await inflate(packed)), data.wanted);
  } catch (error) {
    answer.error = String(error);
  }
  self.postMessage(answer);
};
