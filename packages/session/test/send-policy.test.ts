import { describe, expect, it } from "vitest";
import { updateEntry } from "@throughline/core/internal";
import { readSendPolicy } from "@throughline/policy";
import { createMemoryData } from "@throughline/store-memory/internal";
import { createMemoryStore } from "@throughline/store-memory";
import { createScriptedModel } from "./scripted-model.ts";
import { createFixture, key, outline } from "./session-fixture.ts";

const ref = { namespace: "", agentId: "main", key };
const groups = readSendPolicy({ rules: [{ match: { chatType: "group" }, action: "deny" }] });
const group = "agent:main:discord:group:123";

/** Sets the entry's own policy, as another program does. */
async function setPolicy(store: Parameters<typeof updateEntry>[0], sendPolicy: "allow" | "deny"): Promise<void> {
  await updateEntry(store, ref, (entry) => ({ ...entry, sendPolicy }));
}

describe("a session in which the agent may not send", () => {
  it("stores the message, asks no model, and says what denied it", { tags: ["slow"] }, async () => {
    const { store, model, sessions, events, records } = createFixture();
    await using session = await sessions.open(key);
    await session.runTurn("first");
    await setPolicy(store, "deny");
    const turn = await session.runTurn("second");
    const denial = { source: "session", ruleIndex: null, mode: null };
    expect(turn).toMatchObject({ outcome: "denied", denial, text: "", stopReason: null, usage: null, calls: [] });
    expect(turn.messages).toEqual([{ role: "user", content: "second" }]);
    expect(turn.gauge.tokens).toBeGreaterThan(0);
    expect(model.requests).toHaveLength(1);
    expect(outline(await records()).slice(-3)).toEqual(["turn:open", "user", "turn:denied"]);
    expect((await records()).at(-1)?.record["data"]).toEqual({ turnId: turn.turnId, state: "denied", denial });
    expect(events.filter(({ name }) => name === "send.denied")).toEqual([
      { name: "send.denied", ref, turnId: turn.turnId, ...denial },
    ]);
    expect(events.filter(({ name }) => name === "turn.closed").at(-1)).toMatchObject({ outcome: "denied" });
  });

  it("answers what was said meanwhile once it may, with resume", async () => {
    const { store, model, sessions } = createFixture();
    await using session = await sessions.open(key);
    await setPolicy(store, "deny");
    await session.runTurn("one");
    await session.runTurn("two");
    expect(await session.resume()).toMatchObject({ outcome: "denied" });
    await setPolicy(store, "allow");
    expect(await session.resume()).toMatchObject({ outcome: "done", denial: null });
    expect(model.requests).toHaveLength(1);
    expect(JSON.stringify(model.requests[0]?.messages)).toMatch(/one.*two/);
  });

  it("does one turn for one idempotency key", async () => {
    const { store, sessions, records } = createFixture();
    await using session = await sessions.open(key);
    await setPolicy(store, "deny");
    const first = await session.runTurn("hello", { idempotencyKey: "k" });
    const again = await session.runTurn("hello", { idempotencyKey: "k" });
    expect(again).toMatchObject({ turnId: first.turnId, outcome: "denied", denial: first.denial, replayed: true });
    expect(outline(await records()).filter((word) => word === "user")).toHaveLength(1);
  });

  it("is denied by rules of the configuration, and allowed by its own entry", async () => {
    const { store, model, sessions } = createFixture({ sendPolicy: groups });
    await using muted = await sessions.open(group);
    expect(await muted.runTurn("anybody?")).toMatchObject({
      outcome: "denied",
      denial: { source: "rule", ruleIndex: 0, mode: "first-match" },
    });
    await using direct = await sessions.open(key);
    expect(await direct.runTurn("you?")).toMatchObject({ outcome: "done" });
    await updateEntry(store, { ...ref, key: group }, (entry) => ({ ...entry, sendPolicy: "allow" }));
    expect(await muted.runTurn("and now?")).toMatchObject({ outcome: "done" });
    expect(model.requests).toHaveLength(2);
  });

  it("runs no step around the call and nothing after the turn", async () => {
    const ran: string[] = [];
    const steps = (["before-call", "after-turn"] as const).map((when) => ({
      name: when,
      when,
      run: async () => void ran.push(when),
    }));
    const { store, sessions } = createFixture({ steps });
    await using session = await sessions.open(key);
    await setPolicy(store, "deny");
    await session.runTurn("hello");
    await session.close();
    expect(ran).toEqual([]);
  });

  it("stops between two calls of the model when another process denies it while a turn runs", async () => {
    const data = createMemoryData();
    const script = createScriptedModel({ calls: [{ id: "c1", name: "deny", arguments: {} }] }, "never asked");
    const other = createMemoryStore({ data });
    const deny = {
      definition: { name: "deny", description: "Denies.", inputSchema: { type: "object" } },
      run: async () => {
        await setPolicy(other, "deny");
        return "denied";
      },
    };
    const { sessions, records } = createFixture({ script, store: createMemoryStore({ data }), tools: [deny] });
    await using session = await sessions.open(key);
    const turn = await session.runTurn("go");
    expect(turn).toMatchObject({ outcome: "denied" });
    expect(script.requests).toHaveLength(1);
    expect(outline(await records())).toEqual([
      "turn:open",
      "user",
      "assistant:toolUse",
      "call:answered",
      "toolResult",
      "turn:denied",
    ]);
    await setPolicy(other, "allow");
    expect(await session.resume()).toMatchObject({ outcome: "done", text: "never asked" });
  });
});
