import {
  Agent as HttpAgent,
  request as httpRequest,
  type ClientRequest,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { refused } from "@throughline/core/internal";
import { mostCopied } from "./answer-copy.ts";
import type { GatewaySettings, Upstream } from "./gateway-options.ts";
import type { PeekedAnswer } from "./peek-answer.ts";
import { masked } from "./raw-headers.ts";

export interface UpstreamConnections {
  /**
   * Sends a request and resolves with the head of the answer. @throws {ThroughlineError} UPSTREAM_UNREACHABLE, ABORTED
   */
  send(upstream: Upstream, outgoing: OutgoingRequest, signal: AbortSignal): Promise<IncomingMessage>;
  /** Starts a request before its body has arrived, so that a large upload is not delayed. */
  begin(upstream: Upstream, head: OutgoingHead, signal: AbortSignal): BegunRequest;
  close(): void;
}

interface OutgoingHead {
  readonly method: string;
  /** Holds the path and query as the client sent them, without decoding. */
  readonly target: string;
  readonly headers: readonly string[];
  readonly bodyBytes: number;
}

interface OutgoingRequest extends Omit<OutgoingHead, "bodyBytes"> {
  readonly body: Buffer;
}

export interface BegunRequest {
  readonly answer: Promise<IncomingMessage>;
  write(piece: Buffer): void;
  end(last?: Buffer): void;
}

/** A model call may stay silent for a long time, so the idle timeout is one hour. */
const deadlineMs = 3_600_000;
const maxHeaderSize = 64 * 1024;

/** @param proxyEnv variables that name proxies; undefined disables proxies */
export function createUpstreamConnections(proxyEnv: GatewaySettings["proxyVariables"]): UpstreamConnections {
  const proxies = proxyEnv === undefined ? {} : { proxyEnv: { ...proxyEnv } };
  const options = { keepAlive: true, keepAliveMsecs: 30_000, maxSockets: Infinity, ...proxies } as const;
  const [http, https] = [new HttpAgent(options), new HttpsAgent(options)];
  const begin: UpstreamConnections["begin"] = (upstream, { method, target, headers, bodyBytes }, signal) => {
    const { url } = upstream;
    const isSecure = url.protocol === "https:";
    const head = ["Host", url.host, ...headers, "Accept-Encoding", "identity"];
    if (bodyBytes > 0 || method === "POST" || method === "PUT" || method === "PATCH")
      head.push("Content-Length", String(bodyBytes));
    const send = isSecure ? httpsRequest : httpRequest;
    const request: ClientRequest = send({
      protocol: url.protocol,
      hostname: url.hostname.replace(/^\[|\]$/g, ""),
      port: url.port,
      method,
      path: upstream.basePath + target,
      headers: head,
      agent: isSecure ? https : http,
      maxHeaderSize,
      signal,
      timeout: deadlineMs,
    });
    const answer = new Promise<IncomingMessage>((resolve, reject) => {
      request.on("timeout", () => request.destroy(new Error("The upstream did not answer in an hour.")));
      const refuse = (status: number | undefined): void => {
        reject(noAnswer(upstream, status));
        request.destroy();
      };
      // A status below 200 cannot end a request that asked for no protocol upgrade, and Node could not write it to the
      // client.
      request.on("response", (came) => ((came.statusCode ?? 0) < 200 ? refuse(came.statusCode) : resolve(came)));
      request.on("error", (cause) => reject(signal.aborted ? gone(cause) : unreachable(upstream, cause)));
      // Without the `upgrade` listener a protocol switch would leave the request open. Without the `error` listener a
      // socket error would end the process.
      request.on("upgrade", ({ statusCode }, socket) => {
        socket.on("error", () => {}).destroy();
        refuse(statusCode);
      });
    });
    return { answer, write: (piece) => void request.write(piece), end: (last) => void request.end(last) };
  };
  return {
    begin,
    send(upstream, { body, ...head }, signal) {
      const begun = begin(upstream, { ...head, bodyBytes: body.length }, signal);
      begun.end(body);
      return begun.answer;
    },
    close() {
      http.destroy();
      https.destroy();
    },
  };
}

function unreachable({ name }: Upstream, cause: unknown): Error {
  const { code } = cause as NodeJS.ErrnoException;
  const why = code === undefined ? "" : `: ${code}`;
  return refused("UPSTREAM_UNREACHABLE", `The upstream ${name} gave no answer${why}.`, { upstream: name }, cause);
}

function noAnswer({ name }: Upstream, status: number | undefined): Error {
  const message = `The upstream ${name} answered with the status ${status}, which ends no request.`;
  return refused("UPSTREAM_UNREACHABLE", message, { upstream: name });
}

function gone(cause: unknown): Error {
  return refused("ABORTED", "The client went away before the upstream answered.", {}, cause);
}

export type RelayEnd = "whole" | "cut" | "aborted";

export interface RelayOptions {
  /**
   * Names the text to mask in the body, because a provider may quote the key that it refuses. An empty text masks
   * nothing.
   */
  readonly secret: string;
  /** Is called after each chunk is written, so that recording never delays the client. */
  readonly onChunk: (chunk: Buffer) => void;
  /**
   * Holds back the chunk that ends the answer for the client, until `until` resolves. If it resolves to false, the
   * connection is cut, so that the client does not treat the call as complete. `until` is called when the answer has
   * ended, or a moment after its last event.
   */
  readonly hold: { readonly isLast: (chunk: Buffer) => boolean; readonly until: () => Promise<boolean> } | null;
}

/**
 * The last event of the Responses API repeats the whole answer, so the limit equals `mostCopied`. A larger answer is
 * not stored either.
 */
const mostHeld = mostCopied;

/** Some upstreams keep the connection open after the last event. Their clients do not wait longer for that event. */
const lingerMs = 200;

/**
 * Replaces a secret in a stream of chunks by a mask of equal length. A chunk's tail that may be the start of the secret
 * waits for the next chunk.
 */
class Mask {
  readonly #secret: Buffer;
  readonly #masked: Buffer;
  #held: Buffer = Buffer.alloc(0);

  constructor(secret: string) {
    this.#secret = Buffer.from(secret);
    this.#masked = Buffer.from(masked(secret));
  }

  take(chunk: Buffer): Buffer {
    if (this.#secret.length === 0) return chunk;
    const bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    const plain = bytes.includes(this.#secret) ? this.#replaced(bytes) : bytes;
    const kept = this.#beginningAtEnd(plain);
    this.#held = Buffer.from(plain.subarray(plain.length - kept));
    return plain.subarray(0, plain.length - kept);
  }

  end(): Buffer {
    return this.#held;
  }

  #replaced(bytes: Buffer): Buffer {
    const copy = Buffer.from(bytes);
    for (let at = copy.indexOf(this.#secret); at !== -1; at = copy.indexOf(this.#secret, at))
      this.#masked.copy(copy, at);
    return copy;
  }

  #beginningAtEnd(bytes: Buffer): number {
    for (let length = Math.min(this.#secret.length - 1, bytes.length); length > 0; length--)
      if (bytes.subarray(bytes.length - length).equals(this.#secret.subarray(0, length))) return length;
    return 0;
  }
}

/** Respects backpressure, so that a slow client does not fill the server's memory. */
export function relayBody(peeked: PeekedAnswer, response: ServerResponse, options: RelayOptions): Promise<RelayEnd> {
  return new BodyRelay(peeked.answer, response, options).run(peeked);
}

/** Relays one body. The first end counts: a client may go away while the end of an answer is held back. */
class BodyRelay {
  readonly #answer: IncomingMessage;
  readonly #response: ServerResponse;
  #onChunk: RelayOptions["onChunk"];
  #hold: RelayOptions["hold"];
  #lingering: NodeJS.Timeout | undefined;
  readonly #mask: Mask;
  readonly #ended = Promise.withResolvers<RelayEnd>();
  #isOver = false;
  #held: Buffer[] = [];
  #heldBytes = 0;

  constructor(answer: IncomingMessage, response: ServerResponse, { secret, onChunk, hold }: RelayOptions) {
    this.#answer = answer;
    this.#response = response;
    this.#onChunk = onChunk;
    this.#hold = hold;
    this.#mask = new Mask(secret);
  }

  run({ chunks, state }: PeekedAnswer): Promise<RelayEnd> {
    const [answer, response] = [this.#answer, this.#response];
    response.on("drain", () => answer.resume());
    response.on("close", () => this.#abort());
    response.on("error", () => {});
    for (const chunk of chunks) this.#pass(chunk);
    // The answer may have failed after it was peeked. Then it emits no further event.
    if (state === "broken" || (state === "open" && answer.destroyed)) this.#breakOff();
    else if (response.destroyed) this.#abort();
    else if (state === "ended") this.#finishWhole();
    else {
      answer.on("data", (chunk: Buffer) => this.#pass(chunk));
      answer.on("end", () => this.#finishWhole());
      answer.on("error", () => this.#breakOff());
      answer.resume();
    }
    return this.#ended.promise;
  }

  #pass(chunk: Buffer): void {
    this.#passMasked(this.#mask.take(chunk));
  }

  #passMasked(chunk: Buffer): void {
    if (chunk.length === 0) return;
    if (this.#hold !== null && (this.#held.length > 0 || this.#hold.isLast(chunk))) this.#holdBack(chunk);
    else if (!this.#response.write(chunk)) this.#answer.pause();
    this.#onChunk(chunk);
  }

  #holdBack(chunk: Buffer): void {
    this.#lingering ??= setTimeout(() => void this.#release(), lingerMs);
    this.#held.push(chunk);
    this.#heldBytes += chunk.length;
    if (this.#heldBytes <= mostHeld) return;
    this.#breakOff();
    this.#answer.destroy();
  }

  /** Ends the answer for the client although the upstream has not closed it. What follows is passed and not recorded. */
  async #release(): Promise<void> {
    if (this.#isOver || this.#hold === null) return;
    this.#onChunk = () => {};
    const isKept = await this.#hold.until();
    // The upstream may have ended the answer meanwhile.
    if (this.#isOver) return;
    if (!isKept) {
      this.#finish(false);
      return void this.#answer.destroy();
    }
    for (const chunk of this.#held.splice(0)) this.#response.write(chunk);
    this.#hold = null;
  }

  #finishWhole(): void {
    clearTimeout(this.#lingering);
    this.#passMasked(this.#mask.end());
    if (this.#hold === null) this.#finish(true);
    else void this.#hold.until().then((isKept) => this.#finish(isKept));
  }

  #finish(isKept: boolean): void {
    if (isKept) {
      for (const chunk of this.#held) this.#response.write(chunk);
      this.#held = [];
      this.#response.end();
    } else this.#response.destroy();
    this.#end(isKept ? "whole" : "cut");
  }

  /**
   * Ends after a wrong content length or a broken connection to the upstream. The client must see a broken answer, as
   * it would without the gateway.
   */
  #breakOff(): void {
    const isGone = this.#response.destroyed;
    // Destroy in the next turn of the event loop, so that the written chunks are still sent.
    setImmediate(() => this.#response.destroy());
    this.#end(isGone ? "aborted" : "cut");
  }

  #abort(): void {
    if (this.#isOver) return;
    this.#end(this.#answer.complete ? "whole" : "aborted");
    this.#answer.destroy();
  }

  #end(how: RelayEnd): void {
    clearTimeout(this.#lingering);
    this.#isOver = true;
    this.#ended.resolve(how);
  }
}
