import type { ServerResponse } from "node:http";
import type { ErrorCode, SessionRef } from "@throughline/core";
import type { z } from "zod";
import type { Answer } from "./answer.ts";
import type { Scope } from "../security/scopes.ts";
import type { View } from "../security/view.ts";
import type { ServerContext } from "../server-context.ts";
import type { ServerLimits } from "../server-options.ts";

/** What a route takes as a body. */
interface BodyRule<Schema extends z.ZodType = z.ZodType> {
  readonly schema: Schema;
  /** Media types that are taken. @default application/json */
  readonly types?: readonly string[];
  readonly isOptional?: boolean;
  /** The limits of the JSON, where they are lower than the server's. */
  readonly most?: { readonly bytes: number; readonly values: number };
  /** Reads the bytes, for types that are not JSON. @default JSON */
  readonly read?: (bytes: Buffer, type: string, limits: ServerLimits) => unknown;
}

/** A possible answer, for the document and for tests. */
interface AnswerRule {
  readonly description: string;
  /** @default no body */
  readonly schema?: z.ZodType;
  /** @default application/json */
  readonly type?: string;
  /** In the place of `type`, where the answer has one of several. */
  readonly types?: readonly string[];
}

export interface RouteDefinition<Query extends z.ZodObject = z.ZodObject, Body extends z.ZodType = z.ZodType> {
  /** The name of the operation in the document. */
  readonly id: string;
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Below `/api/v1`. */
  readonly path: string;
  readonly summary: string;
  /** More than the summary says, in Markdown. @default nothing */
  readonly description?: string;
  readonly scope: Scope;
  readonly query?: Query;
  readonly body?: BodyRule<Body>;
  /** Request headers with a meaning, by name. @default none */
  readonly headers?: Readonly<Record<string, string>>;
  readonly answers: Readonly<Record<number, AnswerRule>>;
  /** The codes of the table that this route may answer with, beside those of every route. */
  readonly errors: readonly ErrorCode[];
  /** Null: the route has written to `response` itself. */
  handle(request: ApiRequest<z.output<Query>, z.output<Body>>): Promise<Answer | null>;
}

/** A request that passed every check. */
export interface ApiRequest<Query = unknown, Body = unknown> {
  readonly context: ServerContext;
  readonly view: View;
  readonly query: Query;
  readonly body: Body;
  /** The media type of the body, without parameters. */
  readonly bodyType: string;
  readonly id: string;
  /** Raw path parameters, still percent-encoded. */
  readonly parameters: Readonly<Record<string, string>>;
  header(name: string): string | undefined;
  /** Aborted when the client goes away. */
  readonly signal: AbortSignal;
  /** The session of the path. */
  ref(): SessionRef;
  /** A session that the query names. */
  refOf(key: string): SessionRef;
  /** The same for one that is to begin. @throws {ThroughlineError} KEY_INVALID, KEY_AGENT_MISMATCH */
  newRef(): SessionRef;
  readonly response: ServerResponse;
}

/** Keeps the types of a route's query and body for its handler. */
export function route<Query extends z.ZodObject = z.ZodObject, Body extends z.ZodType = z.ZodType>(
  definition: RouteDefinition<Query, Body>,
): RouteDefinition {
  return definition as RouteDefinition;
}
