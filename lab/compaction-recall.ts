// Needed-later recall: of what the assistant names after a compaction and had been named before it, how much is still
// in front of it: in the summary, the details beside it, or the part that was kept.
// THROUGHLINE_CORPUS=<folder> node --conditions=@throughline/source lab/compaction-recall.ts [--rows] [--seed 7]
import { readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import type { SessionRecord, StoredRecord } from "../packages/core/src/index.ts";
import { extractDetails } from "../packages/compaction/src/extract-details.ts";
import { planCompaction } from "../packages/compaction/src/plan-compaction.ts";
import { settingsForWindow } from "../packages/compaction/src/compaction-settings.ts";
import { summaryText } from "../packages/compaction/src/summary-text.ts";
import { tokenMeasure } from "../packages/compaction/src/compactor.ts";
import { proseOf } from "../packages/core/src/summary-parts.ts";
import type { CompactionPlan } from "../packages/compaction/src/plan-compaction.ts";
import type { TokenMeasure } from "../packages/compaction/src/compaction-work.ts";
import { buildContext } from "../packages/history/src/index.ts";
import { renderText } from "../packages/history/src/render-text.ts";
import type { NeutralMessage } from "../packages/history/src/neutral-message.ts";
import { storedRecords } from "../packages/history/test/stored-records.ts";
import { createExtractiveSummarizer } from "../packages/summarizer-providers/src/index.ts";
import { createTokenEstimator, emptyCalibration } from "../packages/tokens/src/index.ts";

export type Kind = "paths" | "symbols" | "commands" | "quoted values" | "user constraints";

/** What is looked for, by the form it has. Independent of the forms by which the details are found. */
export const kinds: Readonly<Record<Kind, RegExp>> = {
  // Not what an import says: './x.js' is no place where a file is found.
  paths: /(?<![\w@.~/-])[~/]?(?:[\w@-][\w@.-]*\/)+[\w.-]+\.\w{1,6}\b/g,
  symbols: /\b(?:[a-z]+[a-z0-9]*(?:[A-Z][a-z0-9]+)+|[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+)\b/g,
  commands: /^.{4,120}$/gm,
  "quoted values": /"([^"\n]{3,50})"|`([^`\n]{3,50})`/g,
  "user constraints":
    /[^.!?\n]*\b(?:must|never|always|do not|don't|should not|shouldn't|make sure|only want|instead of|no need)\b[^.!?\n]*/gi,
};
const kindNames = Object.keys(kinds) as Kind[];

const conversations: readonly string[] = ["before-compaction", "large-session"];
const windowTokens = 200_000;
const neutralSentence = "The conversation went on about the work in the repository.";

export interface CutPoint {
  readonly name: string;
  /** Records up to the cut, and those until the next real compaction or the end. */
  readonly before: readonly StoredRecord[];
  readonly after: readonly StoredRecord[];
  readonly prose: string;
  readonly isReal: boolean;
  /** Of a real compaction: from which record on it kept. */
  readonly keptId: string | null;
}

/** How many were needed, and how many of them were in front of the assistant. */
export interface Tally {
  needed: number;
  covered: number;
}

function readRecords(folder: string, name: string): readonly StoredRecord[] {
  const lines = readFileSync(join(folder, "golden", `${name}.v3.jsonl`), "utf8")
    .trimEnd()
    .split("\n");
  return storedRecords(lines.map((line) => JSON.parse(line) as SessionRecord));
}

/** A small generator, so that the same seed gives the same cut points everywhere. */
function createRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

function realPoints(name: string, records: readonly StoredRecord[]): readonly CutPoint[] {
  return records.flatMap((stored, index) => {
    if (stored.type !== "compaction") return [];
    const next = records.findIndex(({ type }, later) => later > index && type === "compaction");
    // A compaction of pi or OpenClaw, which both have.
    const { summary, firstKeptEntryId } = stored.record as unknown as { summary: string; firstKeptEntryId: string };
    const after = records.slice(index + 1, next < 0 ? undefined : next);
    const point = { name: `${name}, compaction at ${index}`, before: records.slice(0, index), after };
    return [{ ...point, prose: summary, isReal: true, keptId: firstKeptEntryId }];
  });
}

function seededPoints(
  name: string,
  records: readonly StoredRecord[],
  count: number,
  random: () => number,
): readonly CutPoint[] {
  const users = records.flatMap(({ type, record }, index) => {
    const isUser = type === "message" && (record["message"] as { role: string }).role === "user";
    // Some conversation must lie on either side.
    return isUser && index > records.length * 0.2 && index < records.length * 0.95 ? [index] : [];
  });
  const chosen = new Set<number>();
  while (chosen.size < count) chosen.add(users[Math.floor(random() * users.length)] as number);
  return [...chosen]
    .toSorted((one, other) => one - other)
    .map((index) => {
      const next = records.findIndex(({ type }, later) => later > index && type === "compaction");
      const after = records.slice(index, next < 0 ? undefined : next);
      const point = { name: `${name}, seeded at ${index}`, before: records.slice(0, index), after };
      return { ...point, prose: neutralSentence, isReal: false, keptId: null };
    });
}

export function texts(messages: readonly NeutralMessage[]): string {
  return messages.map((message) => textOf(message)).join("\n");
}

export function textOf(message: NeutralMessage): string {
  const parts = message.content.map((block) => {
    if (block.type === "text") return block.text;
    return block.type === "toolCall" ? addressed(block.arguments) : "";
  });
  return message.role === "bashExecution" ? message.command : parts.join("\n");
}

/** What a call names: not the bodies of files it writes or replaces, which it has from reading them. */
function addressed(args: Readonly<Record<string, unknown>>): string {
  return Object.entries(args)
    .filter(([key, value]) => typeof value === "string" && !bodies.has(key))
    .map(([, value]) => value)
    .join("\n");
}

const bodies: ReadonlySet<string> = new Set(["content", "oldText", "newText", "old_string", "new_string"]);

/** What of a kind stands in messages; of user constraints those that the user said, of commands those that were run. */
function found(kind: Kind, messages: readonly NeutralMessage[]): ReadonlySet<string> {
  const all = new Set<string>();
  for (const message of messages) {
    if (kind === "user constraints" ? message.role !== "user" : message.role !== "assistant" && message.role !== "user")
      continue;
    const body = kind === "commands" ? commandsOf(message) : kind === "quoted values" ? said(message) : textOf(message);
    for (const match of body.matchAll(kinds[kind])) all.add(canonical(kind, match[1] ?? match[2] ?? match[0]));
  }
  return all;
}

/** A path goes by its last two names: the same file is written from many folders. */
export function canonical(kind: Kind, item: string): string {
  return kind === "paths" ? item.split("/").slice(-2).join("/") : item.trim();
}

/** Only what is said: quotes in a command belong to its language. */
export function said(message: NeutralMessage): string {
  return message.content.map((block) => (block.type === "text" ? block.text : "")).join("\n");
}

function commandsOf(message: NeutralMessage): string {
  return message.content
    .flatMap((block) => (block.type === "toolCall" ? [block.arguments["command"]] : []))
    .filter((command) => typeof command === "string")
    .map((command) => command.split("\n")[0] ?? "")
    .join("\n");
}

/**
 * What is needed: named by the assistant later and by anybody before. With `unshown` only what it named before a tool
 * or the user showed it again: the rest it did not have to remember. A wish is needed when its words come back.
 */
function needed(
  kind: Kind,
  before: readonly NeutralMessage[],
  after: readonly NeutralMessage[],
  unshown: boolean,
): readonly string[] {
  const known = found(kind, before);
  const beforeText = texts(before);
  const wanted = new Set<string>();
  const seen = new Set<string>();
  let shown = "";
  for (const message of after) {
    if (message.role !== "assistant") {
      shown += `${textOf(message)}\n`;
      continue;
    }
    const body = textOf(message);
    const named =
      kind === "user constraints" ? [...known].filter((wish) => isTakenUp(wish, body)) : found(kind, [message]);
    for (const item of named) {
      if (seen.has(item)) continue;
      seen.add(item);
      const isKnown = known.has(item) || (kind !== "commands" && beforeText.includes(item));
      if (isKnown && !(unshown && shown.includes(item))) wanted.add(item);
    }
  }
  return [...wanted];
}

function isTakenUp(wish: string, body: string): boolean {
  return contentWords(wish).some((word) => body.includes(word));
}

/** Words of a wish that say what it is about. */
function contentWords(wish: string): readonly string[] {
  return (wish.match(/[\w./-]{6,}/g) ?? []).filter((word) => /[A-Z_./-]/.test(word.slice(1)));
}

function isCovered(kind: Kind, item: string, visible: string): boolean {
  if (visible.includes(item)) return true;
  // A file is found by its last two names.
  return kind === "paths" && visible.includes(item.split("/").slice(-2).join("/"));
}

/** By kind. */
export type RecallRow = Readonly<Record<Kind, Tally>>;

function emptyRow(): RecallRow {
  return Object.fromEntries(kindNames.map((kind) => [kind, { needed: 0, covered: 0 }])) as RecallRow;
}

function tally(row: RecallRow, needs: Needs, visible: string): void {
  for (const kind of kindNames) {
    for (const item of needs[kind]) {
      row[kind].needed++;
      if (isCovered(kind, item, visible)) row[kind].covered++;
    }
  }
}

type Needs = Readonly<Record<Kind, readonly string[]>>;

function needsOf(before: readonly NeutralMessage[], after: readonly NeutralMessage[], unshown: boolean): Needs {
  return Object.fromEntries(kindNames.map((kind) => [kind, needed(kind, before, after, unshown)])) as Needs;
}

function percent({ needed: all, covered }: Tally): string {
  return all === 0 ? "-" : `${((100 * covered) / all).toFixed(1)} % of ${all}`;
}

function printRow(name: string, row: RecallRow): void {
  process.stdout.write(
    `| ${name} | ${kindNames.map((kind) => percent(row[kind])).join(" | ")} | ${percent(othersOf(row))} |\n`,
  );
}

/** The newest paths of tool arguments, 900 characters of them: the control that needs no thought. */
function recentPaths(messages: readonly NeutralMessage[]): string {
  const paths = new Set<string>();
  for (const message of messages.toReversed()) {
    for (const block of message.content) {
      const path = block.type === "toolCall" ? block.arguments["path"] : null;
      if (typeof path === "string") paths.add(path);
    }
  }
  let list = "";
  for (const path of paths) if (list.length + path.length + 2 <= 900) list += `${path}, `;
  return list;
}

/** What a measurement found. */
export interface RecallReport {
  readonly points: readonly { readonly name: string; readonly row: RecallRow }[];
  readonly rows: Readonly<Record<RowName, RecallRow>>;
  readonly mostDetailTokens: number;
}

type RowName = "details" | "summary" | "recency" | "stub" | "extractive" | "named";

/** The real compactions, and ten seeded cut points of each conversation. */
export function cutPoints(folder: string, seed: number): readonly CutPoint[] {
  const random = createRandom(seed);
  return conversations.flatMap((name) => {
    const records = readRecords(folder, name);
    return [...realPoints(name, records), ...seededPoints(name, records, 10, random)];
  });
}

/** Measures at each of the cut points. */
export async function measureRecall(folder: string, seed: number): Promise<RecallReport> {
  const counter = await createTokenEstimator().counterFor({ provider: "anthropic", modelId: "claude-sonnet-4-5" });
  const measure = tokenMeasure(counter, emptyCalibration);
  const points = cutPoints(folder, seed);
  const rows = {
    details: emptyRow(),
    summary: emptyRow(),
    recency: emptyRow(),
    stub: emptyRow(),
    extractive: emptyRow(),
    named: emptyRow(),
  };
  const extractive = createExtractiveSummarizer({ countText: measure.countText });
  let mostDetailTokens = 0;
  const each: { readonly name: string; readonly row: RecallRow }[] = [];
  for (const point of points) {
    const { full, prose, removed, kept, all } = summarizedAt(point, measure);
    const keptText = texts(kept);
    mostDetailTokens = Math.max(mostDetailTokens, measure.countText(full) - measure.countText(proseOf(full)));
    const after = buildContext(point.after, { headId: point.after.at(-1)?.id ?? null }).messages;
    const needs = needsOf(all, after, true);
    const row = emptyRow();
    tally(row, needs, `${full}\n${keptText}`);
    tally(rows.details, needs, `${full}\n${keptText}`);
    tally(rows.summary, needs, `${prose}\n${keptText}`);
    tally(rows.recency, needs, `${prose}\n${recentPaths(removed)}\n${keptText}`);
    tally(rows.stub, needs, keptText);
    const text = renderText({ ...buildContext([]), messages: removed }, { toolResultChars: 2000 });
    const taken = await extractive.summarize({ text, previousSummary: null, maxOutputTokens: 2000 });
    tally(rows.extractive, needs, `${taken.summary}\n${keptText}`);
    tally(rows.named, needsOf(all, after, false), `${full}\n${keptText}`);
    each.push({ name: `${point.name} (${removed.length} removed, ${kept.length} kept)`, row });
  }
  return { points: each, rows, mostDetailTokens };
}

/** What a request would begin with after a compaction at the point. */
export function summarizedAt(
  point: CutPoint,
  measure: TokenMeasure,
): {
  readonly full: string;
  readonly prose: string;
  readonly removed: readonly NeutralMessage[];
  readonly kept: readonly NeutralMessage[];
  readonly all: readonly NeutralMessage[];
} {
  const { countMessage, countText } = measure;
  const settings = settingsForWindow({}, windowTokens);
  const plan = planCompaction({ records: point.before, totalTokens: null, countMessage, settings });
  if (plan.kind === "nothing") throw new Error(`${point.name}: ${plan.reason}`);
  const all = buildContext(point.before).messages;
  const kept = keptOf(point, all, plan);
  const removed = all.slice(all[0]?.role === "compactionSummary" ? 1 : 0, all.length - kept.length);
  const details = extractDetails(removed, { kept });
  const prose = point.isReal ? point.prose : [plan.previous?.prose ?? "", point.prose].join("\n");
  const maxDetailTokens = settings.maxDetailTokens;
  const full = summaryText({ prose, details, maxDetailTokens, countText, visibleText: texts(kept) });
  return { full, prose, removed, kept, all };
}

/** All kinds but paths together. */
export function othersOf(row: RecallRow): Tally {
  const others = kindNames.filter((kind) => kind !== "paths").map((kind) => row[kind]);
  return others.reduce((sum, one) => ({ needed: sum.needed + one.needed, covered: sum.covered + one.covered }));
}

function printReport({ points, rows, mostDetailTokens }: RecallReport, withPoints: boolean): void {
  const header = ["", ...kindNames, "all but paths"];
  process.stdout.write(`| ${header.join(" | ")} |\n|${"--|".repeat(header.length)}\n`);
  if (withPoints) for (const { name, row } of points) printRow(name, row);
  printRow("summary, details, kept part", rows.details);
  printRow("control: summary and kept part", rows.summary);
  printRow("control: the same and the newest paths", rows.recency);
  printRow("control: stub, that is the kept part alone", rows.stub);
  printRow("control: extractive summary of 2,000 tokens and kept part", rows.extractive);
  printRow("summary, details, kept part: of all that is named", rows.named);
  process.stdout.write(`\n${points.length} cut points, details of at most ${mostDetailTokens} tokens\n`);
}

/** At a real compaction what it kept itself. */
function keptOf(point: CutPoint, all: readonly NeutralMessage[], plan: CompactionPlan): readonly NeutralMessage[] {
  const keptId = point.keptId ?? plan.firstKeptId;
  const from = all.findIndex(({ recordId }) => recordId === keptId);
  return from < 0 ? all.slice(all.findIndex(({ recordId }) => recordId === plan.firstKeptId)) : all.slice(from);
}

if (import.meta.main) {
  const { values: flags } = parseArgs({
    options: { rows: { type: "boolean", default: false }, seed: { type: "string", default: "7" } },
  });
  const folder = process.env["THROUGHLINE_CORPUS"];
  if (folder === undefined) {
    process.stderr.write("THROUGHLINE_CORPUS names no folder\n");
    process.exitCode = 2;
  } else {
    printReport(await measureRecall(folder, Number(flags.seed)), flags.rows);
  }
}
