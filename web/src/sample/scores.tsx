/** What the answer is worth, and why: each scorer's word, and what a judge was sent and replied. */
import type { Failure, RunData, Sample, ScoreOf } from "../data/api";
import { areShares } from "../samples/shares";
import { number } from "../samples/values";
import { hits, Line, Text } from "../text/text";
import { FirstOf } from "../views/parts";
import { Fold } from "./fold";
import { Messages, MessagePart, ReplyBox } from "./story";
import { failureInWords, tone } from "./words";

/** Scores, and exchanges with a judge, that are drawn at first. */
const MOST = 50;
/** More exchanges of a score are folded into one line: a search for evidence has dozens. */
const FEW_EXCHANGES = 12;

export function FailureBox({ failure }: { failure: Failure }) {
  return (
    <div class="failure">
      <p class="warn strong">
        <Line value={failureInWords(failure)} />
      </p>
      {failure.message && <Text value={failure.message} label="the failure" />}
    </div>
  );
}

export function Expected({ sample, words }: { sample: Sample; words: string }) {
  if (!sample.targets.length || sample.choices.length > 0) return null;
  return (
    <MessagePart title="Expected" note={sample.targets.length > 1 ? "any of these" : ""}>
      <Targets targets={sample.targets} words={words} />
    </MessagePart>
  );
}

/** Short ones stand beside each other. */
export function Targets({ targets, words = "" }: { targets: string[]; words?: string }) {
  const listed = targets.slice(0, 50);
  const short =
    listed.length > 1 && listed.every((target) => target.length <= 80 && !target.includes("\n"));
  return (
    <>
      {short ? (
        <ul class="targets">
          {listed.map((target) => (
            <li>
              <Line value={target} marks={hits(target, words)} />
            </li>
          ))}
        </ul>
      ) : (
        listed.map((target) => (
          <Text value={target} marks={hits(target, words)} label="the expected answer" />
        ))
      )}
      {targets.length > 50 && (
        <p class="note quiet">and {targets.length - 50} more, in the raw record</p>
      )}
    </>
  );
}

export function Scores({
  run,
  sample,
  words,
}: {
  run: RunData;
  sample: Sample;
  words: string;
}) {
  if (!sample.scores.length)
    return (
      <MessagePart title="Scores">
        <p class="note quiet">
          {sample.failure ? "The answer is missing, so there is no score." : "Nothing was scored."}
        </p>
      </MessagePart>
    );
  return (
    <MessagePart title="Scores">
      <FirstOf
        all={sample.scores}
        noun="scores"
        first={MOST}
        render={(score) => (
          <ScoreBox score={score} share={areShares(run, score.scorer)} words={words} />
        )}
      />
    </MessagePart>
  );
}

function ScoreBox({ score, share, words }: { score: ScoreOf; share: boolean; words: string }) {
  const numbers = Object.entries(score.parts);
  return (
    <article class="score">
      <h3>
        <span class="score-name">
          <Line value={score.scorer} />
        </span>
        <span class={`verdict ${tone(null, score.value, score.failure ? "failed" : null, share)}`}>
          {score.label && <Line value={score.label} />}
          {score.unsure && <span class="quiet"> unsure</span>}{" "}
          <span class="score-value">{score.value === null ? "" : number(score.value)}</span>
        </span>
      </h3>
      {score.unsure && (
        <p class="note quiet">
          A careful reader might argue: <Line value={score.unsure} />
        </p>
      )}
      {score.failure && <FailureBox failure={score.failure} />}
      {score.explanation && (
        <Text
          value={score.explanation}
          marks={hits(score.explanation, words)}
          label={`the reason of ${score.scorer}`}
        />
      )}
      {numbers.length > 0 && (
        <dl class="pairs">
          {numbers.slice(0, 100).map(([name, value]) => (
            <div>
              <dt>
                <Line value={name} />
              </dt>
              <dd>{number(value)}</dd>
            </div>
          ))}
        </dl>
      )}
      {score.exchange.length > FEW_EXCHANGES ? (
        <Fold summary={`${score.exchange.length} requests to judges, and their replies`}>
          {() => <Exchanges score={score} words={words} />}
        </Fold>
      ) : (
        <Exchanges score={score} words={words} />
      )}
    </article>
  );
}

function Exchanges({ score, words }: { score: ScoreOf; words: string }) {
  return (
    <FirstOf
      all={score.exchange}
      noun="exchanges"
      first={MOST}
      render={(exchange) => (
        <Fold
          summary={
            <>
              What <Line value={exchange.role} /> was sent and replied
            </>
          }
        >
          {() => (
            <>
              <Messages messages={exchange.messages} words={words} />
              <h3 class="role">Its reply</h3>
              <ReplyBox reply={exchange.reply} words={words} />
            </>
          )}
        </Fold>
      )}
    />
  );
}
