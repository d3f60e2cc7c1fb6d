import assert from "node:assert/strict";
import { hasErrorCode } from "@throughline/core";
import { assertRefused, createSession, readTexts, refOf, userDraft } from "../case-tools.ts";
import type { ConformanceCase } from "../conformance-case.ts";

const hostileKeys = [
  "__proto__",
  "constructor",
  "toString",
  "../../../etc/passwd",
  "..",
  "a/b\\c",
  "C:\\x:y",
  "%2e%2e%2f",
  "a b'c\"d;--",
  "*?<>|",
  "caf\u00e9",
  "cafe\u0301",
  "漢字 😀",
  "null",
  "x".repeat(512),
];

export const isolationCases: readonly ConformanceCase[] = [
  {
    id: "isolation/sessions",
    demand: "two sessions share nothing",
    async run({ store }) {
      const [one, two] = [await createSession(store, "a"), await createSession(store, "b", { entry: { label: "b" } })];
      await store.append(one, [userDraft("one")], { entry: { label: "a" }, windowFromSeq: 1 });
      await store.append(two, [userDraft("two")]);
      await store.append(one, [userDraft("three")]);
      assert.deepEqual([await readTexts(store, one), await readTexts(store, two)], [["one", "three"], ["two"]]);
      const state = await store.load(two);
      assert.deepEqual([state?.entry.label, state?.head.windowSeq, state?.messageCount], ["b", null, 1]);
    },
  },
  {
    id: "isolation/agents",
    demand: "the same key under two agents is two sessions",
    async run({ store }) {
      const key = "agent:main:shared";
      const one = await createSession(store, "a", { key });
      const two = await createSession(store, "a", { key, agentId: "other" });
      await store.append(one, [userDraft("one")]);
      assert.deepEqual([await readTexts(store, one), await readTexts(store, two)], [["one"], []]);
      await store.remove(one, { purge: true });
      assert.notEqual(await store.load(two), null);
    },
  },
  {
    id: "isolation/namespaces",
    demand: "the same agent and key in two namespaces are two sessions",
    async run({ store }) {
      const one = await createSession(store, "a");
      const two = await createSession(store, "a", { namespace: "tenant" });
      await store.append(two, [userDraft("two")]);
      assert.deepEqual([await readTexts(store, one), await readTexts(store, two)], [[], ["two"]]);
      assert.equal((await store.list()).sessions.length, 1);
      assert.equal(await store.load(refOf("a", { namespace: "third" })), null);
    },
  },
  {
    id: "isolation/second-page",
    demand:
      "later pages of a list hold sessions of the query's namespace alone, and a cursor of another one leaks none",
    async run({ store }) {
      for (const namespace of ["", "tenant"])
        for (const name of ["a", "b", "c", "d"]) await createSession(store, `${name}${namespace}`, { namespace });
      for (const sort of ["updated", "key"] as const)
        for (const namespace of ["", "tenant"]) {
          const query = { namespace, sort, limit: 2, state: "any" } as const;
          const first = await store.list(query);
          assert.notEqual(first.nextCursor, null);
          const cursor = first.nextCursor ?? "";
          const second = await store.list({ ...query, cursor });
          const seen = [...first.sessions, ...second.sessions];
          assert.deepEqual(
            seen.map(({ ref }) => ref.namespace),
            Array.from({ length: 4 }, () => namespace),
          );
          assert.equal(new Set(seen.map(({ sessionId }) => sessionId)).size, 4);
          const other = namespace === "" ? "tenant" : "";
          const leaked = await store.list({ ...query, namespace: other, cursor }).catch((error: unknown) => {
            assert.ok(hasErrorCode(error, "CURSOR_INVALID"), String(error));
            return { sessions: [] };
          });
          assert.ok(leaked.sessions.every(({ ref }) => ref.namespace === other));
        }
    },
  },
  {
    id: "isolation/keys-differing-by-case",
    demand: "keys that differ by case are two sessions",
    async run({ store }) {
      const one = await createSession(store, "a", { key: "agent:main:Key" });
      const two = await createSession(store, "b", { key: "agent:main:key" });
      await store.append(one, [userDraft("one")]);
      assert.deepEqual([await readTexts(store, one), await readTexts(store, two)], [["one"], []]);
    },
  },
  {
    id: "isolation/hostile-keys",
    demand: "a key is only a key: names of properties, paths, quotes and any script, each by itself",
    async run({ store }) {
      for (const [index, key] of hostileKeys.entries()) {
        const ref = await createSession(store, `n${index}`, { key });
        await store.append(ref, [userDraft(key)]);
      }
      for (const key of hostileKeys) assert.deepEqual(await readTexts(store, refOf("", { key })), [key]);
      const listed = (await store.list({ sort: "key" })).sessions.map(({ ref }) => ref.key);
      assert.deepEqual(listed.toSorted(), hostileKeys.toSorted());
    },
  },
  {
    id: "isolation/keys-no-store-keeps",
    demand: "a session begins at no key with a NUL, half a character or more than 2,000 bytes, whoever made the ref",
    async run({ store }) {
      for (const key of ["agent:main:a\0b", "agent:main:\ud800", "x".repeat(2001), "漢".repeat(700)]) {
        await assertRefused(createSession(store, "a", { key }), "KEY_INVALID");
        const ref = refOf("a", { key });
        assert.equal(await store.load(ref), null);
        await assertRefused(store.append(ref, [userDraft("x")]), "SESSION_NOT_FOUND");
      }
      assert.deepEqual((await store.list()).sessions, []);
      await createSession(store, "a", { key: "x".repeat(2000) });
    },
  },
];
