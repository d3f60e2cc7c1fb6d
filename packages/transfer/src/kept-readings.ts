import { createHash } from "node:crypto";
import type { SessionRef, SessionState } from "@throughline/core";
import { wentOn } from "./find-session.ts";
import { lostRecords } from "./held-part.ts";
import { receiptOf, type ImportReceipt } from "./import-receipt.ts";
import { fileFacts, type SourceFile } from "./node/source-files.ts";
import type { SourceReading } from "./read-source.ts";
import type { SearchLook } from "./search-look.ts";
import type { TranscriptSource } from "./transcript-source.ts";

/** Programs write few sessions at a time, and a reading of 100 MB holds megabytes. */
const mostKept = 8;
/** A smaller file is read from its start within milliseconds. */
const leastBytesKept = 256 * 1024;
const comparedBytes = 16 * 1024;
const lineFeed = 0x0a;

/** Describes a reading at its end, and the session that it wrote. */
interface EndedReading {
  readonly source: TranscriptSource;
  readonly ref: SessionRef;
  readonly sessionId: string;
  readonly receipt: ImportReceipt;
  readonly reading: SourceReading;
}

export interface KeptReading extends EndedReading {
  /** Holds the hash of the last bytes that were read. */
  readonly endSha256: string;
  /** States the facts of the file beside the session that names its title; null without one. */
  readonly companion: string | null;
}

/**
 * Keeps the readings that ended last, so that a file which grows is read from where it ended. They live as long as the
 * process: a reader of 100 MB knows megabytes of ids, which no entry of a session could hold.
 */
export class KeptReadings {
  readonly #kept = new Map<string, KeptReading>();
  readonly #leastBytes: number;

  /** @param leastBytes size in bytes below which a file is not kept */
  constructor(leastBytes: number = leastBytesKept) {
    this.#leastBytes = leastBytes;
  }

  /** Keeps a reading of whole lines. The end of any other file may change with its next bytes. */
  async keep(ended: EndedReading, file: SourceFile): Promise<void> {
    const { source, receipt } = ended;
    this.#kept.delete(source.path);
    const isWhole = receipt.sizeBytes === file.sizeBytes && receipt.endsWithLineFeed;
    if (!isWhole || file.sizeBytes < this.#leastBytes || !growsByLines(source)) return;
    const endSha256 = await endOf(file, receipt.sizeBytes);
    this.#kept.set(source.path, { ...ended, endSha256, companion: companionOf(source) });
    for (const path of this.#kept.keys()) {
      if (this.#kept.size <= mostKept) return;
      this.#kept.delete(path);
    }
  }

  /** Yields the readings whose files are larger now. They are no longer kept, because a reading may fail halfway. */
  *takeGrown(look: SearchLook): Generator<KeptReading> {
    for (const [path, kept] of this.#kept) {
      if (!look.hasGrown(path)) continue;
      this.#kept.delete(path);
      if (kept.companion === companionOf(kept.source)) yield kept;
    }
  }
}

/** True for a file of one session and nothing beside it that states more of it, except a companion file. */
function growsByLines({ path, layout, own, entry, foreign, isArchived, open }: TranscriptSource): boolean {
  const isOfLines = layout === undefined || layout.unit === "line";
  const isIndexed = own !== null || (entry !== null && foreign === undefined);
  return open !== null && isOfLines && !isIndexed && !isArchived && !path.includes("#");
}

function companionOf({ path, foreign }: TranscriptSource): string | null {
  const places = foreign?.companion?.path(path) ?? null;
  return places === null ? null : JSON.stringify([places].flat().map(fileFacts));
}

async function endOf(file: SourceFile, sizeBytes: number): Promise<string> {
  const hash = createHash("sha256");
  const range = { fromBytes: Math.max(0, sizeBytes - comparedBytes), toBytes: sizeBytes };
  for await (const chunk of file.chunks(range)) hash.update(chunk);
  return hash.digest("hex");
}

/** True if the session holds what the reading wrote, and nothing else moved its head. */
export function isAsLeft(state: SessionState, { sessionId, receipt }: KeptReading): boolean {
  const stored = receiptOf(state.entry);
  const isSameReceipt = stored?.sha256 === receipt.sha256 && stored.sizeBytes === receipt.sizeBytes;
  const isSession = state.sessionId === sessionId && state.archived !== true;
  return isSession && isSameReceipt && !wentOn(state, receipt) && lostRecords(state, receipt) === 0;
}

/** True if the file has whole lines behind the bytes that were read, whose last ones are as they were. */
export async function goesOnBehind(file: SourceFile, { receipt, endSha256 }: KeptReading): Promise<boolean> {
  const { sizeBytes } = file;
  if (sizeBytes <= receipt.sizeBytes || (await endOf(file, receipt.sizeBytes)) !== endSha256) return false;
  for await (const chunk of file.chunks({ fromBytes: sizeBytes - 1 })) return chunk.at(-1) === lineFeed;
  return false;
}
