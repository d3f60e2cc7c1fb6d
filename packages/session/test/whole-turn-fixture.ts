import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SessionStore, StoredRecord, Summarizer, AgentTool } from "@throughline/core";
import { anthropic } from "@throughline/models/anthropic";
import { createProviderSimulator, type ProviderSimulator, type ReceivedRequest } from "@throughline/testing";

import { type AgentSessions, createAgentSessions } from "../src/whole-turn/agent-sessions.ts";
import type { AgentSessionsOptions } from "../src/whole-turn/whole-turn-options.ts";
import type { WholeTurnEvent } from "../src/whole-turn/whole-turn-event.ts";
import { createMemoryStore } from "@throughline/store-memory";
import { createSqliteStore } from "@throughline/store-sqlite";
import { createChatSummarizer, createExtractiveSummarizer } from "@throughline/summarizer-providers";

export const modelId = "claude-opus-5";
const smallModelId = "claude-summary";

export interface Place {
  readonly store: SessionStore;
  remove(): Promise<void>;
}

export const places: readonly { readonly name: string; open(): Place }[] = [
  {
    name: "memory",
    open: () => {
      const store = createMemoryStore();
      return { store, remove: () => store.close() };
    },
  },
  {
    name: "sqlite",
    open: () => {
      const folder = mkdtempSync(join(tmpdir(), "whole-turn-"));
      const store = createSqliteStore({ path: join(folder, "sessions.db") });
      const remove = async (): Promise<void> => {
        await store.close();
        rmSync(folder, { recursive: true });
      };
      return { store, remove };
    },
  },
];

export type SummarizerKind = "works" | "fails" | "hangs" | "garbage" | "overflows";

export const workingSummary = (count: number): string =>
  `Topics: number ${count}.\nDecisions: none.\nCurrent state: under way.\nOpen items: the rest.`;

/** Summarizers as they are in the wild; `asked` counts what was wanted of them. */
export function summarizerOf(
  kind: SummarizerKind,
  simulator: ProviderSimulator,
): { readonly summarizer: Summarizer; readonly asked: () => number } {
  let count = 0;
  const chat = anthropic("claude-opus-5", { apiKey: "any", baseUrl: simulator.url, maxRetries: 0 }).chat;
  // It believes in three times the window that it has.
  const small = createChatSummarizer({ model: { chat, modelId: smallModelId, windowTokens: 9000 } });
  const summarizer: Summarizer = {
    async summarize(request) {
      count += 1;
      if (kind === "fails") throw new Error("no server there");
      if (kind === "garbage")
        return { summary: count % 2 === 0 ? " " : "I cannot help with that.", source: kind, usage: null };
      if (kind === "works") return { summary: workingSummary(count), source: kind, usage: null };
      if (kind === "overflows") return small.summarize(request);
      return new Promise((_, reject) => {
        request.signal?.addEventListener("abort", () => reject(request.signal?.reason as Error), { once: true });
      });
    },
  };
  return { summarizer, asked: () => count };
}

/** Gives a long text back, so that the window fills. */
const readTool: AgentTool = {
  definition: { name: "read", description: "Reads a file.", inputSchema: { type: "object" } },
  run: ({ path }) => `${String(path)}: ${"a line of the file. ".repeat(60)}`,
};

export const writeTool: AgentTool = {
  definition: { name: "write", description: "Writes a file.", inputSchema: { type: "object" } },
  run: () => "written",
};

export interface WholeTurnFixture extends AsyncDisposable {
  readonly simulator: ProviderSimulator;
  readonly events: WholeTurnEvent[];
  readonly sessions: AgentSessions;
  /** What was asked of the model, without counting and summaries. */
  asked(): readonly ReceivedRequest[];
}

export const key = "agent:main:cli:direct:home";

/** Sessions over a provider that refuses what does not fit; every third answer calls the tool first. */
export async function createWholeTurnFixture(
  windowTokens: number,
  given: (simulator: ProviderSimulator) => Partial<AgentSessionsOptions> & Pick<AgentSessionsOptions, "store">,
): Promise<WholeTurnFixture> {
  let answers = 0;
  const simulator = createProviderSimulator({
    models: { "*": { windowTokens }, [smallModelId]: { windowTokens: 3000 } },
    fallback: ({ body }) => {
      if ((body as { readonly model: string }).model === smallModelId) return workingSummary(0);
      answers += 1;
      if (answers % 3 !== 0) return `Answer ${answers}. ${"What follows is more of it. ".repeat(20)}`;
      return { kind: "answer", content: [{ type: "tool-call", name: "read", input: { path: `src/${answers}.ts` } }] };
    },
  });
  await simulator.start();
  const events: WholeTurnEvent[] = [];
  const sessions = createAgentSessions({
    model: {
      chat: anthropic("claude-opus-5", { apiKey: "any", baseUrl: simulator.url, maxRetries: 0 }).chat,
      modelId,
      windowTokens,
      maxOutputTokens: 800,
    },
    system: "You read files.",
    tools: [readTool, writeTool],
    summarizers: [],
    extractive: createExtractiveSummarizer(),
    checkpoint: { enabled: false },
    retry: { intervalSeconds: 0 },
    onEvent: (event) => events.push(event),
    ...given(simulator),
  });
  return {
    simulator,
    events,
    sessions,
    asked: () =>
      simulator.requests.filter(
        ({ path, body }) =>
          !path.includes("count_tokens") && (body as { readonly model: string }).model !== smallModelId,
      ),
    async [Symbol.asyncDispose]() {
      await sessions.close();
      await simulator.close();
    },
  };
}

export async function allRecords(store: SessionStore): Promise<readonly StoredRecord[]> {
  const records: StoredRecord[] = [];
  for await (const page of store.read({ namespace: "", agentId: "main", key })) records.push(...page.records);
  return records;
}

/** Messages that are neither shown nor in any summary. */
export function lostMessages(records: readonly StoredRecord[]): readonly StoredRecord[] {
  const compactions = records.filter(({ type, side }) => type === "compaction" && !side);
  const ranges = compactions.map(
    ({ record }) => record["details"] as { readonly summarizedFromSeq: number; readonly summarizedToSeq: number },
  );
  const keptId = compactions.at(-1)?.record["firstKeptEntryId"];
  const keptSeq = records.find(({ id }) => id === keptId)?.seq ?? 1;
  return records.filter(
    ({ seq, type, side }) =>
      type === "message" &&
      !side &&
      seq < keptSeq &&
      !ranges.some((range) => seq >= range.summarizedFromSeq && seq <= range.summarizedToSeq),
  );
}
