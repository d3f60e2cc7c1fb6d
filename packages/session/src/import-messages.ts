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

/** Options of `session.importMessages`. */
export interface ImportMessagesOptions {
  /** What to do when the session holds messages: throw SESSION_EXISTS, or append behind them. @default "reject" */
  readonly whenNotEmpty?: "reject" | "append";
  /** Source of the ids of new records. @default the system's */
  readonly random?: RandomSource;
}

/** The kinds of the options of `importMessages`. */
export const importTable: OptionTable<ImportMessagesOptions> = {
  whenNotEmpty: optionKinds.oneOf(["reject", "append"]),
  random: optionKinds.objectWith("uuid", "uint32"),
};

/**
 * Starts a session with the messages that a program has kept so far. One append stores all of them or none, so a program
 * that is killed meanwhile imports them again. The store limits an append: `capabilities.limits`.
 *
 * @param store stays the caller's to close
 * @param session a label, a key, or an address; the session is created when there is none
 * @param drafts what `recordsFromMessages` of `@throughline/history/<provider>` makes of the messages
 * @returns the records as they are stored, for `history.append`
 * @throws {ThroughlineError} SESSION_EXISTS when the session holds messages, SESSION_BUSY while a turn is open, KEY_INVALID,
 *   SESSION_ARCHIVED, INPUT_INVALID, BATCH_TOO_LARGE, and what the store throws
 * @example await importMessages(store, "home", recordsFromMessages(messages, { model: "claude-sonnet-4-5" }));
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
  // What the store would refuse must not leave an empty session.
  prepareDrafts(drafts, { ids: systemRecordIds, clock: systemClock, limits: store.capabilities.limits });
  const { state } = await openSession(store, ref, { random, entry: label === null ? {} : { label } });
  if (whenNotEmpty === "reject" && state.messageCount > 0) throw notEmpty(ref, state);
  if (drafts.length === 0) return [];
  // Whoever writes a message meanwhile moves the head: the import is refused then.
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
