import { validateUIMessages } from "ai";
import { describe, expect, it } from "vitest";
import { updateEntry } from "@throughline/core/internal";
import { readSendPolicy } from "@throughline/policy";
import { createMemoryStore } from "@throughline/store-memory";
import { createChatStore, type StoredMessage } from "../src/chat-store.ts";
import { chatServer, decide, type Part, statesOf, user } from "./chat-server.ts";

const step = { type: "step-start" };
const call = (id: string, state: string, more: object = {}): object => ({
  type: "tool-pay",
  toolCallId: id,
  state,
  input: {},
  ...more,
});

describe.each([false, true])("the SDK's approvals over a chat store, forModel %s", (forModel) => {
  it("asks, runs what the user approves, and denies the rest", async () => {
    const { answer, prompts, runs } = chatServer(forModel);
    const asked = await answer([user("u1")]);
    expect(statesOf(asked.at(-1))).toEqual(["c1 approval-requested", "c2 approval-requested"]);
    const done = await answer(decide(asked, { c1: true, c2: false }));
    expect(runs).toEqual(["c1"]);
    expect(statesOf(done.at(-1))).toEqual(["c1 output-available", "c2 output-denied"]);
    const results = prompts.at(-1)?.at(-1)?.["content"] as readonly Part[];
    const outputs = Object.fromEntries(results.map(({ toolCallId, output }) => [toolCallId, output]));
    expect(outputs["c1"]).toEqual({ type: "text", value: "paid c1" });
    expect(outputs["c2"]).toMatchObject({ type: "execution-denied" });
    expect(done).toHaveLength(2);
  });

  it("continues with a new question while calls wait: none of them runs later", async () => {
    const { answer, prompts, runs } = chatServer(true);
    const asked = await answer([user("u1")]);
    await answer([...asked, user("u2")]);
    expect(runs).toEqual([]);
    expect(JSON.stringify(prompts.at(-1))).toContain("instead of deciding: the tool has not run");
    expect(prompts.at(-1)?.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "user"]);
  });
});

describe("loadChat with forModel", () => {
  it("is refused where the agent may not answer; the page still gets the chat", async () => {
    const store = createMemoryStore();
    const chats = createChatStore({ store });
    await chats.saveChat({ chatId: "c", messages: [user("u1")] });
    await updateEntry(store, chats.sessionOf("c"), (entry) => ({ ...entry, sendPolicy: "deny" }));
    await expect(chats.loadChat("c", { forModel: true })).rejects.toThrow("SEND_DENIED");
    expect(await chats.loadChat("c")).toEqual([user("u1")]);
    const denying = createChatStore({ store, sendPolicy: readSendPolicy({ default: "deny" }) });
    await expect(denying.loadChat("d", { forModel: true })).rejects.toThrow("SEND_DENIED");
  });

  it("answers what is open in a message, and changes nothing else of it", async () => {
    const chats = createChatStore({ store: createMemoryStore() });
    const decided = { id: "p", approved: true };
    const first: StoredMessage & { readonly metadata: object } = {
      id: "a1",
      role: "assistant",
      metadata: { cost: 0.25 },
      parts: [
        step,
        { type: "data-note", data: 1 },
        call("t1", "input-available"),
        call("t2", "approval-requested", { approval: { id: "q" } }),
        call("t3", "approval-responded", { approval: decided }),
        call("t4", "approval-responded", { approval: { id: "r", approved: false, reason: "too dear" } }),
        call("t5", "output-available", { output: "paid" }),
        { type: "source-url", sourceId: "s", url: "https://example.org" },
      ],
    };
    const messages = [user("u1"), first, user("u2")];
    await chats.saveChat({ chatId: "c", messages });
    expect(await chats.loadChat("c")).toEqual(messages);
    const sent = await chats.loadChat<StoredMessage>("c", { forModel: true });
    await validateUIMessages({ messages: sent });
    const [, repaired] = sent;
    expect(repaired).toMatchObject({ id: "a1", metadata: { cost: 0.25 } });
    expect(repaired?.parts.length).toBe(first.parts.length);
    for (const at of [0, 1, 6, 7]) expect(repaired?.parts[at]).toEqual(first.parts[at]);
    expect(statesOf(repaired)).toEqual([
      "t1 output-error",
      "t2 output-denied",
      "t3 output-error",
      "t4 output-denied",
      "t5 output-available",
    ]);
    const open: StoredMessage = { ...first, parts: [step, call("t0", "approval-requested"), ...first.parts] };
    await chats.saveChat({ chatId: "d", messages: [user("u1"), open] });
    const last = (await chats.loadChat<StoredMessage>("d", { forModel: true })).at(-1);
    // Of an earlier step nobody asks any more; of the last one the SDK does.
    expect(statesOf(last)).toEqual([
      "t0 output-denied",
      "t1 output-error",
      "t2 approval-requested",
      "t3 approval-responded",
      "t4 approval-responded",
      "t5 output-available",
    ]);
  });

  it("answers a call that was left open before one of the same id, and doubles neither", async () => {
    const chats = createChatStore({ store: createMemoryStore() });
    // Some providers give every reply the same ids.
    const left = { id: "a1", role: "assistant", parts: [call("call_0", "input-available")] };
    const again = {
      id: "a2",
      role: "assistant",
      parts: [call("call_0", "output-available", { input: { again: 1 }, output: "paid" })],
    };
    const messages = [user("u1"), left, again] as StoredMessage[];
    await chats.saveChat({ chatId: "c", messages });
    const sent = await chats.loadChat<StoredMessage>("c", { forModel: true });
    expect(sent.map(({ id }) => id)).toEqual(["u1", "a1", "a2"]);
    expect(sent.slice(1).map(statesOf)).toEqual([["call_0 output-error"], ["call_0 output-available"]]);
  });

  it("keeps the id and the metadata of a message whose call another program answered", async () => {
    const store = createMemoryStore();
    const chats = createChatStore({ store });
    const first = { id: "a1", role: "assistant", metadata: { cost: 1 }, parts: [step, call("t1", "input-available")] };
    const second = { id: "a2", role: "assistant", parts: [{ type: "text", text: "Done." }] };
    await chats.saveChat({ chatId: "c", messages: [user("u1"), first as StoredMessage] });
    const result = { role: "toolResult", toolCallId: "t1", toolName: "pay", content: "paid" };
    await store.append(chats.sessionOf("c"), [{ type: "message", message: result }]);
    await chats.saveChat({
      chatId: "c",
      messages: [...(await chats.loadChat<StoredMessage>("c")), second as StoredMessage],
    });
    for (const forModel of [false, true]) {
      const messages = await createChatStore({ store }).loadChat<StoredMessage>("c", { forModel });
      expect(messages.map(({ id }) => id)).toEqual(["u1", "a1", "a2"]);
      expect(messages[1]).toMatchObject({ metadata: { cost: 1 } });
      expect(statesOf(messages[1])).toEqual(["t1 output-available"]);
    }
  });
});
