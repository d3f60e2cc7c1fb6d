import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import type { SessionEvent, SessionStore } from "@throughline/core";
import { conformanceCases } from "@throughline/store-conformance/internal";
import { runConformance } from "@throughline/store-conformance";
import type { StoreUnderTest } from "@throughline/store-conformance";
import { createSqliteStore } from "@throughline/store-sqlite";
import { createSqliteWorkerStore } from "@throughline/store-sqlite/worker";
import { describe, expect, it } from "vitest";
import { refOf, say } from "./append-drafts.ts";
import { createSession, quickFolder, testFolder, textsOf } from "./test-folder.ts";

async function openInThread(): Promise<StoreUnderTest> {
  const folder = await mkdtemp(join(quickFolder(), "throughline-sqlite-"));
  const events: SessionEvent[] = [];
  const opened: SessionStore[] = [];
  const open = (): SessionStore => {
    const store = createSqliteWorkerStore({ path: join(folder, "store.db"), onEvent: (event) => events.push(event) });
    opened.push(store);
    return store;
  };
  const first = open();
  return {
    store: first,
    reopen: async () => {
      await first.close();
      return open();
    },
    files: async () => Promise.all((await readdir(folder)).map((name) => readFile(join(folder, name)))),
    events: () => events,
    dispose: async () => {
      for (const store of opened) await store.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/**
 * A thread a case takes time, and what stands behind it is the store that passes the whole kit: so here are the cases for
 * what goes through messages. Every facet and kind of argument, bytes, streams that are left early, signals, errors, ends.
 */
const cases =
  /^(manifest|lifecycle|errors|signals|maintenance)\/|^(sources\/(lines-kept|bytes-kept|with-record|head-payload)|search\/(snippet|filters-records|redacted)|fork\/(at-seq|refused)|watch\/(follows|missing)|copies\/(drafts|results)|redact\/tombstone|turns\/fenced-off)$/;

describe("a store in a thread of its own", () => {
  it("keeps the contract", { tags: ["slow"], timeout: 240_000 }, async () => {
    const chosen = conformanceCases.filter(({ id }) => cases.test(id));
    const results = await runConformance({ open: openInThread, cases: chosen });
    const failed = results.filter(({ passed, skipped }) => !passed && skipped === null);
    expect(failed.map(({ id, error }) => `${id}: ${String(error)}`)).toEqual([]);
    expect(results.filter(({ passed }) => passed).length).toBeGreaterThan(30);
  });

  it("does not hold the loop of its caller", async () => {
    await using store = createSqliteWorkerStore({ path: join(testFolder(), "store.db") });
    const ref = await createSession(store, "a");
    const delay = monitorEventLoopDelay({ resolution: 1 });
    delay.enable();
    await Promise.all(
      Array.from({ length: 300 }, (_, index) => store.append(ref, [say(`n${index} ${"x".repeat(2000)}`)])),
    );
    delay.disable();
    expect(await textsOf(store, ref)).toHaveLength(300);
    expect(delay.percentile(90) / 1e6).toBeLessThan(100);
  });

  it("says to who follows a session that the store was closed, as the store does that has no thread", async () => {
    for (const create of [createSqliteStore, createSqliteWorkerStore]) {
      const store = create({ path: join(testFolder(), "store.db") });
      const ref = await createSession(store, "a");
      await store.append(ref, [say("one")]);
      const { signal } = new AbortController();
      const pages = store.watch?.watch(ref, { afterSeq: 0, signal })[Symbol.asyncIterator]();
      await pages?.next();
      const next = expect(pages?.next()).rejects.toMatchObject({ code: "STORE_CLOSED", outcome: "not-applied" });
      await new Promise((resolve) => void setTimeout(resolve, 20));
      await store.close();
      await next;
    }
  });

  it("says the same when its thread has ended before anybody heard of it", { tags: ["slow"] }, async () => {
    const store = createSqliteWorkerStore({ path: join(testFolder(), "store.db") });
    const ref = await createSession(store, "a");
    await store.append(ref, [say("one")]);
    const { signal } = new AbortController();
    const pages = store.watch?.watch(ref, { afterSeq: 0, signal })[Symbol.asyncIterator]();
    await pages?.next();
    const next = expect(pages?.next()).rejects.toMatchObject({ code: "STORE_CLOSED", outcome: "not-applied" });
    await new Promise((resolve) => void setTimeout(resolve, 20));
    const closed = store.close();
    // All that the thread has said until its end is heard at once.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500);
    await closed;
    await next;
    await expect(store.load(ref)).rejects.toMatchObject({ code: "STORE_CLOSED" });
  });

  it("says typed errors, also of what cannot be sent", async () => {
    await using store = createSqliteWorkerStore({ path: join(testFolder(), "none/store.db"), create: false });
    await expect(store.list()).rejects.toMatchObject({ code: "STORE_NOT_FOUND", outcome: "not-applied" });
    const odd = { type: "message", message: () => "no data" };
    await expect(store.append(refOf("a"), [odd])).rejects.toMatchObject({ code: "RECORD_INVALID" });
  });
});
