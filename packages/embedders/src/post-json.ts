import { ThroughlineError } from "@throughline/core";
import { causeText, quote } from "@throughline/core/internal";

/** Holds a request to an embedding server. */
export interface JsonRequest {
  /** Names the embedder in errors. */
  readonly name: string;
  readonly url: URL;
  /** Is sent as a bearer token. */
  readonly apiKey: string | null;
  readonly body: unknown;
  readonly signal: AbortSignal | undefined;
}

/** 64 vectors of 4,096 numbers take 6 MB as JSON. */
const mostBytes = 64 * 1024 * 1024;
const mostErrorLength = 300;

/**
 * Sends a request and returns the JSON of the answer. A redirect is refused, because it would carry texts and the key
 * elsewhere.
 * @throws {ThroughlineError} EMBEDDING_FAILED with `status` and `retryAfterMs` in its details, ABORTED
 */
export async function postJson({ name, url, apiKey, body, signal }: JsonRequest): Promise<unknown> {
  const headers: Record<string, string> = { "content-type": "application/json", accept: "application/json" };
  if (apiKey !== null) headers["authorization"] = `Bearer ${apiKey}`;
  let response: Response;
  let text: string;
  try {
    const sent = { method: "POST", headers, body: JSON.stringify(body), redirect: "error" as const };
    response = await fetch(url, signal === undefined ? sent : { ...sent, signal });
    text = await readText(response, name);
  } catch (error) {
    if (signal?.aborted === true)
      throw new ThroughlineError("ABORTED", "The texts were not embedded.", { cause: signal.reason });
    if (ThroughlineError.isInstance(error)) throw error;
    throw failed(name, `${url.host} did not answer: ${causeText(error)}`, {}, error);
  }
  if (!response.ok) throw refusedBy(name, response, text);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw failed(name, `the answer of ${url.host} is no JSON`, { status: response.status }, error);
  }
}

async function readText(response: Response, name: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > mostBytes) throw failed(name, `the answer is longer than ${mostBytes} bytes`, {});
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function refusedBy(name: string, response: Response, text: string): ThroughlineError {
  const { status } = response;
  const retryAfterMs = retryAfter(response.headers.get("retry-after"));
  const details = { status, ...(retryAfterMs === null ? {} : { retryAfterMs }) };
  return failed(name, `status ${status}, ${quote(messageOf(text).slice(0, mostErrorLength).toWellFormed())}`, details);
}

/** Returns the message of an answer of OpenAI's or Ollama's form, else the text. */
function messageOf(text: string): string {
  try {
    const { error } = JSON.parse(text) as { readonly error?: unknown };
    if (typeof error === "string") return error;
    const { message } = (error ?? {}) as { readonly message?: unknown };
    if (typeof message === "string") return message;
  } catch {
    // Proxies answer with HTML.
  }
  return text;
}

function retryAfter(header: string | null): number | null {
  if (header === null || !/^\d{1,6}$/.test(header.trim())) return null;
  return Number(header) * 1000;
}

function failed(
  name: string,
  why: string,
  details: Readonly<Record<string, unknown>>,
  cause?: unknown,
): ThroughlineError {
  return new ThroughlineError("EMBEDDING_FAILED", `The embedder ${name} gave no vectors: ${why}.`, {
    details: { embedder: name, ...details },
    ...(cause === undefined ? {} : { cause }),
  });
}

/**
 * Reads the address of a server.
 * @throws {ThroughlineError} CONFIG_INVALID without repeating the address, which may hold a password
 */
export function serverUrl(baseUrl: string, path: string): URL {
  const url = URL.parse(`${baseUrl.replace(/\/{1,9}$/, "")}/${path}`);
  if (url === null || !["http:", "https:"].includes(url.protocol) || url.username !== "" || url.password !== "")
    throw new ThroughlineError(
      "CONFIG_INVALID",
      "The address of the embedder is no http or https URL without a password.",
      {
        remedy: "Write http:// or https://, a host, and where needed a port and a path. Pass a key as `apiKey`.",
      },
    );
  return url;
}

/**
 * Reads a vector of JSON numbers. A value that is no number becomes NaN, which the check of all answers refuses.
 */
export function vectorOf(value: unknown): Float32Array {
  return Array.isArray(value)
    ? Float32Array.from(value, (each: unknown) => (typeof each === "number" ? each : Number.NaN))
    : new Float32Array(0);
}
