import type { AppendDraft } from "@throughline/core";
import type { Fields, SourcedRecord } from "@throughline/core/internal";
import type { ProviderRules, ReplayTurn } from "@throughline/history/internal";
import type { WriteOptions } from "../format-writer.ts";
import type { MessageList } from "../message-list.ts";
import type { WrittenConversation } from "../write-conversation.ts";
import type { LossLog } from "../write-losses.ts";

/** Where new items of a running program stand in a log. */
export interface LivePlace {
  /** The head before them. */
  readonly headId: string | null;
  /** The seq of the last record in the log; 0 for an empty log. */
  readonly lastSeq: number;
  /** ISO 8601. */
  readonly timestamp: string;
  /** Makes the id of a record. */
  nextId(): string;
  /** The log before them, where calls may stand that the items answer. @default none is known */
  readonly records?: readonly SourcedRecord[];
}

/** The drafts of one item: the first has the item as its source. */
export interface LiveDrafts {
  /** The item as JSON gives it back, a copy of what was handed over. */
  readonly item: Fields;
  /** At least one: an item that no model sees becomes a side record. */
  readonly drafts: readonly [AppendDraft, ...AppendDraft[]];
  /** Of the first record. */
  readonly recordId: string;
  /** The head after them. */
  readonly headId: string | null;
}

/** What of a log a program is to see. */
export interface LiveSession {
  /** In order of seq: all records, or the end of them that holds the context. */
  readonly records: readonly SourcedRecord[];
  /** The record at the end of the active branch; null for a session without a main record. */
  readonly headId: string | null;
  /** The session's id. Rendered items state it, or derive their ids from it. */
  readonly sessionId: string;
}

/** An item of a program, with the records it was made of. */
export interface LiveItem {
  /** The item as the program has it, a JSON object that is the caller's to change. */
  readonly value: Fields;
  /** Of the first it has a record of its own; empty for what was made up. */
  readonly recordIds: readonly string[];
  /** True when the program itself handed over exactly this item. */
  readonly isNative: boolean;
  /** The item as a record keeps it; null where no record keeps it in this form. */
  readonly source: string | null;
}

/** The items of a program that runs: in as drafts, out as the program knows them. */
export interface LiveFormat {
  /** `sourceFormat` of its records. */
  readonly name: string;
  /**
   * The drafts of items, in order. Each item is the source of its first record.
   * @throws {ThroughlineError} INPUT_INVALID for an item that is no JSON object; RECORD_INVALID for one that is nested too
   *   deep. Nothing is drafted then.
   */
  drafts(items: readonly unknown[], place: LivePlace): readonly LiveDrafts[];
  /**
   * The active branch as items: those that the program handed over come back as they were; what others wrote, or what was
   * edited or redacted, is rendered. What has no place is reported.
   */
  items(session: LiveSession, options?: LiveItemsOptions): readonly LiveItem[];
}

/** A change of a branch. */
export interface LiveChange {
  /** What to append, in order; empty when nothing changes. */
  readonly drafts: readonly AppendDraft[];
  /** The record that becomes the head; null for the beginning. Absent: the drafts set the head. */
  readonly rewindTo?: string | null;
  /** The head after it. */
  readonly headId: string | null;
}

/** Options of `LiveFormat.items`. */
export interface LiveItemsOptions extends Partial<WriteOptions> {
  /** True: as a model is to be sent it. Every call is answered, and replies that failed are left out. @default false */
  readonly repaired?: boolean;
}

/** Writes turns of a conversation as items. */
export interface TurnWriter {
  /** The items that are complete with this turn. */
  turn(turn: ReplayTurn): readonly Fields[];
  /** The item that is still open. */
  close(): readonly Fields[];
}

/** How a format is read and written while its program runs. */
export interface LiveMapping {
  readonly name: string;
  readonly createList: () => Pick<MessageList, "element">;
  readonly rules: ProviderRules;
  readonly createWriter: (session: LiveSession, conversation: WrittenConversation, losses: LossLog) => TurnWriter;
  /** Whether an item holds the results of its own calls. */
  readonly holdsResults: boolean;
  /**
   * Adds an answer to each call of an item that has none, where items hold the results of their calls. The rest of the item
   * stays. Without this function such an item is rendered for a model.
   */
  readonly answered?: (item: Fields, isLast: boolean) => Fields;
}
