import { isFields } from "@throughline/core/internal";
import type { MessageDraft } from "@throughline/core/internal";
import { membersOf } from "./scan-json.ts";
import type { RequestPiece, SplitRequest } from "./split-request.ts";
import { apiReadings, type WireApi } from "./wire-api.ts";

/** Holds the messages of a request as values, without the leading system messages. */
export interface RequestMessages {
  /** Lists the parsed messages in order. An item of the Responses API may hold several. */
  readonly values: readonly unknown[];
  /** Maps each value to the index of its item in the request. */
  readonly unitOf: readonly number[];
  /**
   * Returns the text of the request with other messages. Null when the request has no list of messages. A value from
   * `values` keeps its original text.
   *
   * @param known original texts of further values
   */
  replaced(messages: readonly unknown[], known?: ReadonlyMap<unknown, string>): string | null;
}

/** Returns the messages of a request in a form that allows replacing them. */
export function requestMessages(split: SplitRequest): RequestMessages {
  const values: unknown[] = [];
  const unitOf: number[] = [];
  const texts = new Map<unknown, string>();
  for (const [index, unit] of split.units.entries()) {
    const own = unit.values();
    for (const value of own) {
      values.push(value);
      unitOf.push(index);
    }
    const [only] = own;
    if (own.length === 1 && isFields(only)) texts.set(only, unit.text);
  }
  return {
    values,
    unitOf,
    replaced: (messages, known = new Map()) => {
      const written = messages.map((value) => texts.get(value) ?? known.get(value) ?? JSON.stringify(value));
      const list = written.join(split.separator);
      const { pieces, isPlain } = split;
      const first = pieces.findIndex((piece) => "unit" in piece);
      const last = pieces.findLastIndex((piece) => "unit" in piece);
      if (first === -1) return null;
      const [before, after] = [textOf(pieces.slice(0, first)), textOf(pieces.slice(last + 1))];
      if (!isPlain) return `${before}${list}${after}`;
      // The member `prompt` holds a text, so it cannot hold a list of messages.
      return apiReadings[split.api].plainText === apiReadings[split.api].list ? `${before}[${list}]${after}` : null;
    },
  };
}

function textOf(pieces: readonly RequestPiece[]): string {
  return pieces.map((piece) => ("literal" in piece ? piece.literal : "part" in piece ? piece.part.text : "")).join("");
}

/**
 * Sets a member in the text of a JSON object and adds the member when it is missing.
 * @throws {RangeError} when the text is not a JSON object
 */
export function withMember(text: string, name: string, value: unknown): string {
  const written = JSON.stringify(value);
  const members = membersOf(text);
  if (members === null) throw new RangeError("The text is not a JSON object.");
  // JSON parsers use the last of several members with one name.
  const found = members.findLast((member) => member.name === name);
  if (found !== undefined) return text.slice(0, found.from) + written + text.slice(found.to);
  const end = text.lastIndexOf("}");
  return `${text.slice(0, end)}${members.length === 0 ? "" : ","}${JSON.stringify(name)}:${written}${text.slice(end)}`;
}

/**
 * Removes members from the text of a JSON object, including repeated ones.
 * @throws {RangeError} when the text is not a JSON object
 */
export function withoutMembers(text: string, isDropped: (name: string) => boolean): string {
  const members = membersOf(text);
  if (members === null) throw new RangeError("The text is not a JSON object.");
  const kept = members.filter(({ name }) => !isDropped(name));
  if (kept.length === members.length) return text;
  return `{${kept.map(({ nameFrom, to }) => text.slice(nameFrom, to)).join(",")}}`;
}

/** Converts messages of an API to record drafts. @throws {ThroughlineError} INPUT_INVALID */
export function messageDrafts(
  api: WireApi,
  messages: readonly unknown[],
  model: string | null,
): readonly MessageDraft[] {
  return apiReadings[api].recordsFromMessages(messages, model === null ? {} : { model });
}
