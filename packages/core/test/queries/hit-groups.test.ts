import { sessionRef } from "@throughline/core";
import type { SearchHit } from "@throughline/core";
import { HitGroups, isProse } from "@throughline/core/internal";
import { describe, expect, it } from "vitest";

function hit(key: string, seq: number, snippet: string, fields: Partial<SearchHit> = {}): SearchHit {
  const place = { ref: sessionRef({ key: `agent:main:${key}` }), sessionId: key, seq, id: `r${seq}`, tsMs: null };
  return { ...place, role: "user", score: 1, snippet, highlights: [], ...fields };
}

describe("hits by session", () => {
  it("come together although they are not adjacent, each text once, with the number of the others", () => {
    const groups = new HitGroups(2);
    const hits = [
      hit("a", 1, "one"),
      hit("b", 1, "two"),
      hit("a", 2, "three"),
      hit("b", 2, "two"),
      hit("a", 3, "four"),
    ];
    for (const each of hits) groups.add(each);
    expect(groups.size).toBe(2);
    const taken = groups.take().map(({ first, best, more }) => [first.sessionId, best.map(({ seq }) => seq), more]);
    expect(taken).toEqual([
      ["a", [1, 2], 1],
      ["b", [1], 0],
    ]);
    expect(groups.size).toBe(0);
  });

  it("have words of people before tool output and code, and sessions with such words first", () => {
    const groups = new HitGroups(2);
    groups.add(hit("tools", 1, "const login = require('login');", { role: "assistant", score: 9 }));
    groups.add(hit("talk", 1, "login failed", { role: "toolResult", score: 8 }));
    groups.add(hit("talk", 2, "export function login(user) { return user.id; }", { role: "assistant", score: 7 }));
    groups.add(hit("talk", 3, "The login bug came back after the deploy.", { role: "assistant", score: 2 }));
    groups.add(hit("talk", 4, "please look at the login", { score: 3 }));
    const taken = groups.take().map(({ first, best, more }) => [first.sessionId, best.map(({ seq }) => seq), more]);
    expect(taken).toEqual([
      ["talk", [4, 3], 2],
      ["tools", [1], 0],
    ]);
  });

  it("keeps the order of ranked hits", () => {
    const groups = new HitGroups(2, { isRanked: true });
    groups.add(hit("tools", 1, "login failed", { role: "toolResult", score: 0.9 }));
    groups.add(hit("talk", 3, "the login", { score: 0.8 }));
    groups.add(hit("tools", 2, "log in again", { score: 0.7 }));
    groups.add(hit("tools", 4, "login", { score: 0.6 }));
    const taken = groups.take().map(({ first, best, more }) => [first.sessionId, best.map(({ seq }) => seq), more]);
    expect(taken).toEqual([
      ["tools", [1, 2], 1],
      ["talk", [3], 0],
    ]);
  });

  it.each([
    ["user", "Fix the login bug in `src/login.ts`, it fails for users without a name (again).", true],
    [
      "assistant",
      "…agent.prompt(expandSlashCommand(initialMessage, fileCommands), initialAttachments);   } catch",
      false,
    ],
    ["assistant", '{"path":"src/login.ts","limit":20}', false],
    ["toolResult", "The login bug", false],
    [null, "The login bug", false],
  ])("a hit of %s, %j, is prose: %s", (role, snippet, expected) => {
    expect(isProse({ role, snippet })).toBe(expected);
  });
});
