import { linkRecords, prepareDrafts, quote, refused, throughlineDraft } from "@throughline/core/internal";
import { strangeTranscript } from "@throughline/openclaw-format/internal";
import { copyBytes } from "./file-work.ts";
import type { OpenTranscript } from "./open-transcript.ts";
import { ownHeaderLine } from "./own-header.ts";
import type { SessionRow } from "./session-row.ts";
import type { StoreContext } from "./store-context.ts";
import { encodeStoredLine, type EncodedLine } from "./stored-line.ts";
import { assertIsTorn } from "./torn-tail.ts";
import type { Transcript } from "./transcript.ts";

/** Returns the header that must precede the first line of an empty file, or an empty text. */
export function headerBefore({ workingDirectoryOf }: StoreContext, { endBytes }: Transcript, row: SessionRow): string {
  return endBytes === 0 ? `${ownHeaderLine(row, workingDirectoryOf(row))}\n` : "";
}

interface OpenTranscriptSource {
  open(row: SessionRow, isWhole: boolean): OpenTranscript | null;
  withStaged(held: OpenTranscript): OpenTranscript;
}

/** Limits the placeholders for lost records at the end of a transcript. A larger loss needs a person's decision. */
const maxLost = 10_000;

/**
 * Creates one placeholder record for each acknowledged record that is lost at the end.
 * @throws {ThroughlineError} STORE_CORRUPT for more than 10,000
 */
function lostLines({ codec, ids, clock, limits }: StoreContext, held: OpenTranscript): readonly EncodedLine[] {
  const { transcript, path, owner } = held;
  const { lostCount, head } = transcript;
  if (lostCount > maxLost)
    throw refused("STORE_CORRUPT", `The last ${lostCount} acknowledged records of ${quote(path)} are missing.`, {
      path,
      lostCount,
    });
  const draft = throughlineDraft("unparsed", { reason: "lost" });
  const drafts = Array.from({ length: lostCount }, () => draft);
  const at = clock.nowMs();
  return linkRecords(prepareDrafts(drafts, { ids, clock, limits }), head.headId).map((item, index) =>
    encodeStoredLine(item, { seq: head.lastSeq + index + 1, at }, codec, owner),
  );
}

export interface LostEnd {
  readonly fromBytes: number;
  readonly text: string;
}

/**
 * Returns the placeholders for a copy, where no index proves which records were acknowledged; null when nothing is
 * lost.
 */
export function lostEnd(context: StoreContext, held: OpenTranscript): LostEnd | null {
  const { transcript } = held;
  if ((transcript.lostCount <= 0 && !transcript.endsInHalf) || endsInReturns(held)) return null;
  const before = transcript.isOpenEnded ? "\n" : headerBefore(context, transcript, held.row);
  const lines = lostLines(context, held).map(({ line }) => `${line}\n`);
  return { fromBytes: transcript.endBytes, text: before + lines.join("") };
}

/**
 * Writes the placeholders, so that no seq is reused and a rewrite keeps the rest of the append. Call it before any
 * other write, under the session's lock. Returns the session afterwards.
 * @throws {ThroughlineError} STORE_CORRUPT also for lines whose ends were made carriage returns: nothing is written
 * behind them
 */
export function replaceLost(context: StoreContext, agent: OpenTranscriptSource, held: OpenTranscript): OpenTranscript {
  if (held.transcript.endsInHalf)
    assertIsTorn(held.path, lastLine(held), held.transcript.startOf(held.transcript.head.lastSeq));
  if (held.transcript.lostCount <= 0) return held;
  const { transcript, file, path, owner } = agent.open(held.row, true) ?? held;
  const { headId } = transcript.head;
  file.repairTail(path, owner);
  const lines = lostLines(context, { ...held, transcript });
  transcript.lostCount = 0;
  file.stage(owner, headerBefore(context, transcript, held.row), lines);
  // A head that was saved behind a lost record may name that record.
  if (transcript.head.headId !== null && !transcript.seqById.has(transcript.head.headId))
    transcript.head = { ...transcript.head, headId };
  file.commit(path);
  return agent.withStaged(held);
}

function endsInReturns(held: OpenTranscript): boolean {
  return held.transcript.endsInHalf && strangeTranscript(lastLine(held))?.endsInReturns === true;
}

function lastLine({ transcript, file, path }: OpenTranscript): Uint8Array {
  const from = transcript.startOf(transcript.head.lastSeq);
  return file.readBytes(path, from, Math.min(transcript.endBytes, from + copyBytes));
}
