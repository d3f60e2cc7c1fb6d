import { describe, expect, it } from "vitest";
import {
  createAgentScope,
  hasErrorCode,
  type PartialReply,
  readWindow,
  sessionRef,
  type SessionRef,
  type SessionStore,
} from "@throughline/core";
import { createMemoryStore } from "@throughline/store-memory";

const own = sessionRef({ key: "agent:main:main" });
const others = sessionRef({ key: "agent:codex:main" });
const reply: PartialReply = {
  v: 1,
  sessionId: "of-codex",
  turnId: "t",
  fence: 1,
  step: 1,
  attempt: 0,
  afterSeq: 1,
  provider: null,
  api: null,
  model: null,
  text: "so far",
  updatedMs: 1,
};
const hello = { type: "message", message: { role: "user", content: "hello" } };

async function twoAgents(): Promise<{ readonly store: SessionStore; readonly scope: SessionStore }> {
  const store = createMemoryStore();
  for (const ref of [own, others]) {
    await store.save(ref, { sessionId: `of-${ref.agentId}`, sdkSessionId: `sdk-${ref.agentId}` }, { ifRevision: null });
    await store.append(ref, [hello]);
  }
  return { store, scope: createAgentScope(store, { agentId: "main" }) };
}

/**
 * Every member of a store, with what an agent might try to reach another's sessions by it. A member of the contract that
 * has no row here fails the test below, so that nothing is added unguarded.
 */
const attempts: Readonly<Record<string, ((scope: SessionStore, ref: SessionRef) => Promise<unknown>)[] | "harmless">> =
  {
    capabilities: "harmless",
    append: [(scope, ref) => scope.append(ref, [hello])],
    read: [async (scope, ref) => Array.fromAsync(scope.read(ref))],
    load: [(scope, ref) => scope.load(ref)],
    save: [
      (scope, ref) => scope.save(ref, { sessionId: "mine-now" }, { ifRevision: 1 }),
      (scope) => scope.save({ ...own, key: "agent:codex:new" }, { sessionId: "new" }, { ifRevision: null }),
    ],
    list: [(scope) => scope.list({ agentId: "codex" }), (scope) => scope.list({ namespace: "another" })],
    move: [
      (scope, ref) => scope.move(ref, { kind: "archive" }),
      (scope, ref) => scope.move({ ...ref, archiveId: "of-codex" }, { kind: "restore" }),
      (scope) => scope.move(own, { kind: "rename", key: "agent:codex:taken" }),
    ],
    remove: [(scope, ref) => scope.remove(ref, { purge: true })],
    redact: [(scope, ref) => scope.redact(ref, ["x"], { reason: "y" })],
    search: [async (scope) => Array.fromAsync(scope.search?.search({ text: "hello", agentId: "codex" }) ?? refuse())],
    watch: [
      async (scope, ref) =>
        Array.fromAsync(scope.watch?.watch(ref, { afterSeq: 0, signal: AbortSignal.abort() }) ?? refuse()),
    ],
    fork: [
      async (scope, ref) => scope.fork?.fork(ref, { ...own, key: "agent:main:stolen" }, { sessionId: "f" }) ?? refuse(),
      async (scope, ref) =>
        scope.fork?.fork(own, { ...ref, key: "agent:codex:planted" }, { sessionId: "f" }) ?? refuse(),
      async (scope, ref) => scope.fork?.sharers?.(ref, [1]) ?? refuse(),
    ],
    partials: [
      async (scope, ref) => scope.partials?.write(ref, reply) ?? refuse(),
      async (scope, ref) => scope.partials?.read(ref) ?? refuse(),
      async (scope, ref) => scope.partials?.remove(ref, 1) ?? refuse(),
    ],
    files: [
      async (scope, ref) => scope.files?.put(filesOf(ref), oneByte()) ?? refuse(),
      async (scope, ref) => Array.fromAsync(scope.files?.get(filesOf(ref), "0".repeat(64)) ?? refuse()),
      async (scope, ref) => scope.files?.stat(filesOf(ref), "0".repeat(64)) ?? refuse(),
      async (scope, ref) => scope.files?.delete(filesOf(ref), "0".repeat(64)) ?? refuse(),
      async (scope, ref) => Array.fromAsync(scope.files?.list(filesOf(ref)) ?? refuse()),
    ],
    vectors: [
      async (scope, ref) => scope.vectors?.put(ref, onePut) ?? refuse(),
      async (scope, ref) => scope.vectors?.nearest({ ...filesOf(ref), ...oneQuery }) ?? refuse(),
      async (scope) => scope.vectors?.nearest({ ...filesOf(own), ...oneQuery, key: others.key }) ?? refuse(),
      async (scope, ref) => scope.vectors?.forget(filesOf(ref)) ?? refuse(),
      async (scope, ref) => scope.vectors?.pending(filesOf(ref), { model: "m@1" }) ?? refuse(),
    ],
    readWindow: [async (scope, ref) => scope.readWindow?.(ref) ?? refuse()],
    close: "harmless",
  };

const onePut = { model: "m@1", fromSeq: 1, toSeq: 1, resumeSeq: 1, mark: "", vectors: [] };
const oneQuery = { model: "m@1", vector: new Float32Array([1]) };

async function* oneByte(): AsyncGenerator<Uint8Array> {
  yield new Uint8Array(1);
}

/** Files have no key, so an address whose key is another agent's stands for that agent. */
function filesOf({ namespace, agentId, key }: SessionRef): Pick<SessionRef, "namespace" | "agentId"> {
  return { namespace, agentId: key.startsWith("agent:codex:") ? "codex" : agentId };
}

/** A facet that is not there reaches nothing; the stores' own conformance runs them where they are. */
function refuse(): never {
  throw Object.assign(new Error("no such facet"), { isAbsent: true });
}

describe("a store scoped to one agent", () => {
  it.each(Object.entries(attempts).filter(([, rows]) => rows !== "harmless"))(
    "%s reaches no session of another agent",
    async (_name, rows) => {
      const { store, scope } = await twoAgents();
      for (const attempt of rows as Exclude<typeof rows, "harmless">) {
        const refs = [
          others,
          { ...own, agentId: "codex" },
          { ...others, agentId: "main" },
          { ...own, namespace: "another" },
        ];
        for (const ref of refs) {
          const failure: unknown = await attempt(scope, ref).catch((error: unknown) => error);
          const isRefused =
            hasErrorCode(failure, "KEY_AGENT_MISMATCH") || (failure as { isAbsent?: boolean }).isAbsent === true;
          expect(isRefused, `${JSON.stringify(ref)}: ${String(failure)}`).toBe(true);
        }
      }
      const untouched = await store.load(others);
      expect(untouched).toMatchObject({ sessionId: "of-codex", revision: 1, head: { lastSeq: 1 } });
      expect((await store.list({ state: "any" })).sessions).toHaveLength(2);
    },
  );

  it("has a row above for every member of the contract", async () => {
    const { store, scope } = await twoAgents();
    const known = new Set(Object.keys(attempts));
    expect(Object.keys(scope).filter((name) => !known.has(name))).toEqual([]);
    const declared = Object.keys(store).filter((name) => name !== "maintenance");
    expect(declared.filter((name) => !known.has(name))).toEqual([]);
  });

  it("lists its own sessions only, without being told which", async () => {
    const { store, scope } = await twoAgents();
    await store.save({ ...own, namespace: "tenant" }, { sessionId: "t" }, { ifRevision: null });
    expect((await scope.list()).sessions.map(({ sessionId }) => sessionId)).toEqual(["of-main"]);
    expect(scope.capabilities.maintenance).toBe(false);
    expect(scope.maintenance).toBeUndefined();
  });

  it("does with its own what the store does", async () => {
    const { scope } = await twoAgents();
    await scope.append(own, [hello]);
    const pages = await Array.fromAsync(scope.read(own));
    expect(pages.flatMap(({ records }) => records)).toHaveLength(2);
    await scope.move(own, { kind: "rename", key: "agent:main:renamed" });
    expect((await scope.load({ ...own, key: "agent:main:renamed" }))?.entry["sdkSessionId"]).toBe("sdk-main");
  });

  const guarded = ["search", "watch", "fork", "readWindow"] as const;
  it.each(guarded)("guards the %s of a store that has one", async (facet) => {
    const { store } = await twoAgents();
    const asked: unknown[] = [];
    const pages = async function* (): AsyncGenerator<never> {};
    const facets = {
      search: { search: (query: unknown) => (asked.push(query), pages()), lag: () => Promise.resolve(0) },
      watch: { watch: (ref: unknown) => (asked.push(ref), pages()) },
      fork: {
        recodesOnPurge: true,
        fork: (ref: SessionRef) => (asked.push(ref), store.load(ref)),
        sharers: (ref: SessionRef) => (asked.push(ref), Promise.resolve([])),
      },
      readWindow: (ref: SessionRef) => (asked.push(ref), readWindow(store, ref)),
    };
    const scope = createAgentScope({ ...store, ...(facets as Partial<SessionStore>) }, { agentId: "main" });
    const rows = attempts[facet];
    for (const attempt of rows === undefined || rows === "harmless" ? [] : rows) {
      const failure: unknown = await attempt(scope, others).catch((error: unknown) => error);
      expect(hasErrorCode(failure, "KEY_AGENT_MISMATCH"), String(failure)).toBe(true);
    }
    expect(asked).toEqual([]);
    // An erasure asks for it before it keeps forks.
    expect(scope.fork?.recodesOnPurge).toBe(true);
    if (facet === "search") {
      await Array.fromAsync(scope.search?.search({ text: "x" }) ?? []);
      expect(asked).toEqual([{ text: "x", agentId: "main", namespace: "" }]);
    }
  });
});
