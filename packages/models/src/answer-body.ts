import { isFields, type Fields } from "@throughline/core/internal";
import { parseFields } from "./wire-fields.ts";

export interface AnswerErrors {
  /** Creates the error for a body, or an event, that describes a failure. */
  readonly failureOf: (body: Fields) => Error;
  /** Creates the error for an answer that ended before it was complete. */
  readonly brokenOff: () => Error;
}

interface AnswerOf<Data> {
  withResponse(): Promise<{ readonly data: Data; readonly response: Response }>;
}

/** Error messages quote this many characters of a response that is not JSON. */
const quotedCharacters = 300;

/**
 * Returns the body of a whole answer, which has a list in `field`. A server or a proxy may report a failure, or an HTML
 * page, with status 200.
 * @throws the error that `errors` creates for any other body
 */
export function wholeBody(body: unknown, field: string, { failureOf, brokenOff }: AnswerErrors): Fields {
  const text = typeof body === "string" ? body.trim() : null;
  const fields = text === null || text === "" ? body : parseFields(text);
  if (isFields(fields)) {
    if (Array.isArray(fields[field])) return fields;
    throw failureOf(fields);
  }
  if (text === "" || text?.startsWith("{") === true) throw brokenOff();
  const shown = (text ?? JSON.stringify(body) ?? "nothing").slice(0, quotedCharacters);
  throw failureOf({ message: `The server gave no answer but this: ${shown}` });
}

/**
 * Yields the events of a stream. If the server does not stream, `takeWhole` receives the text of the whole answer
 * instead.
 */
export async function* streamedEvents<Event>(
  call: AnswerOf<AsyncIterable<Event>>,
  takeWhole: (text: string) => void,
): AsyncGenerator<Event> {
  const { data, response } = await call.withResponse();
  // Some servers stream under another content type, so the type alone does not prove that the answer is no stream.
  const isNamed = /event-stream/i.test(response.headers.get("content-type") ?? "");
  const copy = isNamed ? null : response.clone();
  let isEmpty = true;
  for await (const event of data) {
    if (!isFields(event)) continue;
    // An unread copy would buffer everything that the stream delivers, so it is canceled at the first event.
    if (isEmpty) void copy?.body?.cancel().catch(() => null);
    isEmpty = false;
    yield event;
  }
  if (isEmpty && copy !== null) takeWhole(await copy.text());
}
