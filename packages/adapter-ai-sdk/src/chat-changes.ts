import { ThroughlineError } from "@throughline/core";
import type { Fields } from "@throughline/core/internal";
import { cutLiveItems, type LiveItem } from "@throughline/foreign-formats/internal";
import type { LogPlace, LogView } from "@throughline/foreign-formats/internal";

export const framework = "ai-sdk";

export interface StoredChat {
  readonly records: LogView["records"];
  readonly headId: string | null;
  readonly messages: readonly StoredText[];
}

/** Holds a message of the log as text, because the program may change the message object that it received. */
export interface StoredText extends Omit<LiveItem, "value"> {
  readonly id: unknown;
  readonly text: string;
}

export interface ChatChange {
  /** Counts the stored messages that stay; null keeps all of them. */
  readonly keep: number | null;
  readonly added: readonly Fields[];
}

/** Computes the change to these messages. Messages that another process stored stay. */
export function changeOf(
  stored: readonly StoredText[],
  messages: readonly string[],
  ids: ReadonlySet<unknown>,
  known: ReadonlySet<unknown>,
): ChatChange {
  const same = stored.findIndex(({ text: one }, at) => !isSameText(one, messages[at]));
  const keep = same < 0 ? stored.length : same;
  const rest = stored.slice(keep);
  const others = rest.filter(({ id }) => !known.has(id) && !ids.has(id));
  const added = messages.slice(keep).map(fieldsOf);
  if (rest.length === others.length) return { keep: null, added };
  return { keep, added: [...added, ...others.map(({ text: one }) => fieldsOf(one))] };
}

export function isUnchanged({ keep, added }: ChatChange): boolean {
  return keep === null && added.length === 0;
}

/** An import may have stored a message with other white space, so the parsed form is compared as well. */
function isSameText(stored: string, given: string | undefined): boolean {
  return stored === given || JSON.stringify(JSON.parse(stored)) === given;
}

export function cutAt(
  keep: number | null,
  stored: readonly StoredText[],
  view: LogView,
  place: LogPlace,
): ReturnType<typeof cutLiveItems> {
  if (keep === null) return { drafts: [], headId: place.headId };
  const items = stored.map((one): LiveItem => ({ ...one, value: fieldsOf(one.text) }));
  return cutLiveItems(framework, view, items, keep, place);
}

export function storedChat({ records, headId }: LogView, items: readonly LiveItem[]): StoredChat {
  const messages = items.map(({ value, ...item }): StoredText => ({
    ...item,
    id: value["id"],
    text: item.source ?? JSON.stringify(value),
  }));
  return { records, headId, messages };
}

/** Serializes a message. @throws {ThroughlineError} INPUT_INVALID when JSON cannot hold it */
export function textOf(message: object, at: number): string {
  try {
    return JSON.stringify(message);
  } catch (cause) {
    throw new ThroughlineError("INPUT_INVALID", `saveChat: messages[${at}] must be an object that JSON can hold.`, {
      outcome: "not-applied",
      cause,
    });
  }
}

function fieldsOf(message: string): Fields {
  return JSON.parse(message) as Fields;
}

export function idsOf(messages: readonly Fields[]): ReadonlySet<unknown> {
  return new Set(messages.map(({ id }) => id));
}
