import type { Fields } from "@throughline/core/internal";

/** Identifies an ADK session. */
export interface AdkSessionKey {
  /** Names the app that the ADK's `Runner` was created for. */
  readonly appName: string;
  /** Names the user in the program's terms. */
  readonly userId: string;
  /** Holds the ADK's id of the session, unique within its app and user. */
  readonly sessionId: string;
}

/** The ADK changes this object during a run, so it is mutable. */
export interface AdkSession {
  readonly id: string;
  readonly appName: string;
  readonly userId: string;
  state: Record<string, unknown>;
  events: Fields[];
  /** Holds the time in UTC milliseconds. */
  lastUpdateTime: number;
}

export interface CreateRequest {
  readonly appName: string;
  readonly userId: string;
  readonly state?: Fields;
  readonly sessionId?: string;
}

export interface GetRequest extends AdkSessionKey {
  readonly config?: { readonly numRecentEvents?: number; readonly afterTimestamp?: number };
}

export interface ListRequest {
  readonly appName: string;
  readonly userId?: string;
  readonly limit?: number;
  readonly offset?: number;
  readonly page?: number;
  readonly order?: "asc" | "desc";
}

export interface ListResponse {
  readonly sessions: AdkSession[];
  readonly page: number;
  readonly limit: number;
  readonly totalItems: number;
  readonly totalPages: number;
}

export interface AppendRequest {
  readonly session: AdkSession;
  readonly event: Fields;
}

/**
 * Declares the part of the ADK's abstract class that the service extends, because this package does not depend on the
 * ADK.
 */
export type AdkBase = new () => { appendEvent(request: AppendRequest): Promise<Fields> };
