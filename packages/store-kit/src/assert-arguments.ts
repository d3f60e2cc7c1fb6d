import { assertStoreOptions, quote, refused } from "@throughline/core/internal";
import type { RedactOptions, SessionRef } from "@throughline/core";

/**
 * Checks the types of an address. `assertIdsFree` checks whether a session can start at the address.
 * @throws {ThroughlineError} INPUT_INVALID
 */
export function assertRef(ref: SessionRef): void {
  assertObjects({ "a session's ref": ref });
  const { namespace, agentId, key, archiveId = "" } = ref;
  if (
    typeof namespace === "string" &&
    typeof agentId === "string" &&
    typeof key === "string" &&
    typeof archiveId === "string"
  )
    return;
  const shown = quote({ namespace, agentId, key, archiveId: ref.archiveId });
  throw refused("INPUT_INVALID", `A session's ref has texts for namespace, agentId and key, not ${shown}.`, { ...ref });
}

/**
 * The index of every store accepts this many bytes beside the other parts of an address. A key that parses is shorter.
 */
const mostKeyBytes = 2000;

/**
 * Checks that every store can keep the key of a new session. Keys that parse always pass, but callers may build refs by
 * hand.
 * @throws {ThroughlineError} KEY_INVALID
 */
export function assertKeyFits(key: string): void {
  if (key.isWellFormed() && !key.includes("\0") && Buffer.byteLength(key) <= mostKeyBytes) return;
  const message = `The session key ${quote(key)} cannot be kept: it is no well-formed text without NUL of at most ${mostKeyBytes} bytes.`;
  throw refused("KEY_INVALID", message, { key });
}

/**
 * Undefined means that the caller passed no signal, so it is accepted.
 * @throws {ThroughlineError} INPUT_INVALID
 */
export function assertSignal(signal: AbortSignal | undefined): void {
  if (signal === undefined || typeof (signal as Partial<AbortSignal> | null)?.addEventListener === "function") return;
  throw refused("INPUT_INVALID", `signal is an AbortSignal, not ${quote(signal)}.`);
}

/** @throws {ThroughlineError} INPUT_INVALID */
export function assertObjects(objects: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(objects)) {
    if (typeof value === "object" && value !== null) continue;
    throw refused("INPUT_INVALID", `${name} is an object, not ${quote(value)}.`, { argument: name });
  }
}

/**
 * Checks the arguments of `redact`.
 * @throws {ThroughlineError} INPUT_INVALID
 */
export function assertRedaction(ids: readonly string[], options: RedactOptions): void {
  const odd = Array.isArray(ids) ? (ids as readonly unknown[]).find((id) => typeof id !== "string") : ids;
  if (!Array.isArray(ids) || odd !== undefined || (ids as readonly unknown[]).includes(undefined))
    throw refused("INPUT_INVALID", `What is redacted is an array of record ids; it has ${quote(odd)}.`);
  assertStoreOptions("redact", options);
  if (options.entryFields?.includes("sessionId") === true)
    throw refused("INPUT_INVALID", "redact(): `entryFields` must not name `sessionId`: no session is without its id.", {
      argument: "entryFields",
    });
}

/**
 * Returns how much a fork shares with its origin: a seq, or Infinity for everything. A fork must stay in the namespace
 * and the agent of its origin. A redaction in one session must reach the other, and a codec binds content to namespace
 * and agent.
 * @throws {ThroughlineError} INPUT_INVALID, KEY_AGENT_MISMATCH, SESSION_ARCHIVED
 */
export function forkBound(
  ref: SessionRef,
  target: SessionRef,
  options: { readonly atSeq?: number | undefined },
): number {
  assertRef(ref);
  assertRef(target);
  assertStoreOptions("fork", options);
  const { atSeq = Infinity } = options;
  if (typeof atSeq !== "number" || !(atSeq >= 0) || (atSeq !== Infinity && !Number.isSafeInteger(atSeq)))
    throw refused("INPUT_INVALID", "atSeq is a whole number from 0 on.", { atSeq });
  if (ref.namespace !== target.namespace || ref.agentId !== target.agentId)
    throw refused("KEY_AGENT_MISMATCH", "A fork stays with the namespace and agent of its origin; copy it instead.", {
      ...target,
    });
  if (target.archiveId !== undefined)
    throw refused("SESSION_ARCHIVED", "A fork does not begin archived.", { ...target });
  return atSeq;
}
