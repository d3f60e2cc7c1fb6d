// How does `usage` differ from ccusage on the same transcripts of Claude Code, by day and model? The transcripts are those of
// the corpus and its cases, and 60 generated ones. Each call that one of both counts differently must fall under a rule of
// docs/guides/what-did-it-cost.md, which this program applies to the lines by itself. A difference without a rule makes the
// exit code 1.
// node --conditions=@throughline/source lab/usage-ccusage.ts [sessions]
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import process from "node:process";
import { writeTranscripts } from "../apps/cli/test/generated-transcripts.ts";
import { isFields, type Fields } from "../packages/core/src/internal.ts";
import { installPeers } from "./peer-packages.ts";

const version = "20.0.24";
const sourceCondition = "--conditions=@throughline/source";
const corpus = process.env["THROUGHLINE_CORPUS"];
const [sessions = 60] = process.argv.slice(2).map(Number);

/** Holds input, cache read, cache write and output tokens. */
type Tokens = readonly [number, number, number, number];
/** Maps a day and a model to tokens. */
type Sums = ReadonlyMap<string, Tokens>;
/** Holds what a program prints: its tokens, and dollars by the same groups. */
interface Report {
  readonly sums: Sums;
  readonly usd: ReadonlyMap<string, number>;
}

/** Describes a line that states usage. */
interface Line {
  readonly path: string;
  readonly at: number;
  readonly day: string | null;
  readonly model: string;
  readonly replyId: string;
  /** Null for a line without one. */
  readonly requestId: string | null;
  readonly tokens: Tokens;
  readonly fileBytes: number;
}

if (corpus === undefined) process.stdout.write("skipped: needs THROUGHLINE_CORPUS\n");
else {
  const home = mkdtempSync(join(tmpdir(), "throughline-ccusage-"));
  try {
    process.exitCode = main(home, corpus);
  } finally {
    rmSync(home, { recursive: true });
  }
}

function main(home: string, folder: string): number {
  const peers = join(home, "peers");
  const packages = { ccusage: version, [`@ccusage/ccusage-${process.platform}-${process.arch}`]: version };
  if (!installPeers(peers, packages, [])) {
    process.stdout.write("skipped: no registry\n");
    return 0;
  }
  const files = collect(folder, home);
  const lines = files.flatMap(linesOf);
  const [ours, theirs] = [ourReport(home, files), theirReport(home, peers)];
  const isExplained = [
    isSame("ccusage", theirs.sums, byTheirRules(lines)),
    isSame("usage", ours.sums, byOurRules(lines)),
  ].every(Boolean);
  printDifferences(lines);
  printCosts(ours, theirs);
  process.stdout.write(`${files.length} files, ${lines.length} lines with usage\n`);
  return isExplained ? 0 : 1;
}

/** Prints each group of which the program counts something else than its rules say. */
function isSame(program: string, counted: Sums, expected: Sums): boolean {
  const groups = [...new Set([...counted.keys(), ...expected.keys()])].toSorted();
  const differing = groups.filter((group) => String(counted.get(group)) !== String(expected.get(group)));
  for (const group of differing)
    process.stdout.write(
      `${group}: ${program} counts ${String(counted.get(group))}, by its rules ${String(expected.get(group))}\n`,
    );
  return differing.length === 0;
}

/** ccusage: a call is a reply and its request, or a line without a request; the line with the most tokens counts. */
function byTheirRules(lines: readonly Line[]): Sums {
  const calls = new Map<string, Line>();
  for (const line of lines) {
    const { path, at, replyId, requestId } = line;
    const name = JSON.stringify(requestId === null ? [path, at] : [replyId, requestId]);
    const known = calls.get(name);
    if (line.day === null || !line.tokens.every(isCount)) continue;
    if (known === undefined || sumOf(line.tokens) > sumOf(known.tokens)) calls.set(name, line);
  }
  return sumsOf([...calls.values()]);
}

/** `usage`: a call is a reply and its prompt, in one file if the id is short; the largest output counts. */
function byOurRules(lines: readonly Line[]): Sums {
  const calls = new Map<string, Line>();
  for (const line of lines) {
    const [input, read, write, output] = line.tokens;
    if (!isPossible(line)) continue;
    const isLong = line.replyId.length >= 16;
    const name = JSON.stringify([isLong ? null : line.path, line.replyId, input, read, write]);
    const known = calls.get(name);
    const most = Math.max(output, known?.tokens[3] ?? 0);
    calls.set(name, { ...(known ?? line), tokens: [input, read, write, most] });
  }
  return sumsOf([...calls.values()]);
}

function isPossible({ tokens, fileBytes }: Line): boolean {
  return tokens.every(isCount) && sumOf(tokens) > 0 && sumOf(tokens) <= 200_000 + fileBytes;
}

function isCount(count: number): boolean {
  return Number.isSafeInteger(count) && count >= 0;
}

function sumOf(tokens: Tokens): number {
  return tokens.reduce((sum, count) => sum + count, 0);
}

function sumsOf(lines: readonly Line[]): Sums {
  const sums = new Map<string, Tokens>();
  for (const { day, model, tokens } of lines) {
    const group = `${String(day)} ${model}`;
    const sum = sums.get(group) ?? [0, 0, 0, 0];
    sums.set(group, sum.map((count, at) => count + (tokens[at] ?? 0)) as unknown as Tokens);
  }
  return sums;
}

function printDifferences(lines: readonly Line[]): void {
  const [theirs, ours] = [byTheirRules(lines), byOurRules(lines)];
  const groups = [...new Set([...theirs.keys(), ...ours.keys()])];
  const equal = groups.filter((group) => String(theirs.get(group)) === String(ours.get(group)));
  process.stdout.write(`equal: ${equal.length} of ${groups.length} days and models\n`);
  for (const group of groups.filter((each) => !equal.includes(each)))
    process.stdout.write(`${group}: ccusage ${String(theirs.get(group))}, usage ${String(ours.get(group))}\n`);
  const untimed = lines.filter(({ day }) => day === null).length;
  process.stdout.write(`lines without a time, which ccusage leaves out: ${untimed}\n`);
  const impossible = lines.filter((line) => line.tokens.every(isCount) && !isPossible(line)).length;
  process.stdout.write(`lines with impossible counts, which usage leaves out: ${impossible}\n`);
}

/** Prints the costs that differ where the tokens do not, because the prices do. */
function printCosts(ours: Report, theirs: Report): void {
  const groups = [...ours.sums.keys()].filter(
    (group) => String(ours.sums.get(group)) === String(theirs.sums.get(group)),
  );
  const costs = groups.map((group) => [group, theirs.usd.get(group) ?? 0, ours.usd.get(group) ?? 0] as const);
  const differing = costs.filter(([, their, our]) => Math.abs(their - our) > 1e-6);
  process.stdout.write(`equal cost: ${costs.length - differing.length} of ${costs.length} with equal tokens\n`);
  for (const [group, their, our] of differing)
    process.stdout.write(`${group}: ccusage $${their.toFixed(6)}, usage $${our.toFixed(6)}\n`);
}

/** Copies the transcripts of the corpus below the home of Claude Code, each into a project of its own. */
function collect(folder: string, home: string): readonly string[] {
  const generated = join(home, "generated");
  const seeds = Array.from({ length: sessions }, (_, at) => at * 6);
  writeTranscripts(folder, generated, seeds);
  const given = ["foreign/claude-code", "cases"].flatMap((name) => filesBelow(join(folder, name)));
  const paths = [...given, ...filesBelow(generated)].filter((path) => path.endsWith(".jsonl") && isOfClaudeCode(path));
  return paths.map((path, at) => {
    const copy = join(home, ".claude", "projects", `-p-${at}`, basename(path));
    mkdirSync(dirname(copy), { recursive: true });
    // ccusage finds the usage only in lines as the program writes them, without spaces.
    writeFileSync(
      copy,
      valuesOf(path)
        .map((value) => `${JSON.stringify(value)}\n`)
        .join(""),
    );
    return copy;
  });
}

function filesBelow(folder: string): readonly string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
}

function isOfClaudeCode(path: string): boolean {
  const values = valuesOf(path);
  return values.some(
    ({ type, uuid, message }) => (type === "assistant" || type === "user") && uuid && isFields(message),
  );
}

function valuesOf(path: string): readonly Fields[] {
  return readFileSync(path, "utf8")
    .split("\n")
    .flatMap((text) => {
      try {
        const value: unknown = JSON.parse(text);
        return isFields(value) ? [value] : [];
      } catch {
        return [];
      }
    });
}

function linesOf(path: string): readonly Line[] {
  const fileBytes = readFileSync(path).length;
  return valuesOf(path).flatMap(({ timestamp, requestId, message }, at) => {
    if (!isFields(message) || !isFields(message["usage"])) return [];
    const { usage, model, id } = message;
    const count = (name: string): number => Number((usage as Fields)[name] ?? 0);
    const tokens: Tokens = [
      count("input_tokens"),
      count("cache_read_input_tokens"),
      count("cache_creation_input_tokens"),
      count("output_tokens"),
    ];
    const day = typeof timestamp === "string" ? timestamp.slice(0, 10) : null;
    // A line without the id of a reply is a call by itself.
    const replyId = typeof id === "string" ? id : String(at);
    const stated = typeof requestId === "string" ? requestId : null;
    return [{ day, model: String(model), path, at, replyId, requestId: stated, tokens, fileBytes }];
  });
}

function run(command: string, args: readonly string[], home: string): string {
  const env = { PATH: process.env["PATH"], HOME: home, TZ: "UTC" };
  const { stdout, stderr, status } = spawnSync(command, args, { env, encoding: "utf8", maxBuffer: 1e9 });
  // An import with findings ends with 3, and the cases have findings.
  if (status !== 0 && status !== 3)
    throw new Error(`${command} ${args[0] ?? ""} ended with ${String(status)}: ${stderr}`);
  return stdout;
}

function ourReport(home: string, files: readonly string[]): Report {
  const bin = [sourceCondition, join(import.meta.dirname, "../apps/cli/bin/throughline.js")];
  run(process.execPath, [...bin, "import", ...files, "--quiet", "--json"], home);
  const rows = run(process.execPath, [...bin, "usage", "--by", "day,model", "--json"], home)
    .trim()
    .split("\n");
  const values = rows.map((row) => JSON.parse(row) as Fields).filter(({ kind }) => kind === "usage");
  return reportOf(
    values.map(({ group, input, cacheRead, cacheWrite, output, costUsd }) => {
      const { day, model } = group as Fields;
      return { day, model, counts: [input, cacheRead, cacheWrite, output], usd: costUsd };
    }),
  );
}

function theirReport(home: string, peers: string): Report {
  const bin = join(peers, "node_modules/ccusage/src/cli.js");
  const args = [bin, "claude", "daily", "--json", "--offline", "--breakdown", "--timezone", "UTC"];
  const { daily } = JSON.parse(run(process.execPath, args, home)) as { readonly daily: readonly Fields[] };
  return reportOf(
    daily.flatMap(({ date, modelBreakdowns }) =>
      (modelBreakdowns as readonly Fields[]).map((row) => {
        const { modelName: model, inputTokens, cacheReadTokens, cacheCreationTokens, outputTokens, cost } = row;
        return {
          day: date,
          model,
          counts: [inputTokens, cacheReadTokens, cacheCreationTokens, outputTokens],
          usd: cost,
        };
      }),
    ),
  );
}

function reportOf(
  rows: readonly { readonly day: unknown; readonly model: unknown; readonly counts: unknown; readonly usd: unknown }[],
): Report {
  const named = rows.map((row) => ({ ...row, group: `${String(row.day)} ${String(row.model)}` }));
  return {
    sums: new Map(named.map(({ group, counts }) => [group, counts as Tokens])),
    usd: new Map(named.map(({ group, usd }) => [group, Number(usd)])),
  };
}
