import type { AgentInputItem } from "@openai/agents-core";
import { describe, expect, it } from "vitest";
import { createMemoryStore } from "@throughline/store-memory";
import { type AgentsSession, createAgentsSession } from "../src/agents-session.ts";

const replacing = (callId: string, amount: number, newId = callId): object => ({
  type: "replace_function_call",
  callId,
  replacement: { type: "function_call", callId: newId, name: "pay", arguments: `{"amount":${amount}}` },
});
const replace = (session: AgentsSession, ...mutations: readonly object[]): Promise<void> =>
  session.applyHistoryMutations({ mutations } as never);

/** The calls of a session, with their arguments. */
async function callsIn(session: AgentsSession): Promise<readonly string[]> {
  const items = (await session.getItems()) as readonly { type?: string; callId?: string; arguments?: string }[];
  return items.flatMap(({ type, callId, arguments: args }) =>
    type === "function_call" ? [`${callId} ${args?.replace(/[^0-9]/g, "")}`] : [],
  );
}

const call = (id: string, amount: number): object => ({ type: "toolCall", id, name: "pay", arguments: { amount } });

/** A session in which another program stored replies; several calls of one are one record. */
async function foreignSession(...replies: readonly (readonly object[])[]): Promise<AgentsSession> {
  const session = createAgentsSession({ store: createMemoryStore(), sessionId: "s" });
  const contents = replies.map((content) => ({ role: "assistant", content }));
  const messages = [{ role: "user", content: "pay" }, ...contents];
  await session.log().append(() => ({ drafts: messages.map((message) => ({ type: "message", message })) }));
  return session;
}

describe("calls of one reply of another program", () => {
  it("stay replaced when others of the reply are replaced later", async () => {
    const session = await foreignSession([{ type: "text", text: "I pay." }, call("c1", 1), call("c2", 2)]);
    await replace(session, replacing("c1", 10));
    await replace(session, replacing("c2", 20));
    expect(await callsIn(session)).toEqual(["c1 10", "c2 20"]);
    await replace(session, replacing("c1", 11, "c9"));
    await replace(session, replacing("c9", 12));
    expect(await callsIn(session)).toEqual(["c9 12", "c2 20"]);
  });

  it("stay replaced when the newest is taken back", async () => {
    const session = await foreignSession([call("c1", 1), call("c2", 2)]);
    await replace(session, replacing("c1", 10));
    // The answers that a provider needs are not in the log.
    const items = await session.getItems();
    for (let at = items.length; at > 2; at--) await session.popItem();
    expect((await callsIn(session))[0]).toBe("c1 10");
  });

  it("with the same id become one", async () => {
    const session = await foreignSession([call("c1", 1), call("c1", 2), call("c2", 3)]);
    await replace(session, replacing("c1", 10));
    const calls = await callsIn(session);
    expect([calls[0], calls.filter((one) => one.endsWith(" 2"))]).toEqual(["c1 10", []]);
  });
});

describe("a call that was replaced by one with another id", () => {
  const own = (callId: string, amount: number): AgentInputItem =>
    ({ type: "function_call", callId, name: "pay", arguments: `{"amount":${amount}}` }) as AgentInputItem;

  it("is found by the new id, and by that one alone", async () => {
    const session = createAgentsSession({ store: createMemoryStore(), sessionId: "s" });
    await session.addItems([own("c1", 1), own("c2", 2)]);
    await replace(session, replacing("c1", 10, "c3"), replacing("c1", 99), replacing("c3", 30));
    expect(await callsIn(session)).toEqual(["c3 30", "c2 2"]);
  });

  it("is found in what a compaction put into the history", async () => {
    const session = createAgentsSession({ store: createMemoryStore(), sessionId: "s" });
    await session.addItems([own("c1", 1)]);
    await session.replaceHistoryWithCompaction([{ role: "user", content: "summary" }, own("c7", 7)]);
    await replace(session, replacing("c7", 70));
    expect(await callsIn(session)).toEqual(["c7 70"]);
  });
});
