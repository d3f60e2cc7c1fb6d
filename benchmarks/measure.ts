// What the benchmarks of this folder share: the turn they write, and how figures are taken and shown.
import process from "node:process";

/** A turn: a question, a call of a tool, its result, the answer. */
export const turnMessages: readonly unknown[] = [
  { role: "user", content: "q".repeat(200) },
  { role: "assistant", content: [{ type: "toolCall", id: "call_1", name: "read", arguments: { path: "a.txt" } }] },
  { role: "toolResult", toolCallId: "call_1", toolName: "read", content: "r".repeat(1000), isError: false },
  { role: "assistant", content: [{ type: "text", text: "a".repeat(500) }] },
];

export function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN;
}

/** The least, the median and the most. */
export function spread(values: readonly number[]): string {
  const sorted = values.toSorted((one, other) => one - other);
  return [sorted[0], median(sorted), sorted.at(-1)].map((value) => (value ?? 0).toFixed(2)).join(" / ");
}

/** Milliseconds of each run of some work. */
export async function timesOf(count: number, work: () => Promise<unknown>): Promise<readonly number[]> {
  const times: number[] = [];
  for (let each = 0; each < count; each++) {
    const startMs = performance.now();
    await work();
    times.push(performance.now() - startMs);
  }
  return times;
}

/** The CPU of this thread between two turns of the loop, because other programs of a busy machine delay the loop too. */
export class Holds {
  longestMs = 0;
  #lastMs: number = cpuMs();
  readonly #timer: NodeJS.Timeout = setInterval(() => this.#take(), 1);

  end(): void {
    clearInterval(this.#timer);
    this.#take();
  }

  #take(): void {
    const nowMs = cpuMs();
    this.longestMs = Math.max(this.longestMs, nowMs - this.#lastMs);
    this.#lastMs = nowMs;
  }
}

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
