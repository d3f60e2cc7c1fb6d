import type { RecordHead, ReadPayload, RecordFor, AppendedRecord, SourcedDraft } from "@throughline/core/internal";
import type * as core from "@throughline/core";
import { assertRef } from "@throughline/store-kit/internal";
import { refused, sessionNotFound } from "@throughline/core/internal";

/** Returns false for an address under which no store keeps a session, because a URL cannot carry it. */
export function isAddressable({ namespace, agentId, key, archiveId = "" }: core.SessionRef): boolean {
  const parts = [namespace, agentId, key, archiveId];
  return parts.every((part) => part.isWellFormed() && !part.includes("\0")) && Buffer.byteLength(key) <= 2000;
}

/**
 * @throws {ThroughlineError} INPUT_INVALID for a malformed ref, SESSION_NOT_FOUND for an address that no session can
 * have
 */
export function assertMayExist(ref: core.SessionRef): void {
  assertRef(ref);
  if (!isAddressable(ref)) throw sessionNotFound(ref);
}

export interface WireRef {
  readonly agentId: string;
  readonly key: string;
  readonly archiveId: string | null;
}

export function refOf(namespace: string, { agentId, key, archiveId }: WireRef): core.SessionRef {
  return { namespace, agentId, key, ...(archiveId === null ? {} : { archiveId }) };
}

/** The server sends this form with `entry=true`. */
export interface WireSession extends WireRef, Omit<core.SessionState, "ref" | "archived"> {
  readonly namespace: string;
}

export function stateOf(session: WireSession): core.SessionState {
  const { namespace, archiveId, sessionId, entry, revision, head, messageCount, createdAtMs, updatedAtMs } = session;
  const [ref, archived] = [refOf(namespace, session), archiveId !== null];
  return { ref, sessionId, archived, entry, revision, head, messageCount, createdAtMs, updatedAtMs };
}

export interface WireRecord extends RecordHead {
  readonly record?: core.SessionRecord;
  readonly source?: string;
  /** Replaces `source` when the source is not valid text. */
  readonly sourceBase64?: string;
  readonly isSourceCanonical?: boolean;
}

/** A record without what the wire adds to it. */
export function recordOf<Payload extends ReadPayload>(wire: WireRecord, payload: Payload): RecordFor<Payload> {
  const {
    kind: _kind,
    record,
    source: text,
    sourceBase64,
    isSourceCanonical = false,
    ...head
  } = wire as WireRecord & {
    readonly kind?: unknown;
  };
  if (payload === "head") return head as RecordFor<Payload>;
  if (payload === "record") return { ...head, record } as RecordFor<Payload>;
  const source = sourceBase64 === undefined ? text : new Uint8Array(Buffer.from(sourceBase64, "base64"));
  const meaning: unknown = record ?? JSON.parse(String(text));
  return { ...head, record: meaning, source, isSourceCanonical } as RecordFor<Payload>;
}

export interface WireAppend extends Omit<core.AppendResult, "records"> {
  readonly items: readonly AppendedRecord[];
}

export function appendResultOf({ items, head, revision, durability, replayed }: WireAppend): core.AppendResult {
  const records = items.map(({ seq, id, parentId, side, tsMs, storedAtMs }) => {
    return { seq, id, parentId, side, tsMs, storedAtMs };
  });
  return { records, head, revision, durability, replayed };
}

/**
 * Encodes the body of an append. In a wire entry null removes a field, so `nullFields` names the fields to set to null.
 * @throws {ThroughlineError} BATCH_TOO_LARGE when the server takes no body of that size
 */
export function appendBody(
  drafts: readonly core.AppendDraft[],
  { entry, signal: _signal, ...options }: core.AppendOptions,
  bodyBytes: number,
): string {
  const fields = Object.entries(entry ?? {});
  const patch =
    entry === undefined ? {} : { entry: Object.fromEntries(fields.map(([name, value]) => [name, value ?? null])) };
  const nullFields = fields.filter(([, value]) => value === null).map(([name]) => name);
  const nulls = nullFields.length === 0 ? {} : { nullFields };
  const text = JSON.stringify({ drafts: drafts.map(wireDraft), ...options, ...patch, ...nulls });
  const bytes = Buffer.byteLength(text);
  if (bytes <= bodyBytes) return text;
  throw refused("BATCH_TOO_LARGE", `The append has ${bytes} bytes as JSON; the server takes ${bodyBytes}.`, {
    bytes,
    limit: bodyBytes,
  });
}

function wireDraft(draft: core.AppendDraft): unknown {
  if ("type" in draft || !(draft.source instanceof Uint8Array)) return draft;
  const { source, record } = draft as SourcedDraft;
  return { sourceBase64: Buffer.from(source).toString("base64"), record };
}

/** Rounds a time bound up to a whole number that JSON and a URL can hold. The same sessions lie before and after it. */
export function boundMs(value: number | undefined): number | undefined {
  return value === undefined ? undefined : Math.min(Math.max(Math.ceil(value), 0), Number.MAX_SAFE_INTEGER);
}
