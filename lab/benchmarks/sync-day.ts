// What a sync takes that watches 10,000 files for a day: memory, processor time, watches and open files of the process. Its clock
// runs 720 times as fast, so that a day with its 144 searches of all places takes two minutes. A line is appended every ten
// minutes of that day, and has to be in the store at its end.
// node --expose-gc --conditions=@throughline/source lab/benchmarks/sync-day.ts [files] [hours]
import { appendFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { setTimeout as wait } from "node:timers/promises";
import { limitYoungHeap } from "../../apps/cli/src/sync/limit-young-heap.ts";
import { createSqliteStore } from "../../packages/store-sqlite/src/index.ts";
import { SourceSync } from "../../packages/transfer/src/internal.ts";

const [files = 10_000, hours = 24] = process.argv.slice(2).map(Number);
const speed = 720;
const root = mkdtempSync(join(tmpdir(), "throughline-sync-day-"));
const places = join(root, ".claude", "projects");
const startedMs = Date.now();
const nowMs = (): number => startedMs + (Date.now() - startedMs) * speed;
const stop = new AbortController();
limitYoungHeap();

function idOf(at: number): string {
  return `00000000-0000-4000-8000-${String(at).padStart(12, "0")}`;
}

function pathOf(at: number): string {
  return join(places, `-srv-${Math.floor(at / 50)}`, `${idOf(at)}.jsonl`);
}

function lineOf(session: number, at: number, text: string): string {
  const uuid = `${String(session).padStart(8, "0")}-0000-4000-9000-${String(at).padStart(12, "0")}`;
  const fields = { parentUuid: null, isSidechain: false, userType: "external", cwd: "/srv", sessionId: idOf(session) };
  const message = { role: "user", content: text };
  return `${JSON.stringify({ ...fields, version: "2.0.0", type: "user", message, uuid, timestamp: new Date(Date.UTC(2026, 0, 1) + at).toISOString() })}\n`;
}

function watches(): number {
  const texts = readdirSync("/proc/self/fdinfo").map((name) => {
    try {
      return readFileSync(join("/proc/self/fdinfo", name), "utf8");
    } catch {
      // The descriptor of the list itself is closed by now.
      return "";
    }
  });
  return texts.join("\n").match(/^inotify wd/gm)?.length ?? 0;
}

function print(what: string, state: string): void {
  (globalThis as { gc?: () => void }).gc?.();
  const { rss, heapUsed } = process.memoryUsage();
  const { user, system } = process.cpuUsage();
  const sizes = `${Math.round(rss / 1e6)} MB resident, ${Math.round(heapUsed / 1e6)} MB heap`;
  const open = readdirSync("/proc/self/fd").length;
  process.stdout.write(
    `${what}: ${sizes}, ${((user + system) / 1e6).toFixed(1)} s of processor, ${watches()} watches, ${open} open files; ${state}\n`,
  );
}

for (let at = 0; at < files; at++) {
  if (at % 50 === 0) mkdirSync(dirname(pathOf(at)), { recursive: true });
  writeFileSync(pathOf(at), lineOf(at, 0, `words ${at}`));
}
const store = createSqliteStore({ path: join(root, "sessions.db") });
const sync = new SourceSync({
  openStore: () => Promise.resolve(store),
  places: () => [places],
  options: { durability: "process" },
  userHome: root,
  memoryPath: join(root, "synced-files.jsonl"),
  identity: "day",
  clock: { nowMs, sleep: (ms) => wait(ms / speed) },
});
let [passes, grown, appended] = [0, 0, 0];
let day: Promise<void> | null = null;

async function pass24Hours(): Promise<void> {
  const beganMs = nowMs();
  for (let tenth = 0; tenth < hours * 6; tenth++) {
    if (tenth % 24 === 0) print(`hour ${tenth / 6}`, `${passes} passes, ${grown} of ${appended} lines`);
    const session = (tenth * 67) % files;
    appendFileSync(pathOf(session), lineOf(session, 1 + Math.floor((tenth * 67) / files), `more ${tenth}`));
    appended += 1;
    while (nowMs() - beganMs < (tenth + 1) * 600_000) await wait(5);
  }
  await wait(3000);
  print(`hour ${hours}`, `${passes} passes, ${grown} of ${appended} lines`);
  stop.abort();
}

try {
  for await (const pass of sync.passes(stop.signal)) {
    for await (const { state, records } of pass) if (state === "grown") grown += records;
    passes += 1;
    day ??= pass24Hours();
  }
  await day;
} finally {
  await sync[Symbol.asyncDispose]();
  await store.close();
  rmSync(root, { recursive: true });
}
