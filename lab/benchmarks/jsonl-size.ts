// A durable turn at the end of a long JSONL session against one at the end of a short one, over the same ratio of a control
// that writes the same ready bytes to files of the same two sizes: what a file system gives away for size is not the
// store's. The four take turns in blocks of ten; a round's figure is a ratio of medians.
// node --conditions=@throughline/source lab/benchmarks/jsonl-size.ts [megabytes of the long one] [rounds] [turns] [--check]
// The default of 200 takes about a minute on a quiet machine; the target is said for 1000, which needs 2 GB of disk.
import {
  closeSync,
  copyFileSync,
  fdatasync,
  mkdtempSync,
  openSync,
  readSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { createJsonlStore } from "../../packages/store-jsonl/src/index.ts";
import { longPath, longRef, makeLongTranscript } from "./long-transcript.ts";
import { median, spread, timesOf, turnMessages } from "../../benchmarks/measure.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { check: { type: "boolean", default: false } },
});
const [megabytes = 200, rounds = 9, turns = 100] = positionals.map(Number);

const drafts = turnMessages.map((message) => ({ type: "message", message }));

/** A session of one size, and a file of that size beside it. */
interface Pair {
  readonly sizeBytes: number;
  readonly turn: () => Promise<unknown>;
  readonly control: () => Promise<void>;
  readonly close: () => Promise<void>;
}

async function makePair(folder: string, sizeMb: number): Promise<Pair> {
  const root = join(folder, `s${sizeMb}`);
  // The window is a megabyte and a half: without lines before it this is the small one.
  await makeLongTranscript(root, sizeMb * 1_000_000);
  const path = join(root, longPath);
  const copy = join(folder, `control-${sizeMb}`);
  copyFileSync(path, copy);
  const store = createJsonlStore({ root, sessionsJson: false });
  await store.append(longRef, drafts);
  const { size } = statSync(path);
  const bytes = Buffer.alloc(size - statSync(copy).size);
  const source = openSync(path, "r");
  readSync(source, bytes, 0, bytes.length, size - bytes.length);
  closeSync(source);
  const file = openSync(copy, "a");
  return {
    sizeBytes: size,
    turn: () => store.append(longRef, drafts),
    control: () =>
      new Promise((resolve, reject) => {
        writeSync(file, bytes);
        fdatasync(file, (error) => (error === null ? resolve() : reject(error)));
      }),
    async close() {
      closeSync(file);
      await store.close();
    },
  };
}

async function measure(small: Pair, large: Pair): Promise<readonly (readonly [store: number, control: number])[]> {
  const found: (readonly [number, number])[] = [];
  const order = [small.turn, large.turn, small.control, large.control];
  for (let round = -1; round < rounds; round++) {
    const times = order.map(() => [] as number[]);
    for (let block = 0; block < turns / 10; block++)
      for (let place = 0; place < order.length; place++) {
        // Each of them first as often as the others.
        const which = (place + block) % order.length;
        times[which]?.push(...(await timesOf(10, order[which] as () => Promise<unknown>)));
      }
    const [smallMs = 0, largeMs = 0, smallControlMs = 0, largeControlMs = 0] = times.map(median);
    if (round >= 0) found.push([largeMs / smallMs, largeControlMs / smallControlMs]);
  }
  return found;
}

const folder = mkdtempSync(join(tmpdir(), "throughline-bench-"));
try {
  const [small, large] = [await makePair(folder, 1), await makePair(folder, megabytes)];
  const found = await measure(small, large);
  await small.close();
  await large.close();
  const overs = found.map(([store, control]) => store / control);
  const name = `${(large.sizeBytes / 1e6).toFixed(0)} over ${(small.sizeBytes / 1e6).toFixed(0)} MB`;
  process.stdout.write(
    `durable turn at ${name}, over the control's own ratio: ${spread(overs)} (at most 1.2); ` +
      `the store's ${spread(found.map(([store]) => store))}, the control's ${spread(found.map(([, control]) => control))}\n`,
  );
  process.exitCode = values.check && !(median(overs) <= 1.2) ? 1 : 0;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
