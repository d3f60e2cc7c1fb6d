import { conversationFolder, forkConversation } from "@throughline/agent/internal";
import { hasErrorCode, type StoredRecord } from "@throughline/core";
import { isFields, loadExisting, messageRole, recordText, shellWord, systemClock } from "@throughline/core/internal";
import { withinMemory } from "@throughline/core/internal/node";
import { editSteps, readTail } from "@throughline/history/internal";
import { moveStoredHead, readBranchPlace } from "@throughline/session/internal";
import type { AgentSession } from "@throughline/session/whole-turn";
import { counted } from "../counted.ts";
import { usageError } from "../error-report.ts";
import { pickChoice, type PickerChoice } from "../picker/choice-picker.ts";
import type { ReplContext } from "./repl-context.ts";
import { parentOf } from "./repl-tree.ts";

const wholeConversation = { text: "the whole conversation", note: "" };

/** Handles `/rewind`: the head moves before a message of the person, and its text returns to the editor. */
export async function rewindCurrent(repl: ReplContext, argument: string): Promise<void> {
  const { context, conversation } = repl;
  const { output, signal } = context;
  const { session, store, ref } = conversation;
  if (session === null) return output.line("There are no messages yet.");
  const number = argument === "" ? await pickedMessage(repl, session) : numberIn("rewind", argument);
  if (number === null) return output.line("Nothing was changed.");
  const goes = await messagesFrom(repl, session, number);
  const [first] = goes;
  if (first === undefined) return output.line("The session has fewer messages of yours.");
  const question = `Goes: ${counted(goes.length, "message")}, ${counted(changesIn(goes), "change")} of files (files stay as they are). Rewind?`;
  try {
    await repl.givenAway(() => context.confirm(question));
  } catch (error) {
    if (!hasErrorCode(error, "ABORTED")) throw error;
    return output.line("Nothing was changed.");
  }
  const place = await readBranchPlace({ store, ref, clock: systemClock, signal });
  await moveStoredHead(place, (records, headId) => editSteps(records, headId, first.id));
  await session.refresh();
  repl.giveBack(recordText(first.record));
  const command = `throughline show ${shellWord(ref.key)} --all-branches`;
  await output.line(`Rewound. \`/history --all\` and \`${command}\` still have what was left.`);
}

/** Handles `/fork`: a copy of the session, at its end or before a message of the person. */
export async function forkCurrent(repl: ReplContext, argument: string): Promise<void> {
  const { context, conversation } = repl;
  const { output, signal } = context;
  const { session, store, ref } = conversation;
  if (session === null) return output.line("There are no messages yet.");
  const number = argument === "" ? await pickedMessage(repl, session, wholeConversation) : numberIn("fork", argument);
  if (number === null) return output.line("Nothing was changed.");
  const [first] = number === 0 ? [] : await messagesFrom(repl, session, number);
  if (number > 0 && first === undefined) return output.line("The session has fewer messages of yours.");
  const at = first === undefined ? undefined : parentOf(first);
  if (at === null) return output.line("Nothing stands before that message; /new creates an empty session.");
  const origin = await loadExisting(store, ref);
  const options = { folder: conversationFolder(context), signal, ...(at === undefined ? {} : { at }) };
  const fork = await forkConversation(store, origin, options);
  await conversation.switchTo({ ref: fork.ref, origin: null });
  if (first !== undefined) repl.giveBack(recordText(first.record));
  await output.line("Forked. You are in ", { text: fork.ref.key, style: "bold" }, `; the other is ${ref.key}.`);
}

/**
 * Returns the number from the end of the message that the person chooses. 0 stands for the choice before the messages,
 * and null for none.
 */
async function pickedMessage(
  repl: ReplContext,
  session: AgentSession,
  before: PickerChoice | null = null,
): Promise<number | null> {
  const offset = before === null ? 1 : 0;
  const messages = await messagesFrom(repl, session, Infinity);
  const own = messages.flatMap((each, at) => (messageRole(each.record) === "user" ? [{ each, at }] : [])).toReversed();
  const listed = own.map(({ each, at }) => ({
    text: recordText(each.record),
    note: `goes: ${counted(messages.length - at, "message")}`,
  }));
  const choices = before === null ? listed : [before, ...listed];
  if (choices.length <= 1) return offset;
  const chosen = await repl.givenAway(() =>
    pickChoice(repl.context, { title: "Before which message of yours", choices, first: 0 }),
  );
  return chosen === null ? null : chosen + offset;
}

/** Returns the messages of the current branch from the person's message `number` on, counted from the end; Infinity returns all. */
async function messagesFrom(
  { context: { signal }, conversation: { store } }: ReplContext,
  session: AgentSession,
  number: number,
): Promise<readonly StoredRecord[]> {
  await session.refresh();
  const { head, ref } = session;
  const selection = { isAll: false, isAllBranches: false, afterSeq: 0, role: "message", tail: Infinity };
  const messages = await readTail(withinMemory(store), ref, { head, selection, roleOf }, signal);
  if (number === Infinity) return messages;
  const own = messages.filter(({ record }) => messageRole(record) === "user").at(-number);
  return own === undefined ? [] : messages.slice(messages.indexOf(own));
}

function roleOf({ type, side }: StoredRecord): string | null {
  return type === "message" && !side ? type : null;
}

function numberIn(command: string, argument: string): number {
  if (!/^[1-9]\d{0,5}$/.test(argument))
    throw usageError(`/${command} takes the number of a message of yours; 1 is the last one.`);
  return Number(argument);
}

function changesIn(messages: readonly StoredRecord[]): number {
  return messages.filter(({ record: { message } }) => {
    if (!isFields(message) || message["role"] !== "toolResult" || message["isError"] === true) return false;
    return message["toolName"] === "write" || message["toolName"] === "edit";
  }).length;
}
