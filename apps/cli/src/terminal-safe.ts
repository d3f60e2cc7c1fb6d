/* oxlint-disable no-control-regex -- control characters are what this file is about */
/**
 * Text from a transcript, a key or a file name may hold any escape sequence. It may write the clipboard, change the
 * title, make the terminal type, or color the rest of the screen (vercel/ai#20052). No sequence may reach a terminal:
 * whole sequences are removed first, then every remaining control character. An unknown sequence therefore cannot work
 * either. Each pattern runs in linear time, because its payload ends at the next control character.
 */
const operatingSystemCommand =
  /(?:\u001b\]|\u009d)[^\u0000-\u0008\u000a-\u001f\u007f-\u009f]*(?:\u0007|\u001b\\|\u009c)/g;
const deviceString =
  /(?:\u001b[P_^X]|[\u0090\u009f\u009e\u0098])[^\u0000-\u0008\u000a-\u001f\u007f-\u009f]*(?:\u001b\\|\u009c)/g;
const controlSequence = /(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]/g;
const escapeSequence = /\u001b[ -/]*[0-~]/g;
// Matches C0 except tab and line feed, delete, and C1.
const control = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;
// Direction marks make a line read differently from its content.
const direction = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
// This cheap test lets almost every text skip the replacements.
const suspicious = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/;

/** Line feeds and tabs stay. */
export function terminalSafe(text: string): string {
  if (!suspicious.test(text)) return text;
  return text
    .replace(operatingSystemCommand, "")
    .replace(deviceString, "")
    .replace(controlSequence, "")
    .replace(escapeSequence, "")
    .replace(/[\u2028\u2029]/g, "\n")
    .replace(control, "")
    .replace(direction, "");
}

/** Replaces line feeds and tabs with spaces, for output on one line. */
export function terminalSafeLine(text: string): string {
  return terminalSafe(text).replace(/[\n\t]+/g, " ");
}

const unsafeInJson = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/**
 * JSON escapes C0 by itself. C1, delete, direction marks and line separators are escaped here, so that a terminal can
 * show the line. The value stays the same.
 */
export function jsonLine(value: unknown): string {
  return JSON.stringify(value).replace(
    unsafeInJson,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** Holds a text in pieces, because it may exceed the maximum string length; in JSON it is one string. */
export class LongText {
  readonly pieces: () => Iterable<string>;

  constructor(pieces: () => Iterable<string>) {
    this.pieces = pieces;
  }
}

/** Yields the output of `jsonLine` in pieces, because V8 limits a string to about half a gigabyte. */
export function* jsonPieces(value: unknown): Generator<string> {
  if (value instanceof LongText) yield* textPieces(value);
  else if (Array.isArray(value)) yield* elementPieces(value);
  else if (typeof value === "object" && value !== null) yield* fieldPieces(value);
  else yield jsonLine(value ?? null);
}

function* fieldPieces(value: object): Generator<string> {
  let separator = "{";
  for (const [field, content] of Object.entries(value)) {
    if (content === undefined) continue;
    yield `${separator}${jsonLine(field)}:`;
    separator = ",";
    yield* jsonPieces(content);
  }
  yield separator === "{" ? "{}" : "}";
}

function* elementPieces(elements: readonly unknown[]): Generator<string> {
  for (const [index, element] of elements.entries()) {
    yield index === 0 ? "[" : ",";
    yield* jsonPieces(element);
  }
  yield elements.length === 0 ? "[]" : "]";
}

function* textPieces({ pieces }: LongText): Generator<string> {
  yield '"';
  for (const piece of pieces()) yield jsonLine(piece).slice(1, -1);
  yield '"';
}
