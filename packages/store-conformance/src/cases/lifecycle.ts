import assert from "node:assert/strict";
import { assertFails, assertRefused, refOf, userDraft } from "../case-tools.ts";
import type { ConformanceCase } from "../conformance-case.ts";

export const lifecycleCases: readonly ConformanceCase[] = [
  {
    id: "lifecycle/close-twice",
    demand: "closing again does nothing",
    async run({ store }) {
      await store.close();
      await store.close();
      await Promise.all([store.close(), store[Symbol.asyncDispose]()]);
    },
  },
  {
    id: "lifecycle/dispose-closes",
    demand: "leaving the scope of `await using` closes the handle",
    async run({ store }) {
      await store[Symbol.asyncDispose]();
      await assertFails(store.list(), "STORE_CLOSED");
    },
  },
  {
    id: "lifecycle/load-creates-nothing",
    demand: "loading a session that is not there gives null and leaves nothing behind",
    async run({ store }) {
      assert.equal(await store.load(refOf("nobody")), null);
      assert.equal(await store.load({ ...refOf("nobody"), archiveId: "x" }), null);
      assert.deepEqual((await store.list({ state: "any" })).sessions, []);
    },
  },
  {
    id: "lifecycle/missing-session",
    demand: "what needs a session fails with SESSION_NOT_FOUND and creates none",
    async run({ store }) {
      const ref = refOf("nobody");
      await assertRefused(store.append(ref, [userDraft("one")]), "SESSION_NOT_FOUND");
      await assertRefused(store.move(ref, { kind: "archive" }), "SESSION_NOT_FOUND");
      await assertRefused(store.move(ref, { kind: "rename", key: "agent:main:other" }), "SESSION_NOT_FOUND");
      await assertRefused(store.remove(ref), "SESSION_NOT_FOUND");
      await assertRefused(store.redact(ref, ["r1"], { reason: "test" }), "SESSION_NOT_FOUND");
      assert.deepEqual((await store.list({ state: "any" })).sessions, []);
    },
  },
  {
    id: "lifecycle/missing-session-read",
    demand: "reading a session that is not there fails on the first page, not before",
    async run({ store }) {
      const pages = store.read(refOf("nobody"));
      await assertFails(pages[Symbol.asyncIterator]().next(), "SESSION_NOT_FOUND");
    },
  },
];
