import { request as httpRequest, type ClientRequest, type IncomingMessage } from "node:http";
import { PassThrough } from "node:stream";
import { afterEach, describe, expect, it } from "vitest";
import { createMemoryStore } from "@throughline/store-memory";
import { defaultLimits } from "@throughline/http-api/internal";
import type { ServerOptions } from "@throughline/server";
import { createBodyBudget, readBody } from "@throughline/gateway/internal";
import { answerBytes, reply, serveRaw, type RawServing } from "./raw-upstream.ts";
import { serve, type Serving } from "./serving.ts";
import { itOfOurs } from "./start-server.ts";

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

const mebibyte = 1024 * 1024;
const limits = { inFlightBytes: 10 * mebibyte, inFlightBytesPerToken: 6 * mebibyte };

async function serving(): Promise<Serving> {
  const store = createMemoryStore();
  const served = await serve({ openStore: () => store, limits });
  closing.push(() => served.close());
  await served.begin("notes");
  return served;
}

/** A request whose body the server has begun to wait for. */
async function upload(url: string, path: string, token: string, length: number): Promise<ClientRequest> {
  const request = httpRequest(`${url}${path}`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      "content-length": length,
      expect: "100-continue",
    },
  });
  request.on("error", () => {});
  closing.push(async () => void request.destroy());
  request.flushHeaders();
  await new Promise<void>((resolve) => request.on("continue", resolve));
  request.write("[");
  return request;
}

const records = "/api/v1/sessions/notes/records";
const ask = async ({ url, token }: Serving, bytes: number, shown = token): Promise<Response> => {
  const response = await fetch(url + records, {
    method: "POST",
    headers: { authorization: `Bearer ${shown}`, "content-type": "application/json" },
    body: JSON.stringify({ drafts: [{ type: "note", text: "x".repeat(bytes) }] }),
  });
  return response;
};

describe("bodies in flight", () => {
  it("are refused beyond the budget of a token until they are answered", async () => {
    const served = await serving();
    const held = await upload(served.url, records, served.token, 5 * mebibyte);
    const refused = await ask(served, 2 * mebibyte);
    expect([refused.status, ((await refused.json()) as { code?: string }).code]).toEqual([503, "STORE_OVERLOADED"]);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    const other = await served.tokenOf({});
    expect((await ask(served, 2 * mebibyte, other)).status).toBe(201);
    expect((await ask(served, 1000)).status).toBe(201);
    held.destroy();
    await expect.poll(async () => (await ask(served, 2 * mebibyte)).status).toBe(201);
  });

  it("count as they come where their length is not declared", async () => {
    const budget = createBodyBudget(limits);
    const [one, other] = [budget.share("token"), budget.share("token")];
    const body = new PassThrough({ highWaterMark: 10 * mebibyte });
    const request = Object.assign(body, { headers: {} }) as unknown as IncomingMessage;
    const reading = readBody(request, { ...defaultLimits, bodyMs: 60_000 }, true, one);
    for (let piece = 0; piece < 5; piece++) body.write(Buffer.alloc(mebibyte, " "));
    body.end("{}");
    expect((await reading).length).toBe(5 * mebibyte + 2);
    expect(() => other.take(2 * mebibyte)).toThrow("as many bodies");
    const second = Object.assign(new PassThrough(), { headers: {} });
    const refused = readBody(second as unknown as IncomingMessage, defaultLimits, true, other);
    second.write(Buffer.alloc(mebibyte, " "));
    await expect(refused).rejects.toMatchObject({ code: "STORE_OVERLOADED" });
    one.release();
    other.take(2 * mebibyte);
  });

  it(
    "are refused beyond the budget of the process, and one that is larger than it passes alone",
    { tags: ["slow"] },
    async () => {
      const served = await serving();
      const tokens = [await served.tokenOf({}), await served.tokenOf({}), await served.tokenOf({})];
      const [one, two, third = ""] = tokens;
      const uploads = [one, two].map((token) => upload(served.url, records, token ?? "", 5 * mebibyte - 1000));
      const held = await Promise.all(uploads);
      expect((await ask(served, mebibyte, third)).status).toBe(503);
      for (const request of held) request.destroy();
      await expect.poll(async () => (await ask(served, 12 * mebibyte, third)).status).toBe(201);
      // What was answered is given back, also what was refused.
      for (let index = 0; index < 3; index++) {
        const broken = await fetch(served.url + records, {
          method: "POST",
          headers: { authorization: `Bearer ${third}`, "content-type": "application/json" },
          body: `{${" ".repeat(5 * mebibyte)}`,
        });
        expect(broken.status).toBe(400);
      }
    },
  );
});

describe("calls through the gateway", () => {
  const start = async (more: NonNullable<ServerOptions["limits"]>): Promise<RawServing> => {
    const store = createMemoryStore();
    const raw = await serveRaw({}, { openStore: () => store, limits: more });
    closing.push(() => raw.close());
    return raw;
  };
  const call = (raw: RawServing, text: string, signal?: AbortSignal): Promise<Response> =>
    fetch(`${raw.serving.url}/own/v1/messages`, {
      method: "POST",
      headers: { authorization: `Bearer ${raw.token}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "m", max_tokens: 1, messages: [{ role: "user", content: text }] }),
      ...(signal === undefined ? {} : { signal }),
    });

  itOfOurs("hold their part of the budget until they are stored", async () => {
    const raw = await start(limits);
    const waiting: (() => void)[] = [];
    const { heard } = raw;
    raw.answerWith(({ socket }) => void waiting.push(() => socket.write(answerBytes(reply))));
    const first = call(raw, "x".repeat(mebibyte));
    await expect.poll(() => heard.length).toBe(1);
    const refused = await call(raw, "y".repeat(mebibyte + 100_000));
    expect([refused.status, refused.headers.get("throughline-error")]).toEqual([503, "STORE_OVERLOADED"]);
    expect([refused.headers.get("retry-after"), heard.length]).toEqual(["1", 1]);
    waiting.shift()?.();
    expect((await first).status).toBe(200);
    raw.answerWith(({ socket }) => void socket.write(answerBytes(reply)));
    await expect.poll(async () => (await call(raw, "y".repeat(mebibyte + 100_000))).status).toBe(200);
  });

  itOfOurs("have a rate", async () => {
    const raw = await start({ gatewayCallsPerMinute: 60, gatewayBurst: 2 });
    const statuses = [];
    for (let index = 0; index < 3; index++) statuses.push((await call(raw, `${index}`)).status);
    expect(statuses).toEqual([200, 200, 429]);
    const limited = await call(raw, "again");
    expect([limited.headers.get("throughline-error"), limited.headers.get("retry-after")]).toEqual([
      "RATE_LIMITED",
      "1",
    ]);
    // The own API counts apart.
    expect((await raw.serving.ask("GET", "/store", { token: raw.token })).status).toBe(200);
  });
});

it("lets a token without a rate ask as often as it likes", async () => {
  const served = await serve({
    openStore: () => createMemoryStore(),
    limits: { requestsPerMinute: 1, requestBurst: 1 },
  });
  closing.push(() => served.close());
  const statuses = async (): Promise<readonly number[]> => {
    const found = [];
    for (let index = 0; index < 3; index++) found.push((await served.ask("GET", "/store")).status);
    return found;
  };
  expect(await statuses()).toEqual([200, 429, 429]);
  served.server.exempt(served.token.split("_")[1] ?? "");
  expect(await statuses()).toEqual([200, 200, 200]);
});
