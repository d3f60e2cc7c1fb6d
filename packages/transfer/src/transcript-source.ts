import { createHash } from "node:crypto";
import type { Finding } from "@throughline/core";
import { type RecordSource, isSessionId } from "@throughline/core/internal";
import {
  agentOfSessionsDir,
  classifySessionFile,
  detectLineFormat,
  strangeTranscript,
  type TranscriptFormat,
  type TranscriptHeader,
} from "@throughline/openclaw-format/internal";
import { createTranscriptReader, decodeLine } from "@throughline/openclaw-format";
import { type FileLayout, isUuid, type UnitPlace } from "@throughline/foreign-formats/internal";
import type { ForeignFormat } from "@throughline/foreign-formats";
import type { SourceFormat } from "./import-types.ts";
import { openSource, type SourceFile } from "./node/source-files.ts";
import type { OwnEntry } from "./own-entries.ts";
import { createSourceReader } from "./source-reader.ts";
import { createUnitSplitter, type SourceUnit } from "./source-units.ts";

export interface TranscriptSource {
  readonly kind: "transcript";
  /** The path is absolute; a session in a database adds `#` and the session's id. */
  readonly path: string;
  /** Opens the lines; null when the index names a file that does not exist. */
  readonly open: (() => Promise<SourceFile>) | null;
  readonly format: SourceFormat;
  /** Null when lines are read during the search; the source is then imported alone. */
  readonly sizeBytes: number | null;
  /** Null when neither the location nor the key names an agent. */
  readonly agentId: string | null;
  /** Holds the index's key; null to use the header's key or one derived from the id. */
  readonly key: string | null;
  readonly sessionId: string;
  /** True if lines or rows of another program state the id. @default false */
  readonly statesId?: boolean;
  /** True if a program may give the session another id later, so that its path identifies it. @default false */
  readonly isPlaced?: boolean;
  /** Holds the id from the file name if the name decides. */
  readonly nameSessionId: string | null;
  readonly header: TranscriptHeader | null;
  readonly entry: Readonly<Record<string, unknown>> | null;
  /** Set for a session of a Throughline store. */
  readonly own: OwnEntry | null;
  /** Sets the format of another program's lines. Absent for lines of Throughline, OpenClaw, pi or the tutorials. */
  readonly foreign?: ForeignFormat;
  /** Maps ids of the session's lines to titles from other files of its folder. Absent for none. */
  readonly strayTitles?: ReadonlyMap<string, string>;
  /** Describes the items of another program's file. Absent for lines. */
  readonly layout?: FileLayout;
  /** Holds the source id of the session that spawned this one. Absent for none. */
  readonly spawnedBy?: string;
  readonly isArchived: boolean;
  /**
   * True if the transcript that it was archived from still exists; the archive is then a separate session. @default
   * false
   */
  readonly isCopy?: boolean;
  readonly archivedAt: string | null;
  readonly findings: readonly Finding[];
}

type NeededFacts = "path" | "format" | "sizeBytes" | "sessionId" | "open";

/** Builds a source from what is known of it; the other facts are those of a lone file. */
export function transcriptSource(
  facts: Pick<TranscriptSource, NeededFacts> & Partial<Omit<TranscriptSource, "kind" | NeededFacts>>,
): TranscriptSource {
  return {
    kind: "transcript",
    agentId: null,
    key: null,
    nameSessionId: null,
    header: null,
    entry: null,
    own: null,
    isArchived: false,
    archivedAt: null,
    findings: [],
    ...facts,
  };
}

export interface Peek {
  readonly format: TranscriptFormat;
  readonly header: TranscriptHeader | null;
  readonly sizeBytes: number;
}

const peekBytes = 256 * 1024;
const firstPeekBytes = 4 * 1024;

/** @throws {ThroughlineError} FILE_NOT_FOUND, FILE_UNREADABLE, PATH_UNSAFE */
export async function peekTranscript(path: string): Promise<Peek> {
  const source = await openSource(path);
  try {
    const lines: RecordSource[] = [];
    const reader = createTranscriptReader();
    for await (const { bytes } of firstUnits(source)) {
      const line = decodeLine(bytes);
      lines.push(line);
      // The first readable line decides.
      if (reader.push(line, { line: lines.length, byteOffset: 0 }).unparsed === null) break;
    }
    return { format: detectLineFormat(lines), header: reader.header, sizeBytes: source.sizeBytes };
  } finally {
    await source.close();
  }
}

/** Returns milliseconds since 1970; null when the first lines state no time. */
export async function firstTimeMs(source: TranscriptSource, file: SourceFile): Promise<number | null> {
  const reader = createSourceReader(source);
  let count = 0;
  for await (const unit of firstUnits(file, source.layout)) {
    const { tsMs } = reader.push(decodeLine(unit.bytes), placeOf(unit, ++count));
    // Lines without a time are dated 1970.
    if (tsMs !== null && tsMs > 0) return tsMs;
  }
  return null;
}

/** Recognizes known kinds of unreadable transcripts, so that the error can name the cause. */
export async function strangeBeginning(path: string): Promise<ReturnType<typeof strangeTranscript>> {
  const source = await openSource(path);
  try {
    const chunks = source.chunks({ fromBytes: 0, toBytes: Math.min(source.sizeBytes, peekBytes) });
    return strangeTranscript(Buffer.concat(await Array.fromAsync(chunks, (chunk) => Buffer.from(chunk))));
  } finally {
    await source.close();
  }
}

export function placeOf({ byteOffset, sizeBytes, isTerminated, part }: SourceUnit, line: number): UnitPlace {
  return { line, byteOffset, sizeBytes, isTerminated, ...(part === undefined ? {} : { part }) };
}

async function* firstUnits(source: SourceFile, layout?: FileLayout): AsyncGenerator<SourceUnit> {
  const splitter = createUnitSplitter(peekBytes, layout);
  // Most headers are short and there may be many files, so a small part is read first.
  for (const [fromBytes, toBytes] of [
    [0, firstPeekBytes],
    [firstPeekBytes, peekBytes],
  ] as const) {
    if (fromBytes >= source.sizeBytes) break;
    for await (const chunk of source.chunks({ fromBytes, toBytes: Math.min(source.sizeBytes, toBytes) })) {
      yield* splitter.push(chunk);
    }
  }
  if (source.sizeBytes <= peekBytes) yield* splitter.end();
}

/**
 * Finds the id of a session that no index names. In a sessions directory the file name decides. Elsewhere the order is:
 * a name in pi's or OpenClaw's form, the header, any other name.
 */
export function sessionIdOf(
  path: string,
  header: TranscriptHeader | null,
  nameDecides: boolean,
): { readonly sessionId: string; readonly nameSessionId: string | null } {
  const name = path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1);
  const named = classifySessionFile(name);
  const isGivenName = named.sessionId !== null && (nameDecides || named.isPiName || isUuid(named.sessionId));
  if (isGivenName) return { sessionId: named.sessionId ?? "", nameSessionId: named.sessionId };
  const stated = header?.sessionId ?? null;
  if (stated !== null && isSessionId(stated)) return { sessionId: stated, nameSessionId: null };
  return { sessionId: named.sessionId ?? fallbackId(path), nameSessionId: null };
}

/**
 * Returns the id in a file's name by the rules of an import. Null if the name has none, so that a header with another
 * id is no contradiction.
 * @throws {ThroughlineError} FILE_NOT_FOUND, FILE_UNREADABLE, PATH_UNSAFE
 */
export async function nameSessionId(path: string): Promise<string | null> {
  const { format, header } = await peekTranscript(path);
  const isOpenclaw = format === "openclaw" || format === "pi";
  return sessionIdOf(path, header, isOpenclaw && agentOfSessionsDir(path) !== null).nameSessionId;
}

/** Derives a usable id from an unusable one; the result is the same in every run. */
export function usableSessionId(id: string, path: string): string {
  return isSessionId(id) ? id : fallbackId(path);
}

function fallbackId(path: string): string {
  return `import-${createHash("sha256").update(path).digest("hex").slice(0, 16)}`;
}
