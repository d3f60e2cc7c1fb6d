import { hasErrorCode, ThroughlineError, type SessionStore } from "@throughline/core";
import type { Mutant } from "./mutant.ts";

type Exclusively = NonNullable<SessionStore["exclusively"]>;

function lockOf(inner: SessionStore): Exclusively {
  const { exclusively } = inner;
  if (exclusively === undefined) throw new Error("the base store has the lock");
  return exclusively.bind(inner);
}

/** A handle whose lock is wrong. */
function wrong(name: string, foundBy: string, change: (lock: Exclusively, inner: SessionStore) => Exclusively): Mutant {
  return {
    name,
    foundBy: `exclusively/${foundBy}`,
    handle: (inner) => ({ exclusively: change(lockOf(inner), inner) }),
  };
}

const unused = { namespace: "unused", agentId: "unused" };

export const exclusivelyMutants: readonly Mutant[] = [
  wrong("the lock excludes nobody", "one-at-a-time", () => (_agent, work) => work()),
  wrong("each handle has a lock of its own", "handles", (lock) => {
    const own = `handle-${Math.random().toString(36).slice(2)}`;
    return (_agent, work, options) => lock({ ...unused, agentId: own }, work, options);
  }),
  wrong(
    "all agents share one lock",
    "agents",
    (lock) => (agent, work, options) =>
      lock(agent.agentId === undefined ? agent : { ...agent, agentId: "main" }, work, options),
  ),
  wrong(
    "the namespace is left out of the lock",
    "agents",
    (lock) => (agent, work, options) => lock({ ...agent, namespace: "" }, work, options),
  ),
  wrong(
    "the lock of nobody in particular is not that of main",
    "agents",
    (lock) => (agent, work, options) => lock({ agentId: "nobody", ...agent }, work, options),
  ),
  wrong(
    "the lock is waited for without end",
    "timeout",
    (lock) => (agent, work, options) =>
      lock(agent, work, { ...options, timeoutMs: options?.timeoutMs >= 0 ? 6000 : Number.NaN }),
  ),
  wrong(
    "nobody waits for the lock",
    "timeout",
    (lock) => (agent, work, options) =>
      lock(agent, work, options?.timeoutMs === 120 ? { ...options, timeoutMs: 0 } : options),
  ),
  wrong("the work is done although the lock was not got", "timeout", (lock) => async (agent, work, options) => {
    try {
      return await lock(agent, work, options);
    } catch (error) {
      if (hasErrorCode(error, "STORE_LOCKED")) await work();
      throw error;
    }
  }),
  wrong("a signal does not end the wait", "abort", (lock) => (agent, work, options) => {
    const { signal: _unheard, ...rest } = options ?? {};
    return lock(agent, work, rest as typeof options);
  }),
  wrong("a wait that was aborted gets in as soon as the holder leaves", "abort", (lock) => (agent, work, options) => {
    const { signal, ...rest } = options ?? {};
    if (signal === undefined) return lock(agent, work, options);
    // Nobody waits for it any more, but it still takes the lock.
    const late = lock(agent, work, { ...rest, pollIntervalMs: 5 } as typeof options);
    late.catch(() => undefined);
    return Promise.race([late, lock(agent, work, options)]);
  }),
  wrong(
    "an error of the work keeps the lock",
    "throws",
    (lock) => (agent, work, options) =>
      new Promise((resolve, reject) => {
        lock(
          agent,
          async () => {
            try {
              resolve(await work());
            } catch (error) {
              reject(error as Error);
              await new Promise(() => undefined);
            }
          },
          options,
        ).catch(reject);
      }),
  ),
  wrong("an error of the work is wrapped", "throws", (lock) => async (agent, work, options) => {
    try {
      return await lock(agent, work, options);
    } catch (cause) {
      if (ThroughlineError.isInstance(cause)) throw cause;
      throw new ThroughlineError("INTERNAL", "The work failed.", { cause });
    }
  }),
  {
    name: "operations wait for the lock",
    foundBy: "exclusively/operations",
    handle: (inner, world) => ({
      exclusively: lockOf(inner),
      append: (ref, drafts, options) =>
        world.handles < 2
          ? inner.append(ref, drafts, options)
          : lockOf(inner)(ref, () => inner.append(ref, drafts, options), { timeoutMs: 200, pollIntervalMs: 5 }),
    }),
  },
  {
    name: "the lock of a process that was killed stays",
    foundBy: "exclusively/killed",
    under: (under) => ({
      holdElsewhere: async (agent) => {
        await under.holdElsewhere?.(agent);
        return { kill: () => Promise.resolve() };
      },
    }),
  },
  wrong("a closed handle still takes the lock", "closed", (lock) => async (agent, work, options) => {
    try {
      return await lock(agent, work, options);
    } catch (error) {
      if (hasErrorCode(error, "STORE_CLOSED")) return work();
      throw error;
    }
  }),
  wrong(
    "a time that is no number is taken for none",
    "arguments",
    (lock) => (agent, work, options) =>
      lock(agent, work, Number.isNaN(options?.timeoutMs) ? { ...options, timeoutMs: 0 } : options),
  ),
];
