import assert from "node:assert/strict";
import { assertRefused, createSession, noteDraft, readTexts, userDraft } from "../case-tools.ts";
import type { ConformanceCase } from "../conformance-case.ts";

export const expectCases: readonly ConformanceCase[] = [
  {
    id: "expect/right-head",
    demand: "an append that expects the true head passes",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one", { id: "r1" })], { expect: { head: null } });
      await store.append(ref, [userDraft("two")], { expect: { head: "r1" } });
      assert.deepEqual(await readTexts(store, ref), ["one", "two"]);
    },
  },
  {
    id: "expect/stale-head",
    demand: "an append that expects another head is refused whole",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one", { id: "r1" }), userDraft("two", { id: "r2" })]);
      await assertRefused(store.append(ref, [userDraft("three")], { expect: { head: "r1" } }), "APPEND_CONFLICT");
      assert.deepEqual(await readTexts(store, ref), ["one", "two"]);
    },
  },
  {
    id: "expect/no-head",
    demand: "expecting no head is refused once there is one",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one")]);
      await assertRefused(store.append(ref, [userDraft("two")], { expect: { head: null } }), "APPEND_CONFLICT");
    },
  },
  {
    id: "expect/side-records",
    demand: "side records change nothing about the expected head",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [noteDraft("before")], { expect: { head: null } });
      await store.append(ref, [userDraft("one", { id: "r1" })], { expect: { head: null } });
      await store.append(ref, [noteDraft("after")]);
      await store.append(ref, [userDraft("two")], { expect: { head: "r1" } });
    },
  },
  {
    id: "expect/one-wins",
    demand: "of several appends at once that expect the same head, one passes",
    async run({ store }) {
      const ref = await createSession(store, "a");
      const attempts = ["a", "b", "c", "d"].map((text) =>
        store.append(ref, [userDraft(text)], { expect: { head: null } }),
      );
      const settled = await Promise.allSettled(attempts);
      assert.equal(settled.filter(({ status }) => status === "fulfilled").length, 1);
      assert.equal((await readTexts(store, ref)).length, 1);
    },
  },
];

export const sidesCases: readonly ConformanceCase[] = [
  {
    id: "sides/head-stays",
    demand: "a side record hangs on the head and leaves it where it is",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one", { id: "r1" })]);
      const label = { type: "label", targetId: "r1", label: "start" };
      const { records, head } = await store.append(ref, [
        noteDraft("n"),
        label,
        userDraft("aside", { appendMode: "side" }),
      ]);
      assert.deepEqual(
        records.map(({ side, parentId }) => [side, parentId]),
        [
          [true, "r1"],
          [true, "r1"],
          [true, "r1"],
        ],
      );
      assert.equal(head.headId, "r1");
      assert.equal((await store.append(ref, [userDraft("two")])).records[0]?.parentId, "r1");
    },
  },
  {
    id: "sides/mixed-batch",
    demand: "inside a batch a side record hangs on the main record before it",
    async run({ store }) {
      const ref = await createSession(store, "a");
      const { records, head } = await store.append(ref, [
        userDraft("one", { id: "r1" }),
        noteDraft("n"),
        userDraft("two", { id: "r2" }),
        noteDraft("m"),
      ]);
      assert.deepEqual(
        records.map(({ parentId }) => parentId),
        [null, "r1", "r1", "r2"],
      );
      assert.equal(head.headId, "r2");
    },
  },
  {
    id: "sides/rewind",
    demand: "a rewind moves the head back; the next record branches there",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one", { id: "r1" }), userDraft("two", { id: "r2" })]);
      const { head } = await store.append(ref, [{ type: "leaf", targetId: "r1" }], { rewindTo: "r1" });
      assert.equal(head.headId, "r1");
      assert.equal((await store.load(ref))?.head.headId, "r1");
      await store.append(ref, [userDraft("other", { id: "r3" })], { expect: { head: "r1" } });
      await store.append(ref, [{ type: "leaf", targetId: null }], { rewindTo: null });
      assert.equal(
        (await store.append(ref, [userDraft("fresh")], { expect: { head: null } })).records[0]?.parentId,
        null,
      );
    },
  },
  {
    id: "sides/message-count",
    demand: "messageCount counts the records of type message",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [
        userDraft("one"),
        noteDraft("n"),
        { type: "model_change", provider: "p", modelId: "m" },
        userDraft("two"),
      ]);
      assert.equal((await store.load(ref))?.messageCount, 2);
    },
  },
  {
    id: "sides/window",
    demand: "the window is kept as the last writer stated it",
    async run({ store }) {
      const ref = await createSession(store, "a");
      assert.equal((await store.load(ref))?.head.windowSeq, null);
      await store.append(ref, [userDraft("one"), userDraft("two")], { windowFromSeq: 2 });
      assert.equal((await store.load(ref))?.head.windowSeq, 2);
      assert.equal((await store.append(ref, [userDraft("three")])).head.windowSeq, 2);
      assert.equal((await store.load(ref))?.head.windowSeq, 2);
    },
  },
];
