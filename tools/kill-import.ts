import { spawn, type ChildProcess } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import type { SessionStore } from "../packages/core/src/index.ts";
import { listSessions } from "../packages/core/src/internal.ts";
import { createJsonlStore } from "../packages/store-jsonl/src/index.ts";
import { createSqliteStore } from "../packages/store-sqlite/src/index.ts";
import { copySessions, importPaths } from "../packages/transfer/src/index.ts";
import { SourceSync } from "../packages/transfer/src/internal.ts";
import { writeScaleDirectory, type ScalePlan } from "../lab/import-scale.ts";

/** Imports, copies and syncs that are killed at random moments and taken up, against those that nobody disturbed. */
export interface KillReport {
  readonly kills: number;
  /** How many of them struck a process that had begun to write. */
  readonly struck: number;
  /** Differences to what was never interrupted; empty when all is well. */
  readonly problems: readonly string[];
}

type Work = "import" | "copy" | "sync";

function openStore(url: string): SessionStore {
  const path = url.slice(url.indexOf(":") + 1);
  return url.startsWith("jsonl:") ? createJsonlStore({ root: path, create: true }) : createSqliteStore({ path });
}

/** One run: says when it has begun, and what was refused. */
async function workHere(work: Work, source: string, target: string, say: (fields: Said) => void): Promise<void> {
  await using to = openStore(target);
  const refuse = (error: Error | null): void => {
    if (error !== null) say({ refused: error.message });
  };
  if (work === "import") {
    for await (const { error } of importPaths(to, [source], { onProgress: () => say({}) })) refuse(error);
    return;
  }
  if (work === "sync") {
    await using sync = new SourceSync({
      openStore: () => Promise.resolve(to),
      places: () => [source],
      options: {},
      userHome: source,
      memoryPath: `${target.slice(target.indexOf(":") + 1)}.memory`,
      identity: target,
      progress: { step: () => say({}) },
    });
    for await (const { error } of sync.pass()) refuse(error);
    return;
  }
  await using from = openStore(source);
  for await (const { error } of copySessions(from, to)) {
    say({});
    refuse(error);
  }
}

interface Said {
  readonly refused?: string;
}

interface Ending {
  readonly hasBegun: boolean;
  readonly wasKilled: boolean;
  readonly refused: readonly string[];
}

function start(work: Work, source: string, target: string): ChildProcess {
  const args = ["--conditions=@throughline/source", import.meta.filename, "--work", work, source, target];
  return spawn(process.execPath, args, {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, NODE_OPTIONS: "" },
  });
}

/** Kills the process so long after it has begun to write; null: lets it end. */
function ending(child: ChildProcess, killAfterMs: number | null): Promise<Ending> {
  let text = "";
  let timer: NodeJS.Timeout | null = null;
  child.stdout?.on("data", (chunk: Buffer) => {
    text += chunk.toString();
    if (killAfterMs !== null) timer ??= setTimeout(() => child.kill("SIGKILL"), killAfterMs);
  });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => {
      if (timer !== null) clearTimeout(timer);
      const said = text.split("\n").slice(0, -1);
      const refused = refusals(said.map((line) => JSON.parse(line) as Said));
      if (code !== 0 && signal !== "SIGKILL") reject(new Error(`a run ended with ${String(code ?? signal)}`));
      else resolve({ hasBegun: said.length > 0, wasKilled: signal === "SIGKILL", refused });
    });
  });
}

/** The same in this process, to its end. */
async function undisturbed(work: Work, source: string, target: string): Promise<Ending> {
  const said: Said[] = [];
  await workHere(work, source, target, (fields) => said.push(fields));
  return { hasBegun: said.length > 0, wasKilled: false, refused: refusals(said) };
}

function refusals(said: readonly Said[]): readonly string[] {
  return said.flatMap(({ refused }) => (refused === undefined ? [] : [refused]));
}

/** What a store holds, without when it was put there. */
async function fingerprint(url: string): Promise<string> {
  await using store = openStore(url);
  const hash = createHash("sha256");
  for (const agentId of ["main", "work"]) {
    const query = { namespace: "", agentId, state: "any", sort: "key", limit: 200 } as const;
    for await (const { ref, entry, head, archived } of listSessions(store, query)) {
      hash.update(JSON.stringify([ref, entry, head, archived]));
      for await (const { records } of store.read(ref, { payload: "source" })) {
        for (const { seq, source } of records) hash.update(JSON.stringify([seq, source]));
      }
    }
  }
  return hash.digest("hex");
}

/** One work, killed until it has been so often, then left to end. */
async function killed(work: Work, source: string, target: string, kills: number): Promise<readonly Ending[]> {
  const endings: Ending[] = [];
  while (endings.length < kills) {
    // Most moments lie early, where much is left to do; a process that ends first was not killed.
    const end = await ending(start(work, source, target), Math.random() ** 2 * 120);
    endings.push(end);
    if (!end.wasKilled) break;
  }
  return [...endings, await undisturbed(work, source, target)];
}

function problemsOf(name: string, endings: readonly Ending[]): readonly string[] {
  return endings.flatMap(({ refused }) => refused.map((message) => `${name}: refused: ${message}`));
}

/** @param kills how many of each work: import, copy and sync */
export async function runKills(plan: ScalePlan, kills: number, tell: (line: string) => void): Promise<KillReport> {
  const folder = mkdtempSync(join(tmpdir(), "throughline-kill-import-"));
  try {
    const source = join(folder, "state");
    await writeScaleDirectory(source, plan);
    const calm = `sqlite:${join(folder, "calm.db")}`;
    const problems: string[] = [...problemsOf("import", [await undisturbed("import", source, calm)])];
    const expected = await fingerprint(calm);
    let [done, struck] = [0, 0];
    for (const work of ["import", "copy", "sync"] as const) {
      for (let round = 0, left = kills; left > 0; round++) {
        const target =
          round % 2 === 0
            ? `sqlite:${join(folder, `${work}-${round}.db`)}`
            : `jsonl:${join(folder, `${work}-${round}`)}`;
        const endings = await killed(work, work === "copy" ? calm : source, target, Math.min(left, 5));
        const here = endings.filter(({ wasKilled }) => wasKilled).length;
        struck += endings.filter(({ wasKilled, hasBegun }) => wasKilled && hasBegun).length;
        left -= Math.max(1, here);
        done += here;
        problems.push(...problemsOf(`${work} ${round}`, endings));
        if ((await fingerprint(target)) !== expected) problems.push(`${work} ${round}: the store holds something else`);
        tell(`${work} into ${target.slice(0, target.indexOf(":"))}: killed ${here} times`);
      }
    }
    const both = `sqlite:${join(folder, "both.db")}`;
    // One of two that write the same session is told so; what counts is what is there in the end.
    await Promise.all([ending(start("import", source, both), null), undisturbed("import", source, both)]);
    problems.push(...problemsOf("after two at once", [await undisturbed("import", source, both)]));
    if ((await fingerprint(both)) !== expected) problems.push("two imports at once: the store holds something else");
    return { kills: done, struck, problems };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

if (import.meta.main) {
  const [first, work, source = "", target = ""] = process.argv.slice(2);
  if (first === "--work")
    await workHere(work === "copy" || work === "sync" ? work : "import", source, target, (fields) =>
      process.stdout.write(`${JSON.stringify(fields)}\n`),
    );
  else {
    const kills = Number(first ?? 30);
    const report = await runKills({ sessions: 200, records: 10_000 }, kills, (line) =>
      process.stdout.write(`${line}\n`),
    );
    for (const problem of report.problems) process.stdout.write(`${problem}\n`);
    process.stdout.write(
      `kills: ${report.kills} (${report.struck} while writing), problems: ${report.problems.length}\n`,
    );
    process.exitCode = report.problems.length === 0 ? 0 : 1;
  }
}
