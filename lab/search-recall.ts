// Search recall: of what the assistant names after a cut and had been named before it, how often `memory_search` finds the
// place when it is asked with what the user said next, or with the command that failed. The question never holds what is
// looked for. A file is known by its last two names, as in compaction-recall. With `--sessions`, every transcript of a folder is
// imported, of any program, and the compactor compacts it about ten times. What is asked first then is the request under work.
// THROUGHLINE_CORPUS=<folder> node --conditions=@throughline/source lab/search-recall.ts [--seed 7] [--index] [--misses]
// node --conditions=@throughline/source lab/search-recall.ts --sessions FOLDER [--misses]
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { sessionRef, type SessionStore } from "../packages/core/src/index.ts";
import { searchText } from "../packages/core/src/search-text.ts";
import { createMemoryStore } from "../packages/store-memory/src/index.ts";
import { createSqliteStore } from "../packages/store-sqlite/src/index.ts";
import { createMemorySearchTool } from "../packages/tools/src/workspace/memory-search-tool.ts";
import type { TokenMeasure } from "../packages/compaction/src/compaction-work.ts";
import { tokenMeasure } from "../packages/compaction/src/compactor.ts";
import { createTokenEstimator, emptyCalibration } from "../packages/tokens/src/index.ts";
import { cutPoints, summarizedAt, texts as textsOf, type CutPoint } from "./compaction-recall.ts";
import { measureChain, readTranscripts } from "./search-recall/chain.ts";
import {
  askOccasions,
  count,
  emptyRecall,
  type Measuring,
  type Miss,
  type SearchRecall,
  type SearchTally,
} from "./search-recall/occasions.ts";

export async function measureSearch(
  folder: string,
  seed: number,
  withIndex: boolean,
  missed: ((miss: Miss) => void) | null = null,
): Promise<SearchRecall> {
  const counter = await createTokenEstimator().counterFor({ provider: "anthropic", modelId: "claude-sonnet-4-5" });
  const measure = tokenMeasure(counter, emptyCalibration);
  const recall = emptyRecall();
  const measuring: Measuring = { recall, nearest: new Map(), missed };
  const place = mkdtempSync(join(tmpdir(), "search-recall-"));
  try {
    for (const [index, point] of cutPoints(folder, seed).entries()) {
      await using store = withIndex
        ? createSqliteStore({ path: join(place, `${index}.db`) })
        : (createMemoryStore() as SessionStore);
      await measurePoint(store, place, point, measure, measuring);
    }
    for (const isFound of measuring.nearest.values()) count(recall.once, isFound);
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
  return recall;
}

async function measurePoint(
  store: SessionStore,
  root: string,
  point: CutPoint,
  measure: TokenMeasure,
  measuring: Measuring,
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
  await askOccasions({ name: point.name, ref, tool, texts, inFront, after: point.after }, measuring);
}

type Missed = ((miss: Miss) => void) | null;

/** Measures every transcript of a folder, and prints a line for each. */
async function measureSessions(
  folder: string,
  missed: Missed,
): Promise<readonly [early: SearchRecall, late: SearchRecall]> {
  const early: Measuring = { recall: emptyRecall(), nearest: new Map(), missed };
  const late: Measuring = { recall: emptyRecall(), nearest: new Map(), missed };
  for (const transcript of await readTranscripts(folder)) {
    const compactions = await measureChain(transcript, { early, late });
    process.stdout.write(`${transcript.name}: ${transcript.records.length} records, ${compactions} compactions\n`);
  }
  for (const { recall, nearest } of [early, late]) for (const isFound of nearest.values()) count(recall.once, isFound);
  return [early.recall, late.recall];
}

function print(recall: SearchRecall): void {
  const rows: readonly (readonly [string, SearchTally])[] = [
    ["asked with what came first after the cut, place in the top 5", recall.next],
    ["asked with any later user message", recall.user],
    ["asked with a command that failed", recall.command],
    ["both, each once", recall.once],
    ["each thing by itself: its place in the top 5", recall.things],
    ["each thing by itself: to be read in the answer", recall.shown],
    ["each path: in the summary or the kept part", recall.pathsInFront],
    ["each path: in the summary, the kept part or its place in the top 5", recall.paths],
    ["each path: in the summary, the kept part or the answer itself", recall.pathsRead],
    ["each other thing: in the summary or the kept part", recall.othersInFront],
    ["each other thing: in the summary, the kept part or its place in the top 5", recall.others],
    ["each other thing: in the summary, the kept part or the answer itself", recall.othersRead],
    ["control: as many of the newest records", recall.newest],
  ];
  for (const [name, { asked, found }] of rows)
    process.stdout.write(`| ${name} | ${((100 * found) / Math.max(1, asked)).toFixed(1)} % of ${asked} |\n`);
}

async function main(): Promise<void> {
  const { values: flags } = parseArgs({
    options: {
      seed: { type: "string", default: "7" },
      index: { type: "boolean", default: false },
      misses: { type: "boolean", default: false },
      sessions: { type: "string" },
    },
  });
  const missed: Missed = flags.misses ? (miss) => process.stdout.write(`${JSON.stringify(miss)}\n`) : null;
  const corpus = process.env["THROUGHLINE_CORPUS"];
  if (flags.sessions !== undefined) {
    const [early, late] = await measureSessions(flags.sessions, missed);
    process.stdout.write("\nbehind the first nine compactions\n");
    print(early);
    process.stdout.write("\nbehind ten compactions and more\n");
    print(late);
  } else if (corpus === undefined) {
    process.stderr.write("Neither --sessions nor THROUGHLINE_CORPUS names a folder\n");
    process.exitCode = 2;
  } else {
    print(await measureSearch(corpus, Number(flags.seed), flags.index, missed));
  }
}

if (import.meta.main) await main();
