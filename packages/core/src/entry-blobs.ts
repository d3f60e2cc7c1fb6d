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
 * Fields of an entry that programs fill with tens of kilobytes and read seldom. Nobody looks into them here. They lie in
 * the session as side records, and the entry, which is read with every list and written with every turn, holds where.
 */
export const entryBlobFields: readonly string[] = ["skillsSnapshot", "systemPromptReport"];

/** Where a blob lies. In the entry's field `blobsAside`, by the field it stands for. */
interface BlobPlace {
  readonly sessionId: string;
  readonly seq: number;
  readonly sizeBytes: number;
  readonly sha256: string;
}

const noteKind = "entry-blob";

/**
 * Moves blobs out of the entry, where there are any: first into a record, then out of the entry, so that they are somewhere
 * at every moment. One that lies aside already with the same content is not kept twice.
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
      // Another one was put there meanwhile, or the session is another: that is for whoever did so.
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

/** Whether a record holds a blob of its session's entry. */
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
  // The revision, because a blob that comes again later gets a record of its own: the first may be redacted by then.
  const idempotencyKey = `entry-blob:${blob.field}:${revision}:${blob.sha256}`;
  const { records } = await appendOnce(store, ref, [draftOf(blob)], { idempotencyKey });
  return placeOf(blob, sessionId, records[0]?.seq ?? 0);
}

/** An entry and what of it goes into records, for whoever writes both of a new session. */
export interface SplitEntry<Entry> {
  /** Without its blobs. */
  readonly entry: Entry;
  /** The records they lie in; none when there are no blobs. */
  readonly drafts: readonly RecordDraft[];
  /** What to patch the entry with, in the commit that appends the records, of which the first gets that seq. */
  placesFrom(sessionId: string, firstSeq: number): Readonly<Record<string, unknown>>;
}

/** Takes the blobs out of an entry that is not in a store yet. Those together larger than `mostBytes` stay in it. */
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
 * The blobs of a session by field, in the entry or aside, as they were given. One whose record was redacted or is not what
 * was kept is left out: it is a copy of something its program can make again.
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

/** A patch that takes a blob away takes it from where it lies. One that sets it stands in the entry, which counts first. */
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
