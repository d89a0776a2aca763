/** What differs between two texts, by words. */
import type { Mark } from "../text/text";

interface Word {
  text: string;
  begin: number;
}

const MOST_CHANGES = 800;
/** Words of both texts whose differences are looked for; what comes after stands as different in one piece. */
const MOST_WORDS = 60_000;
/** Characters that the browser's dictionary is asked about: at once (its time grows with the square), and of a whole text. */
const AT_ONCE = 300;
const MOST_ASKED = 30_000;

/** Spaces; letters of Chinese and Japanese, one by one; languages that write words without spaces between them; words; the rest. */
const PIECES =
  /\s+|[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]\p{M}*|(?<run>[\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]+)|(?:(?![\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}])[\p{L}\p{M}\p{N}_])+|[^]/gu;

const dictionary = typeof Intl.Segmenter === "function" ? new Intl.Segmenter(undefined, { granularity: "word" }) : null;

/** Words with what stands between them. */
function wordsOf(text: string): Word[] {
  const out: Word[] = [];
  let asked = 0;
  for (const part of text.matchAll(PIECES)) {
    const run = part.groups?.run;
    if (run === undefined || dictionary === null || asked > MOST_ASKED) {
      out.push({ text: part[0], begin: part.index });
      continue;
    }
    asked += run.length;
    for (let at = 0; at < run.length; at += AT_ONCE) {
      for (const word of dictionary.segment(run.slice(at, at + AT_ONCE))) out.push({ text: word.segment, begin: part.index + at + word.index });
    }
  }
  return out;
}

/**
 * Which words of each text the other lacks: the fewest changes from one to the other (Myers 1986, "An O(ND) difference algorithm and
 * its variations"). Beyond so many changes all between the common beginning and end counts as different.
 */
export function differences(a: string, b: string): { a: Mark[]; b: Mark[] } {
  if (a === b) return { a: [], b: [] };
  const one = wordsOf(a);
  const other = wordsOf(b);
  let head = 0;
  while (head < one.length && head < other.length && one[head]!.text === other[head]!.text) head++;
  let tail = 0;
  while (
    tail < one.length - head && tail < other.length - head &&
    one[one.length - 1 - tail]!.text === other[other.length - 1 - tail]!.text
  ) tail++;
  const left = one.slice(head, one.length - tail);
  const right = other.slice(head, other.length - tail);
  const kept = left.length + right.length > MOST_WORDS ? null : common(left, right);
  return {
    a: marks(left, kept?.[0] ?? null, "only-a", "only in A"),
    b: marks(right, kept?.[1] ?? null, "only-b", "only in B"),
  };
}

/** Which words of each belong to the longest common subsequence, null where too much differs. */
function common(a: Word[], b: Word[]): [boolean[], boolean[]] | null {
  const size = Math.min(a.length + b.length, MOST_CHANGES);
  const ends = new Int32Array(2 * size + 3);
  const steps: Int32Array[] = [];
  let found = -1;
  for (let changes = 0; changes <= size && found < 0; changes++) {
    steps.push(ends.slice(size + 1 - changes - 1, size + 1 + changes + 2));
    for (let k = -changes; k <= changes; k += 2) {
      const down = k === -changes || (k !== changes && ends[size + k]! < ends[size + k + 2]!);
      let x = down ? ends[size + k + 2]! : ends[size + k]! + 1;
      let y = x - k;
      while (x < a.length && y < b.length && a[x]!.text === b[y]!.text) {
        x++;
        y++;
      }
      ends[size + 1 + k] = x;
      if (x >= a.length && y >= b.length) {
        found = changes;
        break;
      }
    }
  }
  if (found < 0) return null;
  const inA = new Array<boolean>(a.length).fill(false);
  const inB = new Array<boolean>(b.length).fill(false);
  let x = a.length;
  let y = b.length;
  for (let changes = found; changes >= 0; changes--) {
    const before = steps[changes]!; // of diagonal k at place k + changes + 1
    const k = x - y;
    const down = k === -changes || (k !== changes && before[k + changes]! < before[k + changes + 2]!);
    const previous = down ? k + 1 : k - 1;
    const fromX = changes === 0 ? 0 : before[previous + changes + 1]!;
    const fromY = changes === 0 ? 0 : fromX - previous;
    while (x > fromX && y > fromY) {
      x--;
      y--;
      inA[x] = true;
      inB[y] = true;
    }
    if (changes > 0) [x, y] = [fromX, fromY];
  }
  return [inA, inB];
}

/** Neighbouring words that differ, with the spaces between them, in one mark each. */
function marks(words: Word[], kept: boolean[] | null, kind: Mark["kind"], label: string): Mark[] {
  const out: Mark[] = [];
  const end = (place: number) => words[place]!.begin + words[place]!.text.length;
  words.forEach((word, place) => {
    if (kept?.[place]) return;
    const last = out.at(-1);
    const between = place > 0 && last !== undefined && kept?.[place - 1] && !words[place - 1]!.text.trim();
    if (last !== undefined && (last.end === word.begin || (between && last.end === words[place - 1]!.begin))) last.end = end(place);
    else out.push({ begin: word.begin, end: end(place), kind, label });
  });
  return out;
}
