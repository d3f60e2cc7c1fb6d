import type { IncomingMessage } from "node:http";
import type { Readable, Writable } from "node:stream";
import type { ApiCaller } from "../security/api-caller.ts";
import type { HeaderMap } from "./answer.ts";
import type { Problem } from "./problem.ts";

/** Is a request as the checks and the routes read it: its bytes before any normalization where the server has them. */
export type ApiIncoming = Pick<IncomingMessage, "method" | "url" | "headers" | "headersDistinct" | "rawHeaders"> &
  Readable;

/** Takes the status, the headers and the body of an answer, the body no faster than the client reads. */
export interface Reply extends Writable {
  statusCode: number;
  readonly headersSent: boolean;
  writeHead(status: number, headers: Readonly<Record<string, string | number>>): this;
  /** Sends the headers before the first byte of the body. */
  flushHeaders(): void;
  /** Destroys the answer when its client reads nothing for this time, in milliseconds. */
  setTimeout(ms: number): this;
}

/** Holds what the host server knows of a request. */
export interface HostRequest {
  /**
   * Is the caller that the host server authenticated. Null refuses the request with status 401. @default the owner of
   * the token in `authorization`, which must be one of the store
   */
  readonly caller?: ApiCaller | null;
  /** Is the address of the client, for the limit of wrong tokens. @default that of the connection, if it is known */
  readonly address?: string;
}

/** Is one request with its answer, of any server. The routes know no other form. */
export interface Exchange {
  readonly request: ApiIncoming;
  readonly response: Reply;
  /** Is the address of the connection; empty where the server does not have it. */
  readonly address: string;
  /** Is true if the host server has read the body, which is then lost. */
  readonly isBodyRead: boolean;
  readonly caller: ApiCaller | null | undefined;
  /** Lets a client that waits for `100 Continue` send its body. */
  continueBody(): void;
  /** Answers with a problem, whatever part of the body has arrived. */
  refuse(problem: Problem, headers: HeaderMap): void;
}
