import { setImmediate as turn } from "node:timers/promises";
import { sessionRef, type SessionStore, ThroughlineError, userMessage } from "@throughline/core";
import { describeStoreConformance, type StoreUnderTest } from "@throughline/store-conformance";
import { createStore, type StoreBackend } from "@throughline/store-kit";
import { describe, expect, it } from "vitest";
import { kitRunner } from "../../../tools/kit-runner.ts";
import { createMemoryBackend, createMemoryData, type MemoryData } from "../src/memory-data.ts";

const ref = sessionRef({ key: "agent:main:main" });

/** The same reads and writes behind a delay, as of a database of several processes. */
function waitingBackend(data: MemoryData, { commit = async () => undefined as unknown } = {}): StoreBackend {
  const backend = createMemoryBackend(data);
  return {
    find: async (...given) => (await turn(), backend.find(...given)),
    records: async (...given) => (await turn(), backend.records(...given)),
    seqsOf: async (...given) => (await turn(), backend.seqsOf(...given)),
    sessionFields: async (...given) => (await turn(), backend.sessionFields(...given)),
    namespaceFields: async (...given) => (await turn(), backend.namespaceFields(...given)),
    list: async (...given) => (await turn(), backend.list(...given)),
    async commit(change) {
      await turn();
      const replaced = await commit();
      if (replaced === false) return false;
      const isWritten = await backend.commit(change);
      await turn();
      if (replaced instanceof Error) throw replaced;
      return isWritten;
    },
  };
}

function storeOver(backend: StoreBackend): SessionStore {
  const declared = { name: "waiting", durabilities: ["none"], persistent: true, writers: "many-hosts" } as const;
  return createStore(backend, declared);
}

async function open(): Promise<StoreUnderTest> {
  const data = createMemoryData();
  let failure: "unknown" | "not-applied" | null = null;
  const commit = async (): Promise<unknown> => {
    const outcome = failure;
    failure = null;
    if (outcome === "not-applied") throw new ThroughlineError("STORE_UNREACHABLE", "No connection.", { outcome });
    return outcome === null ? undefined : new Error("The connection broke off.");
  };
  const another = async (): Promise<SessionStore> => storeOver(waitingBackend(data, { commit }));
  const store = await another();
  return {
    store,
    another,
    reopen: another,
    failNextAppend: (outcome) => (failure = outcome),
    dispose: () => store.close(),
  };
}

describeStoreConformance({ name: "a backend that waits", runner: kitRunner, open });

describe("createStore", () => {
  it("keeps every append of several handles, each once", async () => {
    const data = createMemoryData();
    const stores = [1, 2, 3].map(() => storeOver(waitingBackend(data)));
    const [store] = stores as [SessionStore];
    await store.save(ref, { sessionId: "s" }, { ifRevision: null });
    const appends = stores.flatMap((one, handle) =>
      Array.from({ length: 20 }, (_, index) => one.append(ref, [userMessage(`${handle}-${index}`)])),
    );
    const seqs = (await Promise.all(appends)).map(({ records }) => records[0]?.seq ?? 0);
    expect(seqs.toSorted((one, other) => one - other)).toEqual(Array.from({ length: 60 }, (_, index) => index + 1));
    expect((await store.load(ref))?.messageCount).toBe(60);
  });

  it("gives up after many attempts that others overtook", { tags: ["slow"] }, async () => {
    const data = createMemoryData();
    await storeOver(createMemoryBackend(data)).save(ref, { sessionId: "s" }, { ifRevision: null });
    const store = storeOver(waitingBackend(data, { commit: async () => false }));
    await expect(store.append(ref, [userMessage("Hello")])).rejects.toMatchObject({
      code: "STORE_LOCKED",
      outcome: "not-applied",
      retryable: true,
    });
  });

  it("states the outcome of a failing database", async () => {
    const data = createMemoryData();
    await storeOver(createMemoryBackend(data)).save(ref, { sessionId: "s" }, { ifRevision: null });
    const broken = { ...createMemoryBackend(data), find: () => Promise.reject(new Error("no route")) };
    const failure = { code: "STORE_IO", outcome: "not-applied" };
    await expect(storeOver(broken).append(ref, [userMessage("Hello")])).rejects.toMatchObject(failure);
    await expect(storeOver(broken).load(ref)).rejects.toMatchObject({ code: "STORE_IO", outcome: null });
    const lost = waitingBackend(data, { commit: async () => new Error("reset by peer") });
    await expect(storeOver(lost).append(ref, [userMessage("Hello")])).rejects.toMatchObject({ outcome: "unknown" });
  });

  it("reports records that are missing", async () => {
    const data = createMemoryData();
    const store = storeOver(createMemoryBackend(data));
    await store.save(ref, { sessionId: "s" }, { ifRevision: null });
    await store.append(ref, [userMessage("one"), userMessage("two")]);
    for (const { records } of data.sessions.values()) records.pop();
    const read = async (): Promise<void> => {
      for await (const page of store.read(ref)) expect(page.records).toHaveLength(1);
    };
    await expect(read()).rejects.toMatchObject({ code: "STORE_CORRUPT", details: { expectedSeq: 2, lastSeq: 2 } });
  });
});
