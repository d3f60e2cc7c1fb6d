import { readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import type { StoredRecord } from "@throughline/core";
import { storedRecords, type RecordSketch } from "./stored-records.ts";

/** The folder of real transcripts; undefined where it is not at hand. */
export const corpusFolder: string | undefined = process.env["THROUGHLINE_CORPUS"];

/** The records of a transcript. Lines that are no JSON are another package's business and passed over. */
export function readCorpusRecords(path: string): StoredRecord[] {
  const lines = readFileSync(join(corpusFolder ?? "", path), "utf8")
    .trimEnd()
    .split("\n");
  return storedRecords(lines.flatMap((line) => parsed(line)));
}

function parsed(line: string): readonly RecordSketch[] {
  try {
    return [JSON.parse(line) as RecordSketch];
  } catch (error) {
    if (error instanceof SyntaxError) return [];
    throw error;
  }
}

export interface Golden {
  readonly roles: readonly string[];
  readonly thinkingLevel: string;
  readonly model: unknown;
  readonly latestCompactionId: string | null;
}

/** What three programs agree on for a transcript. */
export function readGolden(name: string): Golden {
  const golden = JSON.parse(readFileSync(join(corpusFolder ?? "", "golden", `${name}.golden.json`), "utf8"));
  const { messages, roles, thinkingLevel, model } = golden.context;
  return {
    roles: roles ?? messages.map((message: { role: string }) => message.role),
    thinkingLevel,
    model,
    latestCompactionId: golden.latestCompaction?.id ?? null,
  };
}
