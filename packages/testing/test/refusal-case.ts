import type { SimulatedApi } from "../src/wire-adapter.ts";

/** A JSON object as a test writes it. */
export type Body = Readonly<Record<string, unknown>>;

/** An invalid request, what the provider says, and the smallest change that makes it valid. */
export interface RefusalCase {
  readonly title: string;
  readonly bad: Body;
  /** The provider's text, whole. */
  readonly says: string;
  /** @default 400 */
  readonly status?: number;
  readonly good: Body;
  /** Sent with both. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent with the corrected request only. */
  readonly goodHeaders?: Readonly<Record<string, string>>;
}

const paths: Readonly<Record<SimulatedApi, string>> = {
  anthropic: "/v1/messages",
  "openai-chat": "/v1/chat/completions",
  "openai-responses": "/v1/responses",
  ollama: "/api/chat",
};

const credentials: Readonly<Record<SimulatedApi, Readonly<Record<string, string>>>> = {
  anthropic: { "x-api-key": "test", "anthropic-version": "2023-06-01" },
  "openai-chat": { authorization: "Bearer test" },
  "openai-responses": { authorization: "Bearer test" },
  ollama: {},
};

/** Posts a body as it is. */
export function post(
  url: string,
  api: SimulatedApi,
  body: Body | string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  return fetch(`${url}${paths[api]}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...credentials[api], ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}

/** The text of a provider's error body. */
export async function errorText(response: Response): Promise<string> {
  const body = (await response.json()) as { readonly error: string | { readonly message: string } };
  return typeof body.error === "string" ? body.error : body.error.message;
}
