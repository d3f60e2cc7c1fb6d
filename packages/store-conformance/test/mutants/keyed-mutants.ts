import { setTimeout as wait } from "node:timers/promises";
import { hasErrorCode, ThroughlineError } from "@throughline/core";
import type { AppendResult, SessionRef } from "@throughline/core";
import { noted, without, type Mutant } from "./mutant.ts";

/** An operation that answers another error code by doing something else. */
async function answering<Value>(
  work: () => Promise<Value>,
  code: Parameters<typeof hasErrorCode>[1],
  instead: (error: ThroughlineError) => Promise<Value>,
): Promise<Value> {
  try {
    return await work();
  } catch (error) {
    if (hasErrorCode(error, code as never)) return instead(error);
    throw error;
  }
}

const textOf = (ref: SessionRef): string => JSON.stringify([ref.namespace, ref.agentId, ref.key]);

/** Of the appends meant, it knows no more than the last hundred keys. */
function forgetful(isMeant: (drafts: readonly unknown[]) => boolean): NonNullable<Mutant["handle"]> {
  return (inner, world) => {
    const keys = noted(world, "keys", () => new Map<string, number>());
    return {
      append: (ref, drafts, options) => {
        const key = options?.idempotencyKey;
        if (key === undefined || !isMeant(drafts)) return inner.append(ref, drafts, options);
        const isForgotten = keys.has(key) && keys.size - (keys.get(key) ?? 0) > 100;
        if (!keys.has(key)) keys.set(key, keys.size);
        return inner.append(ref, drafts, isForgotten ? without(options, "idempotencyKey") : options);
      },
    };
  };
}

export const idempotencyMutants: readonly Mutant[] = [
  {
    name: "duplicates on retry",
    foundBy: "idempotency/first-result-again",
    handle: (inner) => ({
      append: (ref, drafts, options) => inner.append(ref, drafts, without(options, "idempotencyKey")),
    }),
  },
  {
    name: "remembers no key that was said to be new",
    foundBy: "idempotency/new-key",
    handle: (inner) => ({
      append: (ref, drafts, options) =>
        inner.append(ref, drafts, options?.isNewKey === true ? without(options, "idempotencyKey") : options),
    }),
  },
  {
    name: "a replay gives the head of today",
    foundBy: "idempotency/first-result-again",
    handle: (inner) => ({
      append: async (ref, drafts, options) => {
        const result = await inner.append(ref, drafts, options);
        return result.replayed ? { ...result, head: (await inner.load(ref))?.head ?? result.head } : result;
      },
    }),
  },
  {
    name: "compares expect before the key",
    foundBy: "idempotency/before-expect",
    handle: (inner) => ({
      append: async (ref, drafts, options) => {
        const state = await inner.load(ref);
        if (state !== null && options?.expect !== undefined && options.expect.head !== state.head.headId) {
          return inner.append(ref, drafts, without(options, "idempotencyKey"));
        }
        return inner.append(ref, drafts, options);
      },
    }),
  },
  {
    name: "accepts other content for a key",
    foundBy: "idempotency/other-content",
    handle: (inner) => ({
      append: (ref, drafts, options) =>
        answering(
          () => inner.append(ref, drafts, options),
          "IDEMPOTENCY_MISMATCH",
          () => inner.append(ref, drafts, without(options, "idempotencyKey")),
        ),
    }),
  },
  {
    name: "one key for all sessions",
    foundBy: "idempotency/per-session",
    handle: (inner, world) => {
      const results = noted(world, "results", () => new Map<string, AppendResult>());
      return {
        append: async (ref, drafts, options) => {
          const earlier = results.get(options?.idempotencyKey ?? "");
          if (earlier !== undefined) return { ...earlier, replayed: true };
          const result = await inner.append(ref, drafts, options);
          if (options?.idempotencyKey !== undefined) results.set(options.idempotencyKey, result);
          return result;
        },
      };
    },
  },
  {
    name: "a refused append uses up its key",
    foundBy: "idempotency/refused-is-forgotten",
    handle: (inner, world) => {
      const failures = noted(world, "failures", () => new Map<string, unknown>());
      return {
        append: async (ref, drafts, options) => {
          const key = options?.idempotencyKey ?? "";
          if (key !== "" && failures.has(key)) throw failures.get(key);
          try {
            return await inner.append(ref, drafts, options);
          } catch (error) {
            failures.set(key, error);
            throw error;
          }
        },
      };
    },
  },
  {
    name: "looks for the key before it waits to write",
    foundBy: "idempotency/at-once",
    handle: (inner, world) => {
      const results = noted(world, "results", () => new Map<string, AppendResult>());
      return {
        append: async (ref, drafts, options) => {
          const key = options?.idempotencyKey;
          if (key === undefined || key === "" || key.length > 256) return inner.append(ref, drafts, options);
          const id = JSON.stringify([textOf(ref), key, drafts]);
          const earlier = results.get(id);
          if (earlier !== undefined) return { ...earlier, replayed: true };
          await wait(1);
          const result = await inner.append(ref, drafts, without(options, "idempotencyKey"));
          results.set(id, result);
          return result;
        },
      };
    },
  },
  {
    name: "writes the entry again on a retry",
    foundBy: "idempotency/entry-once",
    handle: (inner) => ({
      append: async (ref, drafts, options) => {
        const result = await inner.append(ref, drafts, options);
        if (result.replayed && options?.entry !== undefined) await inner.append(ref, [], { entry: options.entry });
        return result;
      },
    }),
  },
  {
    name: "takes any text as a key",
    foundBy: "idempotency/key-form",
    handle: (inner) => ({
      append: (ref, drafts, options) =>
        answering(
          () => inner.append(ref, drafts, options),
          "INPUT_INVALID",
          () => inner.append(ref, drafts, without(options, "idempotencyKey")),
        ),
    }),
  },
  {
    name: "forgets idempotency on reopen",
    foundBy: "idempotency/reopen",
    handle: (inner, world) => {
      const number = world.handles;
      const keys = noted(world, "keys", () => new Map<string, number>());
      return {
        append: (ref, drafts, options) => {
          const key = options?.idempotencyKey;
          if (key === undefined) return inner.append(ref, drafts, options);
          if (!keys.has(key)) keys.set(key, number);
          return inner.append(
            ref,
            drafts,
            keys.get(key) === number ? options : { ...options, idempotencyKey: `${key}-${number}` },
          );
        },
      };
    },
  },
  {
    name: "remembers the last hundred keys",
    foundBy: "idempotency/remembered",
    handle: forgetful((drafts) => drafts.length > 0),
  },
  {
    name: "remembers the last hundred keys of appends without records",
    foundBy: "idempotency/without-records",
    handle: forgetful((drafts) => drafts.length === 0),
  },
  {
    name: "appends again what it has forgotten",
    foundBy: "idempotency/expired",
    handle: (inner) => ({
      append: (ref, drafts, options) =>
        answering(
          () => inner.append(ref, drafts, options),
          "IDEMPOTENCY_EXPIRED",
          () => inner.append(ref, drafts, without(options, "idempotencyKey")),
        ),
    }),
  },
  {
    name: "says of a forgotten key that nothing was applied",
    foundBy: "idempotency/expired",
    handle: (inner) => ({
      append: (ref, drafts, options) =>
        answering(
          () => inner.append(ref, drafts, options),
          "IDEMPOTENCY_EXPIRED",
          ({ code, message }) => Promise.reject(new ThroughlineError(code, message, { outcome: "not-applied" })),
        ),
    }),
  },
];

export const turnMutants: readonly Mutant[] = [
  {
    name: "fence not checked",
    foundBy: "turns/fenced-off",
    handle: (inner) => ({
      append: (ref, drafts, options) =>
        answering(
          () => inner.append(ref, drafts, options),
          "TURN_FENCED",
          async () => {
            const fence = (await inner.load(ref))?.head.fence ?? 0;
            const turn = options?.turn;
            if (turn?.action === "open")
              return inner.append(ref, drafts, { ...options, turn: { ...turn, fence: fence + 1 } });
            return inner.append(
              ref,
              drafts,
              turn === undefined || fence === 0 ? without(options, "turn") : { ...options, turn: { ...turn, fence } },
            );
          },
        ),
    }),
  },
  {
    name: "knows no turns",
    foundBy: "turns/open-and-close",
    handle: (inner) => ({ append: (ref, drafts, options) => inner.append(ref, drafts, without(options, "turn")) }),
  },
  {
    name: "a second turn takes over at once",
    foundBy: "turns/busy",
    handle: (inner) => ({
      append: (ref, drafts, options) =>
        answering(
          () => inner.append(ref, drafts, options),
          "SESSION_BUSY",
          async () => {
            const fence = (await inner.load(ref))?.head.fence ?? 0;
            await inner.append(ref, [], { turn: { action: "close", fence } });
            return inner.append(ref, drafts, options);
          },
        ),
    }),
  },
  {
    name: "says only that a session is busy",
    foundBy: "turns/busy",
    handle: (inner) => ({
      append: (ref, drafts, options) =>
        answering(
          () => inner.append(ref, drafts, options),
          "SESSION_BUSY",
          async () => {
            throw new ThroughlineError("SESSION_BUSY", "The session is busy.", { outcome: "not-applied" });
          },
        ),
    }),
  },
  {
    name: "an open turn keeps side records out",
    foundBy: "turns/outsiders",
    handle: (inner) => ({
      append: async (ref, drafts, options) => {
        const turn = (await inner.load(ref))?.head.turn;
        if (turn != null && options?.turn === undefined)
          throw new ThroughlineError("SESSION_BUSY", "A turn is open.", { outcome: "not-applied" });
        return inner.append(ref, drafts, options);
      },
    }),
  },
  {
    name: "a lease never runs out",
    foundBy: "turns/lease-run-out",
    handle: (inner) => ({
      append: (ref, drafts, options) =>
        inner.append(
          ref,
          drafts,
          options?.turn?.action === "open"
            ? { ...options, turn: { ...options.turn, leaseUntilMs: 9_999_999_999_999 } }
            : options,
        ),
    }),
  },
  {
    name: "any fence opens a turn",
    foundBy: "turns/next-fence",
    handle: (inner) => ({
      append: async (ref, drafts, options) => {
        const turn = options?.turn;
        if (turn?.action !== "open") return inner.append(ref, drafts, options);
        return inner.append(ref, drafts, {
          ...options,
          turn: { ...turn, fence: ((await inner.load(ref))?.head.fence ?? 0) + 1 },
        });
      },
    }),
  },
  {
    name: "renewing does nothing",
    foundBy: "turns/renew",
    handle: (inner) => ({
      append: (ref, drafts, options) =>
        inner.append(
          ref,
          drafts,
          options?.turn?.action === "renew"
            ? { ...options, turn: { action: "within", fence: options.turn.fence } }
            : options,
        ),
    }),
  },
  {
    name: "looks for an open turn before it waits to write",
    foundBy: "turns/one-opens",
    handle: (inner) => ({
      append: async (ref, drafts, options) => {
        if (options?.turn?.action !== "open" || (await inner.load(ref))?.head.turn != null)
          return inner.append(ref, drafts, options);
        await wait(1);
        const head = (await inner.load(ref))?.head;
        if (head?.turn != null) await inner.append(ref, [], { turn: { action: "close", fence: head.fence } });
        return inner.append(ref, drafts, { ...options, turn: { ...options.turn, fence: (head?.fence ?? 0) + 1 } });
      },
    }),
  },
  {
    name: "opening the store closes open turns",
    foundBy: "turns/reopen",
    handle: (inner, world) => {
      const isLater = world.handles > 1;
      const closeTurn = async (ref: SessionRef): Promise<void> => {
        const head = (await inner.load(ref))?.head;
        if (isLater && head?.turn != null)
          await inner.append(ref, [], { turn: { action: "close", fence: head.fence } });
      };
      return {
        load: async (ref, options) => {
          await closeTurn(ref);
          return inner.load(ref, options);
        },
        append: async (ref, drafts, options) => {
          await closeTurn(ref);
          return inner.append(ref, drafts, options);
        },
      };
    },
  },
];
