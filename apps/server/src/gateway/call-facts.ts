import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { hasErrorCode } from "@throughline/core";
import { bodyText, type ReadReply, readReply, splitRequest, type SplitRequest, type WireApi } from "@throughline/wire";
import { type AnswerCopy, mostCopied, unpacked } from "./answer-copy.ts";
import type { EndedCall } from "./call-record.ts";
import { keptHeaders } from "./raw-headers.ts";
import type { RelayEnd } from "./relay.ts";

const mostErrorBytes = 64 * 1024;
const mostUnknownBytes = 16 * 1024;

/** What is known of a call before there is an answer. */
export interface SentCall extends Omit<
  EndedCall,
  keyof AnswerFacts | "outcome" | "endedMs" | "errorBody" | "unknownEvents"
> {
  readonly split: SplitRequest;
}

/** What an answer says, with its content type. */
export interface AnswerText {
  readonly type: string;
  readonly text: string;
}

type AnswerFacts = Pick<EndedCall, "status" | "responseHeaders" | "firstByteMs" | "responseSha256" | "responseBytes">;

/** What came of a call: an answer, or why there was none. */
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

/** A request of an API that is known, unpacked and read; null for any other. */
export async function copyOf(
  api: WireApi | null,
  body: Buffer,
  encoding: string | undefined,
): Promise<{ readonly plain: Buffer; readonly read: Pick<SentCall, "api" | "split" | "requestSha256"> } | null> {
  if (api === null) return null;
  const plain = await unpacked(body, encoding);
  const text = plain === null || plain.length > mostCopied ? null : bodyText(plain);
  const split = text === null ? null : splitRequest(api, text);
  if (plain === null || split === null || split.units.length === 0) return null;
  return { plain, read: { api, split, requestSha256: createHash("sha256").update(plain).digest("hex") } };
}

/** The reply that the text of an answer holds. */
export function replyOf(split: SplitRequest, { type, text }: AnswerText): ReadReply {
  const model = split.member("model");
  return readReply(split.api, type, text, typeof model === "string" && model !== "" ? model : undefined);
}

export function outcomeOf(came: Came, isError: boolean, reply: ReadReply | null): EndedCall["outcome"] {
  if (!("copy" in came)) return hasErrorCode(came.error, "ABORTED") ? "aborted" : "failed";
  if (came.end === "aborted") return "aborted";
  if (isError) return "failed";
  if (came.end === "cut") return "partial";
  // An answer that is too large to be read ended all the same.
  if (reply === null || reply.isEnded) return reply?.error == null ? "answered" : "failed";
  return reply.error === null ? "partial" : "failed";
}

export function errorOf(came: Came, text: string | null): string | null {
  if ("error" in came) return came.error instanceof Error ? came.error.message : null;
  return text === null ? null : text.slice(0, mostErrorBytes);
}

export function fitting(events: readonly string[]): readonly string[] {
  let bytes = 0;
  return events.filter((event) => (bytes += event.length) <= mostUnknownBytes);
}

const secretNames = /key|token|secret|sign|pass|auth|cred/i;

/** The query as it is stored: what may be a secret is left out. */
export function keptQuery(target: string): string {
  const mark = target.indexOf("?");
  if (mark === -1) return "";
  const parts = target.slice(mark + 1, mark + 1 + 2048).split("&");
  return parts.filter((part) => !secretNames.test(part.split("=")[0] ?? "")).join("&");
}
