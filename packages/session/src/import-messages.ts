import {
  appendOnce,
  openSession,
  type RandomSource,
  type SessionRef,
  type SessionState,
  type SessionStore,
  type StoredRecord,
  ThroughlineError,
} from "@throughline/core";
import {
  assertArgument,
  assertKnownOptions,
  type MessageDraft,
  optionKinds,
  type OptionTable,
  prepareDrafts,
  systemClock,
  systemRandom,
  systemRecordIds,
  withStored,
} from "@throughline/core/internal";
import { locateNamed } from "./locate-named.ts";
import type { SessionName } from "./sessions.ts";

/** Sets how `importMessages` treats a session with messages. */
export interface ImportMessagesOptions {
  /**
   * States whether a session with messages throws SESSION_EXISTS, or the messages are appended to it.
   * @default "reject"
   */
  readonly whenNotEmpty?: "reject" | "append" | undefined;
  /** Generates the ids of new records. @default the system's random source */
  readonly random?: RandomSource | undefined;
}

export const importTable: OptionTable<ImportMessagesOptions> = {
  whenNotEmpty: optionKinds.oneOf(["reject", "append"]),
  random: optionKinds.objectWith("uuid", "uint32"),
};

/**
 * Starts a session with messages that a program stored itself so far. One append stores all of them or none, so a
 * program that is killed during the import can repeat it. The store limits the size of an append:
 * `capabilities.limits`.
 *
 * @param store the store; the caller closes it
 * @param session a label, a key, or an address; a missing session is created
 * @param drafts the messages as `recordsFromMessages` of `@throughline/history/<provider>` returns them
 * @returns the stored records, for `history.append`
 *
 * @throws {ThroughlineError} SESSION_EXISTS when the session holds messages, SESSION_BUSY while a turn is open,
 * KEY_INVALID, SESSION_ARCHIVED, INPUT_INVALID, BATCH_TOO_LARGE, and what the store throws
 * @example await importMessages(store, "home", recordsFromMessages(messages, { model: "claude-sonnet-5" }));
 */
export async function importMessages(
  store: SessionStore,
  session: SessionName,
  drafts: readonly MessageDraft[],
  options: ImportMessagesOptions = {},
): Promise<readonly StoredRecord[]> {
  assertKnownOptions("importMessages", options, importTable);
  assertArgument("importMessages", "drafts", drafts, optionKinds.list);
  const { whenNotEmpty = "reject", random = systemRandom } = options;
  const { ref, label } = await locateNamed("importMessages", store, session);
  if (ref.archiveId !== undefined)
    throw new ThroughlineError("SESSION_ARCHIVED", "An archived session takes no messages.", { details: { ...ref } });
  // The drafts are checked first. A refused import must not leave an empty session behind.
  prepareDrafts(drafts, { ids: systemRecordIds, clock: systemClock, limits: store.capabilities.limits });
  const { state } = await openSession(store, ref, { random, entry: label === null ? {} : { label } });
  if (whenNotEmpty === "reject" && state.messageCount > 0) throw notEmpty(ref, state);
  if (drafts.length === 0) return [];
  // Another process that appends a message meanwhile moves the head. The import is refused then, because it would not
  // start the session.
  const result = await appendOnce(store, ref, drafts, {
    expect: { head: state.head.headId },
    idempotencyKey: random.uuid(),
    isNewKey: true,
    return: "stored",
  });
  return (await withStored(store, ref, result, { return: "stored" })).stored ?? [];
}

function notEmpty(ref: SessionRef, { messageCount }: SessionState): ThroughlineError {
  const count = messageCount === 1 ? "a message" : `${messageCount} messages`;
  return new ThroughlineError("SESSION_EXISTS", `Session ${JSON.stringify(ref.key)} already holds ${count}.`, {
    outcome: "not-applied",
    details: { ...ref, messageCount },
    remedy: 'Choose another key, or pass { whenNotEmpty: "append" }.',
  });
}
