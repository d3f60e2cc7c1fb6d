import { createFinding, hasErrorCode, type SessionRef } from "@throughline/core";
import type { IndexFiller } from "./index-filler.ts";
import type { Connection } from "./open-connection.ts";
import { hasPurged, purgeSession, purgeSlice, type Remnant, type Remnants } from "./purge-session.ts";
import type { StoreHandle } from "./store-handle.ts";
import type { WriteContext } from "./store-context.ts";

const durable = { durability: "disk" } as const;

/** Deletes sessions for good, a few milliseconds at a time, and finishes what a process that was killed has left of that. */
export class PurgeKeeper {
  readonly #handle: StoreHandle;
  readonly #filler: IndexFiller;
  readonly #told = new Set<Remnant>();
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
    const stuck = (await this.#handle.read(hasPurged)) ? await this.#finish() : new Set<Remnant>();
    const remnants = { stuck, current: null };
    const goOn = (context: WriteContext): boolean => purgeSlice(context, remnants);
    await this.#filler.waitingFor(async () => {
      while (!(await this.#handle.remove((context) => purgeSession(context, ref, remnants), durable, goOn)));
    });
  }

  /**
   * Deletes what earlier purges have left, and returns what cannot be deleted. Content on damaged pages is reported and
   * kept, and does not block another purge.
   */
  async #finish(): Promise<ReadonlySet<Remnant>> {
    const stuck = new Set<Remnant>();
    for (;;) {
      const remnants: Remnants = { stuck, current: null };
      try {
        await this.#handle.remove(
          () => undefined,
          durable,
          (context) => purgeSlice(context, remnants),
        );
        return stuck;
      } catch (error) {
        // As it is now, whatever it was when it was set.
        const { current } = remnants as Remnants;
        if (current === null || !hasErrorCode(error, "STORE_CORRUPT")) throw error;
        stuck.add(current);
        this.#tell(current);
      }
    }
  }

  /** Once by each handle: it is met again by each purge. */
  #tell(remnant: Remnant): void {
    if (this.#told.has(remnant)) return;
    this.#told.add(remnant);
    const { path } = this.#handle.context;
    const what =
      remnant === "index" ? "An index that purged sessions were taken out of" : "The rest of a purged session";
    const message = `${what} stands on damaged pages of ${path} and cannot be deleted; it is shown to nobody.`;
    this.#handle.tell(createFinding("STORE_DAMAGED", message, { path }));
  }
}
