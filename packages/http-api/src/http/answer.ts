import { createWorkSlices } from "@throughline/core/internal";

export type Answer = JsonAnswer | ListAnswer | TextAnswer | EmptyAnswer;

export type HeaderMap = Readonly<Record<string, string>>;

export interface JsonAnswer {
  readonly kind: "json";
  readonly status: number;
  /** Holds the JSON as text, so that a record's stored line is sent without parsing it. */
  readonly text: string;
  readonly headers?: HeaderMap;
}

/** The writer sends the items as one JSON object or as NDJSON lines, so each item is already serialized. */
export interface ListAnswer {
  readonly kind: "list";
  /** @default 200 */
  readonly status?: number;
  readonly items: readonly string[];
  readonly nextCursor: string | null;
  /** Sets members beside `items`, `count` and `nextCursor`. @default none */
  readonly members?: Readonly<Record<string, unknown>>;
  readonly headers?: HeaderMap;
}

interface TextAnswer {
  readonly kind: "text";
  readonly status: number;
  readonly type: string;
  readonly body: string | AsyncIterable<string | Uint8Array>;
  readonly headers?: HeaderMap;
}

interface EmptyAnswer {
  readonly kind: "empty";
  readonly status: number;
  readonly headers?: HeaderMap;
}

export function json(
  status: number,
  value: { readonly kind: string; readonly [member: string]: unknown },
  headers: HeaderMap = {},
): JsonAnswer {
  return { kind: "json", status, text: JSON.stringify(value), headers };
}

const pieceCharacters = 64 * 1024;

/**
 * Serializes an object with long lists while it is sent, in slices. Serializing 60,000 messages at once would block the
 * event loop.
 */
export function largeJson(
  status: number,
  value: { readonly kind: string; readonly [member: string]: unknown },
): TextAnswer {
  return { kind: "text", status, type: "application/json", body: inPieces(jsonParts(value)) };
}

function* jsonParts(value: Readonly<Record<string, unknown>>): Generator<string> {
  let mark = "{";
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined) continue;
    yield `${mark}${JSON.stringify(name)}:`;
    mark = ",";
    if (!Array.isArray(member)) {
      yield JSON.stringify(member);
      continue;
    }
    yield "[";
    for (const [index, item] of member.entries()) yield `${index === 0 ? "" : ","}${JSON.stringify(item) ?? "null"}`;
    yield "]";
  }
  yield "}";
}

/** Joins many small parts into larger chunks, because each chunk is a write, and yields between slices. */
async function* inPieces(parts: Iterable<string>): AsyncGenerator<string> {
  const slices = createWorkSlices();
  let piece = "";
  for (const part of parts) {
    piece += part;
    if (piece.length >= pieceCharacters) {
      yield piece;
      piece = "";
    }
    const pause = slices.next();
    if (pause !== undefined) await pause;
  }
  yield piece;
}

export function list(
  items: readonly string[],
  nextCursor: string | null = null,
  members: Readonly<Record<string, unknown>> = {},
): ListAnswer {
  return { kind: "list", items, nextCursor, members };
}

export function* listPieces({ items, nextCursor, members = {} }: ListAnswer, isLines: boolean): Generator<string> {
  const count = items.length;
  if (isLines) {
    for (const item of items) yield `${item}\n`;
    yield `${JSON.stringify({ kind: "end", count, nextCursor })}\n`;
    return;
  }
  yield '{"kind":"list","items":[';
  for (const [index, item] of items.entries()) yield index === 0 ? item : `,${item}`;
  yield `],${JSON.stringify({ count, nextCursor, ...members }).slice(1)}`;
}
