import type { Clock } from "@throughline/core";
import type { ReadReply } from "./wire/index.ts";
import {
  answerOf,
  type AnswerText,
  type Came,
  errorOf,
  fitting,
  outcomeOf,
  replyOf,
  type SentCall,
} from "./call-facts.ts";
import type { EndedCall, RebuiltAttempt } from "./call-record.ts";
import type { RebuiltCall } from "./guard.ts";
import { withoutCredentials } from "./secrets.ts";

interface ReadCall {
  readonly call: EndedCall;
  readonly read: ReadReply | null;
  /** Is null when the call has no reply. */
  readonly reply: AnswerText | null;
}

export interface ReadCalls extends ReadCall {
  readonly rebuilt: RebuiltAttempt | null;
}

interface CallReading {
  readonly clock: Clock;
  readonly credentials: readonly string[];
}

async function readCall(
  { split, ...facts }: SentCall,
  came: Came,
  { clock, credentials }: CallReading,
): Promise<ReadCall> {
  const answer = answerOf(came);
  const isError = answer.status < 200 || answer.status >= 300;
  const text = "copy" in came ? await came.copy.text(came.outgoing.headers) : null;
  const reply =
    text === null || isError || !("copy" in came) ? null : { type: came.outgoing.headers["content-type"] ?? "", text };
  const read = reply === null ? null : replyOf(split, reply);
  const call: EndedCall = {
    ...facts,
    ...answer,
    outcome: outcomeOf(came, isError, read),
    endedMs: clock.nowMs(),
    errorBody: errorOf(came, isError ? text : (read?.error ?? null), credentials),
    unknownEvents: fitting(read?.unknown ?? []).map((event) => withoutCredentials(event, credentials)),
  };
  return { call, read, reply };
}

/**
 * The reply must come from the attempt whose answer the client received, because the client's next request repeats it.
 */
export async function readGuardedCall(
  sent: SentCall,
  came: Came,
  rebuilt: RebuiltCall | null,
  reading: CallReading,
): Promise<ReadCalls> {
  if (rebuilt === null) return { ...(await readCall(sent, came, reading)), rebuilt: null };
  const { recordId, action, changes, compacted, split, body, requestSha256, startedMs, isAnswer, other } = rebuilt;
  const again = {
    ...sent,
    split,
    recordId,
    requestSha256,
    requestBytes: body.length,
    requestEncoding: null,
    startedMs,
  };
  const first = await readCall(sent, isAnswer ? other : came, reading);
  const second = await readCall(again, isAnswer ? came : other, reading);
  const heard = isAnswer ? second : first;
  const call = { ...first.call, outcome: action === "repaired" ? first.call.outcome : "overflowed" } as const;
  return {
    call,
    read: heard.read,
    reply: heard.reply,
    rebuilt: { call: second.call, body, action, changes, compacted },
  };
}
