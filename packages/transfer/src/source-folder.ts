import { dirname } from "node:path";
import { decodeLine } from "@throughline/openclaw-format";
import type { FolderPatterns } from "./folder-patterns.ts";
import { createSourceReader } from "./source-reader.ts";
import { createUnitSplitter } from "./source-units.ts";
import { placeOf, type TranscriptSource } from "./transcript-source.ts";

/** True if the source lies in a folder that the patterns name, or its session worked in one. */
export async function isExcluded(source: TranscriptSource, excludes: FolderPatterns): Promise<boolean> {
  if (excludes.isEmpty) return false;
  if (await excludes.match(dirname(source.path))) return true;
  const folder = await sourceFolder(source);
  return folder !== null && (await excludes.match(folder));
}

/** Limits a line that is read for its folder; a longer one states none. */
const mostLineBytes = 16 * 1024 * 1024;

/** Reads the folder that a session works in, up to the first line that states it; null when none does. */
async function sourceFolder(source: TranscriptSource): Promise<string | null> {
  const stated = source.own?.entry["cwd"] ?? source.header?.cwd ?? source.entry?.["cwd"];
  if (typeof stated === "string" && stated !== "") return stated;
  if (source.foreign === undefined || source.open === null) return null;
  const file = await source.open();
  try {
    const reader = createSourceReader(source, { maxLineBytes: mostLineBytes });
    const splitter = createUnitSplitter(mostLineBytes, source.layout);
    let count = 0;
    for await (const chunk of file.chunks()) {
      for (const unit of splitter.push(chunk)) reader.push(decodeLine(unit.bytes), placeOf(unit, ++count));
      if (typeof reader.entry["cwd"] === "string") break;
    }
    for (const unit of splitter.end()) reader.push(decodeLine(unit.bytes), placeOf(unit, ++count));
    const { cwd } = reader.entry;
    return typeof cwd === "string" ? cwd : null;
  } finally {
    await file.close();
  }
}
