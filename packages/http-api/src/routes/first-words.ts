import { type SessionRef, type SessionStore, ThroughlineError } from "@throughline/core";

/** Imported sessions begin with records of their program. */
const mostRecords = 40;

/** Returns how the first prompt of a session begins; null without one, and for a session that cannot be read. */
export async function firstWords(store: SessionStore, ref: SessionRef, signal: AbortSignal): Promise<string | null> {
  const [{ promptTitle }, { promptText }] = await Promise.all([
    import("@throughline/transcript-view/internal"),
    import("@throughline/history/internal"),
  ]);
  try {
    for await (const { records } of store.read(ref, { limit: mostRecords, signal }))
      for (const { record, side } of records) {
        const title = side ? null : promptTitle(record, { promptText });
        if (title !== null) return title;
      }
  } catch (error) {
    // The list still shows the other sessions; reading this session reports its error.
    if (!ThroughlineError.isInstance(error) || error.code === "ABORTED") throw error;
  }
  return null;
}
