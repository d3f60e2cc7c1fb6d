import { createServer, type Server } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { answerOf, headOf, sendRaw } from "./raw-socket.ts";
import { serve, type Serving } from "./serving.ts";

/** What the upstream heard, as method and path. */
const heard: string[] = [];
let upstream: Server;
let serving: Serving;
let token = "";
let other = "";
beforeAll(async () => {
  upstream = createServer((request, response) => {
    heard.push(
      `${request.method} ${request.url} ${request.headers.host} ${request.headers["x-forwarded-host"] ?? "-"}`,
    );
    request.resume();
    if (request.headers["x-test"] === "redirect")
      return void response.writeHead(302, { location: "http://169.254.169.254/latest/meta-data/" }).end("moved");
    const output = [{ type: "message", role: "assistant", content: [{ type: "output_text", text: "Hi" }] }];
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ id: "resp_1", object: "response", model: "m", status: "completed", output }));
  });
  await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
  const address = upstream.address();
  const baseUrl = `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
  const apis = ["anthropic", "openai", "ollama"] as const;
  const server = { credentials: "server", apiKey: "k" } as const;
  const own = apis.map((api) => [api, { baseUrl, api, ...server }] as const);
  serving = await serve({ gateway: { upstreams: Object.fromEntries(own) } });
  const scopes = apis.map((api) => `gateway:${api}` as const);
  token = await serving.tokenOf({ namespace: "", scopes });
  other = await serving.tokenOf({ namespace: "", scopes });
});
afterAll(async () => {
  await serving.close();
  await new Promise((resolve) => upstream.close(resolve));
});

interface Refusal {
  readonly status: number;
  readonly type: unknown;
  readonly heard: readonly string[];
}

async function ask(
  method: string,
  path: string,
  more: { headers?: Record<string, string>; body?: object; token?: string } = {},
): Promise<Refusal> {
  heard.length = 0;
  const answer = await fetch(`${serving.url}${path}`, {
    method,
    redirect: "manual",
    headers: { authorization: `Bearer ${more.token ?? token}`, "content-type": "application/json", ...more.headers },
    ...(more.body === undefined ? {} : { body: JSON.stringify(more.body) }),
  });
  const text = await answer.text();
  const body = (text.startsWith("{") ? JSON.parse(text) : {}) as { readonly error?: { readonly type?: unknown } };
  return { status: answer.status, type: body.error?.type ?? body.error, heard: [...heard] };
}

async function raw(target: string, host = "localhost"): Promise<readonly [number, string]> {
  heard.length = 0;
  const answer = await sendRaw(
    serving.url,
    headOf("GET", target, [`authorization: Bearer ${token}`, "connection: close"], host),
  );
  return [answerOf(answer)[0], answer.text];
}

const nothing: readonly string[] = [];
const messages = [{ role: "user", content: "Hi" }];

describe("addresses", () => {
  it.each([
    "/anthropic//169.254.169.254/",
    "/anthropic/../api/v1/store",
    "/anthropic/v1/%2e%2e/%2e%2e/admin",
    "/anthropic/v1/models/..;/files",
    "/anthropic/v1/models/%2e.%3Bx/files",
    "/anthropic/v1/.%2E/x",
    "/anthropic/v1/./messages",
    "/anthropic/v1/messages%2f..%2fx",
    "/anthropic/v1/%5c..%5cx",
    "/anthropic/v1\\..\\x",
    "/anthropic/v1//messages",
  ])("row 29: refuses %s before the upstream hears of it", async (target) => {
    const [status, text] = await raw(target);
    expect([status, heard]).toEqual([400, nothing]);
    expect(text).toContain('{"type":"error","error":{"type":"invalid_request_error"');
  });

  it("row 29: answers what names no upstream as a path of its own", async () => {
    for (const target of ["//169.254.169.254/", "/../anthropic/v1/models", "/%61nthropic/v1/models"])
      expect([target, (await raw(target))[0], heard]).toEqual([target, expect.toBeOneOf([400, 401, 404]), nothing]);
  });

  it("row 30: asks the configured upstream, whatever headers name another", async () => {
    const headers = {
      "x-forwarded-host": "evil.example",
      forwarded: "host=evil.example",
      "x-forwarded-proto": "gopher",
    };
    const { status, heard: asked } = await ask("GET", "/openai/v1/models", { headers });
    expect([status, asked[0]?.startsWith("GET /v1/models 127.0.0.1:"), asked[0]?.endsWith(" -")]).toEqual([
      200,
      true,
      true,
    ]);
    expect([(await raw("/openai/v1/models", "evil.example"))[0], heard]).toEqual([421, nothing]);
    expect([(await raw("http://evil.example/openai/v1/models"))[0], heard]).toEqual([421, nothing]);
  });

  it("row 31: passes a redirect on, and does not follow it", async () => {
    const answer = await ask("POST", "/openai/v1/chat/completions", {
      headers: { "x-test": "redirect" },
      body: { model: "m", messages },
    });
    expect([answer.status, answer.heard.length]).toEqual([302, 1]);
  });
});

describe("what belongs to others", () => {
  it.each(["agent:other:gateway:direct:x", "agent:main:cli:direct:private", "agent:main", "agent:../x"])(
    "row 32: refuses the session %s",
    async (session) => {
      const headers = { "throughline-session": session };
      const body = { model: "m", max_tokens: 1, messages };
      const answer = await ask("POST", "/anthropic/v1/messages", { headers, body });
      expect(answer).toEqual({ status: 403, type: "permission_error", heard: nothing });
    },
  );

  it.each([
    ["openai", "responses", { input: "Hi", previous_response_id: "resp_1" }],
    ["openai", "responses", { input: "Hi", conversation: "conv_1" }],
    ["openai", "responses", { input: "Hi", conversation: { id: "conv_1" } }],
    ["openai", "responses", { input: "Hi", "previous_response\\u005fid": "resp_1" }],
    ["openai", "responses", { input: "Hi", Previous_Response_Id: "resp_1" }],
    ["openai", "responses", { input: "Hi", previous_response_id: ["resp_1"] }],
    ["anthropic", "messages", { max_tokens: 1, messages, thread: { previous_message_id: "resp_1" } }],
    ["anthropic", "messages", { max_tokens: 1, messages, thread: { PREVIOUS_MESSAGE_ID: "resp_1" } }],
  ])("row 33: does not continue at %s/v1/%s what another token was given: %j", async (name, path, body) => {
    // The id is one that this provider gave to the first token.
    await ask("POST", "/openai/v1/responses", { body: { model: "m", input: "Hi" } });
    const text = JSON.stringify({ model: "m", ...body }).replaceAll("\\\\u", "\\u");
    heard.length = 0;
    const answer = await fetch(`${serving.url}/${name}/v1/${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${other}`, "content-type": "application/json" },
      body: text,
    });
    expect([answer.status, heard]).toEqual([404, nothing]);
    await answer.text();
  });

  it("row 33: takes the same member twice for more than one answer", async () => {
    const text = '{"model":"m","input":"Hi","previous_response_id":null,"previous_response_id":"resp_1"}';
    heard.length = 0;
    const headers = { authorization: `Bearer ${other}` };
    const answer = await fetch(`${serving.url}/openai/v1/responses`, { method: "POST", headers, body: text });
    expect([answer.status, heard]).toEqual([400, nothing]);
    await answer.text();
  });

  it("row 33: continues what the token itself was given", async () => {
    await ask("POST", "/openai/v1/responses", { body: { model: "m", input: "Hi" } });
    const body = { model: "m", input: "More", previous_response_id: "resp_1" };
    await expect.poll(async () => (await ask("POST", "/openai/v1/responses", { body })).status).toBe(200);
  });

  it.each([
    "/openai/v1/files",
    "/openai/v1/organization/users",
    "/openai/v1/admin/keys",
    "/openai/v1/batches/b_1",
    "/openai/v1/responses/resp_1",
    "/openai/v1/conversations/c_1",
    "/openai/v1/vector_stores",
    "/openai/v1/unheard-of",
    "/anthropic/v1/files/f_1/content",
    "/anthropic/v1/organizations/me",
    "/anthropic/v1/messages/batches",
    "/anthropic/v1/skills",
  ])("row 34: refuses %s with a key of ours", async (path) => {
    expect(await ask("GET", path)).toEqual({ status: 404, type: expect.anything(), heard: nothing });
  });

  it("row 35: refuses what changes the models of an Ollama", async () => {
    for (const [method, action] of [
      ["DELETE", "delete"],
      ["POST", "pull"],
      ["POST", "create"],
      ["POST", "copy"],
      ["POST", "push"],
      ["POST", "blobs/sha256:0"],
    ] as const)
      expect(await ask(method, `/ollama/api/${action}`, { body: {} })).toEqual({
        status: 403,
        type: expect.any(String),
        heard: nothing,
      });
    const manager = await serving.tokenOf({ namespace: "", scopes: ["gateway:ollama", "gateway:manage"] });
    expect((await ask("DELETE", "/ollama/api/delete", { token: manager, body: {} })).status).toBe(200);
  });

  it("row 36: answers a WebSocket 426 at once", async () => {
    const lines = [
      `authorization: Bearer ${token}`,
      "connection: Upgrade",
      "upgrade: websocket",
      "sec-websocket-version: 13",
    ];
    heard.length = 0;
    await sendRaw(serving.url, headOf("GET", "/openai/v1/responses", lines));
    const answer = await sendRaw(serving.url, headOf("GET", "/openai/v1/responses", lines));
    expect([answerOf(answer)[0], answer.isClosed, answer.ms < 50, heard]).toEqual([426, true, true, nothing]);
  });
});
