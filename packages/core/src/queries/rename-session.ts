import { updateEntry } from "../open-session.ts";
import { assertKnownOptions, optionKinds, type OptionTable } from "../option-checks.ts";
import { mergeEntry } from "../merge-entry.ts";
import { waitForTurnEnd, type WaitForTurnOptions, waitTable } from "../end-session.ts";
import { withSystemPorts } from "../node/system-ports.ts";
import type { SessionRef } from "../session-ref.ts";
import type { SessionState } from "../session-state.ts";
import type { SessionStore } from "../session-store.ts";

/** Sets the new key and the new label for `renameSession`. */
export interface RenameSessionOptions extends WaitForTurnOptions {
  /** Sets the new address, in which only the key may differ. @default the session keeps its key */
  readonly target?: SessionRef;
  /** Sets the new label; the empty text removes the label. @default the session keeps its label */
  readonly label?: string;
}

const renameTable: OptionTable<RenameSessionOptions> = {
  ...waitTable,
  target: optionKinds.object,
  label: optionKinds.text,
};

/**
 * Gives a session another key, another label, or both. The id and the records do not change. A running turn delays the
 * new key until the turn ends.
 * @throws {ThroughlineError} SESSION_EXISTS, SESSION_BUSY after the timeout, ABORTED, and what the store throws
 */
export async function renameSession(
  store: SessionStore,
  session: SessionState,
  options: RenameSessionOptions,
): Promise<SessionState> {
  assertKnownOptions<RenameSessionOptions>("renameSession", options, renameTable);
  const { target, label, ...wait } = withSystemPorts(options);
  const { ref } = session;
  let state = session;
  if (target !== undefined) {
    await waitForTurnEnd(store, ref, wait);
    state = await store.move(ref, { kind: "rename", key: target.key });
  }
  if (label === undefined) return state;
  const patch = { label: label === "" ? undefined : label };
  return updateEntry(store, state.ref, (entry) => mergeEntry(entry, patch, { nowMs: wait.clock.nowMs() }));
}
