import { Buffer } from "node:buffer";
import type { IncomingMessage, ServerResponse } from "node:http";
import { describeModels } from "./describe-models.ts";
import { isObject, parseJson, textOf } from "./json-value.ts";
import type { JsonObject } from "./json-value.ts";
import { withJsonParts } from "./json-answer.ts";
import { readBody } from "./read-body.ts";
import type { OpenRequest, RequestLog } from "./request-log.ts";
import { sendAnswer, sendFailure, sendWhole } from "./send-reply.ts";
import type { ScriptedAnswer, SimulatedReply } from "./simulated-reply.ts";
import type { ProviderSimulatorOptions, Refusal } from "./simulator-options.ts";
import type { Violation } from "./violation.ts";
import type { Judgement, SimulatedApi, WireAdapter, WireContext, WireRequest } from "./wire-adapter.ts";

export interface Desk {
  readonly options: ProviderSimulatorOptions;
  readonly context: WireContext;
  readonly adapters: Readonly<Record<SimulatedApi, WireAdapter>>;
  readonly log: RequestLog;
  /** Returns the next scripted reply, or null when the script has no reply left. */
  nextReply(request: OpenRequest): SimulatedReply | null;
}

interface Exchange {
  readonly desk: Desk;
  readonly adapter: WireAdapter;
  readonly open: OpenRequest;
  readonly response: ServerResponse;
  readonly signal: AbortSignal;
}

const routes: Readonly<Record<string, { readonly api: SimulatedApi; readonly countOnly: boolean }>> = {
  "/v1/messages": { api: "anthropic", countOnly: false },
  "/v1/messages/count_tokens": { api: "anthropic", countOnly: true },
  "/v1/chat/completions": { api: "openai-chat", countOnly: false },
  "/v1/responses": { api: "openai-responses", countOnly: false },
  "/v1/responses/input_tokens": { api: "openai-responses", countOnly: true },
  "/api/chat": { api: "ollama", countOnly: false },
};

const defaultMaxBytes = 33_554_432;

function headersOf(request: IncomingMessage): Readonly<Record<string, string>> {
  const entries = Object.entries(request.headers).map(([name, value]) => [name, [value ?? ""].flat().join(", ")]);
  return Object.fromEntries(entries) as Record<string, string>;
}

function refuse({ desk, adapter, open, response }: Exchange, kind: Refusal["kind"], violation: Violation): void {
  desk.log.refuse(open, { kind, status: violation.status, message: violation.message });
  const sent = adapter.failure(violation);
  // Without this header an SDK would retry, and the simulator would reject the second request like the first.
  const last: Readonly<Record<string, string>> = kind === "script" ? { "x-should-retry": "false" } : {};
  sendWhole(response, { ...sent, headers: { ...sent.headers, ...last } });
}

function unknownModel(api: SimulatedApi, name: string): Violation {
  const status = 404;
  if (api === "anthropic") return { status, type: "not_found_error", message: `model: ${name}` };
  if (api === "ollama") return { status, type: "", message: `model '${name}' not found` };
  const message = `The model \`${name}\` does not exist or you do not have access to it.`;
  return { status, type: "invalid_request_error", message, code: "model_not_found" };
}

/** Checks everything that a provider rejects before it reads the messages. */
function checkDoor(exchange: Exchange, isTooLarge: boolean): { kind: Refusal["kind"]; violation: Violation } | null {
  const { desk, adapter, open } = exchange;
  const violation = adapter.authenticate(open.headers, desk.options.apiKey);
  if (violation) return { kind: "credentials", violation };
  if (isTooLarge) return { kind: "bytes", violation: adapter.usualFailure(413) };
  if (!isObject(open.body)) {
    const message = "The request body is not valid JSON: expected an object.";
    return { kind: "invalid", violation: { status: 400, type: "invalid_request_error", message } };
  }
  const name = textOf(open.body["model"]);
  if (!desk.options.onlyListedModels || name === "" || name in (desk.options.models ?? {})) return null;
  return { kind: "model", violation: unknownModel(adapter.api, name) };
}

/** Sends a rejection inside a stream of status 200, if the provider reports it that way. */
function refuseInStream(exchange: Exchange, request: WireRequest, judgement: Judgement): boolean {
  const { desk, adapter, open, response } = exchange;
  const events = adapter.streams(request.body) ? adapter.refusalEvents(request, judgement) : null;
  if (!events || !judgement.violation) return false;
  desk.log.refuse(open, { kind: judgement.kind, status: 200, message: judgement.violation.message });
  response.writeHead(200, { "content-type": adapter.streamType });
  response.end(events.join(""));
  return true;
}

async function reply(exchange: Exchange, request: WireRequest): Promise<void> {
  const { desk, adapter, open, response, signal } = exchange;
  const scripted = desk.nextReply(open);
  if (scripted === null) {
    const violation = { ...adapter.usualFailure(500), message: "The simulator's script has no reply left." };
    return refuse(exchange, "script", violation);
  }
  if (typeof scripted !== "string" && scripted.kind === "error") {
    const outcome = await sendFailure(response, scripted, adapter, signal);
    return desk.log.end(open, outcome, scripted.status);
  }
  const given: ScriptedAnswer = typeof scripted === "string" ? { kind: "answer", content: scripted } : scripted;
  const answer = withJsonParts(given, request.body);
  const wire = adapter.answer(request, answer, open.promptTokens);
  const outcome = await sendAnswer(response, wire, answer, adapter, { streams: adapter.streams(request.body), signal });
  return desk.log.end(open, outcome, 200);
}

async function judgeAndReply(exchange: Exchange, isTooLarge: boolean, countOnly: boolean): Promise<void> {
  const { desk, adapter, open, response } = exchange;
  const door = checkDoor(exchange, isTooLarge);
  if (door) return refuse(exchange, door.kind, door.violation);
  const request: WireRequest = { body: open.body as JsonObject, headers: open.headers, countOnly };
  const judgement = adapter.judge(request);
  open.promptTokens = judgement.promptTokens;
  if (judgement.violation) {
    if (refuseInStream(exchange, request, judgement)) return;
    return refuse(exchange, judgement.kind, judgement.violation);
  }
  if (!countOnly) return reply(exchange, request);
  sendWhole(response, { status: 200, headers: {}, body: JSON.stringify(adapter.count(judgement.promptTokens)) });
  return desk.log.end(open, "answered", 200);
}

/** Answers endpoints outside conversations. The log does not record these requests. */
function answerAside(path: string, bytes: Uint8Array, desk: Desk, response: ServerResponse): void {
  const parsed = parseJson(Buffer.from(bytes).toString() || "{}")?.value;
  const names = Object.keys(desk.options.models ?? {}).filter((name) => name !== "*");
  const contextTokens = desk.options.ollamaContextTokens ?? 4096;
  const described = describeModels(path, isObject(parsed) ? parsed : {}, names, desk.context.model, contextTokens);
  const body = described ?? { error: { type: "not_found_error", message: `Not found: ${path}` } };
  sendWhole(response, { status: described ? 200 : 404, headers: {}, body: JSON.stringify(body) });
}

export async function handleRequest(request: IncomingMessage, response: ServerResponse, desk: Desk): Promise<void> {
  const { bytes, isTooLarge } = await readBody(request, desk.options.maxRequestBytes ?? defaultMaxBytes);
  const path = request.url ?? "/";
  const plainPath = path.split("?", 1).join("");
  const route = routes[plainPath];
  if (!route || request.method !== "POST") return answerAside(plainPath, bytes, desk, response);
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  if (response.destroyed) gone.abort();
  const body = parseJson(Buffer.from(bytes).toString())?.value;
  const open = desk.log.add({ api: route.api, path, headers: headersOf(request), bytes, body });
  desk.options.onRequest?.(open);
  const exchange: Exchange = { desk, adapter: desk.adapters[route.api], open, response, signal: gone.signal };
  return judgeAndReply(exchange, isTooLarge, route.countOnly);
}
