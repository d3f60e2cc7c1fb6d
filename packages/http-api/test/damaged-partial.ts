import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type PartialReply, type SessionRef, sessionRef, type SessionStore } from "@throughline/core";
import { createSqliteStore } from "@throughline/store-sqlite";
import { quickFolder, testFolder } from "../../store-sqlite/test/test-folder.ts";

export const ref: SessionRef = sessionRef({ key: "agent:main:a" });
export const partial: PartialReply = {
  v: 1,
  sessionId: "a",
  turnId: "t1",
  fence: 1,
  step: 1,
  attempt: 0,
  afterSeq: 1,
  provider: null,
  api: null,
  model: null,
  text: "the first words",
  updatedMs: 1,
};

async function pathWithPartial(): Promise<string> {
  const path = join(testFolder(quickFolder()), "store.sqlite");
  await using store = createSqliteStore({ path });
  await store.save(ref, { sessionId: "a" }, { ifRevision: null });
  const turn = { action: "open", turnId: "t1", owner: "o", leaseUntilMs: Date.now() + 600_000, fence: 1 } as const;
  await store.append(ref, [{ type: "message", message: { role: "user", content: "question" } }], { turn });
  await store.partials?.write(ref, partial);
  return path;
}

/** Opens a store whose session `a` has an open turn. A letter of its open reply has changed. */
export async function damagedStore(): Promise<SessionStore> {
  const path = await pathWithPartial();
  const database = new DatabaseSync(path);
  database.exec("UPDATE store_partials SET partial = replace(partial, 'first', 'fitst')");
  database.close();
  return createSqliteStore({ path });
}
