import {
  hasErrorCode,
  type SessionEntry,
  type SessionRef,
  type SessionState,
  type SessionStore,
} from "@throughline/core";
import { saveOnce, systemRandom } from "@throughline/core/internal";

/**
 * Creates a session without a read first, which saves a round trip to the store. Null means that the session already
 * exists.
 */
export function saveNew(
  store: SessionStore,
  ref: SessionRef,
  fields: Readonly<Record<string, unknown>>,
): Promise<SessionState | null> {
  return unlessChanged(saveOnce(store, ref, { ...fields, sessionId: systemRandom.uuid() }, null));
}

/** Writes the entry of a session that has not changed since it was read. Null means that it has changed. */
export function saveUnchanged(
  store: SessionStore,
  { ref, revision }: Pick<SessionState, "ref" | "revision">,
  entry: SessionEntry,
): Promise<SessionState | null> {
  return unlessChanged(saveOnce(store, ref, entry, revision));
}

async function unlessChanged(saving: Promise<SessionState>): Promise<SessionState | null> {
  try {
    return await saving;
  } catch (error) {
    if (hasErrorCode(error, "REVISION_CONFLICT")) return null;
    throw error;
  }
}
