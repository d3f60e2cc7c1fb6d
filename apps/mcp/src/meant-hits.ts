import { hasErrorCode, type SessionRef, type SessionState, ThroughlineError } from "@throughline/core";
import { type NearestHit, toolWord } from "@throughline/core/internal";
import type { EpisodePart } from "@throughline/tools/internal/search";
import type { MemoryServerOptions } from "./memory-scope.ts";

/** Holds what a search by meaning needs of the server's options. */
export type Meaning = Required<Pick<MemoryServerOptions, "meaningOf">> & Pick<MemoryServerOptions, "onError">;

/** Sets the records that a search covers. */
export interface MeantFilters {
  readonly role?: string;
  readonly tool?: string;
  readonly sinceMs?: number;
  readonly untilMs?: number;
}

export interface MeantQuestion extends MeantFilters {
  readonly text: string;
  /** Limits the search to one session; null searches the agents. */
  readonly session: SessionState | null;
  /** Names the agents that are searched. */
  readonly agents: readonly string[];
  readonly namespace: string;
  /** Returns whether the client sees a session. */
  readonly seesSession: (ref: SessionRef, sessionId: string) => Promise<boolean>;
  readonly signal: AbortSignal;
  readonly isLate: () => boolean;
  /** Receives what was not compared. */
  readonly onNote: (note: string) => void;
}

/** Filters apply to the nearest texts, so more of them are asked for. */
const mostFiltered = 200;

/**
 * Returns the texts that are near in meaning, of sessions that the client sees. It never fails: what was not compared is a note,
 * which names neither a file nor a host.
 */
export async function meantHits(meaning: Meaning, question: MeantQuestion): Promise<readonly NearestHit[]> {
  const notes = new Set<string>();
  const found: NearestHit[] = [];
  for (const agentId of question.agents) found.push(...(await hitsOfAgent(meaning, question, agentId, notes)));
  for (const note of notes) question.onNote(note);
  return found.toSorted((one, other) => other.score - one.score);
}

async function hitsOfAgent(
  { meaningOf, onError }: Meaning,
  question: MeantQuestion,
  agentId: string,
  notes: Set<string>,
): Promise<readonly NearestHit[]> {
  const { text, session, namespace, seesSession: isWanted, signal, isLate } = question;
  try {
    const search = await meaningOf(agentId);
    if (search === null) {
      notes.add("some sessions have no vectors and were compared by words only");
      return [];
    }
    const {
      hits,
      notes: found,
      failure,
    } = await search.nearest({
      text,
      ref: session?.ref ?? { namespace, agentId, key: `agent:${agentId}:mcp` },
      reach: session === null ? "agent" : "self",
      contextFromSeq: Infinity,
      ...(isFiltered(question) ? { limit: mostFiltered } : {}),
      isWanted,
      signal,
    });
    if (failure === undefined) for (const note of found) notes.add(note);
    else notes.add(`only words were compared: ${reasonOf(failure)}`);
    if (failure !== undefined) onError(failure);
    return hits;
  } catch (error) {
    if (!isLate()) {
      if (hasErrorCode(error, "ABORTED")) throw error;
      onError(error);
    }
    notes.add(`only words were compared: ${isLate() ? "the time of the call was over" : reasonOf(error)}`);
    return [];
  }
}

/** The message of an error may name hosts, so the client gets its code. */
function reasonOf(error: unknown): string {
  return ThroughlineError.isInstance(error) ? error.code : "the embedder gave no vector in time";
}

function isFiltered({ role, tool, sinceMs, untilMs }: MeantFilters): boolean {
  return [role, tool, sinceMs, untilMs].some((filter) => filter !== undefined);
}

/** Returns whether a record passes the filters, as an index would. */
export function passesFilters(
  { role, toolNames, atMs }: EpisodePart,
  { role: wantedRole, tool, sinceMs, untilMs }: MeantFilters,
): boolean {
  if (wantedRole !== undefined && role !== wantedRole) return false;
  if (tool !== undefined && !toolNames.some((name) => toolWord(name) === toolWord(tool))) return false;
  if (sinceMs === undefined && untilMs === undefined) return true;
  return atMs !== null && atMs >= (sinceMs ?? -Infinity) && atMs < (untilMs ?? Infinity);
}
