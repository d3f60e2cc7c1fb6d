import assert from "node:assert/strict";
import type { SearchQuery, SessionStore } from "@throughline/core";
import { abilityOf, assertFails, createSession, refOf, userDraft } from "../case-tools.ts";
import type { ConformanceCase } from "../conformance-case.ts";
import { forkOf, foundBy, hitsOf, requiresSearch as requires, saying, timed } from "../search-tools.ts";

async function anyOf(store: SessionStore, ...words: readonly string[]): Promise<string[]> {
  return foundBy(store, { anyOf: words });
}

/** Returns the hits as `<session id>/<seq>`, in the order of the store. */
async function ranked(store: SessionStore, query: SearchQuery): Promise<string[]> {
  return (await hitsOf(store, query)).map(({ sessionId, seq }) => `${sessionId}/${seq}`);
}

export const searchAnyOfCases: readonly ConformanceCase[] = [
  {
    id: "search-any-of/some",
    demand: "a record with one of the words is found, and the words are marked where they stand",
    requires,
    async run({ store }) {
      await saying(store, "a", ["red apple", "green pear", "blue plum"]);
      assert.deepEqual(await anyOf(store, "red", "plum", "missing"), ["session-a/1", "session-a/3"]);
      assert.deepEqual(await anyOf(store, "missing"), []);
      assert.deepEqual(await anyOf(store), []);
      const [hit] = await hitsOf(store, { anyOf: ["pears"] });
      assert.deepEqual(
        hit?.highlights.map(([start, end]) => hit.snippet.slice(start, end)),
        ["pear"],
      );
    },
  },
  {
    id: "search-any-of/inflections",
    demand: "a word is found in its other forms, and no other word is",
    requires,
    async run({ store }) {
      await saying(store, "a", ["the compactions ran", "it was compacted", "a compactor", "Это сообщение", "Un CAFÉ"]);
      assert.deepEqual(await anyOf(store, "Compaction"), ["session-a/1", "session-a/2"]);
      assert.deepEqual(await anyOf(store, "running"), [], "irregular forms are other words");
      assert.deepEqual(await anyOf(store, "сообщения"), ["session-a/4"]);
      assert.deepEqual(await anyOf(store, "cafes"), ["session-a/5"]);
      assert.deepEqual(await anyOf(store, "comp"), [], "the beginning of a word is not the word");
    },
  },
  {
    id: "search-any-of/identifiers",
    demand: "identifiers are found in one piece and by their parts, and words with digits as they are",
    requires,
    async run({ store }) {
      await saying(store, "a", [
        "call parseSessionKey",
        "call parsesessionkey",
        "sessions here",
        "utf8",
        "utf81 会话层",
      ]);
      assert.deepEqual(await anyOf(store, "parsesessionkey"), ["session-a/1", "session-a/2"]);
      assert.deepEqual(await anyOf(store, "session_id"), ["session-a/1", "session-a/3"]);
      assert.deepEqual(await anyOf(store, "utf8"), ["session-a/4"]);
      assert.deepEqual(await anyOf(store, "话层"), ["session-a/5"]);
    },
  },
  {
    id: "search-any-of/best-first",
    demand: "rarer words and more of the words come first, equal records newest first, and no more than asked for",
    requires,
    async run({ store }) {
      const filler = Array.from({ length: 12 }, () => "common thing");
      await saying(store, "a", ["rare thing", "common rare", ...filler]);
      await saying(store, "b", ["unlike", "common thing"]);
      const anyWord = ["common", "rare"];
      const best = await ranked(store, { anyOf: anyWord });
      assert.deepEqual(best.slice(0, 4), ["session-a/2", "session-a/1", "session-b/2", "session-a/14"]);
      const scores = (await hitsOf(store, { anyOf: anyWord })).map(({ score }) => score);
      assert.deepEqual(
        scores,
        scores.toSorted((one, other) => other - one),
      );
      assert.deepEqual(await ranked(store, { anyOf: anyWord, limit: 1 }), best.slice(0, 1));
    },
  },
  {
    id: "search-any-of/filters",
    demand: "hits are limited to a namespace, an agent, a key, a session, a state, a role, a tool and a time",
    requires,
    async run({ store }) {
      const ref = await saying(store, "a", ["words"]);
      await saying(store, "b", ["words"], { agentId: "other" });
      await saying(store, "c", ["words"], { namespace: "apart" });
      await store.move(await saying(store, "d", ["words"]), { kind: "archive" });
      const call = { type: "toolCall", id: "c1", name: "web_search", arguments: { query: "word" } };
      await store.append(ref, [
        { type: "message", timestamp: "2026-01-02T00:00:00.000Z", message: { role: "assistant", content: [call] } },
        timed("word", "2026-01-03T00:00:00.000Z"),
      ]);
      const found = (filters: Partial<SearchQuery>): Promise<string[]> =>
        foundBy(store, { anyOf: ["word", "absent"], ...filters });
      const ofA = ["session-a/1", "session-a/2", "session-a/3"];
      const day = (number: number): number => Date.UTC(2026, 0, number);
      assert.deepEqual(await found({}), [...ofA, "session-b/1", "session-d/1"]);
      assert.deepEqual(await found({ namespace: "apart" }), ["session-c/1"]);
      assert.deepEqual(await found({ agentId: "other" }), ["session-b/1"]);
      assert.deepEqual(await found({ key: ref.key }), ofA);
      assert.deepEqual(await found({ sessionId: "session-b" }), ["session-b/1"]);
      assert.deepEqual(await found({ state: "archived" }), ["session-d/1"]);
      assert.deepEqual(await found({ role: "assistant" }), ["session-a/2"]);
      assert.deepEqual(await found({ tool: "web_search" }), ["session-a/2"]);
      assert.deepEqual(await found({ untilMs: day(3) }), ["session-a/2"]);
      assert.deepEqual(await found({ key: ref.key, sinceMs: day(3) }), ["session-a/1", "session-a/3"]);
      assert.deepEqual(await found({ sessionId: "session-d", limit: 1 }), ["session-d/1"], "the limit counts hits");
    },
  },
  {
    id: "search-any-of/forks",
    demand: "a record that sessions share is found once, in the session that wrote it if that passes",
    requires: ({ search, fork }) => search && fork,
    async run({ store }) {
      const ref = await saying(store, "a", ["shared words"]);
      await forkOf(store).fork(ref, refOf("b"), { sessionId: "session-b" });
      await store.append(refOf("b"), [userDraft("own word")]);
      assert.deepEqual(await anyOf(store, "word"), ["session-a/1", "session-b/2"]);
      assert.deepEqual(await foundBy(store, { anyOf: ["shared"], key: refOf("b").key }), ["session-b/1"]);
    },
  },
  {
    id: "search-any-of/redacted",
    demand: "what was redacted or purged is not found, and its stems are kept nowhere",
    requires,
    needs: ["files"],
    async run({ under, store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("hidings one", { id: "r1" }), userDraft("keepings two", { id: "r2" })]);
      const other = await saying(store, "b", ["vanishings three"]);
      assert.deepEqual(await anyOf(store, "hiding", "vanishing"), ["session-a/1", "session-b/1"]);
      await store.redact(ref, ["r1"], { reason: "test" });
      await store.remove(other, { purge: true });
      assert.deepEqual(await anyOf(store, "hiding", "vanishing"), []);
      assert.deepEqual(await anyOf(store, "keeping"), ["session-a/2"]);
      const kept = await abilityOf(under, "files")();
      for (const bytes of kept) assert.doesNotMatch(Buffer.from(bytes).toString("latin1"), /hiding|vanishing/);
    },
  },
  {
    id: "search-any-of/acknowledged",
    demand: "what was acknowledged is found at once",
    requires,
    async run({ store }) {
      const ref = await saying(store, "a", ["first words"]);
      assert.deepEqual(await anyOf(store, "word"), ["session-a/1"]);
      await store.append(ref, [userDraft("second words")]);
      assert.deepEqual(await anyOf(store, "word"), ["session-a/1", "session-a/2"]);
    },
  },
  {
    id: "search-any-of/refused",
    demand: "a search takes either a text or words, and nothing in a word is an operator",
    requires,
    async run({ store }) {
      await saying(store, "a", ["or 1 near b words x"]);
      await assertFails(hitsOf(store, {}), "INPUT_INVALID");
      await assertFails(hitsOf(store, { text: "x", anyOf: ["x"] }), "INPUT_INVALID");
      await assertFails(hitsOf(store, { anyOf: Array.from({ length: 65 }, () => "x") }), "INPUT_INVALID");
      await assertFails(hitsOf(store, { anyOf: ["x".repeat(1001)] }), "INPUT_INVALID");
      await assertFails(hitsOf(store, { anyOf: [1] as never }), "INPUT_INVALID");
      const hostile = ["') OR 1=1 --", "words : absent", "NEAR(", '"', "^", "*", "\ud800", "\0", "{stems}"];
      for (const word of hostile) await hitsOf(store, { anyOf: [word] });
      for (const word of ["absent OR", "wor*", "(", "  "])
        assert.deepEqual(await anyOf(store, word), word.includes("OR") ? ["session-a/1"] : [], word);
    },
  },
];
