// Continues one log by one framework after another, in every order of two, and checks after each step that the conversation is
// the same for all. Copied into a folder that has the packages. Usage: node pairs.ts FOLDER_OF_THE_CHECKOUT
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { claudeMirrorOf, type ClaudeSdk, type Participant, transcript } from "./claude.ts";
import { langgraphOf } from "./langgraph.ts";
import type * as ForLanggraph from "../../../packages/adapter-langgraph/src/index.ts";
import type * as Core from "../../../packages/core/src/index.ts";
import type * as History from "../../../packages/history/src/index.ts";
import type * as Targets from "../../../packages/history/src/history-targets.ts";
import type * as Transfer from "../../../packages/transfer/src/index.ts";
import type * as ForAgents from "../../../packages/adapter-openai-agents/src/index.ts";
import type * as ForAdk from "../../../packages/adapter-adk/src/index.ts";
import type * as ForClaude from "../../../packages/adapter-claude-agent-sdk/src/index.ts";
import type * as ForAi from "../../../packages/adapter-ai-sdk/src/index.ts";
import type { SessionRef, SessionStore, StoredRecord } from "../../../packages/core/src/index.ts";

const [root = ""] = process.argv.slice(2);
type Module = Readonly<Record<string, never>>;
const ours = async (path: string): Promise<Module> =>
  (await import(pathToFileURL(join(root, "packages", path)).href)) as Module;
const peer = async (name: string): Promise<Module> => (await import(name)) as Module;

const { createMemoryStore } = (await ours("store-memory/src/index.ts")) as unknown as {
  createMemoryStore(): SessionStore;
};
const core = (await ours("core/src/index.ts")) as unknown as typeof Core;
const history = (await ours("history/src/index.ts")) as unknown as typeof History;
const targets = (await ours("history/src/history-targets.ts")) as unknown as typeof Targets;
const transfer = (await ours("transfer/src/index.ts")) as unknown as typeof Transfer;
const forAgents = (await ours("adapter-openai-agents/src/index.ts")) as unknown as typeof ForAgents;
const forAi = (await ours("adapter-ai-sdk/src/index.ts")) as unknown as typeof ForAi;

const forAdk = (await ours("adapter-adk/src/index.ts")) as unknown as typeof ForAdk;
const forClaude = (await ours("adapter-claude-agent-sdk/src/index.ts")) as unknown as typeof ForClaude;

type Fields = Readonly<Record<string, unknown>>;
type Make = new (...given: unknown[]) => unknown;
type Call = (...given: unknown[]) => Promise<Fields>;

const agents = await peer("@openai/agents");
const scripts = await peer("@openai/agents-core/testing");

const openAiAgents: Participant = {
  name: "openai-agents",
  async take(store, ref, turn) {
    const { Agent, Runner, tool } = agents as unknown as {
      Agent: Make;
      Runner: Make;
      tool: (given: Fields) => unknown;
    };
    const { ScriptedModel, functionCall, assistantMessage } = scripts as unknown as {
      ScriptedModel: Make;
      functionCall: (...given: unknown[]) => unknown;
      assistantMessage: (text: string) => unknown;
    };
    const model = new ScriptedModel([
      [functionCall("clock", {}, { callId: `call_${turn}`, id: `fc_${turn}` })],
      [assistantMessage(`Agents say it is ${turn} o'clock.`)],
    ]) as { readonly lastCall?: { readonly request: Fields } };
    const parameters = { type: "object", properties: {}, required: [], additionalProperties: true };
    const clock = tool({
      name: "clock",
      description: "the time",
      parameters,
      strict: false,
      execute: () => `${turn}:00`,
    });
    const agent = new Agent({ name: "teller", model, tools: [clock] });
    const runner = new Runner({ tracingDisabled: true });
    const session = forAgents.createAgentsSession({ store, ref });
    await forAgents
      .recordRun(runner as never, session)
      .run(agent as never, `Agents: turn ${turn}?`, { session } as never);
    return JSON.stringify(model.lastCall?.request["input"]);
  },
};

function aiSdk(name: string, sdk: Module, doubles: Module, kind: "middleware" | "chat"): Participant {
  const {
    generateText,
    wrapLanguageModel,
    tool,
    jsonSchema,
    convertToModelMessages,
    validateUIMessages,
    stepCountIs,
    isStepCount,
  } = sdk as unknown as Record<string, (...given: unknown[]) => never>;
  const Double = ((doubles as Record<string, unknown>)["MockLanguageModelV4"] ??
    (doubles as Record<string, unknown>)["MockLanguageModelV3"]) as Make;
  const usage = {
    inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 5, text: 5, reasoning: 0 },
  };
  return {
    name: `${name} ${kind}`,
    async take(store, ref, turn) {
      let sent = "";
      const replies: Fields[][] = [
        [{ type: "tool-call", toolCallId: `call_${turn}`, toolName: "clock", input: "{}" }],
        [{ type: "text", text: `The SDK says it is ${turn} o'clock.` }],
      ];
      const model = new Double({
        provider: "acme.chat",
        modelId: "acme-1",
        doGenerate: (options: Fields) => {
          sent = JSON.stringify(options["prompt"]);
          const content = replies.shift() ?? [];
          const unified = content[0]?.["type"] === "text" ? "stop" : "tool-calls";
          return Promise.resolve({ content, finishReason: { unified, raw: unified }, usage, warnings: [] });
        },
      });
      const tools = {
        clock: (tool as Call)({
          description: "the time",
          inputSchema: (jsonSchema as Call)({ type: "object", properties: {} }),
          execute: () => `${turn}:00`,
        }),
      };
      const stopWhen = (isStepCount ?? (stepCountIs as Call))?.(5);
      const text = `SDK: turn ${turn}?`;
      if (kind === "middleware") {
        const middleware = forAi.throughlineMiddleware({ store, ref, mode: "guard" });
        const wrapped = (wrapLanguageModel as Call)({ model, middleware });
        const { response } = await (generateText as Call)({ model: wrapped, tools, prompt: text, stopWhen });
        if (response === undefined) throw new Error("no response");
        return sent;
      }
      const chats = forAi.createChatStore({ store, refOf: () => ref });
      const before = await chats.loadChat("any");
      if (before.length > 0) await (validateUIMessages as Call)({ messages: before });
      const asked = { id: `u-${turn}`, role: "user" as const, parts: [{ type: "text", text }] };
      const forModel = [...(await chats.loadChat("any", { forModel: true })), asked];
      const { text: said } = await (generateText as Call)({
        model,
        tools,
        messages: await (convertToModelMessages as Call)(forModel),
        stopWhen,
      });
      const done = { type: "dynamic-tool", toolName: "clock", toolCallId: `call_${turn}`, state: "output-available" };
      const parts = [
        { type: "step-start" },
        { ...done, input: {}, output: `${turn}:00` },
        { type: "step-start" },
        { type: "text", text: said, state: "done" },
      ];
      const answered = { id: `a-${turn}`, role: "assistant" as const, parts };
      await chats.saveChat({ chatId: "any", messages: [...before, asked, answered] });
      const after = await chats.loadChat("any");
      if (JSON.stringify(after) !== JSON.stringify([...before, asked, answered]))
        throw new Error("the chat is another one");
      return sent;
    },
  };
}

const adk = await peer("@google/adk");

const googleAdk: Participant = {
  name: "adk",
  async take(store, ref, turn) {
    const { BaseSessionService, BaseLlm, FunctionTool, LlmAgent, Runner } = adk as unknown as {
      BaseSessionService: abstract new () => { getOrCreateSession(request: Fields): Promise<unknown> };
      BaseLlm: new (given: Fields) => object;
      FunctionTool: Make;
      LlmAgent: Make;
      Runner: new (given: Fields) => { runAsync(request: Fields): AsyncIterable<unknown> };
    };
    let sent = "";
    const replies: Fields[][] = [
      [{ functionCall: { id: `call_${turn}`, name: "clock", args: {} } }],
      [{ text: `The ADK says it is ${turn} o'clock.` }],
    ];
    class ScriptedModel extends BaseLlm {
      async *generateContentAsync({ contents }: Fields): AsyncGenerator<Fields> {
        sent = JSON.stringify(contents);
        yield { content: { role: "model", parts: await Promise.resolve(replies.shift()) } };
      }
    }
    const clock = new FunctionTool({
      name: "clock",
      description: "the time",
      execute: () => ({ output: `${turn}:00` }),
    });
    const agent = new LlmAgent({ name: "teller", model: new ScriptedModel({ model: "scripted" }), tools: [clock] });
    const sessionService = forAdk.createAdkSessionService(BaseSessionService, {
      store,
      refOf: () => ref,
      agentName: "teller",
    });
    await sessionService.getOrCreateSession({ appName: "pairs", userId: "u", sessionId: "s" });
    const runner = new Runner({ appName: "pairs", agent, sessionService });
    const newMessage = { role: "user", parts: [{ text: `ADK: turn ${turn}?` }] };
    await Array.fromAsync(runner.runAsync({ userId: "u", sessionId: "s", newMessage }));
    return sent;
  },
};

// Its helpers take a store of any shape.
const claudeSdk = (await peer("@anthropic-ai/claude-agent-sdk")) as unknown as ClaudeSdk;
const claudeMirror = claudeMirrorOf(claudeSdk, forClaude);

const claudeCode: Participant = {
  name: "claude-code",
  async take(store, ref) {
    const path = join(import.meta.dirname, "5e551011-0000-4000-8000-000000000001.jsonl");
    writeFileSync(path, transcript.map((line) => `${JSON.stringify(line)}\n`).join(""));
    for await (const { state, error } of transfer.importPaths(store, [path], { key: ref.key }))
      if (state !== "imported") throw error ?? new Error(state);
    return "";
  },
};

async function recordsOf(store: SessionStore, ref: SessionRef): Promise<readonly StoredRecord[]> {
  return (await Array.fromAsync(store.read(ref))).flatMap(({ records }) => [...records]);
}

/** A conversation without what differs between forms of the same: who said what, which tools were called and what they gave. */
async function conversationOf(store: SessionStore, ref: SessionRef): Promise<readonly string[]> {
  const records = await recordsOf(store, ref);
  const state = await store.load(ref);
  const context = history.buildContext(records, { headId: state?.head.headId ?? null });
  for (const target of targets.historyTargets.values()) {
    const { messages } = target.render(context);
    const violations = target.validate(messages, context.model?.modelId ?? null);
    if (violations.length > 0) throw new Error(`${target.name}: ${JSON.stringify(violations)}`);
  }
  return context.messages.flatMap(({ role, content }) =>
    content.map((block) =>
      block.type === "text"
        ? `${role}: ${block.text}`
        : block.type === "toolCall"
          ? `call ${block.id} ${block.name} ${JSON.stringify(block.arguments)}`
          : `${role}: ${block.type}`,
    ),
  );
}

let checks = 0;

/** Lets one continue, and checks what it was sent and what it left. */
async function hop(participant: Participant, store: SessionStore, ref: SessionRef, turn: number): Promise<void> {
  const before = (await store.load(ref)) === null ? [] : await conversationOf(store, ref);
  const sent = await participant.take(store, ref, turn);
  const after = await conversationOf(store, ref);
  if (JSON.stringify(after.slice(0, before.length)) !== JSON.stringify(before))
    throw new Error(`${participant.name} changed the conversation:\n${before.join("\n")}\n--\n${after.join("\n")}`);
  const added = after.slice(before.length).map((line) => line.split(":", 1)[0]?.split(" ", 1)[0]);
  if (added.join() !== "user,call,toolResult,assistant") throw new Error(`${participant.name} added ${added.join()}`);
  for (const line of sent === "" ? [] : before) {
    const text = line.startsWith("call ") ? (line.split(" ", 2)[1] ?? "") : line.slice(line.indexOf(": ") + 2);
    if (!line.endsWith(": thinking") && !sent.includes(JSON.stringify(text).slice(1, -1)))
      throw new Error(`${participant.name} was not sent ${JSON.stringify(line)}: ${sent}`);
  }
  checks += 1;
}

const [sdk7, sdk6] = [await peer("ai"), await peer("ai6")];
const [doubles7, doubles6] = [await peer("ai/test"), await peer("ai6/test")];
const langgraph = langgraphOf({
  graphs: await peer("@langchain/langgraph"),
  messages: await peer("@langchain/core/messages"),
  adapter: (await ours("adapter-langgraph/src/index.ts")) as unknown as typeof ForLanggraph,
});
const participants: readonly Participant[] = [
  claudeCode,
  openAiAgents,
  aiSdk("ai 7", sdk7, doubles7, "middleware"),
  aiSdk("ai 6", sdk6, doubles6, "middleware"),
  aiSdk("ai 7", sdk7, doubles7, "chat"),
  aiSdk("ai 6", sdk6, doubles6, "chat"),
  googleAdk,
  claudeMirror,
  langgraph,
];

const table: string[] = [];
for (const first of participants)
  for (const second of participants) {
    if (second === claudeCode) continue;
    const store = createMemoryStore();
    const ref = core.sessionRef({ key: "agent:main:pair" });
    await hop(first, store, ref, 1);
    await hop(second, store, ref, 2);
    // Back to the first, which now finds the other's turn behind its own.
    if (first !== claudeCode) await hop(first, store, ref, 3);
    table.push(`${first.name} > ${second.name}`);
    await store.close();
  }

// One log through all of them, with a redaction and exports in between.
const store = createMemoryStore();
const ref = core.sessionRef({ key: "agent:main:spike" });
const [claude, agentsSdk, seven, six, chat] = participants as readonly [
  Participant,
  Participant,
  Participant,
  Participant,
  Participant,
];
await hop(claude, store, ref, 1);
await hop(agentsSdk, store, ref, 2);
const secret = (await recordsOf(store, ref)).find(({ record }) => JSON.stringify(record).includes("heron"));
await core.redactRecords(store, ref, [secret?.id ?? ""], { reason: "a secret" });
await hop(seven, store, ref, 3);
const sizes: string[] = [];
for (const to of ["jsonl", "claude-code", "openai-agents", "ai-sdk", "openai", "anthropic"] as const) {
  const remarks: string[] = [];
  const pieces: Uint8Array[] = [];
  const onRemark = ({
    what,
    kind,
    reason,
    records = 1,
  }: {
    what: string;
    kind?: string;
    reason: string;
    records?: number;
  }): void => {
    remarks.push(`${what} ${kind ?? reason}${records > 1 ? ` x${records}` : ""}`);
  };
  for await (const piece of transfer.exportSession(store, ref, { to, onRemark })) pieces.push(piece);
  const text = Buffer.concat(pieces).toString();
  if (text.includes("heron")) throw new Error(`${to} has what was redacted`);
  sizes.push(`${to}: ${text.length} bytes; ${[...new Set(remarks)].join(", ") || "nothing lost"}`);
}
await hop(six, store, ref, 4);
await hop(chat, store, ref, 5);
await hop(agentsSdk, store, ref, 6);
await hop(googleAdk, store, ref, 7);
await hop(claudeMirror, store, ref, 8);
await hop(seven, store, ref, 9);
await hop(langgraph, store, ref, 10);
await hop(agentsSdk, store, ref, 11);
const records = await recordsOf(store, ref);
if (JSON.stringify(records).includes("heron")) throw new Error("the redacted text is in the log");
const sourced = (await Array.fromAsync(store.read(ref, { payload: "source" }))).flatMap((page) => [...page.records]);
const native = sourced.filter(
  ({ isSourceCanonical, record }) => !isSourceCanonical && record["sourceFormat"] !== undefined,
);
const sourceBytes = native.reduce((sum, { source }) => sum + Buffer.byteLength(source as string), 0);
const recordBytes = native.reduce((sum, { record }) => sum + Buffer.byteLength(JSON.stringify(record)), 0);
process.stdout.write(`${table.join("\n")}\n${sizes.join("\n")}\n`);
process.stdout.write(`sources ${sourceBytes} bytes, what they mean ${recordBytes} bytes, ${native.length} items\n`);
process.stdout.write(`adapters: ${table.length} pairs, ${checks} steps, ${records.length} records in the log of all\n`);
