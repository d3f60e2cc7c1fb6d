import { renameSync, writeFileSync } from "node:fs";
import { open, rename, rm, writeFile } from "node:fs/promises";
import type { IncomingHttpHeaders } from "node:http";
import { join } from "node:path";
import { type PayloadCodec, ThroughlineError } from "@throughline/core";
import type { CodecContext } from "@throughline/core/internal";
import type { AnswerText } from "./call-facts.ts";
import type { EndedCall, RebuiltAttempt } from "./call-record.ts";
import type { CallSession } from "./recorder.ts";
import type { GatewayScope } from "./session-lookup.ts";

/**
 * Holds an ended call with everything that its records need, because the process may restart before the call is stored.
 */
export interface JournaledCall {
  readonly scope: GatewayScope;
  /** Is the key of the session that the call begins, if it begins one. Files of earlier versions lack this member. */
  readonly key?: string;
  /**
   * Is set when the session was known before the store went away. The call must then not go to a newer session of the
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

/** Holds what an encrypted file shows of its call: what an erasure has to know, and what the codec is bound to. */
type CodedHead = Pick<JournaledCall, "scope" | "key" | "session"> & { readonly recordId: string };

interface CodedFileHead extends CodedHead {
  readonly v: 2;
  /** Names the codec that encrypted the call. */
  readonly codec: string;
}

/** Serializes a call. With a codec, one line of JSON stands before the coded bytes. */
export function bytesOf(call: JournaledCall, codec: PayloadCodec | null): Buffer {
  const plain = plainBytes(call);
  if (codec === null) return plain;
  const { scope, key, session } = call;
  const head: CodedHead = { scope, ...(key === undefined ? {} : { key }), session, recordId: call.call.recordId };
  const line = `${JSON.stringify({ v: 2, ...head, codec: codec.name })}\n`;
  return Buffer.concat([Buffer.from(line), codec.encode(plain, placeOf(head))]);
}

/** Until its session is known, a call is coded as a file of its agent is. */
function placeOf({ scope: { namespace, agentId }, session, recordId: id }: CodedHead): CodecContext {
  return { namespace, agentId, sessionId: session?.sessionId ?? "", id, part: "journal" };
}

/** Serializes a call: one line of JSON, followed by the body, the second attempt's body and the answer text. */
function plainBytes({ body, reply, rebuilt, ...facts }: JournaledCall): Buffer {
  const { body: second = Buffer.alloc(0), ...again } = rebuilt ?? {};
  const sizes = { bodyBytes: body.length, secondBytes: second.length, replyType: reply?.type ?? null };
  const head = { v: 1, ...facts, ...sizes, rebuilt: rebuilt === null ? null : again };
  return Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), body, second, Buffer.from(reply?.text ?? "")]);
}

interface FileHead extends Omit<JournaledCall, "body" | "reply" | "rebuilt" | "session"> {
  readonly v: unknown;
  /** Files of earlier versions lack this member. */
  readonly session?: JournaledCall["session"];
  readonly bodyBytes: number;
  /** Files of versions without a second attempt lack this member. */
  readonly secondBytes?: number;
  readonly replyType: string | null;
  readonly rebuilt?: Omit<RebuiltAttempt, "body"> | null;
}

/** @throws {RangeError} for an incomplete file; {ThroughlineError} CODEC_FAILED, and of the codec */
export function callOf(bytes: Buffer, codec: PayloadCodec | null): JournaledCall {
  const end = bytes.indexOf(0x0a);
  if (end === -1) throw new RangeError("The file has no head.");
  const head = JSON.parse(bytes.toString("utf8", 0, end)) as FileHead | CodedFileHead;
  if (!("recordId" in head)) return plainCall(head, bytes, end);
  if (codec?.name !== head.codec) throw wrongCodec(head, codec);
  return callOf(Buffer.from(codec.decode(bytes.subarray(end + 1), placeOf(head))), null);
}

function wrongCodec({ recordId: id, codec: needed }: CodedFileHead, given: PayloadCodec | null): Error {
  const has = given === null ? "has no codec" : `has the codec ${given.name}`;
  return new ThroughlineError(
    "CODEC_FAILED",
    `A call in the journal is encrypted by the codec ${needed}, and the gateway ${has}.`,
    {
      details: { id, needed, given: given?.name ?? null },
      remedy: "Start the gateway with the codec of its store: `spoolCodec` of createGateway.",
    },
  );
}

function plainCall(head: FileHead, bytes: Buffer, end: number): JournaledCall {
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

/** Reads only the head of a file of the journal, because the bodies may be large. Null when the file has no valid head. */
export async function headOf(path: string): Promise<Pick<JournaledCall, "scope" | "key" | "session"> | null> {
  const file = await open(path, "r");
  try {
    for await (const line of file.readLines()) {
      const { scope, key, session = null } = JSON.parse(line) as FileHead;
      return typeof scope?.namespace === "string" ? { scope, session, ...(key === undefined ? {} : { key }) } : null;
    }
    return null;
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError) return null;
    throw error;
  } finally {
    await file.close();
  }
}

/**
 * Writes a file that is whole under its final name, or not there. Without a flush it writes synchronously: that takes a
 * tenth of a millisecond, and four waits for other threads take longer on a busy machine.
 */
export async function writeWhole(folder: string, name: string, bytes: Buffer, isFlushed: boolean): Promise<void> {
  const [temporary, path] = [join(folder, `${name}.tmp`), join(folder, name)];
  try {
    if (!isFlushed) {
      writeFileSync(temporary, bytes, { flag: "wx", mode: 0o600 });
      return renameSync(temporary, path);
    }
    await writeFile(temporary, bytes, { flag: "wx", mode: 0o600, flush: true });
    await rename(temporary, path);
    // A rename survives a power failure only after the folder is flushed.
    await flush(folder);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/** Writes what the system holds of a file or folder to the disk. */
export async function flush(path: string): Promise<void> {
  const opened = await open(path, "r");
  try {
    await opened.sync();
  } finally {
    await opened.close();
  }
}
