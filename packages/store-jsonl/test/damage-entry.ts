import { appendFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import type { SessionRef } from "@throughline/core";

type Line = Readonly<Record<string, unknown>>;

export function logOf(root: string): string {
  return join(root, "agents/main/throughline/entries.log");
}

/** The newest line of the entries log about a session, or of a line about several what it says of this one. */
export function lineAbout(root: string, key: string): Line {
  const lines = readFileSync(logOf(root), "utf8").trimEnd().split("\n");
  const rows = lines
    .map((line) => JSON.parse(line) as Line)
    .flatMap((line) => [line, ...((line["also"] ?? []) as Line[])]);
  const found = rows.findLast((row) => row["key"] === key);
  if (found === undefined) throw new Error(`no line is about ${key}`);
  return found;
}

/** Says of the session once more what the log says of it, with an entry that no codec has written. */
export function damageEntry(root: string, { key }: SessionRef): void {
  const { entry: _entry, entryEnc: _coded, crc: _crc, ...row } = lineAbout(root, key);
  const text = JSON.stringify({ ...row, entryEnc: Buffer.from("{").toString("base64") });
  appendFileSync(logOf(root), `${text.slice(0, -1)},"crc":${crc32(text)}}\n`);
}
