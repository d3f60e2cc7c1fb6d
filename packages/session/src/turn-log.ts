import { loadExisting } from "@throughline/core/internal";
import type { StoredRecord } from "@throughline/core";
import { WindowLog, type WindowLogOptions } from "./window-log.ts";

/** Holds a session's window with its records, for a turn of a program that builds its messages itself. */
export class TurnLog extends WindowLog {
  #records: StoredRecord[] = [];

  /** Reads the window. @throws {ThroughlineError} SESSION_NOT_FOUND */
  static async load(options: WindowLogOptions, signal?: AbortSignal): Promise<TurnLog> {
    const log = new TurnLog(options, await loadExisting(options.store, options.ref));
    await log.readFirst(signal);
    return log;
  }

  /**
   * Returns the records up to now, in order of seq, without the records of abandoned branches. The log releases the
   * records to save memory, because the caller keeps them now.
   */
  takeRecords(): readonly StoredRecord[] {
    const records = this.#records;
    this.#records = [];
    const branch = new Set<string>();
    let wantedId = this.head.headId;
    for (const { id, parentId, side } of records.toReversed()) {
      if (side || id !== wantedId) continue;
      branch.add(id);
      wantedId = parentId;
    }
    return records.filter(({ id, side }) => side || branch.has(id));
  }

  protected override begin(): void {
    this.#records = [];
  }

  protected override take(stored: StoredRecord): void {
    this.#records.push(stored);
  }
}
