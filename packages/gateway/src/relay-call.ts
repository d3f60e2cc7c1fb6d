import type { Clock } from "@throughline/core";
import { monotonicMs } from "@throughline/core/internal";
import { AnswerCopy, mostCopied } from "./answer-copy.ts";
import { writeHead } from "./answer-head.ts";
import type { GatewayMetrics } from "./gateway-metrics.ts";
import { type Guard, passUnchanged, type PassedCall } from "./guard.ts";
import { type ReceivedCall, sendBody, sendMade } from "./receive-call.ts";
import type { CallRecording, EndedAnswer, RecordedCall } from "./record-call.ts";
import type { Recorder } from "./recorder.ts";
import { relayBody, type RelayEnd, type UpstreamConnections } from "./relay.ts";
import type { HeldBody } from "./request-body.ts";
import { logOf, nameOf } from "./store-waits.ts";
import { endOf } from "./terminal-event.ts";
import { within } from "./within.ts";

export interface RelayParts {
  readonly connections: UpstreamConnections;
  readonly guard: Guard;
  readonly recorder: Recorder;
  readonly recording: CallRecording;
  readonly metrics: GatewayMetrics;
  readonly clock: Clock;
}

/**
 * Asks the provider, and once more with a rebuilt request where the mode allows it.
 * @throws {ThroughlineError} UPSTREAM_UNREACHABLE, ABORTED
 */
export function askUpstream(
  call: ReceivedCall,
  recorded: RecordedCall | null,
  { connections, guard, recorder, clock }: RelayParts,
): Promise<PassedCall> {
  const { upstream, scope, mode, body, early, gone } = call;
  const { turn = null, running = null } = recorded ?? {};
  const first = (): ReturnType<typeof sendBody> =>
    early ?? (turn === null ? sendBody(connections, call, body) : sendMade(connections, call, turn.body, false));
  if (mode === "record" || recorded === null || recorded.sent.split.unread !== null) return passUnchanged(first());
  return guard.pass({
    upstream,
    sent: recorded.sent,
    send: (own) => (own === null ? first() : sendMade(connections, call, own, true)),
    ask: (method, target, text) => sendMade(connections, { ...call, method, target }, Buffer.from(text), true),
    signal: gone.signal,
    log: () =>
      logOf(clock, recorder.logs, scope, running === null ? (turn?.key ?? null) : recorder.locate(running, true)),
  });
}

/** Passes an answer to the client. The client hears the end when the call is in the journal. */
export async function relayAnswer(
  call: ReceivedCall,
  recorded: RecordedCall | null,
  { peeked, rebuilt }: PassedCall,
  held: HeldBody,
  parts: RelayParts,
): Promise<void> {
  const { response, secret, upstream, api } = call;
  const { clock, recording, metrics } = parts;
  const outgoing = peeked.answer;
  const firstByteMs = clock.nowMs();
  await relayHead(call, recorded, { peeked, rebuilt }, parts);
  const copy = new AnswerCopy();
  let ended: EndedAnswer | null = null;
  const end = (how: RelayEnd): EndedAnswer =>
    (ended ??=
      recorded === null ? unrecorded : recording.end(recorded, { outgoing, copy, end: how, firstByteMs }, rebuilt));
  const how = await relayBody(peeked, response, {
    secret: secret ?? "",
    onChunk: (chunk) => {
      if (recorded === null) return;
      copy.take(chunk);
      if (copy.bytes <= mostCopied) held.share?.add(chunk.length);
    },
    hold: recorded === null ? null : { isLast: endOf(outgoing), until: () => end("whole").isKept },
  });
  held.until = within(clock, end(how).stored, mostHeldMs);
  if (recorded === null) metrics.call({ upstream: upstream.name, api: api ?? "other", mode: "pass", outcome: how });
}

const unrecorded: EndedAnswer = { isKept: Promise.resolve(true), stored: Promise.resolve() };
/** Limits how long the body of a call counts in the budget while the store does not answer. */
const mostHeldMs = 2000;

/** Writes the head with the name of the session. */
async function relayHead(
  { response, secret, sentMs, beganMs }: ReceivedCall,
  recorded: RecordedCall | null,
  { peeked, rebuilt }: PassedCall,
  { clock, recorder, metrics }: RelayParts,
): Promise<void> {
  const headMs = monotonicMs();
  const { turn = null, running = null } = recorded ?? {};
  const session = turn?.key ?? (running === null ? null : await nameOf(clock, recorder, running));
  const addedMs = monotonicMs() - headMs + sentMs - beganMs;
  writeHead(response, peeked.answer, {
    session,
    call: recorded?.sent.recordId ?? null,
    guard: rebuilt,
    addedMs,
    secret,
  });
  metrics.added(addedMs);
}
