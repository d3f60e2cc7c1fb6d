// One contender, measured in a process of its own: a line of JSON on standard output.
// node measure.ts <contender> <folder> <turns>
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import type { Contender } from "./contender.ts";

/** What a contender was seen to take. Times in microseconds, but for `reopenMs`. */
export interface Measured {
  readonly firstUs: number;
  readonly lastUs: number;
  readonly reopenMs: number;
  readonly messages: number;
  readonly sizeBytes: number;
}

const [name = "", folder = "", turns = "0"] = process.argv.slice(2);

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN;
}

function sizeOf(path: string): number {
  if (!statSync(path).isDirectory()) return statSync(path).size;
  return readdirSync(path)
    .map((entry) => sizeOf(join(path, entry)))
    .reduce((sum, size) => sum + size, 0);
}

async function opened(): Promise<Contender> {
  const [module = "", ...settings] = name.split(":");
  if (module === "raw") return (await import("./raw.ts")).openRaw(folder, settings[0] === "disk");
  if (module === "throughline") {
    const [kind, durability] = settings as ["jsonl" | "sqlite" | "memory", "process" | "disk"];
    return (await import("./throughline.ts")).openThroughline(folder, kind, durability);
  }
  const peer = (await import(`./${module}.ts`)) as {
    readonly open: (folder: string, kind?: string) => Promise<Contender>;
  };
  return peer.open(folder, settings[0]);
}

const contender = await opened();
const timesUs: number[] = [];
for (let index = 0; index < Number(turns); index++) {
  const startMs = performance.now();
  await contender.turn(index);
  timesUs.push((performance.now() - startMs) * 1000);
}
const reopenings: number[] = [];
let messages = 0;
for (let each = 0; each < 3; each++) {
  const startMs = performance.now();
  messages = await contender.reopen();
  reopenings.push(performance.now() - startMs);
}
await contender.close();
const part = Math.min(100, Math.ceil(timesUs.length / 3));
const measured: Measured = {
  firstUs: median(timesUs.slice(0, part)),
  lastUs: median(timesUs.slice(-part)),
  reopenMs: median(reopenings),
  messages,
  sizeBytes: sizeOf(folder),
};
process.stdout.write(`${JSON.stringify(measured)}\n`);
// Some contenders leave timers and connections behind.
process.exit(0);
