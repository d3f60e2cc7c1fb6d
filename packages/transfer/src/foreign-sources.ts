import { ThroughlineError } from "@throughline/core";
import { detectForeignFormat, foreignFormats, type ForeignFormat } from "@throughline/foreign-formats";
import { decodeLine } from "@throughline/openclaw-format";
import { joinPath } from "@throughline/openclaw-format/internal";
import type { CompanionFiles } from "./companion-files.ts";
import type { FolderSurvey } from "./folder-survey.ts";
import { guarded, type FoundSource } from "./found-source.ts";
import { eachSourceName, openSource } from "./node/source-files.ts";
import { createUnitSplitter } from "./source-units.ts";
import { usableSessionId, type TranscriptSource } from "./transcript-source.ts";

const headBytes = 64 * 1024;

/** What the beginning of a file says when it is one of another program; null when it is of none that is known. */
export interface ForeignBeginning {
  readonly format: ForeignFormat;
  readonly sizeBytes: number;
  readonly head: Uint8Array;
}

/** @throws {ThroughlineError} FILE_NOT_FOUND, FILE_UNREADABLE, PATH_UNSAFE */
export async function foreignBeginning(path: string): Promise<ForeignBeginning | null> {
  const file = await openSource(path);
  try {
    const parts: Uint8Array[] = [];
    const toBytes = Math.min(file.sizeBytes, headBytes);
    for await (const chunk of file.chunks({ toBytes })) parts.push(new Uint8Array(chunk));
    const head = Buffer.concat(parts);
    const format = detectForeignFormat({ path, head, isWhole: file.sizeBytes <= headBytes });
    return format === null ? null : { format, sizeBytes: file.sizeBytes, head };
  } finally {
    await file.close();
  }
}

/** A file of another program as a source. */
export async function foreignSource(
  path: string,
  { format, sizeBytes, head }: ForeignBeginning,
  companions: CompanionFiles,
): Promise<TranscriptSource> {
  const reader = format.createReader({ path });
  for (const [index, unit] of createUnitSplitter(headBytes).push(head).entries())
    reader.push(decodeLine(unit.bytes), { line: index + 1, byteOffset: unit.byteOffset });
  const { sessionId, spawnedBy } = reader;
  const entry = await companions.entryOf(format, path, sessionId ?? "");
  return {
    kind: "transcript",
    path,
    format: format.name,
    foreign: format,
    sizeBytes,
    agentId: null,
    key: null,
    sessionId: usableSessionId(sessionId ?? "", path),
    nameSessionId: null,
    header: null,
    entry,
    own: null,
    isArchived: false,
    archivedAt: null,
    ...(spawnedBy === null ? {} : { spawnedBy }),
    open: () => openSource(path),
    findings: [],
  };
}

/** One of the places of a program, and the files in it that are sessions. */
interface PlacedFiles {
  readonly files: readonly (string | RegExp)[];
  readonly folder: string;
}

/**
 * The sessions of programs that keep theirs here: in their own folder, in one of those it holds, or in a copy of either.
 * Only folders that lead to sessions are looked into. Gives nothing where no program's sessions are.
 */
export async function* foreignFolder(
  path: string,
  { folders }: FolderSurvey,
  companions: CompanionFiles,
): AsyncGenerator<FoundSource> {
  for (const placed of placesBelow(path)) {
    // A folder may hold very many files: it is gone through again only when there is a reason.
    const [first, ...others] = placed.files;
    if (first === undefined || (others.length > 0 && !folders.some((name) => fits(first, name)))) continue;

    for await (const file of filesBelow(placed.folder, placed.files))
      yield* guarded(file, placedFile(file, companions));
  }
}

async function* placedFile(path: string, companions: CompanionFiles): AsyncGenerator<FoundSource> {
  const beginning = await foreignBeginning(path);
  if (beginning === null) {
    const what = JSON.stringify(path);
    throw new ThroughlineError("FORMAT_UNKNOWN", `${what} lies where sessions do and does not begin like one.`, {
      details: { path },
    });
  }
  yield await foreignSource(path, beginning, companions);
}

/** Where a path may stand in the folders of a program: what is above it must be named as the program names it. */
function placesBelow(path: string): readonly PlacedFiles[] {
  const above = path.split(/[/\\]/);
  const patterns = [...foreignFormats.values()].flatMap(({ places }) => places.flatMap(({ files }) => files));
  return patterns.flatMap((parts) =>
    parts.flatMap((_, depth) => {
      const ours = above.slice(above.length - depth);
      const isThere = ours.length === depth && parts.slice(0, depth).every((part, at) => fits(part, ours[at] ?? ""));
      return isThere ? [{ folder: path, files: parts.slice(depth) }] : [];
    }),
  );
}

async function* filesBelow(folder: string, parts: readonly (string | RegExp)[]): AsyncGenerator<string> {
  const [part, ...others] = parts;
  if (part === undefined) return;
  const isLast = others.length === 0;
  const names: string[] = [];
  const isFolder = await eachSourceName(folder, ({ name, isDirectory }) => {
    if (isDirectory !== isLast && fits(part, name)) names.push(name);
  });
  if (!isFolder) return;
  for (const name of names.toSorted()) {
    const path = joinPath(folder, name);
    if (isLast) yield path;
    else yield* filesBelow(path, others);
  }
}

function fits(part: string | RegExp, name: string): boolean {
  return typeof part === "string" ? part === name : part.test(name);
}
