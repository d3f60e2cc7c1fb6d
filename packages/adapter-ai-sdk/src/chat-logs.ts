import type { SessionRef } from "@throughline/core";
import {
  adapterOptions,
  type AdapterOptions,
  aiSdkMessages,
  createFrameworkLog,
  firstBatch,
  type FrameworkLog,
  frameworkSessionKey,
  type LiveItem,
  type LiveItemsOptions,
  type LogChange,
  type LogView,
  movesHead,
  noWait,
} from "@throughline/foreign-formats/internal";
import { type StreamChange, streamChange, streamTurnOf } from "./active-streams.ts";
import { decidedTexts, waitOf } from "./chat-approvals.ts";
import {
  changeOf,
  cutAt,
  framework,
  isUnchanged,
  type StoredChat,
  storedChat,
  type StoredText,
} from "./chat-changes.ts";

export interface ChatLogsOptions extends AdapterOptions {
  readonly refOf?: ((chatId: string) => SessionRef) | undefined;
  readonly onLoss?: LiveItemsOptions["onLoss"] | undefined;
}

interface OpenChat {
  readonly log: FrameworkLog;
  /** Holds the ids of messages that this store returned or saved. Only these can be taken back by a later save. */
  known: ReadonlySet<unknown>;
  /** Holds the content of the log at the last read, so that a save right after a load does not read all of it again. */
  stored: StoredChat | null;
}

/** Describes the messages of a save, as text, and the ids among them. */
export interface SavedTexts {
  readonly texts: readonly string[];
  readonly ids: ReadonlySet<unknown>;
}

/** Describes one save of a chat. */
export interface ChatSave {
  /** Returns the messages that the chat has after the save; null writes nothing. */
  readonly make: (view: LogView, stored: readonly StoredText[]) => SavedTexts | null;
  /** Names the stream that answers after the save; null for none, undefined for the same. */
  readonly activeStreamId?: string | null | undefined;
  /** Sets fields of the chat's entry. */
  readonly entry?: Readonly<Record<string, unknown>>;
}

/** Limits the chats whose records stay in memory; a dropped chat is read again on use. */
const mostOpen = 500;

/** Reads and changes the sessions behind chats. */
export class ChatLogs {
  readonly #options: ChatLogsOptions;
  readonly #open = new Map<string, OpenChat>();

  constructor(options: ChatLogsOptions) {
    this.#options = options;
  }

  refOf(id: string): SessionRef {
    const { agentId, namespace } = adapterOptions(this.#options);
    return this.#options.refOf?.(id) ?? frameworkSessionKey({ agentId, framework, id, namespace });
  }

  chat(id: string): OpenChat {
    const { store, clock, random } = adapterOptions(this.#options);
    const ref = this.refOf(id);
    const name = JSON.stringify(ref);
    const chat = this.#open.get(name) ?? {
      log: createFrameworkLog({ store, ref, entry: { chatId: id }, clock, random }),
      known: new Set(),
      stored: null,
    };
    this.#open.delete(name);
    this.#open.set(name, chat);
    const [oldest] = this.#open.keys();
    if (this.#open.size > mostOpen && oldest !== undefined) this.#open.delete(oldest);
    return chat;
  }

  itemsOf(view: LogView, repaired: boolean): readonly LiveItem[] {
    const { onLoss } = this.#options;
    return aiSdkMessages.items(view, { repaired, ...(onLoss === undefined ? {} : { onLoss }) });
  }

  /** Stores the change that `make` returns for the newest messages. The result is the view after the save. */
  async save(id: string, { make, activeStreamId, entry = {} }: ChatSave): Promise<LogView> {
    const { clock, random } = adapterOptions(this.#options);
    const { known } = this.chat(id);
    // The store limits an append, so a longer chat takes several. Each one starts from the new end of the log.
    for (let isWhole = false; ;) {
      isWhole = true;
      const view = await this.chat(id).log.append((now) => {
        const stored = this.#storedIn(id, now);
        const saved = make(now, stored);
        if (saved === null) return null;
        const times = { random, nowMs: clock.nowMs() };
        const stream = streamChange(now.state, activeStreamId, times);
        const change = this.#changeTo(saved, { id, view: now, stored, known, stream, times });
        if (change === null) return null;
        const drafts = change.drafts;
        const batch = firstBatch(drafts, this.#options.store.capabilities.limits);
        const isLast = batch.length === drafts.length;
        isWhole = isLast && stream.isWhole;
        const open = streamTurnOf(now.state);
        // The stream ends, and the calls wait, only when the whole answer is stored.
        const within = open === null ? null : ({ action: "within", fence: open.fence } as const);
        const moved = change.rewindTo === undefined || batch.some(movesHead) ? {} : { rewindTo: change.rewindTo };
        const fields = isLast ? { ...stream.entry, ...change.entry, ...entry } : noWait(now.state).entry;
        return { drafts: batch, ...moved, entry: { chatId: id, ...fields }, turn: isLast ? stream.turn : within };
      });
      if (isWhole) return view;
    }
  }

  #changeTo(
    { texts: given, ids }: SavedTexts,
    at: {
      readonly id: string;
      readonly view: LogView;
      readonly stored: readonly StoredText[];
      readonly known: ReadonlySet<unknown>;
      readonly stream: StreamChange;
      readonly times: { readonly random: ReturnType<typeof adapterOptions>["random"]; readonly nowMs: number };
    },
  ): LogChange | null {
    const { id, view, stored, known, stream, times } = at;
    const isSame = isUnchanged(changeOf(stored, given, ids, known));
    const change = changeOf(stored, isSame ? given : decidedTexts(view, given), ids, known);
    // While a stream answers, no call waits: its turn may still run the tool.
    const wait = stream.isOpen ? noWait(view.state) : waitOf(view, stored, change, times);
    if (isSame && !stream.hasNews && wait.drafts.length === 0 && view.state !== null) return null;
    const { log } = this.chat(id);
    const place = log.place(view);
    const cut = cutAt(change.keep, stored, view, place);
    const made = aiSdkMessages.drafts(change.added, { ...place, headId: cut.headId });
    // The mark of calls that wait ends the turn, too.
    const marks = wait.drafts.length > 0 && !stream.isOpen ? [] : stream.drafts;
    return {
      drafts: [...cut.drafts, ...made.flatMap((one) => one.drafts), ...marks, ...wait.drafts],
      ...(cut.rewindTo === undefined ? {} : { rewindTo: cut.rewindTo }),
      entry: wait.entry,
    };
  }

  /** Returns the messages of a view. The last load is reused when the log has not changed since. */
  #storedIn(id: string, view: LogView): readonly StoredText[] {
    const chat = this.chat(id);
    const isSame = chat.stored?.records === view.records && chat.stored.headId === view.headId;
    if (!isSame || chat.stored === null) chat.stored = storedChat(view, this.itemsOf(view, false));
    return chat.stored.messages;
  }
}
