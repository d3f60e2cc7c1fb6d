import { crc32, isColumnText, quote, refused } from "@throughline/core/internal";
import { assertObjects } from "./assert-arguments.ts";
import { assertNotArchived } from "./plan-move.ts";
import type { PartialReply, SessionHead, SessionRef, ThroughlineError } from "@throughline/core";
import type { StoreLimits } from "@throughline/core/internal";

type Fields = Readonly<Record<string, unknown>>;

/** Holds a checked partial and its JSON. */
export interface KeptPartial {
  /** Holds the reply after the checks. */
  readonly partial: PartialReply;
  /** Holds the reply as JSON, with its checksum. */
  readonly text: string;
}

/**
 * Checks a partial by all rules that do not need the session. Returns a copy without unknown fields, and its JSON.
 * @throws {ThroughlineError} INPUT_INVALID, RECORD_TOO_LARGE
 */
export function checkPartial(
  given: PartialReply,
  { recordBytes }: Pick<StoreLimits, "recordBytes">,
): { readonly partial: PartialReply; readonly json: string } {
  assertObjects({ "a partial reply": given });
  const problem = problemOf({ ...given });
  if (problem !== null) throw refused("INPUT_INVALID", `The partial reply is not valid: ${problem}.`, {});
  const partial = ownPartial(given);
  const json = JSON.stringify(partial);
  const bytes = Buffer.byteLength(json);
  if (bytes > recordBytes) {
    const message = `The partial reply has ${bytes} bytes; the store takes ${recordBytes}.`;
    throw refused("RECORD_TOO_LARGE", message, { bytes, limit: recordBytes });
  }
  return { partial, json };
}

/**
 * Checks a partial as `checkPartial` does, and gives its JSON a checksum, for a store that keeps it.
 * @throws {ThroughlineError} INPUT_INVALID, RECORD_TOO_LARGE
 */
export function preparePartial(given: PartialReply, limits: Pick<StoreLimits, "recordBytes">): KeptPartial {
  const { partial, json } = checkPartial(given, limits);
  return { partial, text: sealJson(json) };
}

const sealStart = ',"crc":';

/** Adds a checksum to the JSON of an object, as its last member. */
export function sealJson(json: string): string {
  return `${json.slice(0, -1)}${sealStart}${crc32(json)}}`;
}

/**
 * Returns whether the JSON of an object matches its checksum. Null means that it has none: earlier versions wrote none.
 * A text within the object cannot look like a checksum, because its quotation marks are escaped.
 */
export function isSealIntact(text: string): boolean | null {
  const at = text.lastIndexOf(sealStart);
  if (at === -1) return null;
  const stated = text.slice(at + sealStart.length, -1);
  return text.endsWith("}") && stated === String(crc32(`${text.slice(0, at)}}`));
}

/**
 * Refuses a partial whose turn is not the open turn of the session. Call it in the transaction of the write.
 * @throws {ThroughlineError} SESSION_ARCHIVED, TURN_FENCED
 */
export function assertPartialFits(ref: SessionRef, head: SessionHead, partial: PartialReply): void {
  assertNotArchived(ref);
  if (isPartialOf(head, partial)) return;
  const open = head.turn === null ? "no turn is open" : `turn ${quote(head.turn.turnId)} is open`;
  const message = `The partial reply of turn ${quote(partial.turnId)}, fence ${partial.fence}, is refused: the session is at fence ${head.fence} and ${open}.`;
  throw refused("TURN_FENCED", message, { fence: partial.fence, currentFence: head.fence, turn: head.turn });
}

/** Returns whether a partial belongs to the open turn of the session. */
export function isPartialOf(
  { sessionId, fence, turn }: SessionHead,
  partial: Pick<PartialReply, "sessionId" | "fence" | "turnId">,
): boolean {
  return turn !== null && sessionId === partial.sessionId && fence === partial.fence && turn.turnId === partial.turnId;
}

/**
 * Parses a stored partial.
 * @throws {ThroughlineError} STORE_VERSION_UNSUPPORTED for a later version, STORE_CORRUPT when it is damaged
 */
export function readPartial(text: string, ref: SessionRef): PartialReply {
  const fields = fieldsOf(text);
  const isIntact = isSealIntact(text) !== false;
  // A partial without a problem has every field, so the cast is safe.
  if (fields !== null && isIntact && problemOf(fields) === null) return ownPartial(fields as unknown as PartialReply);
  const version = fields?.["v"];
  if (typeof version === "number" && version > 1) {
    const message = `The partial reply of session ${quote(ref.key)} has version ${version}; this program reads version 1.`;
    throw refused("STORE_VERSION_UNSUPPORTED", message, { ...ref, version });
  }
  throw damagedPartial(ref);
}

export function damagedPartial(ref: SessionRef): ThroughlineError {
  return refused("STORE_CORRUPT", `The partial reply of session ${quote(ref.key)} is damaged.`, { ...ref });
}

function fieldsOf(text: string): Fields | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Fields) : null;
  } catch {
    return null;
  }
}

/**
 * Checks a fence that a caller passed.
 * @throws {ThroughlineError} INPUT_INVALID
 */
export function assertFence(fence: number): void {
  if (!Number.isSafeInteger(fence) || fence < 0)
    throw refused("INPUT_INVALID", `A fence is a whole number from 0 on, not ${quote(fence)}.`, { fence });
}

function ownPartial(given: PartialReply): PartialReply {
  const { v, sessionId, turnId, fence, step, attempt, afterSeq, provider, api, model, text, updatedMs } = given;
  return { v, sessionId, turnId, fence, step, attempt, afterSeq, provider, api, model, text, updatedMs };
}

const wholeNumbers = ["fence", "step", "attempt", "afterSeq"] as const;
const names = ["provider", "api", "model"] as const;

function problemOf(partial: Fields): string | null {
  if (partial["v"] !== 1) return `its version is ${quote(partial["v"])}, not 1`;
  for (const field of ["sessionId", "turnId"] as const)
    if (!isColumnText(partial[field], 256)) return `${field} is text of 1 to 256 characters`;
  for (const field of wholeNumbers)
    if (!Number.isSafeInteger(partial[field]) || (partial[field] as number) < 0)
      return `${field} is a whole number from 0 on`;
  for (const field of names)
    if (partial[field] !== null && !isColumnText(partial[field], 256)) return `${field} is a short text or null`;
  if (typeof partial["text"] !== "string" || !partial["text"].isWellFormed()) return "text is well-formed text";
  return Number.isFinite(partial["updatedMs"]) ? null : "updatedMs is a time in milliseconds";
}
