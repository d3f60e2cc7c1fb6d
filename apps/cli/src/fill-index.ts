import { createFinding } from "@throughline/core/internal";
import { hasErrorCode, ThroughlineError } from "@throughline/core";
import type { SessionStore } from "@throughline/core";
import type { CommandContext } from "./command.ts";
import { counted } from "./counted.ts";

/**
 * Adds a command's new records to the search index, so that the first search does not wait for it. The records are
 * stored in any case, so an interrupt or a full disk only prints a finding.
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
