import { subtle } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { setImmediate as nextTurn } from "node:timers/promises";
import { hasErrorCode } from "@throughline/core";
import {
  bodyText,
  readReply,
  type ReadReply,
  splitRequest,
  type SplitRequest,
  unreadRequest,
  type WireApi,
} from "./wire/index.ts";
import { type AnswerCopy, mostCopied, unpacked } from "./answer-copy.ts";
import type { EndedCall } from "./call-record.ts";
import { isWithinBounds } from "./json-bounds.ts";
import { keptHeaders } from "./raw-headers.ts";
import type { RelayEnd } from "./relay.ts";
import { withoutCredentials } from "./secrets.ts";

const mostErrorBytes = 64 * 1024;
const mostUnknownBytes = 16 * 1024;

export interface SentCall extends Omit<
  EndedCall,
  keyof AnswerFacts | "outcome" | "endedMs" | "errorBody" | "unknownEvents"
> {
  readonly split: SplitRequest;
}

export interface AnswerText {
  readonly type: string;
  readonly text: string;
}

type AnswerFacts = Pick<EndedCall, "status" | "responseHeaders" | "firstByteMs" | "responseSha256" | "responseBytes">;

export type Came =
  | {
      readonly outgoing: IncomingMessage;
      readonly copy: AnswerCopy;
      readonly end: RelayEnd;
      readonly firstByteMs: number;
    }
  | { readonly error: unknown };

export function answerOf(came: Came): AnswerFacts {
  if (!("copy" in came))
    return { status: 0, responseHeaders: {}, firstByteMs: null, responseSha256: "", responseBytes: 0 };
  const { outgoing, copy, firstByteMs } = came;
  return {
    status: outgoing.statusCode ?? 0,
    responseHeaders: keptHeaders(outgoing, "response"),
    firstByteMs,
    responseSha256: copy.sha256,
    responseBytes: copy.bytes,
  };
}

/** Unpacks and parses the request of a known API. A request that cannot be parsed is kept as its bytes. */
export async function copyOf(
  api: WireApi,
  body: Buffer,
  encoding: string | undefined,
): Promise<{ readonly plain: Buffer; readonly read: Pick<SentCall, "api" | "split" | "requestSha256"> }> {
  const plain = await unpacked(body, encoding);
  const kept = plain ?? body;
  const hashed = sha256Of(kept);
  // Yield before parsing, so that the request leaves for the provider first.
  await nextTurn();
  const split = plain === null ? null : await readRequest(api, plain);
  return { plain: kept, read: { api, split: split ?? unreadRequest(api, kept), requestSha256: await hashed } };
}

/** Hashes in a worker thread: a large body would block the event loop and with it the streams of other clients. */
async function sha256Of(bytes: Buffer): Promise<string> {
  return Buffer.from(await subtle.digest("SHA-256", bytes)).toString("hex");
}

/**
 * Splits a body into its messages. The result is null for a body without messages, one that is not JSON, and one above
 * the parse limits.
 */
export async function readRequest(api: WireApi, plain: Buffer): Promise<SplitRequest | null> {
  const isRead = plain.length <= mostCopied && (await isWithinBounds(plain, "document"));
  const text = isRead ? bodyText(plain) : null;
  const split = text === null ? null : splitRequest(api, text);
  return split === null || split.units.length === 0 ? null : split;
}

export function replyOf(split: SplitRequest, { type, text }: AnswerText): ReadReply {
  const model = split.member("model");
  return readReply(split.api, type, text, typeof model === "string" && model !== "" ? model : undefined);
}

export function outcomeOf(came: Came, isError: boolean, reply: ReadReply | null): EndedCall["outcome"] {
  if (!("copy" in came)) return hasErrorCode(came.error, "ABORTED") ? "aborted" : "failed";
  if (came.end === "aborted") return "aborted";
  if (isError) return "failed";
  if (came.end === "cut") return "partial";
  // A null reply without an error means that the answer was too large to parse. The answer did end.
  if (reply === null || reply.isEnded) return reply?.error == null ? "answered" : "failed";
  return reply.error === null ? "partial" : "failed";
}

export function errorOf(came: Came, text: string | null, credentials: readonly string[]): string | null {
  if ("error" in came) return came.error instanceof Error ? came.error.message : null;
  return text === null ? null : withoutCredentials(text, credentials).slice(0, mostErrorBytes);
}

export function fitting(events: readonly string[]): readonly string[] {
  let bytes = 0;
  return events.filter((event) => (bytes += event.length) <= mostUnknownBytes);
}
