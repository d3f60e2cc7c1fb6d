import { ThroughlineError, type Clock, type SessionStore, type StoredRecord } from "@throughline/core";
import type { Session } from "@throughline/session";
import { type AgentSessions, createAgentSessions } from "../src/whole-turn/agent-sessions.ts";
import type { AgentSessionsOptions } from "../src/whole-turn/whole-turn-options.ts";
import type { WholeTurnEvent } from "../src/whole-turn/whole-turn-event.ts";
import { createMemoryStore } from "@throughline/store-memory";
import type { ScriptedModel, ScriptedReply } from "./scripted-model.ts";
import { echoTool } from "./session-fixture.ts";
import { writeTool } from "./whole-turn-fixture.ts";

/** About a thousand tokens. */
export const words: string = "these are the words of it ".repeat(165);

/** What a provider says of a prompt of this size. */
export function usageOf(input: number): NonNullable<ScriptedReply["usage"]> {
  return { input, output: 10, cacheRead: 0, cacheWrite: 0 };
}

type Named<Name> = Extract<WholeTurnEvent, { readonly name: Name }>;

export interface ScriptedSessions {
  readonly store: SessionStore;
  readonly sessions: AgentSessions;
  readonly events: WholeTurnEvent[];
  /** The events of one name, in order. */
  all<Name extends WholeTurnEvent["name"]>(name: Name): readonly Named<Name>[];
}

/**
 * Sessions of an agent that writes files, without checkpoints, flushes, retries and work beside the turns unless they are
 * given. Of a window of 20,000 tokens 15,000 may be used before it is compacted.
 */
export function scriptedSessions(script: ScriptedModel, given: Partial<AgentSessionsOptions> = {}): ScriptedSessions {
  const events: WholeTurnEvent[] = [];
  const store = given.store ?? createMemoryStore();
  const sessions = createAgentSessions({
    model: { chat: script, modelId: "claude-sonnet-4-5", windowTokens: 20_000, maxOutputTokens: 500 },
    system: "Be kind.",
    tools: [echoTool, writeTool],
    summarizers: [],
    compaction: { background: false },
    checkpoint: { enabled: false },
    memoryFlush: { enabled: false },
    retry: { intervalSeconds: 0 },
    onEvent: (event) => events.push(event),
    ...given,
    store,
  });
  return {
    store,
    sessions,
    events,
    all: (name) =>
      events.filter((event): event is Extract<WholeTurnEvent, { name: typeof name }> => event.name === name),
  };
}

/** Turns of about a thousand tokens each, whose prompts the provider counts as that many. */
export async function talk(
  session: Session,
  script: ScriptedModel,
  {
    turns,
    from = 1,
    tokensEach = 1100,
  }: { readonly turns: number; readonly from?: number; readonly tokensEach?: number },
): Promise<void> {
  for (let at = from; at < from + turns; at++) {
    script.push({ text: `Answer ${at}.`, usage: usageOf(tokensEach * at) });
    await session.runTurn(`Question ${at}: ${words}`);
  }
}

/** The messages of a request as text. */
export function textOf(request: ScriptedModel["requests"][number] | undefined): string {
  return JSON.stringify(request?.messages);
}

/** The records of one type on the branch or beside it. */
export function ofType(records: readonly StoredRecord[], type: string): readonly Readonly<Record<string, unknown>>[] {
  return records.filter((record) => record.type === type).map(({ record }) => record);
}

export interface ManualClock extends Clock {
  /** How long each sleeper still sleeps. */
  sleeps(): readonly number[];
  advance(byMs: number): void;
}

/** A clock that goes only when it is told to. */
export function createManualClock(startMs: number): ManualClock {
  let nowMs = startMs;
  const sleepers = new Set<{ readonly untilMs: number; readonly wake: () => void }>();
  return {
    nowMs: () => nowMs,
    sleep: (delayMs, signal) =>
      new Promise((resolve, reject) => {
        const sleeper = { untilMs: nowMs + delayMs, wake: resolve };
        const stop = (): void => {
          sleepers.delete(sleeper);
          reject(new ThroughlineError("ABORTED", "The wait was aborted."));
        };
        if (signal?.aborted === true) {
          stop();
          return;
        }
        sleepers.add(sleeper);
        signal?.addEventListener("abort", stop, { once: true });
      }),
    sleeps: () => [...sleepers].map(({ untilMs }) => untilMs - nowMs),
    advance(byMs) {
      nowMs += byMs;
      for (const sleeper of sleepers) {
        if (sleeper.untilMs > nowMs) continue;
        sleepers.delete(sleeper);
        sleeper.wake();
      }
    },
  };
}
