import {
  hasErrorCode,
  type RandomSource,
  type SessionEntry,
  sessionRef,
  type SessionRef,
  type SessionState,
  type SessionStore,
} from "@throughline/core";
import { isSessionId } from "@throughline/core/internal";
import { createHash } from "node:crypto";

/**
 * Keeps marks of every source that was imported into a namespace. A purge removes the receipt in the session, but the
 * session must not return with the next import.
 * The marks are in the entries of sessions without records, in a separate namespace, so that no session list shows
 * them.
 */
export interface ImportedSources {
  /** True if the existing sessions must be scanned, because an import was interrupted, or ran before marks existed. */
  isInDoubt(): Promise<boolean>;
  each(take: (mark: string) => void): Promise<void>;
  /** Stores a run marker before sessions are created. An interrupted run leaves it behind. */
  begin(): Promise<void>;
  add(marks: readonly string[]): Promise<void>;
  /** Resolves once every added mark is stored. */
  finish(): Promise<void>;
}

export const marksKeyStart = "agent:main:imports:";
const runStart = `${marksKeyStart}running:`;
const marksStart = `${marksKeyStart}sources:`;
/** Limits the marks of one entry to about 20 kB. */
const mostMarks = 1000;
const pageSessions = 200;

export function marksNamespace(namespace: string): string {
  const name = `${namespace === "" ? "throughline" : namespace}.imports`;
  if (isSessionId(name)) return name;
  return `${createHash("sha256").update(namespace).digest("hex").slice(0, 32)}.imports`;
}

export function createImportedSources(store: SessionStore, namespace: string, random: RandomSource): ImportedSources {
  return new StoredMarks(store, marksNamespace(namespace), random);
}

class StoredMarks implements ImportedSources {
  readonly #store: SessionStore;
  readonly #namespace: string;
  readonly #random: RandomSource;
  #begun: Promise<void> | null = null;
  #runRef: SessionRef | null = null;
  /** Holds earlier runs that were interrupted. */
  #cutOff: readonly SessionRef[] = [];
  #pending: string[] = [];
  #written: Promise<void> = Promise.resolve();
  #last: SessionState | null = null;
  #isOutOfReach = false;

  constructor(store: SessionStore, namespace: string, random: RandomSource) {
    this.#store = store;
    this.#namespace = namespace;
    this.#random = random;
  }

  async isInDoubt(): Promise<boolean> {
    try {
      const [first] = await this.#page(marksKeyStart, 1);
      return first === undefined || first.ref.key.startsWith(runStart);
    } catch (error) {
      if (!hasErrorCode(error, "KEY_AGENT_MISMATCH", "FORBIDDEN")) throw error;
      // This store is limited to one agent or namespace, so earlier purges cannot be read.
      this.#isOutOfReach = true;
      return false;
    }
  }

  async each(take: (mark: string) => void): Promise<void> {
    if (this.#isOutOfReach) return;
    this.#cutOff = (await this.#page(runStart, pageSessions)).map(({ ref }) => ref);
    let cursor: string | null = null;
    do {
      const page = await this.#list(marksStart, pageSessions, cursor);
      for (const state of page.sessions) {
        const marks = marksOf(state.entry);
        for (const mark of marks) take(mark);
        if (marks.length < mostMarks) this.#last = state;
      }
      cursor = page.nextCursor;
    } while (cursor !== null);
  }

  begin(): Promise<void> {
    return (this.#begun ??= this.#begin());
  }

  async #begin(): Promise<void> {
    if (this.#isOutOfReach) return;
    const sessionId = this.#random.uuid();
    const ref = this.#ref(`${runStart}${sessionId}`);
    await this.#store.save(ref, { sessionId }, { ifRevision: null });
    this.#runRef = ref;
  }

  async add(marks: readonly string[]): Promise<void> {
    if (marks.length === 0 || this.#isOutOfReach) return;
    this.#pending.push(...marks);
    if (this.#pending.length >= mostMarks) await this.#flush();
  }

  async finish(): Promise<void> {
    await this.#flush();
    const runs = [...this.#cutOff, ...(this.#runRef === null ? [] : [this.#runRef])];
    for (const ref of runs) {
      try {
        await this.#store.remove(ref, { purge: true });
      } catch (error) {
        // Two concurrent imports may both remove the marker of a third run.
        if (!hasErrorCode(error, "SESSION_NOT_FOUND")) throw error;
      }
    }
    this.#runRef = null;
    this.#cutOff = [];
    this.#begun = null;
  }

  /** Writes one batch at a time; marks added meanwhile go into the next batch. */
  #flush(): Promise<void> {
    const next = this.#written.then(() => this.#write(this.#pending.splice(0)));
    // The waiting caller gets the error, and the next write starts anyway.
    this.#written = next.catch(() => undefined);
    return next;
  }

  async #write(marks: readonly string[]): Promise<void> {
    for (let at = 0; at < marks.length;) {
      const last = this.#last;
      const known = last === null ? [] : marksOf(last.entry);
      const taken = marks.slice(at, at + mostMarks - known.length);
      const isNew = last === null || taken.length === 0;
      const part = isNew ? marks.slice(at, at + mostMarks) : taken;
      try {
        this.#last = isNew ? await this.#saveNew(part) : await this.#extend(last, [...known, ...part]);
      } catch (error) {
        if (isNew || !hasErrorCode(error, "REVISION_CONFLICT", "SESSION_NOT_FOUND")) throw error;
        // Another import writes this entry, so this run starts a new one.
        this.#last = null;
        continue;
      }
      at += part.length;
    }
  }

  #saveNew(marks: readonly string[]): Promise<SessionState> {
    const sessionId = this.#random.uuid();
    return this.#store.save(this.#ref(`${marksStart}${sessionId}`), { sessionId, marks }, { ifRevision: null });
  }

  #extend({ ref, entry, revision }: SessionState, marks: readonly string[]): Promise<SessionState> {
    return this.#store.save(ref, { ...entry, marks }, { ifRevision: revision });
  }

  async #page(keyPrefix: string, limit: number): Promise<readonly SessionState[]> {
    return (await this.#list(keyPrefix, limit, null)).sessions;
  }

  #list(keyPrefix: string, limit: number, cursor: string | null): ReturnType<SessionStore["list"]> {
    const query = { namespace: this.#namespace, agentId: "main", keyPrefix, sort: "key", limit } as const;
    return this.#store.list(cursor === null ? query : { ...query, cursor });
  }

  #ref(key: string): SessionRef {
    return sessionRef({ key, namespace: this.#namespace });
  }
}

function marksOf({ marks }: SessionEntry): readonly string[] {
  return Array.isArray(marks) ? marks.filter((mark) => typeof mark === "string") : [];
}
