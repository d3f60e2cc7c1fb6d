import type { SessionHead } from "@throughline/core";
import type { AgentFolder } from "./agent-folder.ts";
import type { FileFacts, Files } from "./files.ts";
import type { EntryRedo, PatchSource } from "./redo.ts";
import type { SessionIndex } from "./session-index.ts";
import { UndecodableChange } from "./undecodable-entry.ts";
import type { SessionSnapshot, SessionRow, TranscriptDigest } from "./session-row.ts";
import type { TranscriptBase } from "./store-envelope.ts";
import type { Transcript } from "./transcript.ts";

interface TranscriptSummary extends TranscriptDigest, PatchSource {
  /** Holds the row whose patches the index has already folded, so that they are not folded again. */
  readonly indexed?: { readonly row: SessionRow; readonly folded: SessionRow };
}

export interface TranscriptSummariesOptions {
  readonly files: Files;
  readonly folder: AgentFolder;
  readonly index: SessionIndex;
  readonly redo: EntryRedo;
  readonly open: (row: SessionRow) => Transcript | null;
  /** Returns the image of an open transcript, which is at least as new as a summary. */
  readonly opened: (sessionId: string) => Transcript | null;
  readonly isIndexed: (row: SessionRow) => boolean;
}

/** Caches summaries of transcripts from reads and from the index, by the fingerprints of their files. */
export class TranscriptSummaries {
  readonly #options: TranscriptSummariesOptions;
  readonly #kept: Map<string, { readonly seen: string; readonly summary: TranscriptSummary }> = new Map();

  constructor(options: TranscriptSummariesOptions) {
    this.#options = options;
  }

  /** Takes a snapshot of the session. The transcript is read only if any process changed it since the last snapshot. */
  snapshot(row: SessionRow): SessionSnapshot {
    const seen = this.#seenNow(row);
    const summary = this.#summaryOf(row, seen);
    const { head, messageCount, updatedAtMs, windowAt } = summary;
    const folded = this.#fold(row, summary);
    // An empty fingerprint keeps the index from storing a snapshot that lacks undecodable patches.
    const known = folded.entry instanceof UndecodableChange ? "" : seen;
    const digest = { head, messageCount, updatedAtMs, windowAt };
    return { row, folded, digest, seen: known, entryAtMs: () => entryAtMsOf(row, summary) };
  }

  unread(row: SessionRow): SessionSnapshot {
    const { head, messageCount, updatedAtMs } = withoutTranscript(row);
    return { row, folded: row, digest: { head, messageCount, updatedAtMs }, seen: "" };
  }

  /** Returns the row with the last summary of its transcript, which may be outdated. */
  known(row: SessionRow): SessionRow {
    const open = this.#options.opened(row.sessionId);
    if (open !== null) return this.fold(row, open);
    const kept = this.#kept.get(row.sessionId);
    return kept === undefined ? row : this.#fold(row, kept.summary);
  }

  fold(row: SessionRow, transcript: Transcript): SessionRow {
    return this.#fold(row, summaryOf(transcript));
  }

  /** Call it before an open transcript is closed, with the file's facts of its last read or write. */
  remember(row: SessionRow, transcript: Transcript, facts: FileFacts | null): void {
    this.#kept.set(row.sessionId, { seen: fingerprintOf(facts, row), summary: summaryOf(transcript) });
  }

  /**
   * Returns the index's state of the transcript, so that a read can start there; null when the index lacks part of it.
   */
  baseOf(row: SessionRow, seen: string): Omit<TranscriptBase, "endBytes"> | null {
    const found = this.#indexed(row, seen);
    if (found?.indexed === undefined || found.indexed.folded.revision !== row.revision) return null;
    const { head, messageCount, updatedAtMs, windowAt } = found;
    return { head, messageCount, updatedAtMs, windowAt, revision: row.revision };
  }

  /** Drops summaries from the index, so that their transcripts are read again. */
  forgetIndexed(): void {
    for (const [sessionId, { summary }] of this.#kept) if (summary.indexed !== undefined) this.#kept.delete(sessionId);
  }

  forget(sessionId: string): void {
    this.#kept.delete(sessionId);
    this.#options.redo.forget(sessionId);
  }

  /** Tests whether `snapshot` can answer without reading the transcript. */
  isKnown(row: SessionRow): boolean {
    return this.#knownSummary(row, this.#seenNow(row)) !== null;
  }

  #seenNow(row: SessionRow): string {
    const { files, folder } = this.#options;
    return fingerprintOf(files.facts(folder.session(row.fileName)), row);
  }

  #summaryOf(row: SessionRow, seen: string): TranscriptSummary {
    const known = this.#knownSummary(row, seen);
    if (known !== null) return known;
    const transcript = this.#options.open(row);
    return transcript === null ? withoutTranscript(row) : this.#keep(row, seen, summaryOf(transcript));
  }

  #knownSummary(row: SessionRow, seen: string): TranscriptSummary | null {
    if (seen === "") return null;
    const kept = this.#kept.get(row.sessionId);
    if (kept?.seen === seen && isFor(kept.summary, row)) return kept.summary;
    const indexed = this.#indexed(row, seen);
    return indexed === null ? null : this.#keep(row, seen, indexed);
  }

  #keep(row: SessionRow, seen: string, summary: TranscriptSummary): TranscriptSummary {
    this.#kept.set(row.sessionId, { seen, summary });
    return summary;
  }

  #indexed(row: SessionRow, seen: string): TranscriptSummary | null {
    const { index, isIndexed } = this.#options;
    if (!isIndexed(row)) return null;
    const found = index.session(row.sessionId);
    if (found === undefined || found === null || found.seen !== seen || found.row.revision !== row.revision)
      return null;
    return { ...found.digest, patches: [], indexed: { row, folded: found.folded } };
  }

  #fold(row: SessionRow, summary: TranscriptSummary): SessionRow {
    const { redo } = this.#options;
    const { indexed } = summary;
    return indexed?.row === row ? redo.note(row, indexed.folded) : redo.fold(row, summary);
  }
}

/**
 * Returns the fingerprint of a transcript; empty when it does not exist. A head that is saved in the log is part of it,
 * because it changes the result of a read.
 */
export function fingerprintOf(facts: FileFacts | null, row?: SessionRow): string {
  if (facts === null) return "";
  const place = `${facts.identity}:${facts.sizeBytes}:${facts.modifiedNs};`;
  return row?.savedHead === undefined ? place : `${place}${JSON.stringify(row.savedHead)}`;
}

/** A summary from the index is folded for one row. It fits a later row only if that row includes all of its patches. */
function isFor({ indexed }: TranscriptSummary, row: SessionRow): boolean {
  return indexed === undefined || indexed.row === row || row.revision >= indexed.folded.revision;
}

/** Patches that the row includes are not newer than the row. The index keeps no patches, only what they made. */
function entryAtMsOf(row: SessionRow, { patches, indexed }: TranscriptSummary): number {
  if (indexed !== undefined) return indexed.folded.updatedAtMs;
  return patches.reduce(
    (newestMs, { revision, atMs }) => (revision > row.revision ? Math.max(newestMs, atMs) : newestMs),
    row.updatedAtMs,
  );
}

function summaryOf({ head, messageCount, updatedAtMs, patches, windowAt }: Transcript): TranscriptSummary {
  return { head, messageCount, updatedAtMs, patches, windowAt };
}

function withoutTranscript(row: SessionRow): TranscriptSummary {
  return { head: row.savedHead ?? emptyHead(row.sessionId), messageCount: 0, updatedAtMs: 0, patches: [] };
}

function emptyHead(sessionId: string): SessionHead {
  return { sessionId, lastSeq: 0, headId: null, windowSeq: null, fence: 0, turn: null };
}
