import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openSession, readWindow, sessionRef, ThroughlineError } from "@throughline/core";
import type {
  RecordDraft,
  SessionRef,
  SessionStore,
  StoredRecord,
  Summarizer,
  SummaryRequest,
} from "@throughline/core";
import { systemClock, systemRandom, systemRecordIds } from "@throughline/core/internal";
import { buildContext, type Context } from "@throughline/history";
import { createJsonlStore } from "@throughline/store-jsonl";
import { createMemoryData } from "@throughline/store-memory/internal";
import { createMemoryStore } from "@throughline/store-memory";
import { createSqliteStore } from "@throughline/store-sqlite";
import { createTokenEstimator, emptyCalibration } from "@throughline/tokens";
import type { TokenCounter } from "@throughline/tokens/internal";
import type { CompactionRequest } from "../src/compactor.ts";
import type { CompactorOptions } from "@throughline/compaction";

export const ref: SessionRef = sessionRef({ key: "agent:main:cli:direct:home" });

/** The three stores, each of which can be opened again on what it kept. */
export interface Place {
  readonly name: string;
  /** Where its files are; empty for a store without. */
  readonly directory: string;
  open(): SessionStore;
  remove(): void;
}

export const places: readonly { readonly name: string; create(): Place }[] = [
  {
    name: "memory",
    create: () => {
      const data = createMemoryData();
      return { name: "memory", directory: "", open: () => createMemoryStore({ data }), remove: () => {} };
    },
  },
  { name: "jsonl", create: () => onDisk("jsonl", (directory) => createJsonlStore({ root: directory })) },
  {
    name: "sqlite",
    create: () => onDisk("sqlite", (directory) => createSqliteStore({ path: join(directory, "s.db") })),
  },
];

function onDisk(name: string, open: (directory: string) => SessionStore): Place {
  const directory = mkdtempSync(join(tmpdir(), `throughline-compaction-${name}-`));
  return {
    name,
    directory,
    open: () => open(directory),
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}

/** A session with these records in it. */
export async function begin(store: SessionStore, drafts: readonly RecordDraft[]): Promise<void> {
  await openSession(store, ref, { random: systemRandom });
  if (drafts.length > 0) await store.append(ref, drafts);
}

export async function contextOf(store: SessionStore): Promise<Context> {
  const { records, state } = await readWindow(store, ref);
  return buildContext(records, { headId: state.head.headId });
}

export async function allRecords(store: SessionStore): Promise<readonly StoredRecord[]> {
  const records: StoredRecord[] = [];
  for await (const page of store.read(ref)) records.push(...page.records);
  return records;
}

const model = { api: "anthropic-messages", provider: "anthropic", model: "claude-sonnet-4-5" };

export function user(text: string, more: Readonly<Record<string, unknown>> = {}): RecordDraft {
  return { type: "message", message: { role: "user", content: text, ...more } };
}

export function assistant(text: string, calls: readonly Readonly<Record<string, unknown>>[] = []): RecordDraft {
  const content = [{ type: "text", text }, ...calls];
  return { type: "message", message: { role: "assistant", content, ...model, stopReason: "stop" } };
}

export function call(id: string, name: string, args: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return { type: "toolCall", id, name, arguments: args };
}

export function result(toolCallId: string, text: string): RecordDraft {
  return {
    type: "message",
    message: { role: "toolResult", toolCallId, toolName: "read", content: [{ type: "text", text }], isError: false },
  };
}

const filler = "The parser reads each line, keeps what it cannot read, and says so in a finding. ";

/** Turns of a request, a call with its result, and an answer; about 300 tokens each. */
export function turns(count: number, from = 0): RecordDraft[] {
  return Array.from({ length: count }, (_, index) => {
    const n = from + index;
    return [
      user(`Request ${n}: look at src/part-${n}/file-${n}.ts. ${filler.repeat(4)}`),
      assistant(`I read it. ${filler.repeat(2)}`, [call(`call-${n}`, "read", { path: `src/part-${n}/file-${n}.ts` })]),
      result(`call-${n}`, filler.repeat(6)),
      assistant(`Answer ${n}. ${filler.repeat(4)}`),
    ];
  }).flat();
}

/** A summarizer that says what it is told to say, and remembers what it was asked. */
export interface ScriptedSummarizer extends Summarizer {
  readonly requests: SummaryRequest[];
}

export function summarizer(
  answer: string | ((request: SummaryRequest) => string | Promise<string>),
): ScriptedSummarizer {
  const requests: SummaryRequest[] = [];
  return {
    requests,
    async summarize(request) {
      requests.push(request);
      const summary = typeof answer === "string" ? answer : await answer(request);
      return { summary, source: "scripted", usage: null };
    },
  };
}

export const failing: ScriptedSummarizer = summarizer(() => {
  throw new ThroughlineError("STORE_IO", "the provider is down");
});

export const counter: TokenCounter = await createTokenEstimator().counterFor(
  { provider: "anthropic", modelId: "claude-sonnet-4-5" },
  { method: "heuristic" },
);

export function request(windowTokens: number | null, more: Partial<CompactionRequest> = {}): CompactionRequest {
  return { counter, calibration: emptyCalibration, windowTokens, ...more };
}

export const ports: Pick<CompactorOptions, "clock" | "ids"> = { clock: systemClock, ids: systemRecordIds };
