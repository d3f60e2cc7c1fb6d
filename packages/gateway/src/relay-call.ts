import type { Clock } from "@throughline/core";
import { monotonicMs } from "@throughline/core/internal";
import { AnswerCopy, mostCopied } from "./answer-copy.ts";
import { writeHead } from "./answer-head.ts";
import type { GatewayMetrics } from "./gateway-metrics.ts";
import { type Guard, passUnchanged, type PassedCall } from "./guard.ts";
import type { CallKeeper } from "./keep-calls.ts";
import { type ReceivedCall, sendBody, sendMade } from "./receive-call.ts";
import type { CallRecording, EndedAnswer, RecordedCall } from "./record-call.ts";
import { relayBody, type RelayEnd, type UpstreamConnections } from "./relay.ts";
import type { HeldBody } from "./request-body.ts";
import type { SessionLogs } from "./session-logs.ts";
import { logOf, nameOf } from "./store-waits.ts";
import { endOf } from "./terminal-event.ts";
import { within } from "./within.ts";

export interface RelayParts {
  readonly connections: UpstreamConnections;
  readonly guard: Guard;
  readonly logs: SessionLogs;
  readonly recording: CallRecording;
  readonly keeper: CallKeeper;
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
  { connections, guard, logs, clock }: RelayParts,
): Promise<PassedCall> {
  const { upstream, scope, mode, body, early, gone } = call;
  const turn = recorded?.turn ?? null;
  const first = (): ReturnType<typeof sendBody> =>
    early ?? (turn === null ? sendBody(connections, call, body) : sendMade(connections, call, turn.body, false));
  if (mode === "record" || recorded === null || recorded.sent.split.unread !== null) return passUnchanged(first());
  return guard.pass({
    upstream,
    sent: recorded.sent,
    send: (own) => (own === null ? first() : sendMade(connections, call, own, true)),
    ask: (method, target, text) => sendMade(connections, { ...call, method, target }, Buffer.from(text), true),
    signal: gone.signal,
    log: () => logOf(clock, logs, scope, turn === null ? (recorded.open?.session ?? null) : turn.key),
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
    hold: isHeldBack(call, recorded, parts.keeper)
      ? { isLast: endOf(outgoing), until: () => end("whole").isKept }
      : null,
  });
  held.until = within(clock, end(how).stored, mostHeldMs);
  if (recorded === null) metrics.call({ upstream: upstream.name, api: api ?? "other", mode: "pass", outcome: how });
}

const unrecorded: EndedAnswer = { isKept: Promise.resolve(true), stored: Promise.resolve() };
/** Limits how long the body of a call counts in the budget while the store does not answer. */
const mostHeldMs = 2000;

/** Is true when the client may see the end of the answer only after the call is in the journal or the store. */
function isHeldBack({ isStrict }: ReceivedCall, recorded: RecordedCall | null, keeper: CallKeeper): boolean {
  return recorded !== null && (isStrict || recorded.turn !== null || keeper.hasJournal);
}

/** Writes the head with the name of the session. */
async function relayHead(
  { response, secret, sentMs, beganMs }: ReceivedCall,
  recorded: RecordedCall | null,
  { peeked, rebuilt }: PassedCall,
  { clock, metrics }: RelayParts,
): Promise<void> {
  const headMs = monotonicMs();
  const { turn = null, open = null } = recorded ?? {};
  const session = turn?.key ?? (open === null ? null : await nameOf(clock, open));
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
