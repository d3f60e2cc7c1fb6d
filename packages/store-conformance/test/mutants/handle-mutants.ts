import { setTimeout as wait } from "node:timers/promises";
import { hasErrorCode, ThroughlineError } from "@throughline/core";
import type { SessionEvent, SessionRef, SessionState, SessionStore } from "@throughline/core";
import { noted, readWith, without, type Mutant } from "./mutant.ts";

/** Every write and read of a handle sent through `around`. */
function around(
  inner: SessionStore,
  change: <Value>(work: () => Promise<Value>) => Promise<Value>,
): Partial<SessionStore> {
  return {
    append: (ref, drafts, options) => change(() => inner.append(ref, drafts, options)),
    save: (ref, entry, options) => change(() => inner.save(ref, entry, options)),
    move: (ref, action) => change(() => inner.move(ref, action)),
    remove: (ref, options) => change(() => inner.remove(ref, options)),
    redact: (ref, ids, options) => change(() => inner.redact(ref, ids, options)),
  };
}

export const manifestMutants: readonly Mutant[] = [
  {
    name: "capability mutable",
    foundBy: "manifest/frozen",
    handle: (inner) => ({ capabilities: { ...inner.capabilities } }),
  },
  {
    name: "durability claim wrong",
    foundBy: "manifest/complete",
    handle: (inner) => ({ capabilities: Object.freeze({ ...inner.capabilities, defaultDurability: "disk" as const }) }),
  },
  {
    name: "a facet without declaration",
    foundBy: "manifest/facets",
    handle: () => ({
      maintenance: {
        verify: async function* () {},
        repair: async function* () {},
        backup: async () => ({ sizeBytes: 0 }),
      },
    }),
  },
  {
    name: "a declaration without facet",
    foundBy: "manifest/facets",
    handle: (inner) => ({ capabilities: Object.freeze({ ...inner.capabilities, maintenance: true }) }),
  },
  {
    name: "another declaration after reopening",
    foundBy: "manifest/reopen",
    handle: (inner, world) =>
      world.handles === 1
        ? {}
        : { capabilities: Object.freeze({ ...inner.capabilities, writers: "one-handle" as const }) },
  },
];

export const lifecycleMutants: readonly Mutant[] = [
  {
    name: "close not idempotent",
    foundBy: "lifecycle/close-twice",
    handle: (inner) => {
      let isClosed = false;
      return {
        close: async () => {
          if (isClosed) throw new ThroughlineError("STORE_CLOSED", "The store handle was closed.");
          isClosed = true;
          await inner.close();
        },
      };
    },
    under: () => ({ dispose: async () => undefined }),
  },
  {
    name: "works on after close",
    foundBy: "lifecycle/closed-everywhere",
    handle: () => ({ close: async () => undefined }),
  },
  {
    name: "leaving the scope does not close",
    foundBy: "lifecycle/dispose-closes",
    handle: () => ({ [Symbol.asyncDispose]: async () => undefined }),
  },
  {
    name: "read of a missing session is empty",
    foundBy: "lifecycle/missing-session-read",
    handle: (inner) => ({
      read: async function* (ref, options) {
        if ((await inner.load(ref)) !== null) yield* inner.read(ref, options);
      } as SessionStore["read"],
    }),
  },
];

export const errorMutants: readonly Mutant[] = [
  {
    name: "error resolved as value",
    foundBy: "errors/typed",
    handle: (inner) =>
      around(inner, <Value>(work: () => Promise<Value>) => work().catch((error: unknown) => error as Value)),
  },
  {
    name: "errors without outcome",
    foundBy: "errors/typed",
    handle: (inner) =>
      around(inner, async (work) => {
        try {
          return await work();
        } catch (error) {
          if (!ThroughlineError.isInstance(error)) throw error;
          throw new ThroughlineError(error.code, error.message, { details: error.details });
        }
      }),
  },
  {
    name: "errors of its own kind",
    foundBy: "errors/typed",
    handle: (inner) =>
      around(inner, async (work) => work().catch((error: Error) => Promise.reject(new Error(error.message)))),
  },
  {
    name: "unknown outcome reported as not applied",
    foundBy: "errors/unknown-outcome",
    handle: (inner) => ({
      append: async (ref, drafts, options) => {
        try {
          return await inner.append(ref, drafts, options);
        } catch (error) {
          if (!hasErrorCode(error, "STORE_IO")) throw error;
          throw new ThroughlineError("STORE_IO", error.message, { outcome: "not-applied" });
        }
      },
    }),
  },
  {
    name: "a failed write is made again and reported as failed",
    foundBy: "errors/not-applied-outcome",
    handle: (inner) => ({
      append: async (ref, drafts, options) => {
        try {
          return await inner.append(ref, drafts, options);
        } catch (error) {
          if (hasErrorCode(error, "STORE_IO")) await inner.append(ref, drafts, without(options, "idempotencyKey"));
          throw error;
        }
      },
    }),
  },
  {
    name: "append ignores the signal",
    foundBy: "signals/append",
    handle: (inner) => ({ append: (ref, drafts, options) => inner.append(ref, drafts, without(options, "signal")) }),
  },
  {
    name: "load ignores the signal",
    foundBy: "signals/load-and-list",
    handle: (inner) => ({ load: (ref) => inner.load(ref) }),
  },
  {
    name: "read ignores the signal",
    foundBy: "signals/read",
    handle: (inner) => ({ read: readWith(inner, ({ signal: _signal, ...options }) => options) }),
  },
  {
    name: "read heeds the signal at its start only",
    foundBy: "signals/read",
    handle: (inner) => ({
      read: async function* (ref, options = {}) {
        const { signal, ...rest } = options;
        if (signal?.aborted === true) throw new ThroughlineError("ABORTED", "The read was aborted.");
        yield* inner.read(ref, rest);
      } as SessionStore["read"],
    }),
  },
];

export const durabilityMutants: readonly Mutant[] = [
  {
    name: "tells no durability",
    foundBy: "durability/stated",
    handle: (inner) => ({
      append: async (ref, drafts, options) => {
        const { durability: _durability, ...result } = await inner.append(ref, drafts, options);
        return result as typeof result & { readonly durability: never };
      },
    }),
  },
  {
    name: "takes any durability and gives its own",
    foundBy: "durability/not-offered",
    handle: (inner) => ({
      append: (ref, drafts, options) => inner.append(ref, drafts, without(options, "durability")),
      save: (ref, entry, { ifRevision }) => inner.save(ref, entry, { ifRevision }),
    }),
  },
  {
    name: "loses the head when opened again",
    foundBy: "durability/reopen",
    handle: (inner, world) =>
      world.handles === 1
        ? {}
        : {
            load: async (ref, options) => {
              const state = await inner.load(ref, options);
              return state === null ? null : { ...state, head: { ...state.head, headId: null, windowSeq: null } };
            },
          },
  },
  {
    name: "a rename is forgotten when opened again",
    foundBy: "durability/reopen-after-redaction",
    handle: (inner, world) => {
      const renamed = noted(world, "renamed", () => new Map<string, SessionRef>());
      const number = world.handles;
      return {
        move: async (ref, action) => {
          const state = await inner.move(ref, action);
          if (action.kind === "rename") renamed.set(ref.key, state.ref);
          return state;
        },
        load: (ref, options) => inner.load(number > 1 ? (renamed.get(ref.key) ?? ref) : ref, options),
      };
    },
  },
  {
    name: "close drops writes under way",
    foundBy: "durability/close-with-writes",
    handle: (inner, world) => {
      const lost = noted(world, "lost", () => new Set<string>());
      let isClosed = false;
      return {
        append: async (ref, drafts, options) => {
          const result = await inner.append(ref, drafts, options);
          if (isClosed) result.records.forEach(({ id }) => lost.add(id));
          return result;
        },
        close: async () => {
          isClosed = true;
          await inner.close();
        },
        read: async function* (ref, options) {
          for await (const page of inner.read(ref, options))
            yield { ...page, records: page.records.filter(({ id }) => !lost.has(id)) };
        } as SessionStore["read"],
      };
    },
  },
];

export const concurrencyMutants: readonly Mutant[] = [
  {
    name: "reads the head before it waits to write",
    foundBy: "concurrency/one-line",
    handle: (inner) => ({
      append: async (ref, drafts, options) => {
        const headId = (await inner.load(ref))?.head.headId ?? null;
        await wait(1);
        const [first, ...rest] = drafts;
        const linked =
          first !== undefined && "type" in first && first["parentId"] === undefined
            ? [{ ...first, parentId: headId }, ...rest]
            : drafts;
        return inner.append(ref, linked as typeof drafts, options);
      },
    }),
  },
  {
    name: "mixes batches",
    foundBy: "concurrency/batches-together",
    handle: (inner) => ({
      append: async (ref, drafts, options) => {
        if (drafts.length < 3 || options !== undefined) return inner.append(ref, drafts, options);
        const results = [];
        for (const draft of drafts) results.push(await inner.append(ref, [draft]));
        const last = results.at(-1);
        return last === undefined
          ? inner.append(ref, drafts)
          : { ...last, records: results.flatMap(({ records }) => records) };
      },
    }),
  },
  {
    name: "each handle has a head of its own",
    foundBy: "concurrency/two-handles",
    handle: (inner) => {
      const heads = new Map<string, string>();
      return {
        append: async (ref, drafts, options) => {
          await wait(0);
          const known = heads.get(ref.key);
          const [first, ...rest] = drafts;
          const usable =
            known !== undefined &&
            options === undefined &&
            first !== undefined &&
            "type" in first &&
            first["parentId"] === undefined;
          const result = await inner.append(
            ref,
            usable ? ([{ ...first, parentId: known }, ...rest] as typeof drafts) : drafts,
            options,
          );
          const main = result.records.findLast(({ side }) => !side);
          if (main !== undefined) heads.set(ref.key, main.id);
          return result;
        },
      };
    },
  },
  {
    name: "a handle believes what it loaded",
    foundBy: "concurrency/handles-see-each-other",
    handle: (inner) => {
      const states = new Map<string, SessionState | null>();
      return {
        read: async function* (ref, options) {
          const key = `${ref.key} ${ref.agentId} ${ref.namespace} ${ref.archiveId}`;
          if (!states.has(key)) states.set(key, await inner.load(ref));
          const lastSeq = states.get(key)?.head.lastSeq;
          yield* inner.read(
            ref,
            lastSeq === undefined
              ? options
              : { ...options, beforeSeq: Math.min(options?.beforeSeq ?? Infinity, lastSeq + 1) },
          );
        } as SessionStore["read"],
        append: async (ref, drafts, options) => {
          states.clear();
          return inner.append(ref, drafts, options);
        },
      };
    },
  },
];

export const eventMutants: readonly Mutant[] = [
  {
    name: "announces twice",
    foundBy: "events/announced",
    under: ({ events }) => ({
      events: () =>
        (events?.() ?? []).flatMap((event): SessionEvent[] =>
          event.name === "records-appended" ? [event, event] : [event],
        ),
    }),
  },
  {
    name: "clamps in silence",
    foundBy: "events/clamped",
    under: ({ events }) => ({ events: () => (events?.() ?? []).filter(({ name }) => name !== "updated-at-clamped") }),
  },
];
