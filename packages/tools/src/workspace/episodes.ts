import type { SessionRef, StoredRecord } from "@throughline/core";
import { searchText } from "@throughline/core/internal";

/** What one record says. */
interface EpisodePart {
  readonly seq: number;
  readonly id: string;
  readonly role: string | null;
  readonly text: string;
}

/**
 * The messages between one request of the user and the next. A searched fact is rarely in the record that matches the
 * words, and nearly always near it.
 */
export interface Episode {
  readonly ref: SessionRef;
  readonly sessionId: string;
  readonly firstSeq: number;
  readonly lastSeq: number;
  /** When it began; null when its records do not say. */
  readonly tsMs: number | null;
  readonly parts: readonly EpisodePart[];
  /** All parts, of each the beginning. */
  readonly text: string;
}

/** An agent that works for hours without being spoken to is found by the hour and not by the day. */
const mostParts = 40;
const mostLength = 32_768;
/** Of a part: past it lie files and outputs, which say less the longer they are. */
const mostPartLength = 4000;

export interface EpisodeSession {
  readonly ref: SessionRef;
  readonly sessionId: string;
}

/** Records in order of seq as episodes. What a search answered earlier is left out: it would answer every time. */
export function episodesOf(
  { ref, sessionId }: EpisodeSession,
  records: readonly StoredRecord[],
  ownToolName: string,
): readonly Episode[] {
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
    // A summary says again what stands here anyway, and may repeat what was redacted since.
    if (found === null || stored.type === "compaction") continue;
    if (found.role === "toolResult" && found.toolNames.includes(ownToolName)) continue;
    const text = found.text.slice(0, mostPartLength).toWellFormed();
    if (text.trim() === "") continue;
    tsMs ??= stored.tsMs ?? stored.storedAtMs;
    length += text.length;
    parts.push({ seq: stored.seq, id: stored.id, role: found.role, text });
  }
  end();
  return episodes;
}
