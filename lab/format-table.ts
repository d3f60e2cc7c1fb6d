// What is promised of each format of other programs, measured on the files of the corpus, and which format claims which file.
// THROUGHLINE_CORPUS=FOLDER node --conditions=@throughline/source lab/format-table.ts
import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import process from "node:process";
import { byPackage, byUs as uiByUs } from "../packages/foreign-formats/test/ai-sdk/package-reader.ts";
import { bySdk, byUs, type Lines } from "../packages/foreign-formats/test/claude-code/sdk-reader.ts";
import { corpusFolders, isDump } from "../packages/foreign-formats/test/corpus-files.ts";
import { hostileFiles } from "../packages/foreign-formats/test/hostile-files.ts";
import { programTotal, readTotal } from "../packages/foreign-formats/test/program-usage.ts";
import { readUnits, refusals } from "../packages/foreign-formats/test/read-units.ts";
import { detectForeignFormat, foreignFormats } from "../packages/foreign-formats/src/index.ts";
import type { ForeignFormatName } from "../packages/foreign-formats/src/names.ts";
import { createMemoryStore } from "../packages/store-memory/src/index.ts";
import { exportSession, importPaths } from "../packages/transfer/src/index.ts";
import type { ExportFormat } from "../packages/transfer/src/export-types.ts";
import { skippedPrefix } from "../tools/long-suite.ts";

/** Of a number of checks how many held; null where none applies. */
interface Tally {
  held: number;
  of: number;
}

interface FormatRow {
  readonly name: ForeignFormatName;
  files: number;
  sessions: number;
  units: number;
  records: number;
  derived: number;
  lost: number;
  readonly bytes: Tally;
  readonly again: Tally;
  readonly reader: Tally;
  readonly cuts: Tally;
  readonly usage: Tally;
}

const tally = (): Tally => ({ held: 0, of: 0 });

function count(one: Tally, holds: boolean, what: string): void {
  one.of += 1;
  if (holds) one.held += 1;
  else problems.push(what);
}

const problems: string[] = [];

/** The words of each message by the program's own reader and by ours; null where no reader runs without the program. */
async function byOwnReader(
  name: ForeignFormatName,
  text: string,
  path: string,
): Promise<readonly (readonly string[])[] | null> {
  if (name === "ai-sdk") return [await byPackage(JSON.parse(text) as object[]), uiByUs(readUnits(name, text, path))];
  if (name !== "claude-code") return null;
  const lines = text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Lines[number]);
  const theirs = await bySdk(lines);
  // Files without ids, and those of a sub-agent alone, have no conversation for it.
  return theirs.length === 0 ? null : [theirs, byUs(readUnits(name, text, path))];
}

async function measure(row: FormatRow, path: string): Promise<void> {
  const name = row.name;
  const file = basename(path);
  row.files += 1;
  await using store = createMemoryStore();
  const sources = await Array.fromAsync(importPaths(store, [path]));
  for (const { state, lines, records, derived, lost, error } of sources) {
    row.sessions += 1;
    row.units += lines;
    row.records += records;
    row.derived += derived;
    row.lost += lost.length;
    if (state !== "imported" || error !== null || lines !== records + lost.length)
      problems.push(`${file}: ${state}, ${String(error?.message)}`);
  }
  const again = await Array.fromAsync(importPaths(store, [path]));
  count(
    row.again,
    again.every(({ state }) => state === "unchanged"),
    `${file}: not unchanged`,
  );
  if (path.endsWith(".sqlite")) return;
  const text = readFileSync(path, "utf8");
  const [only, ...others] = sources;
  const canWrite = foreignFormats.get(name)?.writer !== undefined;
  if (canWrite && only !== undefined && others.length === 0) {
    const ref = { namespace: "", agentId: only.agentId ?? "", key: only.key ?? "" };
    const parts = await Array.fromAsync(exportSession(store, ref, { to: name as ExportFormat }));
    count(row.bytes, Buffer.concat(parts).equals(readFileSync(path)), `${file}: other bytes`);
  }
  if (others.length > 0) return;
  const read = await byOwnReader(name, text, path);
  if (read !== null)
    count(
      row.reader,
      JSON.stringify(read[0]) === JSON.stringify(read[1]),
      `${file}: another context than its program's`,
    );
  const session = readUnits(name, text, path);
  const total = programTotal(name, text);
  if (total !== null)
    count(row.usage, total === readTotal(session), `${file}: ${readTotal(session)} of ${total} tokens`);
  const bytes = readFileSync(path);
  for (const size of cutsOf(bytes, path)) {
    const refused = refusals(readUnits(name, bytes.subarray(0, size), path));
    count(row.cuts, refused.length === 0, `${file} cut at ${size}: ${refused[0]}`);
  }
}

/** The end of each line; of a document or a text 200 places. */
function cutsOf(bytes: Uint8Array, path: string): readonly number[] {
  if (!path.endsWith(".jsonl"))
    return Array.from({ length: 200 }, (_, part) => Math.floor((bytes.length * (part + 1)) / 200));
  return [...bytes.entries()].flatMap(([place, byte]) => (byte === 0x0a ? [place + 1] : []));
}

/** Which format claims each file of the corpus, and each hostile one. */
function matrix(): readonly string[] {
  const claims = new Map<string, Map<string, number>>();
  const claim = (folder: string, path: string, bytes: Uint8Array, wanted: string | null): void => {
    const sample = { path, head: bytes.subarray(0, 65_536), isWhole: bytes.length <= 65_536 };
    const found = [...foreignFormats.values()].flatMap((format) => {
      const match = format.detect(sample);
      return match === null ? [] : [`${format.name} (${match})`];
    });
    const said = found.length === 0 ? "nobody" : found.join(", ");
    const row = claims.get(folder) ?? new Map<string, number>();
    claims.set(folder, row.set(said, (row.get(said) ?? 0) + 1));
    if ((detectForeignFormat(sample)?.name ?? null) !== wanted || found.length > 1)
      problems.push(`${path} is claimed by ${said}`);
  };
  for (const [folder, name] of corpusFolders())
    for (const file of readdirSync(folder).filter((one) => !one.endsWith(".sqlite")))
      claim(basename(folder), join(folder, file), readFileSync(join(folder, file)), isDump(file) ? null : name);
  for (const [name, content] of Object.entries(hostileFiles))
    claim("hostile files", `/tmp/${name}`, Buffer.from(content), null);
  return [...claims].map(
    ([folder, row]) => `| ${folder} | ${[...row].map(([said, files]) => `${files} ${said}`).join("; ")} |`,
  );
}

function shown({ held, of }: Tally): string {
  return of === 0 ? "" : `${held} of ${of}`;
}

const folders = corpusFolders();
if (folders.length === 0) {
  process.stdout.write(`${skippedPrefix}THROUGHLINE_CORPUS names no folder with transcripts of other programs\n`);
} else {
  const write = (line: string): void => void process.stdout.write(`${line}\n`);
  write(
    "| format | files | sessions | units | records, derived | lost | same bytes | unchanged | own reader | valid at each cut | usage |",
  );
  write("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
  for (const [folder, name] of folders) {
    if (name === null) continue;
    const row: FormatRow = {
      name,
      files: 0,
      sessions: 0,
      units: 0,
      records: 0,
      derived: 0,
      lost: 0,
      bytes: tally(),
      again: tally(),
      reader: tally(),
      cuts: tally(),
      usage: tally(),
    };
    for (const file of readdirSync(folder).toSorted()) if (!isDump(file)) await measure(row, join(folder, file));
    if (row.files === 0) continue;
    const counts = [row.files, row.sessions, row.units, `${row.records}, ${row.derived}`, row.lost];
    write(
      `| ${[name, ...counts, ...[row.bytes, row.again, row.reader, row.cuts, row.usage].map(shown)].join(" | ")} |`,
    );
  }
  write("\n| files of | claimed by |\n| --- | --- |");
  for (const line of matrix()) write(line);
  write(
    problems.length === 0
      ? "formats: as promised"
      : `formats: ${problems.length} problems\n${problems.slice(0, 20).join("\n")}`,
  );
  process.exitCode = problems.length === 0 ? 0 : 1;
}
