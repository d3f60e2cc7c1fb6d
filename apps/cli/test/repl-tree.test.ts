import { sessionRef, type StoredRecord } from "@throughline/core";
import { createMemoryStore } from "@throughline/store-memory";
import { systemClock } from "@throughline/core/internal";
import { beforeMessage, moveStoredHead, readBranchPlace } from "@throughline/session/internal";
import { expect, it } from "vitest";
import { branchOf, treeOf } from "../src/chat/repl-tree.ts";
import { assistant, user } from "./harness.ts";

const ref = sessionRef({ key: "k" });

it("tells the branch of the head from the records of all branches, also past side records", async () => {
  await using store = createMemoryStore();
  await store.save(ref, { sessionId: "s" }, { ifRevision: null });
  await store.append(ref, [user("first"), assistant("Hi."), { type: "custom", appendMode: "side" }, user("second")]);
  const all = async (): Promise<readonly StoredRecord[]> => {
    const records: StoredRecord[] = [];
    for await (const page of store.read(ref)) records.push(...page.records);
    return records;
  };
  const second = (await all()).at(-1);
  const signal = new AbortController().signal;
  const place = await readBranchPlace({ store, ref, clock: systemClock, signal });
  // The record before it on the path may be a side record, to which no head can move.
  await moveStoredHead(place, beforeMessage(second?.id ?? ""));
  await store.append(ref, [user("third")]);
  const records = await all();
  const { head } = (await store.load(ref)) ?? { head: { headId: null } };
  const branch = branchOf(records, head.headId);
  expect(records.filter(({ id }) => branch.has(id)).map(({ type }) => type)).not.toContain("custom");
  expect([branch.has(second?.id ?? ""), branch.has(records[0]?.id ?? "")]).toEqual([false, true]);
  expect(treeOf(records).map(({ stored }) => stored.type)).toEqual(Array(4).fill("message"));
  expect(branchOf([], "gone").size).toBe(0);
});
