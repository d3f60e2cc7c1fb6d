import type { StoredRecord } from "@throughline/core";
import { type Fields, isFields } from "@throughline/core/internal";
import { blocksOf, textOf } from "./block-nodes.ts";

/** Is a session that a call of another one started. */
export interface SubAgent {
  readonly key: string;
  readonly sessionId: string;
  readonly createdAtMs: number;
  /** Holds the first line of its first prompt, to 120 characters; null for an unknown one. */
  readonly firstWords?: string | null;
}

interface OpenCall {
  readonly place: string;
  readonly name: string;
  readonly args: unknown;
  readonly startMs: number;
}

interface Candidate {
  readonly place: string;
  readonly points: number;
}

/** Some programs write whole seconds, and some start a session after they answered the call. */
const slackMs = 1000;
const lateMs = 60_000;
const mostCandidates = 16;
const mostSearched = 16_384;
const agentTools = /agent|delegat|spawn|task/i;

/** Names a call of a session. Some programs use an id for several calls, but not in one record. */
export function callPlace(seq: number, callId: string): string {
  return `${seq} ${callId}`;
}

/**
 * Finds the calls that started sub-agents, in the records of the session that called. A call that names the session, or
 * that has its first prompt as an argument, comes first; else a call during which the session began.
 */
export class SubAgentPlaces<Agent extends SubAgent> {
  readonly #agents: readonly Agent[];
  readonly #candidates: readonly Candidate[][];
  readonly #open = new Map<string, OpenCall>();
  /** The model spoke on only after its calls ended, so one without a result was given up. */
  #hasResult = false;

  constructor(agents: readonly Agent[]) {
    this.#agents = agents.toSorted((one, other) => one.createdAtMs - other.createdAtMs);
    this.#candidates = this.#agents.map(() => []);
  }

  /** Takes the records in the order of their seq. */
  take({ record, seq, tsMs, storedAtMs, side }: StoredRecord): void {
    const message = record.type === "message" && !side && isFields(record["message"]) ? record["message"] : null;
    if (this.#agents.length === 0 || message === null) return;
    const timeMs = tsMs ?? storedAtMs;
    if (message["role"] === "user" || (message["role"] === "assistant" && this.#hasResult)) this.#endOpen(timeMs ?? 0);
    this.#hasResult = message["role"] === "toolResult";
    if (message["role"] === "assistant")
      for (const { type, id, name, arguments: args } of blocksOf(message["content"])) {
        if (type !== "toolCall" || typeof id !== "string") continue;
        this.#open.set(id, { place: callPlace(seq, id), name: textOf(name), args, startMs: timeMs ?? -Infinity });
      }
    const callId = message["role"] === "toolResult" ? textOf(message["toolCallId"]) : "";
    const call = this.#open.get(callId);
    if (call === undefined) return;
    this.#open.delete(callId);
    this.#weigh(call, message, timeMs ?? Infinity);
  }

  /**
   * Returns the sub-agents of each call, by its place, in the order in which they began.
   * @param endMs the time of the last record that was taken, when the session has more
   */
  places(endMs: number = Infinity): ReadonlyMap<string, readonly Agent[]> {
    this.#endOpen(endMs);
    const places = new Map<string, Agent[]>();
    for (const [index, agent] of this.#agents.entries()) {
      const candidates = this.#candidates[index] ?? [];
      const most = Math.max(...candidates.map(({ points }) => points));
      const best = candidates.filter(({ points }) => points === most);
      // Calls that are equally likely are those of one message, which starts its sessions in order.
      const chosen = best.find(({ place }) => !places.has(place)) ?? best[0];
      if (chosen === undefined) continue;
      const agents = places.get(chosen.place) ?? [];
      places.set(chosen.place, agents);
      agents.push(agent);
    }
    return places;
  }

  #endOpen(endMs: number): void {
    for (const call of this.#open.values()) this.#weigh(call, null, endMs);
    this.#open.clear();
  }

  #weigh({ place, name, args, startMs }: OpenCall, result: Fields | null, endMs: number): void {
    for (let index = this.#firstAfter(startMs - slackMs); index < this.#agents.length; index++) {
      const agent = this.#agents[index];
      if (agent === undefined || agent.createdAtMs > endMs + lateMs) return;
      const isDuring = agent.createdAtMs <= endMs + slackMs;
      const isSure = (isNamed(agent, result) ? 8 : 0) + (isAsked(agent, args) ? 4 : 0);
      if (isSure === 0 && !isDuring) continue;
      const points = isSure + (agentTools.test(name) ? 2 : 0) + (isDuring ? 1 : 0);
      const candidates = this.#candidates[index];
      if (candidates === undefined) continue;
      if (candidates.length < mostCandidates) candidates.push({ place, points });
      else if (candidates.every((known) => known.points < points)) candidates[0] = { place, points };
    }
  }

  #firstAfter(timeMs: number): number {
    const found = this.#agents.findIndex(({ createdAtMs }) => createdAtMs >= timeMs);
    return found < 0 ? this.#agents.length : found;
  }
}

/** Returns whether a result has the id of the session. Claude Code states `agentId`, and adds the id of the parent here. */
function isNamed({ key, sessionId }: SubAgent, result: Fields | null): boolean {
  if (result === null) return false;
  const short = sessionId.slice(sessionId.lastIndexOf(".agent-") + (sessionId.includes(".agent-") ? 7 : 0));
  const texts = blocksOf(result["content"]).map(({ text }) => textOf(text).slice(0, mostSearched));
  const facts = isFields(result["details"]) ? Object.values(result["details"]) : [];
  const nested = facts.flatMap((fact) => (isFields(fact) ? Object.values(fact) : [fact]));
  if (nested.some((fact) => fact === sessionId || fact === short || fact === key)) return true;
  return texts.some((text) => text.includes(key) || (short.length >= 8 && text.includes(short)));
}

/** Returns whether an argument starts as the first prompt of the session does. */
function isAsked({ firstWords }: SubAgent, args: unknown): boolean {
  const words = (firstWords ?? "").replace(/…$/, "").trim();
  if (words.length < 8 || !isFields(args)) return false;
  return Object.values(args).some((value) => typeof value === "string" && value.trimStart().startsWith(words));
}
