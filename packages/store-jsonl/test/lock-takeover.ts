import { spawn, type ChildProcess } from "node:child_process";
import { join } from "node:path";

export interface TakeoverFigures {
  readonly rounds: number;
  /** Rounds in which a lock was held by two. */
  readonly doubleOwners: number;
  /** From the kill of the owner to the word of the next one, milliseconds. */
  readonly latenciesMs: readonly number[];
}

export const lockChild: string = join(import.meta.dirname, "lock-child.ts");

/**
 * Kills the owner of a lock again and again, with so many others waiting for it. Each round begins when all of them wait:
 * what a new process costs to start is no part of a takeover.
 */
export async function takeOver(
  path: string,
  rounds: number,
  contenders: number,
  child: string = lockChild,
): Promise<TakeoverFigures> {
  const latenciesMs: number[] = [];
  const running = new Set<ChildProcess>();
  let owner: ChildProcess | null = null;
  let killedAtMs = 0;
  let doubleOwners = 0;
  let onOwner: () => void = () => undefined;
  const start = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const contender = spawn(process.execPath, [child, path], { stdio: ["ignore", "pipe", "inherit"] });
      running.add(contender);
      contender.once("error", reject);
      contender.stdout.on("data", (chunk: Buffer) => {
        const text = chunk.toString();
        if (text.includes("waiting")) resolve();
        if (!text.includes("held")) return;
        if (owner !== null) doubleOwners++;
        owner = contender;
        if (killedAtMs > 0) latenciesMs.push(performance.now() - killedAtMs);
        onOwner();
      });
    });
  const nextOwner = (): Promise<void> => new Promise((resolve) => (onOwner = resolve));
  try {
    let owned = nextOwner();
    await Promise.all(Array.from({ length: contenders }, start));
    await owned;
    for (let round = 0; round < rounds; round++) {
      const dying = owner as unknown as ChildProcess;
      owned = nextOwner();
      owner = null;
      killedAtMs = performance.now();
      dying.kill("SIGKILL");
      running.delete(dying);
      await owned;
      await start();
    }
  } finally {
    for (const each of running) each.kill("SIGKILL");
  }
  return { rounds, doubleOwners, latenciesMs };
}
