import type { Fields } from "@throughline/core/internal";

/** What an ADK session is known by. */
export interface AdkSessionKey {
  /** The app that the ADK's `Runner` was created for. */
  readonly appName: string;
  /** The user, as the program names it. */
  readonly userId: string;
  /** The ADK's id of the session, unique within its app and user. */
  readonly sessionId: string;
}

/** A session as the ADK has it; a run changes it. */
export interface AdkSession {
  readonly id: string;
  readonly appName: string;
  readonly userId: string;
  state: Record<string, unknown>;
  events: Fields[];
  /** UTC milliseconds. */
  lastUpdateTime: number;
}

/** What `createSession` takes. */
export interface CreateRequest {
  readonly appName: string;
  readonly userId: string;
  readonly state?: Fields;
  readonly sessionId?: string;
}

/** What `getSession` takes. */
export interface GetRequest extends AdkSessionKey {
  readonly config?: { readonly numRecentEvents?: number; readonly afterTimestamp?: number };
}

/** What `listSessions` takes. */
export interface ListRequest {
  readonly appName: string;
  readonly userId?: string;
  readonly limit?: number;
  readonly offset?: number;
  readonly page?: number;
  readonly order?: "asc" | "desc";
}

/** What `listSessions` gives. */
export interface ListResponse {
  readonly sessions: AdkSession[];
  readonly page: number;
  readonly limit: number;
  readonly totalItems: number;
  readonly totalPages: number;
}

/** What `appendEvent` takes. */
export interface AppendRequest {
  readonly session: AdkSession;
  readonly event: Fields;
}

/** The part of the ADK's abstract class that is extended. */
export type AdkBase = new () => { appendEvent(request: AppendRequest): Promise<Fields> };
