import { createFinding } from "@throughline/core/internal";
import { type Clock, type Finding } from "@throughline/core";
import { backupStore } from "./backup-store.ts";
import type { OpenOptions } from "./connection.ts";
import { claim } from "./claim-file.ts";
import { databasePath } from "./file-facts.ts";
import { automaticBackups, removeDatabase, removeFile, unfinishedBackups } from "./store-file.ts";

/** When a store is copied by itself, and how many copies are kept. */
export interface BackupPolicy {
  /** The newest copy is not allowed to be older than this while somebody writes, in milliseconds. */
  readonly everyMs: number;
  /** The number of copies that stay; older ones are removed. @default 3 */
  readonly keep?: number;
}

/** After a commit it is looked so soon whether a backup is due. */
const lookAfterMs = 500;
/** While another process is at one, whether it has come to an end is looked at so often. */
const lookAgainMs = 60_000;

/**
 * Makes backups beside the store, behind the turns, in one of the processes that write to it. Each is checked before it
 * counts, and only then do older ones go, so that a store that is damaged never pushes out its last good copy.
 */
export class BackupKeeper {
  readonly #options: OpenOptions;
  readonly #policy: BackupPolicy;
  readonly #clock: Clock;
  readonly #tell: (finding: Finding) => void;
  readonly #stopped = new AbortController();
  #timer: NodeJS.Timeout | null = null;
  #nextMs = 0;
  /** Since when due backups are left to another process, and for which such time a finding was reported. */
  #skippedSinceMs: number | null = null;
  #toldOfMs: number | null = null;
  #work: Promise<void> | null = null;

  constructor(options: OpenOptions, policy: BackupPolicy, clock: Clock, tell: (finding: Finding) => void) {
    this.#options = options;
    this.#policy = policy;
    this.#clock = clock;
    this.#tell = tell;
  }

  /** Called after every commit. */
  poke(): void {
    if (this.#timer !== null || this.#work !== null) return;
    const leftMs = this.#nextMs - this.#clock.nowMs();
    // More can only be left where the clock was ahead.
    if (leftMs > 0 && leftMs <= this.#policy.everyMs) return;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#work = this.#backUpIfDue().finally(() => (this.#work = null));
    }, lookAfterMs).unref();
  }

  /** Ends what is under way, for the handle is closing. */
  async stop(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#stopped.abort();
    await this.#work;
  }

  async #backUpIfDue(): Promise<void> {
    const path = databasePath(this.#options.path);
    try {
      const nowMs = this.#clock.nowMs();
      // One that was made while the clock was ahead keeps no other from being made until then.
      const newest = automaticBackups(path).find(({ madeAtMs }) => madeAtMs <= nowMs);
      this.#nextMs = (newest?.madeAtMs ?? 0) + this.#policy.everyMs;
      if (nowMs < this.#nextMs) {
        this.#skippedSinceMs = null;
        return;
      }
      // Whatever becomes of this one, the next attempt is not made before its time.
      this.#nextMs = nowMs + this.#policy.everyMs;
      const release = claim(`${path}.backup-under-way`, this.#options.driver);
      if (release === null) return this.#skip(path, nowMs);
      try {
        this.#skippedSinceMs = null;
        await this.#backUp(path, nowMs);
      } finally {
        release();
      }
    } catch (error) {
      if (this.#stopped.signal.aborted) return;
      const why = error instanceof Error ? error.message : String(error);
      this.#tell(createFinding("BACKUP_FAILED", `No backup of ${path} could be made. ${why}`, { path }));
    }
  }

  async #backUp(path: string, nowMs: number): Promise<void> {
    for (const left of unfinishedBackups(path)) removeFile(left);
    const target = `${path}.${new Date(nowMs).toISOString().replaceAll(/[:.]/g, "-")}.auto.backup`;
    await backupStore(this.#options, target, this.#stopped.signal);
    for (const { path: old } of automaticBackups(path).slice(Math.max(this.#policy.keep ?? 3, 1))) removeDatabase(old);
  }

  /**
   * Another process makes one, which is as good, unless it never ends: it is soon looked again, and told when it is then
   * still at it.
   */
  #skip(path: string, nowMs: number): void {
    this.#nextMs = nowMs + Math.min(this.#policy.everyMs, lookAgainMs);
    const sinceMs = this.#skippedSinceMs;
    this.#skippedSinceMs ??= nowMs;
    if (sinceMs === null || this.#toldOfMs === sinceMs) return;
    this.#toldOfMs = sinceMs;
    const why = `another process has been at one since ${new Date(sinceMs).toISOString()} or longer`;
    this.#tell(createFinding("BACKUP_FAILED", `A backup of ${path} was due and was skipped: ${why}.`, { path }));
  }
}
