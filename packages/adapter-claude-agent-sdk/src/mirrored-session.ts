import type { SessionKey, SessionStoreEntry, SessionSummaryEntry } from "@anthropic-ai/claude-agent-sdk";
import {
  type AppendDraft,
  appendOnce,
  type Clock,
  hasErrorCode,
  openSession,
  type RandomSource,
  type RecordDraft,
  type SessionRef,
  type SessionState,
  type SessionStore,
  ThroughlineError,
} from "@throughline/core";
import { type Fields, isSideRecord, type SourcedRecord } from "@throughline/core/internal";
import {
  firstBatch,
  type LinedSession,
  LineMirror,
  lineText,
  type LiveItemsOptions,
  loggedLines,
  type MirroredLines,
} from "@throughline/foreign-formats/internal";
import type { ClaudeSdk } from "./claude-sdk.ts";
import { readSpentTokens, replyFields, type SpentTokens } from "./reply-fields.ts";

export interface MirrorContext {
  readonly store: SessionStore;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly onLoss: LiveItemsOptions["onLoss"] | undefined;
  /** Loads the SDK's `foldSessionSummary`; null when the SDK is not installed or lacks it. */
  readonly fold: () => Promise<ClaudeSdk["foldSessionSummary"] | null>;
}

/** Holds the content of the log at the last read, and later appends of this process. */
interface Known {
  readonly sessionId: string;
  readonly headId: string | null;
  readonly lastSeq: number;
  readonly mirror: LineMirror;
  /** Holds the fields of the entry that the stored lines state. */
  readonly entry: Readonly<Record<string, unknown>>;
  readonly summary: SessionSummaryEntry | undefined;
  readonly spent: SpentTokens;
}

/** Limits the attempts of an append, because other processes may write to the session at the same time. */
const maxAttempts = 64;
/** Limits one append. A larger batch of the SDK is split between lines. */
const most = { lines: 250, characters: 4 * 1024 * 1024 };

export class MirroredSession {
  readonly ref: SessionRef;
  readonly #key: SessionKey;
  readonly #parent: SessionRef | null;
  readonly #context: MirrorContext;
  #known: Known | null = null;
  /** Serializes the calls: each append continues the state that the previous one left. */
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  /** @param parent the session of the main transcript; null when this is the main transcript */
  constructor(ref: SessionRef, key: SessionKey, parent: SessionRef | null, context: MirrorContext) {
    this.ref = ref;
    this.#key = key;
    this.#parent = parent;
    this.#context = context;
  }

  /** States whether the session may be dropped from the cache: calls under way need their order. */
  get isIdle(): boolean {
    return this.#waiting === 0;
  }

  /**
   * Appends lines in order. Lines whose `uuid` is already stored are left out.
   * @param assertMay runs first; its error ends the call
   */
  append(lines: readonly SessionStoreEntry[], assertMay: () => Promise<void>): Promise<void> {
    return this.#inOrder(async () => {
      await assertMay();
      for (const part of partsOf(lines)) await this.#append(part);
    });
  }

  /** Returns all lines; null for a session without lines. */
  load(): Promise<SessionStoreEntry[] | null> {
    return this.#inOrder(async () => {
      const { store, onLoss } = this.#context;
      const state = await store.load(this.ref);
      if (state === null) return null;
      const records = await this.#records(state);
      const lines = loggedLines(this.#lined(state, records), onLoss);
      return lines.length === 0 ? null : lines.map(({ value }) => value as SessionStoreEntry);
    });
  }

  remove(purge: boolean): Promise<void> {
    return this.#inOrder(async () => {
      this.#known = null;
      try {
        await this.#context.store.remove(this.ref, { purge });
      } catch (error) {
        // The session no longer exists, so the request is fulfilled.
        if (!hasErrorCode(error, "SESSION_NOT_FOUND")) throw error;
      }
    });
  }

  #inOrder<Result>(work: () => Promise<Result>): Promise<Result> {
    this.#waiting += 1;
    const result = this.#last.then(work, work);
    const end = (): void => void (this.#waiting -= 1);
    this.#last = result.then(end, end);
    return result;
  }

  async #append(lines: readonly SessionStoreEntry[]): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      const known = this.#known ?? (await this.#read());
      // `push` changes the mirror. It is dropped here, so that a failed append reads it again from the log.
      this.#known = null;
      const made = known.mirror.push(lines, known.lastSeq);
      if (made.drafts.length === 0) {
        this.#known = known;
        return;
      }
      try {
        this.#known = await this.#write(known, made);
        return;
      } catch (error) {
        const isOvertaken = ["APPEND_CONFLICT", "RECORD_ID_TAKEN", "SESSION_NOT_FOUND"].some((code) =>
          hasErrorCode(error, code as "APPEND_CONFLICT"),
        );
        if (!isOvertaken || attempt >= maxAttempts) throw error;
      }
    }
  }

  /** Returns null when another process wrote in between: the mirror lacks those records. */
  async #write(known: Known, made: MirroredLines): Promise<Known | null> {
    const { store, random } = this.#context;
    const summary = await this.#folded(known.summary, made.added as readonly SessionStoreEntry[]);
    const replies = replyFields(made.drafts, known.spent);
    if (known.sessionId === "") await openSession(store, this.ref, { random });
    let { headId, lastSeq, sessionId } = known;
    let rest: readonly AppendDraft[] = made.drafts;
    let isAlone = true;
    while (rest.length > 0) {
      const batch = firstBatch(rest, store.capabilities.limits);
      rest = rest.slice(batch.length);
      const end =
        rest.length > 0
          ? {}
          : this.#end(known, made, { summary, lastSeq: lastSeq + batch.length, fields: replies.fields });
      const { head, records } = await appendOnce(store, this.ref, batch, {
        expect: { head: headId },
        idempotencyKey: random.uuid(),
        isNewKey: true,
        ...end,
      });
      isAlone &&= records[0]?.seq === lastSeq + 1;
      ({ headId, lastSeq, sessionId } = head);
    }
    const { spent } = replies;
    return isAlone ? { mirror: known.mirror, headId, lastSeq, sessionId, entry: made.entry, summary, spent } : null;
  }

  /** Builds the entry fields for the last append of a batch. They must describe the session with all lines stored. */
  #end(
    { entry: before }: Known,
    { entry, drafts, headId }: MirroredLines,
    { summary, lastSeq, fields }: Pick<Known, "summary" | "lastSeq"> & { readonly fields: Fields },
  ): { readonly entry: Readonly<Record<string, unknown>>; readonly rewindTo?: string | null } {
    const news = Object.entries(entry).filter(([name, value]) => before[name] !== value);
    const main = drafts.findLast(isMain) as { readonly id?: string; readonly record?: { id?: string } } | undefined;
    const lastId = main?.id ?? main?.record?.id;
    const { projectKey, sessionId, subpath } = this.#key;
    const spawned = this.#parent === null ? {} : { spawnedBy: this.#parent.key, spawnDepth: 1 };
    return {
      entry: {
        ...fields,
        ...Object.fromEntries(news),
        ...spawned,
        claudeSession: { projectKey, sessionId, ...(subpath === undefined ? {} : { subpath }) },
        ...(summary === undefined ? {} : { claudeSummary: { seq: lastSeq, data: summary.data } }),
        updatedAt: this.#context.clock.nowMs(),
      },
      ...(main === undefined || lastId === headId ? {} : { rewindTo: headId }),
    };
  }

  /** Folds the new lines into the summary. The SDK keeps no summaries of sub-agents. */
  async #folded(
    before: SessionSummaryEntry | undefined,
    lines: readonly SessionStoreEntry[],
  ): Promise<SessionSummaryEntry | undefined> {
    if (this.#parent !== null || lines.length === 0) return before;
    const fold = await this.#context.fold();
    return fold === null ? undefined : fold(before, this.#key, [...lines]);
  }

  async #read(): Promise<Known> {
    const { store } = this.#context;
    const limits = store.capabilities.limits;
    const state = await store.load(this.ref);
    if (state === null) {
      const mirror = new LineMirror({ records: [] }, [], limits);
      return {
        sessionId: "",
        headId: null,
        lastSeq: 0,
        mirror,
        entry: {},
        summary: undefined,
        spent: readSpentTokens({}),
      };
    }
    if (state.entry["claudeSession"] === undefined && state.entry.sdkSessionId !== undefined)
      throw new ThroughlineError("INPUT_INVALID", `createSdkConversation records the session "${this.ref.key}".`, {
        outcome: "not-applied",
        remedy: "Give the store another session, or use the conversation alone.",
      });
    const records = await this.#records(state);
    const lines = loggedLines(this.#lined(state, records));
    const mirror = new LineMirror({ records }, lines, limits);
    const values = lines.map(({ value }) => value as SessionStoreEntry);
    const summary = await this.#folded(undefined, values);
    const lastSeq = records.at(-1)?.seq ?? 0;
    const spent = readSpentTokens(state.entry);
    return { ...state.head, lastSeq, mirror, entry: mirror.entry, summary, spent };
  }

  async #records({ head }: SessionState): Promise<readonly SourcedRecord[]> {
    const records: SourcedRecord[] = [];
    const range = { beforeSeq: head.lastSeq + 1, payload: "source" } as const;
    for await (const page of this.#context.store.read(this.ref, range)) records.push(...page.records);
    return records;
  }

  #lined({ head, entry }: SessionState, records: readonly SourcedRecord[]): LinedSession {
    const texts = { cwd: entry["cwd"], label: entry.label, title: entry.title };
    const { cwd, label, title } = texts;
    return {
      records,
      headId: head.headId,
      sessionId: this.#key.sessionId,
      cwd: typeof cwd === "string" ? cwd : "",
      label: typeof label === "string" ? label : null,
      title: typeof title === "string" ? title : null,
    };
  }
}

function isMain(draft: AppendDraft): boolean {
  return !isSideRecord(("record" in draft && !("type" in draft) ? draft.record : draft) as RecordDraft);
}

/** Splits a batch into parts that one append takes. @throws {ThroughlineError} INPUT_INVALID */
function partsOf(lines: readonly SessionStoreEntry[]): readonly (readonly SessionStoreEntry[])[] {
  const parts: SessionStoreEntry[][] = [];
  let characters = 0;
  for (const [index, line] of lines.entries()) {
    const { length } = lineText(line, index).text;
    const part = parts.at(-1);
    const isFull = part === undefined || part.length >= most.lines || characters + length > most.characters;
    if (isFull) parts.push([line]);
    else part.push(line);
    characters = isFull ? length : characters + length;
  }
  return parts;
}
