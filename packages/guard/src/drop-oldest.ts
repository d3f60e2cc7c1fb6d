import { isFields } from "@throughline/core/internal";
import { countInstructions, findCut } from "./find-cut.ts";
import { findResults } from "./message-slots.ts";

export interface DropOptions {
  /** Tokens of a list of messages. */
  readonly estimate: (messages: readonly unknown[]) => number;
  /** Tokens the messages may have; null for half of what they have. */
  readonly targetTokens: number | null;
}

/** Of the newest request, when the messages that hold it go. */
const mostRequestCharacters = 2000;

/**
 * Leaves out as few of the oldest messages as it takes, without a model. What a conversation begins with stays when it
 * is short, because that is a summary or the goal, and so do the words of the newest request. Null when there is no
 * place to cut or nothing is saved.
 */
export function dropOldest(messages: readonly unknown[], options: DropOptions): readonly unknown[] | null {
  const instructions = countInstructions(messages);
  const conversation = messages.slice(instructions);
  const target = options.targetTokens ?? options.estimate(messages) / 2;
  const build = (cut: number): readonly unknown[] => [
    ...messages.slice(0, instructions),
    ...opening(conversation, cut, target / 4, options.estimate),
    ...conversation.slice(cut),
  ];
  let low = 1;
  let high = conversation.length;
  let found: readonly unknown[] | null = null;
  let isEnough = false;
  // The later the cut, the smaller the list: the first cut that fits leaves out the least.
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const cut = findCut(conversation, middle, low - 1);
    const candidate = cut === null ? null : build(cut);
    if (cut === null || candidate === null) break;
    const fits = options.estimate(candidate) <= target;
    // One that is too large is only of use while none has been enough.
    if (fits || !isEnough) found = candidate;
    isEnough ||= fits;
    if (fits) high = Math.min(middle, cut);
    else low = Math.max(middle, cut) + 1;
  }
  return found !== null && options.estimate(found) < options.estimate(messages) ? found : null;
}

/** The first message, a note, and the newest request that was left out; then an acknowledgement where a user follows. */
function opening(
  conversation: readonly unknown[],
  cut: number,
  mostTokens: number,
  estimate: DropOptions["estimate"],
): readonly unknown[] {
  const first = conversation[0];
  const firstText = isTyped(first) && estimate([first]) <= mostTokens ? textOf(first) : null;
  const latest = conversation.slice(firstText === null ? 0 : 1, cut).findLast(isTyped);
  const left = cut - (firstText === null ? 0 : 1);
  const parts = [
    firstText,
    `[${left} messages were left out here: the request was too large]`,
    latest === undefined
      ? null
      : `The latest request among them was:\n${textOf(latest).slice(0, mostRequestCharacters).toWellFormed()}`,
  ];
  const note = { role: "user", content: parts.filter((part) => part !== null).join("\n\n") };
  const next = conversation[cut];
  const isUserNext = isFields(next) && next["role"] === "user";
  return isUserNext ? [note, { role: "assistant", content: "Understood." }] : [note];
}

/** A message that a user wrote, other than the results of tools. */
function isTyped(message: unknown): boolean {
  return (
    isFields(message) && message["role"] === "user" && findResults([message]).length === 0 && textOf(message) !== ""
  );
}

function textOf(message: unknown): string {
  const content: unknown = isFields(message) ? message["content"] : null;
  if (typeof content === "string") return content;
  const blocks = Array.isArray(content) ? content.filter(isFields) : [];
  return blocks.map(({ text }) => (typeof text === "string" ? text : "")).join("\n");
}
