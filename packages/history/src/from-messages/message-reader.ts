import { assertArgument, type OptionKind, optionKinds } from "@throughline/core/internal";
import type { WireFields } from "../wire-values.ts";

/** Reads values of foreign messages. What is not what it must be is refused by its place: `messages[3].content[0].text`. */
export class MessageReader {
  readonly #call: string;

  /** @param call the function that reads, for its errors */
  constructor(call: string) {
    this.#call = call;
  }

  /** @throws {ThroughlineError} INPUT_INVALID, as all of these do */
  fields(value: unknown, path: string): WireFields {
    assertArgument(this.#call, path, value, optionKinds.object);
    return value as WireFields;
  }

  list(value: unknown, path: string): readonly unknown[] {
    assertArgument(this.#call, path, value, optionKinds.list);
    return value as readonly unknown[];
  }

  /** A list that may be left out. */
  listOrNone(value: unknown, path: string): readonly unknown[] {
    return value === undefined || value === null ? [] : this.list(value, path);
  }

  text(value: unknown, path: string): string {
    assertArgument(this.#call, path, value, optionKinds.text);
    return value as string;
  }

  /** A text that may be left out. */
  textOrNull(value: unknown, path: string): string | null {
    return value === undefined || value === null ? null : this.text(value, path);
  }

  oneOf<Choice extends string>(value: unknown, choices: readonly Choice[], path: string): Choice {
    assertArgument(this.#call, path, value, optionKinds.oneOf(choices));
    return value as Choice;
  }

  /** Refuses a value. */
  refuse(value: unknown, expected: string, path: string): never {
    const kind: OptionKind = { expected, accepts: () => false };
    assertArgument(this.#call, path, value, kind);
    throw new TypeError("A kind that accepts nothing was accepted.");
  }
}

/** A field under its name on the wire, or under the name that an SDK gives it. */
export function fieldOf(fields: WireFields, ...names: readonly string[]): unknown {
  return names.map((name) => fields[name]).find((value) => value !== undefined && value !== null);
}
