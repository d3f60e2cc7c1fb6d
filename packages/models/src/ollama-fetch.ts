import { withBoundedBody } from "./bounded-body.ts";

/**
 * Returns a fetch for one request of Ollama's SDK. That SDK accepts no signal, prints unreadable answers to the
 * console, and skips broken lines of a stream. With this fetch the signal aborts the request, and an unreadable answer
 * is an error. The caller states whether the answer is a stream. The content type does not count, because a proxy's
 * page arrives as text/html.
 */
export function ollamaFetch(
  isStream: boolean,
  signal: AbortSignal | undefined,
  base: typeof fetch = fetch,
): typeof fetch {
  return async (input, init) => {
    const joinedInit = signal === undefined ? init : { ...init, signal: joined(signal, init?.signal) };
    const response = withBoundedBody(await base(input, joinedInit));
    if (!response.ok) return asJsonError(response);
    if (!isStream || response.body === null) return response;
    return new Response(response.body.pipeThrough(wholeLines()), response);
  };
}

function joined(signal: AbortSignal, other: AbortSignal | null | undefined): AbortSignal {
  return other === null || other === undefined ? signal : AbortSignal.any([signal, other]);
}

/** Wraps an error in JSON, because the SDK prints a note to the console for any other content type. */
async function asJsonError(response: Response): Promise<Response> {
  const text = await response.text();
  const { status, statusText } = response;
  const headers = { "content-type": "application/json" };
  return new Response(errorBody(text), { status, statusText, headers });
}

function errorBody(text: string): string {
  try {
    const body: unknown = JSON.parse(text);
    if (typeof body === "object" && body !== null) return text;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  return JSON.stringify({ error: text.trim() });
}

/** The SDK reads fields of each line without checking that the line is an object. */
function assertObject(line: string): void {
  const value: unknown = JSON.parse(line);
  if (typeof value !== "object" || value === null)
    throw new SyntaxError(`A line of the answer is no JSON object: ${line.slice(0, 300)}`);
}

/** Passes on whole lines. Fails at a line that is not a JSON object, and at an end inside a line. */
function wholeLines(): TransformStream<Uint8Array, Uint8Array> {
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  let rest: string[] = [];
  return new TransformStream({
    transform(chunk, controller): void {
      const lines = decoder.decode(chunk, { stream: true }).split("\n");
      // A long line arrives in many pieces. Joining them only once keeps the cost linear.
      const last = lines.pop() ?? "";
      const [first] = lines;
      if (first !== undefined) {
        lines[0] = [...rest, first].join("");
        rest = [];
      }
      rest.push(last);
      for (const line of lines) {
        if (line.trim() === "") continue;
        assertObject(line);
        controller.enqueue(encoder.encode(`${line}\n`));
      }
    },
    flush(controller): void {
      const last = [...rest, decoder.decode()].join("");
      if (last.trim() === "") return;
      assertObject(last);
      controller.enqueue(encoder.encode(`${last}\n`));
    },
  });
}
