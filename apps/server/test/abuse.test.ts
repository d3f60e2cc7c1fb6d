import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTokenStore } from "@throughline/http-api/internal";
import { createSqliteStore } from "@throughline/store-sqlite";
import { quickFolder } from "../../../packages/store-sqlite/test/test-folder.ts";
import { serve, type Answered, type Serving } from "./serving.ts";
import { itOfBytes } from "./start-server.ts";
import { answerOf, connectTo, headOf, sendRaw } from "./raw-socket.ts";

let serving: Serving;
let bearer = "";
beforeAll(async () => {
  serving = await serve();
  bearer = `authorization: Bearer ${serving.token}`;
  await serving.begin("notes");
});
afterAll(() => serving.close());

const codeOf = ({ status, body }: Answered): readonly unknown[] => [status, body["code"]];
const requestId = { "throughline-request-id": "same" };

describe("who asks", () => {
  it("row 1: gives the same answer to no, malformed, unknown, wrong, expired and revoked tokens", async () => {
    // More of them than one address may show in a minute.
    const strict = await serve({ limits: { failedTokensPerMinute: 1000 } });
    const expired = await strict.tokenOf({ expiresAtMs: Date.now() - 1 });
    const revoked = await strict.tokenOf({});
    await strict.server.tokens.revoke(revoked.split("_")[1] ?? "");
    const wrong = strict.token.slice(0, -43) + "a".repeat(43);
    const tokens = [null, "", "x y", "tl_", "nonsense", `tl_aaaaaaaaaaaa_${"s".repeat(43)}`, wrong, expired, revoked];
    const answers = [];
    for (const token of tokens) answers.push(await strict.ask("GET", "/store", { token, headers: requestId }));
    for (const { status, text, headers } of answers) {
      expect([status, text]).toEqual([401, answers[0]?.text]);
      expect(headers.get("www-authenticate")).toBe("Bearer");
    }
    await strict.close();
  });

  it("takes a token that was made elsewhere, however many requests show it at once", async () => {
    const folder = mkdtempSync(join(quickFolder(), "throughline-elsewhere-"));
    const path = join(folder, "sessions.db");
    const node = await serve({ openStore: () => createSqliteStore({ path }) });
    const beside = createSqliteStore({ path });
    const rights = { namespace: "", agents: "*", scopes: ["read"], expiresAtMs: null } as const;
    const { text } = await createTokenStore(beside, () => Date.now()).create(rights, "elsewhere");
    const answers = await Promise.all(Array.from({ length: 12 }, () => node.ask("GET", "/store", { token: text })));
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 12 }, () => 200));
    await beside.close();
    await node.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it("row 2: takes no token from the query, which is in no log", async () => {
    const { status } = await serving.ask("GET", `/store?token=${serving.token}`, { token: null });
    expect(status).toBe(401);
    expect(serving.log()).not.toContain(serving.token.slice(-43));
  });

  it("row 3: shuts out an address that guesses, and tells a wrong secret from an unknown id by nothing", async () => {
    const strict = await serve();
    const wrong = strict.token.slice(0, -43) + "b".repeat(43);
    const statuses = [];
    for (let index = 0; index < 11; index++)
      statuses.push((await strict.ask("GET", "/store", { token: wrong })).status);
    expect(statuses).toEqual([...Array.from({ length: 10 }, () => 401), 429]);
    const limited = await strict.ask("GET", "/store", { token: wrong });
    expect(codeOf(limited)).toEqual([429, "RATE_LIMITED"]);
    expect(Number(limited.headers.get("retry-after"))).toBeGreaterThan(0);
    // Who has a token is served on.
    expect((await strict.ask("GET", "/store")).status).toBe(200);
    await strict.close();
  });

  itOfBytes("row 6: answers for its own names only, and to one Host line only", { tags: ["slow"] }, async () => {
    const port = new URL(serving.url).port;
    const ask = async (host: string, target = "/api/v1/store"): Promise<readonly unknown[]> =>
      answerOf(await sendRaw(serving.url, headOf("GET", target, [bearer], host)));
    for (const host of [
      "evil.example",
      "localhost.evil.example",
      "127.0.0.1.nip.io",
      "127.0.0.1@evil.example",
      "0.0.0.0",
    ])
      expect([host, ...(await ask(host))]).toEqual([host, 421, "HOST_REFUSED"]);
    expect(await ask("localhost", "http://localhost/api/v1/store")).toEqual([421, "HOST_REFUSED"]);
    for (const host of ["LOCALHOST:1", "[::1]", `127.0.0.1:${port}`, "localhost"])
      expect([host, ...(await ask(host))]).toEqual([host, 200, undefined]);
    const two = await sendRaw(serving.url, headOf("GET", "/api/v1/store", ["host: localhost", bearer]));
    expect(answerOf(two)[0]).toBe(400);
  });

  it("rows 7, 8 and 9: refuses pages of elsewhere, also with a valid token, and names no origin", async () => {
    for (const headers of [
      { origin: "https://evil.example" },
      { origin: "null" },
      { "sec-fetch-site": "cross-site" },
      { "sec-fetch-site": "same-site" },
    ] as const) {
      const refused = await serving.ask("GET", "/store", { headers: headers as Record<string, string> });
      expect(codeOf(refused)).toEqual([403, "ORIGIN_REFUSED"]);
      expect([...refused.headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
    }
    const preflight = await fetch(`${serving.url}/api/v1/store`, {
      method: "OPTIONS",
      headers: { origin: "https://evil.example", "access-control-request-method": "POST" },
    });
    expect(preflight.status).toBe(403);
    expect([...preflight.headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
    const own = await serving.ask("GET", "/store", { headers: { "sec-fetch-site": "same-origin" } });
    expect(own.status).toBe(200);
  });

  it("row 11: names the scope that a token lacks", async () => {
    const reader = await serving.tokenOf({ scopes: ["read"] });
    const body = { drafts: [{ type: "note" }] };
    const refused = await serving.ask("POST", "/sessions/notes/records", { token: reader, body });
    expect(refused).toMatchObject({ status: 403, body: { code: "FORBIDDEN", details: { needs: "write" } } });
    expect((await serving.ask("DELETE", "/sessions/notes", { token: reader })).body).toMatchObject({
      details: { needs: "delete" },
    });
  });

  it("row 12: shows another agent's and another namespace's session as one that is not there", async () => {
    await serving.begin("agent:work:plans");
    const mine = await serving.tokenOf({ namespace: "", agents: ["main"], scopes: ["read", "write", "delete"] });
    const tenant = await serving.tokenOf({ namespace: "b", scopes: ["read", "write", "delete"] });
    const without = (text: string): string => text.replaceAll(/plans|nothing/g, "KEY");
    for (const [token, other, unknown] of [
      [mine, "agent:work:plans", "agent:work:nothing"],
      [tenant, "agent:work:plans", "agent:work:nothing"],
      [tenant, "notes", "nothing"],
    ] as const) {
      const both = async (method: string, below: string, body?: object): Promise<void> => {
        const ask = (key: string): Promise<Answered> =>
          serving.ask(method, `/sessions/${key}${below}`, {
            token,
            headers: requestId,
            ...(body === undefined ? {} : { body }),
          });
        const [seen, none] = [await ask(other), await ask(unknown)];
        expect([below, seen.status, without(seen.text.replaceAll("notes", "KEY"))]).toEqual([
          below,
          404,
          without(none.text),
        ]);
      };
      await both("GET", "");
      await both("GET", "/records");
      await both("GET", "/entry");
      await both("GET", "/window");
      await both("GET", "/context");
      await both("GET", "/events");
      await both("GET", "/checkpoints");
      await both("POST", "/rename", { key: "agent:main:cli:direct:stolen" });
      await both("POST", "/fork", { key: "agent:main:cli:direct:stolen", sessionId: "s" });
      await both("POST", "/rewind", { to: null });
      await both("POST", "/switch", { to: "r1" });
      await both("GET", "/branches?record=r1");
      await both("POST", "/reset", { sessionId: "s-2" });
      await both("POST", "/turns", { owner: "thief" });
      await both("DELETE", "");
    }
    for (const path of ["/sessions", "/sessions?state=any", "/stats", "/resolve?q=agent%3Awork", "/search?q=note"]) {
      const { text } = await serving.ask("GET", path, { token: mine });
      expect(text).not.toContain("plans");
    }
    expect((await serving.ask("GET", "/sessions", { token: tenant })).body["count"]).toBe(0);
    expect((await serving.ask("GET", "/sessions?agent=work", { token: mine })).status).toBe(404);
  });

  it("row 13: refuses the namespace of another tenant, and those of the server", async () => {
    const tenant = await serving.tokenOf({ namespace: "b" });
    for (const [token, namespace] of [
      [tenant, "c"],
      [tenant, ""],
      [serving.token, "throughline.tokens"],
      [serving.token, "throughline.audit"],
    ] as const) {
      const refused = await serving.ask("GET", "/sessions", { token, headers: { "throughline-namespace": namespace } });
      expect(codeOf(refused)).toEqual([403, "FORBIDDEN"]);
    }
  });
});

describe("what is asked for", () => {
  it("row 10: takes JSON as JSON only", async () => {
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""]) {
      const refused = await serving.ask("POST", "/sessions/notes/records", {
        body: '{"drafts":[]}',
        headers: { "content-type": type },
      });
      expect(codeOf(refused)).toEqual([415, "MEDIA_TYPE_UNSUPPORTED"]);
    }
  });

  itOfBytes.each([
    ["/sessions/..%2f..%2fetc%2fpasswd", 404, "SESSION_NOT_FOUND"],
    ["/sessions/%00", 400, "KEY_INVALID"],
    ["/sessions/~AA", 400, "KEY_INVALID"],
    ["/sessions/%E0%A4%A", 400, "INPUT_INVALID"],
    ["/sessions/~_w", 400, "INPUT_INVALID"],
    ["/sessions/~@@", 400, "INPUT_INVALID"],
    ["/sessions/notes/../notes", 404, "ROUTE_NOT_FOUND"],
    ["/sessions//", 404, "ROUTE_NOT_FOUND"],
    ["/nothing", 404, "ROUTE_NOT_FOUND"],
  ])("row 14: %s is %i %s", { tags: ["slow"] }, async (path, status, code) => {
    // As it stands: fetch would resolve the dots.
    const answer = await sendRaw(serving.url, headOf("GET", `/api/v1${path}`, [bearer]));
    expect(answerOf(answer)).toEqual([status, code]);
  });

  it("row 14: makes no session of a key that is a path", async () => {
    for (const key of ["..%2f..%2fetc%2fpasswd", "~Li4", "a%0d%0ax-evil%3a%201", "a%1b%5b31m"]) {
      const refused = await serving.ask("PUT", `/sessions/${key}`, { body: {} });
      expect([key, refused.status, [...refused.headers.keys()].includes("x-evil")]).toEqual([
        key,
        expect.toBeOneOf([200, 201, 400]),
        false,
      ]);
      if (refused.status !== 400) expect(refused.body["key"]).toBe(key === "~Li4" ? ".." : decodeURIComponent(key));
    }
  });

  it("row 15: opens no file of the page's folder or around it", { tags: ["slow"] }, async () => {
    for (const path of ["/inspect/..%2f..%2fserver.json", "/inspect/../../server.json", "/inspect", "/server.json"])
      expect([path, answerOf(await sendRaw(serving.url, headOf("GET", path, [bearer])))[0]]).toEqual([path, 404]);
  });

  it.each([
    ["100,000 deep", `${"[".repeat(100_000)}${"]".repeat(100_000)}`],
    ["36 MiB of [", "[".repeat(36 * 1024 * 1024)],
  ])("row 21: refuses JSON %s in under 100 ms", async (_name, body) => {
    const times: number[] = [];
    // A machine that does other work is slow at times.
    while (times.length < 10 && !times.some((ms) => ms < 100)) {
      const socket = connectTo(serving.url);
      await new Promise<void>((resolve) => socket.once("connect", resolve));
      const lines = [bearer, "content-type: application/json", `content-length: ${body.length}`];
      const answered = new Promise<string>((resolve) => socket.once("data", (chunk) => resolve(String(chunk))));
      const bytes = Buffer.from(headOf("POST", "/api/v1/sessions/notes/records", lines) + body);
      const beganMs = performance.now();
      socket.write(bytes);
      expect(answerOf({ text: await answered })).toEqual([400, "INPUT_INVALID"]);
      times.push(performance.now() - beganMs);
      socket.destroy();
    }
    expect(Math.min(...times)).toBeLessThan(100);
  });

  it("row 22: keeps or refuses the names of prototypes, and changes none", async () => {
    const bodies = [
      '{"drafts":[{"type":"note","__proto__":{"x":1},"constructor":{"prototype":{"x":1}}}]}',
      '{"drafts":[{"type":"note"}],"entry":{"__proto__":{"x":1},"constructor":{"prototype":{"x":1}}}}',
      '{"__proto__":{"x":1},"drafts":[]}',
    ];
    for (const body of bodies)
      expect([201, 400]).toContain((await serving.ask("POST", "/sessions/notes/records", { body })).status);
    const patched = await serving.ask("PATCH", "/sessions/notes/entry", { body: '{"__proto__":{"x":1}}' });
    expect([200, 400]).toContain(patched.status);
    expect((await serving.ask("GET", "/sessions?__proto__=1")).status).toBe(400);
    expect((await serving.ask("GET", "/sessions?constructor=1")).status).toBe(400);
    expect(({} as { x?: unknown }).x).toBeUndefined();
    expect((await serving.ask("GET", "/sessions/notes")).status).toBe(200);
  });

  it("row 23: unpacks nothing", { tags: ["slow"] }, async () => {
    const bomb = gzipSync(Buffer.alloc(10 * 1024 * 1024));
    const head = headOf("POST", "/api/v1/sessions/notes/records", [
      bearer,
      "content-type: application/json",
      "content-encoding: gzip",
      `content-length: ${bomb.length}`,
    ]);
    const answer = await sendRaw(serving.url, Buffer.concat([Buffer.from(head), bomb]));
    expect(answerOf(answer)).toEqual([415, "MEDIA_TYPE_UNSUPPORTED"]);
  });

  it("row 26: takes only cursors that it made, for the query and the token they were made for", async () => {
    for (let index = 0; index < 3; index++) await serving.begin(`page-${index}`);
    const first = await serving.ask("GET", "/sessions?prefix=page-&limit=1&sort=key");
    const cursor = String(first.body["nextCursor"]);
    expect((await serving.ask("GET", `/sessions?prefix=page-&limit=1&sort=key&cursor=${cursor}`)).status).toBe(200);
    const other = await serving.tokenOf({ namespace: "", agents: ["main"] });
    const forged = `${cursor.slice(0, -1)}${cursor.endsWith("A") ? "B" : "A"}`;
    for (const answer of [
      await serving.ask("GET", `/sessions?prefix=page-&limit=1&sort=key&cursor=${forged}`),
      await serving.ask("GET", `/sessions?prefix=page-&limit=1&sort=key&cursor=${"A".repeat(60)}`),
      await serving.ask("GET", `/sessions?prefix=pag&limit=1&sort=key&cursor=${cursor}`),
      await serving.ask("GET", `/sessions?prefix=page-&limit=1&sort=key&cursor=${cursor}`, { token: other }),
    ])
      expect(codeOf(answer)).toEqual([400, "CURSOR_INVALID"]);
  });

  it("row 27: applies nothing under a key that had another body", async () => {
    await serving.begin("keyed");
    const append = (type: string): Promise<Answered> =>
      serving.ask("POST", "/sessions/keyed/records", {
        body: { drafts: [{ type }] },
        headers: { "idempotency-key": "one" },
      });
    expect((await append("a")).body["replayed"]).toBe(false);
    expect((await append("a")).body["replayed"]).toBe(true);
    expect(codeOf(await append("b"))).toEqual([422, "IDEMPOTENCY_MISMATCH"]);
    expect((await serving.ask("GET", "/sessions/keyed/records")).body["count"]).toBe(2);
  });

  it("row 28: refuses old fences and old revisions", async () => {
    await serving.begin("fenced");
    const open = async (): Promise<number> => {
      const { body } = await serving.ask("POST", "/sessions/fenced/turns", { body: { owner: "a" } });
      return Number(body["fence"]);
    };
    const fence = await open();
    await serving.ask("POST", `/sessions/fenced/turns/${fence}/close`, { body: {} });
    await open();
    const late = await serving.ask("POST", "/sessions/fenced/records", {
      body: { drafts: [{ type: "note" }] },
      headers: { "throughline-fence": String(fence) },
    });
    expect(codeOf(late)).toEqual([409, "TURN_FENCED"]);
    const state = await serving.ask("GET", "/sessions/fenced");
    const body = { sessionId: state.body["sessionId"] };
    expect(
      codeOf(await serving.ask("PUT", "/sessions/fenced/entry", { body, headers: { "if-match": '"999"' } })),
    ).toEqual([412, "REVISION_CONFLICT"]);
    expect(codeOf(await serving.ask("PUT", "/sessions/fenced/entry", { body }))).toEqual([
      428,
      "PRECONDITION_REQUIRED",
    ]);
  });

  it("row 41: has no page yet, and answers hostile markup as data that no browser runs", async () => {
    const markup = "<script>alert(1)</script><img src=https://evil.example/x onerror=alert(1)>";
    await serving.begin("markup", [{ type: "message", message: { role: "user", content: markup } }]);
    expect((await fetch(`${serving.url}/inspect`)).status).toBe(404);
    for (const path of ["/records", "/window", "/context", "/outline", "/entry", "/export?to=jsonl", ""]) {
      const { status, headers } = await serving.ask("GET", `/sessions/markup${path}`);
      const type = headers.get("content-type") ?? "";
      expect([path, status, /^(application|text)\/(json|x-ndjson|jsonl)/.test(type)]).toEqual([path, 200, true]);
      expect(headers.get("x-content-type-options")).toBe("nosniff");
    }
    const broken = await serving.ask("GET", `/sessions/${encodeURIComponent(markup)}`);
    expect([broken.status, broken.headers.get("content-type")]).toEqual([404, "application/problem+json"]);
  });

  it("row 36: speaks no other protocol", { tags: ["slow"] }, async () => {
    const upgrade = headOf("GET", "/api/v1/store", [
      bearer,
      "connection: upgrade",
      "upgrade: websocket",
      "sec-websocket-version: 13",
      "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
    ]);
    expect(answerOf(await sendRaw(serving.url, upgrade))[0]).toBe(400);
  });

  it("row 37: takes the methods of its routes only", { tags: ["slow"] }, async () => {
    expect(answerOf(await sendRaw(serving.url, headOf("TRACE", "/api/v1/store", [bearer])))).toEqual([
      405,
      "METHOD_REFUSED",
    ]);
    expect(answerOf(await sendRaw(serving.url, headOf("NONSENSE", "/api/v1/store", [bearer])))[0]).toBe(400);
    const connected = await sendRaw(serving.url, "CONNECT evil.example:443 HTTP/1.1\r\nhost: localhost\r\n\r\n");
    expect([connected.text, connected.isClosed]).toEqual(["", true]);
    const wrong = await serving.ask("DELETE", "/store");
    expect([wrong.status, wrong.headers.get("allow")]).toEqual([405, "GET"]);
  });
});
