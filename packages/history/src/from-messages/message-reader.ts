import { assertArgument, type OptionKind, optionKinds } from "@throughline/core/internal";
import type { WireFields } from "../wire-values.ts";

/**
 * Reads values of foreign messages. It rejects an invalid value with its path, such as `messages[3].content[0].text`.
 */
export class MessageReader {
  readonly #call: string;

  /**
   * Sets the name that errors report.
   * @param call the function that reads the messages
   */
  constructor(call: string) {
    this.#call = call;
  }

  /**
   * Returns the value if it is an object.
   * @throws {ThroughlineError} INPUT_INVALID, like all methods of this class
   */
  fields(value: unknown, path: string): WireFields {
    assertArgument(this.#call, path, value, optionKinds.object);
    return value as WireFields;
  }

  list(value: unknown, path: string): readonly unknown[] {
    assertArgument(this.#call, path, value, optionKinds.list);
    return value as readonly unknown[];
  }

  listOrNone(value: unknown, path: string): readonly unknown[] {
    return value === undefined || value === null ? [] : this.list(value, path);
  }

  text(value: unknown, path: string): string {
    assertArgument(this.#call, path, value, optionKinds.text);
    return value as string;
  }

  textOrNull(value: unknown, path: string): string | null {
    return value === undefined || value === null ? null : this.text(value, path);
  }

  oneOf<Choice extends string>(value: unknown, choices: readonly Choice[], path: string): Choice {
    assertArgument(this.#call, path, value, optionKinds.oneOf(choices));
    return value as Choice;
  }

  refuse(value: unknown, expected: string, path: string): never {
    const kind: OptionKind = { expected, accepts: () => false };
    assertArgument(this.#call, path, value, kind);
    throw new TypeError("A kind that accepts nothing was accepted.");
  }
}

/** Returns the first field that is set, because JSON and SDKs use different names for the same field. */
export function fieldOf(fields: WireFields, ...names: readonly string[]): unknown {
  return names.map((name) => fields[name]).find((value) => value !== undefined && value !== null);
}
