import { sessionRef, userMessage } from "@throughline/core";
import { openTurn } from "@throughline/session";
import { createMemoryStore } from "@throughline/store-memory";
import { describe, expect, it } from "vitest";
import { createFixture } from "./session-fixture.ts";

const home = "agent:main:cli:direct:home";

/** What the store lists. */
async function keysOf({ store }: ReturnType<typeof createFixture>): Promise<readonly string[]> {
  const { sessions } = await store.list({ state: "any", sort: "key" });
  return sessions.map(({ ref }) => ref.key);
}

describe("the name of a session", () => {
  it.each([
    ["home", home],
    ["Home", home],
    ["My  Project #1!", "agent:main:cli:direct:my-project-1"],
    ["日本語 テスト", "agent:main:cli:direct:日本語-テスト"],
    ["x".repeat(64), `agent:main:cli:direct:${"x".repeat(64)}`],
    [`${"x".repeat(64)}${"!".repeat(236)}`, `agent:main:cli:direct:${"x".repeat(64)}`],
    [home, home],
    ["main:telegram:42", "main:telegram:42"],
    ["a:b", "a:b"],
  ])("opens %j as %s, and the same session again", async (name, expected) => {
    const { sessions, store } = createFixture();
    await using session = await sessions.open(name);
    expect(session.key).toBe(expected);
    await using again = await sessions.open(name);
    expect(again.sessionId).toBe(session.sessionId);
    expect((await store.list()).sessions).toHaveLength(1);
    await using turn = await openTurn(store, name, { drafts: [userMessage("Hello")] });
    expect(turn.sessionId).toBe(session.sessionId);
  });

  it.each([
    "",
    " ",
    " home",
    "home ",
    "🏠",
    "!!!",
    "a\u0000b",
    "\ud800",
    "x".repeat(300),
    "many words ".repeat(27).trim(),
    "agent:",
    "agent:main",
    "agent:no such agent:main",
  ])("refuses %j with a typed error, and stores nothing", async (name) => {
    const fixture = createFixture();
    await expect(fixture.sessions.open(name)).rejects.toMatchObject({ code: "KEY_INVALID", outcome: "not-applied" });
    await expect(openTurn(fixture.store, name)).rejects.toMatchObject({ code: "KEY_INVALID" });
    expect(await keysOf(fixture)).toEqual([]);
  });

  it.each([
    null,
    undefined,
    42,
    true,
    [],
    {},
    { key: 7 },
    { key: home, agent: "main" },
    { key: home, archiveId: null },
  ])("refuses %j, which is no name", async (name) => {
    const fixture = createFixture();
    const refused = { code: "INPUT_INVALID", message: expect.stringMatching(/^sessions\.open\(\): `session/) };
    await expect(fixture.sessions.open(name as string)).rejects.toMatchObject(refused);
    await expect(openTurn(fixture.store, name as string)).rejects.toMatchObject({ code: "INPUT_INVALID" });
    expect(await keysOf(fixture)).toEqual([]);
  });

  it("keeps the label as it was written, and gives a key none", async () => {
    const { sessions } = createFixture();
    await using labeled = await sessions.open("My Project #1");
    await using keyed = await sessions.open("agent:main:cli:direct:other");
    expect([labeled.entry.label, keyed.entry.label]).toEqual(["My Project #1", undefined]);
  });

  it("opens the session whose key is the text itself, where there is one", async () => {
    const { sessions, store } = createFixture();
    await store.save(sessionRef({ key: "home" }), { sessionId: "earlier" }, { ifRevision: null });
    await using session = await sessions.open("home");
    expect(session.sessionId).toBe("earlier");
    await using addressed = await sessions.open({ key: "home" });
    expect(addressed.sessionId).toBe("earlier");
    await using labeled = await sessions.open(home);
    expect(labeled.sessionId).not.toBe("earlier");
  });

  it("takes the key of an address as it is", async () => {
    const fixture = createFixture();
    await using session = await fixture.sessions.open({ key: "home" });
    expect(session.key).toBe("home");
    expect(await keysOf(fixture)).toEqual(["home"]);
  });

  it("finds a direct session by both spellings of its kind", async () => {
    const { sessions, store } = createFixture();
    await store.save(sessionRef({ key: "agent:main:telegram:dm:42" }), { sessionId: "imported" }, { ifRevision: null });
    await using session = await sessions.open("agent:main:telegram:direct:42");
    expect(session.sessionId).toBe("imported");
  });

  it("opens the key of another agent in that agent, and a label in the agent of the sessions", async () => {
    const store = createMemoryStore();
    const { sessions } = createFixture({ store, agentId: "work", namespace: "acme" });
    await using other = await sessions.open("agent:home:cli:direct:notes");
    await using own = await sessions.open("notes");
    await using opaque = await sessions.open({ key: "notes" });
    expect([other, own, opaque].map(({ ref }) => ref)).toEqual([
      { namespace: "acme", agentId: "home", key: "agent:home:cli:direct:notes" },
      { namespace: "acme", agentId: "work", key: "agent:work:cli:direct:notes" },
      { namespace: "acme", agentId: "work", key: "notes" },
    ]);
    await expect(sessions.open({ key: "agent:home:x", agentId: "work" })).rejects.toMatchObject({
      code: "KEY_AGENT_MISMATCH",
    });
  });

  it("refuses options that nobody reads", async () => {
    const fixture = createFixture();
    await expect(fixture.sessions.open("home", { sinal: null } as object)).rejects.toMatchObject({
      code: "INPUT_INVALID",
      message: "sessions.open(): `sinal` is not an option; did you mean `signal`?",
    });
    await expect(fixture.sessions.open("home", null as unknown as object)).rejects.toMatchObject({
      code: "INPUT_INVALID",
    });
    expect(await keysOf(fixture)).toEqual([]);
  });
});
