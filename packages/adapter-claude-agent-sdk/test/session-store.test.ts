import type { SessionKey, SessionStoreEntry } from "@anthropic-ai/claude-agent-sdk";
import { createClaudeSessionStore } from "@throughline/adapter-claude-agent-sdk";
import { updateEntry } from "@throughline/core/internal";
import { readSendPolicy } from "@throughline/policy";
import { expect, it } from "vitest";
import { describeStores } from "./four-stores.ts";
import { key, prompt, turn, uuidAt } from "./transcript.ts";

const other: SessionKey = { ...key, sessionId: "5e551011-0000-4000-8000-000000000002" };
const agent: SessionKey = { ...key, subpath: "subagents/agent-a1" };
const mode: SessionStoreEntry = { type: "permission-mode", permissionMode: "default", sessionId: key.sessionId };

// What the SDK's types promise of a session store, one check each.
await describeStores("the session store of the Claude Agent SDK", (open) => {
  it("gives back what was appended, in the order of the calls", async () => {
    const store = createClaudeSessionStore({ store: open() });
    const calls = [turn(1, "one"), turn(5, "two"), [mode], turn(9, "three")];
    await Promise.all(calls.map((entries) => store.append(key, [...entries])));
    expect(await store.load(key)).toEqual(calls.flat());
  });

  it("knows nothing of a key that was never written", async () => {
    const store = createClaudeSessionStore({ store: open() });
    expect(await store.load(key)).toBeNull();
    expect(await store.load(agent)).toBeNull();
    expect(await store.listSessions(key.projectKey)).toEqual([]);
    expect(await store.listSessionSummaries(key.projectKey)).toEqual([]);
    expect(await store.listSubkeys(key)).toEqual([]);
    await store.delete(key);
  });

  it("writes nothing for an empty batch", async () => {
    const store = createClaudeSessionStore({ store: open() });
    await store.append(key, []);
    expect(await store.load(key)).toBeNull();
    expect(await store.listSessions(key.projectKey)).toEqual([]);
  });

  it("records no message of a session that is denied, nor of its sub-agents, and reads it as before", async () => {
    const bare = open();
    const store = createClaudeSessionStore({ store: bare });
    await store.append(key, [prompt(1, "one")]);
    await updateEntry(bare, store.sessionOf(key), (entry) => ({ ...entry, sendPolicy: "deny" }));
    await expect(store.append(key, [prompt(2, "two")])).rejects.toMatchObject({ code: "SEND_DENIED" });
    await expect(store.append(agent, [prompt(1, "of the agent")])).rejects.toMatchObject({ code: "SEND_DENIED" });
    await store.append(key, [mode]);
    expect(await store.load(key)).toEqual([prompt(1, "one"), mode]);
    await updateEntry(bare, store.sessionOf(key), (entry) => ({ ...entry, sendPolicy: "allow" }));
    await store.append(key, [prompt(2, "two")]);
    expect(await store.load(key)).toEqual([prompt(1, "one"), mode, prompt(2, "two")]);
    const ruled = createClaudeSessionStore({ store: bare, sendPolicy: readSendPolicy({ default: "deny" }) });
    await ruled.append(key, [prompt(3, "three")]);
    await expect(ruled.append(other, [prompt(1, "one")])).rejects.toMatchObject({ code: "SEND_DENIED" });
    expect(await store.load(other)).toBeNull();
  });

  it("keeps transcripts of sub-agents apart from the main one", async () => {
    const store = createClaudeSessionStore({ store: open() });
    await store.append(key, [prompt(1, "main")]);
    await store.append(agent, [prompt(1, "of the agent"), prompt(2, "more")]);
    expect(await store.load(key)).toEqual([prompt(1, "main")]);
    expect(await store.load(agent)).toEqual([prompt(1, "of the agent"), prompt(2, "more")]);
  });

  it("stores a line with a uuid once, whoever appends it again", async () => {
    const bare = open();
    const store = createClaudeSessionStore({ store: bare });
    await store.append(key, [...turn(1, "one")]);
    await store.append(key, [...turn(1, "one"), ...turn(5, "two")]);
    const again = createClaudeSessionStore({ store: bare });
    await again.append(key, [...turn(1, "one"), ...turn(5, "two"), { type: "odd", uuid: uuidAt(90) }]);
    await again.append(key, [{ type: "odd", uuid: uuidAt(90) }]);
    await store.append(key, [{ type: "odd", uuid: uuidAt(90) }]);
    expect(await store.load(key)).toEqual([...turn(1, "one"), ...turn(5, "two"), { type: "odd", uuid: uuidAt(90) }]);
    // Each of four replies took 3 tokens and wrote 5.
    expect((await bare.load(store.sessionOf(key)))?.entry).toMatchObject({
      model: "claude-opus-4-7",
      modelProvider: "anthropic",
      inputTokens: 12,
      outputTokens: 20,
      totalTokens: 8,
      totalTokensFresh: true,
    });
  });

  it("stores a line without a uuid every time", async () => {
    const store = createClaudeSessionStore({ store: open() });
    await store.append(key, [mode, mode]);
    await store.append(key, [mode]);
    expect(await store.load(key)).toEqual([mode, mode, mode]);
  });

  it("lists sessions without their sub-agents", async () => {
    const store = createClaudeSessionStore({ store: open() });
    await store.append(key, [prompt(1, "one")]);
    await store.append(agent, [prompt(1, "of the agent")]);
    await store.append(other, [prompt(1, "two")]);
    // A transcript of a sub-agent alone is no session.
    await store.append({ ...agent, sessionId: "lone" }, [prompt(1, "alone")]);
    const listed = await store.listSessions(key.projectKey);
    expect(listed.map(({ sessionId }) => sessionId).toSorted()).toEqual([key.sessionId, other.sessionId]);
  });

  it("states the same whole milliseconds in both lists", async () => {
    const store = createClaudeSessionStore({ store: open() });
    await store.append(key, [prompt(1, "one")]);
    await store.append(other, [prompt(1, "two")]);
    const listed = new Map((await store.listSessions(key.projectKey)).map((one) => [one.sessionId, one.mtime]));
    const summaries = await store.listSessionSummaries(key.projectKey);
    expect(summaries).toHaveLength(2);
    for (const { sessionId, mtime, data } of summaries) {
      expect(mtime).toBe(listed.get(sessionId));
      expect(mtime).toBeGreaterThan(1e12);
      expect(Number.isInteger(mtime)).toBe(true);
      expect(data["cwd"]).toBe("/home/u/project");
    }
  });

  it("deletes the sub-agents with their session", async () => {
    const store = createClaudeSessionStore({ store: open() });
    await store.append(key, [prompt(1, "one")]);
    await store.append(agent, [prompt(1, "of the agent")]);
    await store.append(other, [prompt(1, "two")]);
    await store.delete(key);
    expect([await store.load(key), await store.load(agent)]).toEqual([null, null]);
    expect(await store.listSubkeys(key)).toEqual([]);
    expect((await store.listSessions(key.projectKey)).map(({ sessionId }) => sessionId)).toEqual([other.sessionId]);
    await store.append(key, [prompt(1, "anew")]);
    expect(await store.load(key)).toEqual([prompt(1, "anew")]);
  });

  it("deletes one sub-agent alone", async () => {
    const store = createClaudeSessionStore({ store: open() });
    const second = { ...key, subpath: "subagents/agent-a2" };
    for (const one of [key, agent, second]) await store.append(one, [prompt(1, "text")]);
    await store.delete(agent);
    expect(await store.load(agent)).toBeNull();
    expect(await store.load(key)).toHaveLength(1);
    expect(await store.listSubkeys(key)).toEqual([second.subpath]);
  });

  it("lists the sub-agents of one session", async () => {
    const store = createClaudeSessionStore({ store: open() });
    const subpaths = ["subagents/agent-a1", "subagents/workflows/w1/agent-b:2", "%", " "];
    for (const subpath of subpaths) await store.append({ ...key, subpath }, [prompt(1, subpath)]);
    await store.append({ ...other, subpath: "subagents/agent-c" }, [prompt(1, "another's")]);
    expect((await store.listSubkeys(key)).toSorted()).toEqual(subpaths.toSorted());
  });

  it("gives back every value of JSON", async () => {
    const store = createClaudeSessionStore({ store: open() });
    const odd = JSON.parse(
      '{"type":"odd","__proto__":{"polluted":1},"constructor":null,"deep":[null,{"a":[[]]}],"float":1.5e-7,' +
        '"big":9007199254740993,"zero":-0,"emoji":"🦉","lone":"a\\ud800b","nul":"\\u0000","":""}',
    ) as SessionStoreEntry;
    const entries = [odd, { ...prompt(1, "🦉 \ud800"), extra: odd }];
    await store.append(key, entries);
    const loaded = await store.load(key);
    expect(loaded).toStrictEqual(JSON.parse(JSON.stringify(entries)));
    expect(Object.hasOwn(loaded?.[0] ?? {}, "__proto__")).toBe(true);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });

  it("keeps projects apart", async () => {
    const store = createClaudeSessionStore({ store: open() });
    const projects = ["a", "a:b", "a%003ab", "../a", "__proto__", "", "x".repeat(300), "x".repeat(301), "🦉"];
    for (const projectKey of projects)
      for (const sessionId of ["s", "b:s"]) await store.append({ projectKey, sessionId }, [prompt(1, projectKey)]);
    for (const projectKey of projects) {
      const listed = await store.listSessions(projectKey);
      expect(listed.map(({ sessionId }) => sessionId).toSorted()).toEqual(["b:s", "s"]);
      expect(await store.load({ projectKey, sessionId: "s" })).toEqual([prompt(1, projectKey)]);
    }
  });
});
