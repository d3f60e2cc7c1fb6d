import type { IncomingMessage } from "node:http";
import { hasErrorCode, type ThroughlineError } from "@throughline/core";
import { refused } from "@throughline/core/store";

export interface BodyLimits {
  readonly bodyBytes: number;
  /** Levels of JSON, counted in the bytes before anything is parsed. */
  readonly jsonLevels: number;
}

/**
 * The body of a request, whole.
 * @throws {ThroughlineError} REQUEST_TOO_LARGE, ABORTED when the client goes away
 */
export async function readBody(request: IncomingMessage, { bodyBytes }: BodyLimits): Promise<Buffer> {
  const declared = Number(request.headers["content-length"] ?? 0);
  if (declared > bodyBytes) throw tooLarge(bodyBytes);
  const chunks = new Chunks();
  let bytes = 0;
  return new Promise((resolve, reject) => {
    const end = (finish: () => void): void => {
      request.off("data", take).off("end", done).off("error", fail).off("close", gone);
      finish();
    };
    const take = (chunk: Buffer): void => {
      bytes += chunk.length;
      if (bytes > bodyBytes) {
        request.pause();
        return end(() => reject(tooLarge(bodyBytes)));
      }
      chunks.add(chunk);
    };
    const done = (): void => end(() => resolve(chunks.whole()));
    const fail = (error: Error): void => end(() => reject(broken(error)));
    const gone = (): void => end(() => reject(broken(null)));
    request.on("data", take).on("end", done).on("error", fail).on("close", gone);
  });
}

const gatherBytes = 64 * 1024;

/** Pieces of a body. Small ones are copied together: a client may send each byte as a chunk of its own. */
class Chunks {
  readonly #full: Buffer[] = [];
  #open: Buffer | null = null;
  #filled = 0;

  add(chunk: Buffer): void {
    if (chunk.length >= gatherBytes / 2) {
      this.#seal();
      this.#full.push(chunk);
      return;
    }
    if (this.#open !== null && this.#filled + chunk.length > gatherBytes) this.#seal();
    this.#open ??= Buffer.allocUnsafeSlow(gatherBytes);
    this.#filled += chunk.copy(this.#open, this.#filled);
  }

  whole(): Buffer {
    this.#seal();
    const [only] = this.#full;
    return this.#full.length === 1 && only !== undefined ? only : Buffer.concat(this.#full);
  }

  #seal(): void {
    if (this.#open !== null) this.#full.push(this.#open.subarray(0, this.#filled));
    this.#open = null;
    this.#filled = 0;
  }
}

function tooLarge(limit: number): ThroughlineError {
  return refused("REQUEST_TOO_LARGE", `The body of the request has more than ${limit} bytes.`, { limit });
}

function broken(cause: unknown): ThroughlineError {
  return refused("ABORTED", "The client closed the connection before the request was complete.", {}, cause);
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** @throws {ThroughlineError} INPUT_INVALID for what is not UTF-8, no JSON, or nested too deep */
export function parseJson(bytes: Buffer, { jsonLevels }: BodyLimits): unknown {
  if (isDeeper(bytes, jsonLevels))
    throw refused("INPUT_INVALID", `The JSON of the request is nested more than ${jsonLevels} levels deep.`, {
      levels: jsonLevels,
    });
  try {
    return JSON.parse(decoder.decode(bytes)) as unknown;
  } catch (cause) {
    // The parser quotes what it met, which nobody asked to have in an answer or a log.
    const why = cause instanceof SyntaxError ? "is not JSON" : "is not UTF-8";
    throw refused("INPUT_INVALID", `The body of the request ${why}.`);
  }
}

const lineFeed = 0x0a;

function isBlank(byte: number): boolean {
  return byte === 0x20 || byte === 0x09 || byte === 0x0d;
}

/**
 * The objects of NDJSON, one a line; empty lines are passed over.
 * @throws {ThroughlineError} INPUT_INVALID, with the number of the line
 */
export function parseLines(bytes: Buffer, limits: BodyLimits): readonly unknown[] {
  const values: unknown[] = [];
  for (let from = 0, line = 1; from < bytes.length; line++) {
    const at = bytes.indexOf(lineFeed, from);
    const end = at === -1 ? bytes.length : at;
    const text = bytes.subarray(from, end);
    from = end + 1;
    if (text.every(isBlank)) continue;
    try {
      values.push(parseJson(text, limits));
    } catch (error) {
      if (!hasErrorCode(error, "INPUT_INVALID")) throw error;
      throw refused("INPUT_INVALID", `Line ${line} of the body is not a record as JSON.`, { ...error.details, line });
    }
  }
  return values;
}

const [quote, backslash, openArray, openObject, closeArray, closeObject] = [0x22, 0x5c, 0x5b, 0x7b, 0x5d, 0x7d];

/** Whether brackets outside of texts are nested deeper. Stops at the first that is. */
function isDeeper(bytes: Uint8Array, levels: number): boolean {
  let depth = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] as number;
    if (byte === quote) {
      for (at++; at < bytes.length && bytes[at] !== quote; at++) if (bytes[at] === backslash) at++;
    } else if (byte === openArray || byte === openObject) {
      depth++;
      if (depth > levels) return true;
    } else if (byte === closeArray || byte === closeObject) depth--;
  }
  return false;
}
