import { setTimeout as pause } from "node:timers/promises";
import type { ChatModel, AgentTool } from "@throughline/core";

import { describe, expect, it } from "vitest";
import { createScriptedModel } from "./scripted-model.ts";
import { createFixture, echoTool, key, outline } from "./session-fixture.ts";

const call = { id: "1", name: "echo", arguments: { text: "hi" } };

function nested(levels: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < levels; level++) value = [value];
  return value;
}

const unreadable = Object.defineProperty(new Error("x"), "message", {
  get() {
    throw new Error("no");
  },
});

describe("tools that behave oddly", () => {
  it.each([
    ["an object without a prototype", Object.create(null) as unknown],
    ["an error that cannot be read", unreadable],
  ])("may throw %s, and the model is told that the call failed", async (_, thrown) => {
    const script = createScriptedModel({ calls: [call] });
    const run = (): never => {
      throw thrown;
    };
    const { sessions, records } = createFixture({ script, tools: [{ ...echoTool, run }] });
    await using session = await sessions.open(key);
    expect((await session.runTurn("Hi")).outcome).toBe("done");
    expect(JSON.stringify(await records())).toContain("says nothing of itself");
  });

  it("that end the turn when they begin, or whose beginning makes a listener end it, are not waited for", async () => {
    const controllers = [new AbortController(), new AbortController()] as const;
    const endless = (): Promise<string> => new Promise(() => undefined);
    const tools: readonly AgentTool[] = [
      { ...echoTool, run: endless },
      {
        ...echoTool,
        run: (): Promise<string> => {
          controllers[1].abort();
          return endless();
        },
      },
    ];
    for (const [index, tool] of tools.entries()) {
      const { sessions, records } = createFixture({ script: createScriptedModel({ calls: [call] }), tools: [tool] });
      await using session = await sessions.open(key);
      const { outcome } = await session.runTurn("Hi", {
        signal: controllers[index === 0 ? 0 : 1].signal,
        onEvent: ({ name }) => void (index === 0 && name === "tool.started" && controllers[0].abort()),
      });
      expect(outcome).toBe("aborted");
      expect(outline(await records()).slice(-2)).toEqual(["toolResult:error", "turn:aborted"]);
    }
  });

  it("may put anything among the blocks of a result: what no reader could show goes as JSON, and the rest as it is", async () => {
    const script = createScriptedModel({ calls: [call] });
    const content = [{ type: "text", text: "as it is" }, "bare", { type: "text", text: 5 }, null, { type: "image" }];
    const tool = { ...echoTool, run: () => ({ content }) } as AgentTool;
    const { sessions } = createFixture({ script, tools: [tool] });
    await using session = await sessions.open(key);
    await session.runTurn("Hi");
    const sent = JSON.stringify(script.requests.at(-1)?.messages);
    const shown = ["as it is", "bare", JSON.stringify(content[2]), "null", JSON.stringify(content[4])];
    for (const text of shown) expect(sent).toContain(JSON.stringify({ type: "text", text }));
  });

  it.each([
    { type: "object", properties: null, required: null },
    { type: "object", properties: { text: { type: "string", required: true } }, required: true },
    { type: "object", properties: { text: null } },
    { type: "object", properties: { text: { enum: "hi" } } },
    { type: "object", properties: { text: { items: [{ type: "string" }] } } },
    { type: "object", patternProperties: { "^t": { type: "string" } }, additionalProperties: false },
  ])("run when their schema is in a form of its own: %j", async (inputSchema) => {
    const script = createScriptedModel({ calls: [call] });
    const tool = { ...echoTool, definition: { ...echoTool.definition, inputSchema } };
    const { sessions, records } = createFixture({ script, tools: [tool] });
    await using session = await sessions.open(key);
    await session.runTurn("Hi");
    expect(JSON.stringify(await records())).toContain("echo: hi");
  });
});

describe("replies that cannot be gone on with as they are", () => {
  it("a call whose arguments are nested too deeply fails, and the one beside it runs", async () => {
    const script = createScriptedModel({
      calls: [call, { id: "2", name: "echo", arguments: { text: nested(250) } as Record<string, unknown> }],
    });
    const { sessions, records } = createFixture({ script });
    await using session = await sessions.open(key);
    expect(await session.runTurn("Hi")).toMatchObject({ outcome: "done", text: "ok" });
    const text = JSON.stringify(await records());
    expect(text).toContain("echo: hi");
    expect(text).toContain("are nested too deeply");
    expect(text).toContain(JSON.stringify(JSON.stringify({ text: nested(250) })).slice(1, -1));
  });

  it("a call whose arguments are no object fails, and the rest of the reply is shown to the model", async () => {
    const odd = { id: "2", name: "echo", arguments: "hi" } as unknown as typeof call;
    const script = createScriptedModel({ text: "Both:", calls: [call, odd] });
    const { sessions } = createFixture({ script });
    await using session = await sessions.open(key);
    await session.runTurn("Hi");
    const sent = JSON.stringify(script.requests.at(-1)?.messages);
    for (const part of ["Both:", "echo: hi", "are not a JSON object"]) expect(sent).toContain(part);
  });

  it("a reply that its provider ended runs none of its calls and ends the turn", async () => {
    const script = createScriptedModel({ text: "I will", calls: [call], stopReason: "error" });
    const ran: string[] = [];
    const tool: AgentTool = {
      ...echoTool,
      run: (): string => {
        ran.push("ran");
        return "ran";
      },
    };
    const { sessions, records } = createFixture({ script, tools: [tool] });
    await using session = await sessions.open(key);
    expect(await session.runTurn("Hi")).toMatchObject({ outcome: "done", stopReason: "error", text: "I will" });
    expect([ran, script.requests.length]).toEqual([[], 1]);
    expect(outline(await records())).toEqual([
      "turn:open",
      "user",
      "assistant:error",
      "toolResult:error",
      "call:answered",
      "turn:done",
    ]);
    expect((await session.runTurn("Again")).outcome).toBe("done");
  });
});

describe("an input that no model could be shown", () => {
  it("is refused before anything is written", async () => {
    const { sessions, records } = createFixture();
    await using session = await sessions.open(key);
    for (const input of [[{ type: "text" }], [{ type: "text", text: "a" }, null], undefined]) {
      await expect(session.runTurn(input as never)).rejects.toMatchObject({ code: "INPUT_INVALID" });
    }
    expect(await records()).toEqual([]);
  });
});

describe("waits that an abort ends", () => {
  it("for the window that a server never states", async () => {
    const chat: ChatModel = {
      provider: "anthropic",
      api: "anthropic",
      chat: () => Promise.reject(new Error("not to be asked")),
      windowTokens: () => new Promise(() => undefined),
    };
    const clock = { nowMs: (): number => Date.now(), sleep: (): Promise<void> => pause(1) };
    const { sessions } = createFixture({ model: { chat, modelId: "m" }, clock });
    await using session = await sessions.open(key);
    const controller = new AbortController();
    const turn = session.runTurn("Hi", { signal: controller.signal });
    await pause(20);
    controller.abort();
    expect((await turn).outcome).toBe("aborted");
  });

  it("for the turn before, also when whoever hears of the wait does not want it", async () => {
    const waiting = Promise.withResolvers<null>();
    const script = createScriptedModel({ text: "one", after: waiting.promise });
    const { sessions } = createFixture({ script });
    await using session = await sessions.open(key);
    const first = session.runTurn("One");
    const controller = new AbortController();
    const second = session.runTurn("Two", {
      signal: controller.signal,
      onEvent: ({ name }) => void (name === "turn.queued" && controller.abort()),
    });
    await expect(second).rejects.toMatchObject({ code: "ABORTED" });
    waiting.resolve(null);
    expect((await first).outcome).toBe("done");
  });
});
