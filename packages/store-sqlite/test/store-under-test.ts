import Database from "better-sqlite3";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import type { PayloadCodec, SessionEvent, SessionStore } from "@throughline/core";
import { systemClock } from "@throughline/core/internal";
import type { StoreUnderTest } from "@throughline/store-conformance";
import { startHolder } from "@throughline/store-conformance/internal";
import { createSqliteStore } from "@throughline/store-sqlite";
import type { SqliteStoreOptions } from "@throughline/store-sqlite";
import { createFaultyDriver } from "./faulty-driver.ts";
import { quickFolder } from "./test-folder.ts";

const holderScript = join(import.meta.dirname, "hold-agent-lock.ts");

/** A store in a folder of its own, and what the conformance kit may do to it. */
export async function openUnderTest(codec?: PayloadCodec): Promise<StoreUnderTest> {
  const folder = await mkdtemp(join(quickFolder(), "throughline-sqlite-"));
  const events: SessionEvent[] = [];
  const faults = createFaultyDriver();
  let aheadMs = 0;
  const options: SqliteStoreOptions = {
    path: join(folder, "store.db"),
    clock: { ...systemClock, nowMs: () => systemClock.nowMs() + aheadMs },
    driver: faults.driver,
    onEvent: (event) => events.push(event),
    ...(codec === undefined ? {} : { codec }),
  };
  const opened: SessionStore[] = [];
  const open = (): SessionStore => {
    const store = createSqliteStore(options);
    opened.push(store);
    return store;
  };
  const first = open();
  let current = first;
  return {
    store: first,
    reopen: async () => {
      await current.close();
      current = open();
      return current;
    },
    another: async () => open(),
    files: async () => Promise.all((await readdir(folder)).map((name) => readFile(join(folder, name)))),
    events: () => events,
    advanceClock: (deltaMs) => (aheadMs += deltaMs),
    failNextAppend: (outcome) => faults.failNextCommit(outcome === "unknown" ? "SQLITE_IOERR_WRITE" : "SQLITE_FULL"),
    damageEntry: ({ key }) => {
      const database = new Database(options.path);
      const kept = codec === undefined ? "{" : Buffer.from("{");
      database
        .prepare(
          "UPDATE store_entries SET entry = ? WHERE session = (SELECT session FROM store_sessions WHERE key = ?)",
        )
        .run(kept, key);
      database.close();
    },
    holdElsewhere: ({ namespace, agentId }) =>
      startHolder({ scriptPath: holderScript, args: [options.path, namespace, agentId] }),
    dispose: async () => {
      for (const store of opened) await store.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
