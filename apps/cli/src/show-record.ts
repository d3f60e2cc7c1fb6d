import type { StoredRecord } from "@throughline/core";
import type { CommandContext } from "./command.ts";
import { isContinueMessage, recordRole, recordText } from "@throughline/core/internal";
import { jsonLine } from "./terminal-safe.ts";
import { timeText } from "./time-text.ts";

/**
 * A longer record is cut on a terminal. Neighbors are cut earlier, so that they do not push the requested record off
 * the screen.
 */
const shownCharacters = { alone: 4000, place: 4000, neighbor: 400 };

/** A `place` record, the requested one, is marked in the output for people. */
export async function showRecord(
  { output }: Pick<CommandContext, "output">,
  stored: StoredRecord,
  isRaw: boolean,
  role: keyof typeof shownCharacters = "alone",
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
  // A program wrote the request for the rest of a reply, not the user.
  const text = isContinueMessage(stored.record) ? "(cut off, continued)" : recordText(stored.record);
  const most = shownCharacters[role];
  const isCut = output.isTerminal && text.length > most;
  await output.line(
    { text: role === "place" ? "> " : "", style: "bold" },
    { text: `#${stored.seq} ${recordRole(stored.record)}`, style: role === "place" ? "bold" : "cyan" },
    { text: `  ${timeText(stored.tsMs)}`, style: "dim" },
  );
  if (text !== "") await output.paragraph(isCut ? text.slice(0, most).toWellFormed() : text);
  if (isCut) await output.line({ text: `… ${text.length - most} more characters; --raw shows all`, style: "dim" });
  await output.line("");
}
