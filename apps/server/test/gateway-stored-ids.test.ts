import { createServer, type Server } from "node:http";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { block, claude, item, naming, plain, said } from "./naming-bodies.ts";
import { serve, type Serving } from "./serving.ts";

/** Bodies that an upstream was sent. */
const heard: string[] = [];
/** The names of the headers of the newest. */
let heardNames: readonly string[] = [];
/** What it answers. */
let reply: object = {};
let isStream = false;
let upstream: Server;
let serving: Serving;
let token = "";
let other = "";
const none = { id: "resp_0", object: "response", model: "m", status: "completed", output: [] };

beforeAll(async () => {
  upstream = createServer((request, response) => {
    const chunks: Buffer[] = [];
    heardNames = Object.keys(request.headers);
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      heard.push(Buffer.concat(chunks).toString());
      response.setHeader("content-type", isStream ? "text/event-stream" : "application/json");
      const events = isStream ? (reply as readonly object[]) : [];
      if (isStream) for (const event of events) response.write(`data: ${JSON.stringify(event)}\n\n`);
      response.end(isStream ? "" : JSON.stringify(reply));
    });
  });
  await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
  const address = upstream.address();
  const baseUrl = `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
  const server = { baseUrl, credentials: "server", apiKey: "k" } as const;
  serving = await serve({
    gateway: {
      upstreams: {
        anthropic: { api: "anthropic", ...server },
        openai: { api: "openai", ...server },
        shared: { api: "openai", ...server, sharedResources: true },
      },
    },
  });
  const scopes = ["read", "write", "gateway:anthropic", "gateway:openai", "gateway:shared"] as const;
  token = await serving.tokenOf({ namespace: "", scopes });
  other = await serving.tokenOf({ namespace: "", scopes });
});
afterAll(async () => {
  await serving.close();
  await new Promise((resolve) => upstream.close(resolve));
});
beforeEach(() => {
  heard.length = 0;
  reply = none;
  isStream = false;
});

const post = async (
  path: string,
  body: object | string,
  shown = other,
  mode = "record",
  more: Readonly<Record<string, string>> = {},
): Promise<number> => {
  const own = { authorization: `Bearer ${shown}`, "content-type": "application/json", "throughline-mode": mode };
  const answer = await fetch(`${serving.url}/${path}`, {
    method: "POST",
    headers: { ...more, ...own },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  await answer.text();
  return answer.status;
};

describe("with a key of the server's, a request that names what the account has stored", () => {
  it.each(naming)("does not reach the provider: %s %j", async (path, body) => {
    for (const mode of ["record", "guard", "stateful"]) {
      const status = await post(path, body, other, mode);
      // In stateful mode what a request continues is resolved here.
      if (mode === "stateful" && heard.length > 0) {
        expect(heard.join()).not.toMatch(/"(?:msg|file|cntr|conv|container|resp|rs)_1"/);
        heard.length = 0;
      } else
        expect([mode, status, heard]).toEqual([
          mode,
          expect.toSatisfy((code) => code === 404 || code === 400 || code === 403),
          [],
        ]);
    }
  });

  it("passes where the configuration shares resources, but for what an earlier answer is", async () => {
    for (const [path, body] of naming.filter(([where]) => where === "openai/v1/responses")) {
      const text = typeof body === "string" ? body : JSON.stringify(body);
      const isRefused = /comparison_response_id|"conversation"|"type":"message","type"|"input":\[\],"input"/.test(text);
      expect([text, await post(path.replace("openai", "shared"), body)]).toEqual([
        text,
        isRefused ? expect.any(Number) : 200,
      ]);
      expect(heard.length).toBe(isRefused ? 0 : 1);
      heard.length = 0;
    }
  });
});

describe("with a key of the server's, a request whose ids are its own", () => {
  it.each(plain)("passes: %s %j", async (path, body) => {
    expect([await post(path, body), heard.length]).toEqual([200, 1]);
  });
});

describe("with a key of the server's, a header of a provider", () => {
  const known = ["anthropic-version", "anthropic-beta", "anthropic-dangerous-direct-browser-access", "openai-beta"];
  const choosing = [
    "anthropic-workspace-id",
    "anthropic-user-profile-id",
    "anthropic-organization-id",
    "anthropic-worker-id",
    "anthropic-of-next-year",
    "openai-organization",
    "openai-project",
    "x-goog-user-project",
    "x-amz-security-token",
  ];

  it("passes where it chooses no part of the account", async () => {
    const headers = Object.fromEntries([...known, ...choosing].map((name) => [name, "x"]));
    for (const [path, body] of [
      ["anthropic/v1/messages", claude],
      ["openai/v1/responses", item()],
      ["shared/v1/responses", item()],
    ] as const) {
      expect(await post(path, body, other, "record", headers)).toBe(200);
      expect(heardNames).toEqual(expect.arrayContaining(known));
      expect(heardNames.filter((name) => choosing.includes(name))).toEqual([]);
    }
  });
});

describe("what an answer gave to a token", () => {
  const message = { type: "message", role: "assistant", model: "m", stop_reason: "end_turn", usage: {} };
  const executed = {
    type: "code_execution_tool_result",
    tool_use_id: "t",
    content: { type: "code_execution_result", content: [{ type: "code_execution_output", file_id: "file_9" }] },
  };
  const answers: readonly (readonly [what: string, path: string, answer: object, stream: boolean, next: object])[] = [
    [
      "a reasoning item",
      "openai/v1/responses",
      {
        ...none,
        id: "resp_9",
        output: [
          { type: "reasoning", id: "rs_9", summary: [] },
          { type: "message", id: "msg_9", role: "assistant", content: [{ type: "output_text", text: "Hi" }] },
        ],
      },
      false,
      item({ type: "reasoning", id: "rs_9", summary: [] }),
    ],
    [
      "an item of a stream",
      "openai/v1/responses",
      [
        { type: "response.output_item.done", item: { type: "reasoning", id: "rs_8", summary: [] } },
        { type: "response.completed", response: { ...none, id: "resp_8" } },
      ],
      true,
      item({ type: "reasoning", id: "rs_8", summary: [] }),
    ],
    [
      "a container",
      "anthropic/v1/messages",
      {
        ...message,
        id: "m_9",
        content: [{ type: "text", text: "x" }],
        container: { id: "container_9", expires_at: "2027" },
      },
      false,
      { ...claude, container: "container_9" },
    ],
    [
      "a container of a stream",
      "anthropic/v1/messages",
      [
        { type: "message_start", message: { ...message, id: "m_8", content: [] } },
        { type: "message_delta", delta: { stop_reason: "end_turn", container: { id: "container_8" } }, usage: {} },
        { type: "message_stop" },
      ],
      true,
      { ...claude, container: { id: "container_8" } },
    ],
    [
      "a file",
      "anthropic/v1/messages",
      { ...message, id: "m_7", content: [executed] },
      false,
      block({ type: "container_upload", file_id: "file_9" }),
    ],
    [
      "a spoken answer",
      "openai/v1/chat/completions",
      {
        id: "c_9",
        choices: [
          {
            index: 0,
            finish_reason: "stop",
            message: { role: "assistant", content: null, audio: { id: "audio_9", data: "" } },
          },
        ],
      },
      false,
      { model: "m", messages: [...said, { role: "assistant", audio: { id: "audio_9" } }] },
    ],
  ];

  it.each(answers)("may be named by it, and by no other: %s", async (_what, path, answer, stream, next) => {
    reply = answer;
    isStream = stream;
    const first = path.includes("anthropic") ? claude : path.includes("chat") ? { model: "m", messages: said } : item();
    expect(await post(path, first, token)).toBe(200);
    await expect.poll(() => post(path, next, token)).toBe(200);
    heard.length = 0;
    expect([await post(path, next, other), heard]).toEqual([404, []]);
  });

  it("is not what the model itself wrote into the input of a tool", async () => {
    reply = {
      ...message,
      id: "m_6",
      content: [
        { type: "tool_use", id: "t", name: "n", input: { file_id: "file_6", container: { id: "container_6" } } },
        {
          ...executed,
          content: { ...executed.content, content: [{ type: "code_execution_output", file_id: "file_5" }] },
        },
      ],
    };
    expect(await post("anthropic/v1/messages", claude, token)).toBe(200);
    const asked = (id: string): Promise<number> =>
      post("anthropic/v1/messages", block({ type: "container_upload", file_id: id }), token);
    await expect.poll(() => asked("file_5")).toBe(200);
    expect(await asked("file_6")).toBe(404);
  });
});
