import { describe, expect, it } from "vitest";
import type { ChatDelta, ChatRequest } from "@throughline/core";
import { scriptedModel } from "@throughline/testing";

const ask = (rest: Partial<ChatRequest> = {}): ChatRequest => ({
  modelId: "scripted",
  system: null,
  messages: [{ role: "user", content: "Weather?" }],
  ...rest,
});
const tools = [
  { name: "weather", description: "", inputSchema: { type: "object" } },
  { name: "answer", description: "", inputSchema: { type: "object" } },
];

describe("scriptedModel", () => {
  it("answers one step a call, and keeps what it received", async () => {
    const { chat, requests, modelId } = scriptedModel([
      "Rain.",
      { text: "Sun.", usage: { input: 3, output: 2, cacheRead: 0, cacheWrite: 0 } },
    ]);
    const first = await chat.chat(ask());
    expect(first.message).toMatchObject({
      role: "assistant",
      content: [{ type: "text", text: "Rain." }],
      stopReason: "stop",
    });
    expect(first.usage).toBeNull();
    expect((await chat.chat(ask({ tools, toolChoice: "required" }))).usage).toMatchObject({ input: 3, output: 2 });
    expect(requests).toMatchObject([{ number: 1 }, { number: 2, toolChoice: "required", tools }]);
    expect(modelId).toBe("scripted");
  });

  it("counts the steps that were not used", async () => {
    const model = scriptedModel(["One.", "Two."]);
    await model.chat.chat(ask());
    expect(model.stepsLeft).toBe(1);
  });

  it("states which call was not scripted, and what it asked", async () => {
    const { chat } = scriptedModel(["One."]);
    await chat.chat(ask());
    await expect(chat.chat(ask())).rejects.toMatchObject({
      code: "MODEL_FAILED",
      message:
        'scriptedModel: call 2 is not scripted; the script has 1 step. The last message of the call: {"role":"user","content":"Weather?"}',
      remedy: "Add step 2 to the script.",
    });
  });

  it("keeps a copy of each request, whatever the caller changes later", async () => {
    const model = scriptedModel(["One."]);
    const messages = [{ role: "user", content: "before" }];
    await model.chat.chat(ask({ messages }));
    messages.push({ role: "user", content: "after" });
    expect(model.requests[0]?.messages).toEqual([{ role: "user", content: "before" }]);
  });

  it("streams pieces, thinking and calls in order", async () => {
    const deltas: ChatDelta[] = [];
    const { chat } = scriptedModel([
      { thinking: "Hm.", text: "It rains.", pieceLength: 4, calls: [{ name: "weather", arguments: { city: "Graz" } }] },
    ]);
    const { message } = await chat.chat(ask({ onDelta: (delta) => deltas.push(delta) }));
    expect(deltas).toEqual([
      { type: "thinking", text: "Hm." },
      { type: "text", text: "It r" },
      { type: "text", text: "ains" },
      { type: "text", text: "." },
      { type: "tool-call", id: "call_1", name: "weather" },
    ]);
    expect(message.stopReason).toBe("toolUse");
  });

  it("gives each call its own id, over all steps", async () => {
    const call = { calls: [{ name: "weather" }] };
    const { chat } = scriptedModel([call, { calls: [{ name: "weather", id: "mine" }, { name: "weather" }] }]);
    const ids = [];
    for (let count = 0; count < 2; count++) {
      const { content } = (await chat.chat(ask())).message;
      ids.push(...(content as readonly { readonly id?: unknown }[]).map(({ id }) => id));
    }
    expect(ids).toEqual(["call_1", "mine", "call_2"]);
  });

  it("takes a step from a function of the request", async () => {
    const { chat } = scriptedModel([async ({ messages, number }) => `${number}: ${messages.length} message`]);
    expect((await chat.chat(ask())).message.content).toEqual([{ type: "text", text: "1: 1 message" }]);
  });

  it("rejects with the error of a step, after the text that arrived before it", async () => {
    const busy = Object.assign(new Error("busy"), { status: 529 });
    const { chat } = scriptedModel([busy, { text: "It ra", error: busy }]);
    await expect(chat.chat(ask())).rejects.toBe(busy);
    const partials: unknown[] = [];
    await expect(chat.chat(ask({ onPartial: (partial) => partials.push(partial) }))).rejects.toBe(busy);
    expect(partials).toMatchObject([{ content: [{ type: "text", text: "It ra" }], stopReason: "error" }]);
  });

  it("ends a wait at once when the call is aborted, and keeps what arrived", async () => {
    const controller = new AbortController();
    const { chat } = scriptedModel([
      { text: "One.", delayMs: 60_000 },
      { text: "It rains.", pieceLength: 3, pieceDelayMs: 1 },
    ]);
    const waiting = chat.chat(ask({ signal: controller.signal }));
    controller.abort();
    await expect(waiting).rejects.toMatchObject({ code: "ABORTED" });
    const next = new AbortController();
    const partials: unknown[] = [];
    const answer = chat.chat(
      ask({ signal: next.signal, onDelta: () => next.abort(), onPartial: (partial) => partials.push(partial) }),
    );
    await expect(answer).rejects.toMatchObject({ code: "ABORTED" });
    expect(partials).toMatchObject([{ content: [{ type: "text", text: "It " }], stopReason: "aborted" }]);
  });

  it("gives a structured answer as JSON, or as a call of the tool that takes it", async () => {
    const step = { output: { city: "Graz" } };
    const { chat } = scriptedModel([step, step, step]);
    const output = { name: "answer", schema: { type: "object" } };
    expect((await chat.chat(ask({ tools, output }))).message.content).toEqual([
      { type: "text", text: '{"city":"Graz"}' },
    ]);
    expect((await chat.chat(ask({ tools }))).message.content).toMatchObject([
      { name: "answer", arguments: { city: "Graz" } },
    ]);
    const forced = ask({ tools, toolChoice: { tool: "weather" } });
    expect((await chat.chat(forced)).message.content).toMatchObject([{ name: "weather" }]);
  });

  it.each([
    [{ txt: "Hello" }, 'step 2 has the unknown field "txt"'],
    [{}, "step 2 is no step"],
    [null, "step 2 is no step"],
  ])("refuses %j, and names the step", (step, problem) => {
    expect(() => scriptedModel(["One.", step as string])).toThrow(`scriptedModel(): ${problem}.`);
  });

  it("refuses a wrong step of a function when it is used", async () => {
    const { chat } = scriptedModel([() => ({ txt: "Hello" }) as unknown as string]);
    await expect(chat.chat(ask())).rejects.toMatchObject({ code: "INPUT_INVALID" });
  });
});
