import { createFinding } from "@throughline/core/internal";
import { hasErrorCode, ThroughlineError } from "@throughline/core";
import type { SessionStore } from "@throughline/core";
import type { CommandContext } from "./command.ts";
import { counted } from "./counted.ts";

/**
 * Adds to the search index what a command has just written, so that the first search does not wait for it. What was written
 * is there whatever becomes of the index: an interrupt or a full disk ends this with a word and no failure.
 */
export async function fillIndex(
  { output, signal }: Pick<CommandContext, "output" | "signal">,
  { search }: SessionStore,
): Promise<void> {
  if (search?.fill === undefined) return;
  let left = 0;
  try {
    for await (left of search.fill({ signal })) {
      signal.throwIfAborted();
      if (left > 0) output.progress(`adding ${counted(left, "record")} to the search index`);
    }
  } catch (error) {
    if (!signal.aborted && !ThroughlineError.isInstance(error)) throw error;
    if (hasErrorCode(error, "STORE_CLOSED", "INTERNAL")) throw error;
    const lag = await search.lag().catch(() => left);
    const why = signal.aborted ? "" : ` (${(error as Error).message})`;
    const message = `The search index lacks ${counted(lag, "record")}${why}.`;
    const remedy = "Nothing to do: the records are there, and the next search adds them to the index.";
    if (lag > 0) output.finding({ ...createFinding("SEARCH_INDEX_BEHIND", message), remedy });
  } finally {
    output.clearProgress();
  }
}
