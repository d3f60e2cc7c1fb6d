/** What a route answers: the writer makes a response of it. */
export type Answer = JsonAnswer | ListAnswer | TextAnswer | EmptyAnswer;

export type HeaderMap = Readonly<Record<string, string>>;

export interface JsonAnswer {
  readonly kind: "json";
  readonly status: number;
  /** JSON as text: a record's line goes out as it is kept. */
  readonly text: string;
  readonly headers?: HeaderMap;
}

/** One object of JSON an item; as NDJSON each is a line. */
export interface ListAnswer {
  readonly kind: "list";
  /** @default 200 */
  readonly status?: number;
  readonly items: readonly string[];
  readonly nextCursor: string | null;
  /** Members beside `items`, `count` and `nextCursor`. @default none */
  readonly members?: Readonly<Record<string, unknown>>;
  readonly headers?: HeaderMap;
}

/** Text or a file, as it comes. */
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

/** An object that has a `kind`, as JSON. */
export function json(
  status: number,
  value: { readonly kind: string; readonly [member: string]: unknown },
  headers: HeaderMap = {},
): JsonAnswer {
  return { kind: "json", status, text: JSON.stringify(value), headers };
}

export function list(
  items: readonly string[],
  nextCursor: string | null = null,
  members: Readonly<Record<string, unknown>> = {},
): ListAnswer {
  return { kind: "list", items, nextCursor, members };
}

/** The JSON of a list. */
export function listText({ items, nextCursor, members = {} }: ListAnswer): string {
  const rest = JSON.stringify({ count: items.length, nextCursor, ...members });
  return `{"kind":"list","items":[${items.join(",")}],${rest.slice(1)}`;
}

/** The lines of a list, as the command line prints them with `--json`. */
export function listLines({ items, nextCursor }: ListAnswer): string {
  const end = JSON.stringify({ kind: "end", count: items.length, nextCursor });
  return `${items.map((item) => `${item}\n`).join("")}${end}\n`;
}
