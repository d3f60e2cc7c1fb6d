// What a turn costs behind 10, 1,000 and 10,000 others: through each adapter on SQLite and in memory, beside the framework's own
// way of keeping it. A turn is a question, a call, a result and an answer. Each takes turns with its control.
// node --conditions=@throughline/source lab/benchmarks/adapter-turns.ts [--sizes 10,1000,10000] [--repeats 9] [--adk FOLDER] [--only NAME]
// FOLDER has @google/adk in its node_modules, which is no part of this workspace; without it the ADK is left out.
import {
  closeSync,
  fdatasyncSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { performance } from "node:perf_hooks";
import { parseArgs } from "node:util";
import { createChatStore, throughlineMiddleware } from "../../packages/adapter-ai-sdk/src/index.ts";
import type { StoredMessage } from "../../packages/adapter-ai-sdk/src/chat-store.ts";
import { createAgentsSession } from "../../packages/adapter-openai-agents/src/index.ts";
import { sessionRef, type SessionStore } from "../../packages/core/src/index.ts";
import { createMemoryStore } from "../../packages/store-memory/src/index.ts";
import { createSqliteStore } from "../../packages/store-sqlite/src/index.ts";
import {
  adkRuns,
  adkService,
  claudeLines,
  claudeStore,
  type Kept,
  loadAdk,
  ownClaudeStore,
  words,
} from "./adapter-ways.ts";
import { median } from "../../benchmarks/measure.ts";

const require = createRequire(new URL("../../packages/adapter-openai-agents/package.json", import.meta.url));

type Item = Readonly<Record<string, unknown>>;

/** What both kinds of sessions of the OpenAI Agents SDK do in a run. */
interface AgentSession {
  getItems(): Promise<unknown[]>;
  addItems(items: never[]): Promise<void>;
}

const { MemorySession } = require("@openai/agents-core") as { readonly MemorySession: new () => AgentSession };

const { values } = parseArgs({
  options: {
    sizes: { type: "string", default: "10,1000,10000" },
    repeats: { type: "string", default: "9" },
    adk: { type: "string" },
    only: { type: "string", default: "" },
  },
});
const sizes = values.sizes.split(",").map(Number);
const repeats = Number(values.repeats);
const adk = values.adk === undefined ? null : await loadAdk(values.adk);

const agentItems = (turn: number): readonly Item[] => [
  { type: "message", role: "user", content: words(200) },
  { type: "function_call", callId: `call_${turn}`, name: "read", status: "completed", arguments: '{"path":"a.txt"}' },
  {
    type: "function_call_result",
    callId: `call_${turn}`,
    name: "read",
    status: "completed",
    output: { type: "text", text: words(1000) },
  },
  {
    type: "message",
    role: "assistant",
    status: "completed",
    content: [{ type: "output_text", text: words(500) }],
  },
];

function agents(name: string, session: AgentSession): Kept {
  return {
    name,
    async fill(turns) {
      for (let turn = 0; turn < turns; turn += 100) {
        const batch = Array.from({ length: Math.min(100, turns - turn) }, (_, at) => agentItems(turn + at));
        await session.addItems(batch.flat() as never[]);
      }
    },
    async turn(number) {
      await session.getItems();
      await session.addItems(agentItems(number) as never[]);
    },
  };
}

const chatMessages = (turn: number): readonly StoredMessage[] => [
  { id: `u${turn}`, role: "user", parts: [{ type: "text", text: words(200) }] },
  {
    id: `a${turn}`,
    role: "assistant",
    parts: [
      { type: "step-start" },
      {
        type: "tool-read",
        toolCallId: `call_${turn}`,
        state: "output-available",
        input: { path: "a.txt" },
        output: words(1000),
      },
      { type: "step-start" },
      { type: "text", text: words(500), state: "done" },
    ],
  },
];

const chatOf = (turns: number): StoredMessage[] =>
  Array.from({ length: turns }, (_, turn) => chatMessages(turn)).flat();

function chats(name: string, store: SessionStore): Kept {
  const kept = createChatStore({ store });
  return {
    name,
    async fill(turns) {
      for (let turn = 0; turn < turns; turn += 100)
        await kept.saveChat({ chatId: "c", messages: chatOf(Math.min(turns, turn + 100)) });
    },
    async turn(number) {
      const messages = await kept.loadChat("c");
      await kept.saveChat({ chatId: "c", messages: [...messages, ...chatMessages(number)] });
    },
  };
}

/** The file of the SDK's own documents. */
function chatFile(path: string): Kept {
  const write = (messages: readonly unknown[]): void => writeFileSync(path, JSON.stringify(messages, null, 2));
  return {
    name: "chat in a file, as the SDK's documents do it",
    fill: (turns) => Promise.resolve(write(chatOf(turns))),
    turn(number) {
      const messages = JSON.parse(readFileSync(path, "utf8")) as unknown[];
      return Promise.resolve(write([...messages, ...chatMessages(number)]));
    },
  };
}

const promptOf = (turn: number): readonly Item[] => [
  { role: "user", content: [{ type: "text", text: words(200) }] },
  {
    role: "assistant",
    content: [{ type: "tool-call", toolCallId: `call_${turn}`, toolName: "read", input: { path: "a.txt" } }],
  },
  {
    role: "tool",
    content: [
      {
        type: "tool-result",
        toolCallId: `call_${turn}`,
        toolName: "read",
        output: { type: "text", value: words(1000) },
      },
    ],
  },
];

/** The two calls of a turn through the middleware, with the whole history in each. */
function middleware(name: string, store: SessionStore): Kept {
  const prompt: Item[] = [];
  const answer = { role: "assistant", content: [{ type: "text", text: words(500) }] };
  const wrapped = throughlineMiddleware({ store, ref: sessionRef({ key: "agent:main:bench" }) });
  const ask = async (content: readonly Item[]): Promise<void> => {
    const result = { content, finishReason: { unified: "stop", raw: "stop" }, warnings: [] };
    const doGenerate = (): Promise<object> => Promise.resolve(result);
    const model = { specificationVersion: "v4", provider: "acme.chat", modelId: "acme-1", doGenerate };
    await wrapped.wrapGenerate({ params: { prompt }, model });
  };
  return {
    name,
    async fill(turns) {
      for (let at = 0; at < turns; at++) prompt.push(...promptOf(-1 - at), answer);
      await ask([{ type: "text", text: "filled" }]);
      prompt.push({ role: "assistant", content: [{ type: "text", text: "filled" }] });
    },
    async turn(number) {
      const [question, call, result] = promptOf(number) as readonly [Item, Item, Item];
      prompt.push(question);
      await ask([{ type: "tool-call", toolCallId: `call_${number}`, toolName: "read", input: '{"path":"a.txt"}' }]);
      prompt.push(call, result);
      await ask([{ type: "text", text: words(500) }]);
      prompt.push(answer);
    },
  };
}

/** The least that keeps a turn: a line for each message, flushed. The SDK has no log of what a model saw. */
function messageLines(path: string): Kept {
  const keep = (message: Item): void => {
    const file = openSync(path, "a");
    writeSync(file, `${JSON.stringify(message)}\n`);
    fdatasyncSync(file);
    closeSync(file);
  };
  return {
    name: "a flushed line for each message",
    fill: () => Promise.resolve(),
    turn(number) {
      for (const message of promptOf(number)) keep(message);
      keep({ role: "assistant", content: [{ type: "text", text: words(500) }] });
      return Promise.resolve();
    },
  };
}

const folder = mkdtempSync(join(tmpdir(), "adapter-turns-"));
const open: SessionStore[] = [];
const sqlite = (name: string): SessionStore => {
  const store = createSqliteStore({ path: join(folder, `${name}.sqlite`), searchFill: "on-demand" });
  open.push(store);
  return store;
};

async function compare(turns: number, ways: readonly Kept[]): Promise<void> {
  if (!ways.some(({ name }) => name.startsWith(values.only))) return;
  for (const way of ways) await way.fill(turns);
  const times = ways.map((): number[] => []);
  for (let repeat = 0; repeat < repeats; repeat++)
    for (const [at, way] of ways.entries()) {
      const start = performance.now();
      await way.turn(turns + repeat);
      times[at]?.push(performance.now() - start);
    }
  const control = median(times.at(-1) ?? []);
  for (const [at, { name }] of ways.entries()) {
    const time = median(times[at] ?? []);
    const ratio = at === ways.length - 1 ? "control" : `${(time / control).toFixed(2)} x`;
    process.stdout.write(
      `${String(turns).padStart(6)} turns  ${name.padEnd(46)} ${time.toFixed(2).padStart(9)} ms  ${ratio}\n`,
    );
  }
}

try {
  for (const turns of sizes) {
    const agentSession = (store: SessionStore): AgentSession =>
      createAgentsSession({ store, sessionId: "s" }) as unknown as AgentSession;
    await compare(turns, [
      agents("OpenAI Agents: SQLite", agentSession(sqlite(`agents-${turns}`))),
      agents("OpenAI Agents: memory", agentSession(createMemoryStore())),
      agents("OpenAI Agents: MemorySession", new MemorySession()),
    ]);
    await compare(turns, [
      chats("AI SDK: chat, SQLite", sqlite(`chat-${turns}`)),
      chats("AI SDK: chat, memory", createMemoryStore()),
      chatFile(join(folder, `chat-${turns}.json`)),
    ]);
    await compare(turns, [
      claudeLines("Claude Agent SDK: SQLite", claudeStore(sqlite(`claude-${turns}`))),
      claudeLines("Claude Agent SDK: memory", claudeStore(createMemoryStore())),
      claudeLines("Claude Agent SDK: InMemorySessionStore", await ownClaudeStore()),
    ]);
    if (adk !== null)
      await compare(turns, [
        adkRuns("ADK: SQLite", adkService(adk, sqlite(`adk-${turns}`))),
        adkRuns("ADK: memory", adkService(adk, createMemoryStore())),
        adkRuns("ADK: InMemorySessionService", new adk.InMemorySessionService()),
      ]);
    await compare(turns, [
      middleware("AI SDK: middleware, SQLite", sqlite(`middleware-${turns}`)),
      middleware("AI SDK: middleware, memory", createMemoryStore()),
      messageLines(join(folder, `lines-${turns}.jsonl`)),
    ]);
  }
} finally {
  for (const store of open) await store.close();
  rmSync(folder, { recursive: true });
}
