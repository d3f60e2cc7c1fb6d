import { open } from "node:fs/promises";
import type { IncomingHttpHeaders } from "node:http";
import type { AnswerText } from "./call-facts.ts";
import type { EndedCall, RebuiltAttempt } from "./call-record.ts";
import type { CallSession } from "./recorder.ts";
import type { GatewayScope } from "./session-lookup.ts";

/**
 * Holds an ended call with everything that its records need, because the process may restart before the call is stored.
 */
export interface SpooledCall {
  readonly scope: GatewayScope;
  /**
   * Is set when the session was chosen before the store went away. The call must then not go to a newer session of the
   * key.
   */
  readonly session: CallSession | null;
  /** Holds only the headers that name a session, so that no credential is written to disk. */
  readonly headers: IncomingHttpHeaders;
  readonly mayWrite: boolean;
  readonly call: EndedCall;
  readonly body: Buffer;
  /** Is null when the answer has no reply, because its text is not needed then. */
  readonly reply: AnswerText | null;
  readonly rebuilt: RebuiltAttempt | null;
}

/** Serializes a call: one line of JSON, followed by the body, the second attempt's body and the answer text. */
export function bytesOf({ body, reply, rebuilt, ...facts }: SpooledCall): Buffer {
  const { body: second = Buffer.alloc(0), ...again } = rebuilt ?? {};
  const sizes = { bodyBytes: body.length, secondBytes: second.length, replyType: reply?.type ?? null };
  const head = { v: 1, ...facts, ...sizes, rebuilt: rebuilt === null ? null : again };
  return Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), body, second, Buffer.from(reply?.text ?? "")]);
}

interface FileHead extends Omit<SpooledCall, "body" | "reply" | "rebuilt" | "session"> {
  readonly v: unknown;
  /** Files of earlier versions lack this member. */
  readonly session?: SpooledCall["session"];
  readonly bodyBytes: number;
  /** Files of versions without a second attempt lack this member. */
  readonly secondBytes?: number;
  readonly replyType: string | null;
  readonly rebuilt?: Omit<RebuiltAttempt, "body"> | null;
}

/** @throws {RangeError} for an incomplete file */
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

/** Reads only the head of a spool file, because the bodies may be large. Null when the file has no valid head. */
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
