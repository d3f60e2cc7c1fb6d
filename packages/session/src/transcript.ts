import {
  type FileBlock,
  fileBlock,
  isFileReference,
  loadExisting,
  optionKinds,
  type OptionTable,
  type RecordWindow,
  runInSlices,
} from "@throughline/core/internal";
import { readWindow, type SessionRef, type SessionStore, type StoredRecord } from "@throughline/core";
import { buildContext } from "@throughline/history";
import { messageTreeSteps, type NeutralBlock, type NeutralMessage } from "@throughline/history/internal";

/** Sets the extent and the signal of `session.transcript`. */
export interface TranscriptOptions {
  /**
   * Includes the messages that a summary replaced, in place of the summary. Reads the whole session.
   * @default false
   */
  readonly all?: boolean | undefined;
  /**
   * States with each message that has siblings how many messages follow the same message. Reads the whole session.
   * @default false
   */
  readonly branches?: boolean | undefined;
  /** Aborts the read, which then throws ABORTED. */
  readonly signal?: AbortSignal | undefined;
}

/** Takes the blocks of a message, with those that refer to stored files. */
type WithFiles<Message> = Message extends NeutralMessage
  ? Omit<Message, "content"> & {
      /** Holds the content in order. A file that was sent with `sessions.files` is a block of the type `file`. */
      readonly content: readonly (NeutralBlock | FileBlock)[];
    }
  : never;

/** Holds a message, and with `branches` its place among the messages that follow the same message. */
export type TranscriptMessage = WithFiles<NeutralMessage> & {
  /** Is absent for a message without siblings. `session.branches` lists them. */
  readonly branches?: {
    /** States the place of the message among its siblings in the order of their writing; 1 for the oldest. */
    readonly position: number;
    /** Counts the siblings, the message included. */
    readonly count: number;
  };
};

/** Holds the messages of a session in a neutral shape. */
export interface SessionTranscript {
  /** Holds the id of the session that was read. */
  readonly sessionId: string;
  /** Holds the id of the last record; null when the session is empty. */
  readonly headId: string | null;
  /** Holds the id of the summary that the transcript begins with. Null without a summary, and with `all`. */
  readonly summaryId: string | null;
  /** Holds the messages, oldest first. `recordId` and `seq` name the record of each message. */
  readonly messages: readonly TranscriptMessage[];
}

export const transcriptTable: OptionTable<TranscriptOptions> = {
  all: optionKinds.flag,
  branches: optionKinds.flag,
  signal: optionKinds.signal,
};

export async function readTranscript(
  store: SessionStore,
  ref: SessionRef,
  { all = false, branches: withBranches = false, signal }: TranscriptOptions,
): Promise<SessionTranscript> {
  const options = signal === undefined ? {} : { signal };
  const isWhole = all || withBranches;
  const { state, records } = isWhole ? await allRecords(store, ref, options) : await readWindow(store, ref, options);
  const { headId } = state.head;
  // Without the boundaries of compactions and resets, all messages are included.
  const { messages, summaryId } = buildContext(all ? records.map(withoutBoundary) : records, { headId });
  const transcript = { sessionId: state.sessionId, headId, summaryId };
  const shown = messages.map(withFiles);
  return { ...transcript, messages: withBranches ? await withPlaces(shown, records) : shown };
}

function withFiles(message: NeutralMessage): TranscriptMessage {
  const content = message.content.map((block) =>
    block.type === "unknown" && isFileReference(block.block) ? fileBlock(block.block) : block,
  );
  return { ...message, content };
}

async function withPlaces(
  messages: readonly TranscriptMessage[],
  records: readonly StoredRecord[],
): Promise<readonly TranscriptMessage[]> {
  const tree = await runInSlices(messageTreeSteps(records));
  return messages.map((message) => {
    const siblings = tree.siblings(message.seq);
    if (siblings.length < 2) return message;
    const position = siblings.findIndex(({ seq }) => seq === message.seq) + 1;
    return { ...message, branches: { position, count: siblings.length } };
  });
}

async function allRecords(
  store: SessionStore,
  ref: SessionRef,
  options: { readonly signal?: AbortSignal },
): Promise<RecordWindow> {
  const state = await loadExisting(store, ref);
  const records: StoredRecord[] = [];
  for await (const page of store.read(ref, { ...options, beforeSeq: state.head.lastSeq + 1 }))
    records.push(...page.records);
  return { state, records };
}

/** A side record replaces no message, so the summary is turned into one. */
function withoutBoundary(stored: StoredRecord): StoredRecord {
  return stored.type === "compaction" || stored.type === "reset" ? { ...stored, side: true } : stored;
}
