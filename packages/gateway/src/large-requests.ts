import { setImmediate as nextTurn } from "node:timers/promises";
import type { SplitRequest } from "./wire/index.ts";

/** Processing a request of this size delays the streams of other clients noticeably. */
const largeCharacters = 256 * 1024;

export async function letOthersRun({ text }: Pick<SplitRequest, "text">): Promise<void> {
  if (text.length > largeCharacters) await nextTurn();
}
