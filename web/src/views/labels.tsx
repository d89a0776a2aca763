/**
 * Labels by people: answers one by one, without a word of what a judge said, and the table that
 * `evalwright check judge calibrate` reads.
 */
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Catalog, Data, LabelSet, RunInfo, Sample } from "../data/api";
import type { PageProps } from "../pages";
import { links, runAddress, useRead, useRun } from "../pages";
import { useKeys } from "../shell/keys";
import { Line, Text } from "../text/text";
import * as labels from "./label_store";
import type { Picked } from "./label_store";
import * as numbers from "./numbers";
import { Choice, EmptyNote, Reading, runLabels, useCatalog } from "./parts";

const RIGHT_OR_WRONG: [value: string, name: string, key: string][] = [
  ["1", "Right", "1"],
  ["0", "Wrong", "0"],
];
const GRADES: [value: string, name: string, key: string][] = [
  ["0", "Wrong", "0"],
  ["0.25", "Mostly wrong", "1"],
  ["0.5", "Half right", "2"],
  ["0.75", "Mostly right", "3"],
  ["1", "Right", "4"],
];

interface Row {
  row: string;
  item: Picked;
}

const BY_HAND = "chosen";

interface Source {
  name: string;
  words: string;
  graded: boolean;
  rows: Row[];
  run: RunInfo;
}

function sources(catalog: Catalog): Source[] {
  const names = runLabels(catalog);
  const sourceOf = (run: RunInfo, set: LabelSet): Source => ({
    name: set.name,
    graded: set.graded,
    run,
    words: `${numbers.counted(set.rows.length, "answer")} of ${names.get(run.key)}, drawn for ${set.scorer} (${set.name})`,
    rows: set.rows.map(([task, id, draw], index) => ({
      row: labels.rowName(set, index),
      item: { run: labels.runIdentity(run), task, id, draw },
    })),
  });
  const by = new Map(catalog.runs.map((run) => [labels.runIdentity(run), run]));
  const chosen = labels.picked().filter((item) => by.has(item.run));
  const runs = new Set(chosen.map((item) => item.run));
  const sets = catalog.runs.flatMap((run) => run.labelSets.map((set) => sourceOf(run, set)));
  for (const key of runs) {
    const run = by.get(key)!;
    const rows = chosen.filter((item) => item.run === key).map((item) => ({ row: "", item }));
    const graded = run.labelSets.some((set) => set.graded);
    sets.push({
      name: `${BY_HAND} ${runAddress(catalog, run)}`,
      graded,
      run,
      words: `${numbers.counted(rows.length, "answer")} of ${names.get(run.key)}, chosen by hand`,
      rows,
    });
  }
  return sets;
}

export function LabelsPage({ data, query, go }: PageProps) {
  const catalog = useCatalog(data);
  labels.useLabels();
  const all = sources(catalog);
  const source =
    all.find((source) => source.name === query.get("of")) ??
    all.find((source) => source.name.startsWith(BY_HAND)) ??
    all[0];
  return (
    <div class="page views labels-page">
      <h1>Labels</h1>
      <p class="note">
        What people say of answers, to see what a judge's verdicts are worth. Label each answer by
        itself: the judge's verdict is not shown here. Labels stay in this browser until you
        download them.
      </p>
      {source === undefined ? (
        <NothingToLabel />
      ) : (
        <>
          {all.length > 1 && (
            <Choice
              label="Which answers"
              chosen={source.name}
              options={all.map((source): [string, string] => [source.name, source.words])}
              choose={(name) => go(`${links.labels()}?of=${encodeURIComponent(name)}`, true)}
            />
          )}
          <Labelling key={source.name} data={data} source={source} />
        </>
      )}
    </div>
  );
}

function NothingToLabel() {
  return (
    <EmptyNote>
      No answer is on the list. Open a sample, or an item of two runs side by side, and choose{" "}
      <b>Label this</b>; or draw answers by chance with <code>evalwright check judge sample RUN</code> and
      open this page again: only labels of answers drawn by chance can correct a run's score.
    </EmptyNote>
  );
}

function Labelling({ data, source }: { data: Data; source: Source }) {
  const [where, setWhere] = useState(0);
  const { rows } = source;
  const at = Math.min(where, rows.length - 1);
  const row = rows[at];
  const choices = source.graded ? GRADES : RIGHT_OR_WRONG;
  const done = rows.filter(({ item }) => (labels.labelOf(item) ?? "") !== "").length;
  const step = (by: number) => setWhere(Math.max(0, Math.min(rows.length - 1, at + by)));
  const next = () => {
    const order = rows.map((_, nth) => (at + 1 + nth) % rows.length);
    const unlabelled = order.find((index) => labels.labelOf(rows[index]!.item) === undefined);
    if (unlabelled !== undefined) setWhere(unlabelled);
  };
  const give = (value: string) => {
    if (!row) return;
    labels.setLabel(row.item, value);
    step(1);
  };
  useKeys([
    ...choices.map(([value, name, key]) => ({
      keys: [key],
      does: `Label: ${name.toLowerCase()}`,
      run: () => give(value),
    })),
    { keys: ["x"], does: "No label", run: () => give("") },
    { keys: ["j", "ArrowRight"], does: "Next answer", run: () => step(1) },
    { keys: ["k", "ArrowLeft"], does: "Previous answer", run: () => step(-1) },
    { keys: ["u"], does: "Next answer without a label", run: next },
  ]);
  if (row === undefined) return <NothingToLabel />;
  const label = labels.labelOf(row.item);
  return (
    <>
      <p class="who-labels">
        <label>
          Your name{" "}
          <input
            type="text"
            maxLength={80}
            autocomplete="off"
            spellcheck={false}
            value={labels.typedName()}
            onInput={(event) => labels.rename(event.currentTarget.value)}
          />
        </label>
        <span role="status">
          {numbers.count(done)} of {numbers.count(rows.length)} labelled
        </span>
      </p>
      <article class="labelled">
        <h2>
          {numbers.count(at + 1)} of {numbers.count(rows.length)}
        </h2>
        <Blind data={data} item={row.item} info={source.run} />
        <p class="give" role="group" aria-label="Label">
          {[...choices, ["", "No label", "x"] as const].map(([value, name, key]) => (
            <button
              key={value}
              type="button"
              aria-pressed={label === value}
              onClick={() => give(value)}
            >
              {name} <kbd>{key}</kbd>
            </button>
          ))}
        </p>
        <p class="paging">
          <button type="button" disabled={at === 0} onClick={() => step(-1)}>
            ‹ Previous <kbd>←</kbd>
          </button>
          <button type="button" disabled={at + 1 >= rows.length} onClick={() => step(1)}>
            Next <kbd>→</kbd> ›
          </button>
          <button type="button" onClick={next}>
            Next without a label <kbd>u</kbd>
          </button>
          {source.name.startsWith(BY_HAND) && (
            <button type="button" onClick={() => labels.unpick(row.item)}>
              Take it off the list
            </button>
          )}
        </p>
      </article>
      <Download source={source} done={done} />
    </>
  );
}

/** One answer without what anybody said of it. */
function Blind({ data, item, info }: { data: Data; item: Picked; info: RunInfo }) {
  const run = useRun(data, info.key);
  const sample = useRead<Sample | null>(async () => {
    if (run.value === null) return null;
    const index = run.value.find(item.task, item.id, item.draw);
    if (index < 0)
      throw new Error(`The run has no sample '${item.id}' of '${item.task}' any more.`);
    return run.value.sample(index);
  }, [run.value, item.task, item.id, item.draw]);
  const error = run.error ?? sample.error;
  // The sample of another answer is never shown while this one is read.
  const current =
    sample.value !== null &&
    sample.value.id === item.id &&
    sample.value.task === item.task &&
    sample.value.draw === item.draw
      ? sample.value
      : null;
  if (error !== null || current === null) return <Reading error={error} noun="the answer" />;
  const reference = current.targets.length
    ? current.targets
    : current.gold.map((index) => current.choices[index] ?? "");
  const answer =
    current.answer || (current.choice === null ? "" : (current.choices[current.choice] ?? ""));
  return (
    <>
      <p class="small">
        <Line value={current.task} />, <Line value={current.id} />
        {current.draw > 0 && `, repeat ${current.draw + 1}`}
      </p>
      <h3>Question</h3>
      <Text value={current.input} />
      {current.choices.length > 0 && (
        <>
          <h3>Choices</h3>
          <ol class="choices" type="A">
            {current.choices.map((choice, index) => (
              <li key={index}>
                <Line value={choice} />
              </li>
            ))}
          </ol>
        </>
      )}
      {current.passages.length > 0 && (
        <>
          <h3>Context</h3>
          {current.passages.map((passage) => (
            <Text key={passage.id} value={`[${passage.id}] ${passage.text}`} />
          ))}
        </>
      )}
      {reference.length > 0 && (
        <>
          <h3>Reference</h3>
          <Text value={reference.join(" | ")} />
        </>
      )}
      <h3>Answer</h3>
      {current.failure ? (
        <p class="warn">
          There is no answer: <Line value={current.failure.kind} />
        </p>
      ) : (
        <Text value={answer} />
      )}
    </>
  );
}

/** A word of a command, for any shell. */
const quoteForShell = (word: string) =>
  /^[\w./:@%+=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;

function Download({ source, done }: { source: Source; done: number }) {
  const text = labels.table(source.rows);
  const mine = labels
    .labeller()
    .replace(/[^\p{L}\p{N}]+/gu, "-")
    .replace(/^-+|-+$/g, "");
  const file = `labels${mine ? `.${mine}` : ""}.csv`;
  const link = useMemo(
    () => URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv" })),
    [text],
  );
  useEffect(() => () => URL.revokeObjectURL(link), [link]);
  return (
    <section>
      <h2>Hand them in</h2>
      <p class="doors">
        <a class="button" href={link} download={file}>
          Download {numbers.counted(done, "label")}
        </a>
      </p>
      <p class="note">
        Then:{" "}
        <code>
          evalwright check judge calibrate {quoteForShell(source.run.name)} --labels {quoteForShell(file)}
        </code>
      </p>
      {source.name.startsWith(BY_HAND) && (
        <p class="note">
          These answers were chosen by hand: their labels say how the judge fared on them, and
          nothing of the run's score. For that, draw answers by chance with{" "}
          <code>evalwright check judge sample {quoteForShell(source.run.name)}</code> and open this page
          again.
        </p>
      )}
      <details class="more">
        <summary>Or copy them</summary>
        <textarea readOnly rows={8} aria-label="Labels as CSV" value={text} />
      </details>
    </section>
  );
}
