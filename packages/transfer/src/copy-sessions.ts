import {
  appendOnce,
  hasErrorCode,
  type SessionRef,
  type SessionState,
  type SessionStore,
  ThroughlineError,
} from "@throughline/core";
import {
  assertKnownOptions,
  copyRecords,
  listSessions,
  optionKinds,
  type OptionTable,
  quote,
} from "@throughline/core/internal";
import { newAppend } from "./new-append.ts";

/** Selects the sessions that `copySessions` copies. */
export interface CopyOptions {
  /**
   * Names the sessions to copy. A session that is missing ends the copy with SESSION_NOT_FOUND. @default every session
   */
  readonly refs?: readonly SessionRef[] | undefined;
  /** Names the namespace to copy; used only without `refs`. @default "" */
  readonly namespace?: string | undefined;
  /** Names the agent whose sessions are copied; used only without `refs`. @default all agents */
  readonly agentId?: string | undefined;
  /** Ends the copy between two batches; the next run resumes there. */
  readonly signal?: AbortSignal | undefined;
}

/** These errors refuse one session. Other sessions may still be copied. */
const refusals = [
  "SESSION_EXISTS",
  "SESSION_ARCHIVED",
  "ID_CASE_COLLISION",
  "REVISION_CONFLICT",
  "APPEND_CONFLICT",
  "RECORD_TOO_LARGE",
  "FILE_TOO_LARGE",
  "CAPABILITY_UNSUPPORTED",
] as const;

/** Reading throws these errors for a damaged session or a failing disk. */
const damages = ["STORE_CORRUPT", "STORE_IO", "CODEC_FAILED", "RECORD_INVALID", "SESSION_NOT_FOUND"] as const;

/** Describes the outcome for one session; the states are those of an import. */
export interface CopyResult {
  /** Names the session in the source store, with `archiveId` for an archived session. */
  readonly ref: SessionRef;
  /** Holds the session's id, which is the same in both stores. */
  readonly sessionId: string;
  /** States the outcome. `grown`: records, the entry or the archive were behind. `refused`: see `error`. */
  readonly state: "imported" | "grown" | "unchanged" | "refused";
  /** Counts the records that this run copied; 0 for a refused session. */
  readonly records: number;
  /** States why the session was refused; null for every other state. */
  readonly error: ThroughlineError | null;
}

const copyTable: OptionTable<CopyOptions> = {
  refs: optionKinds.listOf(optionKinds.object),
  namespace: optionKinds.text,
  agentId: optionKinds.text,
  signal: optionKinds.signal,
};

/**
 * Copies sessions from one store to another and keeps seq, ids, lines, entries and heads.
 * A second run copies the records added since. After an interruption it resumes behind the last batch (at most 100
 * records and 256 KiB). Until a session is complete, its entry in the target says `copyIncomplete`. A different session
 * under the same key in the target is refused and never merged.
 *
 * A session that cannot be read to its end is refused too, and the other sessions are copied. If this run created its
 * partial copy, that copy is removed, so that half a session never looks complete.
 *
 * The files that the records refer to are copied before them. A session with files is refused when the target keeps no
 * files.
 *
 * Without `refs`, the marks that purges of imported sessions left are copied too, between stores that can list them
 * (`maintenance.purges`).
 * @throws {ThroughlineError} INPUT_INVALID for an option, SESSION_NOT_FOUND for a ref, ABORTED, and errors of the
 *   stores
 */
export async function* copySessions(
  from: SessionStore,
  to: SessionStore,
  options: CopyOptions = {},
): AsyncGenerator<CopyResult> {
  assertKnownOptions<CopyOptions>("copySessions", options, copyTable);
  for await (const state of chosen(from, options)) {
    try {
      yield await copySession(from, to, state, options);
    } catch (error) {
      if (!hasErrorCode(error, ...refusals, ...damages)) throw error;
      yield { ref: state.ref, sessionId: state.sessionId, state: "refused", records: 0, error };
    }
  }
  if (options.refs === undefined) await copyPurges(from, to, options);
}

/** An import into the copy leaves the sessions purged that were purged in the original. */
async function copyPurges(
  { maintenance: from }: SessionStore,
  { maintenance: to }: SessionStore,
  options: CopyOptions,
): Promise<void> {
  if (from?.purges === undefined || to?.addPurges === undefined) return;
  const { namespace = "", agentId } = options;
  const chosen = { namespace, ...(agentId === undefined ? {} : { agentId }), ...signalOf(options) };
  for await (const purges of from.purges(chosen)) await to.addPurges(namespace, purges);
}

/** Yields archived sessions first, because their keys may belong to sessions that are active now. */
async function* chosen(store: SessionStore, options: CopyOptions): AsyncGenerator<SessionState> {
  if (options.refs !== undefined) {
    for (const ref of options.refs) {
      const state = await store.load(ref);
      if (state === null)
        throw new ThroughlineError("SESSION_NOT_FOUND", `There is no session ${quote(ref.key)}.`, {
          outcome: "not-applied",
          details: { ...ref },
        });
      yield state;
    }
    return;
  }
  const { namespace = "", agentId } = options;
  const query = { namespace, sort: "key", limit: 200, ...(agentId === undefined ? {} : { agentId }) } as const;
  for (const state of ["archived", "active"] as const)
    yield* listSessions(store, { ...query, state, ...signalOf(options) });
}

async function copySession(
  from: SessionStore,
  to: SessionStore,
  source: SessionState,
  options: CopyOptions,
): Promise<CopyResult> {
  const { namespace, agentId, key } = source.ref;
  const active: SessionRef = { namespace, agentId, key };
  const done = source.archived ? await to.load({ ...active, archiveId: source.sessionId }) : null;
  const found = done ?? (await to.load(active));
  if (found !== null && found.sessionId !== source.sessionId) {
    throw new ThroughlineError("SESSION_EXISTS", `The target's session ${quote(key)} is another one.`, {
      outcome: "not-applied",
      details: { ...active, sessionId: found.sessionId },
    });
  }
  // A copy is not activity. The entry keeps the source's last activity time, and settles to the source's entry at the
  // end.
  const activity = { updatedAt: source.updatedAtMs };
  const { createdAtMs } = source;
  const begun = { ...source.entry, ...activity, copyIncomplete: true };
  const target = found ?? (await to.save(active, begun, { ifRevision: null, createdAtMs }));
  await assertSameBeginning(from, to, source, target);
  const afterSeq = target.head.lastSeq;
  const range = { afterSeq, beforeSeq: source.head.lastSeq + 1, entry: activity, ...signalOf(options) };
  let copied = 0;
  try {
    if (afterSeq < source.head.lastSeq)
      copied = await copyRecords({ store: from, ref: source.ref }, { store: to, ref: target.ref }, range);
  } catch (error) {
    if (!hasErrorCode(error, ...damages)) throw error;
    throw found === null ? await takenBack(from, to, { source, target, error }) : await brokenOff(to, target, error);
  }
  const isSettled = target.archived ? false : await settle(to, source, target.ref);
  if (source.archived && !target.archived) await to.move(target.ref, { kind: "archive" });
  const state =
    found === null ? "imported" : copied > 0 || isSettled || source.archived !== found.archived ? "grown" : "unchanged";
  return { ref: source.ref, sessionId: source.sessionId, state, records: copied, error: null };
}

interface Unfinished {
  readonly source: SessionState;
  readonly target: SessionState;
  readonly error: ThroughlineError;
}

/**
 * Removes a session that this run began, unless another writer has added records to it. Returns the error that refuses
 * the session.
 */
async function takenBack(
  from: SessionStore,
  to: SessionStore,
  { source, target, error }: Unfinished,
): Promise<ThroughlineError> {
  const now = await to.load(target.ref);
  if (now === null) return error;
  await assertSameBeginning(from, to, source, now);
  // A purge marks the source of an imported session, and an import would then leave it out.
  const { importedFrom: _source, ...entry } = now.entry;
  await to.save(target.ref, entry, { ifRevision: now.revision });
  await to.remove(target.ref, { purge: true });
  return error;
}

/** The target held records before this run, so they stay, with the added ones. The error reports how far they reach. */
async function brokenOff(to: SessionStore, target: SessionState, error: ThroughlineError): Promise<ThroughlineError> {
  const { lastSeq } = (await to.load(target.ref))?.head ?? target.head;
  const message = `${error.message} The target has the records up to ${lastSeq}.`;
  const { code, details, remedy } = error;
  return new ThroughlineError(code, message, { cause: error, details: { ...details, lastSeq }, remedy });
}

/** Sets entry, head and window as in the source. Returns true when something changed. */
async function settle(to: SessionStore, source: SessionState, ref: SessionRef): Promise<boolean> {
  const now = await to.load(ref);
  if (now === null) return false;
  const { headId, windowSeq } = source.head;
  const isSameHead = now.head.headId === headId && now.head.windowSeq === windowSeq;
  if (!isSameHead) {
    const window = windowSeq === null ? {} : { windowFromSeq: windowSeq };
    const moved = { rewindTo: headId, entry: { updatedAt: source.updatedAtMs }, ...window };
    await appendOnce(to, ref, [], { ...moved, ...newAppend() });
  }
  const { entry, revision } = isSameHead ? now : ((await to.load(ref)) ?? now);
  if (JSON.stringify(entry) !== JSON.stringify(source.entry))
    await to.save(ref, source.entry, { ifRevision: revision });
  return !isSameHead || JSON.stringify(now.entry) !== JSON.stringify(source.entry);
}

/** @throws {ThroughlineError} SESSION_EXISTS when the target holds records that the source does not have */
async function assertSameBeginning(
  from: SessionStore,
  to: SessionStore,
  source: SessionState,
  target: SessionState,
): Promise<void> {
  const { lastSeq } = target.head;
  if (lastSeq === 0) return;
  const mine = lastSeq > source.head.lastSeq ? null : await idAt(from, source.ref, lastSeq);
  if (mine !== null && mine === (await idAt(to, target.ref, lastSeq))) return;
  throw new ThroughlineError(
    "SESSION_EXISTS",
    `The target's session ${quote(source.ref.key)} holds records the source does not have.`,
    {
      outcome: "not-applied",
      details: { ...source.ref, targetLastSeq: lastSeq, sourceLastSeq: source.head.lastSeq },
    },
  );
}

async function idAt(store: SessionStore, ref: SessionRef, seq: number): Promise<string | null> {
  for await (const page of store.read(ref, { afterSeq: seq - 1, beforeSeq: seq + 1, payload: "head" }))
    return page.records[0]?.id ?? null;
  return null;
}

function signalOf(options: CopyOptions): { readonly signal?: AbortSignal } {
  return options.signal === undefined ? {} : { signal: options.signal };
}
