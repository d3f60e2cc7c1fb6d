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

/** Connections to upstreams, which are kept open between requests. */
export interface UpstreamConnections {
  /** Sends a request; resolves with the head of the answer. @throws {ThroughlineError} UPSTREAM_UNREACHABLE, ABORTED */
  send(upstream: Upstream, outgoing: OutgoingRequest, signal: AbortSignal): Promise<IncomingMessage>;
  /** Begins a request whose body is written piece by piece. */
  begin(upstream: Upstream, head: OutgoingHead, signal: AbortSignal): BegunRequest;
  close(): void;
}

interface OutgoingHead {
  readonly method: string;
  /** Path and query, as they came. */
  readonly target: string;
  readonly headers: readonly string[];
  readonly bodyBytes: number;
}

interface OutgoingRequest extends Omit<OutgoingHead, "bodyBytes"> {
  readonly body: Buffer;
}

/** A request that is on its way. */
export interface BegunRequest {
  /** Resolves with the head of the answer. */
  readonly answer: Promise<IncomingMessage>;
  write(piece: Buffer): void;
  end(last?: Buffer): void;
}

/** A call of a model may take this long. */
const deadlineMs = 3_600_000;
const maxHeaderSize = 64 * 1024;

/** @param proxyEnv variables that name proxies; undefined: none is used */
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
      // No server can give a status below 200 as the answer to a client that asked for no other protocol.
      request.on("response", (came) => ((came.statusCode ?? 0) < 200 ? refuse(came.statusCode) : resolve(came)));
      request.on("error", (cause) => reject(signal.aborted ? gone(cause) : unreachable(upstream, cause)));
      // Without a listener a switch of protocols would leave the request open, and without one for errors end the process.
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

/** How the body of an answer ended. */
export type RelayEnd = "whole" | "cut" | "aborted";

export interface RelayOptions {
  /** The text that is masked in the body: a provider may quote the key that it refuses. An empty text masks nothing. */
  readonly secret: string;
  /** Called with each chunk behind its write, so that the client never waits for it. */
  readonly onChunk: (chunk: Buffer) => void;
  /** What a client may take for the end is held back `until` something is done; false breaks the answer off. */
  readonly hold: { readonly isLast: (chunk: Buffer) => boolean; readonly until: () => Promise<boolean> } | null;
}

/** The last event of the Responses API repeats all of the answer. What is larger is not stored either, see `mostCopied`. */
const mostHeld = mostCopied;

/** Replaces a text in bytes that come in pieces by another of its length. A piece that may be its beginning waits for the next. */
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

  /** How many of the last bytes may be the beginning of the secret. */
  #beginningAtEnd(bytes: Buffer): number {
    for (let length = Math.min(this.#secret.length - 1, bytes.length); length > 0; length--)
      if (bytes.subarray(bytes.length - length).equals(this.#secret.subarray(0, length))) return length;
    return 0;
  }
}

/** Passes the body of an answer on, each chunk as it comes and no faster than the client takes it. */
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
    // The length was a lie, or the connection broke: the client sees a broken answer as it would without us.
    const breakOff = (): void => {
      const isGone = response.destroyed;
      // What was written leaves with the end of this turn of the loop.
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
    // It may have broken since it was looked at.
    if (state === "broken" || (state === "open" && answer.destroyed)) return breakOff();
    if (response.destroyed) return abort();
    if (state === "ended") return finishWhole();
    answer.on("data", pass);
    answer.on("end", finishWhole);
    answer.on("error", breakOff);
    answer.resume();
  });
}
