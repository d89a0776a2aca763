/** All that is recorded of one sample. */
import { useMemo, useState } from "preact/hooks";
import type { Data, RunData, RunInfo, Sample } from "../data/api";
import { findRun, links, type PageProps, useRead, useRun } from "../pages";
import { listOf, rememberPlace } from "../samples/list";
import { count, dollars, number, seconds } from "../samples/values";
import { useKeys } from "../shell/keys";
import { areShares } from "../samples/shares";
import { Line, Text } from "../text/text";
import { LabelThis } from "../views/label_this";
import { OtherRuns, Repeats } from "./beside";
import { Fold } from "./fold";
import { Expected, FailureBox, Scores } from "./scores";
import { judgeNames, marksOf, type Selection, Sentences } from "./sentences";
import { stepOf, Transcript, withStep } from "../transcript/view";
import { Answer, Given, MessagePart, PicturesOf, Question } from "./story";
import { mainScore, outcomeInWords, tone } from "./words";

export function SamplePage({ data, parameters, query, go }: PageProps) {
  const { RUN = "", TASK = "", ID = "", DRAW = "0" } = parameters;
  const draw = /^\d+$/.test(DRAW) ? Number(DRAW) : 0;
  const info = findRun(data.catalog, RUN);
  const { value: run, error } = useRun(data, info?.key ?? "");
  const index = useMemo(() => (run ? run.find(TASK, ID, draw) : -1), [run, TASK, ID, draw]);
  const list = info ? listOf(info.key) : null;
  const at = useMemo(() => (list ? list.places.indexOf(index) : index), [list, index]);
  const size = list && at >= 0 ? list.places.length : (run?.size ?? 0);
  const address = (row: number): string | null => {
    const next = list && at >= 0 ? list.places[row] : row;
    return run && next !== undefined && next >= 0 && next < run.size
      ? addressOf(RUN, run, next, TASK)
      : null;
  };
  const back = links.samples(RUN, list?.query);
  const step = (by: number) => {
    const next = address((at >= 0 ? at : index) + by);
    if (next) go(next);
  };
  if (info && index >= 0) rememberPlace(info.key, index);
  const ready = useRead(async () => (run && index >= 0 ? run.sample(index) : null), [run, index]);
  // In a transcript, j and k lead from step to step.
  const [next, previous] = ready.value?.trajectory ? [[], []] : [["j"], ["k"]];
  useKeys([
    { keys: [...next, "ArrowRight"], does: "Next sample of the list", run: () => step(1) },
    { keys: [...previous, "ArrowLeft"], does: "Previous sample", run: () => step(-1) },
    { keys: ["u", "Escape"], does: "Back to the list", run: () => go(back) },
  ]);
  if (!info) return null;
  const row = at >= 0 ? at : index;
  const [before, after] = [address(row - 1), address(row + 1)];
  return (
    <div class="page sample">
      <nav class="way" aria-label="Samples of the list">
        <a href={back}>All samples</a>
        {index >= 0 && (
          <>
            <span class="quiet">
              {count(row + 1)} of {count(size)}
            </span>
            {before ? (
              <a href={before} rel="prev">
                ← previous
              </a>
            ) : (
              <span class="quiet">← previous</span>
            )}
            {after ? (
              <a href={after} rel="next">
                next →
              </a>
            ) : (
              <span class="quiet">next →</span>
            )}
          </>
        )}
      </nav>
      <h1 class="id">
        <Line value={ID} />
      </h1>
      {error || ready.error ? (
        <p class="note warn">This sample could not be read: {error ?? ready.error}</p>
      ) : !run || (index >= 0 && !ready.value) ? (
        <p class="note quiet">Reading the sample…</p>
      ) : !ready.value ? (
        <p class="note">
          This run has no sample <Line value={ID} />
          {draw ? `, repeat ${draw + 1},` : ""} of the task <Line value={TASK} />.
          {info.state === "running" && " The run is going on; it may still come."}
        </p>
      ) : (
        <SampleDetails
          data={data}
          info={info}
          run={run}
          sample={ready.value}
          address={RUN}
          words={list?.words ?? ""}
          query={query}
          go={go}
        />
      )}
    </div>
  );
}

/** The record as a file, as it stands in samples.jsonl. */
function DownloadRecord({ sample }: { sample: Sample }) {
  const name = `${sample.task}-${sample.id}`.replace(/[^\p{L}\p{N}._-]+/gu, "-").slice(0, 80);
  const file = `${name}${sample.draw ? `-${sample.draw + 1}` : ""}.json`;
  return (
    <p class="download">
      <button type="button" onClick={() => download(file, JSON.stringify(sample.raw) + "\n")}>
        Download the record
      </button>
    </p>
  );
}

function download(file: string, json: string): void {
  const url = URL.createObjectURL(new Blob([json], { type: "application/json" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = file;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

function addressOf(name: string, run: RunData, index: number, otherwise: string): string {
  const tasks = run.columns.find((column) => column.name === "task");
  const task =
    tasks?.kind === "category" ? (tasks.names[tasks.codes[index] ?? -1] ?? otherwise) : otherwise;
  return links.sample(name, task, run.id(index), run.draw(index));
}

function SampleDetails({
  data,
  info,
  run,
  sample,
  address,
  words,
  query,
  go,
}: {
  data: Data;
  info: RunInfo;
  run: RunData;
  sample: Sample;
  address: string;
  words: string;
  query: URLSearchParams;
  go: PageProps["go"];
}) {
  const score = mainScore(sample);
  const pictures = useMemo(() => ({ data, run: info }), [data, info]);
  const [chosen, choose] = useState<Selection | null>(null);
  // Another sample is shown in the same place: what was chosen in the one before is not in it.
  const selection = chosen?.sample === sample ? chosen : null;
  const sentences = (
    <Sentences
      sample={sample}
      names={judgeNames(info)}
      selection={selection}
      choose={choose}
    />
  );
  const beside = (
    <>
      <Expected sample={sample} words={words} />
      <Scores run={run} sample={sample} words={words} />
      <OtherRuns
        data={data}
        info={info}
        task={sample.task}
        id={sample.id}
        draw={sample.draw}
        hasSteps={sample.trajectory !== null}
      />
      <Facts sample={sample} />
    </>
  );
  return (
    <PicturesOf.Provider value={pictures}>
      <p class="lede">
        <span
          class={`verdict ${tone(
            sample.outcome,
            score?.value ?? null,
            sample.failure ? "failed" : null,
            areShares(run, score?.scorer ?? ""),
          )}`}
        >
          {sample.outcome !== "answered" ? (
            outcomeInWords(sample.outcome)
          ) : score?.label ? (
            <Line value={score.label} />
          ) : (
            outcomeInWords(sample.outcome)
          )}
        </span>
        {score && score.value !== null && (
          <>
            {" "}
            · {score.scorer ? <Line value={score.scorer} /> : "score"} {number(score.value)}
          </>
        )}
        {" · "}
        <Line value={sample.task} />
        {sample.draw > 0 ? ` · repeat ${sample.draw + 1}` : ""} · <Line value={info.model} />{" "}
        <LabelThis run={info} task={sample.task} id={sample.id} draw={sample.draw} />
      </p>
      <Repeats
        run={run}
        address={address}
        task={sample.task}
        id={sample.id}
        draw={sample.draw}
        hasSteps={sample.trajectory !== null}
      />
      {sample.failure && <FailureBox failure={sample.failure} />}
      {sample.trajectory ? (
        <div class="columns with-transcript">
          <div>
            <Transcript
              key={`${sample.task}\0${sample.id}\0${sample.draw}`}
              trajectory={sample.trajectory}
              wanted={stepOf(query)}
              words={words}
              address={(step) =>
                links.sample(address, sample.task, sample.id, sample.draw, withStep(query, step))
              }
              go={go}
            />
            <Given sample={sample} words={words} source={marksOf(sample, selection)} />
            {sentences}
          </div>
          <div>
            <Answer sample={sample} words={words} />
            {beside}
          </div>
        </div>
      ) : (
        <div class="columns">
          <div>
            <Question sample={sample} words={words} source={marksOf(sample, selection)} />
            <Answer sample={sample} words={words} />
            {sentences}
          </div>
          <div>{beside}</div>
        </div>
      )}
      <MessagePart title="Raw record">
        <Fold summary="The line of samples.jsonl" printed={false}>
          {() => (
            <div class="raw">
              <Text value={JSON.stringify(sample.raw, null, 2) ?? ""} label="the raw record" />
            </div>
          )}
        </Fold>
        <DownloadRecord sample={sample} />
      </MessagePart>
    </PicturesOf.Provider>
  );
}

const sumKnown = (values: (number | undefined)[]): number | null => {
  const numbers = values.filter((value) => value !== undefined);
  return numbers.length ? numbers.reduce((sum, value) => sum + value, 0) : null;
};

/** Longer facts have a line of their own. */
const LONG_FACT_CHARS = 40;

/** A fact in a line; a long JSON object or list is folded. */
function FactText({ value }: { value: string }) {
  const indented = value.length > LONG_FACT_CHARS ? indentedJson(value) : null;
  if (indented === null) return <Line value={value} />;
  return (
    <Fold summary="JSON" printed={false}>
      {() => (
        <div class="raw">
          <Text value={indented} label="the fact" />
        </div>
      )}
    </Fold>
  );
}

function indentedJson(text: string): string | null {
  if (!/^[[{]/.test(text)) return null;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return null;
  }
}

function Facts({ sample }: { sample: Sample }) {
  const { replies } = sample;
  const judges = sample.scores.flatMap((score) => score.exchange.map((exchange) => exchange.reply));
  const facts: [string, string][] = [];
  const add = (name: string, value: number | null, words: (value: number) => string) =>
    value !== null && facts.push([name, words(value)]);
  const waits = replies.map((reply) => reply.latency || 0).filter((wait) => wait > 0);
  // Options are scored at once, other requests one after another.
  const atOnce = replies.some((reply) => reply.logLikelihood !== undefined);
  add("Latency", waits.length ? (atOnce ? Math.max(...waits) : sumKnown(waits)) : null, seconds);
  add("Tokens in", sumKnown(replies.map((reply) => reply.inputTokens)), count);
  add("of them cached", sumKnown(replies.map((reply) => reply.cachedTokens)), count);
  add("Tokens out", sumKnown(replies.map((reply) => reply.outputTokens)), count);
  add("of them reasoning", sumKnown(replies.map((reply) => reply.reasoningTokens)), count);
  add("Cost", sumKnown(replies.map((reply) => reply.cost)), dollars);
  add("Cost of judges", sumKnown(judges.map((reply) => reply.cost)), dollars);
  const finish = [
    ...new Set(replies.map((reply) => reply.finish).filter((reason) => reason !== undefined)),
  ];
  if (finish.length && !sample.trajectory) facts.push(["Ended by", finish.join(", ")]);
  const models = [
    ...new Set(replies.map((reply) => reply.model).filter((model) => model !== undefined)),
  ];
  if (models.length) facts.push(["Model as it named itself", models.join(", ")]);
  const all = [...facts, ...sample.metadata];
  if (!all.length) return null;
  return (
    <MessagePart title="Facts">
      <dl class="pairs">
        {all.slice(0, 200).map(([name, value]) => (
          <div class={value.length > LONG_FACT_CHARS ? "long" : undefined}>
            <dt>
              <Line value={name} />
            </dt>
            <dd>
              <FactText value={value} />
            </dd>
          </div>
        ))}
      </dl>
    </MessagePart>
  );
}
