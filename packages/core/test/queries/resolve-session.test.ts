import { describe, expect, it } from "vitest";
import { createMemoryStore } from "@throughline/store-memory";
import { sessionRef } from "@throughline/core";
import type { SessionStore } from "@throughline/core";
import { matchSession, resolveSession, type SessionCandidate } from "../../src/queries/resolve-session.ts";

const candidate = (
  key: string,
  sessionId: string,
  label: string | null = null,
  isArchived = false,
  title: string | null = null,
): SessionCandidate => ({
  key,
  sessionId,
  label,
  title,
  isArchived,
});

const sessions: readonly SessionCandidate[] = [
  candidate("agent:main:main", "11111111-aaaa", "Home"),
  candidate("agent:main:discord:direct:ada", "11112222-bbbb", "Ada"),
  candidate("agent:main:discord:dm:bob", "22223333-cccc", "Bob and Ada"),
  candidate("agent:main:discord:group:77", "33334444-dddd", "home improvement"),
  candidate("notes", "44445555-eeee"),
  candidate("notes-2", "55556666-ffff", "Notes, continued"),
  candidate("55556666-ffff", "66667777-abcd", "a key that is another's id"),
  candidate("agent:main:old", "77778888-dead", "Gone", true),
  candidate("agent:main:main", "88889999-dead", "Home, before", true),
  candidate("Straße", "99990000-beef", "ÄÖÜ"),
  candidate("main:slack:C9", "aaaabbbb-1234", "C9"),
  candidate("agent:main:import:direct:1", "bbbbcccc-1234", null, false, "Fix the login bug in login.ts"),
  candidate("agent:main:import:direct:2", "ccccdddd-1234", null, false, "Refactor the auth module"),
  candidate("agent:main:import:direct:3", "ddddeeee-1234", "Payments", false, "Refactor the payment module"),
  candidate("agent:main:gone", "eeeeffff-1234", null, true, "An archived quest"),
];

/** What is typed, and the id it finds, or how many it fits. */
const table: readonly (readonly [text: string, expected: string | number])[] = [
  ["agent:main:main", "11111111-aaaa"],
  ["agent:main:discord:direct:ada", "11112222-bbbb"],
  // `dm` and `direct` are two spellings of one kind, whichever is stored.
  ["agent:main:discord:dm:ada", "11112222-bbbb"],
  ["agent:main:discord:direct:bob", "22223333-cccc"],
  ["agent:main:discord:dm:bob", "22223333-cccc"],
  ["agent:main:discord:group:77", "33334444-dddd"],
  ["notes", "44445555-eeee"],
  ["notes-2", "55556666-ffff"],
  // A whole key comes before a whole id.
  ["55556666-ffff", "66667777-abcd"],
  ["11111111-aaaa", "11111111-aaaa"],
  ["66667777-abcd", "66667777-abcd"],
  ["77778888-dead", "77778888-dead"],
  ["88889999-dead", "88889999-dead"],
  ["Straße", "99990000-beef"],
  ["main:slack:C9", "aaaabbbb-1234"],
  // Beginnings, upper and lower case being the same.
  ["1111", 2],
  ["11111", "11111111-aaaa"],
  ["11112", "11112222-bbbb"],
  ["2222", "22223333-cccc"],
  ["NOTES", 2],
  ["Note", 2],
  ["notes-", "55556666-ffff"],
  // The beginning of a title, then all words of a title or label, in any order.
  ["fix the login", "bbbbcccc-1234"],
  ["refactor the", 2],
  ["refactor the auth", "ccccdddd-1234"],
  ["Payments", "ddddeeee-1234"],
  ["module auth", "ccccdddd-1234"],
  ["bug login", "bbbbcccc-1234"],
  ["module", 2],
  ["login payment", 0],
  ["archived quest", 0],
  ["notes,", "55556666-ffff"],
  ["AGENT:MAIN:DISCORD:GROUP", "33334444-dddd"],
  ["agent:main:discord", 3],
  ["agent:main:discord:d", 2],
  ["agent:main:discord:di", "11112222-bbbb"],
  ["agent:", 7],
  ["home", 2],
  ["home ", "33334444-dddd"],
  ["bob", "22223333-cccc"],
  ["ada", "11112222-bbbb"],
  ["stra", "99990000-beef"],
  ["äöü", "99990000-beef"],
  ["aaaa", "aaaabbbb-1234"],
  ["c9", "aaaabbbb-1234"],
  // An archived session answers to its id, not to its key or label.
  ["agent:main:old", 0],
  ["Gone", 0],
  ["7777", "77778888-dead"],
  ["8888", "88889999-dead"],
  // The same session by key and by label is one session.
  ["5555", 2],
  // Nothing in the middle of a key, no patterns, nothing empty.
  ["discord", 0],
  ["improvement", "33334444-dddd"],
  ["agent:main:*", 0],
  ["", 0],
  ["zzz", 0],
];

describe("matchSession", () => {
  it.each(table)("finds for %j: %s", (text, expected) => {
    const match = matchSession(text, sessions);
    const found =
      match.kind === "one" ? match.candidate.sessionId : match.kind === "several" ? match.candidates.length : 0;
    expect(found).toBe(expected);
  });

  it("takes whole keys and ids only where something is changed", () => {
    for (const [text, expected] of table) {
      const match = matchSession(text, sessions, { isExact: true });
      const isWhole = sessions.some(
        ({ key, sessionId, isArchived }) => (key === text && !isArchived) || sessionId === text,
      );
      const isAlias = text.includes(":dm:") || text.includes(":direct:");
      expect([text, match.kind]).toEqual([text, (isWhole || isAlias) && typeof expected === "string" ? "one" : "none"]);
    }
  });
});

async function storeWith(
  entries: readonly (readonly [key: string, sessionId: string, label?: string])[],
): Promise<SessionStore> {
  const store = createMemoryStore();
  for (const [key, sessionId, label] of entries) {
    await store.save(
      sessionRef({ key }),
      { sessionId, ...(label === undefined ? {} : { label }) },
      { ifRevision: null },
    );
  }
  return store;
}

describe("resolveSession", () => {
  const main = { namespace: "", agentId: "main", isAgentGiven: false };

  it("looks into the store: key, other spelling, id, beginning of a label", async () => {
    await using store = await storeWith([
      ["agent:main:discord:dm:ada", "id-1", "Ada"],
      ["agent:main:main", "id-2", "Home"],
    ]);
    const find = async (text: string): Promise<string> => (await resolveSession(store, text, main)).sessionId;
    expect(await find("agent:main:discord:direct:ada")).toBe("id-1");
    expect(await find("id-2")).toBe("id-2");
    expect(await find("hom")).toBe("id-2");
  });

  it("is confined to one agent: the one in scope, else the one the key names", async () => {
    await using store = await storeWith([
      ["agent:work:plans", "id-1"],
      ["agent:main:plans", "id-2"],
    ]);
    const find = async (text: string, scope = main): Promise<string> =>
      (await resolveSession(store, text, scope)).sessionId;
    expect(await find("agent:work:pl")).toBe("id-1");
    expect(await find("agent:main:pl")).toBe("id-2");
    const work = { namespace: "", agentId: "work", isAgentGiven: true };
    expect(await find("id-1", work)).toBe("id-1");
    await expect(find("id-1")).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
    await expect(find("agent:main:plans", work)).rejects.toMatchObject({ code: "KEY_AGENT_MISMATCH" });
  });

  it("lists the candidates when several fit, and says so when none does", async () => {
    await using store = await storeWith([
      ["agent:main:a", "id-1", "One"],
      ["agent:main:b", "id-2"],
    ]);
    await expect(resolveSession(store, "agent:main", main)).rejects.toMatchObject({
      code: "SESSION_AMBIGUOUS",
      message: expect.stringContaining("agent:main:a  id-1  One"),
      details: {
        count: 2,
        candidates: [
          { key: "agent:main:a", sessionId: "id-1", label: "One" },
          { key: "agent:main:b", sessionId: "id-2", label: null },
        ],
      },
    });
    await expect(resolveSession(store, "a\u0000b", main)).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
    await expect(resolveSession(store, "agent:main", main, { isExact: true })).rejects.toMatchObject({
      code: "SESSION_NOT_FOUND",
    });
  });
});
