import { describe, expect, it } from "vitest";
import type { AgentTool, SessionStore, StoredRecord } from "@throughline/core";
import { createMemoryData } from "@throughline/store-memory/internal";
import { createMemoryStore } from "@throughline/store-memory";
import { createProviderSimulator, type ProviderSimulator, type SimulatedReply } from "@throughline/testing";
import type { ReplyPart } from "@throughline/testing/internal";
import { createSessions, explainCalls, rebuildCall, type Session } from "@throughline/session";
import { replaceMembers } from "@throughline/test-kit";
import { providerCases, type ProviderCase } from "./provider-cases.ts";
import { testSize } from "../../../tools/test-size.ts";
import { allRecords } from "./session-fixture.ts";

/** Of each of four providers: 1,000 in all at full size. */
const turnsEach = testSize({ short: 25, long: 250 });
const turnsOfSession = 25;
const system = "You work with tools.";
const seed = Number(process.env["SESSION_SEED"] ?? 20_261_122);

/** Small, fast, the same everywhere: mulberry32. */
function randomFrom(start: number): (below: number) => number {
  let state = start >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

type Random = (below: number) => number;

/** What a model might do: mostly answer, often call tools, sometimes fail in all the ways there are. */
function replyBy(random: Random, number: number): SimulatedReply {
  const fate = random(100);
  if (fate < 4) return { kind: "error", status: [429, 500, 529, 401][random(4)] ?? 500 };
  const parts: ReplyPart[] = [];
  if (random(3) === 0) parts.push({ type: "thinking", thinking: `I think of ${number}.` });
  if (random(3) > 0) parts.push({ type: "text", text: `Reply ${number} ${"é word ".repeat(random(20))}`.trim() });
  if (random(10) < 4)
    for (let calls = 1 + random(3); calls > 0; calls--)
      parts.push({ type: "tool-call", name: random(8) === 0 ? "missing" : "work", input: { task: random(5), number } });
  if (parts.length === 0) parts.push({ type: "text", text: `Reply ${number}` });
  const broken = fate < 10 ? { breakAfter: { events: 1 + random(5), how: "cut" as const } } : {};
  const slow = random(4) === 0 ? { eventDelayMs: 1 } : {};
  return { kind: "answer", content: parts, ...broken, ...slow };
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

function workTool(random: Random): AgentTool {
  const inputSchema = { type: "object", properties: { task: { type: "integer" } }, required: ["task"] };
  return {
    definition: { name: "work", description: "Works.", inputSchema },
    async run({ task, number }) {
      if (random(3) === 0) await pause(random(4));
      if (task === 0) throw new Error("It did not work.");
      return `done ${String(task)} of ${String(number)}`;
    },
  };
}

/** A store that keeps what was acknowledged, and can be taken away in the middle of anything. */
function witnessed(store: SessionStore, acknowledged: string[]): SessionStore {
  return replaceMembers(store, {
    async append(...given) {
      const result = await store.append(...given);
      acknowledged.push(...result.records.map(({ id }) => id));
      return result;
    },
  });
}

interface Journey {
  readonly keys: readonly string[];
  readonly acknowledged: ReadonlyMap<string, readonly string[]>;
  readonly said: ReadonlyMap<string, readonly string[]>;
  readonly tally: Readonly<Record<string, number>>;
  readonly store: SessionStore;
  readonly tool: AgentTool;
}

async function travel(provider: ProviderCase, simulator: ProviderSimulator, random: Random): Promise<Journey> {
  const data = createMemoryData();
  const chat = provider.create(simulator);
  const tool = workTool(random);
  const gone = new Set<string>();
  const tally: Record<string, number> = { killed: 0, thrown: 0, resumed: 0 };
  const acknowledged = new Map<string, string[]>();
  const said = new Map<string, string[]>();
  const keys: string[] = [];
  let name = 0;
  const start = async (key: string): Promise<{ session: Session; store: SessionStore; self: string }> => {
    const self = `process ${(name += 1)}`;
    const acks = acknowledged.get(key) ?? [];
    acknowledged.set(key, acks);
    const store = witnessed(createMemoryStore({ data }), acks);
    const sessions = createSessions({
      store,
      system,
      tools: [tool],
      model: { chat, modelId: provider.modelId, windowTokens: 500_000 },
      owners: { self, stateOf: (owner) => (owner === self ? "self" : gone.has(owner) ? "gone" : "unknown") },
    });
    return { session: await sessions.open(key), store, self };
  };
  for (let turn = 0; turn < turnsEach; turn += turnsOfSession) {
    const key = `agent:main:test:direct:${turn}`;
    keys.push(key);
    said.set(key, []);
    let process = await start(key);
    for (let at = 0; at < turnsOfSession; at++) {
      const text = `Say ${turn + at}`;
      const fate = random(10);
      const controller = new AbortController();
      let deltas = 0;
      const stopAt = fate === 0 ? 1 + random(3) : -1;
      const onDelta = (): void => void (++deltas === stopAt && controller.abort());
      const timer = fate === 1 ? setTimeout(() => controller.abort(), random(8)) : undefined;
      const isKilled = fate === 2 || fate === 3;
      const goesOn = process.session.interruptedTurn !== null && random(2) === 0;
      const options = { signal: controller.signal, ...(random(3) === 0 ? {} : { onDelta }) };
      const running = goesOn ? process.session.resume(options) : process.session.runTurn(text, options);
      if (!goesOn) said.get(key)?.push(text);
      else tally["resumed"] = (tally["resumed"] ?? 0) + 1;
      if (isKilled) {
        void running.catch(() => null);
        await pause(random(8));
        await process.store.close();
        gone.add(process.self);
        process = await start(key);
        tally["killed"] = (tally["killed"] ?? 0) + 1;
      } else {
        const outcome = await running.then(
          ({ outcome }) => outcome,
          () => "thrown" as const,
        );
        tally[outcome] = (tally[outcome] ?? 0) + 1;
      }
      clearTimeout(timer);
    }
    await process.session.close();
  }
  return { keys, acknowledged, said, tally, store: createMemoryStore({ data }), tool };
}

function userTexts(records: readonly StoredRecord[]): string[] {
  return records.flatMap(({ record }) => {
    const message = record["message"] as { readonly role: string; readonly content: unknown } | undefined;
    return message?.role === "user" ? [String(message.content)] : [];
  });
}

describe.each(providerCases)("turns of aborts, failures and kills: $name", (provider) => {
  it(`sends nothing that is refused, keeps what it acknowledged once, and can tell every request again (seed ${seed}) [C48, LOOP-03, STO-05]`, async () => {
    const random = randomFrom(seed + provider.name.length);
    await using simulator = createProviderSimulator({
      fallback: ({ number }) => replyBy(random, number),
      models: { "*": { windowTokens: 500_000 } },
    });
    await simulator.start();
    const { keys, acknowledged, said, tally, store, tool } = await travel(provider, simulator, random);
    expect(simulator.refusals).toEqual([]);
    const { done = 0, killed = 0, aborted = 0, thrown = 0 } = tally;
    // Few turns may hold few of a kind.
    expect(done).toBeGreaterThan(turnsEach / testSize({ short: 5, long: 3 }));
    const kinds = testSize<readonly number[]>({ short: [killed, aborted + thrown], long: [killed, aborted, thrown] });
    expect(Math.min(...kinds)).toBeGreaterThan(testSize({ short: 0, long: 4 }));
    const bodies = simulator.requests.map(({ bytes }) => new TextDecoder().decode(bytes));
    const received = new Map(
      simulator.requests.map((request, at) => [JSON.stringify(provider.messagesOf(request)), at]),
    );
    let told = 0;
    for (const key of keys) {
      const records = await allRecords(store, key);
      expect(records.map(({ seq }) => seq)).toEqual(records.map((_, index) => index + 1));
      const ids = records.map(({ id }) => id);
      expect(new Set(ids).size).toBe(ids.length);
      expect(acknowledged.get(key)?.filter((id) => !ids.includes(id))).toEqual([]);
      // The words of a turn that was killed before its first append were never acknowledged.
      const texts = userTexts(records);
      expect(new Set(texts).size).toBe(texts.length);
      expect(said.get(key)?.filter((text) => texts.includes(text))).toEqual(texts);
      for (const { facts } of explainCalls(records)) {
        const rebuilt = rebuildCall(records, facts, { system, tools: [tool.definition] });
        const json = JSON.stringify(rebuilt.messages);
        const at = received.get(json);
        // A call that was aborted before its request was complete never arrived.
        if (at === undefined && facts.outcome === "aborted") continue;
        expect(at, `call ${facts.turnId} step ${facts.step} of ${key}`).toBeDefined();
        expect(bodies[at ?? -1]?.includes(json)).toBe(true);
        expect([rebuilt.isSameSystem, rebuilt.areSameTools, rebuilt.messages.length]).toEqual([
          true,
          true,
          facts.messageCount,
        ]);
        told += 1;
      }
    }
    // What is told nowhere are the last calls of processes that were killed.
    expect(told).toBeGreaterThanOrEqual(simulator.requests.length - killed);
  }, 120_000);
});
