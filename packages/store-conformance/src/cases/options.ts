import assert from "node:assert/strict";
import type { SessionRef, SessionStore } from "@throughline/core";
import { type StoreMethodName, storeOptionTables, wrongOptions } from "@throughline/core/internal";
import { assertFails, createSession, readRecords, refOf, userDraft } from "../case-tools.ts";
import type { ConformanceCase } from "../conformance-case.ts";

type Options = Readonly<Record<string, unknown>>;

interface Method {
  readonly name: StoreMethodName;
  /** Holds options that the method accepts, with all required options. */
  readonly valid: Options;
  call(options: never): Promise<unknown>;
}

async function lastOf(results: AsyncIterable<unknown>): Promise<unknown> {
  let last: unknown;
  for await (const result of results) last = result;
  return last;
}

/** Returns the methods that the store has. A call with wrong options must not have any effect. */
function methodsOf(store: SessionStore, ref: SessionRef): readonly Method[] {
  return [...ownMethods(store, ref), ...facetMethods(store, ref)].filter((method) => typeof method === "object");
}

function ownMethods(store: SessionStore, ref: SessionRef): readonly (Method | false)[] {
  const { exclusively } = store;
  const turn = { action: "within", fence: 0 };
  const lock = { timeoutMs: 0, pollIntervalMs: 1 };
  return [
    {
      name: "append",
      valid: { turn, expect: { head: null } },
      call: (options) => store.append(ref, [userDraft("two")], options),
    },
    { name: "read", valid: {}, call: async (options) => lastOf(store.read(ref, options)) },
    store.readWindow !== undefined && {
      name: "readWindow",
      valid: {},
      call: async (options) => store.readWindow?.(ref, options),
    },
    { name: "load", valid: {}, call: async (options) => store.load(ref, options) },
    {
      name: "save",
      valid: { ifRevision: 1 },
      call: async (options) => store.save(ref, { sessionId: "session-other" }, options),
    },
    {
      name: "list",
      valid: { importedFrom: { format: "pi", sourceId: "s1" } },
      call: async (options) => store.list(options),
    },
    { name: "remove", valid: {}, call: async (options) => store.remove(ref, options) },
    { name: "redact", valid: { reason: "test" }, call: async (options) => store.redact(ref, ["r1"], options) },
    exclusively !== undefined && {
      name: "exclusively",
      valid: lock,
      call: async (options) => store.exclusively?.({}, () => Promise.resolve(), options),
    },
  ];
}

function facetMethods(
  { search, watch, fork, maintenance }: SessionStore,
  ref: SessionRef,
): readonly (Method | false)[] {
  const over = AbortSignal.abort();
  return [
    search !== undefined && {
      name: "search",
      valid: { text: "one" },
      call: async (options) => lastOf(search.search(options)),
    },
    search?.rebuild !== undefined && { name: "rebuild", valid: {}, call: async (options) => search.rebuild?.(options) },
    search?.fill !== undefined && {
      name: "fill",
      valid: {},
      call: async (options) => lastOf(search.fill?.(options) ?? noResults()),
    },
    watch !== undefined && {
      name: "watch",
      valid: { afterSeq: 0, signal: over },
      call: async (options) => lastOf(watch.watch(ref, options)),
    },
    fork !== undefined && {
      name: "fork",
      valid: { sessionId: "session-fork" },
      call: async (options) => fork.fork(ref, refOf("fork"), options),
    },
    maintenance !== undefined && {
      name: "verify",
      valid: {},
      call: async (options) => lastOf(maintenance.verify(options)),
    },
    maintenance !== undefined && {
      name: "repair",
      valid: {},
      call: async (options) => lastOf(maintenance.repair(options)),
    },
    maintenance?.rebuild !== undefined && {
      name: "rebuild",
      valid: {},
      call: async (options) => lastOf(maintenance.rebuild?.(options) ?? noResults()),
    },
    maintenance !== undefined && {
      name: "backup",
      valid: {},
      call: async (options) => maintenance.backup("/nowhere/at all", options),
    },
    maintenance?.purges !== undefined && {
      name: "purges",
      valid: {},
      call: async (options) => lastOf(maintenance.purges?.(options) ?? noResults()),
    },
  ];
}

async function* noResults(): AsyncGenerator<never> {}

export const optionCases: readonly ConformanceCase[] = [
  {
    id: "options/wrong",
    demand:
      "an option of any method that nobody reads, of another type or out of range is refused by its name, and nothing is done",
    withoutCodec: true,
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one", { id: "r1" })]);
      const before = [await store.load(ref), await readRecords(store, ref), await store.list({ state: "any" })];
      for (const { name, valid, call } of methodsOf(store, ref)) {
        for (const { title, argument, options } of wrongOptions(storeOptionTables[name], valid)) {
          const error = await assertFails(call(options as never), "INPUT_INVALID");
          assert.equal(error.details["argument"], argument, `${name} with ${title}: ${error.message}`);
        }
      }
      assert.deepEqual(
        [await store.load(ref), await readRecords(store, ref), await store.list({ state: "any" })],
        before,
      );
    },
  },
  {
    id: "options/no-object",
    demand: "a value that is not an object in place of a method's options is refused",
    withoutCodec: true,
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one", { id: "r1" })]);
      const before = [await store.load(ref), await readRecords(store, ref)];
      for (const { name, call } of methodsOf(store, ref)) {
        for (const options of [null, 5, "text", ["text"]]) {
          const work = async (): Promise<unknown> => call(options as never);
          const { message } = await assertFails(work(), "INPUT_INVALID");
          assert.ok(message.includes("object"), `${name}: ${message}`);
        }
      }
      assert.deepEqual([await store.load(ref), await readRecords(store, ref)], before);
    },
  },
];
