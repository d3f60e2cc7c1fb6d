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
import { createTranscriptReader, decodeLine } from "@throughline/openclaw-format";
import { encodeLine } from "@throughline/openclaw-format/internal";
import type { TranscriptHeader } from "@throughline/openclaw-format/internal";
import type { TranscriptLine } from "@throughline/openclaw-format";
import { placeOf, splitLines } from "./inspect-transcript.ts";

/** Options of `repairTranscript`. */
export interface RepairTranscriptOptions {
  /** The id to give a file that names none. @default "unknown" */
  readonly sessionId?: string;
  /** Ends the repair between two chunks; the generator throws the reason of the signal. */
  readonly signal?: AbortSignal;
}

/** Lines of this version are what a clean copy may hold beside those of version 3. */
const newestVersion = 4;

const lineFeed = new Uint8Array([0x0a]);

const repairTable: OptionTable<RepairTranscriptOptions> = { sessionId: optionKinds.text, signal: optionKinds.signal };

/**
 * The lines of a clean copy, in version 3: a good header first, then every record that can be read, each after its
 * parent. A line that is in order is given as it came, byte for byte; what cannot be read is left out, which is why the
 * original must be kept.
 * @throws {ThroughlineError} RECORD_FROM_NEWER_VERSION when the header says that a newer program wrote the file: what
 * looks wrong may be right there
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
  for await (const split of splitLines(chunks, options.signal)) {
    const line = reader.push(decodeLine(split.bytes), placeOf(split));
    if (line.unparsed !== null) continue;
    if (written.size === 0) {
      refuseNewer(reader.header);
      yield headerBytes(line, reader.header, options.sessionId ?? "unknown");
      yield lineFeed;
      written.add("");
    }
    // A second header says nothing that a reader would look at, and some readers stop at it.
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

/** The record with a parent and a first kept record that come before it. */
function linkedRecord(
  { record }: TranscriptLine,
  written: ReadonlySet<string>,
  lastMainId: string | null,
  recent: RecentBranch,
): SessionRecord {
  // A parent that does not come first is missing, the record itself, or part of a ring.
  const isLinked = record.parentId === null || written.has(record.parentId);
  const kept = record["firstKeptEntryId"];
  const isKept = record.type !== "compaction" || typeof kept !== "string" || kept === record.id || written.has(kept);
  if (isLinked && isKept) return record;
  const linked: SessionRecord = isLinked ? record : { ...record, parentId: lastMainId };
  if (isKept) return linked;
  // What a context holds without the repair, too; without anything before it, nothing, which its own id says.
  return { ...linked, firstKeptEntryId: recent.tailStart(linked.parentId) ?? linked.parentId ?? linked.id };
}
