/**
 * The sentences of an answer with each judge's verdict. Whoever selects one sees where the source
 * says so, or says otherwise.
 */
import type { RunInfo, Sample, SentenceVerdict, SentenceVerdicts } from "../data/api";
import { Line, type Mark } from "../text/text";
import { FirstOf } from "../views/parts";
import { MessagePart } from "./story";

/** A sentence that was selected, of the verdicts of one scorer. */
export interface Selection {
  sample: Sample;
  scorer: string;
  sentence: number;
}

/** Sentences that are drawn at first. */
const FEW = 30;

const RELATIONS = ["supports", "contradicts", "nearest"] as const;
type Relation = (typeof RELATIONS)[number];

const RELATION_WORDS: Record<Relation, string> = {
  supports: "Supported by",
  contradicts: "Contradicted by",
  nearest: "Supported by nothing; the nearest is",
};

const relationOf = (verdict: SentenceVerdict): Relation =>
  RELATIONS.find((relation) => relation === verdict.relation) ?? "nearest";

/** The models of the run's judges, by role. */
export function judgeNames(info: RunInfo): Map<string, string> {
  const roles = info.facts.filter(([fact]) => fact.startsWith("Role "));
  return new Map(roles.map(([fact, model]) => [fact.slice("Role ".length), model]));
}

function sentenceOf(sample: Sample, selection: Selection): SentenceVerdicts | undefined {
  const score = sample.scores.find(({ scorer }) => scorer === selection.scorer);
  return score?.sentences[selection.sentence];
}

/** What to mark in the source for the selected sentence, by passage; -1 is the question. */
export function marksOf(sample: Sample, selection: Selection | null): Map<number, Mark[]> {
  const marks = new Map<number, Mark[]>();
  const sentence = selection && sentenceOf(sample, selection);
  for (const verdict of sentence?.verdicts ?? []) {
    const kind = relationOf(verdict);
    for (const { passage, begin, end } of verdict.evidence) {
      const mark = { begin, end, kind, label: `${verdict.role}: ${kind}` };
      marks.set(passage, [...(marks.get(passage) ?? []), mark]);
    }
  }
  return marks;
}

const differ = ({ verdicts }: SentenceVerdicts): boolean =>
  new Set(verdicts.map((verdict) => verdict.supported)).size > 1;

export function Sentences({
  sample,
  names,
  selection,
  choose,
}: {
  sample: Sample;
  names: Map<string, string>;
  selection: Selection | null;
  choose(selection: Selection | null): void;
}) {
  const judged = sample.scores.filter((score) => score.sentences.length > 0);
  return (
    <>
      {judged.map((score) => (
        <MessagePart
          title="Sentences"
          note={
            <>
              as judged for <Line value={score.scorer} />
            </>
          }
        >
          <Legend sentences={score.sentences} names={names} />
          <FirstOf
            all={score.sentences}
            noun="sentences"
            first={FEW}
            render={(sentence, index) => {
              const isSelected =
                selection?.scorer === score.scorer && selection.sentence === index;
              return (
                <SentenceBox
                  answer={sample.answer}
                  sample={sample}
                  sentence={sentence}
                  names={names}
                  selected={isSelected}
                  toggle={() =>
                    choose(isSelected ? null : { sample, scorer: score.scorer, sentence: index })
                  }
                />
              );
            }}
          />
        </MessagePart>
      ))}
    </>
  );
}

/** Who the judges are, and on how many sentences they differ. */
function Legend({
  sentences,
  names,
}: {
  sentences: SentenceVerdicts[];
  names: Map<string, string>;
}) {
  const roles = [
    ...new Set(sentences.flatMap(({ verdicts }) => verdicts.map((verdict) => verdict.role))),
  ];
  const split = sentences.filter(differ).length;
  return (
    <p class="note quiet">
      {roles.slice(0, 20).map((role, index) => (
        <>
          {index ? "; " : ""}
          <Line value={role} />
          {names.has(role) && (
            <>
              {" "}
              is <Line value={names.get(role) ?? ""} />
            </>
          )}
        </>
      ))}
      .{" "}
      {roles.length > 1 &&
        (split
          ? `They differ on ${split} of ${sentences.length} sentences. `
          : "They agree on every sentence. ")}
      Select a sentence to see it in the source.
    </p>
  );
}

function SentenceBox({
  answer,
  sample,
  sentence,
  names,
  selected,
  toggle,
}: {
  answer: string;
  sample: Sample;
  sentence: SentenceVerdicts;
  names: Map<string, string>;
  selected: boolean;
  toggle(): void;
}) {
  const hasPlaces = sentence.verdicts.some((verdict) => verdict.evidence.length > 0);
  return (
    <article class={selected ? "sentence selected" : "sentence"}>
      <button type="button" class="sentence-text" aria-expanded={selected} onClick={toggle}>
        <Line value={answer.slice(sentence.begin, sentence.end)} />
        <span class="sentence-verdicts">
          {sentence.verdicts.map((verdict) => (
            <Verdict verdict={verdict} />
          ))}
          {differ(sentence) && <span class="chip">judges differ</span>}
        </span>
      </button>
      {selected && (
        <div class="sentence-evidence">
          {sentence.verdicts.map((verdict) => (
            <Evidence sample={sample} verdict={verdict} name={names.get(verdict.role) ?? ""} />
          ))}
          {hasPlaces && (
            <button type="button" onClick={showInSource}>
              Show in the source
            </button>
          )}
        </div>
      )}
    </article>
  );
}

function Verdict({ verdict }: { verdict: SentenceVerdict }) {
  const { role, supported, probability } = verdict;
  return (
    <span class={`verdict ${supported ? "good" : "bad"}`}>
      <span aria-hidden="true">{supported ? "✓" : "✗"}</span> <Line value={role} />{" "}
      {supported ? "supported" : "not supported"}{" "}
      <span class="quiet">{Number.isNaN(probability) ? "" : probability.toFixed(2)}</span>
    </span>
  );
}

function Evidence({
  sample,
  verdict,
  name,
}: {
  sample: Sample;
  verdict: SentenceVerdict;
  name: string;
}) {
  const textOf = (passage: number) =>
    passage < 0 ? sample.input : (sample.passages[passage]?.text ?? "");
  return (
    <div class="evidence-of">
      <h3 class="role">
        <Line value={verdict.role} />
        {name && (
          <span class="quiet">
            <Line value={name} />
          </span>
        )}
      </h3>
      {verdict.reason && (
        <p>
          <Line value={verdict.reason} />
        </p>
      )}
      {verdict.evidence.length > 0 && <p>{RELATION_WORDS[relationOf(verdict)]}:</p>}
      {verdict.evidence.map(({ passage, begin, end }) => (
        <blockquote class={relationOf(verdict)}>
          <Line value={textOf(passage).slice(begin, end)} />
        </blockquote>
      ))}
      {verdict.refused && (
        <p class="quiet">
          No place is shown: <Line value={verdict.refused} />.
        </p>
      )}
    </div>
  );
}

function showInSource(): void {
  const mark = document.querySelector("mark.supports, mark.contradicts, mark.nearest");
  mark?.scrollIntoView({ block: "center" });
}
