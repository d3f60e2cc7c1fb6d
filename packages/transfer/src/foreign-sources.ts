import { ThroughlineError } from "@throughline/core";
import { shellWord } from "@throughline/core/internal";
import { createHeadSampler, type FileLayout, type FormatSample } from "@throughline/foreign-formats/internal";
import { detectForeignFormat, type ForeignFormat, foreignFormats } from "@throughline/foreign-formats";
import { decodeLine } from "@throughline/openclaw-format";
import { joinPath } from "@throughline/openclaw-format/internal";
import type { CompanionFiles } from "./companion-files.ts";
import type { FolderSurvey } from "./folder-names.ts";
import { guarded, skipped, type FoundSource, type OtherSource } from "./found-source.ts";
import { databaseFile } from "./database-file.ts";
import { openPart, partsOf } from "./file-parts.ts";
import { isDatabaseFile } from "./node/foreign-database.ts";
import { eachSourceName, openSource, type SourceFile } from "./node/source-files.ts";
import type { SearchLook } from "./search-look.ts";
import { treeFiles, treeSource } from "./tree-session.ts";
import { createUnitSplitter } from "./source-units.ts";
import { placeOf, transcriptSource, usableSessionId, type TranscriptSource } from "./transcript-source.ts";

export interface ForeignBeginning {
  readonly format: ForeignFormat;
  readonly layout: FileLayout;
  readonly sizeBytes: number;
  readonly sample: FormatSample;
}

/**
 * @param named format to read the file as, if it can be read so
 * @throws {ThroughlineError} FILE_NOT_FOUND, FILE_UNREADABLE, PATH_UNSAFE
 */
export async function foreignBeginning(path: string, named?: ForeignFormat): Promise<ForeignBeginning | null> {
  const file = await openSource(path);
  try {
    const sample = await sampleOf(file, path);
    const isNamed = named !== undefined && (named.canRead?.(sample) ?? named.detect(sample) !== null);
    const format = isNamed ? named : detectForeignFormat(sample);
    return format === null ? null : { format, layout: format.layout(sample), sizeBytes: file.sizeBytes, sample };
  } finally {
    await file.close();
  }
}

async function sampleOf(file: SourceFile, path: string): Promise<FormatSample> {
  const sampler = createHeadSampler();
  for await (const chunk of file.chunks()) if (!sampler.push(chunk)) return sampler.sample(path, false);
  return sampler.sample(path, true);
}

async function sampleOfPart(open: () => Promise<SourceFile>, path: string): Promise<FormatSample> {
  const file = await open();
  try {
    return await sampleOf(file, path);
  } finally {
    await file.close();
  }
}

/** Yields one session for the file, or one for each line or element. */
export async function* foreignSources(
  path: string,
  beginning: ForeignBeginning,
  companions: CompanionFiles,
): AsyncGenerator<TranscriptSource> {
  const { format, layout } = beginning;
  const place = format.tree?.placeOf(path) ?? null;
  if (format.tree !== undefined && place !== null) return yield await treeSource(format, format.tree, place);
  if (layout.sessions === null) {
    yield await foreignSource(path, beginning, companions, () => openSource(path));
    return;
  }
  for await (const part of partsOf(path, layout)) {
    const open = (): Promise<SourceFile> => openPart(path, part);
    const partPath = `${path}#${part.number}`;
    const sample = await sampleOfPart(open, partPath);
    const { sizeBytes } = part;
    yield await foreignSource(
      partPath,
      { format, layout: { ...layout, sessions: null }, sizeBytes, sample },
      companions,
      open,
    );
  }
}

async function foreignSource(
  path: string,
  { format, layout, sizeBytes, sample }: ForeignBeginning,
  companions: CompanionFiles,
  open: () => Promise<SourceFile>,
): Promise<TranscriptSource> {
  if (layout.unit !== "line" && sizeBytes > mostDocumentBytes) throw tooLarge(path, format, sizeBytes);
  const reader = format.createReader({ path });
  const splitter = createUnitSplitter(sample.head.length, layout);
  const units = [...splitter.push(sample.head), ...(layout.unit !== "line" && sample.isWhole ? splitter.end() : [])];
  for (const [index, unit] of units.entries()) reader.push(decodeLine(unit.bytes), placeOf(unit, index + 1));
  const { sessionId, spawnedBy } = reader;
  const entry = await companions.entryOf(format, path, sessionId ?? "");
  const findings = await companions.findingsOf(format, path, sessionId ?? "");
  const strayTitles = await companions.strayTitlesFor(format, path);
  return transcriptSource({
    format: format.name,
    foreign: format,
    strayTitles,
    findings,
    path,
    layout,
    sizeBytes,
    sessionId: usableSessionId(sessionId ?? nameOf(path), path),
    statesId: sessionId !== null,
    entry,
    ...(spawnedBy === null ? {} : { spawnedBy }),
    open: layout.unit === "text" ? async () => inWholeLines(await open()) : open,
  });
}

/**
 * Re-chunks the file so that each chunk ends with a line, except the last. The line after a text item decides where the
 * item ends.
 */
function inWholeLines(file: SourceFile): SourceFile {
  return {
    ...file,
    chunks: async function* (range) {
      let before: Uint8Array[] = [];
      for await (const chunk of file.chunks(range)) {
        const end = chunk.lastIndexOf(0x0a) + 1;
        // The file may reuse its buffer, so the bytes are copied.
        if (end > 0) yield Buffer.concat([...before, chunk.subarray(0, end)]);
        before = [...(end > 0 ? [] : before), new Uint8Array(chunk.subarray(end))];
      }
      const rest = Buffer.concat(before);
      if (rest.length > 0) yield rest;
    },
  };
}

/** A program writes a document as a whole, so it must fit in memory. Larger files are refused. */
const mostDocumentBytes = 64 * 1024 * 1024;

function tooLarge(path: string, { program }: ForeignFormat, sizeBytes: number): ThroughlineError {
  const message = `${JSON.stringify(path)} is one document of ${program} with ${sizeBytes} bytes; at most ${mostDocumentBytes} are read.`;
  return new ThroughlineError("FILE_UNREADABLE", message, {
    outcome: "not-applied",
    details: { path, sizeBytes, mostBytes: mostDocumentBytes },
    remedy: "Cut the document into several, each with a part of the list.",
  });
}

/** A file with several sessions adds the session's number. */
function nameOf(path: string): string {
  return nameIn(path)
    .replace(/\.jsonl?(?=#|$)/, "")
    .replace("#", "-");
}

function nameIn(path: string): string {
  return path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1);
}

/** Holds what a search of the folders of other programs needs. */
interface ForeignSearch {
  readonly companions: CompanionFiles;
  readonly look: SearchLook;
}

/**
 * Yields the sessions of programs below a folder: a program's own folder, a parent folder, or a copy of either. Only
 * folders that lead to sessions are listed, each once. Returns whether there are any.
 */
export async function* foreignFolder(
  path: string,
  { folders }: FolderSurvey,
  { companions, look }: ForeignSearch,
): AsyncGenerator<FoundSource, boolean> {
  // A folder may hold thousands of files, so it is listed again only if its survey shows a matching name.
  const placed = patternsBelow(path).filter(
    ([first, ...others]) => others.length === 0 || folders.some((name) => first !== undefined && fits(first, name)),
  );
  let siblings: Siblings = { folder: "", ids: new Set() };
  let isThere = false;
  for await (const file of filesBelow(path, placed, look)) {
    isThere = true;
    if (typeof file !== "string") {
      yield file;
      continue;
    }
    const folder = file.slice(0, -nameIn(file).length);
    if (folder !== siblings.folder) siblings = { folder, ids: new Set() };
    if (await look.isKnown(file, () => filesWith(file))) for (const id of look.sessionIdsOf(file)) siblings.ids.add(id);
    else yield* guarded(file, placedFile(file, { companions, look }, siblings));
  }
  return isThere;
}

/** Returns the other files of a session: the log of a database, or the files of its messages. */
function filesWith(path: string): Iterable<string> | AsyncIterable<string> {
  for (const { tree } of foreignFormats.values()) {
    const place = tree?.placeOf(path) ?? null;
    if (tree !== undefined && place !== null) return tree.filePaths(treeFiles, place);
  }
  return [`${path}-wal`];
}

interface Siblings {
  readonly folder: string;
  readonly ids: Set<string>;
}

async function* placedFile(
  path: string,
  { companions, look }: ForeignSearch,
  siblings: Siblings,
): AsyncGenerator<FoundSource> {
  if (await isDatabaseFile(path)) return yield* databaseFile(path, look);
  const beginning = await foreignBeginning(path);
  if (beginning === null && path.endsWith(".zst")) throw compressedFile(path);
  if (beginning === null && (await isBarelyBegun(path))) return yield skipped(path);
  if (beginning === null) {
    const what = JSON.stringify(path);
    throw new ThroughlineError("FORMAT_UNKNOWN", `${what} lies where sessions do and does not begin like one.`, {
      details: { path },
    });
  }
  for await (const source of foreignSources(path, beginning, companions)) {
    // A program that starts and quits writes a file of the session that it would have continued.
    const isTwin = siblings.ids.has(source.sessionId) && isWithoutMessages(path, beginning);
    siblings.ids.add(source.sessionId);
    look.sawSession(path, source.sessionId);
    yield isTwin ? skipped(path) : source;
  }
}

/** A program creates the file first, so a new session is empty or holds part of its first line. */
async function isBarelyBegun(path: string): Promise<boolean> {
  const file = await openSource(path);
  try {
    const { head, isWhole } = await sampleOf(file, path);
    return isWhole && head.length < 4096 && !head.includes(0x0a);
  } finally {
    await file.close();
  }
}

function isWithoutMessages(path: string, { format, layout, sample }: ForeignBeginning): boolean {
  if (layout.unit !== "line" || !sample.isWhole) return false;
  const reader = format.createReader({ path });
  const splitter = createUnitSplitter(sample.head.length, layout);
  const units = [...splitter.push(sample.head), ...splitter.end()];
  return units.every((unit, at) =>
    reader.push(decodeLine(unit.bytes), placeOf(unit, at + 1)).records.every(({ type }) => !contextTypes.has(type)),
  );
}

const contextTypes: ReadonlySet<string> = new Set(["message", "compaction"]);

function compressedFile(path: string): ThroughlineError {
  return new ThroughlineError("FORMAT_UNKNOWN", `${JSON.stringify(path)} is compressed, and is not read.`, {
    details: { path },
    remedy: `Unpack it with \`zstd -d ${shellWord(path)}\` and import again.`,
  });
}

/**
 * Matches a path with a program's folders, or with their parents up to a user's home. The part of the path above must
 * have the program's folder names.
 */
function patternsBelow(path: string): readonly PathPattern[] {
  const above = path.split(/[/\\]/);
  const places = [...foreignFormats.values()].flatMap((format) => format.places);
  const patterns = places.flatMap(({ home, files }) => {
    const inHome = (home ?? "").split("/").filter((name) => name !== "");
    return files.flatMap((parts) => (parts.length === 0 ? [] : [parts, [...inHome, ...parts]]));
  });
  const found = patterns.flatMap((parts) =>
    parts.flatMap((_, depth) => {
      const ours = above.slice(above.length - depth);
      const isThere = ours.length === depth && parts.slice(0, depth).every((part, at) => fits(part, ours[at] ?? ""));
      return isThere ? [parts.slice(depth)] : [];
    }),
  );
  // A program uses other parent folders on other systems, with the same names inside.
  return [...new Map(found.map((parts) => [parts.join("/"), parts])).values()];
}

type PathPattern = readonly (string | RegExp)[];

/** A folder further down that cannot be read is yielded as a refusal, because the other folders can. */
async function* filesBelow(
  folder: string,
  patterns: readonly PathPattern[],
  look: SearchLook,
): AsyncGenerator<string | OtherSource> {
  if (patterns.length === 0 || !look.entersFolder(folder)) return;
  const files: string[] = [];
  const folders: string[] = [];
  const isFolder = await eachSourceName(folder, ({ name, isDirectory }) => {
    const isWanted = patterns.some(
      (parts) => parts.length > 1 === isDirectory && parts[0] !== undefined && fits(parts[0], name),
    );
    if (isWanted) (isDirectory ? folders : files).push(name);
  });
  if (!isFolder) return;
  for (const name of files.toSorted()) yield joinPath(folder, name);
  for (const name of folders.toSorted()) {
    const inner = patterns.filter(
      ([first, ...others]) => others.length > 0 && first !== undefined && fits(first, name),
    );
    const path = joinPath(folder, name);
    const below = inner.map((parts) => parts.slice(1));
    yield* guarded(path, filesBelow(path, below, look));
  }
}

function fits(part: string | RegExp, name: string): boolean {
  return typeof part === "string" ? part === name : part.test(name);
}
