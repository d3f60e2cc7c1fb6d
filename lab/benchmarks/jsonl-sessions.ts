// What many sessions cost the JSONL store: the first list of a process, with its index and without one; entry updates among
// few and many, interleaved; and how long sessions.json holds the event loop while it is read, merged and written anew.
// node --conditions=@throughline/source lab/benchmarks/jsonl-sessions.ts [sessions] [sessions with a sessions.json]
import { execFileSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, statSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import process from "node:process";
import { setTimeout as pause } from "node:timers/promises";
import { createJsonlStore } from "../../packages/store-jsonl/src/index.ts";
import { entryOfMany, makeManySessions, refOfMany } from "../../benchmarks/many-sessions.ts";
import { median } from "../../benchmarks/measure.ts";

/** Entry updates of each kind in each store; in its first thousand a process still compiles what it runs. */
const updates = 5000;
const firstUpdates = 1000;

const [mode = "100000", argument = "10000"] = process.argv.slice(2);

if (mode === "list") await list(argument);
else if (mode === "view") await view(argument);
else await main(Number(mode), Number(argument));

/** The first list of a new process. */
async function list(root: string): Promise<void> {
  const before = process.memoryUsage.rss();
  const from = performance.now();
  const store = createJsonlStore({ root, sessionsJson: false });
  const { sessions } = await store.list({ limit: 50 });
  const tookMs = performance.now() - from;
  const rssMb = (process.memoryUsage.rss() - before) / 2 ** 20;
  process.stdout.write(JSON.stringify({ tookMs, rssMb, count: sessions.length }));
  await store.close();
}

/** A process that changes entries while another program changes sessions.json: how long the loop stood still at most. */
async function view(root: string): Promise<void> {
  const path = join(root, "agents/main/sessions/sessions.json");
  const store = createJsonlStore({ root, sessionsJson: true });
  await pause(50);
  const delay = monitorEventLoopDelay({ resolution: 1 });
  const longest: number[] = [];
  const measured = async (work: () => Promise<unknown>): Promise<void> => {
    delay.reset();
    delay.enable();
    // The first tick only starts the clock.
    await pause(10);
    await work();
    await pause(5);
    delay.disable();
    longest.push(delay.max / 1e6);
  };
  const update = (index: number): Promise<unknown> =>
    store.append(refOfMany(index), [], { entry: { totalTokens: performance.now() }, durability: "none" });
  await measured(() => store.load(refOfMany(1)));
  const touched = statSync(path, { bigint: true }).mtimeNs;
  await measured(async () => {
    await update(1);
    while (statSync(path, { bigint: true }).mtimeNs === touched) await pause(25);
  });
  const entries = JSON.parse(readFileSync(path, "utf8")) as Record<string, Record<string, unknown>>;
  const entry = entries[refOfMany(2).key];
  if (entry !== undefined) Object.assign(entry, { label: "another program", updatedAt: Date.now() });
  writeFileSync(path, JSON.stringify(entries, null, 2));
  await measured(() => store.load(refOfMany(2)));
  const changed = (await store.load(refOfMany(2)))?.entry["label"];
  process.stdout.write(JSON.stringify({ longest, isMerged: changed === "another program" }));
  await store.close();
}

function run<T>(...args: readonly string[]): T {
  const options = ["--conditions=@throughline/source", import.meta.filename, ...args];
  return JSON.parse(execFileSync(process.execPath, options).toString()) as T;
}

interface UpdateTimes {
  readonly hot: number[];
  readonly random: number[];
}

/**
 * Medians of entry updates, in milliseconds: in each of the stores by turns, twenty at a time, and by turns with them a
 * control that writes as many bytes as such an update does to a log of its own.
 */
async function updateTimes(stores: readonly { readonly root: string; readonly count: number }[]): Promise<{
  readonly stores: readonly { readonly hot: number; readonly random: number; readonly firstRandom: number }[];
  readonly control: number;
}> {
  const handles = stores.map(({ root }) => createJsonlStore({ root, sessionsJson: false }));
  for (const store of handles) await store.list({ limit: 1 });
  const folder = mkdtempSync(join(tmpdir(), "throughline-bench-"));
  const log = openSync(join(folder, "control.log"), "a");
  const row = Buffer.from(`${JSON.stringify({ op: "save", rows: [entryOfMany(1)] })}\n`);
  const times: UpdateTimes[] = stores.map(() => ({ hot: [], random: [] }));
  const control: number[] = [];
  for (let block = -10; block < updates / 20; block++) {
    for (let each = 0; each < 20; each++) {
      const from = performance.now();
      writeSync(log, row);
      if (block >= 0) control.push(performance.now() - from);
    }
    for (const [place, store] of handles.entries())
      for (const which of ["hot", "random"] as const)
        for (let each = 0; each < 20; each++) {
          const ref = refOfMany(Math.floor(Math.random() * (which === "hot" ? 20 : (stores[place]?.count ?? 0))));
          const from = performance.now();
          await store.append(ref, [], { entry: { totalTokens: from }, durability: "process" });
          if (block >= 0) times[place]?.[which].push(performance.now() - from);
        }
  }
  for (const store of handles) await store.close();
  closeSync(log);
  rmSync(folder, { recursive: true });
  return {
    stores: times.map(({ hot, random }) => ({
      hot: median(hot),
      random: median(random),
      firstRandom: median(random.slice(0, firstUpdates)),
    })),
    control: median(control),
  };
}

async function main(most: number, withView: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "throughline-bench-"));
  try {
    const stores = [100, most].map((count) => ({ root: join(folder, String(count)), count }));
    for (const { root, count } of stores) {
      await makeManySessions(root, count);
      const made = run<{ tookMs: number }>("list", root);
      const warm = Array.from({ length: 7 }, () => run<{ tookMs: number; rssMb: number }>("list", root));
      process.stdout.write(
        `first list of 50 among ${count}: ${median(warm.map(({ tookMs }) => tookMs)).toFixed(1)} ms and ` +
          `${median(warm.map(({ rssMb }) => rssMb)).toFixed(0)} MB; with the index to be made first ${made.tookMs.toFixed(0)} ms\n`,
      );
    }
    const twin = { root: join(folder, "twin"), count: 100 };
    await makeManySessions(twin.root, twin.count);
    const { stores: times, control } = await updateTimes([...stores, twin]);
    const ratio = (place: number, which: "hot" | "random"): string =>
      ((times[place]?.[which] ?? 0) / (times[0]?.[which] ?? 1)).toFixed(2);
    process.stdout.write(
      `entry update, ${most} over 100 sessions: 20 hot keys ${ratio(1, "hot")} (at most 1.5), random ${ratio(1, "random")} ` +
        `(at most 2.5), ${times[1]?.random.toFixed(3)} ms (at most 0.15; the first ${firstUpdates} of a process ` +
        `${times[1]?.firstRandom.toFixed(3)}); another 100 over 100: ${ratio(2, "hot")} and ` +
        `${ratio(2, "random")}; a bare write of such a row: ${control.toFixed(3)} ms\n`,
    );
    const root = join(folder, "view");
    await makeManySessions(root, withView);
    {
      await using store = createJsonlStore({ root, sessionsJson: true });
      await store.append(refOfMany(3), [], { entry: { totalTokens: 3 } });
    }
    const { longest, isMerged } = run<{ longest: readonly number[]; isMerged: boolean }>("view", root);
    const [load = 0, publish = 0, merge = 0] = longest;
    process.stdout.write(
      `sessions.json of ${withView} sessions, longest hold of the loop: first load ${load.toFixed(0)} ms, written anew ` +
        `${publish.toFixed(0)} ms, after another program's change ${merge.toFixed(0)} ms (at most 25)${isMerged ? "" : "; the change is LOST"}\n`,
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
