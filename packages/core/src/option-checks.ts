import { assertRuntime } from "./assert-runtime.ts";
import { isFields } from "./json-object.ts";
import { nearestName } from "./nearest-name.ts";
import { refused } from "./refused.ts";
import type { ThroughlineError } from "./throughline-error.ts";

/** Describes the values that an option accepts. */
export interface OptionKind {
  /** A message puts this text after "must be". */
  readonly expected: string;
  /** Returns whether the value is valid. */
  readonly accepts: (value: unknown) => boolean;
  /** The fields of an object are checked in the same way as the options of a call. */
  readonly fields?: Readonly<Record<string, OptionKind>>;
  /** Describes the items of an array. */
  readonly items?: OptionKind;
  /** Messages state only the type of a secret value, never its content. */
  readonly isSecret?: boolean;
  /** States whether the option must be given. @default false */
  readonly isRequired?: boolean;
}

/** An option of the type without a row does not compile, so that no option stays unchecked. */
export type OptionTable<Options> = { readonly [Name in keyof Required<Options>]: OptionKind };

/** Both ends belong to the range. */
interface NumberRange {
  /** @default no limit */
  readonly min?: number;
  /** @default no limit */
  readonly max?: number;
}

const object: OptionKind = { expected: "an object", accepts: isFields };
const list: OptionKind = { expected: "an array", accepts: Array.isArray };

export interface OptionKinds {
  readonly any: OptionKind;
  readonly text: OptionKind;
  /** The text must contain a character that is not white space. */
  readonly filledText: OptionKind;
  readonly flag: OptionKind;
  readonly callback: OptionKind;
  /** The content of the object is not checked. */
  readonly object: OptionKind;
  readonly list: OptionKind;
  readonly signal: OptionKind;
  /** The number may be infinite when the range has no end. */
  number(range?: NumberRange): OptionKind;
  /** A double must hold the whole number exactly. */
  integer(range?: NumberRange): OptionKind;
  oneOf(choices: readonly string[]): OptionKind;
  listOf(items: OptionKind): OptionKind;
  /** The object may have no other options. */
  objectOf<Options>(fields: OptionTable<Options>): OptionKind;
  /** A port or a client of an SDK has these functions, and may have other members. */
  objectWith(...methods: readonly string[]): OptionKind;
  orNull(kind: OptionKind): OptionKind;
  /** The content of the value is not checked, whichever kind accepts it. */
  either(...kinds: readonly OptionKind[]): OptionKind;
  secret(kind: OptionKind): OptionKind;
  required(kind: OptionKind): OptionKind;
}

export const optionKinds: OptionKinds = {
  any: { expected: "any value", accepts: () => true },
  text: { expected: "a text", accepts: (value) => typeof value === "string" },
  filledText: {
    expected: "a text that is not empty",
    accepts: (value) => typeof value === "string" && value.trim() !== "",
  },
  flag: { expected: "true or false", accepts: (value) => typeof value === "boolean" },
  callback: { expected: "a function", accepts: (value) => typeof value === "function" },
  object,
  list,
  signal: {
    expected: "an AbortSignal",
    accepts: (value) => isFields(value) && typeof value["addEventListener"] === "function" && "aborted" in value,
  },
  number: (range = {}) => numberKind("a number", range, (value) => typeof value === "number" && !Number.isNaN(value)),
  integer: (range = {}) => numberKind("a whole number", range, Number.isSafeInteger),
  oneOf: (choices) => ({
    expected: choices.length === 1 ? quoted(choices[0] ?? "") : `one of ${choices.map(quoted).join(", ")}`,
    accepts: (value) => choices.includes(value as string),
  }),
  listOf: (items) => ({ ...list, items }),
  objectOf: (fields) => ({ ...object, fields }),
  objectWith: (...methods) => ({
    expected: `an object with the function${methods.length === 1 ? "" : "s"} ${methods.map(backticked).join(", ")}`,
    accepts: (value) => isFields(value) && methods.every((method) => typeof value[method] === "function"),
  }),
  orNull: (kind) => ({
    ...kind,
    expected: `${kind.expected}, or null`,
    accepts: (value) => value === null || kind.accepts(value),
  }),
  either: (...kinds) => ({
    expected: kinds.map(({ expected }) => expected).join(", or "),
    accepts: (value) => kinds.some((kind) => kind.accepts(value)),
    isSecret: kinds.some(({ isSecret }) => isSecret === true),
  }),
  secret: (kind) => ({ ...kind, isSecret: true }),
  required: (kind) => ({ ...kind, isRequired: true }),
};

/**
 * Refuses an unknown option, an option of another type, and an option out of range. An option whose value is undefined
 * counts as absent.
 * @param call the function as its caller wrote it, without parentheses: `createHistory`
 * @param options what the caller passed; anything, from plain JavaScript
 * @param table every option of the call with its kind
 * @param argument the name of the argument that holds the options
 * @param code of what is thrown. Default: INPUT_INVALID
 * @throws {ThroughlineError} INPUT_INVALID or CONFIG_INVALID: its details hold `argument`, `expected`, `received` and
 * `nearest`;
 *   RUNTIME_UNSUPPORTED in a Node that is too old
 * @example
 * assertKnownOptions<PageOptions>("readPage", options, { limit: optionKinds.integer({ min: 1 }), system:
 * optionKinds.text });
 * // readPage(): `sytem` is not an option; did you mean `system`?
 * // readPage(): `limit` must be a whole number from 1 on; received "ten".
 */
export function assertKnownOptions<Options>(
  call: string,
  options: unknown,
  table: OptionTable<Options>,
  argument: string = "options",
  code: OptionErrorCode = "INPUT_INVALID",
): asserts options is Options {
  assertRuntime();
  if (!isFields(options)) throw wrongOption({ call, code }, argument, object, options);
  checkFields({ call, code }, "", options, table);
}

/** A wrong option of a call throws INPUT_INVALID, a wrong configuration of a program CONFIG_INVALID. */
export type OptionErrorCode = "INPUT_INVALID" | "CONFIG_INVALID";

interface CheckedCall {
  readonly call: string;
  readonly code: OptionErrorCode;
}

/**
 * Refuses an argument of another type or out of range, with the messages of `assertKnownOptions`.
 * @throws {ThroughlineError} INPUT_INVALID
 * @example
 * assertArgument("readPage", "limit", limit, optionKinds.integer({ min: 1 }));
 */
export function assertArgument(call: string, argument: string, value: unknown, kind: OptionKind): void {
  checkValue({ call, code: "INPUT_INVALID" }, argument, value, kind);
}

function checkFields(
  call: CheckedCall,
  path: string,
  options: Readonly<Record<string, unknown>>,
  table: Readonly<Record<string, OptionKind>>,
): void {
  const known = Object.keys(table);
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || Object.hasOwn(table, name)) continue;
    throw unknownOption(call, path, name, known);
  }
  for (const [name, kind] of Object.entries(table)) {
    const value = options[name];
    if (value === undefined && kind.isRequired !== true) continue;
    checkValue(call, path + name, value, kind);
  }
}

function checkValue(call: CheckedCall, argument: string, value: unknown, kind: OptionKind): void {
  if (!kind.accepts(value)) throw wrongOption(call, argument, kind, value);
  if (kind.fields !== undefined && isFields(value)) checkFields(call, `${argument}.`, value, kind.fields);
  if (kind.items === undefined || !Array.isArray(value)) return;
  for (const [index, item] of value.entries()) checkValue(call, `${argument}[${index}]`, item, kind.items);
}

function unknownOption(
  { call, code }: CheckedCall,
  path: string,
  name: string,
  known: readonly string[],
): ThroughlineError {
  const nearest = nearestName(name, known);
  const hint =
    nearest === null
      ? `the options are ${known.map((one) => backticked(path + one)).join(", ")}.`
      : `did you mean ${backticked(path + nearest)}?`;
  const argument = path + shortened(name);
  return refused(code, `${call}(): ${backticked(argument)} is not an option; ${hint}`, {
    argument,
    expected: known,
    received: null,
    nearest: nearest === null ? null : path + nearest,
  });
}

function wrongOption(
  { call, code }: CheckedCall,
  argument: string,
  kind: OptionKind,
  value: unknown,
): ThroughlineError {
  const { expected, isSecret = false } = kind;
  const received = isSecret ? typeOf(value) : receivedText(value);
  const message = `${call}(): ${backticked(argument)} must be ${expected}; received ${received}.`;
  return refused(code, message, { argument, expected, received, nearest: null });
}

/** A message shows a value shortened, on one line, and without the content of an object. */
function receivedText(value: unknown): string {
  if (typeof value === "string") return hasCredentials(value) ? "a text" : JSON.stringify(shortened(value));
  if (typeof value === "bigint") return `${shortened(String(value))}n`;
  if (value === null || typeof value === "number" || typeof value === "boolean") return String(value);
  return typeOf(value);
}

/** An address with a password and an API key have these shapes. */
function hasCredentials(value: string): boolean {
  return (value.includes("://") && value.includes("@")) || /^(?:sk|pk|key|bearer)[-_ ]/i.test(value.trimStart());
}

const longestShown = 60;

function shortened(value: string): string {
  return value.length > longestShown ? `${value.slice(0, longestShown).toWellFormed()}…` : value;
}

function typeOf(value: unknown): string {
  if (value === null) return "null";
  if (value === undefined) return "undefined";
  if (Array.isArray(value)) return "an array";
  if (typeof value === "object") return "an object";
  if (typeof value === "string") return value === "" ? "an empty text" : "a text";
  return `a ${typeof value}`;
}

function numberKind(what: string, { min, max }: NumberRange, isFit: (value: unknown) => boolean): OptionKind {
  const range =
    min === undefined
      ? max === undefined
        ? ""
        : ` up to ${max}`
      : max === undefined
        ? ` from ${min} on`
        : ` from ${min} to ${max}`;
  return {
    expected: what + range,
    accepts: (value) =>
      isFit(value) && (value as number) >= (min ?? -Infinity) && (value as number) <= (max ?? Infinity),
  };
}

function quoted(choice: string): string {
  return JSON.stringify(choice);
}

function backticked(name: string): string {
  return `\`${name}\``;
}
