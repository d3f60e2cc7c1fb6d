import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { apiDocument, referencePage } from "@throughline/http-api/internal";
import { isSame } from "../../../tools/check-openapi.ts";
import { askSearch } from "./ask-search.ts";
import { answeredOperations, document, serve, type Answered, type Serving } from "./serving.ts";

let serving: Serving;
beforeAll(async () => {
  serving = await serve();
});
afterAll(() => serving.close());

const page = (name: string): string => readFileSync(join(import.meta.dirname, "../../../docs", name), "utf8");
const message = (role: string, content: unknown, more: object = {}): object => ({
  type: "message",
  message: { role, content, ...more },
});

async function begin(key: string, drafts: readonly object[] = []): Promise<string> {
  const { status } = await serving.ask("PUT", `/sessions/${key}`, { body: {} });
  expect(status).toBe(201);
  if (drafts.length > 0) expect((await append(key, drafts)).status).toBe(201);
  return key;
}

function append(
  key: string,
  drafts: readonly object[],
  headers: Readonly<Record<string, string>> = {},
): Promise<Answered> {
  return serving.ask("POST", `/sessions/${key}/records`, { body: { drafts }, headers });
}

describe("the document", () => {
  // `node --conditions=@throughline/source tools/check-openapi.ts --write` brings both up to date.
  it("is as the schemas have it, and so is the page made of it", () => {
    const made = apiDocument();
    expect(isSame("openapi.json", page("openapi.json"), JSON.stringify(made))).toBe(true);
    expect(page("http.md")).toBe(referencePage(made));
  });

  it("lets generated clients send what they like in an open object, and read lists as lines", () => {
    const closed: string[] = [];
    const walk = (value: unknown, path: string): void => {
      if (typeof value !== "object" || value === null) return;
      const { type, properties, additionalProperties } = value as Readonly<Record<string, unknown>>;
      if (type === "object" && properties === undefined && additionalProperties === undefined) closed.push(path);
      for (const [name, inner] of Object.entries(value)) walk(inner, `${path}/${name}`);
    };
    walk(document, "");
    expect(closed).toEqual([]);
    const lists = Object.values(document.paths)
      .flatMap((methods) => Object.values(methods))
      .filter(({ responses }) => Object.hasOwn(responses["200"]?.content ?? {}, "application/x-ndjson"));
    expect(lists.map(({ operationId }) => operationId)).toEqual(
      expect.arrayContaining(["listSessions", "listRecords", "search", "listFindings"]),
    );
  });

  it("states numbers, flags and forms of parameters", () => {
    interface Parameter {
      readonly name: string;
      readonly schema: Readonly<Record<string, unknown>>;
    }
    const ofRoute = (path: string, method: string): readonly Parameter[] => {
      const operation: unknown = document.paths[`/api/v1${path}`]?.[method];
      return (operation as { readonly parameters: readonly Parameter[] }).parameters;
    };
    const schemaOf = (path: string, method: string, name: string): unknown =>
      ofRoute(path, method).find((parameter) => parameter.name === name)?.schema;
    expect(schemaOf("/sessions", "get", "entry")).toEqual({ type: "boolean" });
    expect(schemaOf("/sessions", "get", "limit")).toMatchObject({ type: "integer", minimum: 1 });
    const keyed = schemaOf("/sessions/{session}/turns", "post", "idempotency-key");
    expect(keyed).toMatchObject({ pattern: "^[!-~]{1,200}$" });
    const fenced = schemaOf("/sessions/{session}/turns/{fence}/close", "post", "fence");
    expect(fenced).toMatchObject({ pattern: "^[0-9]{1,15}$" });
  });

  it("is what the server gives", async () => {
    const { status, body } = await serving.ask("GET", "/openapi.json");
    expect([status, body]).toEqual([200, JSON.parse(page("openapi.json"))]);
  });
});

describe("a turn", () => {
  it("goes by lease, context, reply and close", async () => {
    const key = await begin("talk");
    const opened = await serving.ask("POST", `/sessions/${key}/turns`, {
      body: { owner: "curl", drafts: [message("user", "hello")] },
    });
    expect([opened.status, opened.body]).toMatchObject([201, { kind: "lease", fence: 1, replayed: false }]);
    const context = await serving.ask("GET", `/sessions/${key}/context?provider=anthropic`);
    expect(context.body).toMatchObject({ provider: "anthropic", messages: [{ role: "user" }], repairs: [] });
    // Who does not hold the turn writes no message.
    const other = await append(key, [message("user", "me too")]);
    expect([other.status, other.body["code"]]).toEqual([409, "SESSION_BUSY"]);
    expect((await append(key, [message("assistant", [])], { "throughline-fence": "1" })).status).toBe(201);
    const renewed = await serving.ask("POST", `/sessions/${key}/turns/1/renew`, { body: { leaseMs: 60_000 } });
    expect(renewed.body).toMatchObject({ fence: 1, leaseUntilMs: expect.any(Number) });
    const closed = await serving.ask("POST", `/sessions/${key}/turns/1/close`, {
      body: { drafts: [message("assistant", [{ type: "text", text: "hi" }])], entry: { label: "Talk" } },
      headers: { "idempotency-key": "close-1" },
    });
    expect(closed.body).toMatchObject({
      fence: 1,
      leaseUntilMs: null,
      ids: [expect.any(String)],
      head: { turn: null },
    });
    const { body } = await serving.ask("GET", `/sessions/${key}`);
    // With the marks where the turn begins and ends.
    expect(body).toMatchObject({ label: "Talk", messageCount: 3, head: { fence: 1, turn: null, lastSeq: 5 } });
  });

  it("is refused while another runs, names that one, and is waited for", async () => {
    const key = await begin("busy");
    const open = (more: object = {}): Promise<Answered> =>
      serving.ask("POST", `/sessions/${key}/turns`, { body: { owner: "b", ...more } });
    const first = await serving.ask("POST", `/sessions/${key}/turns`, { body: { owner: "a", leaseMs: 60_000 } });
    expect(await open()).toMatchObject({
      status: 409,
      body: { code: "SESSION_BUSY", details: { turn: { owner: "a" } } },
    });
    expect((await open({ whenBusy: "wait", waitMs: 100 })).status).toBe(409);
    const waiting = open({ whenBusy: "wait", waitMs: 20_000 });
    await serving.ask("POST", `/sessions/${key}/turns/${String(first.body["fence"])}/close`, { body: {} });
    expect(await waiting).toMatchObject({ status: 201, body: { fence: 2 } });
    const late = await serving.ask("POST", `/sessions/${key}/turns/1/close`, { body: {} });
    expect([late.status, late.body["code"]]).toEqual([409, "TURN_FENCED"]);
    expect((await serving.ask("POST", `/sessions/${key}/turns/1/renew`)).status).toBe(409);
    expect((await serving.ask("POST", `/sessions/${key}/turns/x/renew`)).status).toBe(400);
  });

  it("may be asked for again when the answer was lost", async () => {
    const key = await begin("again");
    const body = { owner: "a", turnId: "t-1", drafts: [message("user", "once")] };
    const headers = { "idempotency-key": "open-1" };
    const [first, second] = [
      await serving.ask("POST", `/sessions/${key}/turns`, { body, headers }),
      await serving.ask("POST", `/sessions/${key}/turns`, { body, headers }),
    ];
    expect([second.status, second.body["fence"], second.body["replayed"]]).toEqual([201, first.body["fence"], true]);
    expect((await serving.ask("GET", `/sessions/${key}/records?role=user`)).body["count"]).toBe(1);
  });
});

describe("reading", () => {
  it("gives one record by id and by seq, its line as it is kept", async () => {
    const key = await begin("one", [{ id: "r1", ...message("user", "first") }]);
    const byId = await serving.ask("GET", `/sessions/${key}/records/r1`);
    expect(byId.body).toMatchObject({ kind: "record", seq: 1, record: { message: { content: "first" } } });
    expect((await serving.ask("GET", `/sessions/${key}/records/1`)).text).toBe(byId.text);
    expect((await serving.ask("GET", `/sessions/${key}/records/nothing`)).body["code"]).toBe("RECORD_NOT_FOUND");
  });

  it("counts, resolves and diagnoses", async () => {
    await begin("agent:main:cli:direct:harbour", [message("user", "lights")]);
    expect((await serving.ask("GET", "/stats")).body).toMatchObject({ kind: "stats", agents: 1 });
    const found = await serving.ask("GET", "/resolve?q=agent%3Amain%3Acli%3Adirect%3Aharb");
    expect(found.body).toMatchObject({ count: 1, items: [{ key: "agent:main:cli:direct:harbour" }] });
    expect((await serving.ask("GET", "/resolve?q=nobody")).body).toMatchObject({ count: 0 });
    const error = { status: 400, message: "prompt is too long: 210000 tokens > 200000 maximum" };
    const diagnosis = await serving.ask("POST", "/diagnose?provider=anthropic", { body: error });
    expect(diagnosis.body).toMatchObject({ overflow: true, inputTokens: 210_000, limitTokens: 200_000 });
  });

  it("lists calls and checkpoints, of which a new session has none", async () => {
    const key = await begin("calls", [message("user", "x")]);
    expect((await serving.ask("GET", `/sessions/${key}/calls`)).body).toMatchObject({ items: [] });
    expect((await serving.ask("GET", `/sessions/${key}/calls/none`)).body["code"]).toBe("RECORD_NOT_FOUND");
    expect((await serving.ask("GET", `/sessions/${key}/checkpoints`)).body).toMatchObject({ items: [] });
    expect((await serving.ask("GET", "/sessions/nobody/checkpoints")).body["code"]).toBe("SESSION_NOT_FOUND");
    expect((await serving.ask("GET", "/sessions/nobody/context")).body["code"]).toBe("SESSION_NOT_FOUND");
  });

  it("gives a list as the command line prints it", async () => {
    const key = await begin("lines", [message("user", "x")]);
    const { text } = await serving.ask("GET", `/sessions/${key}/records`, {
      headers: { accept: "application/x-ndjson" },
    });
    const [record, end, rest] = text.split("\n");
    expect([JSON.parse(record ?? ""), JSON.parse(end ?? ""), rest]).toMatchObject([
      { kind: "record", seq: 1 },
      { kind: "end", count: 1, nextCursor: null },
      "",
    ]);
  });
});

describe("ways back", () => {
  it("resets with the id that the caller chose, once", async () => {
    const key = await begin("reset", [message("user", "old")]);
    const body = { sessionId: "chosen-id" };
    const first = await serving.ask("POST", `/sessions/${key}/reset`, { body });
    expect([first.status, first.body]).toMatchObject([201, { sessionId: "chosen-id", recordCount: 0 }]);
    const again = await serving.ask("POST", `/sessions/${key}/reset`, { body });
    expect([again.status, again.body["sessionId"]]).toEqual([200, "chosen-id"]);
    expect((await serving.ask("GET", "/sessions?state=archived&prefix=reset")).body["count"]).toBe(1);
    await serving.ask("POST", `/sessions/${key}/turns`, { body: { owner: "a" } });
    const busy = await serving.ask("POST", `/sessions/${key}/reset`, { body: { sessionId: "other" } });
    expect([busy.status, busy.body["code"]]).toEqual([409, "SESSION_BUSY"]);
  });

  it("rewinds to a record, again without a further change", async () => {
    const key = await begin("back", [
      { id: "b1", ...message("user", "one") },
      { id: "b2", ...message("user", "two") },
    ]);
    const first = await serving.ask("POST", `/sessions/${key}/rewind`, { body: { to: "b1" } });
    expect(first.body).toMatchObject({ head: { headId: "b1" } });
    const again = await serving.ask("POST", `/sessions/${key}/rewind`, { body: { to: "b1" } });
    expect([again.status, again.body["head"]]).toEqual([200, first.body["head"]]);
    expect((await serving.ask("POST", `/sessions/${key}/rewind`, { body: { to: "b9" } })).status).toBe(404);
    const back = await serving.ask("POST", `/sessions/${key}/switch`, { body: { to: "b1" } });
    expect(back.body).toMatchObject({ head: { headId: "b2" } });
    expect((await serving.ask("GET", `/sessions/${key}/branches?record=b2`)).body["count"]).toBe(1);
  });
});

describe("administration", () => {
  it("makes a token, which works and is revoked, and writes down who did it", async () => {
    const body = { label: "ci", scopes: ["read"], namespace: "" };
    const made = await serving.ask("POST", "/admin/tokens", { body });
    expect(made).toMatchObject({ status: 201, body: { kind: "token", label: "ci", secret: expect.any(String) } });
    const { id, secret } = made.body as { id: string; secret: string };
    expect((await serving.ask("GET", "/sessions", { token: secret })).status).toBe(200);
    const listed = await serving.ask("GET", "/admin/tokens");
    expect(listed.text).toContain(id);
    expect(listed.text).not.toContain(secret.slice(-43));
    expect((await serving.ask("DELETE", `/admin/tokens/${id}`)).body).toMatchObject({ id, secret: null });
    expect((await serving.ask("DELETE", `/admin/tokens/${id}`)).status).toBe(200);
    expect((await serving.ask("GET", "/sessions", { token: secret })).status).toBe(401);
    const audit = await serving.ask("GET", "/admin/audit");
    expect(audit.body["items"]).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ action: "token.create", details: expect.objectContaining({ label: "ci" }) }),
        expect.objectContaining({ action: "token.revoke", details: expect.objectContaining({ id }) }),
      ]),
    );
    expect(audit.text).not.toContain(secret.slice(-43));
  });

  it("gives nobody more than they have, and shows nobody what is another tenant's", async () => {
    const tenant = await serving.tokenOf({ namespace: "a", agents: ["main"], scopes: ["admin"] });
    const refused = async (body: object): Promise<unknown> =>
      (await serving.ask("POST", "/admin/tokens", { token: tenant, body: { scopes: ["read"], ...body } })).body["code"];
    expect(await refused({ namespace: "*" })).toBe("FORBIDDEN");
    expect(await refused({ namespace: "b" })).toBe("FORBIDDEN");
    expect(await refused({ agents: "*" })).toBe("FORBIDDEN");
    expect(await refused({ agents: ["main", "work"] })).toBe("FORBIDDEN");
    expect(await refused({ namespace: "throughline.tokens" })).toBe("FORBIDDEN");
    expect(await refused({ scopes: ["everything"] })).toBe("INPUT_INVALID");
    expect(await refused({ expiresAtMs: 1 })).toBe("INPUT_INVALID");
    const listed = await serving.ask("GET", "/admin/tokens", { token: tenant });
    expect(listed.body["count"]).toBe(1);
    const [everything] = await serving.server.tokens.list();
    const other = await serving.ask("DELETE", `/admin/tokens/${everything?.id ?? ""}`, { token: tenant });
    const unknown = await serving.ask("DELETE", "/admin/tokens/aaaaaaaaaaaa", { token: tenant });
    const bodyOf = ({ body }: Answered): object => ({ ...body, instance: "" });
    expect(bodyOf(other)).toEqual(bodyOf(unknown));
    expect((await serving.ask("POST", "/admin/drain", { token: tenant })).status).toBe(403);
  });

  it("writes down purges, redactions and calls that were refused", async () => {
    const key = await begin("gone", [{ id: "g1", ...message("user", "secret") }]);
    const reader = await serving.tokenOf({ scopes: ["read"] });
    expect((await serving.ask("GET", "/admin/audit", { token: reader })).status).toBe(403);
    await serving.ask("POST", `/sessions/${key}/redact`, { body: { ids: ["g1"], reason: "asked for" } });
    await serving.ask("DELETE", `/sessions/${key}?purge=true`);
    const { body, text } = await serving.ask("GET", "/admin/audit?limit=500");
    const actions = (
      body["items"] as readonly { readonly action: string; readonly details: { readonly key?: string } }[]
    ).filter(({ action, details }) => action === "refused" || details.key === key);
    expect(actions.map(({ action }) => action)).toEqual(["refused", "redact", "purge"]);
    expect(text).not.toContain('secret"');
    expect((await serving.ask("GET", "/admin/audit?limit=1")).body["count"]).toBe(1);
  });

  it("drains a node", async () => {
    const other = await serve();
    expect((await fetch(`${other.url}/readyz`)).status).toBe(200);
    expect((await other.ask("POST", "/admin/drain")).body).toMatchObject({ state: "draining" });
    const ready = await fetch(`${other.url}/readyz`);
    expect([ready.status, await ready.text()]).toEqual([503, "draining\n"]);
    expect((await other.ask("GET", "/store")).status).toBe(200);
    await other.close();
  });
});

describe("the rest of the routes", () => {
  it("answer as the document says", async () => {
    const key = await begin("rest", [{ id: "e1", ...message("user", "harbour lights") }]);
    await serving.ask("GET", "/store");
    await serving.ask("GET", `/sessions/${key}/entry`);
    await serving.ask("PATCH", `/sessions/${key}/entry`, { body: { label: "Rest" } });
    const { headers } = await serving.ask("GET", `/sessions/${key}/entry`);
    const entry = { sessionId: (await serving.ask("GET", `/sessions/${key}`)).body["sessionId"], label: "R" };
    await serving.ask("PUT", `/sessions/${key}/entry`, {
      body: entry,
      headers: { "if-match": headers.get("etag") ?? "" },
    });
    await serving.ask("GET", `/sessions/${key}/window`);
    await askSearch(serving, key);
    await serving.ask("POST", `/sessions/${key}/sharers`, { body: { seqs: [1] } });
    await serving.ask("POST", `/sessions/${key}/fork`, { body: { key: "forked", sessionId: "f-1" } });
    await serving.ask("POST", `/sessions/forked/rename`, { body: { key: "renamed" } });
    await serving.ask("DELETE", `/sessions/renamed`);
    const archived = await serving.ask("GET", "/sessions?state=archived&prefix=renamed");
    const [one] = archived.body["items"] as readonly { readonly archiveId: string }[];
    await serving.ask("POST", `/sessions/renamed/restore?archive=${one?.archiveId ?? ""}`, { body: {} });
    await serving.ask("POST", `/sessions/${key}/turns`, { body: { owner: "p", turnId: "t" } });
    const call = { step: 1, provider: "p", api: "anthropic", model: "m", toSeq: 1, headId: "e1", messages: 1 };
    const facts = { system: "d8e64f6cb1bc", tools: "f7740e30efc6", prefix: 1, estimate: 2, maxOutput: 8, turnId: "t" };
    const record = { type: "custom", id: "c1", customType: "throughline.call", v: 1, critical: false };
    await append(key, [{ ...record, data: { ...call, ...facts, outcome: "answered" } }], { "throughline-fence": "1" });
    const calls = await serving.ask("GET", `/sessions/${key}/calls`);
    const [shown] = calls.body["items"] as readonly { readonly callId: string }[];
    await serving.ask("GET", `/sessions/${key}/calls/${shown?.callId ?? ""}`);
    for (const below of [`calls/${shown?.callId ?? ""}/request`, "outline", "export", "findings"])
      await serving.ask("GET", `/sessions/${key}/${below}`);
    for (const below of ["compact", "checkpoint"])
      await serving.ask("POST", `/sessions/${key}/${below}`, { body: { dryRun: true } });
    const messages = [{ role: "user", content: "x" }];
    await serving.ask("POST", `/sessions/${key}/messages?api=openai`, {
      body: { messages },
      headers: { "throughline-fence": "1" },
    });
    const asked = { ...record, data: { ...call, ...facts, turnId: "w", outcome: "answered", asksApproval: true } };
    const mark = { ...record, id: "w1", customType: "throughline.turn", data: { turnId: "w", state: "waiting" } };
    const reply = message("assistant", [{ type: "toolCall", id: "t1", name: "pay", arguments: {} }]);
    await begin("waits", [reply, asked, mark]);
    const waiting = { turnId: "w", fence: 0, sinceMs: 1, calls: 1 };
    await serving.ask("PATCH", `/sessions/waits/entry`, { body: { waiting } });
    const its = "approvals digest changed-files usage resume relations".split(" ").map((at) => `/sessions/waits/${at}`);
    for (const path of [...its, "/usage"]) await serving.ask("GET", path);
    expect((await serving.ask("GET", `/sessions/waits/turn/events`)).status).toBe(204);
    await serving.ask("POST", `/sessions/waits/approvals`, { body: { callId: "t1", decision: "approve" } });
    const { sessionId } = (await serving.ask("GET", `/sessions/${key}`)).body;
    const place = { v: 1, sessionId, turnId: "t", fence: 1, step: 1, attempt: 0, afterSeq: 1 };
    const partial = { ...place, provider: null, api: null, model: null, text: "so far", updatedMs: 1 };
    await serving.ask("PUT", `/sessions/${key}/partial`, { body: partial });
    await serving.ask("GET", `/sessions/${key}/partial`);
    await serving.ask("DELETE", `/sessions/${key}/partial?fence=1`);
    const bytes = { body: "%PDF-1.7", headers: { "content-type": "application/octet-stream" } };
    const { id } = (await serving.ask("POST", "/files", bytes)).body["file"] as { readonly id: string };
    expect((await serving.ask("GET", "/files")).body["items"]).toMatchObject([{ id, bytes: 8, references: 0 }]);
    expect((await serving.ask("GET", `/files/${id}/facts`)).body).toMatchObject({ file: { id, bytes: 8 } });
    expect((await serving.ask("GET", `/files/${id}?from=1&to=4`)).text).toBe("PDF");
    expect((await serving.ask("DELETE", `/files/${id}`)).body).toMatchObject({ isDeleted: true });
    const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods));
    const isTried = (id: string): boolean => [...answeredOperations()].some((each) => each.startsWith(`${id} 2`));
    const untried = operations.map(({ operationId }) => operationId).filter((id) => !isTried(id));
    expect(untried.filter((id) => !id.startsWith("followSession"))).toEqual([]);
  });
});
