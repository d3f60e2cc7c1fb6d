import { hasErrorCode, type Clock, type SessionRef, type SessionState, type SessionStore } from "@throughline/core";
import { listSessions, monotonicMs, sessionRefText } from "@throughline/core/internal";
import { within } from "@throughline/gateway/internal";

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

interface CountParts {
  readonly store: SessionStore;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** @param onError receives the error of a failed count; the next request starts a new count */
export function createUsageMeter(store: SessionStore, clock: Clock, onError: (error: unknown) => void): UsageMeter {
  const closing = new AbortController();
  const cache = new UsageCache({ store, clock, signal: closing.signal }, onError);
  return {
    async of(namespace) {
      const own = cache.refreshed(namespace);
      if (own.running !== null) await within(clock, own.running, waitMs);
      return own.usage;
    },
    all(namespaces) {
      const counted = new Map<string, number>();
      for (const namespace of Array.from(namespaces).slice(0, mostNamespaces)) {
        const { usage } = cache.refreshed(namespace);
        if (usage !== null) counted.set(namespace, sum(usage.bytesByAgent.values()));
      }
      return counted;
    },
    forget: (ref) => cache.forget(ref),
    close: () => closing.abort(),
  };
}

class UsageCache {
  readonly #parts: CountParts;
  readonly #onError: (error: unknown) => void;
  readonly #known = new Map<string, NamespaceUsage>();
  /** Counts run one after the other, so that the number of namespaces does not raise the load. */
  #last: Promise<void> = Promise.resolve();

  constructor(parts: CountParts, onError: (error: unknown) => void) {
    this.#parts = parts;
    this.#onError = onError;
  }

  /** Returns the newest count, and starts a new one if it is old. */
  refreshed(namespace: string): NamespaceUsage {
    const { clock, signal } = this.#parts;
    const own = this.#known.get(namespace) ?? new NamespaceUsage();
    this.#known.delete(namespace);
    this.#known.set(namespace, own);
    const [oldest] = this.#known.keys();
    if (this.#known.size > mostNamespaces && oldest !== undefined) this.#known.delete(oldest);
    const isDue = own.usage === null || clock.nowMs() - own.usage.atMs >= freshMs;
    if (isDue && own.running === null && !signal.aborted) {
      own.running = this.#last.then(() => this.#count(namespace, own));
      this.#last = own.running;
    }
    return own;
  }

  forget(ref: SessionRef): void {
    const own = this.#known.get(ref.namespace);
    if (own === undefined) return;
    const { archiveId: _archiveId, ...active } = ref;
    for (const name of own.sessions.keys()) if (name.startsWith(sessionRefText(active))) own.sessions.delete(name);
    own.usage = own.usage === null ? null : { ...own.usage, atMs: -Infinity };
  }

  async #count(namespace: string, own: NamespaceUsage): Promise<void> {
    try {
      await countNamespace(namespace, own, this.#parts);
    } catch (error) {
      if (!this.#parts.signal.aborted) this.#onError(error);
    } finally {
      own.running = null;
    }
  }
}

async function countNamespace(namespace: string, own: NamespaceUsage, parts: CountParts): Promise<void> {
  const { store, clock, signal } = parts;
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
    if (counted.seq < state.head.lastSeq) await countRecords(state, counted, parts).catch(unlessRemoved);
    else if (seen % 500 === 0) {
      await rest(beganMs, parts);
      beganMs = monotonicMs();
    }
  }
  own.sessions = found;
  own.usage = { atMs: clock.nowMs(), bytesByAgent: bytesByAgent(found.values()) };
}

/** Adds the records that the count of a session lacks. */
async function countRecords({ ref, head }: SessionState, counted: Counted, parts: CountParts): Promise<void> {
  const { store, signal } = parts;
  let beganMs = monotonicMs();
  for await (const { records } of store.read(ref, { afterSeq: counted.seq, payload: "head", signal })) {
    for (const { seq, bytes } of records) {
      counted.seq = seq;
      counted.bytes += bytes;
    }
    await rest(beganMs, parts);
    beganMs = monotonicMs();
  }
  counted.seq = Math.max(counted.seq, head.lastSeq);
}

function rest(beganMs: number, { clock, signal }: CountParts): Promise<void> {
  return clock.sleep(Math.max(1, (monotonicMs() - beganMs) * restFactor), signal);
}

function bytesByAgent(sessions: Iterable<Counted>): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  for (const { agentId, bytes } of sessions) sums.set(agentId, (sums.get(agentId) ?? 0) + bytes);
  return sums;
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
