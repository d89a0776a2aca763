/** What was asked and what came back. */
import { type ComponentChildren, createContext } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";
import type { Call, Data, ImagePart, Message, Reply, RunInfo, Sample } from "../data/api";
import { useRead } from "../pages";
import { dollars, number, seconds } from "../samples/values";
import { hits, Line, type Mark, Text } from "../text/text";
import { FirstOf, useFirst } from "../views/parts";
import { Fold } from "./fold";

/** Where the pictures of the images below come from: the run of the page. */
export const PicturesOf = createContext<{ data: Data; run: RunInfo } | null>(null);

/** Of a digest that stands for a name. */
const SHOWN_DIGITS = 16;
/** Characters of a name that a screen reader is told. */
const LONGEST_ALT = 200;

/**
 * One image of a message. Its key names the image, so that no picture is ever shown under another's
 * name.
 */
export function Picture({ image, role }: { image: ImagePart; role: string }) {
  const from = useContext(PicturesOf);
  const { value: picture, error } = useRead(
    async () =>
      (from?.run.hasImages && (await from.data.picture(from.run.key, image.image))) || false,
    [from?.data, from?.run.key],
  );
  const [address, setAddress] = useState("");
  const [broken, setBroken] = useState(false);
  useEffect(() => {
    if (!picture) return;
    const url = URL.createObjectURL(picture);
    setAddress(url);
    return () => URL.revokeObjectURL(url);
  }, [picture]);
  const name = image.source ?? `${image.image.slice(0, SHOWN_DIGITS)}…`;
  if (address && !broken) {
    return (
      <figure class="picture">
        <img
          src={address}
          alt={`Image of the ${role || "prompt"} message: ${name.slice(0, LONGEST_ALT)}`}
          onError={() => setBroken(true)}
        />
        <figcaption class="quiet">
          <Line value={name} />
        </figcaption>
      </figure>
    );
  }
  if ((picture === null && !error) || (picture && !broken))
    return (
      <p class="note quiet">
        Reading the image <Line value={name} />…
      </p>
    );
  const why = error ?? (broken ? "the browser cannot show it" : (from?.run.imagesMissing ?? ""));
  return (
    <p class="note quiet">
      Image <Line value={name} /> (<Line value={image.mediaType} />
      ), not shown{why && ": "}
      <Line value={why.replace(/\.$/, "")} />.
    </p>
  );
}

export function MessagePart({
  title,
  note,
  children,
}: {
  title: string;
  note?: ComponentChildren;
  children: ComponentChildren;
}) {
  return (
    <section class="part">
      <h2>
        {title}
        {note !== undefined && note !== "" && <span class="quiet"> {note}</span>}
      </h2>
      {children}
    </section>
  );
}

/** Calls of tools. Their arguments are shown with a line for each, where they are JSON. */
export function Calls({ calls, words = "" }: { calls: Call[]; words?: string }) {
  const [listed, showMore] = useFirst(calls, "calls");
  return (
    <>
      {listed.map((call) => {
        const written = indented(call.arguments);
        return (
          <div class="call">
            <p class="call-name">
              Call of <code>{call.name ? <Line value={call.name} /> : "a tool without a name"}</code>
            </p>
            {written !== "{}" && (
              <Text
                value={written}
                marks={hits(written, words)}
                label={`the arguments of ${call.name}`}
              />
            )}
          </div>
        );
      })}
      {showMore}
    </>
  );
}

/** Longer arguments are shown as they were written. */
const LONGEST_INDENTED = 20_000;

function indented(json: string): string {
  if (json.length > LONGEST_INDENTED) return json;
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json; // the model's own mistake
  }
}

export function Messages({ messages, words = "" }: { messages: Message[]; words?: string }) {
  const [listed, showMore] = useFirst(messages, "messages");
  return (
    <>
      <ol class="messages">
        {listed.map((message) => (
          <li>
            <h3
              class={`role role-${["system", "user", "assistant"].includes(message.role) ? message.role : "other"}`}
            >
              {message.role ? <Line value={message.role} /> : "prompt"}
              {message.tool !== "" && (
                <>
                  {" "}
                  <code>
                    <Line value={message.tool} />
                  </code>
                </>
              )}
              {message.isError && <span class="bad"> failed</span>}
            </h3>
            {message.parts.map((piece, index) =>
              piece === "" && message.calls.length ? null : typeof piece === "string" ? (
                <Text
                  value={piece}
                  marks={hits(piece, words)}
                  label={`the ${message.role} message`}
                />
              ) : (
                <Picture key={`${index} ${piece.image}`} image={piece} role={message.role} />
              ),
            )}
            {message.calls.length > 0 && <Calls calls={message.calls} words={words} />}
          </li>
        ))}
      </ol>
      {showMore}
    </>
  );
}

export function Question({
  sample,
  words,
  source,
}: {
  sample: Sample;
  words: string;
  /** Marks in the passages, by their index; -1 is the question. */
  source: Map<number, Mark[]>;
}) {
  return (
    <MessagePart
      title={sample.messages.some((message) => message.calls.length) ? "Conversation" : "Question"}
      note={sample.messages.length ? "as sent" : ""}
    >
      {sample.messages.length ? (
        <Messages messages={sample.messages} words={words} />
      ) : (
        <Text
          value={sample.input}
          marks={[...hits(sample.input, words), ...(source.get(-1) ?? [])]}
          label="the question"
        />
      )}
      {sample.messages.length > 0 && source.has(-1) && (
        <>
          <h3 class="role">input of the sample</h3>
          <Text value={sample.input} marks={source.get(-1) ?? []} label="the input" />
        </>
      )}
      <Given sample={sample} words={words} source={source} />
    </MessagePart>
  );
}

/** What a sample gives beside its messages: tools, choices and passages. */
export function Given({
  sample,
  words,
  source,
}: {
  sample: Sample;
  words: string;
  source: Map<number, Mark[]>;
}) {
  const hasMarks = [...source.keys()].some((passage) => passage >= 0);
  return (
    <>
      {sample.tools.length > 0 && (
        <Fold summary={`Tools offered (${sample.tools.length.toLocaleString("en")})`}>
          {() => (
            <FirstOf
              all={sample.tools}
              noun="tools"
              first={50}
              render={(tool) => (
                <>
                  <h3 class="role">
                    <code>
                      <Line value={tool.name} />
                    </code>
                  </h3>
                  <Text
                    value={`${tool.description}\n${JSON.stringify(tool.parameters, null, 2) ?? ""}`}
                    label={`the tool ${tool.name}`}
                  />
                </>
              )}
            />
          )}
        </Fold>
      )}
      {sample.choices.length > 0 && <Choices sample={sample} />}
      {sample.passages.length > 0 && (
        <Fold
          key={hasMarks ? "marked" : "passages"}
          summary={`Passages (${sample.passages.length})`}
          open={hasMarks || sample.passages.length < 3}
        >
          {() => (
            <FirstOf
              all={sample.passages}
              noun="passages"
              first={50}
              render={(passage, index) => (
                <>
                  <h3 class="role">
                    <Line value={passage.id} />
                  </h3>
                  <Text
                    value={passage.text}
                    marks={[...hits(passage.text, words), ...(source.get(index) ?? [])]}
                    label={`passage ${passage.id}`}
                  />
                </>
              )}
            />
          )}
        </Fold>
      )}
    </>
  );
}

function Choices({ sample }: { sample: Sample }) {
  const scored = sample.logLikelihoods.length > 0;
  const [listed, showMore] = useFirst(sample.choices, "choices");
  return (
    <div class="sideways" tabIndex={0} role="region" aria-label="Choices">
      <table class="plain">
        <thead>
          <tr>
            <th scope="col">Choice</th>
            {scored && (
              <th scope="col" class="number">
                Log-likelihood
              </th>
            )}
            <th scope="col">
              <span class="unseen">What it is</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {listed.map((choice, index) => (
            <tr>
              <td>
                <Line value={choice} />
              </td>
              {scored && <td class="number">{number(sample.logLikelihoods[index])}</td>}
              <td>
                {sample.gold.includes(index) && <span class="good">right</span>}
                {sample.gold.includes(index) && sample.choice === index ? ", " : ""}
                {sample.choice === index && <span>chosen</span>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {showMore}
    </div>
  );
}

/**
 * The answer with what each score rests on marked in it, then every reply that it was formed of.
 */
export function Answer({ sample, words }: { sample: Sample; words: string }) {
  const evidence: Mark[] = sample.scores.flatMap((score) =>
    score.evidence.map(([begin, end]) => ({
      begin,
      end,
      kind: "evidence" as const,
      label: `What ${score.scorer} rests on`,
    })),
  );
  const resting = sample.scores
    .filter((score) => score.evidence.length)
    .map((score) => score.scorer);
  // The calls and the replies of a trajectory are its steps.
  const calls = sample.trajectory ? [] : (sample.replies.at(-1)?.calls ?? []);
  const replies = sample.trajectory ? [] : sample.replies;
  const only = replies.length === 1 ? replies[0] : undefined;
  const same = only !== undefined && (only.text ?? "") === sample.answer;
  return (
    <MessagePart
      title="Answer"
      note={same ? finishNotes(only) : sample.replies.length ? "as scored" : ""}
    >
      {sample.reasoning !== "" && !sample.trajectory && (
        <Fold summary={`Reasoning (${sample.reasoning.length.toLocaleString("en")} characters)`}>
          {() => (
            <Text
              value={sample.reasoning}
              marks={hits(sample.reasoning, words)}
              label="the reasoning"
            />
          )}
        </Fold>
      )}
      {sample.answer === "" && sample.outcome !== "answered" ? (
        <p class="note quiet">There is no answer.</p>
      ) : sample.answer === "" && calls.length && !sample.trajectory ? null : (
        <Text
          value={sample.answer}
          marks={[...evidence, ...hits(sample.answer, words)]}
          label="the answer"
        />
      )}
      {calls.length > 0 && <Calls calls={calls} words={words} />}
      {resting.length > 0 && (
        <p class="note quiet">
          <mark class="evidence">Marked</mark>: what{" "}
          {resting.map((name, index) => (
            <>
              {index ? ", " : ""}
              <Line value={name} />
            </>
          ))}{" "}
          {resting.length > 1 ? "rest" : "rests"} on.
        </p>
      )}
      {sample.strategy && sample.strategy.votes.length > 0 && (
        <Votes votes={sample.strategy.votes} name={sample.strategy.name} />
      )}
      {!same && replies.length > 0 && (
        <Fold
          summary={
            replies.length === 1 ? "Raw reply" : `Raw replies (${replies.length})`
          }
          open={replies.length === 1}
        >
          {() => (
            <FirstOf
              all={replies}
              noun="replies"
              first={50}
              render={(reply, index) => (
                <ReplyBox
                  reply={reply}
                  words={words}
                  title={replies.length > 1 ? `Reply ${index + 1}` : ""}
                />
              )}
            />
          )}
        </Fold>
      )}
      {same && <Tokens reply={only} />}
    </MessagePart>
  );
}

function Votes({ votes, name }: { votes: [string, number][]; name: string }) {
  return (
    <table class="plain">
      <caption>
        Votes of <Line value={name} />
      </caption>
      <tbody>
        {votes.slice(0, 50).map(([answer, number]) => (
          <tr>
            <td>
              <Line value={answer} />
            </td>
            <td class="number">{number.toLocaleString("en")}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** How a reply ended, where that is worth saying. */
export const finishNotes = (reply: Reply): ComponentChildren =>
  reply.finish && !["stop", "tool_calls"].includes(reply.finish) ? (
    <>
      ended by <Line value={reply.finish} />
    </>
  ) : (
    ""
  );

export function ReplyBox({
  reply,
  title = "",
  words = "",
}: {
  reply: Reply;
  title?: string;
  words?: string;
}) {
  const facts = factsOf(reply);
  return (
    <div class="reply">
      {(title || finishNotes(reply)) && (
        <h3 class="role">
          {title} <span class="quiet">{finishNotes(reply)}</span>
        </h3>
      )}
      {reply.reasoning && (
        <Fold summary={`Reasoning (${reply.reasoning.length.toLocaleString("en")} characters)`}>
          {() => (
            <Text
              value={reply.reasoning ?? ""}
              marks={hits(reply.reasoning ?? "", words)}
              label="the reasoning"
            />
          )}
        </Fold>
      )}
      {reply.calls && <Calls calls={reply.calls} words={words} />}
      {reply.text !== undefined && (
        <Text value={reply.text} marks={hits(reply.text, words)} label={title || "the reply"} />
      )}
      {facts.length > 0 && <p class="note quiet">{facts.join(" · ")}</p>}
      <Tokens reply={reply} />
    </div>
  );
}

export function factsOf(reply: Reply): string[] {
  const facts: string[] = [];
  if (reply.latency) facts.push(seconds(reply.latency));
  if (reply.inputTokens !== undefined) {
    const cached = reply.cachedTokens
      ? ` (${number(reply.cachedTokens)} from the provider's cache)`
      : "";
    facts.push(`${number(reply.inputTokens)} tokens in${cached}`);
  }
  if (reply.outputTokens !== undefined) {
    const reasoning = reply.reasoningTokens
      ? ` (${number(reply.reasoningTokens)} of reasoning)`
      : "";
    facts.push(`${number(reply.outputTokens)} out${reasoning}`);
  }
  if (reply.cost !== undefined) facts.push(dollars(reply.cost));
  if (reply.logLikelihood !== undefined)
    facts.push(`log-likelihood ${number(reply.logLikelihood)}`);
  return facts;
}

const MOST_TOKENS = 2_000;

/** Each token, darker where the model was less sure of it. */
export function Tokens({ reply }: { reply: Reply }) {
  const { tokens } = reply;
  if (!tokens?.length) return null;
  return (
    <Fold summary={`Tokens with their probabilities (${tokens.length.toLocaleString("en")})`}>
      {() => (
        <p class="tokens" dir="auto">
          {tokens.slice(0, MOST_TOKENS).map(([text, logProbability]) => {
            const probability = Math.exp(logProbability);
            return (
              <span
                class={`sure-${Math.min(4, Math.floor(probability * 5))}`}
                title={`${(100 * probability).toFixed(1)}%`}
              >
                <Line value={text} />
              </span>
            );
          })}
          {tokens.length > MOST_TOKENS &&
            ` … and ${(tokens.length - MOST_TOKENS).toLocaleString("en")} more`}
        </p>
      )}
    </Fold>
  );
}
