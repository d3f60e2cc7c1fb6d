// What the JSONL store's locks cost alone, and how long eight processes that append wait for one another: in one session,
// as fast as they can and at the pace of turns, acknowledged by the kernel and by the disk.
// node --conditions=@throughline/source benchmarks/jsonl-locks.ts [appends of each process]
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as pause } from "node:timers/promises";
import type { Durability, SessionRef } from "../packages/core/src/index.ts";
import { systemRandom } from "../packages/core/src/node/system-ports.ts";
import { createJsonlStore } from "../packages/store-jsonl/src/index.ts";
import { kernelLocks } from "../packages/store-jsonl/src/lock-file.ts";
import { nodeFiles } from "../packages/store-jsonl/src/files.ts";
import { createSessionLocks } from "../packages/store-jsonl/src/session-lock.ts";

const ref: SessionRef = { namespace: "", agentId: "main", key: "agent:main:locks" };
const [mode = "300", root = "", durability = "disk", pace = "0", startAtMs = "0"] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "throughline-bench-"));

if (mode.startsWith("append-")) await append(Number(mode.slice("append-".length)));
else await main(Number(mode));
rmSync(folder, { recursive: true, force: true });

/** One of the processes: says how long each append took. */
async function append(count: number): Promise<void> {
  const store = createJsonlStore({ root, sessionsJson: false });
  await store.load(ref);
  await pause(Math.max(0, Number(startAtMs) - Date.now()));
  const tookMs: number[] = [];
  for (let index = 0; index < count; index++) {
    const from = performance.now();
    await store.append(ref, [{ type: "message", message: { role: "user", content: "x".repeat(500) } }], {
      durability: durability as Durability,
    });
    tookMs.push(performance.now() - from);
    if (pace !== "0") await pause(Number(pace) * (0.5 + Math.random()));
  }
  await store.close();
  process.stdout.write(JSON.stringify(tookMs));
}

function contender(args: readonly string[]): Promise<readonly number[]> {
  const child = spawn(process.execPath, ["--conditions=@throughline/source", import.meta.filename, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let text = "";
  child.stdout.on("data", (chunk: Buffer) => (text += chunk.toString()));
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", () => resolve(JSON.parse(text) as readonly number[]));
  });
}

async function main(count: number): Promise<void> {
  const rates: number[] = [];
  const held: number[] = [];
  const lock = kernelLocks.open(nodeFiles, join(folder, "lock"));
  const locks = createSessionLocks({ files: nodeFiles, port: kernelLocks, random: systemRandom, timeoutMs: 1000 });
  const path = join(folder, "held");
  for (let round = 0; round < 7; round++) {
    rates.push(
      await perSecond(20_000, () => {
        lock.tryLock();
        lock.unlock();
      }),
    );
    held.push(await perSecond(10_000, () => locks.hold([path], () => undefined)));
  }
  lock.close();
  locks.close();
  process.stdout.write(`lock and unlock, nobody else: ${spread(rates)} a second (at least 10,000)\n`);
  process.stdout.write(`as an append takes it, with the line in front and the look at the file: ${spread(held)}\n`);
  for (const [how, level, milliseconds] of [
    ["as fast as they can, in memory of the kernel", "process", "0"],
    ["as fast as they can, on the disk", "disk", "0"],
    ["one about every 20 ms, on the disk", "disk", "20"],
  ] as const) {
    const store = join(folder, `store-${level}-${milliseconds}`);
    await using handle = createJsonlStore({ root: store, sessionsJson: false });
    await handle.save(ref, { sessionId: "locks" }, { ifRevision: null });
    const args = [`append-${count}`, store, level, milliseconds, String(Date.now() + 3000)];
    const all = (await Promise.all(Array.from({ length: 8 }, () => contender(args)))).flat();
    const sorted = all.toSorted((one, other) => one - other);
    const at = (part: number): string => (sorted[Math.floor((sorted.length - 1) * part)] ?? 0).toFixed(1);
    const total = (await handle.load(ref))?.head.lastSeq;
    process.stdout.write(
      `8 processes, ${how}: ${total} of ${8 * count} appended; each took ${at(0.5)} ms, 99 % at most ${at(0.99)}, ` +
        `the longest ${at(1)} (at most 250)\n`,
    );
  }
}

async function perSecond(count: number, work: () => unknown): Promise<number> {
  const from = performance.now();
  for (let index = 0; index < count; index++) await work();
  return (count * 1000) / (performance.now() - from);
}

function spread(values: readonly number[]): string {
  const sorted = values.toSorted((one, other) => one - other);
  const shown = [sorted[0], sorted[Math.floor(sorted.length / 2)], sorted.at(-1)];
  return shown.map((value) => Math.round(value ?? 0).toLocaleString("en")).join(" / ");
}
