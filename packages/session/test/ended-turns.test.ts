import { describe, expect, it } from "vitest";
import type { ChatDelta, ChatModel } from "@throughline/core";
import { createMemoryData } from "@throughline/store-memory/internal";
import { createMemoryStore } from "@throughline/store-memory";
import { createScriptedModel } from "./scripted-model.ts";
import { createFixture, echoTool, key, outline } from "./session-fixture.ts";

const call = { id: "1", name: "echo", arguments: { text: "hi" } };
const tick = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 1));

describe("turns that end otherwise", () => {
  it("an aborted answer is kept as far as it came, its calls are answered, and the turn is closed", async () => {
    const script = createScriptedModel({ text: "I was about to", calls: [call], hangs: true });
    const { sessions, records } = createFixture({ script });
    await using session = await sessions.open(key);
    const controller = new AbortController();
    const turn = await session.runTurn("Hi", { signal: controller.signal, onDelta: () => controller.abort() });
    expect(turn).toMatchObject({ outcome: "aborted", text: "I was about to", stopReason: "aborted" });
    expect(outline(await records())).toEqual([
      "turn:open",
      "user",
      "assistant:aborted",
      "toolResult:error",
      "call:aborted",
      "turn:aborted",
    ]);
    expect((await session.runTurn("Again")).outcome).toBe("done");
    expect(JSON.stringify(script.requests.at(-1)?.messages)).not.toContain("about to");
  });

  it("an abort while tools run leaves no call without a result, and waits for no tool that pays no heed", async () => {
    const script = createScriptedModel({ calls: [call, { ...call, id: "2" }] });
    const controller = new AbortController();
    const tool = { ...echoTool, run: () => new Promise<string>(() => setTimeout(() => controller.abort(), 1)) };
    const { sessions, records } = createFixture({ script, tools: [tool] });
    await using session = await sessions.open(key);
    const turn = await session.runTurn("Hi", { signal: controller.signal });
    expect(turn.outcome).toBe("aborted");
    const results = (await records()).filter(({ record }) =>
      JSON.stringify(record).includes("may have had its effect"),
    );
    expect(results).toHaveLength(2);
    expect(outline(await records()).at(-1)).toBe("turn:aborted");
    await session.runTurn("Again");
    expect(JSON.stringify(script.requests.at(-1)?.messages)).toContain("may have had its effect");
  });

  it("a call that was cut off at the length limit is not run", async () => {
    const script = createScriptedModel({ text: "x", calls: [call, { ...call, id: "2" }], stopReason: "length" });
    const { sessions } = createFixture({ script });
    await using session = await sessions.open(key);
    const { messages } = await session.runTurn("Hi");
    const [first, second] = messages
      .filter(({ role }) => role === "toolResult")
      .map((result) => JSON.stringify(result));
    expect([first, second].toSorted()).toEqual([
      expect.stringContaining("echo: hi"),
      expect.stringContaining("length limit in this call"),
    ]);
  });

  it("after a failure of the API the log and what is sent next agree, here and after a restart", async () => {
    const data = createMemoryData();
    const failure = Object.assign(new Error("529 overloaded"), { status: 529 });
    const script = createScriptedModel({ error: failure }, "Fine now.");
    const { sessions, records, store, events } = createFixture({ script, store: createMemoryStore({ data }) });
    await using session = await sessions.open(key);
    const caught: unknown = await session.runTurn("First").catch((error: unknown) => error);
    expect(caught).toMatchObject({ code: "MODEL_FAILED", cause: failure, details: { category: expect.any(String) } });
    expect(outline(await records())).toEqual(["turn:open", "user", "call:failed", "turn:failed"]);
    expect(events.map(({ name }) => name)).toContain("turn.closed");
    expect((await store.load(session.ref))?.head.turn).toBeNull();
    await using other = await createFixture({ script, store: createMemoryStore({ data }) }).sessions.open(key);
    const both = [await session.messages(), await other.messages()].map(({ messages }) => messages);
    expect(both[0]).toEqual(both[1]);
    await session.runTurn("Second");
    expect(script.requests.at(-1)?.messages).toEqual([
      {
        role: "user",
        content: [
          { type: "text", text: "First" },
          { type: "text", text: "Second" },
        ],
      },
    ]);
  });

  it("a failed turn can be gone on with, without its words being said twice", async () => {
    const script = createScriptedModel({ text: "half", error: new Error("connection lost") }, "Whole.");
    const { sessions, records } = createFixture({ script });
    await using session = await sessions.open(key);
    await expect(session.runTurn("Once")).rejects.toMatchObject({ code: "MODEL_FAILED" });
    expect(await session.resume()).toMatchObject({ outcome: "done", text: "Whole." });
    expect(script.requests[1]?.messages).toEqual([{ role: "user", content: [{ type: "text", text: "Once" }] }]);
    expect(outline(await records())).toEqual([
      "turn:open",
      "user",
      "assistant:error",
      "call:failed",
      "turn:failed",
      "turn:open",
      "assistant:stop",
      "call:answered",
      "turn:done",
    ]);
  });

  it("a turn with a key is done once, whoever asks again", async () => {
    const data = createMemoryData();
    const script = createScriptedModel({ error: new Error("lost") }, { calls: [call] }, "Answer.");
    const store = createMemoryStore({ data });
    const { sessions, records } = createFixture({ script, store });
    await using session = await sessions.open(key);
    await expect(session.runTurn("Hi", { idempotencyKey: "k1" })).rejects.toMatchObject({ code: "MODEL_FAILED" });
    const second = await session.runTurn("Hi", { idempotencyKey: "k1" });
    expect(second).toMatchObject({ text: "Answer.", replayed: false });
    await using other = await createFixture({ script, store: createMemoryStore({ data }) }).sessions.open(key);
    for (const handle of [session, other]) {
      const again = await handle.runTurn("Hi", { idempotencyKey: "k1" });
      expect(again).toMatchObject({ text: "Answer.", replayed: true, outcome: "done" });
      expect(again.messages.map(({ role }) => role)).toEqual(["user", "assistant", "toolResult", "assistant"]);
    }
    expect(script.requests).toHaveLength(3);
    expect((await records()).filter(({ record }) => JSON.stringify(record).includes('"Hi"'))).toHaveLength(1);
    await expect(session.runTurn("Other words", { idempotencyKey: "k1" })).rejects.toMatchObject({
      code: "IDEMPOTENCY_MISMATCH",
    });
  });

  it("closing aborts the turn that runs and waits for it", async () => {
    const script = createScriptedModel({ text: "So far", hangs: true });
    const { sessions, records } = createFixture({ script });
    const session = await sessions.open(key);
    const running = session.runTurn("Hi");
    while (script.requests.length === 0) await tick();
    await sessions.close();
    expect(outline(await records()).at(-1)).toBe("turn:aborted");
    expect((await running).outcome).toBe("aborted");
    await expect(session.runTurn("More")).rejects.toMatchObject({ code: "SESSION_CLOSED" });
  });

  it(
    "a model that pays no heed to an abort is left: the turn ends, and its later words are for nobody",
    { tags: ["slow"] },
    async () => {
      const words = Promise.withResolvers<void>();
      const stopped = new AbortController();
      let asked = 0;
      const chat: ChatModel = {
        provider: "anthropic",
        api: "anthropic",
        chat: async ({ onDelta }) => {
          asked += 1;
          setImmediate(() => stopped.abort());
          await words.promise;
          onDelta?.({ type: "text", text: "Too late." });
          throw new Error("and an error");
        },
      };
      const { sessions, records } = createFixture({
        model: { chat, modelId: "claude-sonnet-4-5", windowTokens: 200_000 },
      });
      await using session = await sessions.open(key);
      const shown: string[] = [];
      const onDelta = (delta: ChatDelta): void => void shown.push(delta.type);
      const turn = await session.runTurn("Hi", { signal: stopped.signal, onDelta });
      expect([turn.outcome, asked]).toEqual(["aborted", 1]);
      words.resolve();
      await tick();
      expect(shown).toEqual([]);
      expect(outline(await records()).at(-1)).toBe("turn:aborted");
    },
  );

  it("a turn that is aborted before it begins leaves nothing", async () => {
    const { sessions, records } = createFixture();
    await using session = await sessions.open(key);
    await expect(session.runTurn("Hi", { signal: AbortSignal.abort() })).rejects.toMatchObject({ code: "ABORTED" });
    expect(await records()).toEqual([]);
  });

  it("a listener that throws disturbs nothing", async () => {
    const { sessions, records } = createFixture({
      onEvent: () => {
        throw new Error("mine");
      },
    });
    await using session = await sessions.open(key);
    expect((await session.runTurn("Hi")).outcome).toBe("done");
    expect(outline(await records())).toHaveLength(5);
  });
});
