import { describe, expect, it } from "vitest";
import type { Message } from "@throughline/core";
import { createMemoryData } from "@throughline/store-memory/internal";
import { createMemoryStore } from "@throughline/store-memory";
import { createScriptedModel } from "./scripted-model.ts";
import { createFixture, echoTool, key, outline } from "./session-fixture.ts";

const callEcho = (id: string, text = "hi"): { id: string; name: string; arguments: Record<string, unknown> } => ({
  id,
  name: "echo",
  arguments: { text },
});

describe("a server that gives every reply the same id", () => {
  const responseId = "chatcmpl-1";

  it("has each of them kept apart, so that no request says they were one", { tags: ["slow"] }, async () => {
    const script = createScriptedModel(
      { text: "First.", calls: [callEcho("a")], responseId },
      { text: "Second.", calls: [callEcho("b")], responseId },
      { text: "Done.", responseId },
    );
    const { sessions } = createFixture({ script });
    await using session = await sessions.open(key);
    await session.runTurn("Go");
    await session.runTurn("And now?");
    const [, , third = { messages: [] }, last = { messages: [] }] = script.requests;
    // What was sent stays as it was sent: a request begins with all of the one before it.
    expect(last.messages.slice(0, third.messages.length)).toEqual(third.messages);
    expect(last.messages.map((message) => (message as Message).role).join(" ")).toBe(
      "user assistant user assistant user assistant user",
    );
  });

  it("also where another process goes on", async () => {
    const data = createMemoryData();
    const callThenFail = [{ calls: [callEcho("a")], responseId }, { error: new TypeError("no network") }];
    const first = createFixture({ script: createScriptedModel(...callThenFail), store: createMemoryStore({ data }) });
    await using broken = await first.sessions.open(key);
    await expect(broken.runTurn("Go")).rejects.toMatchObject({ code: "MODEL_FAILED" });
    const script = createScriptedModel({ text: "Done.", responseId });
    const second = createFixture({ script, store: createMemoryStore({ data }) });
    await using session = await second.sessions.open(key);
    await session.resume();
    await session.runTurn("And now?");
    const roles = script.requests[1]?.messages.map((message) => (message as Message).role).join(" ");
    expect(roles).toBe("user assistant user assistant user");
  });
});

describe("a turn", () => {
  it("keeps the user's words before the model is asked, and the reply after", async () => {
    const script = createScriptedModel();
    const { sessions, records } = createFixture({ script });
    await using session = await sessions.open(key);
    let atCall: string[] = [];
    const looked = Promise.withResolvers<void>();
    script.push({ text: "Hello.", after: looked.promise });
    const running = session.runTurn("Hi");
    while (script.requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    atCall = outline(await records());
    looked.resolve();
    const turn = await running;
    expect(atCall).toEqual(["turn:open", "user"]);
    expect(turn).toMatchObject({ outcome: "done", text: "Hello.", stopReason: "stop", replayed: false });
    expect(outline(await records())).toEqual(["turn:open", "user", "assistant:stop", "call:answered", "turn:done"]);
    expect(script.requests[0]).toEqual({
      system: "Be kind.",
      messages: [{ role: "user", content: [{ type: "text", text: "Hi" }] }],
      tools: [echoTool.definition],
    });
  });

  it("keeps text beside calls, all parallel calls and each result as it comes, in causal order [C48, LOOP-05, LOOP-06, STO-06]", async () => {
    const slow = Promise.withResolvers<void>();
    const script = createScriptedModel(
      { text: "Let me look.", calls: [callEcho("a", "slow"), callEcho("b", "fast")] },
      "Both done.",
    );
    const tool = {
      ...echoTool,
      run: async ({ text }: Readonly<Record<string, unknown>>) => {
        if (text === "slow") await slow.promise;
        return `echo: ${String(text)}`;
      },
    };
    const { sessions, records, events } = createFixture({ script, tools: [tool] });
    await using session = await sessions.open(key);
    const running = session.runTurn("Go");
    while (!events.some(({ name }) => name === "tool.finished")) await new Promise((resolve) => setTimeout(resolve, 1));
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(outline(await records())).toEqual(["turn:open", "user", "assistant:toolUse", "call:answered", "toolResult"]);
    slow.resolve();
    const turn = await running;
    const messages = (await records()).filter(({ type }) => type === "message");
    expect(messages.map(({ record }) => (record["message"] as { toolCallId?: string }).toolCallId ?? null)).toEqual([
      null,
      null,
      "b",
      "a",
      null,
    ]);
    expect(turn.messages.map(({ role }) => role)).toEqual([
      "user",
      "assistant",
      "toolResult",
      "toolResult",
      "assistant",
    ]);
    expect(JSON.stringify((turn.messages[1] as Message)["content" as never])).toContain("Let me look.");
    expect(turn.calls).toHaveLength(2);
    expect(turn.usage).toEqual({ input: 20, output: 10, cacheRead: 0, cacheWrite: 0, reasoning: 0 });
  });

  it("answers every call exactly once: unknown tools, wrong arguments, tools that throw", async () => {
    const script = createScriptedModel({
      calls: [
        { id: "1", name: "nothing", arguments: {} },
        { id: "2", name: "echo", arguments: { text: 5 } },
        { id: "3", name: "fails", arguments: {} },
      ],
    });
    const fails = {
      definition: { name: "fails", description: "Fails.", inputSchema: { type: "object" } },
      run: () => {
        throw new Error("No such file.");
      },
    };
    const { sessions } = createFixture({ script, tools: [echoTool, fails] });
    await using session = await sessions.open(key);
    const turn = await session.runTurn("Go");
    const results = turn.messages.filter(({ role }) => role === "toolResult");
    expect(results.map((result) => JSON.stringify(result["content" as never]))).toEqual([
      expect.stringContaining('There is no tool \\"nothing\\". There are: echo, fails.'),
      expect.stringContaining("arguments.text must be string, not integer"),
      expect.stringContaining("No such file."),
    ]);
    expect(results.every((result) => result["isError" as never] === true)).toBe(true);
  });

  it("takes whatever a tool returns, and says so when it cannot be kept", async () => {
    const outputs: unknown[] = [undefined, { rows: 2 }, { content: "text", details: { size: 3n } }];
    const script = createScriptedModel({ calls: [callEcho("1"), callEcho("2"), callEcho("3")] });
    const tool = { ...echoTool, run: () => outputs.shift() as string };
    const { sessions } = createFixture({ script, tools: [tool] });
    await using session = await sessions.open(key);
    const { messages, outcome } = await session.runTurn("Go");
    const results = messages.filter(({ role }) => role === "toolResult").map((result) => JSON.stringify(result));
    expect(results.toSorted()).toEqual([
      expect.stringMatching(/"toolCallId":"1".*"text":""/),
      expect.stringMatching(/"toolCallId":"2".*rows/),
      expect.stringMatching(/"toolCallId":"3".*"text":"text".*The details are not JSON/),
    ]);
    expect(outcome).toBe("done");
  });

  it("gives a tool arguments of its own, so that the log keeps what the model asked", async () => {
    const script = createScriptedModel({ calls: [callEcho("1")] });
    const tool = {
      ...echoTool,
      run: (args: Readonly<Record<string, unknown>>) => {
        delete (args as Record<string, unknown>)["text"];
        return "done";
      },
    };
    const { sessions, records } = createFixture({ script, tools: [tool] });
    await using session = await sessions.open(key);
    await session.runTurn("Go");
    expect(JSON.stringify(script.requests[1]?.messages)).toContain('"input":{"text":"hi"}');
    expect(JSON.stringify((await records())[2]?.record)).toContain('"arguments":{"text":"hi"}');
  });

  it("stops at its limit with every call answered, and goes on when asked", async () => {
    const script = createScriptedModel({ calls: [callEcho("1")] }, { calls: [callEcho("2")] }, "Done.");
    const { sessions, records } = createFixture({ script });
    await using session = await sessions.open(key);
    const turn = await session.runTurn("Go", { maxSteps: 2 });
    expect(turn.outcome).toBe("step-limit");
    expect(outline(await records()).slice(-2)).toEqual(["toolResult", "turn:step-limit"]);
    const resumed = await session.resume();
    expect(resumed).toMatchObject({ outcome: "done", text: "Done." });
    expect(
      (await records()).filter(({ record }) => (record["message"] as Message | undefined)?.role === "user"),
    ).toHaveLength(1);
    await expect(session.resume()).rejects.toMatchObject({ code: "INPUT_INVALID" });
  });

  it("remembers after a restart what tools returned, in every session", async () => {
    const data = createMemoryData();
    const other = "agent:main:cli:direct:work";
    {
      const script = createScriptedModel({ calls: [callEcho("1", "the code is 7")] }, "Noted.", "Fine.");
      await using sessions = createFixture({ script, store: createMemoryStore({ data }) }).sessions;
      await (await sessions.open(key)).runTurn("Remember");
      await (await sessions.open(other)).runTurn("Elsewhere");
    }
    const { sessions, model } = createFixture({ store: createMemoryStore({ data }) });
    await using session = await sessions.open(key);
    expect(session.restored).toEqual({ turns: 1, messages: 4 });
    await session.runTurn("What was it?");
    expect(JSON.stringify(model.requests[0]?.messages)).toContain("echo: the code is 7");
    await using second = await sessions.open(other);
    expect(second.restored).toEqual({ turns: 1, messages: 2 });
    await second.runTurn("And here?");
    const sent = JSON.stringify(model.requests[1]?.messages);
    expect(sent).toContain("Elsewhere");
    expect(sent).not.toContain("the code is 7");
    await session.runTurn("Back again");
    expect(JSON.stringify(model.requests[2]?.messages)).toContain("echo: the code is 7");
  });

  it("a reset lasts: nothing of the old session is sent, here or after a restart [LOOP-08, C16]", async () => {
    const data = createMemoryData();
    const { sessions, model } = createFixture({ store: createMemoryStore({ data }) });
    await using session = await sessions.open(key);
    await session.runTurn("The secret is blue");
    const { sessionId } = session;
    await session.reset();
    expect(session.sessionId).not.toBe(sessionId);
    await session.runTurn("Anything?");
    const again = createFixture({ store: createMemoryStore({ data }) });
    await using reopened = await again.sessions.open(key);
    await reopened.runTurn("Now?");
    for (const { requests } of [model, again.model])
      expect(JSON.stringify(requests.at(-1)?.messages)).not.toContain("blue");
    expect((await again.store.list({ state: "archived" })).sessions.map((state) => state.sessionId)).toEqual([
      sessionId,
    ]);
  });

  it("redacts a record before the store and the model see it", async () => {
    const { sessions, model, records } = createFixture({
      redactBeforeAppend: (draft) => JSON.parse(JSON.stringify(draft).replaceAll("hunter2", "***")) as typeof draft,
    });
    await using session = await sessions.open(key);
    await session.runTurn("My password is hunter2");
    expect(JSON.stringify(await records())).not.toContain("hunter2");
    expect(JSON.stringify(model.requests)).toContain("***");
    expect(JSON.stringify(model.requests)).not.toContain("hunter2");
  });
});
