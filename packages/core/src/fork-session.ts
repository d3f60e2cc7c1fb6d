import { loadExisting } from "./open-session.ts";
import type { SourcedDraft } from "./record-draft.ts";
import type { SessionRef } from "./session-ref.ts";
import type { SessionState, SessionStore, SourcedRecord } from "./session-store.ts";

export interface ForkSessionOptions {
  readonly sessionId: string;
  /** The last record the fork shares. @default all of them */
  readonly atSeq?: number;
  /** Fields of the new entry beside `forkedFrom`. */
  readonly entry?: Readonly<Record<string, unknown>>;
  readonly signal?: AbortSignal;
}

/**
 * A new session that begins with the records of another, by copying them: same seq, ids and lines. For stores without
 * the fork facet, and between two stores. The copy is complete before anybody has a reason to look: its entry says
 * `forkIncomplete` until then.
 */
export async function forkByCopy(
  from: { readonly store: SessionStore; readonly ref: SessionRef },
  to: { readonly store: SessionStore; readonly ref: SessionRef },
  options: ForkSessionOptions,
): Promise<SessionState> {
  const origin = await loadExisting(from.store, from.ref);
  const atSeq = Math.min(options.atSeq ?? origin.head.lastSeq, origin.head.lastSeq);
  const forkedFrom = { agentId: from.ref.agentId, key: from.ref.key, sessionId: origin.sessionId, atSeq };
  const entry = { ...options.entry, sessionId: options.sessionId, forkedFrom, forkIncomplete: true };
  const created = await to.store.save(to.ref, entry, { ifRevision: null });
  await copyRecords(from, to, {
    beforeSeq: atSeq + 1,
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  });
  const { forkIncomplete: _done, ...finished } = entry;
  return to.store.save(to.ref, finished, { ifRevision: created.revision });
}

/**
 * A new session of the same store that begins with the records of another: shared where the store can, else copied. For
 * another agent or namespace it is copied in any case.
 * @throws {ThroughlineError} SESSION_NOT_FOUND, and SESSION_EXISTS or REVISION_CONFLICT when the target is taken
 */
export async function forkSession(
  store: SessionStore,
  from: SessionRef,
  to: SessionRef,
  options: Omit<ForkSessionOptions, "entry">,
): Promise<SessionState> {
  const { sessionId, atSeq } = options;
  const isElsewhere = from.namespace !== to.namespace || from.agentId !== to.agentId;
  if (store.fork === undefined || isElsewhere) return forkByCopy({ store, ref: from }, { store, ref: to }, options);
  return store.fork.fork(from, to, { sessionId, ...(atSeq === undefined ? {} : { atSeq }) });
}

interface CopyRecordsOptions {
  readonly afterSeq?: number;
  readonly beforeSeq?: number;
  /** What each append patches the target's entry with, such as the time of the activity that is copied. */
  readonly entry?: Readonly<Record<string, unknown>>;
  readonly signal?: AbortSignal;
}

/**
 * Copies records in batches that fit the target; seq, ids and lines stay. The target must stand at `afterSeq`.
 * Gives the number of records copied.
 */
export async function copyRecords(
  from: { readonly store: SessionStore; readonly ref: SessionRef },
  to: { readonly store: SessionStore; readonly ref: SessionRef },
  options: CopyRecordsOptions = {},
): Promise<number> {
  const { entry, ...range } = options;
  const limits = to.store.capabilities.limits;
  let batch: SourcedDraft[] = [];
  let batchBytes = 0;
  let copied = 0;
  const flush = async (): Promise<void> => {
    if (batch.length > 0) await to.store.append(to.ref, batch, entry === undefined ? {} : { entry });
    copied += batch.length;
    batch = [];
    batchBytes = 0;
  };
  for await (const page of from.store.read(from.ref, { ...range, payload: "source" })) {
    for (const record of page.records) {
      // Half of the limit leaves room for what a store adds to a line.
      if (
        batch.length >= limits.batchRecords ||
        (batch.length > 0 && batchBytes + record.bytes > limits.batchBytes / 2)
      )
        await flush();
      batch.push(sourcedDraft(record));
      batchBytes += record.bytes;
    }
  }
  await flush();
  return copied;
}

/** The draft that puts a stored record elsewhere, line and all. */
function sourcedDraft(stored: SourcedRecord): SourcedDraft {
  return stored.isSourceCanonical ? { source: stored.source } : { source: stored.source, record: stored.record };
}
