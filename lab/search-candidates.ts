// Candidate recall: of how many LoCoMo questions among fillers the evidence stands within four records of the first 400 hits for
// any of the words, on which the ranking of `memory_search` works, and what the question costs. FOLDER as for search-marks.
// `--set own` asks our own questions instead.
// node --conditions=@throughline/source lab/search-candidates.ts sqlite|postgres FOLDER [--set own] [--records 200000] [--every 3]
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import type { SearchHit, SessionStore } from "../packages/core/src/index.ts";
import { createPostgresStore } from "../packages/store-postgres/src/index.ts";
import { startPostgres } from "../packages/store-postgres/test/postgres-server.ts";
import { createSqliteStore } from "../packages/store-sqlite/src/index.ts";
import { wordsToLookUp } from "../packages/tools/src/search/words-to-look-up.ts";
import { fillStore, measureSet, writeSession, type Place } from "./search-marks.ts";
import { fillerSessions } from "./search-marks/filler.ts";
import { readSet, setNames, type QuestionSet, type SetName } from "./search-marks/question-set.ts";

interface RawClient {
  connect(): Promise<unknown>;
  query(text: string): Promise<{ rows: Record<string, unknown>[] }>;
  end(): Promise<void>;
}

const mostCandidates = 400;
const near = 4;

interface Opened {
  readonly store: SessionStore;
  /** Returns the CPU time of the server's processes so far, in ms; 0 without a server. */
  serverMs(): Promise<number>;
  close(): Promise<void>;
}

function openSqlite(): Opened {
  const folder = mkdtempSync(join(tmpdir(), "search-candidates-"));
  const store = createSqliteStore({ path: join(folder, "store.db"), searchFill: "on-demand" });
  const close = async (): Promise<void> => {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  };
  return { store, serverMs: () => Promise.resolve(0), close };
}

async function openPostgres(): Promise<Opened> {
  const server = await startPostgres();
  if ("unavailable" in server) throw new Error(server.unavailable);
  const require = createRequire(new URL("../packages/store-postgres/package.json", import.meta.url));
  const pg = require("pg") as { readonly Client: new (options: { connectionString: string }) => RawClient };
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  const store = createPostgresStore({ url: server.url });
  return {
    store,
    async serverMs() {
      const { rows } = await client.query("SELECT pid FROM pg_stat_activity WHERE application_name = 'throughline'");
      return rows.reduce(
        (sum, { pid }) => sum + Number(readFileSync(`/proc/${Number(pid)}/schedstat`, "utf8").split(" ")[0]) / 1e6,
        0,
      );
    },
    async close() {
      await client.end();
      await store.close();
      await server.stop();
    },
  };
}

async function main(): Promise<void> {
  const { values: flags, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      set: { type: "string", default: "locomo" },
      records: { type: "string", default: "5882" },
      every: { type: "string", default: "1" },
    },
  });
  const [kind = "", folder = ""] = positionals;
  if (!["sqlite", "postgres"].includes(kind) || folder === "" || !setNames.includes(flags.set as SetName)) {
    process.stderr.write("Usage: search-candidates.ts sqlite|postgres FOLDER\n");
    process.exitCode = 2;
    return;
  }
  const whole = readSet(flags.set as SetName, folder);
  const set = { ...whole, questions: whole.questions.filter((_, index) => index % Number(flags.every) === 0) };
  const opened = kind === "sqlite" ? openSqlite() : await openPostgres();
  try {
    const places = await fillStore(opened.store, set, true);
    for (const session of fillerSessions(join(folder, "filler"), Number(flags.records) - places.size))
      await writeSession(opened.store, "all", session.name, session);
    for await (const left of opened.store.search?.fill?.() ?? [])
      if (left % 50_000 < 500) process.stderr.write(`${left} left\n`);
    await report(`${flags.set}, ${kind} ${flags.records}`, opened, set, places);
  } finally {
    await opened.close();
  }
}

async function report(
  name: string,
  opened: Opened,
  set: QuestionSet,
  places: ReadonlyMap<string, Place>,
): Promise<void> {
  const facet = opened.store.search;
  if (facet === undefined) throw new Error("The store has no search index.");
  let found = 0;
  const candidates = await timed(opened, async () => {
    for (const { text, evidence } of set.questions) {
      const asked = { anyOf: wordsToLookUp(text), agentId: "all", state: "active", limit: mostCandidates } as const;
      const hits = await Array.fromAsync(facet.search(asked));
      if (evidence.some((label) => isNear(places.get(label), hits))) found++;
    }
  });
  let atFive = 0;
  const whole = await timed(opened, async () => {
    for await (const { place } of measureSet(opened.store, set, places, true)) if (place > 0 && place <= 5) atFive++;
  });
  const count = set.questions.length;
  const percent = (part: number): string => `${((100 * part) / count).toFixed(1)} %`;
  const each = ({ wallMs, cpuMs, serverMs }: Cost): string =>
    [wallMs, cpuMs, serverMs].map((ms) => (ms / count).toFixed(1)).join(" | ");
  process.stdout.write(`| | questions | evidence | ms | CPU ms | CPU ms of the server |\n`);
  process.stdout.write(`| ${name}, candidates | ${count} | ${percent(found)} | ${each(candidates)} |\n`);
  process.stdout.write(`| ${name}, memory_search at five | ${count} | ${percent(atFive)} | ${each(whole)} |\n`);
}

interface Cost {
  readonly wallMs: number;
  readonly cpuMs: number;
  readonly serverMs: number;
}

async function timed({ serverMs }: Opened, work: () => Promise<void>): Promise<Cost> {
  const [wall, cpu, server] = [performance.now(), process.cpuUsage(), await serverMs()];
  await work();
  const { user, system } = process.cpuUsage(cpu);
  return {
    wallMs: performance.now() - wall,
    cpuMs: (user + system) / 1000,
    serverMs: (await serverMs()) - server,
  };
}

function isNear(place: Place | undefined, hits: readonly SearchHit[]): boolean {
  if (place === undefined) return false;
  return hits.some(({ sessionId, seq }) => sessionId === place.sessionId && Math.abs(seq - place.seq) <= near);
}

if (import.meta.main) await main();
