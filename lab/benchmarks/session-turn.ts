// What the session facade itself costs a turn, against JSON.stringify of the records of that turn, interleaved in one
// process. The store takes everything and keeps nothing, the model answers at once, the counter knows the answer: what is
// left is the facade with history and guard, which are also run alone with the same requests and taken off.
// node --conditions=@throughline/source lab/benchmarks/session-turn.ts [turns a round] [rounds] [messages…]
import { randomUUID } from "node:crypto";
import process from "node:process";
import type { AppendedRecord } from "../../packages/core/src/session-store.ts";
import type {
  AssistantMessage,
  ChatModel,
  RecordDraft,
  SessionHead,
  SessionStore,
  StoredRecord,
} from "../../packages/core/src/index.ts";
import { guardCall } from "../../packages/guard/src/index.ts";
import { createHistory } from "../../packages/history/src/index.ts";
import { historyTargets } from "../../packages/history/src/history-targets.ts";
import { createSessions, type Session } from "../../packages/session/src/index.ts";
import type { TokenCounter } from "../../packages/tokens/src/token-counter.ts";
import { createMemoryStore } from "../../packages/store-memory/src/index.ts";

const [turnsARound = 50, rounds = 40, ...lengths] = process.argv.slice(2).map(Number);
/** Of the control, which is over too soon to be measured once. */
const repeats = 10;
const key = "agent:main:bench:direct:turn";
const modelId = "claude-sonnet-4-5";
const usage = { input: 900, output: 100, cacheRead: 0, cacheWrite: 0 };
const origin = { api: "anthropic-messages", provider: "anthropic", model: modelId, usage };
const text = (length: number): string => "lorem ipsum ".repeat(Math.ceil(length / 12)).slice(0, length);

/** 200 bytes of the user, a call, 1,000 bytes of result, 500 bytes of answer. */
const words = text(200);
const result = text(1000);
const call = { type: "toolCall", id: "toolu_1", name: "read", arguments: { path: "/src/index.ts" } } as const;
const callReply: AssistantMessage = {
  role: "assistant",
  content: [call],
  ...origin,
  stopReason: "toolUse",
};
const answer: AssistantMessage = {
  role: "assistant",
  content: [{ type: "text", text: text(500) }],
  ...origin,
  stopReason: "stop",
};

/** Two calls a turn: the first one asks for the tool. Ids are not used again, as with every provider. */
function quickModel(): ChatModel {
  let calls = 0;
  return {
    provider: "anthropic",
    api: "anthropic",
    chat: () => {
      calls += 1;
      if (calls % 2 === 0) return Promise.resolve({ message: answer, stopReason: "end_turn", usage });
      const content = [{ ...call, id: `toolu_${calls}` }];
      return Promise.resolve({ message: { ...callReply, content }, stopReason: "tool_use", usage });
    },
  };
}

const counter: TokenCounter = {
  model: { provider: "anthropic", modelId },
  profile: {
    vocabulary: "claude",
    factor: 1,
    spread: 0.1,
    toolsTokens: 0,
    image: { kind: "flat", tokens: 0 },
    source: "none",
  },
  method: "claude",
  version: "none",
  countText: () => 1,
  countMessage: () => 1,
  countTools: () => ({ bareTokens: 1, fixedTokens: 0, messages: 0 }),
  countMessages: () => ({ bareTokens: 1, fixedTokens: 0, messages: 1 }),
};

/** Acknowledges at once and keeps the newest drafts only. */
function hollowStore(taken: RecordDraft[]): SessionStore {
  const real = createMemoryStore();
  let head: SessionHead | null = null;
  const append = (
    _ref: unknown,
    drafts: readonly RecordDraft[],
    options: { readonly turn?: Record<string, unknown> },
  ): Promise<unknown> => {
    const before: SessionHead = head ?? {
      sessionId: "",
      lastSeq: 0,
      headId: null,
      windowSeq: null,
      fence: 0,
      turn: null,
    };
    let { lastSeq, headId } = before;
    const records: AppendedRecord[] = drafts.map((draft) => {
      lastSeq += 1;
      const side = draft.type !== "message";
      const place = { seq: lastSeq, id: `r${lastSeq}`, parentId: headId, side, tsMs: 1e12, storedAtMs: 1e12 };
      if (!side) headId = place.id;
      taken.push(draft);
      return place;
    });
    const { turn } = options;
    const fence = turn?.["action"] === "open" ? Number(turn["fence"]) : before.fence;
    const open = turn?.["action"] === "close" ? null : turn?.["action"] === "open" ? (turn as never) : before.turn;
    head = { ...before, lastSeq, headId, fence, turn: open };
    return Promise.resolve({ records, head, revision: 1, durability: "none", replayed: false });
  };
  return new Proxy(real, {
    get(target, name) {
      if (name === "append") return append;
      const member: unknown = Reflect.get(target, name, target);
      if (name === "load")
        return async (...given: Parameters<SessionStore["load"]>) => {
          const state = await real.load(...given);
          if (state !== null) head ??= state.head;
          return state;
        };
      return typeof member === "function" ? (member.bind(target) as unknown) : member;
    },
  });
}

interface Bench {
  readonly session: Session;
  readonly taken: RecordDraft[];
}

async function begin(messages: number): Promise<Bench> {
  const taken: RecordDraft[] = [];
  const sessions = createSessions({
    store: hollowStore(taken),
    model: { chat: quickModel(), modelId, windowTokens: 10_000_000 },
    system: "You are a bench.",
    tools: [
      { definition: { name: "read", description: "Reads.", inputSchema: { type: "object" } }, run: () => result },
    ],
    estimator: {
      work: { slices: 0, characters: 0, sampledSlices: 0, cacheHits: 0 },
      counterFor: () => Promise.resolve(counter),
    },
  });
  const session = await sessions.open(key);
  for (let at = 0; at < messages / 4; at++) await session.runTurn(words);
  return { session, taken };
}

/** Of this thread alone: other processes and the collector's threads do not count. */
function cpuMicroseconds(): number {
  const { user, system } = process.threadCpuUsage();
  return user + system;
}

/** The thread's time is counted coarsely: only sums over many turns say anything. */
function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/**
 * What no facade can do without: a way to abort, a timer for the lease, an id, two calls of a model and four appends that
 * are waited for. Everything in it is somebody else's.
 */
async function bareTurn(store: SessionStore, chat: ChatModel, batches: readonly RecordDraft[][]): Promise<void> {
  const turn = new AbortController();
  const lease = setTimeout(() => turn.abort(), 30_000);
  const turnId = randomUUID();
  const ref = { namespace: "", agentId: "main", key: turnId };
  for (const [at, batch] of batches.entries()) {
    await store.append(ref, batch, {});
    if (at < 2) await chat.chat({ modelId, system: null, messages: [], signal: turn.signal });
  }
  clearTimeout(lease);
}

/** History and guard alone, with the records of a turn: what they cost whoever calls them. */
async function partsAlone(history: ReturnType<typeof createHistory>, records: readonly StoredRecord[]): Promise<void> {
  for (const record of records) {
    history.append([record]);
    const { type } = record;
    const { role } = (record.record["message"] ?? {}) as { readonly role?: string };
    if (type !== "message" || role === "assistant") continue;
    const { messages } = history.render();
    await guardCall({
      request: { messages, system: "You are a bench.", tools: [] },
      model: counter.model,
      counter,
      windowTokens: 10_000_000,
      actual: { tokens: 1000, coversMessages: messages.length - 1 },
      call: () => Promise.resolve({ message: answer, stopReason: "end_turn", usage }),
    });
  }
}

async function measure(messages: number): Promise<void> {
  const target = historyTargets.get("anthropic");
  if (target === undefined) throw new Error("history knows Anthropic");
  const ofTurns: number[] = [];
  const ofParts: number[] = [];
  const ofJson: number[] = [];
  const ofBare: number[] = [];
  const [bareStore, bareChat] = [hollowStore([]), quickModel()];
  let seq = 0;
  let headId: string | null = null;
  let bench = await begin(messages);
  let history = createHistory(target, { target: { provider: "anthropic", modelId } });
  const place = (draft: RecordDraft): StoredRecord => {
    seq += 1;
    const side = draft.type !== "message";
    const [id, parentId] = [`r${seq}`, headId];
    if (!side) headId = id;
    const record = { ...draft, id, parentId, timestamp: new Date(1e12).toISOString() } as StoredRecord["record"];
    const head = { seq, id, parentId, type: draft.type, side, tsMs: 1e12, storedAtMs: 1e12, crc: null };
    return { ...head, bytes: JSON.stringify(record).length, record };
  };
  history.append(bench.taken.map(place));
  history.render();
  for (let round = 0; round < rounds; round++) {
    // A session grows while it is measured: a short one is begun anew, so that it stays about as long as it is said to be.
    if (round > 0 && messages <= 1000) {
      bench = await begin(messages);
      seq = 0;
      headId = null;
      history = createHistory(target, { target: { provider: "anthropic", modelId } });
      history.append(bench.taken.map(place));
      history.render();
    }
    const { session, taken } = bench;
    taken.length = 0;
    let startedUs = cpuMicroseconds();
    for (let at = 0; at < turnsARound; at++) await session.runTurn(words);
    ofTurns.push((cpuMicroseconds() - startedUs) / turnsARound);
    const records = taken.map(place);
    startedUs = cpuMicroseconds();
    await partsAlone(history, records);
    ofParts.push((cpuMicroseconds() - startedUs) / turnsARound);
    const drafts = records.slice(0, Math.ceil(records.length / turnsARound)).map(({ record }) => record as RecordDraft);
    const batches = [0, 1, 2, 3].map((at) => drafts.filter((_, index) => index % 4 === at));
    startedUs = cpuMicroseconds();
    for (let at = 0; at < turnsARound; at++) await bareTurn(bareStore, bareChat, batches);
    ofBare.push((cpuMicroseconds() - startedUs) / turnsARound);
    startedUs = cpuMicroseconds();
    let bytes = 0;
    for (let again = 0; again < repeats; again++)
      for (const { record } of records) bytes += JSON.stringify(record).length;
    ofJson.push((cpuMicroseconds() - startedUs) / turnsARound / repeats);
    if (bytes === 0) throw new Error("a turn has records");
  }
  const [turn, parts, json] = [sum(ofTurns) / rounds, sum(ofParts) / rounds, sum(ofJson) / rounds];
  const bareUs = sum(ofBare) / rounds;
  const line = { messages, turnUs: turn, historyAndGuardUs: parts, ownUs: turn - parts, bareUs, stringifyUs: json };
  const rounded = Object.fromEntries(Object.entries(line).map(([name, value]) => [name, Math.round(value * 10) / 10]));
  process.stdout.write(
    `${JSON.stringify({ ...rounded, ownOverStringify: Number(((turn - parts) / json).toFixed(2)) })}\n`,
  );
}

// Code that has not run yet is slow whoever wrote it: a process that serves sessions has run it.
for (let at = 0; at < 20; at++) await begin(400);
for (const messages of lengths.length > 0 ? lengths : [1000, 10_000]) await measure(messages);
process.exit(0);
