import type { StoredRecord } from "@throughline/core";
import type { CommandContext } from "./command.ts";
import { recordRole } from "@throughline/queries/internal";
import { recordText } from "@throughline/queries";
import { jsonLine } from "./terminal-safe.ts";
import { timeText } from "./time-text.ts";

/** On a terminal a longer record is cut, and the cut is marked. */
const shownCharacters = 4000;

/** One record: as the object of the contract, as its own JSON, or for people. `isPlace` marks it for people. */
export async function showRecord(
  { output }: Pick<CommandContext, "output">,
  stored: StoredRecord,
  isRaw: boolean,
  isPlace = false,
): Promise<void> {
  if (output.isJson) {
    const { seq, id, parentId, type, side, tsMs, record } = stored;
    await output.object({ kind: "record", seq, id, parentId, type, side, tsMs, record });
    return;
  }
  if (isRaw) {
    await output.line(jsonLine(stored.record));
    return;
  }
  const text = recordText(stored.record);
  const isCut = output.isTerminal && text.length > shownCharacters;
  await output.line(
    { text: isPlace ? "> " : "", style: "bold" },
    { text: `#${stored.seq} ${recordRole(stored.record)}`, style: isPlace ? "bold" : "cyan" },
    { text: `  ${timeText(stored.tsMs)}`, style: "dim" },
  );
  if (text !== "") await output.paragraph(isCut ? text.slice(0, shownCharacters) : text);
  if (isCut)
    await output.line({ text: `… ${text.length - shownCharacters} more characters; --raw shows all`, style: "dim" });
  await output.line("");
}
