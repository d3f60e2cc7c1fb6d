import { withBoundedBody } from "./bounded-body.ts";

/**
 * A fetch for one request of Ollama's SDK, which takes no signal, writes to the console what it cannot read, and passes
 * over lines of a stream that are broken. Here the signal ends the request, and what cannot be read is an error. Whether the
 * answer is a stream is what was asked for, whatever it says it is: a proxy's page comes as text/html.
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

/** The SDK reads an error's text from JSON in silence, and anything else with a note on the console. */
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

/** The SDK looks into each line without looking what it is. */
function assertObject(line: string): void {
  const value: unknown = JSON.parse(line);
  if (typeof value !== "object" || value === null)
    throw new SyntaxError(`A line of the answer is no JSON object: ${line.slice(0, 300)}`);
}

/** Passes on whole lines; fails at one that is no JSON object, and at an end in the middle of one. */
function wholeLines(): TransformStream<Uint8Array, Uint8Array> {
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  let rest: string[] = [];
  return new TransformStream({
    transform(chunk, controller): void {
      const lines = decoder.decode(chunk, { stream: true }).split("\n");
      // A long line comes in many pieces, of which each is looked at once.
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
