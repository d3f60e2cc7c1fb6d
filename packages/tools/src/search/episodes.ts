import type { SessionRef, StoredRecord } from "@throughline/core";
import { searchText } from "@throughline/core/internal";
import type { PassagePlace, RankablePassage } from "./rankable-passage.ts";

export interface EpisodePart {
  readonly seq: number;
  readonly id: string;
  readonly role: string | null;
  /** Names the tools that the record calls, or whose answer it holds. */
  readonly toolNames: readonly string[];
  /** States the time of the record; null when the record states none. */
  readonly tsMs: number | null;
  /** States that time, or the time at which the record was stored. */
  readonly atMs: number | null;
  readonly text: string;
}

/**
 * Holds the messages from one request of the user to the next. A searched fact is rarely in the record that matches the
 * words, and nearly always near it.
 */
export interface Episode {
  readonly ref: SessionRef;
  readonly sessionId: string;
  readonly firstSeq: number;
  readonly lastSeq: number;
  /** Holds the time of the first record; null when the records state no time. */
  readonly tsMs: number | null;
  readonly parts: readonly EpisodePart[];
  /** Joins the parts, each cut to its beginning. */
  readonly text: string;
}

/**
 * Limits an episode. An agent may work for hours without a message of the user, and one huge episode would locate no
 * fact.
 */
const mostParts = 40;
const mostLength = 32_768;
/** Cuts long parts. Beyond this length a part holds files and outputs, which help less the longer they are. */
const mostPartLength = 4000;

/** Programs put the name of an MCP server before the names of its tools. */
function isSearchTool(name: string): boolean {
  return name === "memory_search" || name.endsWith("search_sessions");
}

export interface EpisodeSession {
  readonly ref: SessionRef;
  readonly sessionId: string;
}

/**
 * Groups records into episodes, in order of seq. Results of earlier searches are left out, because they would match every
 * later query.
 */
export function episodesOf({ ref, sessionId }: EpisodeSession, records: readonly StoredRecord[]): readonly Episode[] {
  const episodes: Episode[] = [];
  let parts: EpisodePart[] = [];
  let length = 0;
  let last: StoredRecord | null = null;
  let tsMs: number | null = null;
  const end = (): void => {
    const [first] = parts;
    if (first !== undefined && last !== null) {
      const text = parts.map((part) => part.text).join("\n");
      episodes.push({
        ref,
        sessionId,
        firstSeq: first.seq,
        lastSeq: parts.at(-1)?.seq ?? first.seq,
        tsMs,
        parts,
        text,
      });
    }
    parts = [];
    length = 0;
    tsMs = null;
  };
  for (const stored of records) {
    const found = searchText(stored.record);
    const isGap = last !== null && stored.seq !== last.seq + 1;
    if (isGap || found?.role === "user" || parts.length >= mostParts || length >= mostLength) end();
    last = stored;
    // A summary repeats content of other records, and may contain text that was redacted since.
    if (found === null || stored.type === "compaction") continue;
    if (found.role === "toolResult" && found.toolNames.some(isSearchTool)) continue;
    const text = found.text.slice(0, mostPartLength).toWellFormed();
    if (text.trim() === "") continue;
    const atMs = stored.tsMs ?? stored.storedAtMs;
    tsMs ??= atMs;
    length += text.length;
    const { seq, id } = stored;
    parts.push({ seq, id, role: found.role, toolNames: found.toolNames, tsMs: stored.tsMs, atMs, text });
  }
  end();
  return episodes;
}

/** The output of a tool is long but shows little about the topic of an episode, so it counts less. */
const outputWeight = 0.5;
export const outputRoles: ReadonlySet<string | null> = new Set(["toolResult", "bashExecution"]);

export function piecesOf({ parts }: Episode): NonNullable<RankablePassage["pieces"]> {
  return parts.map(({ role, text }) => ({ text, weight: outputRoles.has(role) ? outputWeight : 1 }));
}

export function placeInSession({ sessionId, firstSeq: first, lastSeq: last, tsMs }: Episode): PassagePlace {
  return { within: `session ${sessionId}`, first, last, tsMs };
}

/** When two episodes answer equally well, the newest one comes first. */
export function newestFirst(episodes: readonly Episode[]): readonly Episode[] {
  return episodes.toSorted((one, other) => (other.tsMs ?? 0) - (one.tsMs ?? 0) || other.firstSeq - one.firstSeq);
}
