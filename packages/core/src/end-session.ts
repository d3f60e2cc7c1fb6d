import { withSystemPorts } from "./node/system-ports.ts";
import { portKinds } from "./port-kinds.ts";
import { assertKnownOptions, optionKinds, type OptionTable } from "./option-checks.ts";
import { mainSessionKey } from "./build-session-key.ts";
import { loadExisting, updateEntry } from "./open-session.ts";
import type { Clock } from "./ports.ts";
import { refused } from "./refused.ts";
import type { SessionEntry } from "./session-entry.ts";
import { quote } from "./session-id.ts";
import type { SessionRef } from "./session-ref.ts";
import type { SessionState } from "./session-state.ts";
import type { SessionStore } from "./session-store.ts";
import { sessionBusy } from "./turn-holder.ts";

/** Sets how to wait for the end of a turn that another caller runs. */
export interface WaitForTurnOptions {
  /** Measures the wait. @default the system's clock */
  readonly clock?: Clock | undefined;
  /** Limits the wait, in milliseconds; 0 refuses at once. @default 15_000 */
  readonly timeoutMs?: number | undefined;
  /** Sets the milliseconds between two checks. @default 200 */
  readonly pollIntervalMs?: number | undefined;
  /** Receives the owner of the turn once, when the wait begins. */
  readonly onWait?: ((owner: string) => void) | undefined;
  /** Aborts the wait with ABORTED. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Waits until no turn of the session is open, or until the lease of the open turn has expired. A session must not be
 * taken from a running agent. The wait adds up its pauses, so a change of the clock does not affect the timeout.
 * @throws {ThroughlineError} SESSION_BUSY when it took too long, ABORTED
 */
export async function waitForTurnEnd(store: SessionStore, ref: SessionRef, options: WaitForTurnOptions): Promise<void> {
  const { clock, timeoutMs = 15_000, pollIntervalMs = 200, onWait, signal } = withSystemPorts(options);
  const given = signal === undefined ? {} : { signal };
  let waitedMs = 0;
  for (;;) {
    const turn = (await store.load(ref, given))?.head.turn ?? null;
    if (turn === null || turn.leaseUntilMs <= clock.nowMs()) return;
    if (waitedMs >= timeoutMs) throw sessionBusy(turn, clock.nowMs());
    if (waitedMs === 0) onWait?.(turn.owner);
    const stepMs = Math.min(pollIntervalMs, timeoutMs - waitedMs);
    await clock.sleep(stepMs, signal);
    waitedMs += stepMs;
  }
}

/** Sets how `endSession` waits for a turn, and whether it purges the session. */
export interface EndSessionOptions extends WaitForTurnOptions {
  /** Deletes the session and every copy of its content. @default false: it is archived, and can be restored */
  readonly purge?: boolean | undefined;
}

const { callback, flag, number, signal: signalKind } = optionKinds;

export const waitTable: OptionTable<WaitForTurnOptions> = {
  clock: portKinds.clock,
  timeoutMs: number({ min: 0 }),
  pollIntervalMs: number({ min: 1 }),
  onWait: callback,
  signal: signalKind,
};

const endTable: OptionTable<EndSessionOptions> = { ...waitTable, purge: flag };

const archivedAtField = "archivedAtMs";

/**
 * Stores the archive time in the entry before the move, because an archive accepts no writes. Retention needs the time.
 * Calls that wait for a decision lose their chance: a restored session cannot be decided on.
 */
export async function noteArchiving(store: SessionStore, ref: SessionRef, clock: Clock): Promise<void> {
  await updateEntry(store, ref, (entry) => archivingEntry(entry, clock));
}

export function archivingEntry({ waiting: _waiting, ...entry }: SessionEntry, clock: Clock): SessionEntry {
  return { ...entry, [archivedAtField]: clock.nowMs() };
}

/** Returns when a session was archived, in UTC milliseconds. Null means that the entry does not state the time. */
export function archivedAtMs(entry: SessionEntry): number | null {
  const value = entry[archivedAtField];
  return typeof value === "number" && Number.isFinite(value) && value > 0 ? value : null;
}

/**
 * An agent's main session may be reset but never removed; its archived sessions may be removed.
 * @throws {ThroughlineError} SESSION_PROTECTED
 */
export function assertMayEnd(ref: SessionRef): void {
  if (ref.archiveId === undefined && ref.key === mainSessionKey(ref.agentId))
    throw refused("SESSION_PROTECTED", `${quote(ref.key)} is the main session of its agent.`, { ...ref });
}

/**
 * Ends a session once no turn runs in it, and stores the time. Returns the archived session, or null when the session
 * was purged.
 * @throws {ThroughlineError} INPUT_INVALID, SESSION_NOT_FOUND, SESSION_PROTECTED, SESSION_BUSY, ABORTED
 */
export async function endSession(
  store: SessionStore,
  ref: SessionRef,
  options: EndSessionOptions = {},
): Promise<SessionState | null> {
  assertKnownOptions<EndSessionOptions>("endSession", options, endTable);
  const state = await loadExisting(store, ref);
  assertMayEnd(ref);
  await waitForTurnEnd(store, ref, options);
  return endNow(store, state, { purge: options.purge ?? false, clock: withSystemPorts(options).clock });
}

/** Ends a session, also while a turn runs in it. Returns what `endSession` returns. */
export async function endNow(
  store: SessionStore,
  state: SessionState,
  { purge, clock }: { readonly purge: boolean; readonly clock: Clock },
): Promise<SessionState | null> {
  if (purge) {
    await store.remove(state.ref, { purge });
    return null;
  }
  if (state.archived) return state;
  await noteArchiving(store, state.ref, clock);
  return store.move(state.ref, { kind: "archive" });
}
