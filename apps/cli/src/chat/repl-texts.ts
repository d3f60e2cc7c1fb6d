import { withinMemory } from "@throughline/core/internal/node";
import type { StoredRecord } from "@throughline/core";
import { loadExisting, messageRole, quote, recordText, renameSession } from "@throughline/core/internal";
import { readTail } from "@throughline/history/internal";
import { clipboard, mostClipboardBytes } from "../clipboard.ts";
import { counted, sizeText } from "../counted.ts";
import { usageError } from "../error-report.ts";
import type { ReplContext } from "./repl-context.ts";

/** Names the session; its key stays. */
export async function renameCurrent({ context, conversation }: ReplContext, argument: string): Promise<void> {
  const { output } = context;
  const { store, ref, session } = conversation;
  if (argument === "") throw usageError("/rename needs a name: /rename Fix the login.");
  if (session === null) return output.line("There is no session yet: the first message creates it.");
  await renameSession(store, await loadExisting(store, ref), { label: argument });
  await session.refresh();
  await output.line(`Named ${quote(argument)}.`);
}

/** Copies a reply into the clipboard of the terminal: the last one, or an earlier one by its number from the end. */
export async function copyReply({ context, conversation }: ReplContext, argument: string): Promise<void> {
  const { output, host, signal } = context;
  const { store } = conversation;
  const source = conversation.session ?? conversation.origin;
  if (!/^(?:|[1-9]\d{0,3})$/.test(argument)) throw usageError("/copy takes the number of a reply; 1 is the last one.");
  const number = argument === "" ? 1 : Number(argument);
  if (source === null) return output.line("There are no replies yet.");
  const selection = { isAll: false, isAllBranches: false, afterSeq: 0, role: "assistant", tail: number };
  const replies = await readTail(withinMemory(store), source.ref, { head: source.head, selection, roleOf }, signal);
  const reply = replies.length < number ? undefined : replies[0];
  if (reply === undefined)
    return output.line(`There are only ${counted(replies.length, "reply").replace("replys", "replies")}.`);
  const text = recordText(reply.record);
  const sizeBytes = Buffer.byteLength(text);
  if (sizeBytes > mostClipboardBytes)
    throw usageError(
      `The reply has ${sizeText(sizeBytes)}, and terminals take ${sizeText(mostClipboardBytes)} at most. /history prints it.`,
    );
  await output.flush();
  host.stdout.write(clipboard(text));
  await output.line(`Copied ${counted(Array.from(text).length, "character")}, where the terminal allows it.`);
}

/** Replies without text only call tools. */
function roleOf({ record, side }: StoredRecord): string | null {
  return !side && messageRole(record) === "assistant" && recordText(record) !== "" ? "assistant" : null;
}
