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
import { replyFields, type SpentTokens, spentTokens } from "./reply-fields.ts";

/** What the sessions of one store have in common. */
export interface MirrorContext {
  readonly store: SessionStore;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly onLoss: LiveItemsOptions["onLoss"] | undefined;
  /** The SDK's own; null where the SDK has none. */
  readonly fold: () => Promise<ClaudeSdk["foldSessionSummary"] | null>;
}

/** What the log held when this was read, and what was appended since. */
interface Known {
  readonly sessionId: string;
  readonly headId: string | null;
  readonly lastSeq: number;
  readonly mirror: LineMirror;
  /** Fields of the entry that the lines so far state. */
  readonly entry: Readonly<Record<string, unknown>>;
  readonly summary: SessionSummaryEntry | undefined;
  readonly spent: SpentTokens;
}

/** How often an append is made again because others were faster. */
const maxAttempts = 64;
/** What one append takes: a batch of the SDK's is cut at lines. */
const most = { lines: 250, characters: 4 * 1024 * 1024 };

/** A transcript of Claude Code in a session. */
export class MirroredSession {
  readonly ref: SessionRef;
  readonly #key: SessionKey;
  readonly #parent: SessionRef | null;
  readonly #context: MirrorContext;
  #known: Known | null = null;
  /** One call after the other. */
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  /** @param parent the session of the main transcript; null for that one */
  constructor(ref: SessionRef, key: SessionKey, parent: SessionRef | null, context: MirrorContext) {
    this.ref = ref;
    this.#key = key;
    this.#parent = parent;
    this.#context = context;
  }

  /** Whether nothing is under way. */
  get isIdle(): boolean {
    return this.#waiting === 0;
  }

  /**
   * Appends lines in order, those of which the `uuid` is not there yet.
   * @param assertMay asked first; what it throws ends the call
   */
  append(lines: readonly SessionStoreEntry[], assertMay: () => Promise<void>): Promise<void> {
    return this.#inOrder(async () => {
      await assertMay();
      for (const part of partsOf(lines)) await this.#append(part);
    });
  }

  /** All lines; null for a session without one. */
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
        // Nothing is there any more, which is what was asked.
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
      // What the mirror was given is stored, or it is made again.
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

  /** Null when somebody else wrote in between. */
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

  /** What the last append of a batch says of the session. */
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

  /** Sub-agents have no summary. */
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
      return { sessionId: "", headId: null, lastSeq: 0, mirror, entry: {}, summary: undefined, spent: spentTokens({}) };
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
    const spent = spentTokens(state.entry);
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

/** A batch in pieces that one append takes. @throws {ThroughlineError} INPUT_INVALID */
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
