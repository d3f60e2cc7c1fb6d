import type { ImportOptions } from "@throughline/transfer";
import type { ImportSource } from "@throughline/transfer/internal";
import { monotonicMs } from "@throughline/core/internal";
import type { CommandContext } from "../command.ts";
import { counted, sizeText } from "../counted.ts";

type Step = Parameters<NonNullable<ImportOptions["onProgress"]>>[0];

/** A terminal shows no more, and small files come by the hundred. */
const printEveryMs = 100;

/** Prints one line about all sources of a sync, which the next one overwrites. */
export class SyncProgress {
  readonly #output: CommandContext["output"];
  /** Holds the sources that are being read. */
  readonly #open = new Map<string, Step>();
  #sessions = 0;
  #records = 0;
  #bytes = 0;
  #printedAtMs = 0;

  constructor({ output }: CommandContext) {
    this.#output = output;
  }

  take(step: Step): void {
    this.#open.set(step.path, step);
    this.#print(step.path);
  }

  /** Passes the results on, and counts them. */
  async *counting(sources: AsyncIterable<ImportSource>): AsyncGenerator<ImportSource> {
    for await (const source of sources) {
      const { path, records, state } = source;
      if (state === "imported" || state === "grown") this.#sessions += 1;
      this.#records += records;
      this.#bytes += this.#open.get(path)?.sizeBytes ?? 0;
      this.#open.delete(path);
      yield source;
    }
  }

  #print(path: string): void {
    const nowMs = monotonicMs();
    if (nowMs - this.#printedAtMs < printEveryMs) return;
    this.#printedAtMs = nowMs;
    let [records, bytes] = [this.#records, this.#bytes];
    for (const step of this.#open.values()) {
      records += step.records;
      bytes += step.readBytes;
    }
    const done = `${counted(this.#sessions, "session")}, ${counted(records, "record")}, ${sizeText(bytes)}`;
    this.#output.progress(`syncing: ${done}; ${path}`);
  }
}
