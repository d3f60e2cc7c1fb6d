import { archivingEntry, followingEntry, type ResetSessionOptions, saveOnce } from "@throughline/core/internal";
import type { Clock, SessionState, SessionStore } from "@throughline/core";
import { hasErrorCode } from "@throughline/core";

/**
 * Resets a session that has not changed since it was loaded, and stores the archive time. Returns null when the session
 * has changed. Only one of several callers with the same state resets it.
 */
export async function resetUnchanged(
  store: SessionStore,
  { ref, entry, revision }: SessionState,
  options: ResetSessionOptions & { readonly clock: Clock },
): Promise<SessionState | null> {
  try {
    const noted = await saveOnce(store, ref, archivingEntry(entry, options.clock), revision);
    return await saveOnce(store, ref, followingEntry(entry, options), noted.revision);
  } catch (error) {
    if (hasErrorCode(error, "REVISION_CONFLICT")) return null;
    throw error;
  }
}
