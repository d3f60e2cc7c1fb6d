import { spawn, type ChildProcess } from "node:child_process";
import process from "node:process";
import { sessionRef, type SessionRef } from "@throughline/core";

/** The session whose log or entry all processes change. */
export const counterRef: SessionRef = sessionRef({ key: "agent:main:main" });

/** The process that {@link contend} starts so many of. */
export const contentionChild: URL = new URL("./contention-child.ts", import.meta.url);

/** What one process did, or began to do. Times are nanoseconds of the clock that all processes share. */
export interface Operation {
  /** The process. */
  readonly name: string;
  readonly index: number;
  readonly beganAt: bigint;
  /** What it was told: the last seq, or the counter; null when it was killed before. */
  readonly got: number | null;
  readonly endedAt: bigint | null;
}

export interface ContentionOptions {
  readonly root: string;
  /** The bundle of {@link contentionChild}. */
  readonly child: string;
  readonly what: "session" | "entries";
  /** Whether the processes write OpenClaw's index. @default true */
  readonly sessionsJson?: boolean;
  readonly processes: number;
  /** Of each of the processes, after each of which another one takes its place. */
  readonly killsEach: number;
  /** Of each process that is not killed, at least. */
  readonly operationsEach: number;
  /** Numbers from 0 to below 1 that say when a process is killed. */
  readonly random: () => number;
}

/** What the entries suite does by turns: count in one entry, change one field of it, make a session. */
export function operationOf(index: number): "count" | "patch" | "save" {
  return index % 3 === 0 ? "count" : index % 3 === 1 ? "patch" : "save";
}

/** A number from 0 to below 1 at each call, determined by the seed (mulberry32). */
export function seededNumbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Lets so many processes work at once, kills some of them hard, and gives what all of them were told. */
export async function contend(options: ContentionOptions): Promise<readonly Operation[]> {
  const operations: Operation[] = [];
  const last: ChildProcess[] = [];
  const running = new Set<ChildProcess>();
  const ends: Promise<void>[] = [];
  try {
    const lanes = Array.from({ length: options.processes }, async (_, lane) => {
      for (let life = 0; life <= options.killsEach; life++) {
        const isKilled = life < options.killsEach;
        const worker = startWorker(options, `p${lane}x${life}`, isKilled ? 1 : options.operationsEach);
        running.add(worker.process);
        const ended = worker.ended.then((done) => {
          running.delete(worker.process);
          operations.push(...done);
        });
        await Promise.race([worker.isWarm, ended]);
        if (isKilled) {
          await new Promise((resolve) => void setTimeout(resolve, options.random() * 150));
          worker.process.kill("SIGKILL");
          await ended;
        } else {
          last.push(worker.process);
          ends.push(ended);
        }
      }
    });
    await Promise.all(lanes);
    for (const each of last) each.stdin?.end();
    await Promise.all(ends);
  } finally {
    for (const each of running) each.kill("SIGKILL");
  }
  return operations;
}

interface Worker {
  readonly process: ChildProcess;
  /** It has done as much as was asked for. */
  readonly isWarm: Promise<void>;
  readonly ended: Promise<readonly Operation[]>;
}

function startWorker(options: ContentionOptions, name: string, enough: number): Worker {
  const { root, what, child, sessionsJson = true } = options;
  const view = sessionsJson ? "with" : "without";
  const running = spawn(process.execPath, [child, root, what, name, view], {
    stdio: ["pipe", "pipe", "pipe"],
  });
  let text = "";
  let talk = "";
  let count = 0;
  let onWarm: () => void = () => undefined;
  const isWarm = new Promise<void>((resolve) => (onWarm = resolve));
  running.stderr.on("data", (chunk: Buffer) => (talk += chunk.toString()));
  running.stdout.on("data", (chunk: Buffer) => {
    text += chunk.toString();
    for (const byte of chunk) if (byte === 0x0a) count++;
    if (count >= enough) onWarm();
  });
  const ended = new Promise<readonly Operation[]>((resolve, reject) => {
    running.on("error", reject);
    running.on("close", (code, signal) => {
      if (code === 0 || signal === "SIGKILL") resolve(readOperations(name, text));
      else reject(new Error(`${name} ended with ${String(code)}: ${talk}`));
    });
  });
  return { process: running, isWarm, ended };
}

/** A process that was killed may have begun something without hearing of its end. */
function readOperations(name: string, text: string): readonly Operation[] {
  const lines = text.split("\n");
  return lines.flatMap((line, at) => {
    const [index, beganAt, got, endedAt] = line.split(" ");
    if (index === undefined || beganAt === undefined || index === "" || beganAt === "") return [];
    const isWhole = at < lines.length - 1 && got !== undefined && endedAt !== undefined;
    const end = isWhole ? { got: Number(got), endedAt: BigInt(endedAt) } : { got: null, endedAt: null };
    return [{ name, index: Number(index), beganAt: BigInt(beganAt), ...end }];
  });
}
