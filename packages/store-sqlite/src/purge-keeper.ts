import type { SessionRef } from "@throughline/core";
import type { IndexFiller } from "./index-filler.ts";
import type { Connection } from "./open-connection.ts";
import { hasPurged, purgeSession, purgeSlice } from "./purge-session.ts";
import type { StoreHandle } from "./store-handle.ts";

const durable = { durability: "disk" } as const;

/** Deletes sessions for good, a few milliseconds at a time, and finishes what a process that was killed has left of that. */
export class PurgeKeeper {
  readonly #handle: StoreHandle;
  readonly #filler: IndexFiller;
  #hasLooked = false;

  constructor(handle: StoreHandle, filler: IndexFiller) {
    this.#handle = handle;
    this.#filler = filler;
  }

  /**
   * Called after every commit: a handle that writes looks once whether a purge was interrupted, and finishes it. At once, so
   * that one that is closed after its first write does, too: closing waits for it as for a purge of its own.
   */
  poke(connection: Connection | null): void {
    if (this.#hasLooked || connection === null) return;
    this.#hasLooked = true;
    // What fails here is left to the next purge, or to the next handle that writes.
    const leave = (): void => undefined;
    try {
      if (hasPurged(connection)) this.#finish().then(leave, leave);
    } catch {
      leave();
    }
  }

  /** Resolves when nothing is left of the session. @throws {ThroughlineError} SESSION_NOT_FOUND */
  async purge(ref: SessionRef): Promise<void> {
    this.#hasLooked = true;
    if (await this.#handle.read(hasPurged)) await this.#finish();
    await this.#filler.waitingFor(async () => {
      while (!(await this.#handle.remove((scene) => purgeSession(scene, ref), durable, purgeSlice)));
    });
  }

  #finish(): Promise<void> {
    return this.#handle.remove(() => undefined, durable, purgeSlice);
  }
}
