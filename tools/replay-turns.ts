// Drives recorded conversations through whole turns, against a provider that refuses what is too long: the user's words,
// the recorded replies, the recorded results of tools. What is printed can be checked: requests, refusals, summaries.
// THROUGHLINE_CORPUS=<folder> node --conditions=@throughline/source tools/replay-turns.ts pi [--windows 8000,16000]
//   [--summarizers works,fails] [--turns 40]
import { readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import type { AgentTool, StoredRecord, Summarizer } from "../packages/core/src/index.ts";
import { summarizerCheckpointWriter } from "../packages/checkpoint/src/index.ts";
import { anthropic } from "../packages/models/src/anthropic.ts";
import { createProviderSimulator } from "../packages/testing/src/index.ts";
import type { ProviderSimulator } from "../packages/testing/src/index.ts";
import type { ReplyPart } from "../packages/testing/src/simulated-reply.ts";
import { createAgentSessions } from "../packages/session/src/whole-turn/agent-sessions.ts";
import type { WholeTurnEvent } from "../packages/session/src/whole-turn/whole-turn-event.ts";
import { createMemoryStore } from "../packages/store-memory/src/index.ts";
import { createChatSummarizer, createExtractiveSummarizer } from "../packages/summarizer-providers/src/index.ts";

const conversations: readonly string[] = ["before-compaction", "large-session"];
const modelId = "claude-opus-5";
const summaryModelId = "claude-summary";
/** Too small for most of what is to be summarized. */
const summaryWindowTokens = 6000;

/** What a user said, what was answered, and what the tools gave by the ids of their calls. */
interface RecordedTurn {
  readonly text: string;
  readonly replies: ReplyPart[][];
  readonly results: Map<string, { readonly text: string; readonly isError: boolean }>;
}

type Fields = Readonly<Record<string, unknown>>;

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  const blocks = Array.isArray(content) ? (content as readonly Fields[]) : [];
  return blocks
    .map((block) => (block["type"] === "text" ? String(block["text"]) : `[${String(block["type"])}]`))
    .join("\n");
}

/** Ids in the form that every provider takes. */
function idOf(id: unknown): string {
  return `call_${String(id)
    .replaceAll(/[^\w-]/g, "_")
    .slice(0, 50)}`;
}

function partsOf(content: unknown): ReplyPart[] {
  const blocks = Array.isArray(content) ? (content as readonly Fields[]) : [];
  return blocks.flatMap((block): ReplyPart[] => {
    if (block["type"] === "text" && String(block["text"]).trim() !== "")
      return [{ type: "text", text: String(block["text"]) }];
    if (block["type"] !== "toolCall") return [];
    return [{ type: "tool-call", id: idOf(block["id"]), name: String(block["name"]), input: block["arguments"] }];
  });
}

function readTurns(file: string): readonly RecordedTurn[] {
  const turns: RecordedTurn[] = [];
  for (const line of readFileSync(file, "utf8").trimEnd().split("\n")) {
    const message = (JSON.parse(line) as Fields)["message"] as Fields | undefined;
    const turn = turns.at(-1);
    if (message?.["role"] === "user") {
      turns.push({ text: textOf(message["content"]) || "(empty)", replies: [], results: new Map() });
    } else if (message?.["role"] === "assistant" && turn !== undefined) {
      const parts = partsOf(message["content"]);
      if (parts.length > 0) turn.replies.push(parts);
    } else if (message?.["role"] === "toolResult" && turn !== undefined) {
      const result = { text: textOf(message["content"]), isError: message["isError"] === true };
      turn.results.set(idOf(message["toolCallId"]), result);
    }
  }
  return turns;
}

const summary = (count: number): string =>
  `Topics: summary number ${count} of the work.\nDecisions: as written in the log.\nCurrent state: under way.\nOpen items: the rest.`;

/** Summarizers as they are in the wild; `counted` is called for each attempt. */
function createSummarizer(kind: string, counted: () => number, simulator: ProviderSimulator): Summarizer {
  if (kind === "overflows") {
    const chat = anthropic("claude-opus-5", { apiKey: "any", baseUrl: simulator.url, maxRetries: 0 }).chat;
    // It believes in a window that it does not have.
    const own = createChatSummarizer({
      model: { chat, modelId: summaryModelId, windowTokens: summaryWindowTokens * 3 },
    });
    return {
      summarize: (request) => {
        counted();
        return own.summarize(request);
      },
    };
  }
  return {
    async summarize({ signal }) {
      const count = counted();
      if (kind === "fails") throw new Error("no server there");
      if (kind === "garbage")
        return { summary: count % 2 === 0 ? "   " : '{"name":"bash","arguments":{', source: kind, usage: null };
      if (kind !== "hangs") return { summary: summary(count), source: kind, usage: null };
      return new Promise((_, reject) => {
        signal?.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
      });
    },
  };
}

interface Tally {
  requests: number;
  largest: number;
  refusals: number;
  failed: number;
  events: Map<string, number>;
  summaries: number;
  kept: number;
  summarized: number;
  lost: number;
  seconds: number;
}

/** Where each message of the conversation is now: shown, in a summary, or nowhere. */
function whereMessagesAre(records: readonly StoredRecord[]): Pick<Tally, "kept" | "summarized" | "lost"> {
  const compactions = records.filter(({ type, side }) => type === "compaction" && !side);
  const ranges = compactions.map(
    ({ record }) => record["details"] as { summarizedFromSeq: number; summarizedToSeq: number },
  );
  const keptId = compactions.at(-1)?.record["firstKeptEntryId"];
  const keptSeq = records.find(({ id }) => id === keptId)?.seq ?? 1;
  const tally = { kept: 0, summarized: 0, lost: 0 };
  for (const { seq, type, side } of records) {
    if (type !== "message" || side) continue;
    if (seq >= keptSeq) tally.kept += 1;
    else if (ranges.some((range) => seq >= range.summarizedFromSeq && seq <= range.summarizedToSeq))
      tally.summarized += 1;
    else tally.lost += 1;
  }
  return tally;
}

async function replay(turns: readonly RecordedTurn[], windowTokens: number, kind: string): Promise<Tally> {
  let queue: ReplyPart[][] = [];
  let results: RecordedTurn["results"] = new Map();
  await using simulator = createProviderSimulator({
    models: { "*": { windowTokens }, [summaryModelId]: { windowTokens: summaryWindowTokens } },
    fallback: ({ body }) => {
      if ((body as Fields)["model"] === summaryModelId) return summary(0);
      return { kind: "answer", content: queue.shift() ?? "Done." };
    },
  });
  await simulator.start();
  const names = new Set(
    turns.flatMap(({ replies }) => replies.flat().flatMap((part) => (part.type === "tool-call" ? [part.name] : []))),
  );
  const tools: readonly AgentTool[] = [...names].map((name) => ({
    definition: { name, description: `The tool ${name}.`, inputSchema: { type: "object" } },
    run: (_args, { callId }) => {
      const result = results.get(callId);
      return { content: result?.text || "(nothing)", isError: result?.isError ?? false };
    },
  }));
  const events = new Map<string, number>();
  let summaries = 0;
  const counted = (): number => (summaries += 1);
  const summarizer = createSummarizer(kind, counted, simulator);
  await using store = createMemoryStore();
  await using sessions = createAgentSessions({
    store,
    model: {
      chat: anthropic("claude-opus-5", { apiKey: "any", baseUrl: simulator.url, maxRetries: 0 }).chat,
      modelId,
      windowTokens,
      maxOutputTokens: Math.min(4096, Math.floor(windowTokens / 8)),
    },
    system: "You work in a repository.",
    tools,
    summarizers: [summarizer],
    extractive: createExtractiveSummarizer(),
    compaction: { deadlineMs: kind === "hangs" ? 100 : 20_000 },
    checkpoint: {
      writers: [
        summarizerCheckpointWriter(
          createSummarizer(kind, () => 1, simulator),
          kind,
        ),
      ],
      deadlineMs: 200,
    },
    retry: { intervalSeconds: 0 },
    maxSteps: 500,
    onEvent: ({ name }: WholeTurnEvent) => void events.set(name, (events.get(name) ?? 0) + 1),
  });
  const begin = performance.now();
  const session = await sessions.open("agent:main:replay:direct:one");
  let failed = 0;
  for (const turn of turns) {
    queue = [...turn.replies];
    ({ results } = turn);
    try {
      await session.runTurn(turn.text);
    } catch (error) {
      failed += 1;
      process.stderr.write(`${kind} ${windowTokens}: ${String(error)}\n`);
    }
  }
  const seconds = (performance.now() - begin) / 1000;
  const records: StoredRecord[] = [];
  for await (const page of store.read(session.ref)) records.push(...page.records);
  const asked = simulator.requests.filter(
    ({ path, body }) => !path.includes("count_tokens") && (body as Fields)["model"] === modelId,
  );
  for (const { message, kind: what } of simulator.refusals.slice(0, 3))
    if (kind !== "overflows") process.stderr.write(`${what}: ${message}\n`);
  return {
    requests: asked.length,
    largest: Math.max(...asked.map(({ promptTokens }) => promptTokens)),
    refusals: simulator.refusals.filter(({ request }) => asked.some(({ number }) => number === request)).length,
    failed,
    events,
    summaries,
    ...whereMessagesAre(records),
    seconds,
  };
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    windows: { type: "string", default: "8000,16000,32000,64000,200000" },
    summarizers: { type: "string", default: "works,fails,hangs,garbage,overflows" },
    turns: { type: "string" },
  },
});
const corpus = process.env["THROUGHLINE_CORPUS"];
if (corpus === undefined) {
  process.stderr.write("THROUGHLINE_CORPUS names no folder\n");
  process.exitCode = 2;
} else {
  const heads =
    "conversation|window|summarizer|turns|failed|requests|largest|refusals|compactions|asked for a summary|checkpoints|flushes|kept|summarized|lost|seconds".split(
      "|",
    );
  process.stdout.write(`| ${heads.join(" | ")} |\n|${heads.map(() => "--").join("|")}|\n`);
  for (const name of conversations) {
    const turns = readTurns(join(corpus, positionals[0] ?? "pi", `${name}.jsonl`)).slice(
      0,
      Number(values.turns ?? Infinity),
    );
    for (const kind of values.summarizers.split(",")) {
      for (const windowTokens of values.windows.split(",").map(Number)) {
        const tally = await replay(turns, windowTokens, kind);
        const count = (event: string): number => tally.events.get(event) ?? 0;
        const row = [
          name,
          windowTokens,
          kind,
          turns.length,
          tally.failed,
          tally.requests,
          tally.largest,
          tally.refusals,
          count("compaction.applied"),
          tally.summaries,
          count("checkpoint.written"),
          count("flush.asked"),
          tally.kept,
          tally.summarized,
          tally.lost,
          tally.seconds.toFixed(1),
        ];
        process.stdout.write(`| ${row.join(" | ")} |\n`);
      }
    }
  }
}
