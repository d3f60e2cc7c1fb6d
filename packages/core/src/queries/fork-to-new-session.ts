import { assertKnownOptions, optionKinds, type OptionTable } from "../option-checks.ts";
import { forkSession } from "../fork-session.ts";
import { hasErrorCode } from "../throughline-error.ts";
import { updateEntry } from "../open-session.ts";
import type { SessionRef } from "../session-ref.ts";
import type { SessionState } from "../session-state.ts";
import type { SessionStore } from "../session-store.ts";
import { freeRef, sessionExists } from "./create-session.ts";
import { findRecord } from "./find-record.ts";
import { sessionLabel } from "./session-row.ts";

/** Sets the id, the address and the label of the fork that `forkToNewSession` creates. */
export interface ForkToNewSessionOptions {
  /** Sets the id of the new session. */
  readonly sessionId: string;
  /** Names the last record that both sessions share, by its id or number. @default all of them */
  readonly at?: string;
  /** Sets the address of the new session. @default the first of `<key>-fork`, `<key>-fork-2`, … that is free */
  readonly target?: SessionRef;
  /** Sets the label of the new session; the empty text sets no label. @default the label of the other session */
  readonly label?: string;
  /** Aborts the copy of the records. */
  readonly signal?: AbortSignal;
}

const { object, required, signal: signalKind, text } = optionKinds;
const forkTable: OptionTable<ForkToNewSessionOptions> = {
  sessionId: required(text),
  at: text,
  target: object,
  label: text,
  signal: signalKind,
};

/**
 * Creates a session that starts with the records of another session. The original session does not change.
 * @throws {ThroughlineError} SESSION_EXISTS for a target that is taken, RECORD_NOT_FOUND, and what the store throws
 */
export async function forkToNewSession(
  store: SessionStore,
  origin: SessionState,
  wanted: ForkToNewSessionOptions,
): Promise<SessionState> {
  assertKnownOptions<ForkToNewSessionOptions>("forkToNewSession", wanted, forkTable);
  const { sessionId, at, target, label = sessionLabel(origin.entry) ?? "", signal } = wanted;
  const last = at === undefined ? null : await findRecord(store, origin.ref, at, signal);
  const options = {
    sessionId,
    ...(signal === undefined ? {} : { signal }),
    ...(last === null ? {} : { atSeq: last.seq }),
  };
  const state = await forkToFreeKey(store, origin, target, options);
  return label === "" ? state : updateEntry(store, state.ref, (entry) => ({ ...entry, label }));
}

async function forkToFreeKey(
  store: SessionStore,
  { ref }: SessionState,
  target: SessionRef | undefined,
  options: Parameters<typeof forkSession>[3],
): Promise<SessionState> {
  const { namespace, agentId, key } = ref;
  for (;;) {
    const to = target ?? (await freeRef(store, { namespace, agentId, key: `${key}-fork` }, options.signal));
    try {
      return await forkSession(store, ref, to, options);
    } catch (error) {
      if (!hasErrorCode(error, "REVISION_CONFLICT", "SESSION_EXISTS")) throw error;
      // Another process took the free key after the lookup, so the next number is tried.
      if (target === undefined && (await store.load(to)) !== null) continue;
      throw hasErrorCode(error, "REVISION_CONFLICT") ? sessionExists(to) : error;
    }
  }
}
