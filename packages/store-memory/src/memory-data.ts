import { createMemoryFileBackend, createMemoryFiles, type MemoryFiles, noteReferences } from "./memory-files.ts";
import { type VectorSession, VectorTable } from "@throughline/store-kit/internal";
import type { KeptRecord, SessionRow, StoreBackend, StoreChange } from "@throughline/store-kit";

type SessionRef = SessionRow["ref"];

/** Holds one session. */
interface MemorySession {
  /** Holds the row of the session, which the store replaces and never changes. */
  row: SessionRow;
  /** Holds the entry as the store encodes it. */
  entry: string;
  /** Holds the records; the record with seq n is at index n - 1. */
  readonly records: KeptRecord[];
  /** Maps the id of a record to its seq. */
  readonly seqById: Map<string, number>;
  /** Holds the fields of the session. */
  readonly fields: Map<string, string>;
}

/** Holds the sessions of memory stores. Stores over the same data share its sessions. */
export interface MemoryData {
  /** Maps the text of an address to the session there. */
  readonly sessions: Map<string, MemorySession>;
  /** Maps the id of a session row to the session. */
  readonly sessionById: Map<string, MemorySession>;
  /** Maps a namespace to its fields. */
  readonly fields: Map<string, Map<string, string>>;
  /** Holds the agents whose lock is taken. */
  readonly locked: Set<string>;
  /** Holds the files and what refers to them. */
  readonly files: MemoryFiles;
  /** Holds the vectors of texts. */
  readonly vectors: VectorTable;
}

/** Creates data that can outlive the stores over it. */
export function createMemoryData(): MemoryData {
  return {
    sessions: new Map(),
    sessionById: new Map(),
    fields: new Map(),
    locked: new Set(),
    files: createMemoryFiles(),
    vectors: new VectorTable(),
  };
}

/** Returns the text of an address. */
export function addressText({ namespace, agentId, key, archiveId }: SessionRef): string {
  return JSON.stringify([namespace, agentId, key, archiveId ?? null]);
}

/** Keeps sessions in memory. No method waits, so each is atomic. */
export function createMemoryBackend(data: MemoryData): StoreBackend {
  const { sessions, sessionById } = data;
  return {
    find(ref) {
      const session = sessions.get(addressText(ref));
      return session === undefined ? null : { row: session.row, entry: session.entry };
    },
    records: ({ id }, fromSeq, toSeq) => sessionById.get(id)?.records.slice(fromSeq - 1, toSeq) ?? [],
    seqsOf({ id }, ids) {
      const seqById = sessionById.get(id)?.seqById;
      return ids.map((one) => seqById?.get(one) ?? null);
    },
    sessionFields: ({ id }, names) => valuesOf(sessionById.get(id)?.fields, names),
    namespaceFields: (namespace, names) => valuesOf(data.fields.get(namespace), names),
    // The store filters, sorts and cuts what it gets.
    list: () => [...sessions.values()],
    commit: (change) => commit(data, change),
    files: createMemoryFileBackend(data.files),
    vectors: data.vectors.backend({
      at: (ref) => vectorSession(sessions.get(addressText(ref))),
      withId: (id) => vectorSession(sessionById.get(id)),
      of: ({ namespace, agentId }) =>
        [...sessions.values()].flatMap((session) => {
          const { ref } = session.row;
          const found = ref.namespace === namespace && ref.agentId === agentId ? vectorSession(session) : null;
          return found === null ? [] : [found];
        }),
    }),
    tryLock({ namespace, agentId }) {
      const agent = JSON.stringify([namespace, agentId]);
      if (data.locked.has(agent)) return null;
      data.locked.add(agent);
      return () => void data.locked.delete(agent);
    },
  };
}

function vectorSession(session: MemorySession | undefined): VectorSession | null {
  if (session === undefined) return null;
  const { id, ref, sessionId, head, updatedAtMs } = session.row;
  return { id, ref, sessionId, lastSeq: head.lastSeq, updatedAtMs };
}

type Fields = ReadonlyMap<string, string>;

function valuesOf(fields: Fields | undefined, names: readonly string[]): readonly (string | null)[] {
  return names.map((name) => fields?.get(name) ?? null);
}

function commit(data: MemoryData, change: StoreChange): boolean {
  for (const { ref, version } of change.expect)
    if ((data.sessions.get(addressText(ref))?.row.version ?? null) !== version) return false;
  const fields = data.fields.get(change.namespace) ?? new Map<string, string>();
  for (const [name, value] of change.expectFields) if ((fields.get(name) ?? null) !== value) return false;
  writeFields(fields, change.fields);
  data.fields.set(change.namespace, fields);
  for (const session of change.sessions) writeSession(data, session);
  return true;
}

function writeSession(
  { sessions, sessionById, files, vectors }: MemoryData,
  { before, after, entry, append, replace, fields }: StoreChange["sessions"][number],
): void {
  const session = before === null ? undefined : sessionById.get(before.id);
  if (before !== null && before.ref !== after?.ref) sessions.delete(addressText(before.ref));
  if (after === null) {
    if (before === null) return;
    noteReferences(files, before.ref, { added: [], removed: session?.records ?? [] });
    vectors.drop(before.id);
    sessionById.delete(before.id);
    return;
  }
  const written: MemorySession = session ?? emptySession(after);
  written.row = after;
  written.entry = entry ?? written.entry;
  for (const record of append) {
    written.records.push(record);
    written.seqById.set(record.id, record.seq);
  }
  const replaced = replace.map(({ seq }) => written.records[seq - 1]).filter((record) => record !== undefined);
  noteReferences(files, after.ref, { added: [...append, ...replace], removed: replaced });
  vectors.redact(
    after.id,
    replace.map(({ seq }) => seq),
  );
  for (const record of replace) written.records[record.seq - 1] = record;
  writeFields(written.fields, fields);
  if (before?.ref === after.ref) return;
  sessions.set(addressText(after.ref), written);
  sessionById.set(after.id, written);
}

function emptySession(row: SessionRow): MemorySession {
  return { row, entry: "", records: [], seqById: new Map(), fields: new Map() };
}

function writeFields(fields: Map<string, string>, writes: StoreChange["fields"]): void {
  for (const [name, value] of writes) {
    if (value === null) fields.delete(name);
    else fields.set(name, value);
  }
}
