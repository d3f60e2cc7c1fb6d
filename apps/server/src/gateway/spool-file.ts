import { open } from "node:fs/promises";
import type { IncomingHttpHeaders } from "node:http";
import type { AnswerText } from "./call-facts.ts";
import type { EndedCall, RebuiltAttempt } from "./call-record.ts";
import type { CallSession } from "./recorder.ts";
import type { GatewayScope } from "./session-lookup.ts";

/** A call that has ended and waits for the store, with all that its record is made of. */
export interface SpooledCall {
  readonly scope: GatewayScope;
  /** The session that it belongs to, where the store said that before it went away. */
  readonly session: CallSession | null;
  /** Those that name a session; never a credential. */
  readonly headers: IncomingHttpHeaders;
  readonly mayWrite: boolean;
  readonly call: EndedCall;
  /** The body of the request, unpacked. */
  readonly body: Buffer;
  /** The answer, as far as a reply is read from it; null: it is none. */
  readonly reply: AnswerText | null;
  /** The attempt that was made in its place. */
  readonly rebuilt: RebuiltAttempt | null;
}

/** A line of JSON, the body, that of the second attempt, the text of the answer. */
export function bytesOf({ body, reply, rebuilt, ...facts }: SpooledCall): Buffer {
  const { body: second = Buffer.alloc(0), ...again } = rebuilt ?? {};
  const sizes = { bodyBytes: body.length, secondBytes: second.length, replyType: reply?.type ?? null };
  const head = { v: 1, ...facts, ...sizes, rebuilt: rebuilt === null ? null : again };
  return Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), body, second, Buffer.from(reply?.text ?? "")]);
}

interface FileHead extends Omit<SpooledCall, "body" | "reply" | "rebuilt" | "session"> {
  readonly v: unknown;
  /** Absent in files of versions that did not keep it. */
  readonly session?: SpooledCall["session"];
  readonly bodyBytes: number;
  /** Absent in files of versions that made no second attempt. */
  readonly secondBytes?: number;
  readonly replyType: string | null;
  readonly rebuilt?: Omit<RebuiltAttempt, "body"> | null;
}

/** @throws {RangeError} for a file that is not whole */
export function callOf(bytes: Buffer): SpooledCall {
  const end = bytes.indexOf(0x0a);
  if (end === -1) throw new RangeError("The file has no head.");
  const head = JSON.parse(bytes.toString("utf8", 0, end)) as FileHead;
  const { v, bodyBytes, secondBytes = 0, replyType, rebuilt = null, session = null, ...facts } = head;
  const body = bytes.subarray(end + 1, end + 1 + bodyBytes);
  const second = bytes.subarray(end + 1 + bodyBytes, end + 1 + bodyBytes + secondBytes);
  if (v !== 1 || body.length !== bodyBytes || second.length !== secondBytes)
    throw new RangeError("The file is not whole, or of another version.");
  const text = bytes.toString("utf8", end + 1 + bodyBytes + secondBytes);
  return {
    ...facts,
    session,
    body,
    reply: replyType === null ? null : { type: replyType, text },
    rebuilt: rebuilt === null ? null : { ...rebuilt, body: second },
  };
}

/** The head of a file of the spool alone; null for one that has none. */
export async function headOf(path: string): Promise<Pick<SpooledCall, "scope" | "session"> | null> {
  const file = await open(path, "r");
  try {
    for await (const line of file.readLines()) {
      const { scope, session = null } = JSON.parse(line) as FileHead;
      return typeof scope?.namespace === "string" ? { scope, session } : null;
    }
    return null;
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError) return null;
    throw error;
  } finally {
    await file.close();
  }
}
