import {
  hasErrorCode,
  type SessionEntry,
  type SessionRef,
  type SessionState,
  type SessionStore,
} from "@throughline/core";
import { saveOnce, systemRandom } from "@throughline/core/internal";

/** Begins a session without a look whether there is one. Null: there is one already. */
export function saveNew(
  store: SessionStore,
  ref: SessionRef,
  fields: Readonly<Record<string, unknown>>,
): Promise<SessionState | null> {
  return unlessChanged(saveOnce(store, ref, { ...fields, sessionId: systemRandom.uuid() }, null));
}

/** Writes the entry of a session that is as it was found. Null: it is not. */
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
