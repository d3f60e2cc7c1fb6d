import { createServer, type IncomingMessage, type Server } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { until } from "@throughline/test-kit";
import { connectTo, headOf } from "./raw-socket.ts";
import { serve, type Serving } from "./serving.ts";

/** What the upstream has heard of one request. */
interface Heard {
  readonly request: IncomingMessage;
  bytes: number;
  isWhole: boolean;
  isBroken: boolean;
}

const heard: Heard[] = [];
let upstream: Server;
let serving: Serving;
let token = "";
beforeAll(async () => {
  upstream = createServer((request, response) => {
    const one: Heard = { request, bytes: 0, isWhole: false, isBroken: false };
    heard.push(one);
    request.on("data", (chunk: Buffer) => (one.bytes += chunk.length));
    request.on("error", () => (one.isBroken = true));
    request.on("end", () => {
      one.isWhole = true;
      const content = [{ type: "text", text: "Hi" }];
      const message = { id: "m", type: "message", role: "assistant", model: "m", content, usage: {} };
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ ...message, stop_reason: "end_turn" }));
    });
  });
  await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
  const address = upstream.address();
  const baseUrl = `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
  const own = { baseUrl, api: "anthropic" } as const;
  const upstreams = {
    caller: { ...own, credentials: "caller" },
    server: { ...own, credentials: "server", apiKey: "k" },
  } as const;
  serving = await serve({ gateway: { upstreams } });
  token = await serving.tokenOf({ namespace: "", scopes: ["read", "gateway:caller", "gateway:server"] });
});
afterAll(async () => {
  await serving.close();
  upstream.closeAllConnections();
  await new Promise((resolve) => upstream.close(resolve));
});

const body = JSON.stringify({
  model: "m",
  max_tokens: 100,
  messages: [{ role: "user", content: "word ".repeat(60_000) }],
});
const half = body.length / 2;

function beginUpload(name: string, length = body.length): ReturnType<typeof connectTo> {
  heard.length = 0;
  const socket = connectTo(serving.url);
  const own = [`throughline-token: ${token}`, `authorization: Bearer ${token}`, "connection: close"];
  const lines = ["content-type: application/json", `content-length: ${length}`, ...own];
  socket.write(headOf("POST", `/${name}/v1/messages`, lines));
  socket.write(body.slice(0, half));
  return socket;
}

describe("a large body", () => {
  it("is passed on while the rest of it is still to come, and stored", async () => {
    const socket = beginUpload("caller");
    await until(() => (heard[0]?.bytes ?? 0) > half - 64 * 1024);
    expect(heard[0]?.isWhole).toBe(false);
    const chunks: Buffer[] = [];
    socket.on("data", (chunk: Buffer) => chunks.push(chunk));
    socket.write(body.slice(half));
    await new Promise((resolve) => socket.on("close", resolve));
    expect(heard[0]).toMatchObject({ bytes: body.length, isWhole: true });
    expect(heard[0]?.request.headers["content-length"]).toBe(String(body.length));
    const answer = Buffer.concat(chunks).toString("latin1");
    const [, key = ""] = /throughline-session: (\S+)/.exec(answer) ?? [];
    const [, callId = ""] = /throughline-call: (\S+)/.exec(answer) ?? [];
    const path = `${serving.url}/api/v1/sessions/${key}/calls/${callId}/request?payload=bytes`;
    await until(async () => {
      const given = await fetch(path, { headers: { authorization: `Bearer ${token}` } });
      return given.status === 200 && (await given.text()) === body;
    });
  });

  it("whose client goes away in the middle of it is broken off at the upstream", async () => {
    const socket = beginUpload("caller");
    await until(() => (heard[0]?.bytes ?? 0) > 0);
    socket.destroy();
    await until(() => heard[0]?.isBroken === true);
    expect(heard[0]?.isWhole).toBe(false);
  });

  it("waits here for its end where a key of the server's goes with it", { tags: ["slow"] }, async () => {
    const socket = beginUpload("server");
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(heard).toEqual([]);
    socket.write(body.slice(half));
    await until(() => heard[0]?.isWhole === true);
    socket.destroy();
  });

  it("that is too large is refused before the upstream hears of it", async () => {
    const socket = beginUpload("caller", 33 * 1024 * 1024);
    const answer = await new Promise<Buffer>((resolve) => socket.once("data", resolve));
    expect(answer.toString("latin1")).toMatch(/^HTTP\/1\.1 413 /);
    expect(heard).toEqual([]);
    socket.destroy();
  });
});
