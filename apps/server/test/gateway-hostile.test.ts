import { createServer, type Server as NetServer, type Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { LateTimers } from "@throughline/test-kit";
import { afterEach, describe, expect, it } from "vitest";
import { type GatewayServing, serveGateway, sha256 } from "./gateway-serving.ts";
import { connectTo, headOf, sendRaw } from "./raw-socket.ts";
import { serve, type Serving } from "./serving.ts";

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** Values that take a few bytes each, and many times as much in memory. */
const many = "[],".repeat(1_000_000);
const ownHeaders = { "x-api-key": "k", authorization: "Bearer k", "anthropic-version": "2023-06-01" };
const request = { model: "claude-opus-5", max_tokens: 9, messages: [{ role: "user", content: "Hé / there" }] };

describe("bodies", () => {
  const start = async (): Promise<GatewayServing> => {
    const gateway = await serveGateway({ fallback: () => "Well." });
    closing.push(() => gateway.close());
    return gateway;
  };
  const own = ({ token }: GatewayServing): readonly string[] => [
    "x-api-key: key-of-the-caller",
    `throughline-token: ${token}`,
    "anthropic-version: 2023-06-01",
    "content-type: application/json",
  ];

  it("that are no JSON, no UTF-8 or have no messages pass unchanged, and are stored as their bytes", async () => {
    const gateway = await start();
    const bodies = ["", "{", "[]", "null", '{"messages":', '{"messages":7}', "\xff\xfe\x00", "x".repeat(100_000)].map(
      (text) => Buffer.from(text, "latin1"),
    );
    for (const body of bodies) {
      const head = headOf("POST", "/own-anthropic/v1/messages", [
        ...own(gateway),
        `content-length: ${body.length}`,
        "connection: close",
      ]);
      const answer = await sendRaw(gateway.url, Buffer.concat([Buffer.from(head), body]));
      expect([body.toString("latin1", 0, 20), answer.text.slice(9, 12)]).toEqual([
        body.toString("latin1", 0, 20),
        "400",
      ]);
      expect(sha256(gateway.ownSimulator.requests.at(-1)?.bytes ?? Buffer.alloc(0))).toBe(sha256(body));
    }
    const calls = await gateway.calls(bodies.length);
    expect(new Set(calls.map(({ session }) => session.replace(/^.*-/, "")))).toEqual(new Set(["unread"]));
    const rebuilt = await Promise.all(calls.map(async (call) => sha256(await gateway.requestOf(call))));
    expect(rebuilt).toEqual(bodies.map((body) => sha256(body)));
  });

  it.each([
    ["own-anthropic/v1/messages", `{"messages":[${many}[]]}`],
    ["own-anthropic/v1/messages", `{"messages":[{"role":"user","content":[${many}[]]}]}`],
    ["own-openai/v1/chat/completions", `{"messages":[${many}[]]}`],
    ["own-openai/v1/responses", `{"input":[${many}[]]}`],
    ["own-ollama/api/chat", `{"messages":[${many}[]]}`],
    [
      "own-ollama/api/chat",
      `{"messages":[{"role":"user","content":"a"}],"options":{${'"a":1,'.repeat(500_000)}"b":1}}`,
    ],
  ])(
    "of millions of values pass through %s unchanged while others are answered, and are not parsed",
    async (path, body) => {
      const gateway = await start();
      const headers = { ...ownHeaders, "throughline-token": gateway.token };
      // What the simulator makes of it does not count: it parses anything.
      gateway.ownSimulator.enqueue({ kind: "error", status: 400, message: "Too much." });
      const heapBefore = process.memoryUsage().heapUsed;
      const answering = fetch(`${gateway.url}/${path}`, { method: "POST", headers, body });
      expect((await answering).status).toBe(400);
      expect(sha256(gateway.ownSimulator.requests.at(-1)?.bytes ?? Buffer.alloc(0))).toBe(sha256(Buffer.from(body)));
      const [call] = await gateway.calls(1);
      await expect(gateway.requestOf(call as never)).rejects.toThrow("too large to be kept");
      expect(process.memoryUsage().heapUsed - heapBefore).toBeLessThan(1024 ** 3);
    },
  );

  it.each(["record", "guard"])(
    "with a message above the limit of a record are given back in %s mode",
    { tags: ["slow"] },
    async (mode) => {
      const gateway = await serveGateway(
        { fallback: () => "Well.", models: { "*": { windowTokens: 1e9 } } },
        {},
        {},
        { mode: mode as "record" },
      );
      closing.push(() => gateway.close());
      const images = ["a", "b", "c"].map((name) => ({
        type: "image",
        source: { type: "base64", media_type: "image/png", data: `iVBORw0KGgo${name}`.repeat(450_000) },
      }));
      const said = (mark: object): object => ({
        role: "user",
        content: [...images, { type: "text", text: "What is this? é", ...mark }],
      });
      const mark = { cache_control: { type: "ephemeral" } };
      const later = [
        { role: "assistant", content: "Well." },
        { role: "user", content: "And now?" },
      ];
      const bodies = [[said(mark)], [said({}), ...later]].map((messages) => JSON.stringify({ ...request, messages }));
      const headers = { ...ownHeaders, "throughline-token": gateway.token };
      for (const body of bodies) {
        const answer = await fetch(`${gateway.url}/own-anthropic/v1/messages`, { method: "POST", headers, body });
        expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining("Well.")]);
      }
      const calls = await gateway.calls(2);
      // One conversation, whose image is stored once.
      expect(new Set(calls.map(({ session }) => session)).size).toBe(1);
      const rebuilt = await Promise.all(calls.map(async (call) => sha256(await gateway.requestOf(call))));
      expect(rebuilt).toEqual(bodies.map((body) => sha256(Buffer.from(body))));
      const stats = await gateway.serving.ask("GET", `/sessions/${calls[0]?.session}/records?limit=500&payload=head`, {
        token: gateway.token,
      });
      const bytes = (stats.body["items"] as readonly { readonly bytes: number }[]).reduce(
        (sum, one) => sum + one.bytes,
        0,
      );
      expect(bytes).toBeLessThan(JSON.stringify(images).length * 1.1);
    },
  );

  it("that come as 1-byte chunks, with CR LF or pretty-printed are given back byte for byte", async () => {
    const gateway = await start();
    const texts = [
      JSON.stringify(request),
      JSON.stringify(request, null, 2),
      JSON.stringify(request, null, "\t").replaceAll("\n", "\r\n"),
      ` \n${JSON.stringify(request)}\r\n\r\n`,
    ];
    for (const text of texts) {
      const bytes = Buffer.from(text);
      const chunks = [...bytes].map((byte) => Buffer.from([0x31, 0x0d, 0x0a, byte, 0x0d, 0x0a]));
      const head = headOf("POST", "/own-anthropic/v1/messages", [
        ...own(gateway),
        "transfer-encoding: chunked",
        "connection: close",
      ]);
      const answer = await sendRaw(
        gateway.url,
        Buffer.concat([Buffer.from(head), ...chunks, Buffer.from("0\r\n\r\n")]),
        2000,
      );
      expect(answer.text).toContain("200 OK");
    }
    const calls = await gateway.calls(texts.length);
    const rebuilt = await Promise.all(calls.map(async (call) => (await gateway.requestOf(call)).toString()));
    expect(rebuilt.toSorted()).toEqual(texts.toSorted());
  });

  it("that are packed pass as they are, and the call is stored unpacked", async () => {
    const gateway = await start();
    const packed = gzipSync(JSON.stringify(request));
    const answer = await fetch(`${gateway.url}/own-anthropic/v1/messages`, {
      method: "POST",
      headers: {
        "x-api-key": "k",
        "throughline-token": gateway.token,
        "content-encoding": "gzip",
        "anthropic-version": "2023-06-01",
      },
      body: packed,
    });
    await answer.text();
    expect(sha256(gateway.ownSimulator.requests[0]?.bytes ?? Buffer.alloc(0))).toBe(sha256(packed));
    const [call] = await gateway.calls(1);
    expect((await gateway.requestOf(call as never)).toString()).toBe(JSON.stringify(request));
  });

  it("above 32 MiB are refused in the provider's form before they are sent; one of 2 MiB is stored", async () => {
    const gateway = await start();
    const large = headOf("POST", "/own-anthropic/v1/messages", [
      ...own(gateway),
      `content-length: ${33 * 1024 * 1024}`,
    ]);
    const refused = await sendRaw(gateway.url, large);
    expect(refused.text).toMatch(/^HTTP\/1\.1 413 [^]*"type":"request_too_large"/);
    const text = JSON.stringify({
      ...request,
      messages: [{ role: "user", content: "é".repeat(1024 * 1024) }],
    });
    const answer = await fetch(`${gateway.url}/own-anthropic/v1/messages`, {
      method: "POST",
      headers: { "x-api-key": "k", "throughline-token": gateway.token, "anthropic-version": "2023-06-01" },
      body: text,
    });
    await answer.text();
    const [call] = await gateway.calls(1);
    expect(sha256(await gateway.requestOf(call as never))).toBe(sha256(Buffer.from(text)));
  }, 120_000);
});

describe("upstreams", () => {
  /** A gateway whose upstream does what it likes with the connection of each request. */
  const behind = async (
    answer: (socket: Socket) => void,
  ): Promise<{ readonly serving: Serving; readonly token: string }> => {
    const sockets = new Set<Socket>();
    const upstream: NetServer = createServer((socket) => {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.once("data", () => answer(socket));
    });
    await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
    const address = upstream.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const own = { baseUrl: `http://127.0.0.1:${port}`, api: "anthropic", credentials: "server", apiKey: "k" } as const;
    const serving = await serve({ gateway: { upstreams: { own } } });
    closing.push(
      () => serving.close(),
      async () => {
        for (const socket of sockets) socket.destroy();
        await new Promise((resolve) => upstream.close(resolve));
      },
    );
    return { serving, token: await serving.tokenOf({ namespace: "", scopes: ["gateway:own", "read"] }) };
  };
  const ask = async (
    { serving, token }: { readonly serving: Serving; readonly token: string },
    signal?: AbortSignal,
  ): Promise<Response> =>
    fetch(`${serving.url}/own/v1/messages`, {
      method: "POST",
      headers: { "x-api-key": token },
      body: JSON.stringify(request),
      ...(signal === undefined ? {} : { signal }),
    });
  const outcomes = async ({
    serving,
    token,
  }: {
    readonly serving: Serving;
    readonly token: string;
  }): Promise<unknown> => {
    const sessions = (await serving.ask("GET", "/sessions", { token })).body["items"] as readonly {
      readonly key: string;
    }[];
    const calls = await Promise.all(
      sessions.map(async ({ key }) => (await serving.ask("GET", `/sessions/${key}/calls`, { token })).body["items"]),
    );
    return (calls.flat() as readonly { readonly outcome: string }[]).map(({ outcome }) => outcome);
  };
  const head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
  const event =
    'event: message_start\ndata: {"type":"message_start","message":{"id":"m","role":"assistant","model":"m","content":[]}}\n\n';

  it("that close or reset without an answer are 502 in the provider's form, and a failed call", async () => {
    for (const end of [
      (socket: Socket) => socket.end(),
      (socket: Socket) => socket.resetAndDestroy(),
      (socket: Socket) => socket.end("no HTTP at all\r\n\r\n"),
    ]) {
      const gateway = await behind(end);
      const answer = await ask(gateway);
      expect([answer.status, await answer.json()]).toMatchObject([
        502,
        { type: "error", error: { type: "api_error" } },
      ]);
      await expect.poll(async () => outcomes(gateway)).toEqual(["failed"]);
    }
  });

  it.each([
    ["say less than they announced", (socket: Socket) => socket.end(`${head}content-length: 5000\r\n\r\n${event}`)],
    [
      "reset in the middle",
      (socket: Socket) =>
        void socket.write(`${head}transfer-encoding: chunked\r\n\r\n${event.length.toString(16)}\r\n${event}\r\n`, () =>
          setTimeout(() => socket.resetAndDestroy(), 50),
        ),
    ],
    [
      "send a chunk that is none",
      (socket: Socket) =>
        socket.end(`${head}transfer-encoding: chunked\r\n\r\n${event.length.toString(16)}\r\n${event}\r\nzz\r\n`),
    ],
  ])("that %s break the client's answer off, and the call is partial", async (_name, end) => {
    const gateway = await behind(end);
    const answer = await ask(gateway);
    expect(answer.status).toBe(200);
    await expect(answer.text()).rejects.toThrow("terminated");
    await expect.poll(async () => outcomes(gateway)).toEqual(["partial"]);
  });

  it("that say more than they announced are cut at the announced length, and what follows is no other answer", async () => {
    const gateway = await behind((socket) =>
      socket.write(
        `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil`,
      ),
    );
    expect(await (await ask(gateway)).text()).toBe("{}");
    expect(await (await ask(gateway)).text()).toBe("{}");
  });

  it.each(["before its head", "in its stream"])(
    "that stall %s are left within a second after the client is gone",
    async (where) => {
      let left = 0;
      let asked: Socket | null = null;
      const gateway = await behind((socket) => {
        asked = socket;
        socket.on("close", () => (left = performance.now()));
        if (where === "in its stream")
          socket.write(`${head}transfer-encoding: chunked\r\n\r\n${event.length.toString(16)}\r\n${event}\r\n`);
      });
      const abort = new AbortController();
      const answering = ask(gateway, abort.signal).then(async (answer) => answer.text());
      answering.catch(() => {});
      await expect.poll(() => asked).not.toBe(null);
      await new Promise((resolve) => setTimeout(resolve, 100));
      using timers = new LateTimers();
      const goneMs = performance.now();
      abort.abort();
      await expect.poll(() => left).toBeGreaterThan(0);
      expect(left - goneMs).toBeLessThan(1000 + 2 * timers.mostMs);
      await expect.poll(async () => outcomes(gateway)).toEqual(["aborted"]);
    },
  );

  it.each([
    ["values", "application/json", `{"content":[${many}[]]}`],
    ["levels", "application/json", `${"[".repeat(100_000)}${"]".repeat(100_000)}`],
    ["values in a line", "text/event-stream", `data: {"type":"message_start","message":[${many}[]]}\n\n`],
  ])("that answer with a million %s are passed back unchanged, and no reply is read of it", async (_, type, text) => {
    const gateway = await behind((socket) =>
      socket.end(`HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ncontent-length: ${text.length}\r\n\r\n${text}`),
    );
    const answer = await ask(gateway);
    expect(sha256(Buffer.from(await answer.arrayBuffer()))).toBe(sha256(Buffer.from(text)));
    await expect.poll(async () => outcomes(gateway)).toEqual(["answered"]);
  });

  it("are read no faster than the client reads", { tags: ["slow"] }, async () => {
    let sent = 0;
    const piece = Buffer.alloc(64 * 1024, "x");
    const gateway = await behind((socket) => {
      socket.write(`${head}connection: close\r\n\r\n`);
      const more = (): void => {
        while (sent < 256 * 1024 * 1024) {
          sent += piece.length;
          if (!socket.write(piece)) return void socket.once("drain", more);
        }
      };
      more();
    });
    const socket = connectTo(gateway.serving.url);
    const body = JSON.stringify(request);
    socket.write(
      headOf("POST", "/own/v1/messages", [
        `x-api-key: ${gateway.token}`,
        `content-length: ${Buffer.byteLength(body)}`,
      ]) + body,
    );
    await new Promise((resolve) => socket.once("data", resolve));
    socket.pause();
    // On a busy machine the buffers on the way are full later.
    const sentMeanwhile = async (): Promise<number> => {
      const before = sent;
      await new Promise((resolve) => setTimeout(resolve, 300));
      return sent - before;
    };
    await expect.poll(sentMeanwhile).toBe(0);
    expect(sent).toBeLessThan(32 * 1024 * 1024);
    socket.destroy();
  });
});
