import { hasErrorCode, type Clock, type SessionRef, type SessionState, type SessionStore } from "@throughline/core";
import { listSessions, monotonicMs, sessionRefText } from "@throughline/core/internal";
import { within } from "../within.ts";

/** What the records of a namespace take, as it was counted last. */
export interface Usage {
  readonly atMs: number;
  /** Bytes of the lines of all records, by agent; records of a fork count in each session that has them. */
  readonly bytesByAgent: ReadonlyMap<string, number>;
}

/** Counts the bytes of namespaces in the background, by the heads of records, which every store gives. */
export interface UsageMeter {
  /** The newest count of a namespace; waits for the first one, but not long. Null: it is not there yet. */
  of(namespace: string): Promise<Usage | null>;
  /** Bytes of each of these namespaces that was counted, and counts again where that is due. */
  all(namespaces: Iterable<string>): ReadonlyMap<string, number>;
  /** The records of a session were removed or made smaller. */
  forget(ref: SessionRef): void;
  close(): void;
}

/** A count is good for so long. */
const freshMs = 60_000;
/** So long a request waits for a count. */
const waitMs = 500;
/** A counting pass rests for 19 times the time of its last step: it takes at most a twentieth of a core. */
const restFactor = 19;
/** The most namespaces that are remembered; the one that was asked for least recently goes first. */
const mostNamespaces = 200;
/** Sessions are counted from their beginning again after this time: other nodes may have redacted records. */
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

/** @param onError told of a pass that failed; the next one is tried when somebody asks again */
export function createUsageMeter(store: SessionStore, clock: Clock, onError: (error: unknown) => void): UsageMeter {
  const closing = new AbortController();
  const { signal } = closing;
  const known = new Map<string, NamespaceUsage>();
  // Passes come one after the other, however many namespaces there are.
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

/** @returns the bytes of the agents that are asked for, or of all */
export function usedBytes({ bytesByAgent }: Usage, agentId: string | undefined): number {
  return agentId === undefined ? sum(bytesByAgent.values()) : (bytesByAgent.get(agentId) ?? 0);
}

function sum(values: Iterable<number>): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}

function unlessRemoved(error: unknown): void {
  // It was purged or renamed since it was listed.
  if (!hasErrorCode(error, "SESSION_NOT_FOUND")) throw error;
}
