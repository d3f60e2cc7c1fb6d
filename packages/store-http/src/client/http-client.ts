import { problemOf } from "./http-problem.ts";
import { readEvents, type ServerEvent } from "./read-events.ts";

/** Options of `createHttpClient`. */
export interface HttpClientOptions {
  /** The server's address with any path before `/api/v1`: `https://sessions.example/throughline`. */
  readonly url: string;
  /** Sent as `authorization: Bearer`. @default none */
  readonly token?: string;
  /** The tenant, for a token that may name one. @default the token's own */
  readonly namespace?: string;
  /** Sends the requests. @default the runtime's own */
  readonly fetch?: typeof globalThis.fetch;
}

/** One request: method, query, body and headers. */
export interface HttpRequest {
  /** The HTTP method. @default "GET" */
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Below `/api/v1`, percent-encoded where it must be: `/store`. */
  readonly path: string;
  /** Members that are undefined are left out. */
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  /** Headers beside those of the client; where both name one, this one is sent. @default none */
  readonly headers?: Readonly<Record<string, string>>;
  /** Goes as JSON. */
  readonly body?: unknown;
  /** JSON that is text already; comes before `body`. */
  readonly text?: string;
  /** Overrides the client's. */
  readonly namespace?: string;
  /** Ends the request; the call rejects with the reason of the signal. */
  readonly signal?: AbortSignal;
}

/** Sends requests to one server, with its credentials. */
export interface HttpClient {
  /** The address, without credentials. */
  readonly url: string;
  /**
   * The response, its body not yet read.
   * @throws {HttpProblem} when the server refuses; what `fetch` throws when it cannot be reached
   */
  send(request: HttpRequest): Promise<Response>;
  /** The body as JSON; the caller states its type. @throws as `send`, and SyntaxError when the body is no JSON */
  json<Answer>(request: HttpRequest): Promise<Answer>;
  /** The events of a stream, from after `lastEventId` on. Ends when the server ends it. @throws as `send` */
  events(request: HttpRequest & { readonly lastEventId?: string }): AsyncGenerator<ServerEvent, void, void>;
}

/**
 * A client of one Throughline server. It repeats nothing and follows no redirect, so that a token never reaches another
 * host.
 *
 * @throws {TypeError} when `url` is not an http or https address, or holds credentials; when no header takes the token
 * @example
 * const client = createHttpClient({ url: "http://127.0.0.1:4788", token });
 * const { items } = await client.json<{ items: unknown[] }>({ path: "/sessions", query: { limit: 10 } });
 */
export function createHttpClient(options: HttpClientOptions): HttpClient {
  const base = baseOf(options.url);
  // Fetch would quote it in its own error.
  if (/[^\x21-\x7e]/.test(options.token ?? "")) throw new TypeError("The token has a character that no header takes.");
  const ask = options.fetch ?? globalThis.fetch;
  const send = async (request: HttpRequest): Promise<Response> => {
    const { method = "GET", signal, body, text = body === undefined ? undefined : JSON.stringify(body) } = request;
    const response = await ask(`${base}/api/v1${request.path}${queryOf(request.query)}`, {
      method,
      headers: headersOf(options, request, text !== undefined),
      redirect: "error",
      ...(text === undefined ? {} : { body: text }),
      ...(signal === undefined ? {} : { signal }),
    });
    if (!response.ok) throw await problemOf(response);
    return response;
  };
  return {
    url: base,
    send,
    json: async <Answer>(request: HttpRequest) => (await (await send(request)).json()) as Answer,
    events: async function* ({ lastEventId, ...request }) {
      const headers = {
        accept: "text/event-stream",
        ...request.headers,
        ...(lastEventId === undefined ? {} : { "last-event-id": lastEventId }),
      };
      const { body } = await send({ ...request, headers });
      if (body !== null) yield* readEvents(body);
    },
  };
}

function baseOf(text: string): string {
  const url = new URL(text);
  if (url.protocol !== "http:" && url.protocol !== "https:") throw new TypeError("The address is not http or https.");
  if (url.username !== "" || url.password !== "") throw new TypeError("The address must not hold credentials.");
  return `${url.origin}${url.pathname.replace(/\/$/, "")}`;
}

function queryOf(query: HttpRequest["query"] = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  const parts = given.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(String(value))}`);
  return parts.length === 0 ? "" : `?${parts.join("&")}`;
}

function headersOf(
  { token, namespace: own }: HttpClientOptions,
  { headers, namespace = own }: HttpRequest,
  hasBody: boolean,
): Record<string, string> {
  return {
    ...(hasBody ? { "content-type": "application/json" } : {}),
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    ...(namespace === undefined ? {} : { "throughline-namespace": encodeURIComponent(namespace) }),
    ...headers,
  };
}
