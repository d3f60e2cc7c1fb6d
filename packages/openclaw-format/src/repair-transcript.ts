import { ThroughlineError } from "@throughline/core";
import type { SessionRecord } from "@throughline/core";
import {
  assertKnownOptions,
  createRecentBranch,
  optionKinds,
  type OptionTable,
  type RecentBranch,
  serializeRecord,
} from "@throughline/core/internal";
import { decodeLine, encodeLine } from "./decode-line.ts";
import { numberedLines } from "./numbered-lines.ts";
import type { TranscriptHeader } from "./transcript-header.ts";
import { createTranscriptReader } from "./transcript-reader.ts";
import type { TranscriptLine } from "./transcript-reader.ts";

/** Holds the options of `repairTranscript`. */
export interface RepairTranscriptOptions {
  /** States the session id for a file whose header states none. @default "unknown" */
  readonly sessionId?: string;
  /** Ends the repair between two chunks with ABORTED. */
  readonly signal?: AbortSignal;
}

/** A clean copy may hold lines of this version beside lines of version 3. */
const newestVersion = 4;

const lineFeed = new Uint8Array([0x0a]);

const repairTable: OptionTable<RepairTranscriptOptions> = { sessionId: optionKinds.text, signal: optionKinds.signal };

/**
 * Yields the lines of a clean copy in version 3: a valid header first, then every readable record after its parent. A
 * valid line is copied byte for byte. Unreadable lines are left out, so the original must be kept.
 * @throws {ThroughlineError} RECORD_FROM_NEWER_VERSION when the header says that a newer program wrote the file,
 * because a line that looks wrong may be valid there
 */
export async function* repairTranscript(
  chunks: AsyncIterable<Uint8Array>,
  options: RepairTranscriptOptions = {},
): AsyncGenerator<Uint8Array, void, void> {
  assertKnownOptions<RepairTranscriptOptions>("repairTranscript", options, repairTable);
  const reader = createTranscriptReader();
  const written = new Set<string>();
  const recent = createRecentBranch();
  let lastMainId: string | null = null;
  for await (const { bytes: read, place } of numberedLines(chunks, options.signal)) {
    const line = reader.push(decodeLine(read), place);
    if (line.unparsed !== null) continue;
    if (written.size === 0) {
      refuseNewer(reader.header);
      yield headerBytes(line, reader.header, options.sessionId ?? "unknown");
      yield lineFeed;
      written.add("");
    }
    // A second header carries nothing that readers use, and some readers stop at it.
    if (line.isHeader || line.record.type === "session") continue;
    const record = linkedRecord(line, written, lastMainId, recent);
    const bytes = encodeLine(record === line.record && line.isSourceCanonical ? line.source : serializeRecord(record));
    yield bytes;
    yield lineFeed;
    written.add(line.record.id);
    recent.add(record, bytes.length);
    if (!line.side) lastMainId = line.record.id;
  }
}

function refuseNewer(header: TranscriptHeader | null): void {
  if (header === null || header.version <= newestVersion) return;
  throw new ThroughlineError(
    "RECORD_FROM_NEWER_VERSION",
    `The header says version ${header.version}; no clean copy is made of what may be clean.`,
    { details: { version: header.version } },
  );
}

function headerBytes(line: TranscriptLine, header: TranscriptHeader | null, fallbackId: string): Uint8Array {
  const isGood = line.isHeader && header?.sessionId != null && header.version >= 3 && typeof line.source === "string";
  if (isGood) return encodeLine(line.source);
  const { type: _type, version: _version, id: _id, ...rest } = header?.fields ?? {};
  const timestamp = header?.timestamp ?? line.record.timestamp;
  const id = header?.sessionId ?? fallbackId;
  return encodeLine(serializeRecord({ type: "session", version: 3, id, ...rest, timestamp, cwd: header?.cwd ?? "" }));
}

/** A record's parent and first kept record must come before the record. Other references are replaced. */
function linkedRecord(
  { record }: TranscriptLine,
  written: ReadonlySet<string>,
  lastMainId: string | null,
  recent: RecentBranch,
): SessionRecord {
  // A parent that does not come earlier is missing, is the record itself, or is part of a cycle.
  const isLinked = record.parentId === null || written.has(record.parentId);
  const kept = record["firstKeptEntryId"];
  const isKept = record.type !== "compaction" || typeof kept !== "string" || kept === record.id || written.has(kept);
  if (isLinked && isKept) return record;
  const linked: SessionRecord = isLinked ? record : { ...record, parentId: lastMainId };
  if (isKept) return linked;
  // The fallback matches the context without the repair. When no record comes before it, the compaction keeps none,
  // which its own id states.
  return { ...linked, firstKeptEntryId: recent.tailStart(linked.parentId) ?? linked.parentId ?? linked.id };
}
