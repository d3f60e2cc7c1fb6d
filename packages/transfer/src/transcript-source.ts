import { createHash } from "node:crypto";
import type { Finding } from "@throughline/core";
import type { RecordSource } from "@throughline/core/internal";
import { isSessionId } from "@throughline/core/internal";
import {
  agentOfSessionsDir,
  classifySessionFile,
  detectLineFormat,
  strangeTranscript,
  type TranscriptFormat,
  type TranscriptHeader,
} from "@throughline/openclaw-format/internal";
import { createTranscriptReader, decodeLine } from "@throughline/openclaw-format";
import type { FileLayout, UnitPlace } from "@throughline/foreign-formats/internal";
import type { ForeignFormat } from "@throughline/foreign-formats";
import type { SourceFormat } from "./import-types.ts";
import { openSource, type SourceFile } from "./node/source-files.ts";
import type { OwnEntry } from "./own-entries.ts";
import { createSourceReader } from "./source-reader.ts";
import { createUnitSplitter, type SourceUnit } from "./source-units.ts";

/** A transcript that was found, with all that its place says of it. */
export interface TranscriptSource {
  readonly kind: "transcript";
  /** Absolute; of a session in a database, the database's with `#` and the session's id. */
  readonly path: string;
  /** Opens the bytes of its lines; null when there are none, because the index names a file that is not there. */
  readonly open: (() => Promise<SourceFile>) | null;
  readonly format: SourceFormat;
  /** Null where the lines are read while the source is found: nothing else may be done meanwhile. */
  readonly sizeBytes: number | null;
  /** Null when neither the place nor the key says. */
  readonly agentId: string | null;
  /** As the index states it; null: the header's, or one made of the id. */
  readonly key: string | null;
  readonly sessionId: string;
  /** Whether lines or rows of another program state that id. @default false */
  readonly statesId?: boolean;
  /** The id the file name gives, where the name decides. */
  readonly nameSessionId: string | null;
  readonly header: TranscriptHeader | null;
  /** The index's entry. */
  readonly entry: Readonly<Record<string, unknown>> | null;
  /** Of a store of ours. */
  readonly own: OwnEntry | null;
  /** The format of another program's lines. Absent: lines of ours, of OpenClaw, pi or the tutorials. */
  readonly foreign?: ForeignFormat;
  /** Titles from other files of its folder, by the id of a line of the session that they are of. Absent: none. */
  readonly strayTitles?: ReadonlyMap<string, string>;
  /** What the file of another program is cut into. Absent: lines. */
  readonly layout?: FileLayout;
  /** The session that spawned this one, by its id in the source. Absent: none did. */
  readonly spawnedBy?: string;
  readonly isArchived: boolean;
  /** Whether the transcript that it was archived from still exists: then it is a session of its own. @default false */
  readonly isCopy?: boolean;
  readonly archivedAt: string | null;
  readonly findings: readonly Finding[];
}

/** A session of another program: neither its place nor its lines say anything of a store of ours. */
export function foreignTranscript({
  foreign,
  spawnedBy,
  findings = [],
  ...facts
}: Pick<
  TranscriptSource,
  "path" | "sessionId" | "statesId" | "sizeBytes" | "entry" | "open" | "layout" | "strayTitles"
> & {
  readonly foreign: ForeignFormat;
  readonly spawnedBy: string | null;
  readonly findings?: readonly Finding[];
}): TranscriptSource {
  return {
    kind: "transcript",
    format: foreign.name,
    foreign,
    agentId: null,
    key: null,
    nameSessionId: null,
    header: null,
    own: null,
    isArchived: false,
    archivedAt: null,
    findings,
    ...(spawnedBy === null ? {} : { spawnedBy }),
    ...facts,
  };
}

/** Whether a session's id is in its transcript, and not only in the name of the file or in an index. */
export function statesItsId({ sessionId, statesId = false, header }: TranscriptSource): boolean {
  return statesId || header?.sessionId === sessionId;
}

/** What a file says of itself at its beginning. */
export interface Peek {
  readonly format: TranscriptFormat;
  readonly header: TranscriptHeader | null;
  readonly sizeBytes: number;
}

const peekBytes = 256 * 1024;
const firstPeekBytes = 4 * 1024;

/** Looks at the first lines of a file. @throws {ThroughlineError} FILE_NOT_FOUND, FILE_UNREADABLE, PATH_UNSAFE */
export async function peekTranscript(path: string): Promise<Peek> {
  const source = await openSource(path);
  try {
    const lines: RecordSource[] = [];
    const reader = createTranscriptReader();
    for await (const { bytes } of firstUnits(source)) {
      const line = decodeLine(bytes);
      lines.push(line);
      // The first line that can be read decides.
      if (reader.push(line, { line: lines.length, byteOffset: 0 }).unparsed === null) break;
    }
    return { format: detectLineFormat(lines), header: reader.header, sizeBytes: source.sizeBytes };
  } finally {
    await source.close();
  }
}

/** The first time that a transcript states, in milliseconds since 1970; null when its first lines state none. */
export async function firstTimeMs(source: TranscriptSource, file: SourceFile): Promise<number | null> {
  const reader = createSourceReader(source);
  let count = 0;
  for await (const unit of firstUnits(file, source.layout)) {
    const { tsMs } = reader.push(decodeLine(unit.bytes), placeOf(unit, ++count));
    // Lines that state none are of 1970.
    if (tsMs !== null && tsMs > 0) return tsMs;
  }
  return null;
}

/** What the file is when it is a transcript that cannot be read. */
export async function strangeBeginning(path: string): Promise<ReturnType<typeof strangeTranscript>> {
  const source = await openSource(path);
  try {
    const chunks = source.chunks({ fromBytes: 0, toBytes: Math.min(source.sizeBytes, peekBytes) });
    return strangeTranscript(Buffer.concat(await Array.fromAsync(chunks, (chunk) => Buffer.from(chunk))));
  } finally {
    await source.close();
  }
}

/** Where a unit stands, for a reader. */
export function placeOf({ byteOffset, sizeBytes, isTerminated, part }: SourceUnit, line: number): UnitPlace {
  return { line, byteOffset, sizeBytes, isTerminated, ...(part === undefined ? {} : { part }) };
}

async function* firstUnits(source: SourceFile, layout?: FileLayout): AsyncGenerator<SourceUnit> {
  const splitter = createUnitSplitter(peekBytes, layout);
  // Most headers are short, and there may be very many of them.
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

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/**
 * The id of a session that no index names. In a sessions directory the file name decides; elsewhere a name counts when
 * it is one that pi or OpenClaw gives, else the header, else the name.
 */
export function sessionIdOf(
  path: string,
  header: TranscriptHeader | null,
  nameDecides: boolean,
): { readonly sessionId: string; readonly nameSessionId: string | null } {
  const name = path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1);
  const named = classifySessionFile(name);
  const isGivenName = named.sessionId !== null && (nameDecides || named.isPiName || uuidPattern.test(named.sessionId));
  if (isGivenName) return { sessionId: named.sessionId ?? "", nameSessionId: named.sessionId };
  const stated = header?.sessionId ?? null;
  if (stated !== null && isSessionId(stated)) return { sessionId: stated, nameSessionId: null };
  return { sessionId: named.sessionId ?? fallbackId(path), nameSessionId: null };
}

/**
 * The id in the name of a file, by the rules of an import. Null if the name has none, so that a header with another id
 * is no contradiction.
 * @throws {ThroughlineError} FILE_NOT_FOUND, FILE_UNREADABLE, PATH_UNSAFE
 */
export async function nameSessionId(path: string): Promise<string | null> {
  const { format, header } = await peekTranscript(path);
  const isOpenclaw = format === "openclaw" || format === "pi";
  return sessionIdOf(path, header, isOpenclaw && agentOfSessionsDir(path) !== null).nameSessionId;
}

/** An id that can be used, made of one that cannot: always the same one. */
export function usableSessionId(id: string, path: string): string {
  return isSessionId(id) ? id : fallbackId(path);
}

function fallbackId(path: string): string {
  return `import-${createHash("sha256").update(path).digest("hex").slice(0, 16)}`;
}
