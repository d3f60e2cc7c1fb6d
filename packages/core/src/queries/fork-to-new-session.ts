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

/** Options of `forkToNewSession`. */
export interface ForkToNewSessionOptions {
  /** The id of the new session. */
  readonly sessionId: string;
  /** The last record that both have, by its id or number. @default all of them */
  readonly at?: string;
  /** Where the new session goes. @default the first of `<key>-fork`, `<key>-fork-2`, … that is free */
  readonly target?: SessionRef;
  /** What the new session is called; the empty text leaves it to its entry. @default the label of the other session */
  readonly label?: string;
  /** Ends the copy of the records. */
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
 * Creates a session that begins with the records of another, which stays as it is.
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
      // Somebody took a key that was free a moment ago; the next number is tried.
      if (target === undefined && (await store.load(to)) !== null) continue;
      throw hasErrorCode(error, "REVISION_CONFLICT") ? sessionExists(to) : error;
    }
  }
}
