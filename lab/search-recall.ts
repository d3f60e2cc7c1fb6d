// Search recall: of what the assistant names after a cut and had been named before it, how often `memory_search` finds the
// place when it is asked with what the user said next, or with the command that failed. The question never holds what is
// looked for. A file is known by its last two names, as in compaction-recall. THROUGHLINE_CORPUS=<folder> node --conditions=@throughline/source lab/search-recall.ts [--seed 7] [--index] [--misses]
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { sessionRef, type SessionStore } from "../packages/core/src/index.ts";
import { searchText } from "../packages/core/src/search-text.ts";
import { buildContext } from "../packages/history/src/index.ts";
import type { NeutralMessage } from "../packages/history/src/neutral-message.ts";
import { createMemoryStore } from "../packages/store-memory/src/index.ts";
import { createSqliteStore } from "../packages/store-sqlite/src/index.ts";
import { createMemorySearchTool, type MemoryHit } from "../packages/tools/src/workspace/memory-search-tool.ts";
import type { TokenMeasure } from "../packages/compaction/src/compaction-work.ts";
import { tokenMeasure } from "../packages/compaction/src/compactor.ts";
import { createTokenEstimator, emptyCalibration } from "../packages/tokens/src/index.ts";
import {
  canonical,
  cutPoints,
  kinds,
  said,
  summarizedAt,
  textOf,
  texts as textsOf,
  type CutPoint,
  type Kind,
} from "./compaction-recall.ts";

/** What the user said, or the command that failed, and what was needed from then on until the next of these. */
interface Occasion {
  readonly kind: "user" | "command";
  readonly question: string;
  readonly needed: Map<string, Kind>;
}

/** How many were looked for, and how many of them found. */
export interface SearchTally {
  asked: number;
  found: number;
}

export interface SearchRecall {
  /**
   * Of the first occasion after each cut that needed something, a user message or a command that failed: a place with
   * some of it is among the best five.
   */
  readonly next: SearchTally;
  /** The same of every user message behind every cut. */
  readonly user: SearchTally;
  /** Of every command that failed. */
  readonly command: SearchTally;
  /** Of both, each once, after the nearest cut: a message behind twenty cuts is one. */
  readonly once: SearchTally;
  /** Of every single thing that was needed: a place that holds it is among the best five. */
  readonly things: SearchTally;
  /** Of the same: it can be read in the answer itself. */
  readonly shown: SearchTally;
  /** Of the same: in the summary with its details, in the part that was kept, or in its place among the best five. */
  readonly paths: SearchTally;
  /** The same of what is no path. */
  readonly others: SearchTally;
  /** Control: the five newest places of the same size instead of the found ones, by occasion. */
  readonly newest: SearchTally;
}

/** Quoted values and wishes are found like everything else; commands are what is asked with. */
const looked: readonly Kind[] = ["paths", "symbols", "quoted values"];

export async function measureSearch(
  folder: string,
  seed: number,
  withIndex: boolean,
  missed: ((miss: Miss) => void) | null = null,
): Promise<SearchRecall> {
  const counter = await createTokenEstimator().counterFor({ provider: "anthropic", modelId: "claude-sonnet-4-5" });
  const measure = tokenMeasure(counter, emptyCalibration);
  const recall: SearchRecall = {
    next: { asked: 0, found: 0 },
    user: { asked: 0, found: 0 },
    command: { asked: 0, found: 0 },
    once: { asked: 0, found: 0 },
    things: { asked: 0, found: 0 },
    shown: { asked: 0, found: 0 },
    paths: { asked: 0, found: 0 },
    others: { asked: 0, found: 0 },
    newest: { asked: 0, found: 0 },
  };
  const nearest = new Map<string, boolean>();
  const place = mkdtempSync(join(tmpdir(), "search-recall-"));
  try {
    for (const [index, point] of cutPoints(folder, seed).entries()) {
      await using store = withIndex
        ? createSqliteStore({ path: join(place, `${index}.db`) })
        : (createMemoryStore() as SessionStore);
      await measurePoint(store, place, point, { recall, nearest, measure, missed });
    }
    for (const isFound of nearest.values()) count(recall.once, isFound);
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
  return recall;
}

interface Measuring {
  readonly recall: SearchRecall;
  readonly nearest: Map<string, boolean>;
  readonly measure: TokenMeasure;
  readonly missed: ((miss: Miss) => void) | null;
}

/** States what was neither in front of the assistant nor found. */
export interface Miss {
  readonly point: string;
  readonly kind: Kind;
  readonly thing: string;
  readonly question: string;
}

async function measurePoint(
  store: SessionStore,
  root: string,
  point: CutPoint,
  { recall, nearest, measure, missed }: Measuring,
): Promise<void> {
  const { full, kept } = summarizedAt(point, measure);
  const inFront = `${full}\n${textsOf(kept)}`;
  const ref = sessionRef({ key: "agent:main:main" });
  await store.save(ref, { sessionId: "s" }, { ifRevision: null });
  for (let from = 0; from < point.before.length; from += 200) {
    const drafts = point.before.slice(from, from + 200).map(({ record }) => ({ source: JSON.stringify(record) }));
    await store.append(ref, drafts);
  }
  await store.append(ref, [], { entry: {}, windowFromSeq: point.before.length + 1 });
  const texts = point.before.map(({ record }) => searchText(record)?.text ?? "");
  const tool = createMemorySearchTool({ root, store });
  const occasions = occasionsOf(point, texts.join("\n")).filter(({ needed }) => needed.size > 0);
  for (const [index, { kind, question, needed }] of occasions.entries()) {
    const answer = await tool.run({ query: question }, { ref, callId: "c", signal: new AbortController().signal });
    if (typeof answer === "string") throw new Error("A result with details was expected.");
    const { hits } = answer.details as { readonly hits: readonly MemoryHit[] };
    const spans = hits.flatMap((hit) => (hit.kind === "session" ? [[hit.firstSeq, hit.lastSeq] as const] : []));
    const held = spans.map(([first, last]) => texts.slice(first - 1, last).join("\n")).join("\n");
    const size = spans.reduce((sum, [first, last]) => sum + last - first + 1, 0);
    const newest = texts.slice(-size).join("\n");
    const isFound = [...needed.keys()].some((thing) => held.includes(thing));
    count(recall[kind], isFound);
    if (index === 0) count(recall.next, isFound);
    // Cuts come in their order, so that the last one to tell is the nearest.
    nearest.set(`${point.name.split(",")[0]} ${question} ${[...needed.keys()].join(" ")}`, isFound);
    count(recall.newest, size > 0 && [...needed.keys()].some((thing) => newest.includes(thing)));
    for (const [thing, what] of needed) {
      count(recall.things, held.includes(thing));
      count(what === "paths" ? recall.paths : recall.others, held.includes(thing) || inFront.includes(thing));
      if (missed !== null && !held.includes(thing) && !inFront.includes(thing))
        missed({ point: point.name, kind: what, thing, question });
      count(recall.shown, String(answer.content).includes(thing));
    }
  }
}

function count(tally: SearchTally, isFound: boolean): void {
  tally.asked++;
  if (isFound) tally.found++;
}

function occasionsOf(point: CutPoint, before: string): readonly Occasion[] {
  const messages = buildContext(point.after, { headId: point.after.at(-1)?.id ?? null }).messages;
  const occasions: Occasion[] = [];
  const commands = new Map<string, string>();
  const seen = new Set<string>();
  let shown = "";
  for (const message of messages) {
    if (message.role === "assistant") {
      for (const [id, command] of commandsOf(message)) commands.set(id, command);
      addNeeded(message, occasions.at(-1), { before, shown, seen });
      continue;
    }
    const text = message.role === "user" ? said(message) : textOf(message);
    const failed = message.role === "toolResult" && message.isError ? commands.get(message.toolCallId) : undefined;
    const question = message.role === "user" ? text.trim() : (failed ?? "");
    if (question !== "") {
      const kind = message.role === "user" ? "user" : "command";
      occasions.push({ kind, question, needed: new Map() });
    }
    shown += `${text}\n`;
  }
  return occasions;
}

function commandsOf(message: NeutralMessage): readonly (readonly [string, string])[] {
  return message.content.flatMap((block) => {
    const command = block.type === "toolCall" ? block.arguments["command"] : null;
    return block.type === "toolCall" && typeof command === "string" ? [[block.id, command] as const] : [];
  });
}

/** What is named now, was named before the cut, and was shown by nobody since, the question included. */
function addNeeded(
  message: NeutralMessage,
  occasion: Occasion | undefined,
  { before, shown, seen }: { readonly before: string; readonly shown: string; readonly seen: Set<string> },
): void {
  for (const kind of looked) {
    const body = kind === "quoted values" ? said(message) : textOf(message);
    for (const match of body.matchAll(kinds[kind])) {
      const thing = canonical(kind, match[1] ?? match[2] ?? match[0]);
      if (seen.has(thing)) continue;
      seen.add(thing);
      const isNeeded = before.includes(thing) && !shown.includes(thing) && occasion?.question.includes(thing) === false;
      if (isNeeded) occasion.needed.set(thing, kind);
    }
  }
}

if (import.meta.main) {
  const { values: flags } = parseArgs({
    options: {
      seed: { type: "string", default: "7" },
      index: { type: "boolean", default: false },
      misses: { type: "boolean", default: false },
    },
  });
  const folder = process.env["THROUGHLINE_CORPUS"];
  if (folder === undefined) {
    process.stderr.write("THROUGHLINE_CORPUS names no folder\n");
    process.exitCode = 2;
  } else {
    const recall = await measureSearch(
      folder,
      Number(flags.seed),
      flags.index,
      flags.misses ? (miss) => process.stdout.write(`${JSON.stringify(miss)}\n`) : null,
    );
    const rows: readonly (readonly [string, SearchTally])[] = [
      ["asked with what came first after the cut, place in the top 5", recall.next],
      ["asked with any later user message", recall.user],
      ["asked with a command that failed", recall.command],
      ["both, each once", recall.once],
      ["each thing by itself: its place in the top 5", recall.things],
      ["each thing by itself: to be read in the answer", recall.shown],
      ["each path: in the summary, the kept part or its place in the top 5", recall.paths],
      ["each other thing: the same", recall.others],
      ["control: as many of the newest records", recall.newest],
    ];
    for (const [name, { asked, found }] of rows)
      process.stdout.write(`| ${name} | ${((100 * found) / Math.max(1, asked)).toFixed(1)} % of ${asked} |\n`);
  }
}
