import { expect, it } from "vitest";
import { createMemoryStore } from "@throughline/store-memory";
import { sessionRef } from "@throughline/core";
import { RecordsAround } from "../../src/search/records-around.ts";

it("reads the surroundings of each hit in a turn of the event loop of its own", async () => {
  await using store = createMemoryStore();
  const ref = sessionRef({ key: "agent:main:long" });
  await store.save(ref, { sessionId: "long" }, { ifRevision: null });
  const drafts = Array.from({ length: 600 }, (_, index) => ({
    type: "message",
    message: { role: "user", content: `${index}` },
  }));
  await store.append(ref, drafts);
  const { signal } = new AbortController();
  let turns = 0;
  const count = (): void => {
    turns += 1;
    counting = setImmediate(count);
  };
  let counting = setImmediate(count);
  const turnsAtRead: number[] = [];
  const storeOf = (): typeof store => {
    turnsAtRead.push(turns);
    return store;
  };
  const around = new RecordsAround({ storeOf, signal: () => signal });
  for (let hit = 0; hit < 30; hit++) await around.add({ ref, sessionId: "long", seq: 10 + hit * 19 });
  expect((await around.episodes()).length).toBeGreaterThan(30);
  clearImmediate(counting);
  expect(turnsAtRead.length).toBeGreaterThanOrEqual(30);
  // A surrounding is read in one read, and in two more where the messages of the user are farther away.
  const perTurn = Map.groupBy(turnsAtRead, (turn) => turn);
  expect(Math.max(...perTurn.values().map((reads) => reads.length))).toBe(1);
});
