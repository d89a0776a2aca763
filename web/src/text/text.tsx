/**
 * Texts of strangers, shown as they are: as text, with labels for what is not seen, in boxes that
 * they cannot leave.
 */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { copy } from "../shell/copy";
import { pieces, plain, wholeCharacter } from "./special";

/**
 * A part of a text that is to be seen: what a score rests on, a hit of a search, a word that
 * differs.
 */
export interface Mark {
  begin: number;
  end: number;
  kind: "evidence" | "hit" | "current-hit" | "only-a" | "only-b" | "supports" | "contradicts" | "nearest";
  /** Said to those who cannot see the colour, and shown on hovering. */
  label?: string;
}

/** Longer texts show this much at first, and ten times as much with every further step. */
const CLIP = 4_000;
/** Of a text in one line. */
const LINE = 400;

/**
 * More characters than this under one label are not laid out: thousands of marks upon one letter
 * take a browser seconds.
 */
const MANY = 16;

const count = (n: number) => n.toLocaleString("en");

function Plain({ text }: { text: string }) {
  return (
    <>
      {pieces(text).map((piece) =>
        piece.label === undefined ? (
          piece.text
        ) : (
          <span class={piece.acts ? "special acts" : "special"} data-label={piece.label}>
            {piece.text.length > MANY ? <span hidden>{piece.text}</span> : piece.text}
          </span>
        ),
      )}
    </>
  );
}

/**
 * The text up to `end` with its marks; where they overlap, a part has the kinds and labels of all.
 */
export function marked(text: string, marks: Mark[], end: number): ComponentChildren {
  const inside = marks.filter(
    (mark) => mark.begin < mark.end && mark.begin < end && mark.begin >= 0,
  );
  if (!inside.length) return <Plain text={text.slice(0, end)} />;
  const edges = new Set([0, end]);
  for (const mark of inside)
    edges.add(wholeCharacter(text, mark.begin)).add(wholeCharacter(text, Math.min(mark.end, end)));
  const places = [...edges].sort((a, b) => a - b);
  return places.slice(0, -1).map((begin, index) => {
    const stop = places[index + 1] ?? end;
    const over = inside.filter(
      (mark) =>
        wholeCharacter(text, mark.begin) <= begin &&
        wholeCharacter(text, Math.min(mark.end, end)) >= stop,
    );
    const plainText = <Plain text={text.slice(begin, stop)} />;
    if (!over.length) return plainText;
    const labels = [...new Set(over.map((mark) => mark.label).filter(Boolean))].join("; ");
    return (
      <mark
        class={[...new Set(over.map((mark) => mark.kind))].join(" ")}
        title={labels || undefined}
      >
        {plainText}
      </mark>
    );
  });
}

const isSelected = (mark: Mark) => ["supports", "contradicts", "nearest"].includes(mark.kind);

/**
 * A text in a box of its own, with its line breaks; a long one is clipped until one asks for more.
 */
export function Text({
  value,
  marks = [],
  label,
}: {
  value: string;
  marks?: Mark[];
  label?: string;
}) {
  const [chosenLimit, setLimit] = useState(CLIP);
  // What somebody has just selected is shown, however far down it is.
  const selectedEnd = Math.max(0, ...marks.filter(isSelected).map((mark) => mark.end));
  const limit = Math.max(chosenLimit, selectedEnd);
  const clipped = value.length > limit * 1.5;
  const end = clipped ? wholeCharacter(value, limit) : value.length;
  const beyond = marks.filter((mark) => mark.end > end).length;
  const next = Math.min(value.length, limit * 10);
  return (
    <div class="said-box">
      {value === "" ? (
        <p class="said quiet">(empty)</p>
      ) : (
        <pre class="said" dir="auto">
          {marked(value, marks, end)}
        </pre>
      )}
      {(clipped || value.length > 200) && (
        <p class="said-foot">
          {clipped && (
            <>
              <span>
                {count(end)} of {count(value.length)} characters
                {beyond ? `; ${count(beyond)} marked further down` : ""}
              </span>
              <button type="button" onClick={() => setLimit(limit * 10)}>
                {next * 1.5 >= value.length ? "Show all" : `Show ${count(next)}`}
                {label ? <span class="unseen"> of {plain(label)}</span> : null}
              </button>
            </>
          )}
          <button type="button" onClick={() => copy(value, "Text")}>
            Copy text{label ? <span class="unseen"> of {plain(label)}</span> : null}
          </button>
        </p>
      )}
    </div>
  );
}

/** The beginning of a text in one line, or in a name's place. */
export function Line({
  value,
  marks = [],
  most = LINE,
}: {
  value: string;
  marks?: Mark[];
  most?: number;
}) {
  const end = value.length > most ? wholeCharacter(value, most) : value.length;
  return (
    <bdi class="said-line">
      {marked(value, marks, end)}
      {end < value.length ? "…" : ""}
    </bdi>
  );
}

/**
 * Where the words of a search are in a text: the words as they are typed, "several words" in
 * quotation marks as one.
 */
export function hits(text: string, query: string, most = 500): Mark[] {
  const words = [...query.matchAll(/"([^"]+)"|(\S+)/g)]
    .map((match) => (match[1] ?? match[2] ?? "").toLowerCase())
    .filter(Boolean);
  if (!words.length) return [];
  const marks: Mark[] = [];
  const folded = text.toLowerCase();
  if (folded.length !== text.length) {
    // Folding changed the text's length (İ); places would then be wrong.
    for (const word of words) {
      const pattern = new RegExp(word.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&"), "gi");
      for (const match of text.matchAll(pattern)) {
        if (marks.length >= most) break;
        marks.push({ begin: match.index, end: match.index + match[0].length, kind: "hit" });
      }
    }
    return marks;
  }
  for (const word of words) {
    for (
      let index = folded.indexOf(word);
      index >= 0 && marks.length < most;
      index = folded.indexOf(word, index + word.length)
    ) {
      marks.push({ begin: index, end: index + word.length, kind: "hit" });
    }
  }
  return marks;
}
