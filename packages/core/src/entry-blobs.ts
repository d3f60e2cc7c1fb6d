import { appendOnce } from "./append-once.ts";
import { loadExisting, updateEntry } from "./open-session.ts";
import { patchEntry, type SessionEntry } from "./session-entry.ts";
import type { SessionRecord } from "./record.ts";
import type { RecordDraft } from "./record-draft.ts";
import type { SessionRef } from "./session-ref.ts";
import { sha256Hex } from "./sha256.ts";
import type { SessionStore } from "./session-store.ts";
import type { SessionState } from "./session-state.ts";
import { throughlineDraft, throughlineKind } from "./throughline-record.ts";

/**
 * Programs fill these fields with tens of kilobytes and read them seldom. Throughline does not read them at all. They
 * are stored as side records, and the entry keeps only their location, because lists read the entry and every turn
 * writes it.
 */
export const entryBlobFields: readonly string[] = ["skillsSnapshot", "systemPromptReport"];

/** The entry's field `blobsAside` holds one location for each field that was moved. */
interface BlobPlace {
  readonly sessionId: string;
  readonly seq: number;
  readonly sizeBytes: number;
  readonly sha256: string;
}

const noteKind = "entry-blob";

/**
 * Moves blobs out of the entry into records. Each blob is written to a record before it leaves the entry, so it exists
 * at every moment. A blob that a record already holds is not stored again.
 * @throws {ThroughlineError} SESSION_NOT_FOUND, RECORD_TOO_LARGE
 */
export async function setBlobsAside(store: SessionStore, ref: SessionRef): Promise<SessionState> {
  let state = await loadExisting(store, ref);
  for (const field of entryBlobFields) {
    if (!Object.hasOwn(state.entry, field)) continue;
    const blob = blobOf(field, state.entry[field]);
    const { text, sha256 } = blob;
    const known = blobPlaces(state.entry).get(field);
    const isKept = known?.sha256 === sha256 && known.sessionId === state.sessionId;
    const place = isKept ? known : await keepBlob(store, state, blob);
    state = await updateEntry(store, ref, (entry) => {
      // Another caller replaced the blob or the session in the meantime, and moves the new blob itself.
      if (entry.sessionId !== place.sessionId || JSON.stringify(entry[field]) !== text) return entry;
      return patchEntry(entry, { [field]: undefined, blobsAside: { ...asides(entry), [field]: place } });
    });
  }
  return state;
}

interface Blob {
  readonly field: string;
  readonly text: string;
  readonly sha256: string;
}

function blobOf(field: string, value: unknown): Blob {
  const text = JSON.stringify(value);
  return { field, text, sha256: sha256Hex(text) };
}

export function isBlobNote(record: SessionRecord): boolean {
  const data = record["data"] as Readonly<Record<string, unknown>> | null | undefined;
  return throughlineKind(record) === "note" && data?.["kind"] === noteKind;
}

function draftOf({ field, text, sha256 }: Blob): RecordDraft {
  return throughlineDraft("note", { kind: noteKind, field, sha256, text });
}

function placeOf({ text, sha256 }: Blob, sessionId: string, seq: number): BlobPlace {
  return { sessionId, seq, sizeBytes: Buffer.byteLength(text), sha256 };
}

async function keepBlob(store: SessionStore, state: SessionState, blob: Blob): Promise<BlobPlace> {
  const { ref, sessionId, revision } = state;
  // The key contains the revision, so that a blob that returns later gets a new record. The first record may be
  // redacted by then.
  const idempotencyKey = `entry-blob:${blob.field}:${revision}:${blob.sha256}`;
  const { records } = await appendOnce(store, ref, [draftOf(blob)], { idempotencyKey });
  return placeOf(blob, sessionId, records[0]?.seq ?? 0);
}

/** Holds an entry without its blobs, and the records for them. A caller that creates a session writes both. */
export interface SplitEntry<Entry> {
  readonly entry: Entry;
  /** The list is empty when the entry has no blobs. */
  readonly drafts: readonly RecordDraft[];
  /**
   * Returns the patch of the entry for the commit that appends the records; `firstSeq` is the seq of the first record.
   */
  placesFrom(sessionId: string, firstSeq: number): Readonly<Record<string, unknown>>;
}

/**
 * Takes the blobs out of an entry that is not in a store yet. Blobs that exceed `mostBytes` in total stay in the entry.
 */
export function splitBlobs<Entry extends Readonly<Record<string, unknown>>>(
  entry: Entry,
  mostBytes: number,
): SplitEntry<Entry> {
  const blobs: Blob[] = [];
  let leftBytes = mostBytes;
  for (const field of entryBlobFields) {
    if (entry[field] === undefined) continue;
    const blob = blobOf(field, entry[field]);
    const sizeBytes = Buffer.byteLength(blob.text);
    if (sizeBytes > leftBytes) continue;
    leftBytes -= sizeBytes;
    blobs.push(blob);
  }
  const taken = new Set(blobs.map(({ field }) => field));
  const kept = Object.fromEntries(Object.entries(entry).filter(([field]) => !taken.has(field)));
  return {
    entry: kept as Entry,
    drafts: blobs.map(draftOf),
    placesFrom: (sessionId, firstSeq) => {
      const places = blobs.map((blob, index) => [blob.field, placeOf(blob, sessionId, firstSeq + index)] as const);
      return places.length === 0 ? {} : { blobsAside: { ...asides(entry), ...Object.fromEntries(places) } };
    },
  };
}

/**
 * Loads the blobs of a session by field, from the entry or from records. A blob is left out when its record was
 * redacted or does not match the hash, because its program can create the blob again.
 * @throws {ThroughlineError} SESSION_NOT_FOUND
 */
export async function loadEntryBlobs(
  store: SessionStore,
  { ref, entry }: Pick<SessionState, "ref" | "entry">,
): Promise<Readonly<Record<string, unknown>>> {
  const blobs: Record<string, unknown> = {};
  const places = blobPlaces(entry);
  for (const field of entryBlobFields) {
    const place = places.get(field);
    if (Object.hasOwn(entry, field)) blobs[field] = entry[field];
    else if (place?.sessionId === entry.sessionId) {
      const text = await readBlob(store, ref, field, place);
      if (text !== null) blobs[field] = JSON.parse(text);
    }
  }
  return blobs;
}

async function readBlob(store: SessionStore, ref: SessionRef, field: string, place: BlobPlace): Promise<string | null> {
  for await (const page of store.read(ref, { afterSeq: place.seq - 1, beforeSeq: place.seq + 1 })) {
    for (const { record } of page.records) {
      const data = record["data"] as Readonly<Record<string, unknown>>;
      if (!isBlobNote(record) || data["field"] !== field) continue;
      const { text } = data;
      if (typeof text === "string" && sha256Hex(text) === place.sha256) return text;
    }
  }
  return null;
}

/**
 * A patch that removes a blob must also remove its location. A patch that sets a blob writes it into the entry, which
 * takes precedence.
 */
export function withoutOldBlobs(
  entry: SessionEntry,
  patch: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const old = entryBlobFields.filter(
    (field) => Object.hasOwn(patch, field) && patch[field] === undefined && Object.hasOwn(asides(entry), field),
  );
  if (old.length === 0 || Object.hasOwn(patch, "blobsAside")) return patch;
  const kept = Object.entries(asides(entry)).filter(([field]) => !old.includes(field));
  return { ...patch, blobsAside: kept.length === 0 ? undefined : Object.fromEntries(kept) };
}

function asides(entry: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const aside = entry["blobsAside"];
  return typeof aside === "object" && aside !== null && !Array.isArray(aside) ? { ...aside } : {};
}

function blobPlaces(entry: SessionEntry): ReadonlyMap<string, BlobPlace> {
  const places = Object.entries(asides(entry)) as readonly (readonly [string, Partial<BlobPlace> | null])[];
  return new Map(places.filter((each): each is readonly [string, BlobPlace] => isPlace(each[1])));
}

function isPlace(value: Partial<BlobPlace> | null): value is BlobPlace {
  return (
    typeof value === "object" &&
    typeof value?.sessionId === "string" &&
    typeof value.sha256 === "string" &&
    Number.isSafeInteger(value.seq)
  );
}
