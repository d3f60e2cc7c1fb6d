import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { serve, type Serving } from "./serving.ts";
import { itOfOurs } from "./start-server.ts";
import { answerOf, connectTo, headOf, sendRaw } from "./raw-socket.ts";

let serving: Serving;
let bearer = "";
beforeAll(async () => {
  serving = await serve();
  bearer = `authorization: Bearer ${serving.token}`;
  await serving.begin("notes");
});
afterAll(() => serving.close());

describe("sizes and framing", () => {
  const path = "/api/v1/sessions/notes/records";
  const json = "content-type: application/json";

  it("row 16: refuses a body that is declared too large before it is sent", { tags: ["slow"] }, async () => {
    const answer = await sendRaw(
      serving.url,
      headOf("POST", path, [bearer, json, "content-length: 99999999999"]),
      2000,
    );
    expect(answerOf(answer)).toEqual([413, "REQUEST_TOO_LARGE"]);
    expect([answer.isClosed, answer.text]).toEqual([true, expect.stringMatching(/connection: close/i)]);
  });

  it("row 17: ends an endless body at the limit", { tags: ["slow"] }, async () => {
    const small = await serve({ limits: { bodyBytes: 1024 * 1024 } });
    const socket = connectTo(small.url);
    let text = "";
    let isClosed = false;
    socket.on("data", (chunk) => (text += String(chunk)));
    socket.on("close", () => (isClosed = true));
    const own = `authorization: Bearer ${small.token}`;
    await small.ask("PUT", "/sessions/notes", { body: {} });
    socket.write(headOf("POST", path, [own, json, "transfer-encoding: chunked"]));
    const piece = `10000\r\n${"x".repeat(65_536)}\r\n`;
    let sent = 0;
    while (!isClosed && text === "" && sent < 4096) {
      sent += 1;
      if (!socket.write(piece)) await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await expect.poll(() => isClosed).toBe(true);
    expect(answerOf({ text })).toEqual([413, "REQUEST_TOO_LARGE"]);
    await small.close();
  });

  itOfOurs("row 19: refuses headers that are too many or too large", { tags: ["slow"] }, async () => {
    const large = await sendRaw(
      serving.url,
      headOf("GET", "/api/v1/store", [bearer, `x-large: ${"x".repeat(70 * 1024)}`]),
    );
    expect(answerOf(large)[0]).toBe(431);
    const lines = Array.from({ length: 1001 }, (_, index) => `x-${index}: 1`);
    const many = await sendRaw(serving.url, headOf("GET", "/api/v1/store", [bearer, ...lines]));
    expect(answerOf(many)).toEqual([431, "REQUEST_TOO_LARGE"]);
    const long = await sendRaw(serving.url, headOf("GET", `/api/v1/store?q=${"x".repeat(9000)}`, [bearer]));
    expect(answerOf(long)[0]).toBe(414);
  });

  it.each([
    [
      "two ways to frame a body",
      headOf("POST", path, ["content-length: 4", "transfer-encoding: chunked"]) + "0\r\n\r\n",
    ],
    ["two lengths", headOf("POST", path, ["content-length: 4", "content-length: 5"]) + "abcd"],
    ["a bare line feed", "GET /api/v1/store HTTP/1.1\nhost: localhost\nx: y\n\n"],
    ["no Host", "GET /api/v1/store HTTP/1.1\r\n\r\n"],
    ["NUL in the path", "GET /api/\0v1/store HTTP/1.1\r\nhost: localhost\r\n\r\n"],
  ])("row 20: refuses %s, closes, and runs nothing that follows", async (_name, bytes) => {
    const smuggled = headOf("GET", "/healthz", []);
    const answer = await sendRaw(serving.url, bytes + smuggled, 1500);
    expect([answerOf(answer)[0], answer.isClosed]).toEqual([400, true]);
    expect(answer.text).not.toContain("\r\n\r\nok");
  });

  it.each([1000, 100_000])(
    "row 18: ends a request whose body of %i bytes comes a byte at a time",
    { tags: ["slow"] },
    async (bytes) => {
      const short = await serve({ limits: { bodyMs: 400 } });
      await short.ask("PUT", "/sessions/notes", { body: {} });
      const socket = connectTo(short.url);
      let text = "";
      let isClosed = false;
      socket.on("data", (chunk) => (text += String(chunk)));
      socket.on("close", () => (isClosed = true));
      socket.write(headOf("POST", path, [`authorization: Bearer ${short.token}`, json, `content-length: ${bytes}`]));
      const dripping = setInterval(() => socket.write("x"), 50);
      await expect.poll(() => isClosed).toBe(true);
      clearInterval(dripping);
      expect(answerOf({ text })).toEqual([408, "REQUEST_TIMEOUT"]);
      await short.close();
    },
  );

  itOfOurs.each([
    [
      "that was refused before the rest of its short body came",
      headOf("POST", path, ["authorization: Bearer nothing", json, "content-length: 1000"]),
      500,
      401,
    ],
    ["whose headers come too slowly", "GET /api/v1/store HTTP/1.1\r\nhost: localhost\r\nx-slow: ", 2000, 408],
  ])(
    "row 18: ends a request %s, and no other connection",
    { tags: ["slow"] },
    async (_which, head, everyMs, status) => {
      const other = connectTo(serving.url);
      let isOtherClosed = false;
      other.on("close", () => (isOtherClosed = true)).resume();
      // Refused once its body has come.
      const none = "/api/v1/sessions/none/records";
      other.write(`${headOf("POST", none, [bearer, json, "content-length: 28"])}{"drafts":[{"type":"note"}]}`);
      const socket = connectTo(serving.url);
      let text = "";
      let closedMs = 0;
      const beganMs = performance.now();
      socket.on("data", (chunk) => (text += String(chunk)));
      socket.on("close", () => (closedMs = performance.now() - beganMs));
      socket.write(head);
      const dripping = setInterval(() => socket.write("x"), everyMs);
      await expect.poll(() => closedMs).toBeGreaterThan(0);
      clearInterval(dripping);
      expect([answerOf({ text })[0], closedMs < 15_000]).toEqual([status, true]);
      await new Promise((resolve) => setTimeout(resolve, 500));
      expect(isOtherClosed).toBe(false);
      other.destroy();
    },
  );
});

describe("streams", () => {
  it("row 24: ends a stream that nobody reads with `lagged`", async () => {
    await serving.begin("unread");
    const socket = connectTo(serving.url);
    socket.write(headOf("GET", "/api/v1/sessions/unread/events", [bearer]));
    let text = "";
    await new Promise<void>((resolve) => socket.once("data", (chunk) => resolve(void (text += String(chunk)))));
    socket.pause();
    const drafts = [{ type: "note", text: "x".repeat(100_000) }];
    const headers = { authorization: `Bearer ${serving.token}` };
    const isLagged = async (): Promise<boolean> => {
      await serving.ask("POST", "/sessions/unread/records", { body: { drafts } });
      const metrics = await (await fetch(`${serving.url}/metrics`, { headers })).text();
      return metrics.includes('throughline_sse_closed_total{reason="lagged"} 1\n');
    };
    for (let count = 0; count < 300 && !(await isLagged()); count++);
    let isClosed = false;
    socket.on("close", () => (isClosed = true));
    socket.on("data", (chunk) => (text = (text + String(chunk)).slice(-200)));
    socket.resume();
    await expect.poll(() => isClosed).toBe(true);
    expect(text).toContain("event: lagged\ndata: {}\n\n");
    expect(serving.log()).not.toContain("failed");
  });

  it("row 25: takes 200 streams of a token, and no more", { tags: ["slow"] }, async () => {
    await serving.begin("streamed");
    const own = await serving.tokenOf({ namespace: "" });
    const request = headOf("GET", "/api/v1/sessions/streamed/events", [`authorization: Bearer ${own}`]);
    const open = async (): Promise<{ readonly text: string; end(): void }> => {
      const socket = connectTo(serving.url);
      socket.write(request);
      const text = await new Promise<string>((resolve) => socket.once("data", (chunk) => resolve(String(chunk))));
      return { text, end: () => void socket.destroy() };
    };
    const streams = await Promise.all(Array.from({ length: 200 }, open));
    expect(new Set(streams.map(({ text }) => answerOf({ text })[0]))).toEqual(new Set([200]));
    const refused = await sendRaw(serving.url, request);
    expect(answerOf(refused)).toEqual([429, "RATE_LIMITED"]);
    // An end makes room.
    streams[0]?.end();
    const next = async (): Promise<number> => {
      const stream = await open();
      streams.push(stream);
      return answerOf(stream)[0];
    };
    await expect.poll(next).toBe(200);
    for (const stream of streams) stream.end();
  });

  it("limits the requests of a token", async () => {
    const slow = await serve({ limits: { requestsPerMinute: 60, requestBurst: 3 } });
    const statuses = [];
    for (let index = 0; index < 4; index++) statuses.push((await slow.ask("GET", "/store")).status);
    expect(statuses).toEqual([200, 200, 200, 429]);
    await slow.close();
  });
});

describe("what is written down", () => {
  it("row 38: puts nothing that a client sends into the log but one escaped line", { tags: ["slow"] }, async () => {
    const lines = (): readonly string[] => serving.log().split("\n");
    const before = lines().length;
    const evil = "x\u001b[31m\u0007";
    await sendRaw(
      serving.url,
      headOf("GET", `/api/v1/sessions/${encodeURIComponent(evil)}`, [bearer, `user-agent: evil\u009b31m`]),
    );
    await serving.ask("GET", `/sessions/a%0d%0aevil`, { headers: { "throughline-request-id": "x".repeat(65) } });
    const added = lines()
      .slice(before - 1)
      .filter((line) => line !== "");
    expect(added).toHaveLength(2);
    for (const line of added) {
      expect(Object.keys(JSON.parse(line) as object).toSorted()).toEqual(
        ["code", "id", "kind", "level", "method", "ms", "msg", "route", "status", "time", "token"].toSorted(),
      );
      expect(line).not.toMatch(/evil|31m|x{65}/);
    }
  });

  it("row 39: keeps planted secrets out of log, metrics, problems and audit", async () => {
    const planted = "planted-secret-9f8e7d";
    await serving.ask("GET", `/store?key=${planted}`, { headers: { cookie: planted, "x-api-key": planted } });
    await serving.ask("GET", "/store", { token: `tl_${planted}` });
    await serving.ask("POST", "/sessions/notes/records", { body: { drafts: [{ type: 1, text: planted }] } });
    const broken = await serving.ask("POST", "/sessions/notes/records", { body: `{"drafts":"${planted}` });
    const metrics = await fetch(`${serving.url}/metrics`, { headers: { authorization: `Bearer ${serving.token}` } });
    const audit = await serving.ask("GET", "/admin/audit");
    for (const text of [broken.text, await metrics.text(), audit.text, serving.log()]) {
      expect(text).not.toContain(planted);
      expect(text).not.toContain(serving.token.slice(-43));
    }
  });

  it(
    "row 40: shows metrics to their scope only, with few labels however many keys there are",
    { tags: ["slow"] },
    async () => {
      const reader = await serving.tokenOf({ scopes: ["read"] });
      const metricsOf = (token: string | null): Promise<Response> =>
        fetch(`${serving.url}/metrics`, token === null ? {} : { headers: { authorization: `Bearer ${token}` } });
      for (const token of [null, reader]) {
        const refused = await metricsOf(token);
        const { code } = (await refused.json()) as { readonly code: string };
        expect([refused.status, code, refused.headers.get("www-authenticate")]).toEqual([
          401,
          "UNAUTHENTICATED",
          "Bearer",
        ]);
      }
      for (let index = 0; index < 400; index++) await serving.ask("GET", `/sessions/key-${index}`);
      const text = await (await metricsOf(serving.token)).text();
      expect(text).not.toContain("key-1");
      expect(text).toContain(
        'throughline_http_requests_total{route="/api/v1/sessions/{session}",method="GET",status="404"}',
      );
      const perFamily = Map.groupBy(
        text.split("\n").filter((line) => line !== "" && !line.startsWith("#")),
        (line) => /^\w+/.exec(line)?.[0] ?? "",
      );
      for (const [name, lines] of perFamily) expect([name, lines.length < 500]).toEqual([name, true]);
    },
  );

  it("answers probes without a token, whatever Host they name", { tags: ["slow"] }, async () => {
    for (const [path, word] of [
      ["/healthz", "ok\n"],
      ["/readyz", "ready\n"],
    ] as const) {
      const { text } = await sendRaw(serving.url, headOf("GET", path, [], "10.1.2.3"));
      expect(text.endsWith(`\r\n\r\n${word}`)).toBe(true);
    }
    expect((await fetch(`${serving.url}/healthz`, { method: "HEAD" })).status).toBe(200);
    expect((await fetch(`${serving.url}/healthz`, { method: "POST" })).status).toBe(405);
  });
});
