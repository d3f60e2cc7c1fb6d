import { createFinding } from "@throughline/core/internal";
import type { Finding } from "@throughline/core";
import type { AgentFolder } from "./agent-folder.ts";
import { ageMsOf, flushFolder, makeFolders, withFileErrors } from "./file-work.ts";
import type { Files } from "./files.ts";

export interface DamagedCopy {
  readonly temporary: string;
  readonly path: string;
}

/** An editor that writes in place leaves an incomplete file for a moment, which must not count as damaged. */
const settledMs = 1000;

/**
 * Tests whether another program may still be writing the damaged file. A time far ahead of the clock does not count.
 */
export function isSettling(files: Files, { sessionsJson }: AgentFolder): boolean {
  const facts = files.facts(sessionsJson);
  if (facts === null) return false;
  const ageMs = ageMsOf(facts);
  return ageMs < settledMs && ageMs > -settledMs;
}

/** Returns the same path for the same damaged file, so that repeated attempts keep one copy. */
export function damagedPath(files: Files, { torn, sessionsJson }: AgentFolder, crc: number): string {
  const modifiedMs = Number((files.facts(sessionsJson)?.modifiedNs ?? 0n) / 1_000_000n);
  return `${torn}/sessions.json.${new Date(modifiedMs).toISOString().replaceAll(":", "-")}.${crc.toString(16)}`;
}

/** Renames and flushes the copy. This must happen before anything replaces the damaged file. */
export function keepDamaged(files: Files, { torn }: AgentFolder, { temporary, path }: DamagedCopy): void {
  withFileErrors(path, () => {
    if (files.facts(torn) === null) makeFolders(files, torn);
    files.rename(temporary, path);
    flushFolder(files, torn);
  });
}

export function damagedFinding(path: string): Finding {
  const finding = createFinding("INDEX_UNREADABLE", "sessions.json is damaged: it is not a JSON object.", { path });
  const remedy = "Run `throughline reindex`: it keeps the damaged file and writes a new one from the sessions.";
  return { ...finding, remedy };
}

export function replacedFinding(sessionsJson: string, kept: string, salvaged: number): Finding {
  const message = `The damaged sessions.json is kept as ${kept}; a new one was written, also from ${salvaged} of its entries.`;
  const finding = createFinding("INDEX_UNREADABLE", message, { path: sessionsJson, repaired: true });
  return { ...finding, remedy: "Nothing to do." };
}
