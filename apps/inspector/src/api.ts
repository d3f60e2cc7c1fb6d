import type { ProblemJson } from "./json.ts";
import { tokenOf } from "./token.ts";

/** A request that was refused or did not arrive. The message and the remedy are the server's own where it gave any. */
export class ApiError extends Error {
  /** Is 0 when no answer came. */
  readonly status: number;
  readonly code: string;
  readonly remedy: string;

  constructor(status: number, { code = "UNREACHABLE", message, remedy = "" }: ProblemJson) {
    super(message ?? `The server answered with status ${status}.`);
    this.status = status;
    this.code = code;
    this.remedy = remedy;
  }
}

export type Query = Readonly<Record<string, string | number | boolean | readonly string[] | null | undefined>>;

/** Returns the address of a route. Members without a value are left out. */
export function apiPath(path: string, query: Query = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (Array.isArray(value)) for (const each of value) search.append(name, String(each));
    else if (value !== null && value !== undefined && value !== "") search.set(name, String(value));
  const text = search.toString();
  return `/api/v1${path}${text === "" ? "" : `?${text}`}`;
}

/** @throws {ApiError} */
export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  headers.set("authorization", `Bearer ${tokenOf() ?? ""}`);
  const response = await sent(path, { ...init, headers });
  if (response.ok || response.status === 304) return response;
  throw new ApiError(response.status, await problemOf(response));
}

/** @throws {ApiError} */
export async function getJson<Answer>(path: string, query: Query = {}, signal?: AbortSignal): Promise<Answer> {
  const response = await request(apiPath(path, query), signal === undefined ? {} : { signal });
  return (await response.json()) as Answer;
}

export interface Tagged<Answer> {
  readonly answer: Answer;
  readonly tag: string | null;
}

/** Asks for an answer again. Returns null while it is as it was. */
export async function getChanged<Answer>(
  path: string,
  query: Query,
  tag: string | null,
  signal?: AbortSignal,
): Promise<Tagged<Answer> | null> {
  const headers: Record<string, string> = tag === null ? {} : { "if-none-match": tag };
  const response = await request(apiPath(path, query), { headers, ...(signal === undefined ? {} : { signal }) });
  if (response.status === 304) return null;
  return { answer: (await response.json()) as Answer, tag: response.headers.get("etag") };
}

async function sent(path: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(path, init);
  } catch (error) {
    if (init.signal?.aborted === true) throw error;
    throw new ApiError(0, {
      message: "The server does not answer.",
      remedy: "Start it again with `throughline ui` or `throughline serve`, then reload this page.",
    });
  }
}

async function problemOf(response: Response): Promise<ProblemJson> {
  const isJson = (response.headers.get("content-type") ?? "").includes("json");
  try {
    return isJson ? ((await response.json()) as ProblemJson) : {};
  } catch {
    // An answer that breaks off still has its status.
    return {};
  }
}

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}
