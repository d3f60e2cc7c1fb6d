// Search marks: for how many questions, whose answer stands in a known place, `memory_search` shows that place among the
// first 1 and 5. A place counts when its episode holds a record that the question names. FOLDER has `locomo10.json` of
// LoCoMo, `beam/N/` of BEAM's 100K part and `filler/*.json`, chats of another part. Stores stay in FOLDER/stores for the next
// run. `--against` gives the paired difference to the outcomes of another state of the code. `--grouped` asks as
// `throughline search` does: a place is a session, and counts when one of its three hits is a record that the question names.
// `all` asks the questions of every set, each conversation alone, together and among fillers: the rows of the decision.
// node --conditions=@throughline/source lab/search-marks.ts all|locomo FOLDER [--together] [--records 200000] [--every 3] [--grouped] [--out FILE] [--against FILE]
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { sessionRef, type SessionStore } from "../packages/core/src/index.ts";
import { HitGroups } from "../packages/core/src/internal.ts";
import { createSqliteStore } from "../packages/store-sqlite/src/index.ts";
import { createMemorySearchTool, type MemoryHit } from "../packages/tools/src/workspace/memory-search-tool.ts";
import type { PassageScorer } from "../packages/tools/src/search/passage-scorer.ts";
import { findHits } from "../packages/tools/src/search/find-hits.ts";
import { readSet, setNames, type QuestionSet, type SetName, type SetSession } from "./search-marks/question-set.ts";
import { fillerSessions } from "./search-marks/filler.ts";

/** States at which place the evidence of a question stood, from 1; 0 when it was not shown. */
export interface Outcome {
  readonly id: string;
  readonly place: number;
  readonly cpuMs: number;
}

export interface Place {
  readonly sessionId: string;
  readonly seq: number;
}

const minuteMs = 60_000;

/** Writes the sessions of a set into a store, and returns where each label stands. */
export async function fillStore(
  store: SessionStore,
  set: QuestionSet,
  isTogether: boolean,
): Promise<ReadonlyMap<string, Place>> {
  const places = new Map<string, Place>();
  for (const { name, sessions } of set.conversations)
    for (const session of sessions) {
      const sessionId = `${name}-${session.name}`;
      for (const [index, { label }] of session.records.entries()) places.set(label, { sessionId, seq: index + 1 });
      await writeSession(store, isTogether ? "all" : agentOf(name), sessionId, session);
    }
  return places;
}

function agentOf(conversation: string): string {
  return conversation.toLowerCase();
}

export async function writeSession(
  store: SessionStore,
  agent: string,
  sessionId: string,
  { startMs, records }: SetSession,
): Promise<void> {
  const ref = sessionRef({ key: `agent:${agent}:${sessionId.toLowerCase()}` });
  if ((await store.load(ref)) !== null) return;
  await store.save(ref, { sessionId }, { ifRevision: null });
  for (let from = 0; from < records.length; from += 500) {
    const drafts = records.slice(from, from + 500).map(({ message }, index) => ({
      type: "message",
      timestamp: new Date(startMs + (from + index) * minuteMs).toISOString(),
      message,
    }));
    await store.append(ref, drafts);
  }
}

/** Asks every question of a set, and yields the outcomes. */
export async function* measureSet(
  store: SessionStore,
  set: QuestionSet,
  places: ReadonlyMap<string, Place>,
  isTogether: boolean,
  scorer?: PassageScorer,
): AsyncGenerator<Outcome> {
  const root = mkdtempSync(join(tmpdir(), "search-marks-"));
  try {
    const tool = createMemorySearchTool({
      root,
      store,
      sessions: "agent",
      ...(scorer === undefined ? {} : { scorer }),
    });
    for (const { id, conversation, text, evidence } of set.questions) {
      const ref = sessionRef({ key: `agent:${isTogether ? "all" : agentOf(conversation)}:asking` });
      const before = process.cpuUsage();
      const answer = await tool.run(
        { query: text, limit: 20 },
        { ref, callId: "c", signal: new AbortController().signal },
      );
      const { user, system } = process.cpuUsage(before);
      if (typeof answer === "string") throw new Error("A result with details was expected.");
      const { hits } = answer.details as { readonly hits: readonly MemoryHit[] };
      const wanted = evidence.flatMap((label) => places.get(label) ?? []);
      const place = 1 + hits.findIndex((hit) => wanted.some((each) => holds(hit, each)));
      yield { id, place, cpuMs: (user + system) / 1000 };
    }
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

/** Asks every question as `throughline search` does, and yields the outcomes. */
async function* measureGroups(
  store: SessionStore,
  set: QuestionSet,
  places: ReadonlyMap<string, Place>,
  isTogether: boolean,
): AsyncGenerator<Outcome> {
  for (const { id, conversation, text, evidence } of set.questions) {
    const agentId = isTogether ? "all" : agentOf(conversation);
    const place = { namespace: "", agentId, state: "active", session: null, isScan: false } as const;
    const before = process.cpuUsage();
    const { hits, isRanked } = findHits(store, { text, ...place, limit: 1000, signal: new AbortController().signal });
    const groups = new HitGroups(3, { isRanked });
    for await (const hit of hits) groups.add(hit);
    const taken = groups.take();
    const { user, system } = process.cpuUsage(before);
    const wanted = new Set(evidence.flatMap((label) => places.get(label) ?? []).map(nameOf));
    const at = taken.findIndex(({ best }) => best.some((hit) => wanted.has(nameOf(hit))));
    yield { id, place: at + 1, cpuMs: (user + system) / 1000 };
  }
}

function nameOf({ sessionId, seq }: Place): string {
  return `${sessionId} ${seq}`;
}

function holds(hit: MemoryHit, { sessionId, seq }: Place): boolean {
  return hit.kind === "session" && hit.sessionId === sessionId && hit.firstSeq <= seq && seq <= hit.lastSeq;
}

/** Opens the store of a set, and fills it unless an earlier run did. */
async function storeOf(
  folder: string,
  name: string,
  fill: (store: SessionStore) => Promise<void>,
): Promise<SessionStore> {
  const stores = join(folder, "stores");
  mkdirSync(stores, { recursive: true });
  const path = join(stores, name);
  if (!existsSync(path)) {
    const building = `${path}.building`;
    rmSync(building, { recursive: true, force: true });
    mkdirSync(building);
    const store = createSqliteStore({ path: join(building, "store.db"), searchFill: "on-demand" });
    await fill(store);
    for await (const left of store.search?.fill?.() ?? [])
      if (left % 50_000 < 500) process.stderr.write(`${left} left\n`);
    await store.close();
    renameSync(building, path);
  }
  return createSqliteStore({ path: join(path, "store.db"), searchFill: "on-demand" });
}

const atFirst = (outcomes: readonly Outcome[], most: number): readonly number[] =>
  outcomes.map(({ place }) => (place > 0 && place <= most ? 1 : 0));
const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
const percent = (share: number): string => (100 * share).toFixed(1);

/** Returns the mean difference of paired outcomes in points, with its 95 % interval. */
export function pairedDifference(
  before: readonly number[],
  after: readonly number[],
): readonly [number, number, number] {
  const differences = after.map((value, index) => 100 * (value - (before[index] ?? 0)));
  const average = mean(differences);
  const variance = differences.reduce((sum, each) => sum + (each - average) ** 2, 0) / (differences.length - 1);
  const half = 1.96 * Math.sqrt(variance / differences.length);
  return [average, average - half, average + half];
}

function report(name: string, outcomes: readonly Outcome[], against: readonly Outcome[] | null): string {
  const cpu = outcomes.map(({ cpuMs }) => cpuMs).toSorted((one, other) => one - other);
  const median = cpu[Math.floor(cpu.length / 2)] ?? 0;
  const shares = [1, 5, 20].map((most) => percent(mean(atFirst(outcomes, most))));
  const lines = [
    `| ${name} | ${outcomes.length} | ${shares.join(" | ")} | ${mean(cpu).toFixed(1)} | ${median.toFixed(1)} |`,
  ];
  if (against !== null) {
    const known = new Map(against.map((outcome) => [outcome.id, outcome]));
    const both = outcomes.filter(({ id }) => known.has(id));
    const before = both.map(({ id }) => known.get(id) as Outcome);
    for (const most of [1, 5]) {
      const [average, low, high] = pairedDifference(atFirst(before, most), atFirst(both, most));
      lines.push(
        `|   change at ${most} | ${both.length} | ${average.toFixed(1)} | ${low.toFixed(1)} to ${high.toFixed(1)} |`,
      );
    }
  }
  return `${lines.join("\n")}\n`;
}

function readOutcomes(path: string): readonly Outcome[] {
  return JSON.parse(readFileSync(path, "utf8")) as readonly Outcome[];
}

interface Row {
  readonly name: SetName;
  readonly isTogether: boolean;
  /** States the number of records with the fillers; 0 without fillers. */
  readonly records: number;
  readonly every: number;
}

const row = (name: SetName, isTogether = false, records = 0, every = 1): Row => ({ name, isTogether, records, every });

/** The large sets ask some of their questions only. */
const allRows: readonly Row[] = [
  row("own"),
  row("own", true, 5000),
  row("own", true, 200_000),
  row("locomo"),
  row("locomo", true, 0, 2),
  row("locomo", true, 55_882, 3),
  row("locomo", true, 200_000, 3),
  row("beam"),
  row("beam", true),
  row("beam-later"),
  row("beam-later", true),
];

/** Opens the store of a row, asks its questions, and returns its title and the outcomes. */
async function measureRow(
  { name, isTogether, records, every }: Row,
  folder: string,
  measure: typeof measureSet,
): Promise<readonly [title: string, outcomes: readonly Outcome[]]> {
  const whole = readSet(name, folder);
  const set = { ...whole, questions: whole.questions.filter((_, index) => index % every === 0) };
  let places: ReadonlyMap<string, Place> = new Map();
  const title = `${name}-${records > 0 ? records : isTogether ? "together" : "alone"}`;
  await using store = await storeOf(folder, title, async (fresh) => {
    places = await fillStore(fresh, set, isTogether);
    for (const session of fillerSessions(join(folder, "filler"), records - places.size))
      await writeSession(fresh, "all", session.name, session);
  });
  // Sessions that are there are not written again.
  places = await fillStore(store, set, isTogether);
  return [title, await Array.fromAsync(measure(store, set, places, isTogether))];
}

async function main(): Promise<void> {
  const { values: flags, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      together: { type: "boolean", default: false },
      records: { type: "string", default: "0" },
      out: { type: "string" },
      against: { type: "string" },
      every: { type: "string", default: "1" },
      grouped: { type: "boolean", default: false },
    },
  });
  const [name = "", folder = ""] = positionals;
  if (!["all", ...setNames].includes(name) || folder === "") {
    process.stderr.write(`Usage: search-marks.ts all|${setNames.join("|")} FOLDER\n`);
    process.exitCode = 2;
    return;
  }
  const records = Number(flags.records);
  const given = row(name as SetName, flags.together || records > 0, records, Number(flags.every));
  for (const each of name === "all" ? allRows : [given]) {
    const [title, outcomes] = await measureRow(each, folder, flags.grouped ? measureGroups : measureSet);
    if (flags.out !== undefined) writeFileSync(flags.out, JSON.stringify(outcomes));
    process.stdout.write(report(title, outcomes, flags.against === undefined ? null : readOutcomes(flags.against)));
  }
}

if (import.meta.main) await main();
