// Every method of every resource of the OpenAI SDK, called directly and through the gateway, against the mock server of the SDK's
// own tests. The document that the mock serves is made of the SDK itself: paths are those that its methods ask for, and answers
// are values of the types that they promise. Copied into a folder that has the packages.
// Usage: node surface.ts FOLDER_OF_THE_CHECKOUT
import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { createServer as createPortServer } from "node:net";
import { join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import type * as Server from "../../../apps/server/src/index.ts";
import type { SessionStore } from "../../../packages/core/src/index.ts";
import { type Signature, type Type, Values } from "./values.ts";

type Fields = Readonly<Record<string, unknown>>;
type Fetch = typeof fetch;
type Client = object;

const [root = ""] = process.argv.slice(2);
const folder = import.meta.dirname;
const ours = async (path: string): Promise<unknown> => import(pathToFileURL(join(root, path, "src/index.ts")).href);
const { createServer } = (await ours("apps/server")) as typeof Server;
const { createMemoryStore } = (await ours("packages/store-memory")) as { createMemoryStore(): SessionStore };
const { OpenAI } = (await import("openai" as string)) as { readonly OpenAI: new (options: object) => Client };

const values = new Values(join(folder, "node_modules/openai/client.d.ts"));
const patienceMs = 4000;

/** One way to call a method. */
interface Call {
  /** As it is written behind the client. */
  readonly name: readonly string[];
  readonly signature: Signature;
  readonly isStream: boolean;
}

/** What a method asked for. */
interface Asked {
  readonly method: string;
  readonly path: string;
  readonly type: string | null;
}

function clientOf(baseURL: string, own: Fetch, defaultHeaders: Fields = {}): Client {
  const keys = { apiKey: "key", adminAPIKey: "admin", webhookSecret: "whsec_c2VjcmV0" };
  return new OpenAI({ baseURL, fetch: own, maxRetries: 0, timeout: patienceMs, defaultHeaders, ...keys });
}

function isResource(value: unknown): value is object {
  return typeof value === "object" && value !== null && "_client" in value;
}

/** All methods of all resources, each with every signature that its declaration has. */
function callsOf(type: Type, value: object, name: readonly string[]): readonly Call[] {
  return values.names(type).flatMap((member) => {
    const inner: unknown = Reflect.get(value, member);
    const innerType = values.member(type, member);
    if (member.startsWith("_") || innerType === null) return [];
    if (isResource(inner)) return callsOf(innerType, inner, [...name, member]);
    if (typeof inner !== "function" || name.length === 0) return [];
    const ways = innerType
      .getCallSignatures()
      .map((signature) => ({ name: [...name, member], signature, isStream: values.isStream(signature) }));
    return [ways.find(({ isStream }) => !isStream), ways.find(({ isStream }) => isStream)].flatMap((way) => way ?? []);
  });
}

async function made(client: Client, { name, signature, isStream }: Call): Promise<unknown> {
  const given = values.argumentsOf(signature).map((one) => {
    const isParams = typeof one === "object" && one !== null && !Array.isArray(one) && "stream" in one;
    return isStream && isParams ? { ...one, stream: true } : one;
  });
  const place = name.slice(0, -1).reduce<object>((at, member) => Reflect.get(at, member) as object, client);
  const method = Reflect.get(place, name.at(-1) ?? "") as (...given: unknown[]) => unknown;
  return Reflect.apply(method, place, given) as unknown;
}

/** What comes of a call, as text: its value, its events, its items, its bytes, or its error. */
async function resultOf(client: Client, call: Call): Promise<string> {
  let late: NodeJS.Timeout | undefined;
  const patience = new Promise<string>((resolve) => {
    late = setTimeout(() => resolve("no end within the time"), patienceMs);
  });
  try {
    return await Promise.race([described(await Promise.race([made(client, call), patience])), patience]);
  } catch (error) {
    const { name, status, code, message } = error as Error & { status?: unknown; code?: unknown };
    return JSON.stringify({ name, status, code, message: message.replaceAll(/127\.0\.0\.1:\d+/g, "HOST") });
  } finally {
    clearTimeout(late);
  }
}

async function described(value: unknown): Promise<string> {
  if (value instanceof Response) return `${value.status} ${hashOf(Buffer.from(await value.arrayBuffer()))}`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? String(value);
  // A helper that makes several requests, and says when it is done.
  if ("done" in value && typeof value.done === "function") {
    await (value.done as () => Promise<void>)();
    const messages = "messages" in value ? value.messages : null;
    return JSON.stringify(messages) ?? "done";
  }
  if (Symbol.asyncIterator in value) {
    const items: unknown[] = [];
    // Some lists of the mock have no end.
    const most = "getPaginatedItems" in value ? 20 : 500;
    for await (const item of value as AsyncIterable<unknown>) if (items.push(item) >= most) break;
    return JSON.stringify(items);
  }
  const fields = Object.entries(value).filter(([, member]) => typeof member !== "function" && !isClient(member));
  return JSON.stringify(Object.fromEntries(fields));
}

function isClient(value: unknown): boolean {
  return value instanceof OpenAI || isResource(value);
}

function hashOf(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** Asks nobody: notes what each method would ask for. */
async function askedBy(call: Call): Promise<readonly Asked[]> {
  const asked: Asked[] = [];
  const noting: Fetch = async (input, init) => {
    const request = new Request(input, init);
    const { pathname } = new URL(request.url);
    asked.push({ method: request.method.toLowerCase(), path: pathname, type: request.headers.get("content-type") });
    return new Response("{}", {
      status: asked.length > 3 ? 400 : 200,
      headers: { "content-type": "application/json" },
    });
  };
  await resultOf(clientOf("http://mock.invalid/v1", noting), call);
  return asked;
}

/** A path whose segments that a value of ours stands for are parameters. */
function templateOf(path: string): string {
  let count = 0;
  return path.replaceAll(/val_[A-Za-z0-9_]+|(?<=\/)1(?=\/|$)/g, () => `{p${++count}}`);
}

interface Operation {
  readonly template: string;
  readonly method: string;
  readonly content: Fields;
  readonly type: string | null;
}

function operationOf(call: Call, { method, path, type }: Asked): Operation {
  const answer = values.answerOf(call.signature);
  const done = { event: null, id: null, data: "[DONE]" };
  const events = Array.isArray(answer) ? answer.map((data: unknown) => ({ event: null, id: null, data })) : [];
  const content =
    answer === null
      ? { "application/octet-stream": { schema: { type: "string", format: "binary" }, example: "bytes of a file" } }
      : call.isStream
        ? { "text/event-stream": { example: [...events, done] } }
        : { "application/json": { example: answer } };
  return { template: templateOf(path), method, content, type: type?.split(";")[0] ?? null };
}

function documentOf(operations: readonly Operation[]): Fields {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const { template, method, content, type } of operations) {
    const own = (paths[template] ??= {});
    const names = [...template.matchAll(/\{(p\d+)\}/g)].map(([, name]) => name);
    const parameters = names.map((name) => ({ name, in: "path", required: true, schema: { type: "string" } }));
    const requestBody = type === null ? {} : { requestBody: { content: { [type]: { schema: {} } } } };
    own[method] ??= { parameters, ...requestBody, responses: { 200: { description: "As promised.", content } } };
  }
  return { openapi: "3.1.0", info: { title: "What the SDK asks for", version: "1" }, paths };
}

async function freePort(): Promise<number> {
  const server = createPortServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}

async function startMock(
  name: string,
  document: Fields,
): Promise<{ readonly url: string; readonly child: ChildProcess }> {
  const file = join(folder, `${name}.json`);
  writeFileSync(file, JSON.stringify(document));
  const port = await freePort();
  const options = [file, "--port", String(port), "--log=false", "--no-color"];
  const child = spawn(join(folder, "node_modules/.bin/steady"), options, { stdio: ["ignore", "ignore", "inherit"] });
  const url = `http://127.0.0.1:${port}`;
  for (let waitedMs = 0; waitedMs < 20_000; waitedMs += 100) {
    const isUp = await fetch(`${url}/_x-steady/health`).then(
      ({ ok }) => ok,
      () => false,
    );
    if (isUp) return { url, child };
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`The mock server did not start with ${file}.`);
}

/** What of an answer is compared: all but what belongs to a connection, to a moment, or to us. */
const ofTheWay = /^(?:connection|keep-alive|transfer-encoding|date|server-timing|throughline-.*|x-steady-.*time.*)$/;

function noting(notes: string[]): Fetch {
  return async (input, init) => {
    const headers = new Headers(init?.headers);
    // The SDK asks its runtime whether it can send forms.
    if (String(input).startsWith("data:")) return fetch(input, init);
    headers.set("x-steady-stream-interval-ms", "1");
    // The gateway asks for bodies that are not packed.
    headers.set("accept-encoding", "identity");
    const answer = await fetch(input, { ...init, headers });
    const kept = [...answer.headers].filter(([name]) => !ofTheWay.test(name));
    notes.push(JSON.stringify([init?.method, answer.status, kept]));
    return answer;
  };
}

const everyCall = callsOf(values.classType("OpenAI"), clientOf("http://mock.invalid/v1", fetch), []);
const operations = { plain: [] as Operation[], stream: [] as Operation[] };
const asking: Call[] = [];
const silent: string[] = [];
for (const call of everyCall) {
  const asked = await askedBy(call);
  if (asked.length === 0) silent.push(call.name.join("."));
  else asking.push(call);
  for (const one of asked) operations[call.isStream ? "stream" : "plain"].push(operationOf(call, one));
}

const mocks = {
  plain: await startMock("plain", documentOf(operations.plain)),
  stream: await startMock("stream", documentOf(operations.stream)),
};
const store = createMemoryStore();
/** It is read once the server has closed it. */
const open = new Proxy(store, {
  get: (target, name): unknown => {
    const member: unknown = name === "close" ? async () => {} : Reflect.get(target, name);
    return typeof member === "function" ? (member.bind(target) as unknown) : member;
  },
});
const upstreams = Object.fromEntries(
  Object.entries(mocks).map(([name, { url }]) => [name, { api: "openai", baseUrl: url, credentials: "caller" }]),
) as NonNullable<Server.ServerOptions["gateway"]>["upstreams"];
const server = await createServer({ port: 0, openStore: () => open, gateway: { upstreams } });
const scopes = ["read", "gateway:plain", "gateway:stream"] as const;
const { text: token } = await server.tokens.create({ namespace: "", agents: "*", scopes, expiresAtMs: null }, null);

const counts = { same: 0, answered: 0, refusedByMock: 0, errors: 0, late: 0 };
const differing: string[] = [];
for (const call of asking) {
  const which = call.isStream ? "stream" : "plain";
  const sides = [`${mocks[which].url}/v1`, `${server.url}/${which}/v1`];
  const seen: { result: string; notes: readonly string[] }[] = [];
  for (const url of sides) {
    const notes: string[] = [];
    const result = await resultOf(clientOf(url, noting(notes), { "throughline-token": token }), call);
    seen.push({ result, notes });
  }
  const [direct, through] = seen;
  if (direct === undefined || through === undefined) continue;
  if (direct.result === through.result && JSON.stringify(direct.notes) === JSON.stringify(through.notes))
    counts.same += 1;
  else
    differing.push(
      `${call.name.join(".")}${call.isStream ? " (stream)" : ""}\n  ${JSON.stringify(seen)}`.slice(0, 2000),
    );
  if (direct.notes.some((note) => /^\["[A-Z]+",2\d\d/.test(note))) counts.answered += 1;
  if (direct.notes.some((note) => /^\["[A-Z]+",[45]\d\d/.test(note))) counts.refusedByMock += 1;
  if (/^\{"name":"[A-Za-z]*Error/.test(direct.result)) counts.errors += 1;
  if (direct.result === "no end within the time") counts.late += 1;
}
await server.close();
let stored = 0;
const { sessions } = await store.list({ namespace: "", limit: 1000 });
for (const { ref } of sessions)
  for await (const { records } of store.read(ref))
    stored += records.filter(({ id }) => id.startsWith("x-call-")).length;
for (const { child } of Object.values(mocks)) child.kill();
for (const line of differing) process.stdout.write(`differs: ${line}\n`);
process.stdout.write(
  `${new Set(everyCall.map(({ name }) => name.join("."))).size} methods, ${everyCall.length} ways to call them, ` +
    `${asking.length} with requests (without: ${silent.join(", ")})\n` +
    `${Object.values(operations).flat().length} requests noted, ${counts.answered} calls answered with 2xx, ` +
    `${counts.refusedByMock} with 4xx or 5xx, ${counts.errors} ended in an error of the SDK, ${counts.late} had no end in ${patienceMs} ms\n` +
    `${counts.same} of ${asking.length} the same through the gateway, ${stored} calls in ${sessions.length} sessions\n`,
);
process.exitCode = counts.same === asking.length && counts.answered > 0 && stored > 0 ? 0 : 1;
setTimeout(() => process.exit(), 1000).unref();
