import { useEffect, useRef, useState } from "preact/hooks";
import type { RunData } from "../data/api";

export interface Search {
  /** 1 for places whose texts hold the words; null where nothing is searched. */
  mask: Uint8Array | null;
  hits: number;
  done: number;
  of: number;
  error: string | null;
  /** Rises with every part that had hits. */
  part: number;
}

/**
 * Milliseconds between two drawings of hits: the list is read meanwhile, and the search goes on.
 */
const PAUSE = 120;

/**
 * Milliseconds before records are read: whoever types on asks for other words. What the list holds
 * already is looked through at once.
 */
const TYPING = 120;

const NONE: Search = { mask: null, hits: 0, done: 0, of: 0, error: null, part: 0 };

/**
 * Searches all samples of the run, first those that the filter leaves: a changed filter then needs
 * no second search, and what is shown comes first.
 */
export function useSearch(
  run: RunData | null,
  words: string,
  candidates: Int32Array | null,
): Search {
  const [state, set] = useState<Search>(NONE);
  const first = useRef(candidates);
  first.current = candidates;
  useEffect(() => {
    if (!run || !words.trim()) return set(NONE);
    const stop = new AbortController();
    const found = new Uint8Array(run.size);
    const mask = new Uint8Array(run.size);
    let now: Search = { mask, hits: 0, done: 0, of: run.size, error: null, part: 0 };
    let [waiting, updatedAt] = [0, -Infinity];
    const show = () => {
      [waiting, updatedAt] = [0, performance.now()];
      if (!stop.signal.aborted) set(now);
    };
    set(now);
    const begin = first.current ?? new Int32Array(0);
    const all = begin.length === run.size;
    const seen = new Uint8Array(run.size);
    for (const index of begin) seen[index] = 1;
    const unread = all ? new Int32Array(0) : Int32Array.from({ length: run.size - begin.length });
    for (let index = 0, next = 0; !all && index < run.size; index++)
      if (!seen[index]) unread[next++] = index;
    const look = (places: Int32Array, before: number) =>
      run.search(
        words,
        places,
        (hits, done) => {
          let more = 0;
          for (const index of hits) {
            found[index] = 1;
            if (!mask[index]) [mask[index], more] = [1, more + 1];
          }
          now = {
            ...now,
            hits: now.hits + more,
            done: before + done,
            part: now.part + (hits.length ? 1 : 0),
          };
          waiting ||= window.setTimeout(show, updatedAt + PAUSE - performance.now());
        },
        stop.signal,
      );
    const timer = window.setTimeout(async () => {
      try {
        const likely = run.likelyHits(words);
        for (const index of likely) mask[index] = 1;
        now = { ...now, hits: likely.length, part: now.part + (likely.length ? 1 : 0) };
        if (likely.length) show();
        await new Promise((go) => setTimeout(go, TYPING));
        if (stop.signal.aborted) return;
        if (begin.length) await look(begin, 0);
        if (unread.length && !stop.signal.aborted) await look(unread, begin.length);
        // Now the texts themselves were read: what only seemed to hold the words goes.
        const hits = found.reduce((sum, one) => sum + one, 0);
        now = { ...now, mask: found, hits, done: run.size, part: now.part + 1 };
      } catch (error) {
        if (stop.signal.aborted) return;
        now = {
          ...now,
          done: run.size,
          error: error instanceof Error ? error.message : String(error),
        };
      }
      show();
    }, 0);
    return () => {
      stop.abort();
      clearTimeout(timer);
      clearTimeout(waiting);
    };
  }, [run, words]);
  return words.trim() ? state : NONE;
}
