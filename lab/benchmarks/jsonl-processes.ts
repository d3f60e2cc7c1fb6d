// Durable turns of several processes, each on a JSONL session of its own and then all on one, against a control without a
// lock: as many processes, each of which writes the same ready bytes to a file of its own, or to one shared file, opened to
// append, and waits for the same kind of fdatasync. The processes of both kinds are started once and take turns in blocks,
// so that a slow moment of the disk meets both. A figure is the median over the blocks of turns a second of the control
// over those of the store. Each process is one thread with a turn in flight, as fast as it can: that is what waiting for a
// lock is worst for.
// node --conditions=@throughline/source lab/benchmarks/jsonl-processes.ts [rounds] [milliseconds of a block] [--check]
import { spawn, type ChildProcess } from "node:child_process";
import { closeSync, fdatasync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import type { SessionRef, SessionStore } from "../../packages/core/src/index.ts";
import { createJsonlStore } from "../../packages/store-jsonl/src/index.ts";
import { median, spread, turnMessages } from "../../benchmarks/measure.ts";

/** The session that all processes share, or the one of the process of that number. */
function refOf(place: string): SessionRef {
  return { namespace: "", agentId: "main", key: `agent:main:${place}` };
}

const shared = "shared";
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { check: { type: "boolean", default: false } },
});

/** What a block gave: turns done, and the time of each. */
interface Block {
  readonly tookMs: readonly number[];
}

if (positionals[0] === "work") await work(positionals[1] ?? "", positionals[2] ?? "", positionals[3] ?? shared);
else await main(Number(positionals[0] ?? 9), Number(positionals[1] ?? 400));

function turn(store: SessionStore, place: string): Promise<unknown> {
  return store.append(
    refOf(place),
    turnMessages.map((message) => ({ type: "message", message })),
  );
}

/** One process: for each line it reads, turns until the time that the line states, then a line with their times. */
async function work(kind: string, folder: string, place: string): Promise<void> {
  const isStore = kind === "store";
  const store = isStore ? createJsonlStore({ root: join(folder, "store"), sessionsJson: false }) : null;
  await store?.load(refOf(place));
  const bytes = readFileSync(join(folder, "turn.bin"));
  const file = openSync(join(folder, `control-${place}.jsonl`), "a");
  const controlTurn = (): Promise<void> =>
    new Promise((resolve, reject) => {
      writeSync(file, bytes);
      fdatasync(file, (error) => (error === null ? resolve() : reject(error)));
    });
  process.stdout.write("ready\n");
  for await (const line of createInterface({ input: process.stdin })) {
    const [startAtMs = 0, endAtMs = 0] = line.split(" ").map(Number);
    const tookMs: number[] = [];
    while (Date.now() < startAtMs) await new Promise((resolve) => void setTimeout(resolve, 1));
    while (Date.now() < endAtMs) {
      const from = performance.now();
      await (store === null ? controlTurn() : turn(store, place));
      tookMs.push(performance.now() - from);
    }
    process.stdout.write(`${JSON.stringify({ tookMs })}\n`);
  }
  closeSync(file);
  await store?.close();
}

/** Processes of one kind, which do a block whenever they are told to. */
interface Team {
  block(blockMs: number): Promise<readonly Block[]>;
  close(): Promise<void>;
}

async function startTeam(kind: "store" | "control", folder: string, places: readonly string[]): Promise<Team> {
  const members = await Promise.all(
    places.map(async (place) => {
      const options = ["--conditions=@throughline/source", import.meta.filename, "work", kind, folder, place];
      const child = spawn(process.execPath, options, { stdio: ["pipe", "pipe", "inherit"] });
      const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
      const next = async (): Promise<string> => {
        const { value, done } = (await lines.next()) as { value: string; done?: boolean };
        if (done === true) throw new Error("a process ended before its time");
        return value;
      };
      await next();
      return { child, next };
    }),
  );
  return {
    async block(blockMs) {
      const startAtMs = Date.now() + 20;
      for (const { child } of members) child.stdin.write(`${startAtMs} ${startAtMs + blockMs}\n`);
      return Promise.all(members.map(async ({ next }) => JSON.parse(await next()) as Block));
    },
    close: async () => void (await Promise.all(members.map(({ child }) => ended(child)))),
  };
}

function ended(child: ChildProcess): Promise<unknown> {
  const closed = new Promise((resolve) => void child.once("close", resolve));
  child.stdin?.end();
  return closed;
}

interface Comparison {
  /** Turns a second of the control over those of the store, a block each. */
  readonly ratios: readonly number[];
  /** The same of the median time of a turn. */
  readonly waits: readonly number[];
  readonly perSecond: readonly [store: number, control: number];
}

async function compare(
  folder: string,
  places: readonly string[],
  rounds: number,
  blockMs: number,
): Promise<Comparison> {
  const [ours, theirs] = [await startTeam("store", folder, places), await startTeam("control", folder, places)];
  const ratios: number[] = [];
  const waits: number[] = [];
  const perSecond: [number[], number[]] = [[], []];
  // Two rounds warm up what is compiled.
  for (let round = -2; round < rounds; round++) {
    const blocks: Record<"store" | "control", readonly Block[]> = { store: [], control: [] };
    const order = round % 2 === 0 ? (["store", "control"] as const) : (["control", "store"] as const);
    for (const kind of order) blocks[kind] = await (kind === "store" ? ours : theirs).block(blockMs);
    const done = (kind: "store" | "control"): number =>
      blocks[kind].reduce((sum, { tookMs }) => sum + tookMs.length, 0);
    if (round < 0) continue;
    const typical = (kind: "store" | "control"): number => median(blocks[kind].flatMap(({ tookMs }) => tookMs));
    ratios.push(done("control") / done("store"));
    waits.push(typical("store") / typical("control"));
    perSecond[0].push((done("store") * 1000) / blockMs);
    perSecond[1].push((done("control") * 1000) / blockMs);
  }
  await ours.close();
  await theirs.close();
  return { ratios, waits, perSecond: [median(perSecond[0]), median(perSecond[1])] };
}

/** Names of as many sessions. */
function own(count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `own-${index}`);
}

async function main(rounds: number, blockMs: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "throughline-bench-"));
  let isMet = true;
  try {
    {
      await using store = createJsonlStore({ root: join(folder, "store"), sessionsJson: false });
      for (const place of [shared, ...own(8)])
        await store.save(refOf(place), { sessionId: place }, { ifRevision: null });
      await turn(store, shared);
    }
    const lines = readFileSync(join(folder, "store/agents/main/sessions/shared.jsonl"), "utf8").trimEnd().split("\n");
    const file = openSync(join(folder, "turn.bin"), "w");
    writeSync(file, `${lines.slice(-4).join("\n")}\n`);
    closeSync(file);
    for (const [where, count, most] of [
      ["a session each", 1, null],
      ["a session each", 4, 1.4],
      ["a session each", 8, 1.6],
      ["one session", 4, 1.4],
      ["one session", 8, 1.6],
    ] as const) {
      const places = where === "one session" ? Array.from({ length: count }, () => shared) : own(count);
      const { ratios, waits, perSecond } = await compare(folder, places, rounds, blockMs);
      isMet &&= most === null || median(ratios) <= most;
      process.stdout.write(
        `durable turns of ${count} processes, ${where}, over unlocked control, by throughput: ${spread(ratios)} ` +
          `(${most === null ? "for comparison" : `at most ${most}`}); by the median turn ${spread(waits)}; ` +
          `${perSecond.map((each) => each.toFixed(0)).join(" against ")} turns a second\n`,
      );
    }
    process.exitCode = values.check && !isMet ? 1 : 0;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
