import { createHash } from "node:crypto";
import { createFinding, quote, shellWord } from "@throughline/core/internal";
import { type Finding, type SessionState, type SessionStore, ThroughlineError } from "@throughline/core";
import { decodeLine } from "@throughline/openclaw-format";
import { importedRecords, type ImportReceipt } from "./import-receipt.ts";
import type { SourceFile } from "./node/source-files.ts";
import { createSourceReader } from "./source-reader.ts";
import { createUnitSplitter } from "./source-units.ts";
import { placeOf, type TranscriptSource } from "./transcript-source.ts";

interface ImportedPart {
  readonly store: SessionStore;
  readonly source: TranscriptSource;
  readonly file: SourceFile | null;
  readonly state: SessionState | null;
  readonly receipt: ImportReceipt;
}

interface LostTail extends ImportedPart {
  readonly file: SourceFile;
  readonly state: SessionState;
}

/** Counts the imported records that the session no longer holds, because another process truncated its transcript. */
export function lostRecords(state: SessionState, receipt: ImportReceipt): number {
  return Math.max(0, importedRecords(receipt) - state.head.lastSeq);
}

/** Returns the receipt of the imported part that the session still holds; null when no record is missing. */
export async function heldPart(
  part: ImportedPart,
): Promise<{ readonly receipt: ImportReceipt; readonly finding: Finding } | null> {
  const { source, file, state, receipt } = part;
  const lost = state === null || file === null || source.own !== null ? 0 : lostRecords(state, receipt);
  if (lost === 0 || state === null || file === null) return null;
  const message = `${lost} imported records were no longer in the session; they are imported again.`;
  const place = { path: source.path, key: state.ref.key, repaired: true };
  return {
    receipt: await receiptOfHeldPart({ ...part, file, state }),
    finding: createFinding("RECORD_MISSING", message, place),
  };
}

/**
 * Builds the receipt of the lines whose records the session still holds, so that an import resumes there. The entry
 * with the old receipt may outlive the end of the transcript.
 * @throws {ThroughlineError} STORE_CORRUPT when the remaining records do not match lines of the source
 */
async function receiptOfHeldPart(lost: LostTail): Promise<ImportReceipt> {
  const { store, source, file, state, receipt } = lost;
  const { recordBytes: maxLineBytes } = store.capabilities.limits;
  const noteCount = receipt.notes?.count ?? 0;
  const { lastSeq } = state.head;
  const wanted = lastSeq === 0 ? 0 : lastSeq - noteCount;
  const isCountable = wanted === 0 ? lastSeq === 0 : (receipt.notes?.fromSeq ?? 0) + noteCount <= lastSeq;
  if (state.archived || receipt.continued !== undefined || wanted < 0 || !isCountable) throw cannotResume(lost);
  const { notes: _lost, ...fields } = receipt;
  const reader = createSourceReader(source, { maxLineBytes });
  const splitter = createUnitSplitter(maxLineBytes, source.layout);
  const hash = createHash("sha256");
  let place = { sizeBytes: 0, lineCount: 0, recordCount: 0, derivedCount: 0 };
  let chunkStart = 0;
  for await (const chunk of wanted === 0 ? [] : file.chunks({ toBytes: receipt.sizeBytes })) {
    let hashedTo = 0;
    for (const line of splitter.push(chunk)) {
      hash.update(chunk.subarray(hashedTo, line.endBytes - chunkStart));
      hashedTo = line.endBytes - chunkStart;
      const { envelope, derived = [] } = reader.push(decodeLine(line.bytes), placeOf(line, place.lineCount + 1));
      const isRecord = envelope?.seq !== 0 && line.sizeBytes <= maxLineBytes;
      place = {
        sizeBytes: line.endBytes,
        lineCount: place.lineCount + 1,
        recordCount: place.recordCount + (isRecord ? 1 : 0),
        derivedCount: place.derivedCount + derived.length,
      };
      const count = place.recordCount + place.derivedCount;
      if (count < wanted) continue;
      // A line of several records is imported whole or not at all.
      if (count > wanted) throw cannotResume(lost);
      return { ...receipt, ...place, sha256: hash.digest("hex"), endsWithLineFeed: true, headId: reader.headId };
    }
    hash.update(chunk.subarray(hashedTo));
    chunkStart += chunk.length;
  }
  if (wanted > 0) throw cannotResume(lost);
  return { ...fields, ...place, sha256: hash.digest("hex"), endsWithLineFeed: true, headId: null };
}

function cannotResume({ source, state, receipt }: LostTail): ThroughlineError {
  const [made, held] = [importedRecords(receipt), state.head.lastSeq];
  return new ThroughlineError(
    "STORE_CORRUPT",
    `The session ${quote(state.ref.key)} holds ${held} of the ${made} records that were imported from ${quote(source.path)}.`,
    {
      outcome: "not-applied",
      details: { path: source.path, ...state.ref, imported: made, held },
      remedy: `Import the source under another key: \`throughline import ${shellWord(source.path)} --key KEY\`. This session stays as it is.`,
    },
  );
}
