import { assertKnownOptions, optionKinds, type OptionTable } from "./option-checks.ts";
import { appendOnce } from "./append-once.ts";
import { fileIdsOf } from "./file-blocks.ts";
import { abortedBefore, refused } from "./refused.ts";
import { quote } from "./session-id.ts";
import { loadExisting } from "./open-session.ts";
import type { SourcedDraft } from "./record-draft.ts";
import { bulkBatchOf } from "./store-capabilities.ts";
import type { SessionEntry } from "./session-entry.ts";
import { hasErrorCode } from "./throughline-error.ts";
import type { SessionRef } from "./session-ref.ts";
import type { SessionStore } from "./session-store.ts";
import type { SessionState } from "./session-state.ts";
import type { SourcedRecord } from "./stored-records.ts";

/** Sets the id, the last shared record and the entry of a fork. */
export interface ForkSessionOptions {
  /** Sets the id of the new session. */
  readonly sessionId: string;
  /** Sets the seq of the last record that the fork shares. @default all of them */
  readonly atSeq?: number;
  /** Sets fields of the new entry in addition to `forkedFrom`. */
  readonly entry?: Readonly<Record<string, unknown>>;
  /** Aborts the fork, which then throws ABORTED. */
  readonly signal?: AbortSignal;
}

interface SessionPlace {
  readonly store: SessionStore;
  readonly ref: SessionRef;
}

/**
 * Creates a fork by copying the records with the same seq, ids and lines. Stores without the fork facet and forks
 * between two stores need it. The entry says `forkIncomplete` until the copy is complete. The same fork, called again
 * after an interruption, resumes the copy.
 */
export async function forkByCopy(
  from: SessionPlace,
  to: SessionPlace,
  options: ForkSessionOptions,
): Promise<SessionState> {
  const origin = await loadExisting(from.store, from.ref);
  const atSeq = Math.min(options.atSeq ?? origin.head.lastSeq, origin.head.lastSeq);
  const forkedFrom = { agentId: from.ref.agentId, key: from.ref.key, sessionId: origin.sessionId, atSeq };
  const entry = { ...options.entry, sessionId: options.sessionId, forkedFrom, forkIncomplete: true };
  const begun = await beginFork(from, to, entry);
  await copyRecords(from, to, {
    afterSeq: begun.head.lastSeq,
    beforeSeq: atSeq + 1,
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  });
  const { forkIncomplete: _done, ...finished } = begun.entry;
  return to.store.save(to.ref, finished, { ifRevision: begun.revision });
}

/** An interrupted run of the same fork may have left its session, which is then used again. */
async function beginFork(from: SessionPlace, to: SessionPlace, entry: SessionEntry): Promise<SessionState> {
  try {
    return await to.store.save(to.ref, entry, { ifRevision: null });
  } catch (error) {
    if (!hasErrorCode(error, "REVISION_CONFLICT", "SESSION_EXISTS")) throw error;
    const left = await to.store.load(to.ref);
    const isSameFork =
      left?.entry["forkIncomplete"] === true &&
      sharedPart(left.entry) === sharedPart(entry) &&
      (await idAt(to, left.head.lastSeq)) === (await idAt(from, left.head.lastSeq));
    if (left === null || !isSameFork) throw error;
    return left;
  }
}

/** Two forks are the same when they start with the same records of the same session. */
function sharedPart({ forkedFrom }: SessionEntry): string {
  const { sessionId, atSeq } = (forkedFrom ?? {}) as { readonly sessionId?: unknown; readonly atSeq?: unknown };
  return JSON.stringify([sessionId, atSeq]);
}

async function idAt({ store, ref }: SessionPlace, seq: number): Promise<string | null> {
  if (seq === 0) return null;
  for await (const page of store.read(ref, { afterSeq: seq - 1, beforeSeq: seq + 1, payload: "head" }))
    return page.records[0]?.id ?? null;
  return null;
}

const forkTable: OptionTable<Omit<ForkSessionOptions, "entry">> = {
  sessionId: optionKinds.required(optionKinds.text),
  atSeq: optionKinds.number({ min: 0 }),
  signal: optionKinds.signal,
};

/**
 * Creates a session of the same store that starts with the records of another session. A store with the fork facet
 * shares the records; any other store copies them. A fork to another agent or namespace is always copied.
 * @throws {ThroughlineError} INPUT_INVALID, SESSION_NOT_FOUND, and SESSION_EXISTS or REVISION_CONFLICT when the target
 * is taken
 */
export async function forkSession(
  store: SessionStore,
  from: SessionRef,
  to: SessionRef,
  options: Omit<ForkSessionOptions, "entry">,
): Promise<SessionState> {
  assertKnownOptions("forkSession", options, forkTable);
  const { sessionId, atSeq } = options;
  const isElsewhere = from.namespace !== to.namespace || from.agentId !== to.agentId;
  if (store.fork === undefined || isElsewhere) return forkByCopy({ store, ref: from }, { store, ref: to }, options);
  return store.fork.fork(from, to, { sessionId, ...(atSeq === undefined ? {} : { atSeq }) });
}

interface CopyRecordsOptions {
  readonly afterSeq?: number;
  readonly beforeSeq?: number;
  /** Each append patches the target's entry with these fields, such as the time of the copied activity. */
  readonly entry?: Readonly<Record<string, unknown>>;
  readonly signal?: AbortSignal;
}

/**
 * Copies records in batches of at most 100 records and 256 KiB; seq, ids and lines stay. The target must stand at
 * `afterSeq`. The first seq of a batch is its idempotency key. A batch of unknown outcome is therefore repeated safely,
 * and two concurrent copies write it once. Returns the number of copied records.
 * @throws {ThroughlineError} ABORTED between two batches
 */
export async function copyRecords(
  from: SessionPlace,
  to: SessionPlace,
  options: CopyRecordsOptions = {},
): Promise<number> {
  const { entry, ...range } = options;
  const most = bulkBatchOf(to.store.capabilities.limits);
  let batch: SourcedDraft[] = [];
  let batchBytes = 0;
  let firstSeq = 0;
  let copied = 0;
  const patch = entry === undefined ? {} : { entry };
  const files = filesCopier(from, to);
  const flush = async (): Promise<void> => {
    // A page of the source may hold many batches, and only a read looks at the signal.
    if (range.signal?.aborted === true) throw abortedBefore("the copy was complete", range.signal);
    if (batch.length > 0) await appendOnce(to.store, to.ref, batch, { ...patch, idempotencyKey: `copy ${firstSeq}` });
    copied += batch.length;
    batch = [];
    batchBytes = 0;
  };
  for await (const page of from.store.read(from.ref, { ...range, payload: "source" })) {
    for (const record of page.records) {
      if (batch.length >= most.records || (batch.length > 0 && batchBytes + record.bytes > most.bytes)) await flush();
      if (batch.length === 0) firstSeq = record.seq;
      // The files come first, so that no record of the target refers to a file that is still on its way.
      for (const id of fileIdsOf(record.record)) await files(id);
      batch.push(sourcedDraft(record));
      batchBytes += record.bytes;
    }
  }
  await flush();
  return copied;
}

/**
 * Returns the function that gives the target a file of the source. A file that the source lacks is missing in the target
 * too.
 * @throws {ThroughlineError} CAPABILITY_UNSUPPORTED for a target that keeps no files
 */
function filesCopier(from: SessionPlace, to: SessionPlace): (id: string) => Promise<void> {
  const { namespace, agentId } = from.ref;
  const isSamePlace = from.store === to.store && namespace === to.ref.namespace && agentId === to.ref.agentId;
  const copied = new Set<string>();
  return async (id) => {
    if (isSamePlace || copied.has(id)) return;
    copied.add(id);
    const file = (await from.store.files?.stat(from.ref, id)) ?? null;
    if (from.store.files === undefined || file === null) return;
    const { files, capabilities } = to.store;
    if (files === undefined)
      throw refused(
        "CAPABILITY_UNSUPPORTED",
        `The store ${quote(capabilities.name)} keeps no files, and the session has some.`,
        {
          needs: "files",
          fileId: id,
        },
      );
    if ((await files.stat(to.ref, id)) === null) await files.put(to.ref, from.store.files.get(from.ref, id));
  };
}

/** The draft keeps the source line of the record, so that the copy has the same bytes. */
function sourcedDraft(stored: SourcedRecord): SourcedDraft {
  return stored.isSourceCanonical ? { source: stored.source } : { source: stored.source, record: stored.record };
}
