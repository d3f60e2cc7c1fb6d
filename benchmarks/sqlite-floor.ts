// What a durable turn of the SQLite store is made of: a bare database that does one thing more than the one before, then the store.
// node --conditions=@throughline/source benchmarks/sqlite-floor.ts [blocks] [turns of a block]
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createSqliteStore } from "../packages/store-sqlite/src/index.ts";
import { createControl, messages, type ControlOptions } from "./sqlite-control.ts";

const [blocks = 100, blockTurns = 20] = process.argv.slice(2).map(Number);
/** Of each contestant, before anything is counted. */
const warmBlocks = 15;
const folder = mkdtempSync(join(tmpdir(), "throughline-bench-"));
const ref = { namespace: "", agentId: "main", key: "agent:main:floor" };

const store = createSqliteStore({ path: join(folder, "store.db"), searchFill: "on-demand" });
await store.save(ref, { sessionId: "floor" }, { ifRevision: null });
let controls = 0;
const closings: (() => unknown)[] = [() => store.close()];
function control(options: ControlOptions = {}): ReturnType<typeof createControl> {
  const made = createControl(join(folder, `control-${++controls}.db`), options);
  closings.push(made.close);
  return made;
}

const all = { isFresh: true, hasPragmas: true, asksVersion: true };
const [first, second, fresh] = [control(), control(), control({ isFresh: true })];
const [guarded, asked] = [control({ isFresh: true, hasPragmas: true }), control(all)];
const [later, planned] = [control(all), control(all)];
const contestants: readonly (readonly [name: string, turn: () => unknown])[] = [
  ["control", () => first.turn()],
  ["control again", () => second.turn()],
  ["+ ids and times of their own", () => fresh.turn()],
  ["+ the store's pragmas", () => guarded.turn()],
  ["+ data version, asked under the lock", () => asked.turn()],
  ["+ one turn of the event loop", () => later.turnLater()],
  ["+ drafts checked, linked, answered", () => planned.turnPlanned()],
  [
    "store",
    () =>
      store.append(
        ref,
        messages.map((message) => ({ type: "message", message })),
      ),
  ],
];

const times = contestants.map((): number[] => []);
for (let block = -warmBlocks; block < blocks; block++) {
  // Another one begins each time, so that nobody always comes after the same one.
  for (let place = 0; place < contestants.length; place++) {
    const at = (place + block + warmBlocks) % contestants.length;
    for (let each = 0; each < blockTurns; each++) {
      const startedNs = process.hrtime.bigint();
      await contestants[at]?.[1]();
      const microseconds = Number(process.hrtime.bigint() - startedNs) / 1000;
      if (block >= 0) times[at]?.push(microseconds);
    }
  }
}
for (const close of closings) await close();
rmSync(folder, { recursive: true });

/** The mean, then the mean without the slowest twentieth, and the quarter and the half of the turns. */
function figures(values: readonly number[]): readonly number[] {
  const sorted = values.toSorted((one, other) => one - other);
  const mean = (part: readonly number[]): number => part.reduce((sum, each) => sum + each, 0) / part.length;
  const quantile = (share: number): number => sorted[Math.floor(sorted.length * share)] ?? 0;
  return [mean(sorted), mean(sorted.slice(0, Math.floor(sorted.length * 0.95))), quantile(0.25), quantile(0.5)];
}

const bare = figures([...(times[0] ?? []), ...(times[1] ?? [])]);
process.stdout.write(
  `${blocks} blocks of ${blockTurns} turns, 4 records each; us and times the control: mean, mean of 95 %, p25, p50\n`,
);
for (const [at, [name]] of contestants.entries()) {
  const cells = figures(times[at] ?? []).map((each, index) => {
    return `${each.toFixed(0).padStart(5)} ${(each / (bare[index] ?? 1)).toFixed(2)}`;
  });
  process.stdout.write(`${name.padEnd(38)} ${cells.join("   ")}\n`);
}
