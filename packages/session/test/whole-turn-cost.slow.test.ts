import type { ChatModel, ChatRequest } from "@throughline/core";
import { createAgentSessions } from "../src/whole-turn/agent-sessions.ts";
import type { AgentSessionsOptions } from "../src/whole-turn/whole-turn-options.ts";
import { createMemoryStore } from "@throughline/store-memory";
import { createChatSummarizer } from "@throughline/summarizer-providers";
import { describe, expect, it } from "vitest";
import { createScriptedModel, type ScriptedReply } from "./scripted-model.ts";
import { echoTool } from "./session-fixture.ts";
import { writeTool } from "./whole-turn-fixture.ts";

interface Calls {
  turns: number;
  flushes: number;
  summaries: number;
  checkpoints: number;
}

const turnCount = 200;
const checkpointReply =
  '{"summary":"They speak of ships.","topics":["ships"],"keyDecisions":["none"],"openQuestions":["none"]}';
const summaryReply = "Topics: ships.\nDecisions: none.\nCurrent state: under way.\nOpen items: the rest.";

/** A model that answers every call, and counts the calls by what they are for. */
function countingModel(calls: Calls): ChatModel {
  const scripted = createScriptedModel();
  const replyTo = (request: ChatRequest): ScriptedReply => {
    if (request.tools === undefined || request.tools.length === 0) {
      const isCheckpoint = /json/i.test(JSON.stringify([request.system, request.messages]));
      calls[isCheckpoint ? "checkpoints" : "summaries"]++;
      return { text: isCheckpoint ? checkpointReply : summaryReply };
    }
    const last = JSON.stringify(request.messages.at(-1));
    const isAsked = !last.includes("Question") && !last.includes("tool_result");
    calls[isAsked ? "flushes" : "turns"]++;
    if (isAsked) return { text: "NO_REPLY" };
    if (last.includes("tool_result")) return { text: "An answer of five hundred bytes. ".repeat(15) };
    return { calls: [{ id: `call-${calls.turns}`, name: "echo", arguments: { text: "r".repeat(1000) } }] };
  };
  return {
    ...scripted,
    chat(request) {
      // As a provider counts: about four characters a token.
      const input = Math.ceil(JSON.stringify([request.system, request.messages]).length / 4);
      scripted.push({ ...replyTo(request), usage: { input, output: 130, cacheRead: 0, cacheWrite: 0 } });
      return scripted.chat(request);
    },
  };
}

const begins: ReadonlySet<string> = new Set(["step.started", "checkpoint.started"]);
const stepEnds: readonly string[] = ["step.finished", "step.failed"];
const ends: ReadonlySet<string> = new Set([
  ...stepEnds,
  "checkpoint.written",
  "checkpoint.dropped",
  "checkpoint.failed",
]);

/** The calls of 200 turns of 200 bytes, a tool call, a result of 1,000 bytes, and an answer of 500 bytes. */
async function callsOf(given: Partial<AgentSessionsOptions>): Promise<Calls> {
  const calls: Calls = { turns: 0, flushes: 0, summaries: 0, checkpoints: 0 };
  const model = {
    chat: countingModel(calls),
    modelId: "claude-sonnet-4-5",
    windowTokens: 16_000,
    maxOutputTokens: 1000,
  };
  await using store = createMemoryStore();
  let running = 0;
  const sessions = createAgentSessions({
    store,
    model,
    system: "Be kind.",
    tools: [echoTool, writeTool],
    summarizers: [createChatSummarizer({ model, name: "main" })],
    onEvent: ({ name }) => {
      if (begins.has(name)) running++;
      if (ends.has(name)) running--;
    },
    ...given,
  });
  const session = await sessions.open("home");
  for (let turn = 0; turn < turnCount; turn++) {
    await session.runTurn(`Question ${turn}: ${"what is it like? ".repeat(11)}`);
    // A person reads the answer meanwhile: steps in the background end before the next turn, and so does a checkpoint,
    // which its step only begins.
    do await new Promise((resolve) => setImmediate(resolve));
    while (running > 0);
  }
  await sessions.close();
  return calls;
}

/** At which moment a background call runs differs from run to run: by so many calls at most. */
const spread = 6;

// `docs/defaults.md` states these figures.
describe("the model calls of 200 turns in a window of 16,000 tokens", () => {
  it.each([
    ["with all options at their defaults", {}, { summaries: 0, checkpoints: 37 }],
    ["without checkpoints", { checkpoint: { enabled: false } }, { summaries: 17, checkpoints: 0 }],
    ["without the memory flush", { memoryFlush: { enabled: false } }, { summaries: 0, checkpoints: 43 }],
    [
      "without all of them",
      { checkpoint: { enabled: false }, memoryFlush: { enabled: false }, summarizers: [] },
      { summaries: 0, checkpoints: 0 },
    ],
  ] as const)("%s", async (_, given, expected) => {
    const calls = await callsOf(given);
    expect(calls).toMatchObject({ turns: 2 * turnCount, flushes: 0 });
    for (const kind of ["summaries", "checkpoints"] as const) {
      const allowed = expected[kind] === 0 ? 0 : spread;
      expect(Math.abs(calls[kind] - expected[kind]), `${kind}: ${calls[kind]}`).toBeLessThanOrEqual(allowed);
    }
  });
});
