import { mkdtempSync, readFileSync, rmSync, symlinkSync, truncateSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { createServer, type Server } from "@throughline/server";
import { createMemoryStore } from "@throughline/store-memory";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { pageFiles, writePage } from "./page-folder.ts";
import { answerOf, headOf, sendRaw } from "./raw-socket.ts";

const folder = mkdtempSync(join(tmpdir(), "throughline-page-"));
let server: Server;
const start = (): Promise<Server> => createServer({ openStore: () => createMemoryStore(), port: 0, inspect: folder });

beforeAll(async () => {
  writePage(folder);
  server = await start();
});
afterAll(async () => {
  await server.close();
  rmSync(folder, { recursive: true, force: true });
});

const get = (path: string, headers: Readonly<Record<string, string>> = {}, method = "GET"): Promise<Response> =>
  fetch(`${server.url}${path}`, { method, headers, redirect: "manual" });
const raw = async (path: string, lines: readonly string[] = [], host = "localhost"): Promise<number> =>
  answerOf(await sendRaw(server.url, headOf("GET", path, ["connection: close", ...lines], host)))[0];

const documentText = pageFiles["index.html"]?.text ?? "";
const script = "/inspect/assets/index-Ab3_dE9f.js";

describe("the page", () => {
  it.each([
    "",
    "search?q=tides",
    "usage",
    "help",
    "s/~YWdlbnQ6bWFpbjpjbGk?v=files&at=412",
    "s/agent:main:cli:direct:ada",
  ])("answers /inspect/%s with the page itself, uncached", async (path) => {
    const response = await get(`/inspect/${path}`);
    expect([response.status, response.headers.get("cache-control"), await response.text()]).toEqual([
      200,
      "no-store",
      documentText,
    ]);
  });

  it("sends what confines the page with every file", async () => {
    for (const path of ["/inspect/", "/inspect", script, "/inspect/favicon.svg"]) {
      const { headers } = await get(path);
      expect(headers.get("content-security-policy")).toBe(
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob:; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types throughline-worker",
      );
      expect(Object.fromEntries(headers)).toMatchObject({
        "x-frame-options": "DENY",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "permissions-policy": "camera=(), microphone=(), geolocation=(), clipboard-read=()",
      });
    }
  });

  it("keeps a hashed file for ever, and asks about any other", async () => {
    const hashed = await get(script);
    expect(hashed.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
    const icon = await get("/inspect/favicon.svg");
    expect(icon.headers.get("cache-control")).toBe("no-cache");
    const again = await get("/inspect/favicon.svg", { "if-none-match": icon.headers.get("etag") ?? "" });
    expect([again.status, await again.text()]).toEqual([304, ""]);
  });

  it("sends the compressed file to who takes it", async () => {
    const text = pageFiles["assets/index-Ab3_dE9f.js"]?.text ?? "";
    const { text: answer } = await sendRaw(
      server.url,
      headOf("GET", script, ["accept-encoding: br, gzip", "connection: close"]),
    );
    const [head = "", body = ""] = answer.split("\r\n\r\n", 2);
    expect(head).toContain("content-encoding: gzip");
    expect(gunzipSync(Buffer.from(answer.slice(head.length + 4), "latin1")).toString()).toBe(text);
    expect(body.length).toBeLessThan(text.length);
    const plain = await sendRaw(server.url, headOf("GET", script, ["accept-encoding: gzip;q=0", "connection: close"]));
    expect(plain.text).not.toContain("content-encoding");
    expect(plain.text.endsWith(text)).toBe(true);
  });

  it("answers HEAD without a body, and no other method", async () => {
    const head = await get(script, { "accept-encoding": "identity" }, "HEAD");
    expect([head.status, head.headers.get("content-length"), await head.text()]).toEqual([
      200,
      String(pageFiles["assets/index-Ab3_dE9f.js"]?.text.length),
      "",
    ]);
    for (const method of ["POST", "PUT", "DELETE"]) {
      const refused = await get("/inspect/", {}, method);
      expect([refused.status, refused.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
    }
  });

  it("leads from /inspect to the page, relative to where a proxy has it", async () => {
    const response = await get("/inspect");
    expect([response.status, response.headers.get("location")]).toEqual([308, "inspect/"]);
  });

  it.each([
    "/inspect/files.json",
    "/inspect/index.html.gz",
    "/inspect/assets/",
    "/inspect/assets",
    "/inspect/../package.json",
    "/inspect/..%2fpackage.json",
    "/inspect/%2e%2e/package.json",
    "/inspect/assets/..%5c..%5cpackage.json",
    "/inspect/s/..%2f..%2fpackage.json",
    "/inspect/s/..",
    "/inspect/s/a/b",
    "/inspect/index.html%00",
    "/inspect/%69ndex.html",
    "/inspect//index.html",
    "/inspect/assets\\index-Ab3_dE9f.js",
    "/inspect/INDEX.HTML",
    "/inspect/constructor",
    "/inspect/__proto__",
  ])("has nothing at %s", async (path) => {
    expect(await raw(path)).toBe(404);
  });

  it("takes no other path for its own", async () => {
    expect(await raw("/inspector/")).toBe(401);
    expect(await raw("/inspect/../api/v1/sessions")).toBe(404);
  });

  it("refuses a name of another host, as after DNS rebinding", async () => {
    expect(await raw("/inspect/", [], "evil.example")).toBe(421);
    expect(await raw(script, [], "127.0.0.1.evil.example:4788")).toBe(421);
  });

  it("opens from a link of another page, and is no part of one", async () => {
    const from = (mode: string, dest: string, site = "cross-site"): readonly string[] => [
      `sec-fetch-site: ${site}`,
      `sec-fetch-mode: ${mode}`,
      `sec-fetch-dest: ${dest}`,
    ];
    expect(await raw("/inspect/s/~YQ?at=4", from("navigate", "document"))).toBe(200);
    expect(await raw("/inspect/", from("navigate", "iframe"))).toBe(403);
    expect(await raw("/inspect/", from("no-cors", "script"))).toBe(403);
    expect(await raw(script, from("navigate", "document"))).toBe(403);
    expect(await raw(script, from("cors", "script", "same-origin"))).toBe(200);
    expect(await raw("/inspect/", ["origin: https://evil.example", ...from("navigate", "document")])).toBe(403);
    // The routes with data stay closed, however they are asked.
    expect(await raw("/api/v1/sessions", from("navigate", "document"))).toBe(403);
  });
});

describe("the files of the page", () => {
  beforeEach(() => void writePage(folder));
  const status = async (path: string): Promise<readonly [number, unknown]> => {
    const started = await start();
    try {
      const response = await fetch(`${started.url}${path}`);
      const isProblem = response.headers.get("content-type") === "application/problem+json";
      return [response.status, isProblem ? ((await response.json()) as { code: unknown }).code : null];
    } finally {
      await started.close();
    }
  };

  it("are those that were built: a link, a cut file and a swapped one are refused", async () => {
    const path = join(folder, "favicon.svg");
    const secret = join(folder, "secret");
    writeFileSync(secret, "password");
    const damaged = [500, "INSTALLATION_DAMAGED"];
    unlinkSync(path);
    expect(await status("/inspect/favicon.svg")).toEqual(damaged);
    symlinkSync(secret, path);
    expect(await status("/inspect/favicon.svg")).toEqual(damaged);
    unlinkSync(path);
    symlinkSync("/dev/zero", path);
    expect(await status("/inspect/favicon.svg")).toEqual(damaged);
    unlinkSync(path);
    writePage(folder);
    truncateSync(path, 10);
    expect(await status("/inspect/favicon.svg")).toEqual(damaged);
    writePage(folder);
    writeFileSync(`${path}.gz`, readFileSync(join(folder, "index.html.gz")));
    expect(await status("/inspect/favicon.svg")).toEqual(damaged);
    unlinkSync(`${path}.gz`);
    expect(await status("/inspect/favicon.svg")).toEqual([200, null]);
  });

  it.each([
    ["no list", null],
    ["no JSON", "{"],
    ["no list of files", "{}"],
    ["a name that leads out", JSON.stringify([{ name: "../x", type: "text/html", bytes: 1, sha256: "0".repeat(64) }])],
    ["a hidden name", JSON.stringify([{ name: ".x", type: "text/html", bytes: 1, sha256: "0".repeat(64) }])],
    [
      "a header in a type",
      JSON.stringify([{ name: "x", type: "text/html\r\nx: y", bytes: 1, sha256: "0".repeat(64) }]),
    ],
    ["no page", "[]"],
  ])("need a list: %s", async (_what, text) => {
    const path = join(folder, "files.json");
    if (text === null) unlinkSync(path);
    else writeFileSync(path, text);
    await expect(start()).rejects.toMatchObject({ code: "INSTALLATION_DAMAGED" });
  });
});

it("has no page without the folder", async () => {
  const without = await createServer({ openStore: () => createMemoryStore(), port: 0 });
  const { status } = await fetch(`${without.url}/inspect/`);
  await without.close();
  expect(status).toBe(404);
});

describe("a token in memory", () => {
  it("is the only valid one, has no rate limit, and leaves the store as it is", async () => {
    const store = createMemoryStore();
    const appended: string[] = [];
    const watched = new Proxy(store, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== "function") return value;
        return (...given: unknown[]) => {
          if (["append", "save", "create", "open"].includes(String(name))) appended.push(String(name));
          return Reflect.apply(value, target, given) as unknown;
        };
      },
    });
    const rights = { namespace: "", agents: ["main"], scopes: ["read"], expiresAtMs: null } as const;
    const options = { openStore: () => watched, port: 0, limits: { requestsPerMinute: 1, requestBurst: 1 } };
    const started = await createServer({ ...options, localToken: rights });
    const ask = async (path: string, token: string, method = "GET"): Promise<number> =>
      (await fetch(`${started.url}/api/v1${path}`, { method, headers: { authorization: `Bearer ${token}` } })).status;
    const token = started.localToken ?? "";
    try {
      for (let index = 0; index < 20; index++) expect(await ask("/sessions", token)).toBe(200);
      expect(await ask("/sessions/x", token, "PUT")).toBe(403);
      expect(await ask("/admin/tokens", token)).toBe(403);
      expect(await ask("/sessions?agent=other", token)).not.toBe(200);
      expect(await ask("/sessions", `${token.slice(0, -1)}${token.endsWith("A") ? "B" : "A"}`)).toBe(401);
      await expect(started.tokens.create(rights, null)).rejects.toMatchObject({ code: "FORBIDDEN" });
      expect(appended).toEqual([]);
    } finally {
      await started.close();
    }
  });

  it("ends with its time", async () => {
    const rights = { namespace: "", agents: "*", scopes: ["read"], expiresAtMs: Date.now() - 1 } as const;
    const started = await createServer({ openStore: () => createMemoryStore(), port: 0, localToken: rights });
    const authorization = `Bearer ${started.localToken}`;
    const { status } = await fetch(`${started.url}/api/v1/sessions`, { headers: { authorization } });
    await started.close();
    expect(status).toBe(401);
  });
});

it("knows for how long nobody has asked", async () => {
  const started = await createServer({ openStore: () => createMemoryStore(), port: 0 });
  await fetch(`${started.url}/healthz`);
  await new Promise((resolve) => setTimeout(resolve, 60));
  const idleMs = started.idleMs();
  expect(idleMs).toBeGreaterThanOrEqual(50);
  const afterCall = async (): Promise<number> => {
    await fetch(`${started.url}/healthz`);
    return started.idleMs();
  };
  // A busy machine may take as long between the two.
  await expect.poll(afterCall).toBeLessThan(idleMs);
  await started.close();
});
