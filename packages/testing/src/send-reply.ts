import type { ServerResponse } from "node:http";
import { pause, writePieces } from "./write-pieces.ts";
import type { AnswerReply, ErrorReply, StreamBreak } from "./simulated-reply.ts";
import type { RequestOutcome } from "./simulator-options.ts";
import type { Violation } from "./violation.ts";
import type { WireAdapter, WireAnswer, WireResponse } from "./wire-adapter.ts";

export function sendWhole(response: ServerResponse, { status, headers, body }: WireResponse): void {
  response.writeHead(status, { "content-type": "application/json; charset=utf-8", ...headers });
  response.end(body);
}

export async function sendFailure(
  response: ServerResponse,
  reply: ErrorReply,
  adapter: WireAdapter,
  signal: AbortSignal,
): Promise<RequestOutcome> {
  if (!(await pause(reply.delayMs ?? 0, signal))) return "aborted";
  const usual = adapter.usualFailure(reply.status);
  const violation: Violation = {
    ...usual,
    ...(reply.message === undefined ? {} : { message: reply.message }),
    ...(reply.type === undefined ? {} : { type: reply.type }),
    ...(reply.code === undefined ? {} : { code: reply.code }),
  };
  const sent = adapter.failure(violation);
  const retry = reply.retryAfterMs;
  const after: Readonly<Record<string, string>> =
    retry === undefined ? {} : { "retry-after-ms": `${retry}`, "retry-after": `${Math.ceil(retry / 1000)}` };
  sendWhole(response, { ...sent, headers: { ...sent.headers, ...after, ...reply.headers } });
  return "failed";
}

export async function sendAnswer(
  response: ServerResponse,
  answer: WireAnswer,
  reply: AnswerReply,
  adapter: WireAdapter,
  how: { readonly streams: boolean; readonly signal: AbortSignal },
): Promise<RequestOutcome> {
  const { streams, signal } = how;
  if (!(await pause(reply.delayMs ?? 0, signal))) return "aborted";
  const breakAfter = reply.breakAfter;
  const texts = streams ? answer.events : [answer.whole];
  const kept = breakAfter ? texts.slice(0, streams ? breakAfter.events : 0) : texts;
  const breaksWithEvent = streams && breakAfter?.how === "error-event";
  const ending = breaksWithEvent ? [adapter.failureEvent(streamFailure(breakAfter, adapter))] : [];
  response.writeHead(200, {
    "content-type": streams ? adapter.streamType : "application/json; charset=utf-8",
    ...(streams ? { "cache-control": "no-cache" } : {}),
  });
  // The client must be able to see the headers before the first event.
  response.flushHeaders();
  const options = { eventDelayMs: reply.eventDelayMs ?? 0, chunkBytes: reply.chunkBytes, signal };
  if (!(await writePieces(response, [...kept, ...ending], options))) return "aborted";
  if (breakAfter && ending.length === 0) {
    response.destroy();
    return "cut";
  }
  response.end();
  return breakAfter ? "cut" : "answered";
}

function streamFailure({ status, message }: StreamBreak, adapter: WireAdapter): Violation {
  const usual = adapter.usualFailure(status ?? adapter.streamFailureStatus);
  return message === undefined ? usual : { ...usual, message };
}
