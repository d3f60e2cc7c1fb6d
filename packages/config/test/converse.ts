import { setImmediate as pause } from "node:timers/promises";
import { chatCheckpointWriter } from "@throughline/checkpoint";
import { sessionSettings } from "@throughline/config";
import type { HelperModel } from "../src/session-settings.ts";
import type {
  AgentTool,
  AssistantMessage,
  ChatModel,
  ChatRequest,
  Clock,
  SessionEntry,
  StoredRecord,
} from "@throughline/core";
import { createAgentSessions, type WholeTurnEvent } from "@throughline/session/whole-turn";

import { createMemoryStore } from "@throughline/store-memory";
import type { ChainedSummarizer } from "@throughline/summarizer-providers/internal";
import {
  createChatSummarizer,
  createExtractiveSummarizer,
  createSummarizerBreakers,
  createSummarizerChain,
} from "@throughline/summarizer-providers";
import { resolve } from "./resolve.ts";

/** What a conversation is like that shows a setting at work. */
export interface Talk {
  /** @default 20 */
  readonly turns?: number;
  /** Of each message of the user. @default 1000 */
  readonly tokensPerTurn?: number;
  /** 0: nobody knows it. @default 20000 */
  readonly windowTokens?: number;
  /** The window of the model that answers one more question at the end. @default none is asked */
  readonly shrinksTo?: number;
  /** How those answer that write summaries. @default "work" */
  readonly helpers?: "work" | "fail" | "hang";
  /** Of the clock, after each turn. @default 0 */
  readonly stepMs?: number;
  /** Called by the model with every question, until it has been answered so often. @default none */
  readonly toolCalls?: {
    readonly name: string;
    readonly path: string;
    readonly times: number;
    readonly both?: boolean;
  };
  /** Whether every wait is over at once. @default false */
  readonly sleepsAreOver?: boolean;
}

/** What was seen of it. */
export interface Seen {
  readonly requests: readonly Pick<ChatRequest, "system" | "messages" | "maxOutputTokens">[];
  /** Who was asked for summaries and checkpoints, in order. */
  readonly asked: readonly {
    readonly name: string;
    readonly for: "summary" | "checkpoint";
    readonly maxOutputTokens: number | null;
    readonly baseUrl: string | null;
  }[];
  readonly events: readonly WholeTurnEvent[];
  readonly records: readonly StoredRecord[];
  readonly entry: SessionEntry;
  /** Delays that were asked of the clock. */
  readonly sleeps: readonly number[];
  readonly toolLog: readonly string[];
}

const key = "agent:main:cli:direct:settings";
const startMs = Date.parse("2026-03-01T23:30:00Z");

/** A conversation with sessions made of what a configuration file says, the way an application makes them. */
export async function converse(session: object, talk: Talk = {}, others: object = {}): Promise<Seen> {
  const settings = sessionSettings(await resolve({ file: { tools: "all", ...others, session } }));
  const { turns = 20, windowTokens = 20_000, tokensPerTurn = 1000, stepMs = 0 } = talk;
  const seen = { requests: [], asked: [], events: [], sleeps: [], toolLog: [] } as {
    -readonly [Part in "requests" | "asked" | "events" | "sleeps" | "toolLog"]: Seen[Part][number][];
  };
  const clock = talkClock(talk, seen.sleeps);
  const main = mainModel(talk, seen.requests);
  const helper = (model: HelperModel, use: "summary" | "checkpoint"): ChatModel =>
    helperModel(model, use, talk, seen.asked);
  const mainHelper: HelperModel = {
    provider: "anthropic",
    modelId: "main",
    baseUrl: null,
    contextTokens: null,
    deadlineMs: null,
  };
  const chained: ChainedSummarizer[] = [...settings.summaryModels, ...(settings.asksMainModel ? [mainHelper] : [])].map(
    (model) => ({
      name: `${model.provider}/${model.modelId}`,
      summarizer: createChatSummarizer({
        model: { chat: helper(model, "summary"), modelId: model.modelId, windowTokens: model.contextTokens },
        clock,
        ...(model.deadlineMs === null ? {} : { deadlineMs: model.deadlineMs }),
      }),
    }),
  );
  const breakers = createSummarizerBreakers({ ...settings.breaker, clock });
  const writers = [settings.checkpointModel, settings.checkpointFallsBack ? mainHelper : null]
    .filter((model) => model !== null)
    .map((model) => chatCheckpointWriter({ chat: helper(model, "checkpoint"), modelId: model.modelId }));
  const store = createMemoryStore({ clock });
  await using sessions = createAgentSessions({
    store,
    clock,
    model: {
      chat: main,
      modelId: "main",
      windowTokens: windowTokens === 0 ? null : windowTokens,
      maxOutputTokens: settings.maxOutputTokens,
    },
    system: "Be kind.",
    tools: tools(seen.toolLog),
    summarizers: chained.length === 0 ? [] : [createSummarizerChain({ summarizers: chained, breakers })],
    extractive: createExtractiveSummarizer(),
    compaction: settings.compaction,
    checkpoint: { ...settings.checkpoint, writers },
    ...(settings.memoryFlush === undefined ? {} : { memoryFlush: settings.memoryFlush }),
    retry: settings.retry,
    titles: settings.titles,
    reset: settings.reset,
    timeZone: "UTC",
    ...settings.turn,
    onEvent: (event) => seen.events.push(event),
  });
  const opened = await sessions.open(key);
  for (let turn = 1; turn <= turns; turn++) {
    await opened.runTurn(
      `Question ${turn} on src/file-${turn}.ts. ${"these are the words of it ".repeat(Math.ceil(tokensPerTurn / 5))}`,
    );
    clock.advance(stepMs);
    // Checkpoints and retries are made beside the turns.
    for (let wait = 0; wait < 20; wait++) await new Promise((done) => setImmediate(done));
  }
  if (talk.shrinksTo !== undefined) {
    await opened.setModel({ ...opened.model, windowTokens: talk.shrinksTo });
    await opened.runTurn("And now?");
  }
  const records: StoredRecord[] = [];
  for await (const page of store.read(opened.ref)) records.push(...page.records);
  const entry = (await store.load(opened.ref))?.entry ?? { sessionId: "" };
  return { ...seen, records, entry };
}

type TalkClock = Clock & { advance(byMs: number): void };

/** Stands still, but where it is moved on between turns, or where every sleep is over at once. */
function talkClock({ sleepsAreOver = false }: Talk, sleeps: number[]): TalkClock {
  let nowMs = startMs;
  const sleepers = new Set<{ readonly untilMs: number; readonly wake: () => void }>();
  return {
    nowMs: () => nowMs,
    advance(byMs) {
      nowMs += byMs;
      for (const sleeper of sleepers) if (sleeper.untilMs <= nowMs) sleeper.wake();
    },
    sleep(delayMs, signal) {
      sleeps.push(delayMs);
      return new Promise((wake, reject) => {
        const sleeper = { untilMs: nowMs + delayMs, wake };
        sleepers.add(sleeper);
        if (sleepsAreOver) setImmediate(wake);
        const end = (): void => {
          sleepers.delete(sleeper);
          reject(new Error("aborted"));
        };
        if (signal?.aborted === true) end();
        signal?.addEventListener("abort", end, { once: true });
      });
    },
  };
}

function message(content: AssistantMessage["content"], model: string, input: number): AssistantMessage {
  const isCall = typeof content !== "string" && content.some(({ type }) => type === "toolCall");
  return {
    role: "assistant",
    content,
    api: "anthropic-messages",
    provider: "anthropic",
    model,
    usage: { input, output: 20, cacheRead: 0, cacheWrite: 0 },
    stopReason: isCall ? "toolUse" : "stop",
    timestamp: startMs,
  } as AssistantMessage;
}

function mainModel({ toolCalls }: Talk, requests: Seen["requests"][number][]): ChatModel {
  let calls = 0;
  return {
    provider: "anthropic",
    api: "anthropic",
    async chat(request) {
      // An answer takes time: what was begun beside the turn runs meanwhile.
      await pause();
      const {
        system,
        messages,
        maxOutputTokens = null,
      } = structuredClone({ ...request, signal: null, onDelta: null, onPartial: null, onWait: null });
      requests.push({ system, messages, maxOutputTokens });
      const input = Math.ceil(JSON.stringify(messages).length / 5);
      const isCalling = toolCalls !== undefined && calls < toolCalls.times;
      if (isCalling) calls += 1;
      const call = (id: string) => ({
        type: "toolCall" as const,
        id,
        name: toolCalls?.name ?? "",
        arguments: { path: toolCalls?.path ?? "" },
      });
      const content = isCalling
        ? [call(`call_${calls}`), ...(toolCalls.both === true ? [call(`call_${calls}b`)] : [])]
        : [{ type: "text" as const, text: `Answer ${requests.length}.` }];
      const reply = message(content, "main", input);
      return { message: reply, stopReason: reply.stopReason ?? "stop", usage: { ...reply.usage } };
    },
  };
}

function helperModel(
  model: HelperModel,
  use: "summary" | "checkpoint",
  { helpers = "work" }: Talk,
  asked: Seen["asked"][number][],
): ChatModel {
  const { provider, modelId, baseUrl } = model;
  return {
    provider,
    api: "anthropic",
    async chat({ maxOutputTokens = null, signal }) {
      asked.push({ name: `${provider}/${modelId}`, for: use, maxOutputTokens, baseUrl });
      if (helpers === "fail") throw new Error("no server there");
      if (helpers === "hang") {
        await new Promise((_, reject) => {
          signal?.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
        });
      }
      const text =
        use === "summary"
          ? "Topics: files.\nDecisions: none.\nCurrent state: under way.\nOpen items: the rest."
          : JSON.stringify({ summary: "They talk of files.", topics: ["files"], keyDecisions: [], openQuestions: [] });
      return { message: message(text, modelId, 10), stopReason: "stop", usage: null };
    },
  };
}

function tools(log: string[]): readonly AgentTool[] {
  return ["read", "write", "put"].map((name) => ({
    definition: { name, description: name, inputSchema: { type: "object" } },
    async run() {
      log.push("begun");
      await new Promise((done) => setImmediate(done));
      log.push("done");
      return name;
    },
  }));
}
