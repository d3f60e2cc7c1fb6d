import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { afterEach, beforeEach, describe, expect, expectTypeOf, it } from "vitest";
import { type } from "arktype";
import * as v from "valibot";
import { z } from "zod";
import { defineTool, type SessionStore } from "@throughline/core";
import { createMemoryStore } from "@throughline/store-memory";
import { createProviderSimulator, scriptedModel, type ProviderSimulator } from "@throughline/testing";
import {
  createSessions,
  explainCalls,
  rebuildCall,
  type RunTurnOptions,
  type SessionsOptions,
  type Turn,
} from "@throughline/session";
import { bundledWorker } from "../../../tools/bundle-worker.ts";
import { openStore } from "./process-store.ts";
import { readCallPart } from "../src/call-record.ts";
import { allRecords, key } from "./session-fixture.ts";
import { providerCases } from "./provider-cases.ts";

const city = z.object({ name: z.string(), population: z.number().int().min(1) });
const vienna = { name: "Vienna", population: 2_000_000 };
const wrong = { name: "Vienna", population: 0 };

const weather = defineTool({
  name: "weather",
  description: "The weather of a city.",
  input: z.object({ city: z.string() }),
  run: ({ city: name }) => `Sunny in ${name}.`,
});

function sessionsWith(
  model: SessionsOptions["model"],
  options: Partial<SessionsOptions> = {},
  store: SessionStore = createMemoryStore(),
) {
  return createSessions({ store, model, ...options });
}

async function open(...args: Parameters<typeof sessionsWith>) {
  return (await sessionsWith(...args)).open(key);
}

describe("a turn with an output schema", () => {
  it("gives the checked answer, typed by the schema", async () => {
    const model = scriptedModel([{ output: vienna }]);
    const turn = await (await open(model)).runTurn("The largest city of Austria?", { output: city });
    if (turn.outcome !== "done") throw new Error(turn.outcome);
    expectTypeOf(turn.output).toEqualTypeOf<{ name: string; population: number }>();
    expect(turn.output).toEqual(vienna);
    expect(model.requests[0]?.output).toMatchObject({ name: "answer", schema: { type: "object" } });
    expect(model.requests[0]?.tools).toBeUndefined();
  });

  it("gives the value in the form of the schema, not the text of the model", async () => {
    const output = z.object({ since: z.string().transform((text) => new Date(text).getUTCFullYear()) });
    const turn = await (await open(scriptedModel([{ output: { since: "1156-09-17" } }]))).runTurn("Since?", { output });
    expect(turn.output).toEqual({ since: 1156 });
  });

  it.each([
    [
      "valibot",
      {
        schema: v.object({ name: v.string() }),
        jsonSchema: { type: "object", properties: { name: { type: "string" } } },
      },
    ],
    ["arktype", type({ name: "string" })],
    ["JSON Schema", { type: "object", properties: { name: { type: "string" } }, required: ["name"] }],
  ])("takes a schema of %s", async (_library, output) => {
    const model = scriptedModel([{ output: { name: 1 } }, { output: { name: "Graz" } }]);
    const turn = await (await open(model)).runTurn("Name?", { output: output as RunTurnOptions["output"] });
    expect(turn.output).toEqual({ name: "Graz" });
    expect(model.stepsLeft).toBe(0);
  });

  it("asks once for a correction, with ordinary messages that state each issue", async () => {
    const model = scriptedModel([{ output: { name: 7, population: 0 } }, { output: vienna }]);
    const session = await open(model);
    const turn = await session.runTurn("City?", { output: city });
    expect(turn.output).toEqual(vienna);
    expect(turn.messages.map(({ role }) => role)).toEqual(["user", "assistant", "user", "assistant"]);
    const [, , correction] = turn.messages;
    expect(correction).toMatchObject({ content: expect.stringContaining("- answer.name: ") });
    expect(correction).toMatchObject({ content: expect.stringContaining("- answer.population: ") });
    expect((await session.transcript()).messages).toHaveLength(4);
  });

  it("regenerates the answer to the question, not to the correction", async () => {
    const model = scriptedModel([{ output: wrong }, { output: vienna }, { output: vienna }]);
    const session = await open(model);
    await session.runTurn("City?", { output: city });
    const turn = await session.regenerate({ output: city });
    expect(turn.output).toEqual(vienna);
    expect(model.requests[2]?.messages).toHaveLength(1);
  });

  it("fails after the second wrong answer, with the issues, and keeps every reply", async () => {
    const store = createMemoryStore();
    const session = await open(scriptedModel([{ output: wrong }, { output: wrong }, "Next."]), {}, store);
    await expect(session.runTurn("City?", { output: city })).rejects.toMatchObject({
      code: "OUTPUT_INVALID",
      message: expect.stringContaining("answer.population"),
      details: {
        turnId: expect.any(String),
        text: JSON.stringify(wrong),
        issues: [{ path: ".population", message: expect.any(String) }],
      },
    });
    expect((await session.transcript()).messages).toHaveLength(4);
    expect(session.interruptedTurn).toBeNull();
    expect((await session.runTurn("And now?")).text).toBe("Next.");
  });

  it("does not ask again behind the limit of steps", async () => {
    const model = scriptedModel([{ output: wrong }, { output: vienna }]);
    const turn = (await open(model)).runTurn("City?", { output: city, maxSteps: 1 });
    await expect(turn).rejects.toMatchObject({ code: "OUTPUT_INVALID" });
    expect(model.stepsLeft).toBe(1);
  });

  it.each([
    ["text", "It is Vienna."],
    ["a fence", `\`\`\`json\n${JSON.stringify(vienna)}\n\`\`\``],
  ])("reads %s as far as it is JSON", async (_what, text) => {
    const model = scriptedModel([text, { output: vienna }]);
    const turn = await (await open(model)).runTurn("City?", { output: city });
    expect(turn.output).toEqual(vienna);
    expect(model.stepsLeft).toBe(text.startsWith("It") ? 0 : 1);
  });

  it("gives no answer for a turn that ends otherwise", async () => {
    const controller = new AbortController();
    const model = scriptedModel([{ output: vienna, delayMs: 60_000 }]);
    const running = (await open(model)).runTurn("City?", { output: city, signal: controller.signal });
    setTimeout(() => controller.abort(), 10);
    const turn = await running;
    expect([turn.outcome, turn.output]).toEqual(["aborted", undefined]);
  });

  it("refuses a schema that is none of an object, before anything is stored", async () => {
    const store = createMemoryStore();
    const session = await open(scriptedModel([]), {}, store);
    const before = (await allRecords(store)).length;
    await expect(session.runTurn("Hi", { output: z.string() })).rejects.toMatchObject({ code: "INPUT_INVALID" });
    await expect(session.runTurn("Hi", { output: v.object({}) })).rejects.toMatchObject({
      code: "INPUT_INVALID",
      remedy: "Pass the JSON Schema too: `output: { schema, jsonSchema }`.",
    });
    expect(await allRecords(store)).toHaveLength(before);
  });
});

describe("where a tool takes the answer", () => {
  const options = { jsonMode: false };

  it("is called after the other tools, and ends the turn", async () => {
    const calls = [{ name: "weather", arguments: { city: "Vienna" } }];
    const model = scriptedModel([{ calls }, { output: vienna }], options);
    const session = await open(model, { tools: [weather] });
    const turn = await session.runTurn("City?", { output: city });
    expect([turn.outcome, turn.output]).toEqual(["done", vienna]);
    expect(model.requests.map(({ toolChoice }) => toolChoice)).toEqual(["required", "required"]);
    expect(model.requests[0]?.tools?.map(({ name }) => name)).toEqual(["weather", "answer"]);
  });

  it("has another name beside a tool of its name", async () => {
    const own = defineTool({ name: "answer", description: "", input: { type: "object" }, run: () => "own" });
    const model = scriptedModel([{ output: vienna }], options);
    await (await open(model, { tools: [own] })).runTurn("City?", { output: city });
    expect(model.requests[0]?.tools?.map(({ name }) => name)).toEqual(["answer", "answer_2"]);
  });

  it("is corrected by its result", async () => {
    const model = scriptedModel([{ output: wrong }, { output: vienna }], options);
    const turn = await (await open(model)).runTurn("City?", { output: city });
    expect(turn.output).toEqual(vienna);
    expect(turn.messages[2]).toMatchObject({
      role: "toolResult",
      isError: true,
      content: [{ text: expect.stringContaining("answer.population") }],
    });
  });

  it("counts arguments that the JSON Schema refuses as an answer, so that the turn ends", async () => {
    const model = scriptedModel([{ output: { name: 7 } }, { output: { name: 7 } }, "Never asked."], options);
    await expect((await open(model)).runTurn("City?", { output: city })).rejects.toMatchObject({
      code: "OUTPUT_INVALID",
    });
    expect(model.stepsLeft).toBe(1);
  });

  it("is asked for by name when the model answers in text", async () => {
    const model = scriptedModel(["Vienna.", { output: vienna }], options);
    const turn = await (await open(model)).runTurn("City?", { output: city });
    expect(turn.output).toEqual(vienna);
    expect(turn.messages[2]).toMatchObject({ content: expect.stringContaining("Call the tool answer") });
  });

  it("is never a question for a person", async () => {
    const asked: string[] = [];
    const approveTool: SessionsOptions["approveTool"] = ({ name }) => {
      asked.push(name);
      return true;
    };
    const calls = [{ name: "weather", arguments: { city: "Vienna" } }];
    const model = scriptedModel([{ calls }, { output: vienna }], options);
    const turn = await (await open(model, { tools: [weather], approveTool })).runTurn("City?", { output: city });
    expect([turn.output, asked]).toEqual([vienna, ["weather"]]);
  });

  it("leaves a history that the next turn continues", async () => {
    const model = scriptedModel([{ output: vienna }, "Yes."], options);
    const session = await open(model);
    await session.runTurn("City?", { output: city });
    expect((await session.runTurn("Sure?")).text).toBe("Yes.");
    expect(model.requests[1]?.tools).toBeUndefined();
  });
});

describe("the call's record", () => {
  it.each([true, false])("rebuilds the request, with the schema (JSON mode: %s)", async (jsonMode) => {
    const store = createMemoryStore();
    const model = scriptedModel([{ output: wrong }, { output: vienna }], { jsonMode });
    const session = await open(model, { tools: [weather] }, store);
    await session.runTurn("City?", { output: city });
    const records = await allRecords(store);
    const calls = explainCalls(records);
    expect(calls).toHaveLength(2);
    for (const [index, { facts }] of calls.entries()) {
      const prefix = { system: null, tools: [weather.definition] };
      const rebuilt = rebuildCall(records, facts, prefix);
      const sent = model.requests[index];
      expect(rebuilt.areSameTools).toBe(true);
      expect(rebuilt.tools).toEqual(sent?.tools);
      expect(rebuilt.output ?? undefined).toEqual(sent?.output);
      expect(rebuilt.toolChoice).toEqual(sent?.toolChoice ?? "auto");
      expect(JSON.stringify(rebuilt.messages)).toBe(JSON.stringify(sent?.messages));
    }
    const parts = records.map(({ record }) => readCallPart(record)).filter((part) => part !== null);
    expect(parts.filter((part) => part.part === 2)).not.toHaveLength(0);
  });
});

describe("a resumed turn", () => {
  it("is asked in the form of the turn that it resumes, also in another process", async () => {
    const store = createMemoryStore();
    const first = scriptedModel([{ calls: [{ name: "weather", arguments: { city: "Vienna" } }] }], { jsonMode: false });
    const waiting = await open(first, { tools: [weather], approveTool: () => ({ wait: {} }) }, store);
    const turn = await waiting.runTurn("City?", { output: city });
    expect([turn.outcome, turn.output]).toEqual(["waiting", undefined]);
    const second = scriptedModel([{ output: vienna }], { jsonMode: false });
    const session = await open(second, { tools: [weather], approveTool: () => ({ wait: {} }) }, store);
    const [call] = session.pendingApprovals;
    const resumed: Turn = await session.resume({ approvals: { [call?.callId ?? ""]: true } });
    expect([resumed.outcome, resumed.output]).toEqual(["done", vienna]);
    expect(second.requests[0]?.tools).toEqual(first.requests[0]?.tools);
  });

  it("is checked by the schema that it is given", async () => {
    const store = createMemoryStore();
    const broken = scriptedModel([{ text: '{"na', error: new Error("cut") }]);
    const options = { idempotencyKey: "mail-1", output: city };
    await expect((await open(broken, {}, store)).runTurn("City?", options)).rejects.toMatchObject({
      code: "MODEL_FAILED",
    });
    const turn = await (
      await open(scriptedModel([{ output: wrong }, { output: vienna }]), {}, store)
    ).runTurn("City?", options);
    expect(turn.output).toEqual(vienna);
    const again = await (await open(scriptedModel([]), {}, store)).runTurn("City?", options);
    expect([again.replayed, again.output]).toEqual([true, vienna]);
  });

  it("gives the answer of a tool again too", async () => {
    const store = createMemoryStore();
    const options = { idempotencyKey: "mail-1", output: city };
    await (await open(scriptedModel([{ output: vienna }], { jsonMode: false }), {}, store)).runTurn("City?", options);
    const again = await (await open(scriptedModel([], { jsonMode: false }), {}, store)).runTurn("City?", options);
    expect([again.replayed, again.output]).toEqual([true, vienna]);
  });
});

it("takes the recorded schema after its process was killed in a tool", { tags: ["slow"] }, async () => {
  const folder = await mkdtemp(join(tmpdir(), "output-"));
  const script = bundledWorker(new URL("./output-process.ts", import.meta.url));
  const child = spawn(process.execPath, [script, folder], { stdio: ["ignore", "pipe", "inherit"] });
  const exited = once(child, "exit");
  await Promise.race([once(child.stdout, "data"), exited.then(() => Promise.reject(new Error("No tool ran.")))]);
  child.kill("SIGKILL");
  await exited;
  {
    await using store = openStore("sqlite", folder);
    const model = scriptedModel([{ output: { name: "Vienna" } }, { output: vienna }], { jsonMode: false });
    const session = await open(model, { tools: [weather] }, store);
    expect(session.interruptedTurn).not.toBeNull();
    const turn = await session.resume();
    expect([turn.outcome, turn.output]).toEqual(["done", vienna]);
    expect(model.requests[0]?.tools?.at(-1)).toMatchObject({
      name: "answer",
      inputSchema: { required: ["name", "population"] },
    });
  }
  await rm(folder, { recursive: true, force: true });
});

it("streams the answer, and gives it as the result", async () => {
  const stream = (await open(scriptedModel([{ output: vienna, pieceLength: 5 }]))).streamTurn("City?", {
    output: city,
  });
  let text = "";
  for await (const event of stream) if (event.name === "text.delta") text += event.text;
  expect(JSON.parse(text)).toEqual(vienna);
  const turn = await stream.result;
  if (turn.outcome === "done") expectTypeOf(turn.output.name).toBeString();
  expect(turn.output).toEqual(vienna);
});

describe.each(providerCases)("$name", ({ create, modelId }) => {
  let simulator: ProviderSimulator;

  beforeEach(async () => {
    simulator = createProviderSimulator({
      replies: [
        { kind: "answer", content: [{ type: "tool-call", name: "weather", input: { city: "Vienna" } }] },
        { kind: "answer", content: [{ type: "json", value: wrong }] },
        { kind: "answer", content: [{ type: "json", value: vienna }] },
        "It is sunny.",
      ],
      models: { "*": { windowTokens: 1_000_000 } },
    });
    await simulator.start();
  });
  afterEach(() => simulator.close());

  it("is asked by its own rules: tools first, a correction, and a history that it accepts", async () => {
    const session = await open({ chat: create(simulator), modelId }, { tools: [weather] });
    const turn = await session.runTurn("City?", { output: city });
    expect(turn.output).toEqual(vienna);
    expect((await session.runTurn("And the weather?")).text).toBe("It is sunny.");
    expect(simulator.refusals).toEqual([]);
    expect(simulator.requests).toHaveLength(4);
  });
});
