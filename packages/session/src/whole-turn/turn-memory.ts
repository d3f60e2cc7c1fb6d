import type { SessionRef, StoredRecord } from "@throughline/core";
import { outdatedSummaryIds } from "@throughline/core/internal";
import type { ObservedCall } from "@throughline/compaction/internal";
import type { SessionTurnEvent } from "../session-event.ts";

/** Holds the state of a session's running or last turn. */
export interface TurnNote {
  readonly turnId: string;
  /** Counts the user messages that the turn began with. */
  readonly userMessages: number;
  /** Is true when a compaction was tried and the context has not been smaller since. */
  hasCompacted: boolean;
  /** Is true when the agent was asked before the next call. */
  isAsked: boolean;
  /** Is true when the agent was asked in this turn, whether it answered or not. */
  wasAsked: boolean;
  /** Is true when the user's question was asked again, because the answer was for the flush alone. */
  hasReminded: boolean;
  /** Holds the fields of the entry that are set when the turn ends. */
  patch: Readonly<Record<string, unknown>>;
  /** Holds the calls since the agent was asked, by id. */
  readonly calls: Map<string, ObservedCall>;
}

/** The steps of a turn share this state. It need not survive the process, because the entry holds what must persist. */
export class TurnMemory {
  readonly #turns = new Map<string, TurnNote>();
  /** Holds the sessions with a summary that may repeat redacted content. */
  readonly #outdated = new Set<string>();

  /** Returns true once after each redaction that reached a summary. */
  takeOutdated(ref: SessionRef): boolean {
    return this.#outdated.delete(keyOf(ref));
  }

  markOutdated(ref: SessionRef): void {
    this.#outdated.add(keyOf(ref));
  }

  /** A turn that began before the first event arrived gets an empty note. */
  turn(ref: SessionRef, turnId: string): TurnNote {
    const known = this.#turns.get(keyOf(ref));
    if (known?.turnId === turnId) return known;
    const note = newTurn(turnId, 0);
    this.#turns.set(keyOf(ref), note);
    return note;
  }

  see(event: SessionTurnEvent): void {
    const { ref, turnId } = event;
    if (event.name === "record.appended" && outdatedSummaryIds([event.record]).size > 0) this.markOutdated(ref);
    if (event.name === "turn.opened" && turnId !== null) {
      this.#turns.set(keyOf(ref), newTurn(turnId, event.resumes === null ? 1 : 0));
    } else if (event.name === "record.appended" && turnId !== null) {
      const note = this.#turns.get(keyOf(ref));
      if (note?.wasAsked === true && note.turnId === turnId) noteCalls(note.calls, event.record);
    } else if (event.name === "turn.closed" && event.outcome === "failed") {
      this.#turns.delete(keyOf(ref));
    }
  }
}

function newTurn(turnId: string, userMessages: number): TurnNote {
  return {
    turnId,
    userMessages,
    hasCompacted: false,
    isAsked: false,
    wasAsked: false,
    hasReminded: false,
    patch: {},
    calls: new Map(),
  };
}

function noteCalls(calls: Map<string, ObservedCall>, { type, record }: StoredRecord): void {
  if (type !== "message") return;
  const { role, content, toolCallId, isError } = record["message"] as Readonly<Record<string, unknown>>;
  if (role === "toolResult" && isError === true) {
    const call = calls.get(String(toolCallId));
    if (call !== undefined) calls.set(String(toolCallId), { ...call, isError: true });
  }
  if (role !== "assistant" || !Array.isArray(content)) return;
  for (const block of content as readonly Readonly<Record<string, unknown>>[]) {
    if (block["type"] !== "toolCall") continue;
    const args = block["arguments"] as Readonly<Record<string, unknown>> | null;
    calls.set(String(block["id"]), { name: String(block["name"]), arguments: args ?? {} });
  }
}

export function keyOf({ namespace, agentId, key, archiveId }: SessionRef): string {
  return JSON.stringify([namespace, agentId, key, archiveId ?? null]);
}
