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
import type { GatewayOptions, Upstream } from "./gateway-options.ts";
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
export function createUpstreamConnections(proxyEnv: GatewayOptions["proxyVariables"]): UpstreamConnections {
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
   * connection is cut, so that the client does not treat the call as complete.
   */
  readonly hold: { readonly isLast: (chunk: Buffer) => boolean; readonly until: () => Promise<boolean> } | null;
}

/**
 * The last event of the Responses API repeats the whole answer, so the limit equals `mostCopied`. A larger answer is
 * not stored either.
 */
const mostHeld = mostCopied;

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
export function relayBody(
  { answer, chunks, state }: PeekedAnswer,
  response: ServerResponse,
  { secret, onChunk, hold }: RelayOptions,
): Promise<RelayEnd> {
  return new Promise((resolve) => {
    let isOver = false;
    let held: Buffer[] = [];
    let heldBytes = 0;
    const end = (how: RelayEnd): void => {
      if (isOver) return;
      isOver = true;
      resolve(how);
    };
    const release = (): void => {
      for (const chunk of held) response.write(chunk);
      held = [];
    };
    const mask = new Mask(secret);
    const pass = (chunk: Buffer): void => passMasked(mask.take(chunk));
    const passMasked = (chunk: Buffer): void => {
      if (chunk.length === 0) return;
      if (hold !== null && (held.length > 0 || hold.isLast(chunk))) {
        held.push(chunk);
        heldBytes += chunk.length;
        if (heldBytes > mostHeld) {
          breakOff();
          answer.destroy();
        }
      } else if (!response.write(chunk)) answer.pause();
      onChunk(chunk);
    };
    const finishWhole = (): void => {
      passMasked(mask.end());
      const finish = (isKept: boolean): void => {
        if (!isKept) response.destroy();
        else {
          release();
          response.end();
        }
        end(isKept ? "whole" : "cut");
      };
      if (hold === null) finish(true);
      else void hold.until().then(finish);
    };
    // The content length was wrong or the upstream connection broke. The client must see a broken answer, as it would
    // without the gateway.
    const breakOff = (): void => {
      const isGone = response.destroyed;
      // Destroy in the next turn of the event loop, so that the written chunks are still sent.
      setImmediate(() => response.destroy());
      end(isGone ? "aborted" : "cut");
    };
    const abort = (): void => {
      if (isOver) return;
      end(answer.complete ? "whole" : "aborted");
      answer.destroy();
    };
    response.on("drain", () => answer.resume());
    response.on("close", abort);
    response.on("error", () => {});
    for (const chunk of chunks) pass(chunk);
    // The answer may have failed after it was peeked. Then it emits no further event.
    if (state === "broken" || (state === "open" && answer.destroyed)) return breakOff();
    if (response.destroyed) return abort();
    if (state === "ended") return finishWhole();
    answer.on("data", pass);
    answer.on("end", finishWhole);
    answer.on("error", breakOff);
    answer.resume();
  });
}
