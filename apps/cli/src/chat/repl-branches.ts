import { conversationFolder, forkConversation } from "@throughline/agent/internal";
import { hasErrorCode, type StoredRecord } from "@throughline/core";
import { isFields, loadExisting, messageRole, recordText, shellWord, systemClock } from "@throughline/core/internal";
import { withinMemory } from "@throughline/core/internal/node";
import { readTail } from "@throughline/history/internal";
import { beforeMessage, moveStoredHead, readBranchPlace } from "@throughline/session/internal";
import type { AgentSession } from "@throughline/session/whole-turn";
import { counted } from "../counted.ts";
import { usageError } from "../error-report.ts";
import { pickChoice, type PickerChoice } from "../picker/choice-picker.ts";
import type { ReplContext } from "./repl-context.ts";

const wholeConversation = { text: "the whole conversation", note: "" };

/** Handles `/rewind`: the head moves before a message of the person, and its text returns to the editor. */
export async function rewindCurrent(repl: ReplContext, argument: string): Promise<void> {
  const { context, conversation } = repl;
  const { output, signal } = context;
  const { session, store, ref } = conversation;
  if (session === null) return output.line("There are no messages yet.");
  const stated = argument === "" ? null : numberIn("rewind", argument);
  const messages = await messagesOf(repl, session);
  const number = stated ?? (await pickedMessage(repl, messages));
  if (number === null) return output.line("Nothing was changed.");
  const goes = messagesFrom(messages, number);
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
  await moveStoredHead(place, beforeMessage(first.id));
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
  const stated = argument === "" ? null : numberIn("fork", argument);
  const messages = await messagesOf(repl, session);
  const number = stated ?? (await pickedMessage(repl, messages, wholeConversation));
  if (number === null) return output.line("Nothing was changed.");
  const [first] = number === 0 ? [] : messagesFrom(messages, number);
  if (number > 0 && first === undefined) return output.line("The session has fewer messages of yours.");
  const at = first?.parentId;
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
  messages: readonly StoredRecord[],
  before: PickerChoice | null = null,
): Promise<number | null> {
  const offset = before === null ? 1 : 0;
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

/** Returns the messages of the current branch. */
async function messagesOf(
  { context: { signal }, conversation: { store } }: ReplContext,
  session: AgentSession,
): Promise<readonly StoredRecord[]> {
  await session.refresh();
  const { head, ref } = session;
  const selection = { isAll: false, isAllBranches: false, afterSeq: 0, role: "message", tail: Infinity };
  return readTail(withinMemory(store), ref, { head, selection, roleOf }, signal);
}

/** Returns the messages from the person's message `number` on, counted from the end. */
function messagesFrom(messages: readonly StoredRecord[], number: number): readonly StoredRecord[] {
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
