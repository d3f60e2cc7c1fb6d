import type { SessionState, SessionStore, StoredRecord } from "@throughline/core";
import { relatedSessions, sessionRow } from "@throughline/core/internal";
import { promptText } from "@throughline/history/internal";
import { type PrintedAgent, promptTitle, type SubAgent, SubAgentPlaces } from "@throughline/transcript-view/internal";
import type { SecretScan } from "./secret-scan.ts";

/** Is a sub-agent of a session, which a file shows under its call. */
export interface FoundAgent extends SubAgent {
  readonly state: SessionState;
  readonly folder: string | null;
  /** Holds the number that the secret scan gives its entry. Those of its records follow. */
  readonly scanSeq: number;
  readonly printed: PrintedAgent;
}

/** Limits the sessions that are looked at, the sub-agents, and the records of each that a file shows. */
const mostLooked = 10_000;
const mostAgents = 100;
const mostRecords = 500;
/** The first prompt of an imported session stands behind records of its program. */
const mostForWords = 40;

/** Finds the sub-agents of a session, and the calls that started them. */
export class SubAgents {
  readonly #store: SessionStore;
  readonly #signal: AbortSignal;
  readonly #places: SubAgentPlaces<FoundAgent>;
  readonly #count: number;
  #placed: ReadonlyMap<string, readonly FoundAgent[]> = new Map();

  private constructor(store: SessionStore, signal: AbortSignal, agents: readonly FoundAgent[], count: number) {
    this.#store = store;
    this.#signal = signal;
    this.#places = new SubAgentPlaces(agents);
    this.#count = count;
  }

  static async find(store: SessionStore, state: SessionState, given: AbortSignal | undefined): Promise<SubAgents> {
    const signal = given ?? new AbortController().signal;
    const { agentId } = state.ref;
    const { children } = await relatedSessions(store, state, { agentId, most: mostLooked, signal });
    const agents: FoundAgent[] = [];
    for (const child of children.slice(0, mostAgents)) {
      const { key, sessionId, createdAtMs, cwd, name, messageCount } = sessionRow(child);
      const scanSeq = state.head.lastSeq + 1 + agents.length * (mostRecords + 1);
      const left = Math.max(0, child.head.lastSeq - mostRecords);
      const printed = { name, key, messages: messageCount, left };
      const words = await firstWords(pagesOf(store, child, mostForWords, signal));
      agents.push({ state: child, key, sessionId, createdAtMs, firstWords: words, folder: cwd, scanSeq, printed });
    }
    return new SubAgents(store, signal, agents, children.length);
  }

  /** Takes a record of the session that called, in the order of their seq. */
  take(stored: StoredRecord): void {
    this.#places.take(stored);
  }

  /** Finds the secrets of the sub-agents that have a place. No record is taken after this. */
  async place(scan: SecretScan | null): Promise<void> {
    this.#placed = this.#places.places();
    if (scan === null) return;
    for (const { state, scanSeq } of [...this.#placed.values()].flat()) {
      await scan.find([{ seq: scanSeq, value: { ...state.entry, key: state.ref.key } }]);
      for await (const records of pagesOf(this.#store, state, mostRecords, this.#signal))
        await scan.find(records.map(({ seq, record }) => ({ seq: scanSeq + seq, value: record })));
    }
  }

  get counts(): { readonly placed: number; readonly others: number } {
    const placed = [...this.#placed.values()].flat().length;
    return { placed, others: this.#count - placed };
  }

  /** Returns the sub-agents of a call. */
  at(place: string): readonly FoundAgent[] {
    return this.#placed.get(place) ?? [];
  }

  /** Reads the records that a file shows, without secrets. */
  async *records({ state, scanSeq }: FoundAgent, scan: SecretScan | null): AsyncGenerator<StoredRecord, void, void> {
    for await (const records of pagesOf(this.#store, state, mostRecords, this.#signal))
      for (const stored of records)
        yield scan === null ? stored : { ...stored, record: scan.replaced(scanSeq + stored.seq, stored.record) };
  }
}

async function* pagesOf(
  store: SessionStore,
  { ref, head }: SessionState,
  most: number,
  signal: AbortSignal,
): AsyncGenerator<readonly StoredRecord[], void, void> {
  if (head.lastSeq === 0) return;
  for await (const { records } of store.read(ref, { beforeSeq: Math.min(head.lastSeq, most) + 1, signal }))
    yield records.filter(({ side }) => !side);
}

async function firstWords(pages: AsyncIterable<readonly StoredRecord[]>): Promise<string | null> {
  for await (const records of pages)
    for (const { record } of records) {
      const title = promptTitle(record, { promptText });
      if (title !== null) return title;
    }
  return null;
}
