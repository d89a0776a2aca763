/** One step of a trajectory: what the model said, what it called, and what came of it. */
import type { ComponentChildren } from "preact";
import type { Message, Step, ToolUse, Used } from "../data/api";
import { type Argument, argumentsOf, commandOf } from "../data/trajectory";
import { count, counted, dollars, seconds } from "../samples/values";
import { Fold } from "../sample/fold";
import { finishNotes, Messages, Picture, Tokens } from "../sample/story";
import { copy } from "../shell/copy";
import { hits, Line } from "../text/text";
import { useFirst } from "../views/parts";
import type { Hit } from "./search";
import { Output } from "./output";

/** Calls whose arguments are longer are folded. */
const OPEN_ARGUMENT_CHARS = 600;
const OPEN_ARGUMENT_LINES = 12;
/** A call's only argument is shown beside its name where it is one short line. */
const LINE_CHARS = 160;

interface Search {
  /** Whether the step goes on: calls without a result are being carried out. */
  goesOn?: boolean;
  words: string;
  /** The hit at which one looks, where it is in this step. */
  hit: Hit | null;
}

/** What a step took: seconds of the model and of tools, tokens and price. */
export function usedInWords(used: Used): string[] {
  const facts: string[] = [];
  if (used.modelSeconds) facts.push(seconds(used.modelSeconds));
  if (used.toolSeconds) facts.push(`${seconds(used.toolSeconds)} in tools`);
  if (used.inputTokens || used.outputTokens)
    facts.push(`${count(used.inputTokens)} tokens in, ${count(used.outputTokens)} out`);
  if (used.dollars) facts.push(dollars(used.dollars));
  return facts;
}

export function totalInWords(total: Used): string {
  const facts: string[] = [];
  const time = total.modelSeconds + total.toolSeconds;
  if (time) facts.push(seconds(time));
  const tokens = total.inputTokens + total.outputTokens;
  if (tokens) facts.push(`${count(tokens)} tokens`);
  if (total.dollars) facts.push(dollars(total.dollars));
  return facts.join(" · ");
}

export const stepAnchor = (number: number): string => `step-${number + 1}`;

interface StepProps extends Search {
  step: Step;
  /** From 0. */
  number: number;
  current: boolean;
  /** Where its number leads; "" for no link. */
  href: string;
  hits: number;
  /** Whether the page has this step once, so that it can be named. */
  named?: boolean;
}

export function StepView(props: StepProps) {
  const { step, number, current, href, hits: found, named = true, ...search } = props;
  const { reply } = step;
  const facts = usedInWords(step.used);
  const total = totalInWords(step.total);
  const title = <>Step {count(number + 1)}</>;
  return (
    <>
      {step.compacted && <Compacted compacted={step.compacted} />}
      <Between messages={step.before} words={search.words} />
      <article
        id={named ? stepAnchor(number) : undefined}
        class={`step${current ? " current" : ""}`}
        aria-current={current ? "step" : undefined}
        aria-label={`Step ${number + 1}`}
      >
        <header class="step-head">
          <h3>{href ? <a href={href}>{title}</a> : title}</h3>
          <span class="quiet">
            {facts.join(" · ")} {finishNotes(reply)}
          </span>
          {found > 0 && <span class="chip">{counted(found, "hit")}</span>}
          {total && number > 0 && <span class="step-total quiet">so far {total}</span>}
        </header>
        {step.reasoning !== "" && (
          <Fold
            key={search.hit?.part === "reasoning" ? "hit" : "plain"}
            open={search.hit?.part === "reasoning"}
            summary={
              <>
                Reasoning ({count(step.reasoning.length)} characters)
                <HitsIn text={step.reasoning} words={search.words} />
              </>
            }
          >
            {() => (
              <Output value={step.reasoning} label="the reasoning" unfolded {...at(search, "reasoning")} />
            )}
          </Fold>
        )}
        {step.text !== "" && (
          <div class="step-text">
            <Output value={step.text} label="the reply" {...at(search, "text")} />
          </div>
        )}
        {step.text === "" && !step.uses.length && !step.reasoning && (
          <p class="note quiet">An empty reply.</p>
        )}
        <Uses uses={step.uses} {...search} />
        <Tokens reply={reply} />
      </article>
    </>
  );
}

const at = ({ words, hit }: Search, part: string) => ({
  words,
  at: hit?.part === part ? hit.begin : undefined,
});

function HitsIn({ text, words }: { text: string; words: string }) {
  const found = words ? hits(text, words).length : 0;
  return found ? <span class="chip">{counted(found, "hit")}</span> : null;
}

function Compacted({ compacted }: { compacted: NonNullable<Step["compacted"]> }) {
  return (
    <div class="mark-line">
      <p>
        From here on, the model read a summary in place of {counted(compacted.turns, "turn")}.
        {compacted.dollars ? ` The summary cost ${dollars(compacted.dollars)}.` : ""}
      </p>
      {compacted.summary && (
        <Fold summary="The summary">
          {() => <Output value={compacted.summary} label="the summary" unfolded />}
        </Fold>
      )}
    </div>
  );
}

/** Turns between two steps that are no results: the user's. */
function Between({ messages, words }: { messages: Message[]; words: string }) {
  return messages.length ? (
    <div class="between">
      <Messages messages={messages} words={words} />
    </div>
  ) : null;
}

function Uses({ uses, ...search }: { uses: ToolUse[] } & Search) {
  const [listed, showMore] = useFirst(uses, "calls");
  // A call that a hit is in is shown, however many there are.
  const wanted = Number(search.hit?.part.split(" ")[1] ?? -1);
  const shown = wanted >= listed.length ? uses.slice(0, wanted + 1) : listed;
  return (
    <>
      {shown.map((use, index) => (
        <UseView key={index} use={use} index={index} {...search} />
      ))}
      {shown === listed && showMore}
    </>
  );
}

/** How a call went, for a glance: its exit code, an error, that it was not carried out. */
export function stateOf(use: ToolUse): { words: string; bad: boolean } {
  if (!use.result) return { words: "not carried out", bad: false };
  if (use.exitCode !== null)
    return { words: `exit code ${use.exitCode}`, bad: use.exitCode !== 0 };
  return use.isError ? { words: "failed", bad: true } : { words: "", bad: false };
}

/** The first line of what a call does. */
export function callInOneLine(written: Argument[]): string {
  const text = written.map(({ text }) => text).join(", ");
  const [first = "", second] = text.trimStart().split("\n", 2);
  return second === undefined ? first : `${first} …`;
}

function UseView({ use, index, ...search }: { use: ToolUse; index: number } & Search) {
  const written = argumentsOf(use.call);
  const outcome = stateOf(use);
  const state = search.goesOn && !use.result ? { ...outcome, words: "running" } : outcome;
  const all = written.map(({ text }) => text).join("\n");
  const only = written.length === 1 ? written[0] : undefined;
  const isOneLine =
    only !== undefined && only.text.length <= LINE_CHARS && !only.text.includes("\n");
  const isLong =
    all.length > OPEN_ARGUMENT_CHARS || all.split("\n", OPEN_ARGUMENT_LINES + 1).length > OPEN_ARGUMENT_LINES;
  const isHit = search.hit?.part.startsWith(`call ${index} `) ?? false;
  const details = () => (
    <dl class="arguments">
      {written.map((argument, k) => (
        <div>
          {argument.name !== "" ? (
            <dt>
              <Line value={argument.name} />
            </dt>
          ) : (
            <dt>arguments that are no JSON object</dt>
          )}
          <dd class="raw">
            <Output
              value={argument.text}
              label={`${argument.name} of ${use.call.name}`}
              unfolded={isLong}
              {...at(search, `call ${index} ${k}`)}
            />
          </dd>
        </div>
      ))}
    </dl>
  );
  return (
    <div class={`use${state.bad || use.isError ? " use-failed" : ""}`}>
      <p class="use-head">
        <code class="use-name">
          {use.call.name ? (
            <Line value={use.call.name} marks={hits(use.call.name, search.words)} />
          ) : (
            "a tool without a name"
          )}
        </code>
        <code class="use-line">
          {isOneLine ? (
            <Line value={only.text} marks={hits(only.text, search.words)} />
          ) : (
            <Line value={callInOneLine(written)} most={LINE_CHARS} />
          )}
        </code>
        {written.length > 0 && (
          <button type="button" class="plain-button" onClick={() => copy(commandOf(use.call), "Command")}>
            Copy<span class="unseen"> the command</span>
          </button>
        )}
        <span class="use-facts">
          {use.again && <span class="warn">carried out again</span>}
          {use.replayed && <span class="quiet">replayed</span>}
          {use.seconds !== null && <span class="quiet">{seconds(use.seconds)}</span>}
          {state.words && <span class={state.bad ? "bad" : "quiet"}>{state.words}</span>}
        </span>
      </p>
      {!isOneLine &&
        written.length > 0 &&
        (isLong ? (
          <Fold
            key={isHit ? "hit" : "plain"}
            open={isHit}
            summary={
              <>
                Arguments ({count(all.length)} characters)
                <HitsIn text={all} words={search.words} />
              </>
            }
          >
            {details}
          </Fold>
        ) : (
          details()
        ))}
      {use.result && (
        <div class="raw use-result">
          <Result result={use.result} name={use.call.name} {...at(search, `result ${index}`)} />
        </div>
      )}
    </div>
  );
}

function Result({
  result,
  name,
  ...search
}: {
  result: Message;
  name: string;
  words: string;
  at: number | undefined;
}): ComponentChildren {
  const text = result.parts.filter((part) => typeof part === "string").join("\n");
  const pictures = result.parts.filter((part) => typeof part !== "string");
  return (
    <>
      {(text !== "" || !pictures.length) && (
        <Output value={text} label={`the result of ${name}`} {...search} />
      )}
      {pictures.map((image, i) => (
        <Picture key={`${i} ${image.image}`} image={image} role="tool" />
      ))}
    </>
  );
}
