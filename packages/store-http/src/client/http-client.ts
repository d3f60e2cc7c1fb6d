import { problemOf } from "./http-problem.ts";
import { readEvents, type ServerEvent } from "./read-events.ts";

/** Configures `createHttpClient`. */
export interface HttpClientOptions {
  /** States the server's address with any path before `/api/v1`: `https://sessions.example/throughline`. */
  readonly url: string;
  /** Authenticates the client; sent as `authorization: Bearer`. @default none */
  readonly token?: string | undefined;
  /** Names the tenant, for a token that allows several. @default the token's own */
  readonly namespace?: string | undefined;
  /** Sends the requests. @default the runtime's own */
  readonly fetch?: typeof globalThis.fetch | undefined;
}

/** Describes one request: method, query, body and headers. */
export interface HttpRequest {
  /** Sets the HTTP method. @default "GET" */
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** States the path below `/api/v1`, with percent-encoding where needed: `/store`. */
  readonly path: string;
  /** Holds the query parameters. Undefined members are left out. */
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  /** Adds headers to those of the client and overrides headers of the same name. @default none */
  readonly headers?: Readonly<Record<string, string>>;
  /** Holds the body, which is sent as JSON. */
  readonly body?: unknown;
  /** Holds a body that is JSON text already. It takes precedence over `body`. */
  readonly text?: string;
  /** Holds a body of bytes, which is sent as it arrives. It takes precedence over `text` and `body`. */
  readonly stream?: ReadableStream<Uint8Array>;
  /** Overrides the client's namespace. */
  readonly namespace?: string;
  /** Aborts the request; the call rejects with the reason of the signal. */
  readonly signal?: AbortSignal | undefined;
}

/** Sends requests to one server, with its credentials. */
export interface HttpClient {
  /** States the server's address, without credentials. */
  readonly url: string;
  /**
   * Sends a request and returns the response, whose body is not yet read.
   * @throws {HttpProblem} when the server refuses; what `fetch` throws when it cannot be reached
   */
  send(request: HttpRequest): Promise<Response>;
  /**
   * Sends a request and parses the body as JSON; the caller states its type.
   * @throws as `send`, and SyntaxError when the body is no JSON
   */
  json<Answer>(request: HttpRequest): Promise<Answer>;
  /** Yields the events of a stream after `lastEventId`, until the server ends the stream. @throws as `send` */
  events(request: HttpRequest & { readonly lastEventId?: string }): AsyncGenerator<ServerEvent, void, void>;
}

/**
 * Creates a client of one Throughline server. It repeats no request, and follows no redirect, so that a token never
 * reaches another host.
 *
 * @throws {TypeError} when `url` is not an http or https address, or holds credentials; when no header takes the token
 * @example
 * const client = createHttpClient({ url: "http://127.0.0.1:4788", token });
 * const { items } = await client.json<{ items: unknown[] }>({ path: "/sessions", query: { limit: 10 } });
 */
export function createHttpClient(options: HttpClientOptions): HttpClient {
  const base = baseOf(options.url);
  // Fetch would reject such a token with an error that quotes it.
  if (/[^\x21-\x7e]/.test(options.token ?? "")) throw new TypeError("The token has a character that no header takes.");
  const ask = options.fetch ?? globalThis.fetch;
  const send = async (request: HttpRequest): Promise<Response> => {
    const { method = "GET", signal, body, stream } = request;
    const { text = body === undefined ? undefined : JSON.stringify(body) } = request;
    const response = await ask(`${base}/api/v1${request.path}${queryOf(request.query)}`, {
      method,
      headers: headersOf(options, request, text !== undefined),
      // A Worker knows no redirect mode "error". A redirect that is not followed is a response that is not ok.
      redirect: "manual",
      ...bodyOf(text, stream),
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

function bodyOf(text: string | undefined, stream: HttpRequest["stream"]): RequestInit {
  // Fetch sends a stream only when it is told that the answer may wait for its end.
  if (stream !== undefined) return { body: stream, duplex: "half" } as RequestInit;
  return text === undefined ? {} : { body: text };
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
