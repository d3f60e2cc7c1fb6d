import type { ErrorCode, SessionRef } from "@throughline/core";
import type { z } from "zod";
import type { Answer } from "./answer.ts";
import type { Scope } from "../security/scopes.ts";
import type { View } from "../security/view.ts";
import type { ApiContext } from "../api-context.ts";
import type { SessionApiLimits } from "../api-options.ts";
import type { Reply } from "./exchange.ts";

interface BodyRule<Schema extends z.ZodType = z.ZodType> {
  readonly schema: Schema;
  /** Lists the accepted media types. @default application/json */
  readonly types?: readonly string[];
  readonly isOptional?: boolean;
  /** Passes the body to the handler as a stream that is read no faster than the handler reads it. @default false */
  readonly isStream?: boolean;
  /** Lowers the server's JSON limits for this route. */
  readonly most?: { readonly bytes: number; readonly values: number };
  /** Parses the bytes of a type other than JSON. @default JSON */
  readonly read?: (bytes: Buffer, type: string, limits: SessionApiLimits) => unknown;
}

/** The OpenAPI document and the tests read these rules. */
interface AnswerRule {
  readonly description: string;
  /** @default no body */
  readonly schema?: z.ZodType;
  /** @default application/json */
  readonly type?: string;
  /** Replaces `type` when the answer has one of several types. */
  readonly types?: readonly string[];
}

export interface RouteDefinition<Query extends z.ZodObject = z.ZodObject, Body extends z.ZodType = z.ZodType> {
  /** Becomes the operation id in the OpenAPI document. */
  readonly id: string;
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Starts after `/api/v1`. */
  readonly path: string;
  readonly summary: string;
  /** Adds details to the summary, in Markdown. @default nothing */
  readonly description?: string;
  readonly scope: Scope;
  /** Requires `read` as well, because the answer holds content of the session. @default false */
  readonly isAlsoRead?: boolean;
  readonly query?: Query;
  readonly body?: BodyRule<Body>;
  /** Documents the request headers that the route reads, by name. @default none */
  readonly headers?: Readonly<Record<string, string>>;
  readonly answers: Readonly<Record<number, AnswerRule>>;
  /** Every route has further codes, see `everywhere`, so only the others are listed. */
  readonly errors: readonly ErrorCode[];
  /** Returns null when the route wrote to `response` itself, as event streams do. */
  handle(request: ApiRequest<z.output<Query>, z.output<Body>>): Promise<Answer | null>;
}

export interface ApiRequest<Query = unknown, Body = unknown> {
  readonly context: ApiContext;
  readonly view: View;
  readonly query: Query;
  readonly body: Body;
  /** Is the media type without its parameters. */
  readonly bodyType: string;
  readonly id: string;
  /** Holds the path parameters percent-encoded. Handlers decode them with `decodeSegment` or `keyOfSegment`. */
  readonly parameters: Readonly<Record<string, string>>;
  header(name: string): string | undefined;
  /** Lets a handler stop its work when the client disconnects. */
  readonly signal: AbortSignal;
  ref(): SessionRef;
  refOf(key: string): SessionRef;
  /**
   * Returns the session of the path for a route that may create it. @throws {ThroughlineError} KEY_INVALID,
   * KEY_AGENT_MISMATCH
   */
  newRef(): SessionRef;
  readonly response: Reply;
}

/** Infers the types of the query and body for the handler, which a plain object literal would lose. */
export function route<Query extends z.ZodObject = z.ZodObject, Body extends z.ZodType = z.ZodType>(
  definition: RouteDefinition<Query, Body>,
): RouteDefinition {
  return definition as RouteDefinition;
}
