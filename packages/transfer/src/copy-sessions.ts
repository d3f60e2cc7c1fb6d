import {
  copyRecords,
  hasErrorCode,
  ThroughlineError,
  type SessionRef,
  type SessionState,
  type SessionStore,
} from "@throughline/core";
import { quote } from "@throughline/core/store";

export interface CopyOptions {
  /** @default every session */
  readonly refs?: readonly SessionRef[];
  /** With `refs` absent. @default "" */
  readonly namespace?: string;
  /** With `refs` absent. @default all agents */
  readonly agentId?: string;
  readonly signal?: AbortSignal;
}

/** What became of one session; the states are those of an import. */
export interface CopyResult {
  readonly ref: SessionRef;
  readonly sessionId: string;
  readonly state: "imported" | "grown" | "unchanged" | "refused";
  readonly records: number;
  readonly error: ThroughlineError | null;
}

/**
 * Copies sessions from one store to another: seq, ids, lines, entries and heads stay. Running it again copies what has
 * come since; after an interruption it goes on where it stopped. A session of the target that is another one under the
 * same key is refused, never mixed with.
 */
export async function* copySessions(
  from: SessionStore,
  to: SessionStore,
  options: CopyOptions = {},
): AsyncGenerator<CopyResult> {
  for await (const state of chosen(from, options)) {
    try {
      yield await copySession(from, to, state, options);
    } catch (error) {
      if (
        !hasErrorCode(
          error,
          "SESSION_EXISTS",
          "SESSION_ARCHIVED",
          "ID_CASE_COLLISION",
          "REVISION_CONFLICT",
          "APPEND_CONFLICT",
          "RECORD_TOO_LARGE",
        )
      )
        throw error;
      yield { ref: state.ref, sessionId: state.sessionId, state: "refused", records: 0, error };
    }
  }
}

/** Archived ones first: their keys may be those of sessions that are active now. */
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
  for (const state of ["archived", "active"] as const) {
    let cursor: string | null = null;
    do {
      const { namespace = "", agentId, signal } = options;
      const query = {
        namespace,
        state,
        sort: "key",
        limit: 200,
        ...(agentId === undefined ? {} : { agentId }),
      } as const;
      const page = await store.list({
        ...query,
        ...(cursor === null ? {} : { cursor }),
        ...(signal === undefined ? {} : { signal }),
      });
      yield* page.sessions;
      cursor = page.nextCursor;
    } while (cursor !== null);
  }
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
  // A copy is no activity. The entry gets the time it was last active until all is there, then is as it was.
  const activity = { updatedAt: source.updatedAtMs };
  const target = found ?? (await to.save(active, { ...source.entry, ...activity }, { ifRevision: null }));
  await assertSameBeginning(from, to, source, target);
  const afterSeq = target.head.lastSeq;
  const copied =
    afterSeq < source.head.lastSeq
      ? await copyRecords(
          { store: from, ref: source.ref },
          { store: to, ref: target.ref },
          { afterSeq, beforeSeq: source.head.lastSeq + 1, entry: activity, ...signalOf(options) },
        )
      : 0;
  const isSettled = target.archived ? false : await settle(to, source, target.ref);
  if (source.archived && !target.archived) await to.move(target.ref, { kind: "archive" });
  const state =
    found === null ? "imported" : copied > 0 || isSettled || source.archived !== found.archived ? "grown" : "unchanged";
  return { ref: source.ref, sessionId: source.sessionId, state, records: copied, error: null };
}

/** Puts entry, head and window as they are in the source. True when something was to do. */
async function settle(to: SessionStore, source: SessionState, ref: SessionRef): Promise<boolean> {
  const now = await to.load(ref);
  if (now === null) return false;
  const { headId, windowSeq } = source.head;
  const isSameHead = now.head.headId === headId && now.head.windowSeq === windowSeq;
  if (!isSameHead) {
    const window = windowSeq === null ? {} : { windowFromSeq: windowSeq };
    await to.append(ref, [], { rewindTo: headId, entry: { updatedAt: source.updatedAtMs }, ...window });
  }
  const { entry, revision } = isSameHead ? now : ((await to.load(ref)) ?? now);
  if (JSON.stringify(entry) !== JSON.stringify(source.entry))
    await to.save(ref, source.entry, { ifRevision: revision });
  return !isSameHead || JSON.stringify(now.entry) !== JSON.stringify(source.entry);
}

/** @throws {ThroughlineError} SESSION_EXISTS when the target has gone its own way */
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
