import { setImmediate as nextTurn } from "node:timers/promises";
import type { SplitRequest } from "@throughline/wire/internal";

/** From this size on, what one request takes would be felt in the streams of others. */
const largeCharacters = 256 * 1024;

/** Between two steps of a large request whatever else waits goes on. */
export async function letOthersRun({ text }: Pick<SplitRequest, "text">): Promise<void> {
  if (text.length > largeCharacters) await nextTurn();
}
