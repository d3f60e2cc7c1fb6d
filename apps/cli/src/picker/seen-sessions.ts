import type { SessionStore } from "@throughline/core";
import { modifiedMs } from "../modified-ms.ts";
import { firstWords } from "../session-names.ts";
import { terminalSafeLine } from "../terminal-safe.ts";
import type { ListedSession } from "./listed-session.ts";

/** A file that was written within this time belongs to a program that still works in it. */
const activeMs = 5 * 60_000;

/** Learns what costs a read, for the rows that were shown: first words, and when the source was written. */
export class SeenSessions {
  readonly #store: SessionStore;
  readonly #signal: AbortSignal;
  readonly #onChange: () => void;
  readonly #names = new Map<string, string>();
  readonly #writtenMs = new Map<string, number>();
  readonly #wanted = new Map<string, ListedSession>();
  readonly #learned = new Set<string>();
  #isLearning = false;

  constructor(store: SessionStore, signal: AbortSignal, onChange: () => void) {
    this.#store = store;
    this.#signal = signal;
    this.#onChange = onChange;
  }

  nameOf(session: ListedSession): string {
    this.#want(session);
    return this.knownName(session);
  }

  /** Returns the name as far as it is known, and reads nothing. */
  knownName(session: ListedSession): string {
    return this.#names.get(session.id) ?? session.name;
  }

  isActive(session: ListedSession, nowMs: number): boolean {
    this.#want(session);
    return session.isAnswering || nowMs - (this.#writtenMs.get(session.id) ?? 0) < activeMs;
  }

  rename({ id }: Pick<ListedSession, "id">, label: string): void {
    this.#names.set(id, terminalSafeLine(label));
  }

  #want(session: ListedSession): void {
    if (!this.#learned.has(session.id)) this.#wanted.set(session.id, session);
  }

  /** Reads what is missing for the rows that were asked for since; runs once at a time. */
  learn(): void {
    if (this.#isLearning || this.#wanted.size === 0) return;
    this.#isLearning = true;
    void this.#run().finally(() => (this.#isLearning = false));
  }

  async #run(): Promise<void> {
    for (;;) {
      const [entry] = this.#wanted;
      if (entry === undefined || this.#signal.aborted) return;
      const [id, session] = entry;
      this.#wanted.delete(id);
      this.#learned.add(id);
      try {
        if (await this.#learn(session)) this.#onChange();
      } catch (error) {
        // The picker was closed while it read.
        if (!this.#signal.aborted) throw error;
      }
    }
  }

  async #learn(session: ListedSession): Promise<boolean> {
    const { id, ref, isNamed, sourcePath } = session;
    const words = isNamed ? null : await firstWords(this.#store, { ref }, this.#signal);
    if (words !== null && !this.#names.has(id)) this.#names.set(id, `"${words}"`);
    // For a session in a database, the path names the database and then the session.
    const writtenMs = sourcePath === null ? null : await modifiedMs(sourcePath);
    if (writtenMs !== null) this.#writtenMs.set(id, writtenMs);
    return words !== null || writtenMs !== null;
  }
}
