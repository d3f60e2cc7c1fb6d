import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { answerOf, connectTo, headOf, sendRaw } from "./raw-socket.ts";
import { document, serve, type Answered, type Serving } from "./serving.ts";
import { foreignHost, itOfBytes, itOfOurs } from "./start-server.ts";

let serving: Serving;
let bearer = "";
beforeAll(async () => {
  serving = await serve();
  bearer = `authorization: Bearer ${serving.token}`;
  await serving.begin("notes");
});
afterAll(() => serving.close());

const json = "content-type: application/json";
const records = "/api/v1/sessions/notes/records";
const note = '{"drafts":[{"type":"note"}]}';
const codeOf = ({ status, body }: Answered): readonly unknown[] => [status, body["code"]];
const send = async (bytes: string, quietMs = 120): Promise<readonly unknown[]> =>
  answerOf(await sendRaw(serving.url, bytes, quietMs));
const countOf = async (key: string): Promise<unknown> =>
  (await serving.ask("GET", `/sessions/${key}/records`)).body["count"];

describe("headers in other spellings", () => {
  it("row 1: takes a token from one authorization line only", { tags: ["slow"] }, async () => {
    const ask = (...lines: readonly string[]): Promise<readonly unknown[]> =>
      send(headOf("GET", "/api/v1/store", lines));
    for (const lines of [
      [bearer, "authorization: Bearer x"],
      ["Authorization: Basic eA==", bearer],
      [`${bearer}, Basic eA==`],
      [bearer.replace("Bearer ", "Bearer\t")],
    ])
      expect([lines[0]?.length, await ask(...lines)]).toEqual([lines[0]?.length, [401, "UNAUTHENTICATED"]]);
    expect(await ask(bearer.replace("Bearer", "bEARER"))).toEqual([200, undefined]);
  });

  it(
    "rows 7 and 9: refuses what a browser calls cross-site, also with an origin of the server's name",
    { tags: ["slow"] },
    async () => {
      const ask = (...lines: readonly string[]): Promise<readonly unknown[]> =>
        send(headOf("GET", "/api/v1/store", [bearer, ...lines]));
      for (const lines of [
        ["origin: http://localhost", "sec-fetch-site: cross-site"],
        ["origin: http://localhost", "sec-fetch-site: same-origin", "sec-fetch-site: cross-site"],
        ["origin: http://localhost", "origin: https://evil.example"],
        ["ORIGIN: http://localhost:3000"],
        ["origin: http://localhost@evil.example"],
        ["origin:"],
        ["sec-fetch-site:"],
      ])
        expect([lines, await ask(...lines)]).toEqual([lines, [403, "ORIGIN_REFUSED"]]);
      expect(await ask("origin: http://localhost", "sec-fetch-site: same-origin")).toEqual([200, undefined]);
    },
  );

  itOfBytes.each([
    "localhost.",
    "127.1",
    "2130706433",
    "[::ffff:127.0.0.1]",
    "localhost:",
    "localhost,evil.example",
    "",
    "a b",
  ])("row 6: refuses the host %j", async (host) => {
    expect(await send(headOf("GET", "/api/v1/store", [bearer], host))).toEqual([421, "HOST_REFUSED"]);
  });

  itOfBytes.each([
    ["/api/v1/%73tore", 404],
    ["//api/v1/store", 404],
    ["/api/v1/store/", 404],
    ["/api/v1/./store", 404],
    ["/API/v1/store", 404],
    ["/healthz/../api/v1/store", 404],
    ["/inspect%2f..%2fserver.json", 404],
    ["/api/v1/sessions/%c0%ae%c0%ae", 400],
    ["/api/v1/sessions/%ed%a0%80", 400],
    ["/api/v1/sessions/~bm90ZXM=", 400],
    ["/api/v1/sessions/notes%2frecords", 404],
    ["/api/v1/sessions/notes?archive=..%2f..%2fx", 404],
    ["/api/v1/sessions/notes?agent=..%2fx", 404],
    ["/api/v1/sessions?limit=1&limit=2", 400],
  ])("row 14: answers the path %s with %i", async (path, status) => {
    expect((await send(headOf("GET", path, [bearer])))[0]).toBe(status);
  });
});

describe("bodies in other framings", () => {
  itOfOurs("row 16: asks for a body only where the request may pass", { tags: ["slow"] }, async () => {
    const waiting = "expect: 100-continue";
    const large = await sendRaw(
      serving.url,
      headOf("POST", records, [bearer, json, waiting, "content-length: 99999999999"]),
      1500,
    );
    expect([answerOf(large), large.isClosed]).toEqual([[413, "REQUEST_TOO_LARGE"], true]);
    const lines = [json, waiting, `content-length: ${note.length}`];
    const nobody = await sendRaw(serving.url, headOf("POST", records, lines), 1500);
    expect([answerOf(nobody), nobody.isClosed]).toEqual([[401, "UNAUTHENTICATED"], true]);
    const { text } = await sendRaw(serving.url, headOf("POST", records, [bearer, ...lines]) + note, 200);
    expect(Array.from(text.matchAll(/^HTTP\/1\.1 (\d+)/gm), ([, status]) => status)).toEqual(["100", "201"]);
  });

  itOfOurs("row 20: never answers a request with the refusal of what follows it", async () => {
    await serving.begin("followed");
    const before = Number(await countOf("followed"));
    const path = "/api/v1/sessions/followed/records";
    const { text, isClosed } = await sendRaw(
      serving.url,
      `${headOf("POST", path, [bearer, json, `content-length: ${note.length}`])}${note}garbage\r\n\r\n`,
      1000,
    );
    expect([isClosed, /^(HTTP\/1\.1 201|$)/.test(text)]).toEqual([true, true]);
    await expect.poll(() => countOf("followed")).toBe(before + 1);
    const stream = await sendRaw(
      serving.url,
      `${headOf("GET", "/api/v1/sessions/notes/events", [bearer])}garbage\r\n\r\n`,
    );
    expect([stream.isClosed, stream.text.includes("INPUT_INVALID")]).toEqual([true, false]);
  });

  it.each([
    ["gzip, chunked", 415],
    ["chunked, gzip", 400],
    ["xchunked", 400],
    ["Chunked", 201],
  ])("rows 20 and 23: answers the transfer encoding %s with %i", async (encoding, status) => {
    const lines = [bearer, json, `transfer-encoding: ${encoding}`];
    const body = `${note.length.toString(16)}\r\n${note}\r\n0\r\nauthorization: Bearer x\r\n\r\n`;
    expect((await send(headOf("POST", records, lines) + body))[0]).toBe(status);
  });

  const mebibytes = 36 * 1024 * 1024;
  it.each([
    ["12 million objects", "application/json", `{"drafts":[${"{},".repeat(12_000_000)}{}]}`, 413],
    ["12 million lines", "application/x-ndjson", "{}\n".repeat(12_000_000), 413],
    ["empty lines", "application/x-ndjson", "\n".repeat(mebibytes), 413],
    ["100,001 records", "application/json", `{"drafts":[${"1,".repeat(100_000)}1]}`, 413],
  ])("row 21: refuses %s", async (_name, type, body, status) => {
    const { status: answered } = await serving.ask("POST", "/sessions/notes/records", {
      body,
      headers: { "content-type": type },
    });
    expect(answered).toBe(status);
  });

  it("row 21: counts the levels of a merge patch as well", async () => {
    const headers = { "content-type": "application/merge-patch+json" };
    const body = `{"a":${"[".repeat(100_000)}${"]".repeat(100_000)}}`;
    expect(codeOf(await serving.ask("PATCH", "/sessions/notes/entry", { body, headers }))).toEqual([
      400,
      "INPUT_INVALID",
    ]);
    const small = await serving.ask("PATCH", "/sessions/notes/entry", { body: { a: [[1]] }, headers });
    expect(small.status).toBe(200);
  });

  it("row 24: closes the connection of a client that does not read its answer", { tags: ["slow"] }, async () => {
    // Hono prints a line for each answer that is cut off.
    if (foreignHost === "hono") vi.spyOn(console, "info").mockReturnValue();
    const impatient = await serve({ limits: { bodyMs: 1000 } });
    const text = "x".repeat(2_000_000);
    for (let count = 0; count < 8; count++) await impatient.begin("long", [{ type: "note", text }]);
    const socket = connectTo(impatient.url);
    let [isClosed, bytes] = [false, 0];
    socket.on("close", () => (isClosed = true));
    socket.write(headOf("GET", "/api/v1/sessions/long/export", [`authorization: Bearer ${impatient.token}`]));
    const pause = (): void => void socket.pause();
    socket.once("data", pause);
    const ended = (): boolean => impatient.log().includes("/export");
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(ended()).toBe(false);
    await expect.poll(ended).toBe(true);
    socket.on("data", ({ length }) => (bytes += length)).resume();
    await expect.poll(() => isClosed).toBe(true);
    expect(bytes).toBeLessThan(8 * text.length);
    // Who reads gets the file whole, and the next answer on the same connection.
    for (let count = 0; count < 2; count++)
      expect((await impatient.ask("GET", "/sessions/long/export")).text.length).toBeGreaterThan(8 * text.length);
    await impatient.close();
  });
});

describe("what belongs to others", () => {
  const queries: Readonly<Record<string, string>> = {
    appendMessages: "?api=openai",
    listBranches: "?record=r1",
    removePartial: "?fence=1",
  };
  /** A body that each operation takes. */
  const bodies: Readonly<Record<string, object>> = {
    appendRecords: { drafts: [{ type: "note" }] },
    appendMessages: { messages: [{ role: "user", content: "x" }] },
    openTurn: { owner: "thief" },
    renameSession: { key: "stolen" },
    forkSession: { key: "stolen", sessionId: "stolen-id" },
    resetSession: { sessionId: "reset-id" },
    rewindSession: { to: null },
    switchBranch: { to: "r1" },
    decideApproval: { callId: "x", decision: "approve" },
    redactRecords: { ids: ["r1"], reason: "x" },
    findSharers: { seqs: [1] },
    changeEntry: { label: "x" },
    putVectors: { model: "m", mark: "x", fromSeq: 1, toSeq: 1, resumeSeq: 2, vectors: [] },
    replaceEntry: { sessionId: "x" },
    closeTurn: {},
    putPartial: {
      v: 1,
      sessionId: "x",
      turnId: "t",
      fence: 1,
      step: 1,
      attempt: 0,
      afterSeq: 1,
      provider: null,
      api: null,
      model: null,
      text: "x",
      updatedMs: 1,
    },
  };
  /** Beside those that make a session where there is none. */
  const making: ReadonlySet<string> = new Set(["createSession"]);

  it("row 12: every operation on another's session answers as for one that is not there", async () => {
    await serving.begin("agent:work:plans", [
      { id: "r1", type: "message", message: { role: "user", content: "secret" } },
    ]);
    const scopes = ["read", "write", "delete"] as const;
    const tokens = [
      await serving.tokenOf({ namespace: "", agents: ["main"], scopes }),
      await serving.tokenOf({ namespace: "b", scopes }),
    ];
    const differing: unknown[] = [];
    const statuses = new Set<unknown>();
    let tried = 0;
    for (const [path, methods] of Object.entries(document.paths))
      for (const [method, { operationId }] of Object.entries(methods)) {
        if (!path.includes("{session}") || making.has(operationId)) continue;
        tried += 1;
        const below = path
          .replace(/^.*\{session\}/, "")
          .replace("{fence}", "1")
          .replace("{id}", "r1");
        const query = queries[operationId] ?? "";
        const body = bodies[operationId];
        const headers = {
          "throughline-request-id": "same",
          ...(operationId === "replaceEntry" ? { "if-match": '"1"' } : {}),
        };
        for (const token of tokens) {
          const ask = async (key: string): Promise<readonly unknown[]> => {
            const options = { token, headers, ...(body === undefined ? {} : { body }) };
            const { status, text } = await serving.ask(
              method.toUpperCase(),
              `/sessions/${key}${below}${query}`,
              options,
            );
            return [status, text.replaceAll(/plans|nobody/g, "KEY")];
          };
          const [other, none] = [await ask("agent:work:plans"), await ask("agent:work:nobody")];
          statuses.add(other[0] === 404 ? 404 : `${operationId} ${String(other[0])}`);
          if (JSON.stringify(other) !== JSON.stringify(none)) differing.push([operationId, other, none]);
        }
      }
    expect([differing, tried > 30, statuses]).toEqual([
      [],
      true,
      new Set([404, "replaceEntry 412", "removePartial 200", "putVectors 200"]),
    ]);
    const untouched = await serving.ask("GET", "/sessions/agent:work:plans/records");
    expect([untouched.body["count"], untouched.text.includes("secret")]).toEqual([1, true]);
  });

  it("row 12: ids of another's session lead nowhere: events, pages, archives, searches, forks", async () => {
    await serving.begin("agent:work:private", [
      { id: "p1", type: "message", message: { role: "user", content: "harbour" } },
    ]);
    const mine = await serving.tokenOf({ namespace: "b", scopes: ["read", "write", "delete"] });
    await serving.begin("own", [{ type: "note" }], mine);
    const { sessionId: id } = (await serving.ask("GET", "/sessions/agent:work:private")).body as {
      readonly sessionId: string;
    };
    const ask = (path: string, options: object = {}): Promise<Answered> =>
      serving.ask("GET", path, { token: mine, ...options });
    expect((await ask(`/sessions/own/records?session=${id}`)).status).toBe(404);
    expect((await ask(`/sessions/own?archive=${id}`)).status).toBe(404);
    expect((await ask(`/sessions/own/export?archive=${id}`)).status).toBe(404);
    expect((await ask("/sessions/own/records?ids=p1")).status).toBe(404);
    expect((await ask("/sessions/own/records/p1")).status).toBe(404);
    expect((await ask(`/search?q=harbour&sessionId=${id}`)).body["count"]).toBe(0);
    expect((await ask("/search?q=harbour&agent=work")).body["count"]).toBe(0);
    expect((await ask(`/resolve?q=${id}`)).body["count"]).toBe(0);
    expect((await ask("/events?session=own,agent:work:private")).status).toBe(404);
    for (const [path, headers] of [
      ["/sessions/own/events", { "last-event-id": `${id}/1` }],
      [`/sessions/own/events?session=${id}`, {}],
    ] as const) {
      const stream = await ask(path, { headers });
      expect([stream.status, stream.text]).toEqual([
        200,
        expect.stringMatching(/^event: gone\ndata: \{"code":"SESSION_REPLACED"/),
      ]);
      expect(stream.text).not.toContain(id);
    }
    // The id is free where it is not seen, and names another session.
    const body = { key: "forked", sessionId: id };
    const forked = await serving.ask("POST", "/sessions/own/fork", { token: mine, body });
    expect([forked.status, forked.body["recordCount"]]).toEqual([201, 1]);
  });

  it("row 26: a cursor is of one namespace, also for a token of all", async () => {
    for (let index = 0; index < 3; index++) await serving.begin(`many-${index}`);
    const list = (query: string, headers: Record<string, string> = {}): Promise<Answered> =>
      serving.ask("GET", `/sessions?sort=key&prefix=many-&limit=1${query}`, { headers });
    const cursor = String((await list("")).body["nextCursor"]);
    for (const spelled of [cursor, encodeURIComponent(cursor)])
      expect((await list(`&cursor=${spelled}`)).status).toBe(200);
    for (const [query, headers] of [
      [`&cursor=${cursor}`, { "throughline-namespace": "b" }],
      [`&cursor=${cursor}=`, {}],
      [`&cursor=${cursor}%20`, {}],
      [`&cursor=`, {}],
      [`&agent=main&cursor=${cursor}`, {}],
      [`&state=any&cursor=${cursor}`, {}],
    ] as const)
      expect([query.length, ...codeOf(await list(query, headers))]).toEqual([query.length, 400, "CURSOR_INVALID"]);
  });

  it("gives a tenant no scope of what all share", async () => {
    const tenant = await serving.tokenOf({ namespace: "b", scopes: ["read", "admin"] });
    const operator = await serving.tokenOf({ namespace: "b", scopes: ["metrics", "admin"] });
    const make = async (token: string, scope: string): Promise<readonly unknown[]> => {
      const made = await serving.ask("POST", "/admin/tokens", { token, body: { scopes: ["read", scope] } });
      return [made.status, (made.body["details"] as { readonly needs?: string } | undefined)?.needs];
    };
    for (const scope of ["metrics", "gateway:anthropic", "gateway:manage"])
      expect(await make(tenant, scope)).toEqual([403, scope]);
    expect(await make(tenant, "delete")).toEqual([201, undefined]);
    expect(await make(operator, "metrics")).toEqual([201, undefined]);
    expect(await make(serving.token, "gateway:anthropic")).toEqual([201, undefined]);
  });

  it("lets nobody fill the audit log with calls that are refused", async () => {
    const slow = await serve({ limits: { requestsPerMinute: 60, requestBurst: 5 } });
    const reader = await slow.tokenOf({ scopes: ["read"] });
    const statuses: number[] = [];
    for (let count = 0; count < 8; count++)
      statuses.push((await slow.ask("POST", "/admin/drain", { token: reader })).status);
    expect(statuses).toEqual([403, 403, 403, 403, 403, 429, 429, 429]);
    const { body } = await slow.ask("GET", "/admin/audit");
    expect(body["count"]).toBe(5);
    await slow.close();
  });
});
