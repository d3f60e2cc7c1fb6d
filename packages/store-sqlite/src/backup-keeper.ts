import { createFinding, type Clock, type Finding } from "@throughline/core";
import { backupStore } from "./backup-store.ts";
import type { OpenOptions } from "./open-connection.ts";
import { automaticBackups, claim, databasePath, removeFile } from "./store-file.ts";

/** When a store is copied by itself, and how many copies are kept. */
export interface BackupPolicy {
  /** The newest copy is not allowed to be older than this while somebody writes, in milliseconds. */
  readonly everyMs: number;
  /** @default 3 */
  readonly keep?: number;
}

/** After a commit it is looked so soon whether a backup is due. */
const lookAfterMs = 500;

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
  #work: Promise<void> | null = null;

  constructor(options: OpenOptions, policy: BackupPolicy, clock: Clock, tell: (finding: Finding) => void) {
    this.#options = options;
    this.#policy = policy;
    this.#clock = clock;
    this.#tell = tell;
  }

  /** Called after every commit. */
  poke(): void {
    if (this.#timer !== null || this.#work !== null || this.#clock.nowMs() < this.#nextMs) return;
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
    const { everyMs, keep = 3 } = this.#policy;
    const path = databasePath(this.#options.path);
    const nowMs = this.#clock.nowMs();
    const newestMs = automaticBackups(path)[0]?.madeAtMs ?? 0;
    this.#nextMs = newestMs + everyMs;
    if (nowMs < this.#nextMs) return;
    // Whatever becomes of this one, the next attempt is not made before its time.
    this.#nextMs = nowMs + everyMs;
    const release = claim(`${path}.backup-under-way`);
    if (release === null) return;
    const target = `${path}.${new Date(nowMs).toISOString().replaceAll(/[:.]/g, "-")}.auto.backup`;
    try {
      await backupStore(this.#options, target, this.#stopped.signal);
      for (const { path: old } of automaticBackups(path).slice(Math.max(keep, 1))) removeFile(old);
    } catch (error) {
      if (this.#stopped.signal.aborted) return;
      const why = error instanceof Error ? error.message : String(error);
      this.#tell(createFinding("BACKUP_FAILED", `No backup of ${path} could be made. ${why}`, { path }));
    } finally {
      release();
    }
  }
}
