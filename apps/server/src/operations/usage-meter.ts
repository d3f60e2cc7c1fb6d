import { hasErrorCode, type Clock, type SessionRef, type SessionState, type SessionStore } from "@throughline/core";
import { listSessions, monotonicMs, sessionRefText } from "@throughline/core/internal";
import { within } from "../within.ts";

export interface Usage {
  readonly atMs: number;
  /** Counts the record bytes per agent. Records that a fork shares count in each session that has them. */
  readonly bytesByAgent: ReadonlyMap<string, number>;
}

/** Counts the bytes of namespaces in the background. It reads record heads, which every store provides. */
export interface UsageMeter {
  /** Returns the newest count. It waits at most 500 ms for the first count, and returns null without one. */
  of(namespace: string): Promise<Usage | null>;
  /** Returns the bytes of each counted namespace, and starts a new count for those whose count is old. */
  all(namespaces: Iterable<string>): ReadonlyMap<string, number>;
  forget(ref: SessionRef): void;
  close(): void;
}

const freshMs = 60_000;
const waitMs = 500;
/**
 * After each step, a count pauses for 19 times the duration of the step. It therefore uses at most a twentieth of a
 * core.
 */
const restFactor = 19;
/** Limits the cached namespaces; the least recently requested one is dropped first. */
const mostNamespaces = 200;
/** Recounts every session from the start after this time, because other nodes may have redacted records. */
const recountMs = 86_400_000;

interface Counted {
  readonly agentId: string;
  seq: number;
  bytes: number;
}

class NamespaceUsage {
  usage: Usage | null = null;
  running: Promise<void> | null = null;
  sessions = new Map<string, Counted>();
  sinceMs = -Infinity;
}

/** @param onError receives the error of a failed count; the next request starts a new count */
export function createUsageMeter(store: SessionStore, clock: Clock, onError: (error: unknown) => void): UsageMeter {
  const closing = new AbortController();
  const { signal } = closing;
  const known = new Map<string, NamespaceUsage>();
  // Counts run one after the other, so that the number of namespaces does not raise the load.
  let last: Promise<void> = Promise.resolve();

  const rest = (beganMs: number): Promise<void> =>
    clock.sleep(Math.max(1, (monotonicMs() - beganMs) * restFactor), signal);
  const readOn = async ({ ref, head }: SessionState, counted: Counted): Promise<void> => {
    let beganMs = monotonicMs();
    for await (const { records } of store.read(ref, { afterSeq: counted.seq, payload: "head", signal })) {
      for (const { seq, bytes } of records) {
        counted.seq = seq;
        counted.bytes += bytes;
      }
      await rest(beganMs);
      beganMs = monotonicMs();
    }
    counted.seq = Math.max(counted.seq, head.lastSeq);
  };
  const count = async (namespace: string, own: NamespaceUsage): Promise<void> => {
    const nowMs = clock.nowMs();
    if (nowMs - own.sinceMs >= recountMs) {
      own.sessions = new Map();
      own.sinceMs = nowMs;
    }
    const earlier = own.sessions;
    const found = new Map<string, Counted>();
    let [seen, beganMs] = [0, monotonicMs()];
    for await (const state of listSessions(store, { namespace, state: "any", sort: "key", limit: 500, signal })) {
      const name = `${sessionRefText(state.ref)} ${state.sessionId}`;
      const counted = earlier.get(name) ?? { agentId: state.ref.agentId, seq: 0, bytes: 0 };
      found.set(name, counted);
      seen += 1;
      if (counted.seq < state.head.lastSeq) await readOn(state, counted).catch(unlessRemoved);
      else if (seen % 500 === 0) {
        await rest(beganMs);
        beganMs = monotonicMs();
      }
    }
    own.sessions = found;
    const bytesByAgent = new Map<string, number>();
    for (const { agentId, bytes } of found.values())
      bytesByAgent.set(agentId, (bytesByAgent.get(agentId) ?? 0) + bytes);
    own.usage = { atMs: clock.nowMs(), bytesByAgent };
  };
  const refreshed = (namespace: string): NamespaceUsage => {
    const own = known.get(namespace) ?? new NamespaceUsage();
    known.delete(namespace);
    known.set(namespace, own);
    const [oldest] = known.keys();
    if (known.size > mostNamespaces && oldest !== undefined) known.delete(oldest);
    const isDue = own.usage === null || clock.nowMs() - own.usage.atMs >= freshMs;
    if (isDue && own.running === null && !signal.aborted) {
      const pass = (): Promise<void> =>
        count(namespace, own)
          .catch((error: unknown) => {
            if (!signal.aborted) onError(error);
          })
          .finally(() => (own.running = null));
      own.running = last.then(pass);
      last = own.running;
    }
    return own;
  };
  return {
    async of(namespace) {
      const own = refreshed(namespace);
      if (own.running !== null) {
        await within(clock, own.running, waitMs);
      }
      return own.usage;
    },
    all(namespaces) {
      const counted = new Map<string, number>();
      for (const namespace of Array.from(namespaces).slice(0, mostNamespaces)) {
        const { usage } = refreshed(namespace);
        if (usage !== null) counted.set(namespace, sum(usage.bytesByAgent.values()));
      }
      return counted;
    },
    forget(ref) {
      const own = known.get(ref.namespace);
      if (own === undefined) return;
      const { archiveId: _archiveId, ...active } = ref;
      for (const name of own.sessions.keys()) if (name.startsWith(sessionRefText(active))) own.sessions.delete(name);
      own.usage = own.usage === null ? null : { ...own.usage, atMs: -Infinity };
    },
    close: () => closing.abort(),
  };
}

/** @returns the bytes of the given agent, or of all agents */
export function usedBytes({ bytesByAgent }: Usage, agentId: string | undefined): number {
  return agentId === undefined ? sum(bytesByAgent.values()) : (bytesByAgent.get(agentId) ?? 0);
}

function sum(values: Iterable<number>): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}

function unlessRemoved(error: unknown): void {
  // The session was purged or renamed after it was listed, so the next count covers it.
  if (!hasErrorCode(error, "SESSION_NOT_FOUND")) throw error;
}
