import { mkdtempSync, rmSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTokenStore, type Scope } from "@throughline/http-api/internal";
import { createSqliteStore } from "@throughline/store-sqlite";
import { quickFolder } from "../../../packages/store-sqlite/test/test-folder.ts";
import { serveRaw, type RawServing } from "./raw-upstream.ts";

const folder = mkdtempSync(join(quickFolder(), "throughline-revoked-"));
const path = join(folder, "sessions.db");
const scopes: readonly Scope[] = ["read", "write", "gateway:own", "gateway:caller"];
const eventHead = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const ping = 'event: ping\ndata: {"type":"ping"}\n\n';
const pingChunk = `${ping.length.toString(16)}\r\n${ping}\r\n`;

let raw: RawServing;
beforeAll(async () => {
  raw = await serveRaw({}, { openStore: () => createSqliteStore({ path }) });
  await raw.serving.begin("notes", undefined, raw.token);
  const held = { owner: "another", leaseMs: 3_600_000 };
  await raw.serving.ask("POST", "/sessions/notes/turns", { token: raw.token, body: held });
});
afterAll(async () => {
  await raw.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Sends a request, and resolves with what came of its answer once that has ended. */
async function readToEnd(token: string, below: string, body: object | null, headers = {}): Promise<string> {
  const pieces: string[] = [];
  try {
    const response = await fetch(raw.serving.url + below, {
      method: body === null ? "GET" : "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers },
      ...(body === null ? {} : { body: JSON.stringify(body) }),
    });
    pieces.push(String(response.status));
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) pieces.push(decoder.decode(chunk as Uint8Array, { stream: true }));
  } catch {
    pieces.push("cut");
  }
  return pieces.join(" ");
}

/** Sends the beginning of a file, and resolves once the connection has ended. */
function uploadWithoutEnd(token: string): Promise<string> {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/octet-stream" };
  const request = httpRequest(`${raw.serving.url}/api/v1/files`, { method: "POST", headers });
  request.write("the beginning");
  return new Promise((resolve) => {
    request.once("response", ({ statusCode }) => resolve(String(statusCode)));
    request.once("error", () => resolve("cut"));
  });
}

/** Every kind of answer that lasts, begun and still open. */
async function begin(token: string): Promise<readonly Promise<string>[]> {
  const ask = { model: "claude-opus-5", max_tokens: 1, stream: true, messages: [{ role: "user", content: "hi" }] };
  const heardBefore = raw.heard.length;
  // The first of the three is never answered, the others get the beginning of a stream.
  raw.answerWith(({ socket }) => {
    if (raw.heard.length > heardBefore + 1) socket.write(eventHead + pingChunk);
  });
  const silent = readToEnd(token, "/own/v1/messages", ask);
  await expect.poll(() => raw.heard.length).toBe(heardBefore + 1);
  const passing = { "throughline-token": token, authorization: "Bearer sk-own" };
  const open = [
    silent,
    readToEnd(token, "/own/v1/messages", { ...ask, max_tokens: 2 }),
    readToEnd(token, "/caller/v1/messages", { ...ask, max_tokens: 3 }, passing),
    readToEnd(token, "/api/v1/sessions/notes/events", null),
    readToEnd(token, "/api/v1/events?session=notes", null),
    readToEnd(token, "/api/v1/sessions/notes/turn/events", null),
    readToEnd(token, "/api/v1/sessions/notes/turns", { owner: "waits", whenBusy: "wait" }),
    uploadWithoutEnd(token),
  ];
  await expect.poll(() => raw.heard.length).toBe(heardBefore + 3);
  return open;
}

const ends = [
  "cut",
  expect.stringMatching(/^200 .*ping[^]*cut$/),
  expect.stringMatching(/^200 .*ping[^]*cut$/),
  expect.stringMatching(/^200 [^]*event: gone[^]*"code":"UNAUTHENTICATED"/),
  expect.stringMatching(/^200 [^]*event: gone[^]*"code":"UNAUTHENTICATED"/),
  expect.stringMatching(/^200 [^]*"code":"UNAUTHENTICATED"/),
  "cut",
  "cut",
];

describe("answers that last", () => {
  it("end when their token is revoked by another process, and no others do", async () => {
    const rights = { namespace: "", agents: "*", scopes, expiresAtMs: null } as const;
    const { text, info } = await raw.serving.server.tokens.create(rights, "revoked");
    const open = await begin(text);
    let isOtherOver = false;
    const leaving = new AbortController();
    const other = fetch(`${raw.serving.url}/api/v1/sessions/notes/events`, {
      headers: { authorization: `Bearer ${raw.token}` },
      signal: leaving.signal,
    })
      .then((response) => response.text())
      .catch(() => "")
      .finally(() => (isOtherOver = true));
    const beside = createSqliteStore({ path });
    await createTokenStore(beside, () => Date.now()).revoke(info.id);
    await beside.close();
    expect(await Promise.all(open)).toEqual(ends);
    expect(isOtherOver).toBe(false);
    leaving.abort();
    await other;
  });

  it("end when their token expires", async () => {
    const rights = { namespace: "", agents: "*", scopes, expiresAtMs: Date.now() + 1500 } as const;
    const { text } = await raw.serving.server.tokens.create(rights, "expires");
    expect(await Promise.all(await begin(text))).toEqual(ends);
  });
});
