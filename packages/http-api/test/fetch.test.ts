import { afterEach, describe, expect, it } from "vitest";
import { openSession, sessionRef } from "@throughline/core";
import { createSessionApi, type ApiCaller, type SessionApi, type SessionApiOptions } from "@throughline/http-api";
import { createMemoryStore } from "@throughline/store-memory";
import { createSqliteStore } from "@throughline/store-sqlite";
import { replaceMembers } from "@throughline/test-kit";
import { quickFolder, testFolder } from "../../store-sqlite/test/test-folder.ts";

const ada: ApiCaller = { id: "ada", namespace: "", agents: "*", scopes: ["read", "write", "admin"] };
const opened: { close(): Promise<void> }[] = [];

function open(options: Partial<SessionApiOptions> = {}): SessionApi {
  const store = options.store ?? createMemoryStore();
  const api = createSessionApi({ ...options, store });
  opened.unshift(api);
  opened.push(store);
  return api;
}

afterEach(async () => {
  for (const each of opened.splice(0)) await each.close();
});

interface Asked {
  readonly body?: string | ReadableStream<Uint8Array> | null;
  readonly headers?: Readonly<Record<string, string>>;
  readonly caller?: ApiCaller | null | undefined;
  readonly signal?: AbortSignal;
}

function ask(api: SessionApi, method: string, path: string, asked: Asked = {}): Promise<Response> {
  const { body = null, headers = {}, signal } = asked;
  const request = new Request(`http://localhost${path}`, {
    method,
    headers: { ...(body === null ? {} : { "content-type": "application/json" }), ...headers },
    ...(body === null ? {} : { body, duplex: "half" }),
    ...(signal === undefined ? {} : { signal }),
  } as RequestInit);
  const caller = "caller" in asked ? asked.caller : ada;
  return api.fetch(request, caller === undefined ? {} : { caller });
}

async function codeOf(response: Response): Promise<readonly [number, unknown]> {
  const { code } = (await response.json()) as { readonly code?: unknown };
  return [response.status, code];
}

const recordBytes = 4000;
const note = JSON.stringify({ drafts: [{ type: "note" }] });

/** Gives pieces one at a time, and counts those that were read. */
function pieces(count: number, piece: Uint8Array): { readonly body: ReadableStream<Uint8Array>; read: number } {
  const state = {
    read: 0,
    body: new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          if (state.read === count) return controller.close();
          state.read += 1;
          controller.enqueue(piece.slice());
        },
      },
      { highWaterMark: 0 },
    ),
  };
  return state;
}

describe("fetch", () => {
  it("answers routes for a caller of the host", async () => {
    const api = open();
    expect((await ask(api, "PUT", "/api/v1/sessions/notes", { body: "{}" })).status).toBe(201);
    expect((await ask(api, "POST", "/api/v1/sessions/notes/records", { body: note })).status).toBe(201);
    const response = await ask(api, "GET", "/api/v1/sessions/notes/records");
    expect(response.headers.get("content-type")).toBe("application/json");
    expect(await response.json()).toMatchObject({ kind: "list", count: 1 });
  });

  it("answers the relations of a session whose entry names a parent and an origin that no store takes", async () => {
    const store = createMemoryStore();
    const entry = {
      sessionId: "a",
      spawnedBy: "k".repeat(1000),
      forkedFrom: { key: "agent:other:x", agentId: "main", sessionId: "x" },
    };
    await store.save(sessionRef({ key: "agent:main:a" }), entry, { ifRevision: null });
    const caller = { ...ada, agents: ["main"] };
    const response = await ask(open({ store }), "GET", "/api/v1/sessions/agent%3Amain%3Aa/relations", { caller });
    expect([response.status, await response.json()]).toMatchObject([
      200,
      { parent: { isHere: false }, forkedFrom: { sessionId: "x", isHere: false } },
    ]);
  });

  it("gives a caller its scopes, agents and namespace only", async () => {
    const api = open();
    const reader = { ...ada, scopes: ["read"] } as const;
    const put = await ask(api, "PUT", "/api/v1/sessions/notes", { body: "{}", caller: reader });
    expect(await codeOf(put)).toEqual([403, "FORBIDDEN"]);
    await ask(api, "PUT", "/api/v1/sessions/notes", { body: "{}", caller: { ...ada, namespace: "other" } });
    expect(await codeOf(await ask(api, "GET", "/api/v1/sessions/notes"))).toEqual([404, "SESSION_NOT_FOUND"]);
    const reserved = { ...ada, namespace: "throughline.tokens" };
    const listed = await ask(api, "GET", "/api/v1/sessions", { caller: reserved });
    expect(await codeOf(listed)).toEqual([403, "FORBIDDEN"]);
  });

  it("refuses a request without a caller, and takes tokens of the store where the host names none", async () => {
    const api = open();
    const none = await ask(api, "GET", "/api/v1/sessions", { caller: null });
    expect(await codeOf(none)).toEqual([401, "UNAUTHENTICATED"]);
    const anonymous = await ask(api, "GET", "/api/v1/sessions", { caller: undefined });
    expect(await codeOf(anonymous)).toEqual([401, "UNAUTHENTICATED"]);
    const body = JSON.stringify({ namespace: "", agents: "*", scopes: ["read"] });
    const made = await ask(api, "POST", "/api/v1/admin/tokens", { body });
    const { secret } = (await made.json()) as { readonly secret: string };
    const headers = { authorization: `Bearer ${secret}` };
    expect((await ask(api, "GET", "/api/v1/sessions", { caller: undefined, headers })).status).toBe(200);
  });

  it("fails for a caller whose id could forge a line of the log", async () => {
    const warned: string[] = [];
    const api = open({ log: { write: (line) => void warned.push(line) } });
    const response = await ask(api, "GET", "/api/v1/sessions", { caller: { ...ada, id: "a\nb" } });
    expect(await codeOf(response)).toEqual([500, "INTERNAL"]);
    expect(warned.join("")).toContain("A request failed.");
  });

  it("refuses other hosts and origins", async () => {
    const api = open({ allowedHosts: ["api.example"] });
    const caller = { caller: ada };
    expect((await api.fetch(new Request("https://api.example/api/v1/sessions"), caller)).status).toBe(200);
    expect((await api.fetch(new Request("https://evil.example/api/v1/sessions"), caller)).status).toBe(421);
    const foreign = await ask(api, "GET", "/api/v1/sessions", { headers: { origin: "https://evil.example" } });
    expect(await codeOf(foreign)).toEqual([403, "ORIGIN_REFUSED"]);
  });

  it("answers probes, HEAD and unknown paths", async () => {
    const api = open();
    expect(await (await ask(api, "GET", "/readyz")).text()).toBe("ready\n");
    const head = await ask(api, "HEAD", "/healthz");
    expect([head.status, head.body]).toEqual([200, null]);
    expect(await codeOf(await ask(api, "GET", "/elsewhere"))).toEqual([404, "ROUTE_NOT_FOUND"]);
  });
});

describe("bodies through fetch", () => {
  it("reads no more of a body than its limit", async () => {
    const api = open({ limits: { bodyBytes: 1024 * 1024 } });
    await ask(api, "PUT", "/api/v1/sessions/notes", { body: "{}" });
    const sent = pieces(1000, new Uint8Array(64 * 1024).fill(0x20));
    const response = await ask(api, "POST", "/api/v1/sessions/notes/records", { body: sent.body });
    expect(await codeOf(response)).toEqual([413, "REQUEST_TOO_LARGE"]);
    expect(sent.read).toBeLessThan(20);
  });

  it("reads no body of a request that the checks refuse", async () => {
    const api = open();
    const sent = pieces(1000, new Uint8Array(64 * 1024));
    const response = await ask(api, "POST", "/api/v1/sessions/notes/records", { body: sent.body, caller: null });
    expect([response.status, sent.read]).toEqual([401, 0]);
  });

  it("refuses bodies beyond the budget with 503 and retry-after", async () => {
    const api = open({ limits: { inFlightBytesPerToken: 1024 * 1024 } });
    await ask(api, "PUT", "/api/v1/sessions/notes", { body: "{}" });
    let release = (): void => {};
    const held = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(new Uint8Array(900 * 1024).fill(0x20));
        release = () => {
          controller.enqueue(new TextEncoder().encode(note));
          controller.close();
        };
      },
    });
    const first = ask(api, "POST", "/api/v1/sessions/notes/records", { body: held });
    const body = `${" ".repeat(300 * 1024)}${note}`;
    const again = (): Promise<Response> => ask(api, "POST", "/api/v1/sessions/notes/records", { body });
    let second = await again();
    // The first body is counted once it was read.
    while (second.status === 201) second = await again();
    expect(second.headers.get("retry-after")).toBe("1");
    expect(await codeOf(second)).toEqual([503, "STORE_OVERLOADED"]);
    release();
    expect((await first).status).toBe(201);
    expect((await again()).status).toBe(201);
  });

  it("leaves a body to its other readers", async () => {
    const api = open();
    await ask(api, "PUT", "/api/v1/sessions/notes", { body: "{}" });
    const request = new Request("http://localhost/api/v1/sessions/notes/records", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: new ReadableStream<Uint8Array>({
        start(controller) {
          for (const byte of new TextEncoder().encode(note)) controller.enqueue(new Uint8Array([byte]));
          controller.close();
        },
      }),
      duplex: "half",
    } as RequestInit);
    const copy = request.clone();
    expect((await api.fetch(request, { caller: ada })).status).toBe(201);
    expect(await copy.text()).toBe(note);
  });

  it("names the mistake when the host has read the body", async () => {
    const api = open();
    const request = new Request("http://localhost/api/v1/sessions/notes", {
      method: "PUT",
      headers: { "content-type": "application/json" },
      body: "{}",
    });
    await request.text();
    const response = await api.fetch(request, { caller: ada });
    expect(response.status).toBe(500);
    expect(await response.json()).toMatchObject({
      code: "CONFIG_INVALID",
      remedy: "Mount the session API before the middleware that reads bodies, such as express.json().",
    });
  });

  it("survives a body that breaks off", async () => {
    const api = open();
    await ask(api, "PUT", "/api/v1/sessions/notes", { body: "{}" });
    const broken = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(new Uint8Array(100).fill(0x20));
      },
      pull(controller) {
        controller.error(new Error("The connection broke."));
      },
    });
    await ask(api, "POST", "/api/v1/sessions/notes/records", { body: broken });
    const listed = await ask(api, "GET", "/api/v1/sessions/notes/records");
    expect(await listed.json()).toMatchObject({ count: 0 });
  });
});

async function* textOf(response: Response): AsyncGenerator<string, void, void> {
  for await (const piece of response.body ?? []) yield new TextDecoder().decode(piece);
}

describe("streams through fetch", () => {
  const sessionOf = async (api: SessionApi, records: number, text: string): Promise<void> => {
    await ask(api, "PUT", "/api/v1/sessions/notes", { body: "{}" });
    for (let index = 0; index < records; index++) {
      const body = JSON.stringify({ drafts: [{ type: "note", text }] });
      expect((await ask(api, "POST", "/api/v1/sessions/notes/records", { body })).status).toBe(201);
    }
  };

  it("follows a session, and ends with bye when the API closes", async () => {
    const api = open({ store: createSqliteStore({ path: `${testFolder(quickFolder())}/sessions.db` }) });
    await sessionOf(api, 1, "first");
    const response = await ask(api, "GET", "/api/v1/sessions/notes/events?after=0");
    const events = textOf(response);
    let seen = "";
    for await (const text of events) {
      seen += text;
      if (seen.includes("event: record")) break;
    }
    expect(seen).toContain("event: hello");
    const last = await ask(api, "GET", "/api/v1/sessions/notes/events");
    await api.close();
    expect(await last.text()).toContain("event: bye");
    const refused = await ask(api, "GET", "/api/v1/sessions");
    expect(refused.headers.get("retry-after")).toBe("1");
    expect(await codeOf(refused)).toEqual([503, "SERVER_DRAINING"]);
  });

  it("stops reading the store while nobody reads the answer, and when the reader leaves", async () => {
    const store = createMemoryStore();
    let read = 0;
    const counted = replaceMembers(store, {
      async *read(...given) {
        for await (const page of store.read(...given)) {
          read += page.records.length;
          yield page;
        }
      },
    });
    const api = open({ store: counted });
    await ask(api, "PUT", "/api/v1/sessions/notes", { body: "{}" });
    const drafts = Array.from({ length: 100 }, () => ({ type: "note", text: "x".repeat(recordBytes) }));
    for (let batch = 0; batch < 20; batch++)
      await (await ask(api, "POST", "/api/v1/sessions/notes/records", { body: JSON.stringify({ drafts }) })).text();
    read = 0;
    const response = await ask(api, "GET", "/api/v1/sessions/notes/export");
    const reader = response.body?.getReader();
    let sent = 0;
    let most = 0;
    for (
      let piece = await reader?.read();
      piece?.done === false && sent < 1000 * recordBytes;
      piece = await reader?.read()
    ) {
      sent += piece.value.length;
      most = Math.max(most, read * recordBytes - sent);
    }
    // The store gives pages of 500 records; the rest is what the answer holds.
    expect(most).toBeLessThan(600 * recordBytes);
    await reader?.cancel();
    await api.close();
    expect(read).toBeLessThan(2000);
  });

  it("cuts an answer off that nobody reads", async () => {
    const api = open({ limits: { bodyMs: 50 } });
    await sessionOf(api, 5, "x".repeat(100_000));
    const response = await ask(api, "GET", "/api/v1/sessions/notes/export");
    // It waits for the answers that run, which this one does until it is cut off.
    await api.close();
    await expect(response.text()).rejects.toThrow("The answer was ended before it was whole.");
  });

  it("ends with `gone` when its token is revoked", { tags: ["slow"] }, async () => {
    const api = open({ store: createSqliteStore({ path: `${testFolder(quickFolder())}/sessions.db` }) });
    await sessionOf(api, 1, "first");
    const body = JSON.stringify({ namespace: "", agents: "*", scopes: ["read"] });
    const made = await ask(api, "POST", "/api/v1/admin/tokens", { body });
    const { id, secret } = (await made.json()) as { readonly id: string; readonly secret: string };
    const headers = { authorization: `Bearer ${secret}` };
    const response = await ask(api, "GET", "/api/v1/sessions/notes/events", { caller: undefined, headers });
    expect((await ask(api, "DELETE", `/api/v1/admin/tokens/${id}`)).status).toBe(200);
    expect(await response.text()).toContain('event: gone\ndata: {"code":"UNAUTHENTICATED"');
  });

  it("ends the work of a request whose client has gone", async () => {
    const api = open({ store: createSqliteStore({ path: `${testFolder(quickFolder())}/sessions.db` }) });
    await sessionOf(api, 1, "first");
    const leaving = new AbortController();
    const response = await ask(api, "GET", "/api/v1/sessions/notes/events", { signal: leaving.signal });
    const text = response.text();
    leaving.abort();
    await expect(text).rejects.toThrow();
    // No open answer holds the API.
    await api.close();
  });
});

describe("GET context of a session with files", () => {
  it("has their bytes within the limits of the provider, and says what it left out", async () => {
    const store = createMemoryStore();
    const api = open({ store });
    const ref = sessionRef({ key: "agent:main:main" });
    const put = async (content: Uint8Array): Promise<string> =>
      (await store.files!.put({ namespace: "", agentId: "main" }, new Blob([Uint8Array.from(content)]).stream())).id;
    const pdf = Buffer.from("%PDF-1.7\nreport");
    const file = (fileId: string, name: string, more = {}): object => ({ type: "file", fileId, name, ...more });
    await openSession(store, ref);
    const content = [
      file(await put(pdf), "report.pdf", { mediaType: "application/pdf" }),
      file(await put(Buffer.from("film")), "film.mp4", { mediaType: "video/mp4" }),
      file("0".repeat(64), "gone.pdf", { mediaType: "application/pdf" }),
    ];
    await store.append(ref, [{ type: "message", message: { role: "user", content } }]);
    const asked = async (
      query: string,
    ): Promise<{ readonly messages: unknown; readonly repairs: readonly unknown[] }> =>
      (await (await ask(api, "GET", `/api/v1/sessions/agent:main:main/context${query}`)).json()) as never;
    const { messages, repairs } = await asked("?provider=anthropic");
    const text = JSON.stringify(messages);
    expect(text).toContain(pdf.toString("base64"));
    expect(text).toContain("[file film.mp4, video/mp4: not sent: the provider takes no video/mp4]");
    expect(text).toContain("[file gone.pdf, application/pdf: not sent: the store does not have it, or it is damaged]");
    expect(repairs).toHaveLength(2);
    expect(JSON.stringify((await asked("")).messages)).not.toContain(pdf.toString("base64"));
  });
});
