import { isFields, type Fields } from "@throughline/core/internal";
import { parseFields } from "./wire-fields.ts";

/** Turns a response without a usable answer into an error. */
export interface AnswerErrors {
  /** The SDK's error of a body, or an event, that says what went wrong. */
  readonly failureOf: (body: Fields) => Error;
  /** The SDK's error for an answer that ended before it was complete. */
  readonly brokenOff: () => Error;
}

/** A call of an SDK: what it makes of the answer, and the answer as it came. */
interface AnswerOf<Data> {
  withResponse(): Promise<{ readonly data: Data; readonly response: Response }>;
}

/** How much of a response that is not JSON an error quotes, in characters. */
const quotedCharacters = 300;

/**
 * The body of a whole answer, which has a list in `field`. A server, or a proxy before it, may say with status 200 that it
 * failed, or show a page for people.
 * @throws what `errors` make of anything else
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

/** The events of a stream. Of a server that streams nothing, `takeWhole` gets the text that came instead. */
export async function* streamedEvents<Event>(
  call: AnswerOf<AsyncIterable<Event>>,
  takeWhole: (text: string) => void,
): AsyncGenerator<Event> {
  const { data, response } = await call.withResponse();
  // Some servers stream under another name, and so it is not believed before the stream is read.
  const isNamed = /event-stream/i.test(response.headers.get("content-type") ?? "");
  const copy = isNamed ? null : response.clone();
  let isEmpty = true;
  for await (const event of data) {
    if (!isFields(event)) continue;
    // A copy that nobody reads would keep everything that is read here.
    if (isEmpty) void copy?.body?.cancel().catch(() => null);
    isEmpty = false;
    yield event;
  }
  if (isEmpty && copy !== null) takeWhole(await copy.text());
}
