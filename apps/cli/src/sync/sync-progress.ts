import type { ImportSource, PassProgress } from "@throughline/transfer/internal";
import { monotonicMs } from "@throughline/core/internal";
import type { CommandContext } from "../command.ts";
import { counted, sizeText } from "../counted.ts";

type Step = Parameters<PassProgress["step"]>[0];

/** A terminal shows no more, and small files come by the hundred. */
const printEveryMs = 100;

/** Prints one line about all sources of a pass, which the next one overwrites. */
export class SyncProgress implements PassProgress {
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

  // A sync that goes on would otherwise count what it imported days ago.
  begin = (): void => {
    this.#open.clear();
    [this.#sessions, this.#records, this.#bytes] = [0, 0, 0];
  };

  step = (step: Step): void => {
    this.#open.set(step.path, step);
    this.#print(step.path);
  };

  end = ({ path, records, state }: ImportSource): void => {
    if (state === "imported" || state === "grown") this.#sessions += 1;
    this.#records += records;
    this.#bytes += this.#open.get(path)?.sizeBytes ?? 0;
    this.#open.delete(path);
  };

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
