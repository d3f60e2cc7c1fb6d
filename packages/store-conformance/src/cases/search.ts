import assert from "node:assert/strict";
import { abilityOf, assertFails, createSession, refOf, userDraft } from "../case-tools.ts";
import type { ConformanceCase } from "../conformance-case.ts";
import {
  forkOf,
  foundBy,
  hitsOf,
  requiresSearch as requires,
  saying,
  searchOf as facetOf,
  timed,
} from "../search-tools.ts";

export const searchCases: readonly ConformanceCase[] = [
  {
    id: "search/finds-words",
    demand: "a record is found by its words in any case, and the hit says where it is",
    requires,
    async run({ store }) {
      const ref = await saying(store, "a", ["nothing here", "The Quick brown fox"]);
      const [hit, ...others] = await hitsOf(store, "QUICK");
      assert.ok(hit !== undefined && others.length === 0, "one record is found");
      assert.deepEqual(
        [hit.ref, hit.sessionId, hit.seq, hit.role],
        [{ namespace: ref.namespace, agentId: ref.agentId, key: ref.key }, "session-a", 2, "user"],
      );
      for await (const { records } of store.read(ref, { afterSeq: 1 }))
        assert.deepEqual([hit.id, hit.tsMs], [records[0]?.id, records[0]?.tsMs]);
      assert.deepEqual(await foundBy(store, "quic"), [], "part of a word is not the word");
      assert.deepEqual(await foundBy(store, "quic*"), ["session-a/2"], "but its beginning is, when asked for");
    },
  },
  {
    id: "search/every-word",
    demand: "all words must occur, and those in quotes together",
    requires,
    async run({ store }) {
      await saying(store, "a", ["red apple", "green apple", "apple is red"]);
      assert.deepEqual(await foundBy(store, "apple red"), ["session-a/1", "session-a/3"]);
      assert.deepEqual(await foundBy(store, '"red apple"'), ["session-a/1"]);
      assert.deepEqual(await foundBy(store, "apple blue"), []);
    },
  },
  {
    id: "search/snippet",
    demand: "the snippet shows the words, and its highlights are counted in UTF-16 units",
    requires,
    async run({ store }) {
      await saying(store, "a", [`${"😀 filler ".repeat(100)}the needle is here ${"more ".repeat(100)}`]);
      const [hit] = await hitsOf(store, "needle here");
      assert.ok(hit !== undefined, "the record is found");
      assert.ok(hit.snippet.length < 400, "a snippet is short");
      assert.deepEqual(
        hit.highlights.map(([start, end]) => hit.snippet.slice(start, end)),
        ["needle", "here"],
      );
    },
  },
  {
    id: "search/identifiers",
    demand: "identifiers and paths are found whole and by their parts",
    requires,
    async run({ store }) {
      await saying(store, "a", ["call parseSessionKey", "in src/session_key.ts", "the key of a session"]);
      for (const [text, expected] of [
        ["parseSessionKey", ["session-a/1"]],
        ["parsesessionkey", ["session-a/1"]],
        ["session_key", ["session-a/1", "session-a/2"]],
        ["src/session_key.ts", ["session-a/2"]],
        ["parse", ["session-a/1"]],
      ] as const)
        assert.deepEqual(await foundBy(store, text), expected, text);
    },
  },
  {
    id: "search/scripts",
    demand: "text without spaces between its words is found by any piece of it, and accents make no difference",
    requires,
    async run({ store }) {
      await saying(store, "a", ["这是会话层的测试", "東京タワー", "Un café crème"]);
      for (const [text, expected] of [
        ["会话", ["session-a/1"]],
        ["话层的", ["session-a/1"]],
        ["试", ["session-a/1"]],
        ["话会", []],
        ["タワー", ["session-a/2"]],
        ["CAFE", ["session-a/3"]],
      ] as const)
        assert.deepEqual(await foundBy(store, text), expected, text);
    },
  },
  {
    id: "search/filters-sessions",
    demand: "hits are limited to a namespace, an agent, a key, a session and a state",
    requires,
    async run({ store }) {
      const ref = await saying(store, "a", ["word"]);
      await saying(store, "b", ["word"], { agentId: "other" });
      await saying(store, "c", ["word"], { namespace: "apart" });
      const old = await saying(store, "d", ["word"]);
      await store.move(old, { kind: "archive" });
      assert.deepEqual(await foundBy(store, "word"), ["session-a/1", "session-b/1", "session-d/1"]);
      assert.deepEqual(await foundBy(store, { text: "word", namespace: "apart" }), ["session-c/1"]);
      assert.deepEqual(await foundBy(store, { text: "word", agentId: "other" }), ["session-b/1"]);
      assert.deepEqual(await foundBy(store, { text: "word", key: ref.key }), ["session-a/1"]);
      assert.deepEqual(await foundBy(store, { text: "word", state: "archived" }), ["session-d/1"]);
      assert.deepEqual(await foundBy(store, { text: "word", state: "active" }), ["session-a/1", "session-b/1"]);
      assert.equal((await hitsOf(store, { text: "word", key: old.key }))[0]?.ref.archiveId, "session-d");
      // A key that was reset has several sessions. A search by session id must find each one, whatever the limit.
      await saying(store, "d2", ["word word word", "word word"], { key: old.key });
      const limited = { text: "word", key: old.key, limit: 1 };
      assert.deepEqual(await foundBy(store, { ...limited, sessionId: "session-d" }), ["session-d/1"]);
      assert.deepEqual(await foundBy(store, { ...limited, sessionId: "session-d", state: "active" }), []);
      assert.deepEqual(await foundBy(store, { text: "word", sessionId: "session-b" }), ["session-b/1"]);
      assert.deepEqual(await foundBy(store, { text: "word", sessionId: "session-none" }), []);
    },
  },
  {
    id: "search/forks",
    demand:
      "a shared record counts when any session that shows it passes the filters, and the hit names one that passes",
    requires: ({ search, fork }) => search && fork,
    async run({ store }) {
      const ref = await saying(store, "a", ["shared word", "later word"]);
      const fork = refOf("b");
      await forkOf(store).fork(ref, fork, { sessionId: "session-b", atSeq: 1 });
      await forkOf(store).fork(fork, refOf("c"), { sessionId: "session-c" });
      await store.append(fork, [userDraft("own word")]);
      const all = ["session-a/1", "session-a/2", "session-b/2"];
      assert.deepEqual(await foundBy(store, "word"), all, "once, in the session that wrote it");
      assert.deepEqual(await foundBy(store, { text: "word", key: fork.key }), ["session-b/1", "session-b/2"]);
      assert.deepEqual(await foundBy(store, { text: "word", sessionId: "session-c" }), ["session-c/1"]);
      assert.equal((await hitsOf(store, { text: "word", sessionId: "session-c" }))[0]?.ref.key, refOf("c").key);
      await store.move(ref, { kind: "archive" });
      const active = { text: "word", state: "active" } as const;
      assert.deepEqual(await foundBy(store, active), ["session-b/1", "session-b/2"], "the oldest fork that passes");
      assert.deepEqual(await foundBy(store, { ...active, state: "archived" }), ["session-a/1", "session-a/2"]);
      assert.deepEqual(await foundBy(store, "word"), all);
      await store.move(fork, { kind: "archive" });
      assert.deepEqual(await foundBy(store, active), ["session-c/1"], "also through a fork that does not pass");
      await store.remove(refOf("c"));
      assert.deepEqual(await foundBy(store, active), []);
    },
  },
  {
    id: "search/forks-redacted",
    demand: "what a fork redacts of what it shares is found in none of the sessions that share it",
    requires: ({ search, fork }) => search && fork,
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("secretword", { id: "r1" }), userDraft("keptword", { id: "r2" })]);
      await forkOf(store).fork(ref, refOf("b"), { sessionId: "session-b" });
      await store.move(ref, { kind: "archive" });
      assert.deepEqual(await foundBy(store, { text: "secretword", state: "active" }), ["session-b/1"]);
      await store.redact(refOf("b"), ["r1"], { reason: "test" });
      for (const state of ["active", "archived", "any"] as const)
        assert.deepEqual(await foundBy(store, { text: "secretword", state }), [], state);
      assert.deepEqual(await foundBy(store, { text: "keptword", state: "active" }), ["session-b/2"]);
    },
  },
  {
    id: "search/filters-records",
    demand: "hits are limited to a role, a tool and a time",
    requires,
    async run({ store }) {
      const ref = await createSession(store, "a");
      const call = { type: "toolCall", id: "c1", name: "web_search", arguments: { query: "word" } };
      await store.append(ref, [
        timed("word", "2026-01-01T00:00:00.000Z"),
        { type: "message", timestamp: "2026-01-02T00:00:00.000Z", message: { role: "assistant", content: [call] } },
        {
          type: "message",
          timestamp: "2026-01-03T00:00:00.000Z",
          message: { role: "toolResult", toolCallId: "c1", toolName: "web_search", content: "word" },
        },
      ]);
      const day = (number: number): number => Date.UTC(2026, 0, number);
      assert.deepEqual(await foundBy(store, { text: "word", role: "user" }), ["session-a/1"]);
      assert.deepEqual(await foundBy(store, { text: "word", tool: "web_search" }), ["session-a/2", "session-a/3"]);
      assert.deepEqual(await foundBy(store, { text: "word", tool: "web" }), []);
      assert.deepEqual(await foundBy(store, { text: "word", sinceMs: day(2) }), ["session-a/2", "session-a/3"]);
      assert.deepEqual(await foundBy(store, { text: "word", untilMs: day(2) }), ["session-a/1"]);
    },
  },
  {
    id: "search/hostile",
    demand: "nothing in the text of a search is an operator, and what has no words finds nothing",
    requires,
    async run({ store }) {
      await saying(store, "a", ["or 1 near b words x"]);
      for (const text of ["') OR 1=1 --", "NEAR(b x)", "words : x", "1 AND *", '"', '""', "^or", "x NOT b", "\ud800"])
        await hitsOf(store, text);
      assert.deepEqual(await foundBy(store, "x OR missing"), []);
      assert.deepEqual(await foundBy(store, "x -b"), ["session-a/1"]);
      for (const text of ["", "  ", "*", "()[]{}"]) assert.deepEqual(await foundBy(store, text), [], text);
      await assertFails(hitsOf(store, "x".repeat(1001)), "INPUT_INVALID");
    },
  },
  {
    id: "search/best-first",
    demand: "hits come best first, and no more than asked for",
    requires,
    async run({ store }) {
      await saying(store, "a", ["word ".repeat(8), `word ${"other ".repeat(200)}`, "nothing", "word and some more"]);
      const hits = await hitsOf(store, "word");
      const scores = hits.map(({ score }) => score);
      assert.deepEqual(
        scores,
        scores.toSorted((one, other) => other - one),
      );
      assert.deepEqual([hits[0]?.seq, hits.at(-1)?.seq], [1, 2]);
      assert.deepEqual(
        (await hitsOf(store, { text: "word", limit: 1 })).map(({ seq }) => seq),
        [1],
      );
      await assertFails(hitsOf(store, { text: "word", limit: 0 }), "INPUT_INVALID");
    },
  },
  {
    id: "search/acknowledged",
    demand: "what was acknowledged is found at once, and nothing lags behind a search",
    requires,
    async run({ store }) {
      const ref = await saying(store, "a", ["first"]);
      assert.deepEqual(await foundBy(store, "first"), ["session-a/1"]);
      await store.append(ref, [userDraft("second")]);
      assert.deepEqual(await foundBy(store, "second"), ["session-a/2"]);
      assert.equal(await facetOf(store).lag(), 0);
    },
  },
  {
    id: "search/redacted",
    demand: "what was redacted or purged is not found, nor kept in the index",
    requires,
    needs: ["files"],
    async run({ under, store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("secretword one", { id: "r1" }), userDraft("keepword two", { id: "r2" })]);
      const other = await saying(store, "b", ["purgedword three"]);
      assert.equal((await foundBy(store, "secretword")).length, 1);
      assert.equal((await foundBy(store, "purgedword")).length, 1);
      await store.redact(ref, ["r1"], { reason: "test" });
      await store.remove(other, { purge: true });
      for (const text of ["secretword", "purgedword"]) assert.deepEqual(await foundBy(store, text), [], text);
      assert.deepEqual(await foundBy(store, "keepword"), ["session-a/2"]);
      const kept = await abilityOf(under, "files")();
      for (const bytes of kept) assert.doesNotMatch(Buffer.from(bytes).toString("latin1"), /secretword|purgedword/);
      await saying(store, "c", ["afterwards"]);
      assert.deepEqual(await foundBy(store, "afterwards"), ["session-c/1"]);
    },
  },
  {
    id: "search/renamed",
    demand: "a hit has the address its session has now",
    requires,
    async run({ store }) {
      const ref = await saying(store, "a", ["word"]);
      await hitsOf(store, "word");
      await store.move(ref, { kind: "rename", key: refOf("b").key });
      assert.equal((await hitsOf(store, "word"))[0]?.ref.key, refOf("b").key);
    },
  },
];
