/** A long text, such as a tool's result: its ends first, the whole in pieces when it is wanted. */
import { useState } from "preact/hooks";
import { count } from "../samples/values";
import { copy } from "../shell/copy";
import { plain, wholeCharacter } from "../text/special";
import { hits, type Mark, marked } from "../text/text";

/** Texts up to this are shown whole. */
const WHOLE_CHARS = 4_000;
const WHOLE_LINES = 30;
/** What is shown of a longer one: errors often stand at its end. */
const HEAD_CHARS = 1_500;
const HEAD_LINES = 12;
const TAIL_CHARS = 1_000;
const TAIL_LINES = 8;
/** Characters that are laid out at a time. */
const PIECE_CHARS = 50_000;

/** Where the beginning of a text ends that has at most so many lines and characters. */
export function headEnd(text: string, chars: number, lines: number): number {
  let end = -1;
  for (let line = 0; line < lines; line++) {
    const next = text.indexOf("\n", end + 1);
    if (next < 0 || next > chars) return Math.min(text.length, wholeCharacter(text, chars));
    end = next;
  }
  return end;
}

function tailBegin(text: string, chars: number, lines: number): number {
  let begin = text.length;
  for (let line = 0; line < lines; line++) {
    const next = text.lastIndexOf("\n", begin - 1);
    if (next < text.length - chars) return wholeCharacter(text, Math.max(0, text.length - chars));
    begin = next;
  }
  return begin + 1;
}

export interface OutputProps {
  value: string;
  label: string;
  /** The words of a search, and where in the text the hit is at which one looks. */
  words?: string;
  at?: number | undefined;
  /** Whether the text is shown from its beginning, as where somebody has just unfolded it. */
  unfolded?: boolean;
}

export function Output({ value, label, words = "", at, unfolded = false }: OutputProps) {
  const [view, setView] = useState<"ends" | number>(unfolded ? 0 : "ends");
  const isShort = headEnd(value, WHOLE_CHARS, WHOLE_LINES) === value.length;
  const pieces = Math.ceil(value.length / PIECE_CHARS);
  // A hit that one looks at is shown, wherever in the text it is.
  const shown = isShort ? 0 : at === undefined ? view : Math.floor(at / PIECE_CHARS);
  const [head, tail] = [
    headEnd(value, HEAD_CHARS, HEAD_LINES),
    tailBegin(value, TAIL_CHARS, TAIL_LINES),
  ];
  const ends = shown === "ends";
  const begin = ends ? 0 : wholeCharacter(value, shown * PIECE_CHARS);
  const end = ends ? head : wholeCharacter(value, Math.min(value.length, begin + PIECE_CHARS));
  const part = (from: number, to: number) => {
    const text = value.slice(from, to);
    return <pre class="said" dir="auto">{marked(text, marksOf(text, words, at, from), text.length)}</pre>;
  };
  const name = <span class="unseen"> of {plain(label)}</span>;
  return (
    <div class="said-box output">
      {value === "" ? <p class="said quiet">(empty)</p> : part(begin, end)}
      {ends && head < tail && (
        <p class="output-gap">
          <button type="button" onClick={() => setView(0)}>
            … {count(tail - head)} more characters: show{name}
          </button>
        </p>
      )}
      {ends && head < value.length && part(Math.max(head, tail), value.length)}
      {(!isShort || value.length > 200) && (
        <p class="said-foot">
          {!ends && !isShort && pieces > 1 && (
            <>
              <button type="button" disabled={shown === 0} onClick={() => setView(shown - 1)}>
                ‹ Earlier{name}
              </button>
              <span>
                characters {count(begin + 1)} to {count(end)} of {count(value.length)}
              </span>
              <button
                type="button"
                disabled={shown + 1 >= pieces}
                onClick={() => setView(shown + 1)}
              >
                Later{name} ›
              </button>
            </>
          )}
          {!ends && !isShort && (
            <button type="button" onClick={() => setView("ends")}>
              Show less{name}
            </button>
          )}
          <button type="button" onClick={() => copy(value, "Text")}>
            Copy text{name}
          </button>
        </p>
      )}
    </div>
  );
}

/** The hits in a part of a text; the one at which one looks is marked as such. */
function marksOf(text: string, words: string, at: number | undefined, from: number): Mark[] {
  if (!words) return [];
  return hits(text, words).map((mark) =>
    at !== undefined && mark.begin + from === at ? { ...mark, kind: "current-hit" } : mark,
  );
}
