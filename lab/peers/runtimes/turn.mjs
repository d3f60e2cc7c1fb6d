// A turn of the facade with a tool on each store that a runtime has, read again by a second handle, from installed packages.
// Prints the store that is done, a line each. A store that keeps the process alive behind its close makes this program hang.
// node turn.mjs memory|jsonl|sqlite|sqlite-worker
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { offline } from "@throughline/models/offline";
import { createSessions } from "@throughline/session";

const [name = ""] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "throughline-turn-"));
const path = join(folder, "store.db");

const creates = {
  memory: async () => {
    const { createMemoryData, createMemoryStore } = await import("@throughline/store-memory");
    const data = createMemoryData();
    return () => createMemoryStore({ data });
  },
  jsonl: async () => {
    const { createJsonlStore } = await import("@throughline/store-jsonl");
    return () => createJsonlStore({ root: folder });
  },
  sqlite: async () => {
    const { createSqliteStore } = await import("@throughline/store-sqlite");
    return () => createSqliteStore({ path });
  },
};

async function withSession(create, use) {
  const store = create();
  const sessions = createSessions({ store, model: offline() });
  await use(await sessions.open("home"), store);
  await sessions.close();
  await store.close();
}

try {
  const make = creates[name];
  if (make === undefined) throw new Error(`there is no store "${name}"`);
  const create = await make();
  let said = "";
  await withSession(create, async (session) => {
    const turn = await session.runTurn("Hello");
    assert.equal(turn.outcome, "done");
    assert.notEqual(turn.text, "");
    said = turn.text;
  });
  await withSession(create, async (session, store) => {
    assert.equal(session.interruptedTurn, null);
    assert.equal((await session.runTurn("Again")).outcome, "done");
    const { messages } = await session.transcript();
    assert.equal(messages.length, 4);
    assert.ok(JSON.stringify(messages).includes(JSON.stringify(said).slice(1, -1)));
    if (name === "sqlite") {
      await store.maintenance.backup(join(folder, "copy.db"));
      assert.ok(statSync(join(folder, "copy.db")).size > 0);
    }
  });
  process.stdout.write("done\n");
} finally {
  rmSync(folder, { recursive: true, force: true });
}
