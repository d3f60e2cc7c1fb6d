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

/** How to wait for the end of a turn that another caller runs. */
export interface WaitForTurnOptions {
  /** Measures the wait. @default the system's clock */
  readonly clock?: Clock;
  /** 0 refuses at once. @default 15_000 */
  readonly timeoutMs?: number;
  /** Between two looks. @default 200 */
  readonly pollIntervalMs?: number;
  /** Told once, when there is something to wait for. */
  readonly onWait?: (owner: string) => void;
  /** Ends the wait with ABORTED. */
  readonly signal?: AbortSignal;
}

/**
 * Waits until no turn of the session is open, or the lease of the open one ran out: a session is not taken from under a
 * running agent. The time that passed decides, however the clock is set meanwhile.
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

/** Options of `endSession`. */
export interface EndSessionOptions extends WaitForTurnOptions {
  /** Deletes it and every copy of its content. @default false: it is archived, and can be restored */
  readonly purge?: boolean;
}

const { callback, flag, number, signal: signalKind } = optionKinds;

/** The kinds of the options of a wait for a turn. */
export const waitTable: OptionTable<WaitForTurnOptions> = {
  clock: portKinds.clock,
  timeoutMs: number({ min: 0 }),
  pollIntervalMs: number({ min: 1 }),
  onWait: callback,
  signal: signalKind,
};

const endTable: OptionTable<EndSessionOptions> = { ...waitTable, purge: flag };

const archivedAtField = "archivedAtMs";

/** Notes in the entry that it is being archived: an archive takes no writes, and retention asks how long it has been one. */
export async function noteArchiving(store: SessionStore, ref: SessionRef, clock: Clock): Promise<void> {
  await updateEntry(store, ref, (entry) => archivingEntry(entry, clock));
}

/** The entry with the time at which its session is archived. */
export function archivingEntry(entry: SessionEntry, clock: Clock): SessionEntry {
  return { ...entry, [archivedAtField]: clock.nowMs() };
}

/** When a session was archived; null when nobody noted it. */
export function archivedAtMs(entry: SessionEntry): number | null {
  const value = entry[archivedAtField];
  return typeof value === "number" && Number.isFinite(value) && value > 0 ? value : null;
}

/**
 * An agent's main session is reset, never removed; its archived ones may be.
 * @throws {ThroughlineError} SESSION_PROTECTED
 */
export function assertMayEnd(ref: SessionRef): void {
  if (ref.archiveId === undefined && ref.key === mainSessionKey(ref.agentId))
    throw refused("SESSION_PROTECTED", `${quote(ref.key)} is the main session of its agent.`, { ...ref });
}

/**
 * Ends a session when nothing runs in it, and notes when. Gives the archived session; null when it was purged.
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
  const { purge = false } = options;
  if (purge) {
    await store.remove(ref, { purge });
    return null;
  }
  if (state.archived) return state;
  await noteArchiving(store, ref, withSystemPorts(options).clock);
  return store.move(ref, { kind: "archive" });
}
