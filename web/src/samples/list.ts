/**
 * The list from which samples were opened, for the way to the next one and back. It lives as long
 * as the page; links need none of it.
 */

export interface List {
  /** Of the run. */
  key: string;
  query: URLSearchParams;
  places: Int32Array;
  /** The words that were searched, to be seen in the sample. */
  words: string;
}

let last: List | null = null;
const places = new Map<string, number>();

export const remember = (list: List): void => void (last = list);

export const listOf = (key: string): List | null => (last?.key === key ? last : null);

/** Where in a run's table one was: a place of the run. */
export const rememberPlace = (key: string, row: number): void => void places.set(key, row);

export const placeIn = (key: string): number => places.get(key) ?? -1;
