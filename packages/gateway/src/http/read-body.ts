import type { IncomingMessage, ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import type { ThroughlineError } from "@throughline/core";
import { refused } from "@throughline/core/internal";
import type { BodyShare } from "./body-budget.ts";
import { type JsonLimits, JsonScan } from "./json-scan.ts";

export interface BodyLimits {
  readonly bodyBytes: number;
  /** Limits how long the body may take to arrive, in milliseconds. */
  readonly bodyMs: number;
  /** Limits the nesting of JSON. The scan counts bytes before parsing. */
  readonly jsonLevels: number;
  /** Limits the values of JSON, because a parsed value takes many times its bytes. */
  readonly jsonValues: number;
}

/**
 * Reads the whole body of a request. With `isJson`, the request is refused as soon as the bytes exceed the level or
 * value limit.
 *
 * @param share the part of the body budget that the request has
 * @param onPiece is called with each chunk while later chunks are still arriving
 * @throws {ThroughlineError} REQUEST_TOO_LARGE, STORE_OVERLOADED, REQUEST_TIMEOUT, INPUT_INVALID, ABORTED when the
 *   client goes away
 */
export async function readBody(
  request: Readable & Pick<IncomingMessage, "headers">,
  limits: BodyLimits,
  isJson: boolean,
  share: BodyShare,
  onPiece: (piece: Buffer) => void = () => {},
): Promise<Buffer> {
  const { bodyBytes, bodyMs } = limits;
  assertDeclared(request, bodyBytes);
  const declared = Number(request.headers["content-length"] ?? 0);
  share.take(declared);
  const chunks = new Chunks(onPiece);
  const scan = new JsonScan({ levels: limits.jsonLevels, values: limits.jsonValues });
  let bytes = 0;
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => refuse(tooLate(bodyMs)), bodyMs);
    const end = (finish: () => void): void => {
      clearTimeout(late);
      request.off("data", take).off("end", done).off("error", fail).off("close", gone);
      finish();
    };
    const refuse = (error: unknown): void => {
      request.pause();
      end(() => reject(error as Error));
    };
    const take = (chunk: Buffer): void => {
      bytes += chunk.length;
      if (bytes > bodyBytes) return refuse(tooLarge(bodyBytes));
      if (bytes > declared)
        try {
          share.take(chunk.length);
        } catch (error) {
          return refuse(error);
        }
      const excess = isJson ? scan.take(chunk) : null;
      if (excess !== null) return refuse(excessError(excess, limits));
      chunks.add(chunk);
    };
    const done = (): void => end(() => resolve(chunks.whole()));
    const fail = (error: Error): void => end(() => reject(broken(error)));
    const gone = (): void => end(() => reject(broken(null)));
    request.on("data", take).on("end", done).on("error", fail).on("close", gone);
  });
}

/** @throws {ThroughlineError} REQUEST_TOO_LARGE before a byte of the body was sent */
export function assertDeclared({ headers }: Pick<IncomingMessage, "headers">, bodyBytes: number): void {
  if (Number(headers["content-length"] ?? 0) > bodyBytes) throw tooLarge(bodyBytes);
}

const gatherBytes = 64 * 1024;
/** Copying pays only for small chunks: from this size on, the cost of a Buffer object is small beside its bytes. */
const keptAloneBytes = 4 * 1024;

/**
 * Collects the chunks of a body. Small chunks are copied into one buffer, because a client may send each byte as a
 * chunk.
 */
class Chunks {
  readonly #full: Buffer[] = [];
  readonly #onPiece: (piece: Buffer) => void;
  #open: Buffer | null = null;
  #filled = 0;

  constructor(onPiece: (piece: Buffer) => void) {
    this.#onPiece = onPiece;
  }

  add(chunk: Buffer): void {
    if (chunk.length >= keptAloneBytes) {
      this.#seal();
      this.#keep(chunk);
      return;
    }
    if (this.#open !== null && this.#filled + chunk.length > gatherBytes) this.#seal();
    this.#open ??= Buffer.allocUnsafeSlow(gatherBytes);
    this.#filled += chunk.copy(this.#open, this.#filled);
    giveBack(chunk);
  }

  whole(): Buffer {
    this.#seal();
    const [only] = this.#full;
    return this.#full.length === 1 && only !== undefined ? only : Buffer.concat(this.#full);
  }

  #seal(): void {
    if (this.#open !== null) this.#keep(this.#open.subarray(0, this.#filled));
    this.#open = null;
    this.#filled = 0;
  }

  #keep(piece: Buffer): void {
    this.#full.push(piece);
    this.#onPiece(piece);
  }
}

/**
 * Frees the memory of a copied chunk at once. The garbage collector would wait, because it sees only the small Buffer
 * object and not the memory behind it.
 */
function giveBack({ buffer, length }: Buffer): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === length) buffer.transfer(0);
}

function tooLarge(limit: number): ThroughlineError {
  return refused("REQUEST_TOO_LARGE", `The body of the request has more than ${limit} bytes.`, { limit });
}

function tooLate(limitMs: number): ThroughlineError {
  return refused("REQUEST_TIMEOUT", `The body of the request did not arrive within ${limitMs} ms.`, { limitMs });
}

function broken(cause: unknown): ThroughlineError {
  return refused("ABORTED", "The client closed the connection before the request was complete.", {}, cause);
}

/** Creates the error of a request whose JSON exceeds a limit. */
export function excessError(
  what: keyof JsonLimits,
  { jsonLevels, jsonValues }: Pick<BodyLimits, "jsonLevels" | "jsonValues">,
): ThroughlineError {
  if (what === "values")
    return refused("REQUEST_TOO_LARGE", `The JSON of the request has more than ${jsonValues} values.`, {
      values: jsonValues,
    });
  const message = `The JSON of the request is nested more than ${jsonLevels} levels deep.`;
  return refused("INPUT_INVALID", message, { levels: jsonLevels });
}

/** Sends `100 Continue` if the client expects it. HTTP/1.0 has no such status. */
export function continueBody({ headers, httpVersion }: IncomingMessage, response: ServerResponse): void {
  if (headers.expect !== undefined && httpVersion === "1.1") response.writeContinue();
}
