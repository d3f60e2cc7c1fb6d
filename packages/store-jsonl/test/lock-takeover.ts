import { spawn, type ChildProcess } from "node:child_process";
import { join } from "node:path";

export interface TakeoverFigures {
  readonly rounds: number;
  /** Rounds in which a lock was held by two. */
  readonly doubleOwners: number;
  /** From the kill of the owner to the word of the next one, milliseconds. */
  readonly latenciesMs: readonly number[];
}

const child = join(import.meta.dirname, "lock-child.ts");

/** Kills the owner of a lock again and again, with so many others waiting for it. */
export async function takeOver(path: string, rounds: number, contenders: number): Promise<TakeoverFigures> {
  const latenciesMs: number[] = [];
  const running = new Set<ChildProcess>();
  let owner: ChildProcess | null = null;
  let killedAtMs = 0;
  let doubleOwners = 0;
  let waiting = 0;
  let onOwner: () => void = () => undefined;
  const start = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const contender = spawn(process.execPath, [child, path], { stdio: ["ignore", "pipe", "inherit"] });
      running.add(contender);
      contender.once("error", reject);
      contender.stdout.on("data", (chunk: Buffer) => {
        const text = chunk.toString();
        if (text.includes("waiting")) waiting++;
        if (text.includes("waiting")) resolve();
        if (!text.includes("held")) return;
        waiting--;
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
      // The next round need not wait for the new one as long as enough others are there.
      const started = start();
      if (waiting < contenders / 2) await started;
    }
  } finally {
    for (const each of running) each.kill("SIGKILL");
  }
  return { rounds, doubleOwners, latenciesMs };
}
