import { shellWord } from "@throughline/core/internal";
import { ApiError, apiPath, request } from "../../api.ts";
import type { CallJson, CallRequestJson } from "../../json.ts";
import type { SessionPlace } from "../../router.ts";
import { placeQuery, sessionPath } from "../session-outline.ts";

interface Api {
  readonly base: string;
  readonly path: (model: string) => string;
  /** Names the variable that holds the key. A command that is copied never holds a key itself. */
  readonly key: string;
  readonly headers: (key: string) => readonly string[];
  readonly body: (call: CallJson, request: CallRequestJson) => object;
}

const bearer = (key: string): readonly string[] => [`"authorization: Bearer $${key}"`];
const chatBody: Api["body"] = ({ model }, { messages }) => ({ model, messages });

const apis: Readonly<Record<string, Api & { readonly provider: string }>> = {
  anthropic: {
    provider: "anthropic",
    base: "https://api.anthropic.com",
    path: () => "/v1/messages",
    key: "ANTHROPIC_API_KEY",
    headers: (key) => [`"x-api-key: $${key}"`, "'anthropic-version: 2023-06-01'"],
    body: ({ model }, { messages, maxOutputTokens }) => ({ model, max_tokens: maxOutputTokens ?? 4096, messages }),
  },
  openai: {
    provider: "openai",
    base: "https://api.openai.com",
    path: () => "/v1/chat/completions",
    key: "OPENAI_API_KEY",
    headers: bearer,
    body: chatBody,
  },
  "openai-responses": {
    provider: "openai",
    base: "https://api.openai.com",
    path: () => "/v1/responses",
    key: "OPENAI_API_KEY",
    headers: bearer,
    body: ({ model }, { messages }) => ({ model, input: messages }),
  },
  mistral: {
    provider: "mistral",
    base: "https://api.mistral.ai",
    path: () => "/v1/chat/completions",
    key: "MISTRAL_API_KEY",
    headers: bearer,
    body: chatBody,
  },
  gemini: {
    provider: "gemini",
    base: "https://generativelanguage.googleapis.com",
    path: (model) => `/v1beta/models/${encodeURIComponent(model)}:generateContent`,
    key: "GEMINI_API_KEY",
    headers: (key) => [`"x-goog-api-key: $${key}"`],
    body: (_call, { messages }) => ({ contents: messages }),
  },
  ollama: {
    provider: "ollama",
    base: "http://127.0.0.1:11434",
    path: () => "/api/chat",
    key: "OLLAMA_API_KEY",
    headers: () => [],
    body: ({ model }, { messages }) => ({ model, stream: false, messages }),
  },
};

/**
 * Returns a command that sends what the call sent. The key is the name of a variable, and no header of the call is in
 * it. A provider of another name gets the address in `$BASE_URL` and the key in `$API_KEY`, so that no key goes to a
 * host that it is not for.
 * @throws {ApiError}
 */
export async function curlOf(place: SessionPlace, call: CallJson, rebuilt: CallRequestJson): Promise<string> {
  const api = apis[rebuilt.api];
  if (api === undefined)
    throw new ApiError(0, { message: `No command can send a request in the shapes of ${rebuilt.api}.` });
  const body = (await sentBody(place, call)) ?? JSON.stringify(api.body(call, rebuilt));
  return curlText(api, call, body);
}

/** The body is one line of JSON, so no line of it can end the document that holds it. */
export function curlText(api: (typeof apis)[string], { provider, model }: CallJson, body: string): string {
  const isUsual = provider === api.provider;
  const path = api.path(model);
  const address = isUsual ? shellWord(`${api.base}${path}`) : `"$BASE_URL"${shellWord(path)}`;
  const headers = ["'content-type: application/json'", ...api.headers(isUsual ? api.key : "API_KEY")];
  const lines = [`curl ${address}`, ...headers.map((header) => `  -H ${header}`), "  --data-binary @- <<'END_OF_BODY'"];
  return `${lines.join(" \\\n")}\n${body}\nEND_OF_BODY\n`;
}

/** Reads the exact body of a call through the gateway. Null for other calls, and for a body that is not JSON. */
async function sentBody(place: SessionPlace, { callId }: CallJson): Promise<string | null> {
  const path = sessionPath(place, `/calls/${encodeURIComponent(callId)}/request`);
  try {
    const response = await request(apiPath(path, { ...placeQuery(place), payload: "bytes" }));
    return JSON.stringify(JSON.parse(await response.text()));
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    if (error instanceof ApiError && ["CAPABILITY_UNSUPPORTED", "RECORD_NOT_FOUND"].includes(error.code)) return null;
    throw error;
  }
}
