import { isFields } from "@throughline/core/internal";
import type { MessageDraft } from "@throughline/core/internal";
import { membersOf } from "./scan-json.ts";
import type { RequestPiece, SplitRequest } from "./split-request.ts";
import { apiReadings, type WireApi } from "./wire-api.ts";

/** The messages of a request as values, without those of the system that stand before them. */
export interface RequestMessages {
  /** The messages in order, parsed. A unit of the Responses API may hold several. */
  readonly values: readonly unknown[];
  /** For each value the index of the unit that it stands in. */
  readonly unitOf: readonly number[];
  /**
   * The text of the request with other messages in their place; null where the request takes no list. A value that is one of
   * `values` keeps the text that it came with.
   *
   * @param known texts of further values
   */
  replaced(messages: readonly unknown[], known?: ReadonlyMap<unknown, string>): string | null;
}

/** The messages of a request, to be replaced. */
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
      // A prompt is a text and no list of messages.
      return apiReadings[split.api].plainText === apiReadings[split.api].list ? `${before}[${list}]${after}` : null;
    },
  };
}

function textOf(pieces: readonly RequestPiece[]): string {
  return pieces.map((piece) => ("literal" in piece ? piece.literal : "part" in piece ? piece.part.text : "")).join("");
}

/**
 * The text of an object with another value for a member, which is added where the object has no such member.
 * @throws {RangeError} when the text is not a JSON object
 */
export function withMember(text: string, name: string, value: unknown): string {
  const written = JSON.stringify(value);
  const members = membersOf(text);
  if (members === null) throw new RangeError("The text is not a JSON object.");
  // A parser takes the last of several members with one name.
  const found = members.findLast((member) => member.name === name);
  if (found !== undefined) return text.slice(0, found.from) + written + text.slice(found.to);
  const end = text.lastIndexOf("}");
  return `${text.slice(0, end)}${members.length === 0 ? "" : ","}${JSON.stringify(name)}:${written}${text.slice(end)}`;
}

/**
 * The text of an object without the members that a test takes, each as often as it is there.
 * @throws {RangeError} when the text is not a JSON object
 */
export function withoutMembers(text: string, isDropped: (name: string) => boolean): string {
  const members = membersOf(text);
  if (members === null) throw new RangeError("The text is not a JSON object.");
  const kept = members.filter(({ name }) => !isDropped(name));
  if (kept.length === members.length) return text;
  return `{${kept.map(({ nameFrom, to }) => text.slice(nameFrom, to)).join(",")}}`;
}

/** The records that messages of an API are kept as. @throws {ThroughlineError} INPUT_INVALID */
export function messageDrafts(
  api: WireApi,
  messages: readonly unknown[],
  model: string | null,
): readonly MessageDraft[] {
  return apiReadings[api].recordsFromMessages(messages, model === null ? {} : { model });
}
