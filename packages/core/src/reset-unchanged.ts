import { archivingEntry } from "./end-session.ts";
import { followingEntry, saveOnce, type ResetSessionOptions } from "./open-session.ts";
import type { Clock } from "./ports.ts";
import type { SessionStore } from "./session-store.ts";
import type { SessionState } from "./session-state.ts";
import { hasErrorCode } from "./throughline-error.ts";

/**
 * Resets a session that nobody changed since it was loaded, and notes when; null when somebody did. Of several callers
 * with the same state one resets it.
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
