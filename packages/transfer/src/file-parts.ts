import type { FileLayout } from "@throughline/foreign-formats/internal";
import { createUnitSplitter, type SourceUnit } from "./source-units.ts";
import { openSource, type SourceFile } from "./node/source-files.ts";

export interface FilePart {
  /** Counts from 1: the line number, or the position in the list. */
  readonly number: number;
  readonly fromBytes: number;
  readonly sizeBytes: number;
}

/** Limits the bytes of an item that are scanned for the separator before it. */
const mostSeparator = 4096;
const comma = 0x2c;
const space = 0x20;

/** Yields the sessions of a file in order. Blank lines and the text around a list are skipped. */
export async function* partsOf(path: string, { sessions }: FileLayout): AsyncGenerator<FilePart> {
  const isList = sessions === "elements";
  const splitter = createUnitSplitter(
    mostSeparator,
    isList ? { unit: "document", lists: [[]], sessions: null } : undefined,
  );
  const file = await openSource(path);
  let number = 0;
  const partOf = (unit: SourceUnit): readonly FilePart[] => {
    if (isList && unit.part !== "element") return [];
    number += 1;
    const start = unit.bytes.findIndex((byte) => byte > space && (!isList || byte !== comma));
    const skipped = Math.max(0, start);
    const part = { number, fromBytes: unit.byteOffset + skipped, sizeBytes: unit.sizeBytes - skipped };
    return start < 0 ? [] : [part];
  };
  try {
    for await (const chunk of file.chunks()) yield* splitter.push(chunk).flatMap(partOf);
    yield* splitter.end().flatMap(partOf);
  } finally {
    await file.close();
  }
}

/**
 * Opens the byte range of one session as a separate file. @throws {ThroughlineError} FILE_NOT_FOUND, FILE_UNREADABLE,
 * PATH_UNSAFE
 */
export async function openPart(path: string, { fromBytes: start, sizeBytes }: FilePart): Promise<SourceFile> {
  const file = await openSource(path);
  return {
    path,
    sizeBytes,
    chunks: ({ fromBytes = 0, toBytes = sizeBytes } = {}) =>
      file.chunks({ fromBytes: start + fromBytes, toBytes: start + Math.min(toBytes, sizeBytes) }),
    close: () => file.close(),
  };
}
