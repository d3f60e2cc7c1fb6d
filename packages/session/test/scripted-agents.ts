import { expect } from "vitest";
import type { SessionStore, Summarizer } from "@throughline/core";
import type { Session } from "@throughline/session";
import { type AgentSessions, createAgentSessions } from "../src/whole-turn/agent-sessions.ts";
import type { AgentSessionsOptions } from "../src/whole-turn/whole-turn-options.ts";
import type { WholeTurnEvent } from "../src/whole-turn/whole-turn-event.ts";
import { createMemoryStore } from "@throughline/store-memory";
import { createExtractiveSummarizer } from "@throughline/summarizer-providers";
import type { ScriptedModel } from "./scripted-model.ts";
import { echoTool } from "./session-fixture.ts";
import { workingSummary, writeTool } from "./whole-turn-fixture.ts";

/** Agents over a script, and what they said and stored. */
export interface ScriptedAgents {
  readonly sessions: AgentSessions;
  readonly store: SessionStore;
  readonly events: WholeTurnEvent[];
  /** The names of the events, those that match. */
  names(of?: RegExp): readonly string[];
}

/** What a question of the tests is filled with: about a thousand tokens. */
export const thousandTokens: string = "these are the words of it ".repeat(165);

/** A usage that reads so many tokens. */
export function usageOf(input: number): { input: number; output: number; cacheRead: number; cacheWrite: number } {
  return { input, output: 10, cacheRead: 0, cacheWrite: 0 };
}

function agentsOver(
  script: ScriptedModel,
  given: Omit<AgentSessionsOptions, "model" | "store"> & { readonly store?: SessionStore },
): ScriptedAgents {
  const events: WholeTurnEvent[] = [];
  const store = given.store ?? createMemoryStore();
  const sessions = createAgentSessions({
    model: { chat: script, modelId: "claude-sonnet-4-5", windowTokens: 20_000, maxOutputTokens: 500 },
    checkpoint: { enabled: false },
    retry: { intervalSeconds: 0 },
    onEvent: (event) => events.push(event),
    ...given,
    store,
  });
  const names = (of = /./): readonly string[] => events.map(({ name }) => name).filter((name) => of.test(name));
  return { store, sessions, events, names };
}

/** Without a model that summarizes. A window of 20,000 tokens: compaction is due at 15,000 and begun at 13,500. */
export function scriptedAgents(script: ScriptedModel, given: Partial<AgentSessionsOptions> = {}): ScriptedAgents {
  return agentsOver(script, { summarizers: [], extractive: createExtractiveSummarizer(), ...given });
}

/** A summarizer that answers. */
export const working: Summarizer = {
  summarize: () => Promise.resolve({ summary: workingSummary(1), source: "works", usage: null }),
};

/** With tools, and a summarizer that works. The same window. */
export function workingAgents(script: ScriptedModel, given: Partial<AgentSessionsOptions> = {}): ScriptedAgents {
  return agentsOver(script, { system: "Be kind.", tools: [echoTool, writeTool], summarizers: [working], ...given });
}

/** Turns that are done, each of about 1,100 tokens more. */
export async function talk(session: Session, script: ScriptedModel, from: number, to: number): Promise<void> {
  for (let at = from; at <= to; at++) {
    script.push({ text: `Answer ${at}.`, usage: usageOf(1100 * at) });
    const turn = await session.runTurn(`Question ${at}: ${thousandTokens}`);
    expect(turn.outcome).toBe("done");
  }
}
