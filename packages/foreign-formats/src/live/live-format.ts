import type { AppendDraft } from "@throughline/core";
import type { Fields, SourcedRecord } from "@throughline/core/internal";
import type { ProviderRules, ReplayTurn } from "@throughline/history/internal";
import type { WriteOptions } from "../format-writer.ts";
import type { MessageList } from "../message-list.ts";
import type { WrittenConversation } from "../write-conversation.ts";
import type { LossLog } from "../write-losses.ts";

/** Describes the position in a log at which new items of a running program are appended. */
export interface LivePlace {
  /** States the head before the new items; null for an empty branch. */
  readonly headId: string | null;
  /** States the seq of the last record in the log; 0 for an empty log. */
  readonly lastSeq: number;
  /** States the time of the new records, in ISO 8601. */
  readonly timestamp: string;
  /** Returns a new record id. */
  nextId(): string;
  /** Holds the records before the new items, which may contain the calls that the items answer. @default none */
  readonly records?: readonly SourcedRecord[];
}

/** Holds the drafts of one item. The first draft has the item's JSON as its source. */
export interface LiveDrafts {
  /** Holds a copy of the item after a round trip through JSON. */
  readonly item: Fields;
  /** Holds at least one draft. An item that requests leave out becomes a side record. */
  readonly drafts: readonly [AppendDraft, ...AppendDraft[]];
  /** States the id of the first draft's record. */
  readonly recordId: string;
  /** States the head after the drafts. */
  readonly headId: string | null;
}

/** Holds the records of a session from which items are built. */
export interface LiveSession {
  /** Holds the records in order of seq: all of them, or the end of the log that holds the context. */
  readonly records: readonly SourcedRecord[];
  /** States the last record of the active branch; null for a session without a main record. */
  readonly headId: string | null;
  /** States the session's id. Items that are built from records state it, or derive their ids from it. */
  readonly sessionId: string;
}

/** Holds an item of a program and the records that it comes from. */
export interface LiveItem {
  /** Holds the item in the program's form, a JSON object. The caller may change it. */
  readonly value: Fields;
  /** Lists the ids of the item's records; empty for an item that no record stores. */
  readonly recordIds: readonly string[];
  /** States whether the program itself passed exactly this item. */
  readonly isNative: boolean;
  /** Holds the item's JSON as a record stores it; null when no record stores the item in this form. */
  readonly source: string | null;
}

/** Converts the items of a running program: items to drafts, and records to items. */
export interface LiveFormat {
  /** States the `sourceFormat` of the records. */
  readonly name: string;
  /**
   * Returns the drafts of items, in order. Each item is the source of its first record.
   * @throws {ThroughlineError} INPUT_INVALID for an item that is not a JSON object, RECORD_INVALID for one that is
   * nested too deep; then nothing is drafted
   */
  drafts(items: readonly unknown[], place: LivePlace): readonly LiveDrafts[];
  /**
   * Returns the active branch as items. Items that the program passed are returned unchanged. Records of other
   * programs, and edited or redacted items, are rendered: a new item is built from the records. `onLoss` receives the
   * data that the format cannot hold.
   */
  items(session: LiveSession, options?: LiveItemsOptions): readonly LiveItem[];
}

/** Describes how to change the active branch: the records to append, and the new head. */
export interface LiveChange {
  /** Holds the drafts to append, in order; empty when nothing changes. */
  readonly drafts: readonly AppendDraft[];
  /** States the record that becomes the head; null for the beginning. Absent when the drafts set the head. */
  readonly rewindTo?: string | null;
  /** States the head after the change. */
  readonly headId: string | null;
}

/** Holds the options of `LiveFormat.items`. */
export interface LiveItemsOptions extends Partial<WriteOptions> {
  /**
   * Returns the items in a form that a model accepts: every call is answered, and failed replies are left out.
   * @default false
   */
  readonly repaired?: boolean;
}

/** Renders turns as items. */
export interface TurnWriter {
  /** Returns the items that the turn completes. An item may stay open for the results of its calls. */
  turn(turn: ReplayTurn): readonly Fields[];
  /** Returns the open item; empty when there is none. */
  close(): readonly Fields[];
}

/** Describes how one program's items are read and rendered. `liveFormat` builds a `LiveFormat` from it. */
export interface LiveMapping {
  readonly name: string;
  /** Creates the reader of items. A reader may remember earlier items, so each list gets a new one. */
  readonly createList: () => Pick<MessageList, "element">;
  readonly rules: ProviderRules;
  readonly createWriter: (session: LiveSession, conversation: WrittenConversation, losses: LossLog) => TurnWriter;
  /**
   * States whether an item holds the results of its own calls. An item whose result another program wrote must then be
   * rendered.
   */
  readonly holdsResults: boolean;
  /**
   * Adds an answer to each unanswered call of an item, for formats whose items hold the results of their calls. The
   * rest of the item stays. A format without this function renders the item again.
   */
  readonly answerOpenCalls?: (item: Fields, isLast: boolean) => Fields;
}
