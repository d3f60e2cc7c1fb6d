import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type Clock, type PartialReply, sessionRef } from "@throughline/core";
import { systemClock } from "@throughline/core/internal";
import { type ApiCaller, createSessionApi } from "@throughline/http-api";
import { createSqliteStore } from "@throughline/store-sqlite";
import { expect, it } from "vitest";
import { quickFolder, testFolder } from "../../store-sqlite/test/test-folder.ts";

const ada: ApiCaller = { id: "ada", namespace: "", agents: "*", scopes: ["read", "write"] };
const ref = sessionRef({ key: "agent:main:a" });
const partial: PartialReply = {
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

/** Waits a fiftieth of each time. */
const quickClock: Clock = { nowMs: systemClock.nowMs, sleep: (ms, signal) => systemClock.sleep(ms / 50, signal) };

async function pathWithPartial(): Promise<string> {
  const path = join(testFolder(quickFolder()), "store.sqlite");
  await using store = createSqliteStore({ path });
  await store.save(ref, { sessionId: "a" }, { ifRevision: null });
  const turn = { action: "open", turnId: "t1", owner: "o", leaseUntilMs: Date.now() + 600_000, fence: 1 } as const;
  await store.append(ref, [{ type: "message", message: { role: "user", content: "question" } }], { turn });
  await store.partials?.write(ref, partial);
  return path;
}

it("an open reply that is damaged counts as no text, and its stream goes on", async () => {
  const path = await pathWithPartial();
  const database = new DatabaseSync(path);
  database.exec("UPDATE store_partials SET partial = replace(partial, 'first', 'fitst')");
  database.close();
  await using store = createSqliteStore({ path });
  await expect(store.partials?.read(ref)).rejects.toMatchObject({ code: "STORE_CORRUPT" });

  const api = createSessionApi({ store, clock: quickClock });
  const request = new Request("http://localhost/api/v1/sessions/agent%3Amain%3Aa/events?partial=true");
  const { body } = await api.fetch(request, { caller: ada });
  if (body === null) throw new Error("The stream has no body.");
  let text = "";
  for await (const piece of body.pipeThrough(new TextDecoderStream())) {
    text += piece;
    if (text.includes("event: partial")) break;
    if (!text.includes("event: record"))
      await store.append(ref, [{ type: "note" }], { turn: { action: "within", fence: 1 } });
    else await store.partials?.write(ref, { ...partial, text: "other words", updatedMs: 2 });
  }
  await api.close();
  expect(text).toContain('"text":"other words"');
  expect(text).not.toContain("first");
});
