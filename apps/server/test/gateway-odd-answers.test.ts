import { gzipSync } from "node:zlib";
import { afterEach, describe, expect, it } from "vitest";
import type { SessionStore } from "@throughline/core";
import { createMemoryStore } from "@throughline/store-memory";
import { headOf, sendRaw } from "./raw-socket.ts";
import { answerBytes, type RawServing, reply, serveRaw } from "./raw-upstream.ts";

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function start(...options: Parameters<typeof serveRaw>): Promise<RawServing> {
  const raw = await serveRaw(...options);
  closing.push(() => raw.close());
  return raw;
}

const question = { model: "claude-opus-5", max_tokens: 9, messages: [{ role: "user", content: "Hello" }] };

/** What a client gets, as the bytes that came. */
async function ask(
  { serving, token }: RawServing,
  {
    lines = [],
    body = JSON.stringify(question),
  }: { readonly lines?: readonly string[]; readonly body?: string | Buffer } = {},
): Promise<string> {
  const head = headOf("POST", "/caller/v1/messages", [
    `throughline-token: ${token}`,
    `content-length: ${Buffer.byteLength(body)}`,
    ...lines,
  ]);
  return (await sendRaw(serving.url, Buffer.concat([Buffer.from(head), Buffer.from(body)]))).text;
}

describe("an answer of an upstream", () => {
  it.each([
    ["101", "HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"],
    ["101 without a protocol", "HTTP/1.1 101 Switching\r\n\r\n"],
    ["99", "HTTP/1.1 099 Odd\r\ncontent-length: 0\r\n\r\n"],
  ])(
    "with the status %s is 502 in the provider's form, and the next call passes",
    { tags: ["slow"] },
    async (_name, bytes) => {
      const raw = await start();
      raw.answerWith(({ socket }) => socket.write(bytes));
      expect(await ask(raw)).toMatch(/^HTTP\/1\.1 502 [^]*"type":"api_error"/);
      await expect.poll(() => raw.outcomes()).toEqual(["failed"]);
      raw.answerWith(({ socket }) => socket.write(answerBytes(reply)));
      expect(await ask(raw)).toMatch(/^HTTP\/1\.1 200 /);
    },
  );

  it(
    "keeps the bytes of its reason and headers, and a reason that no server can write is left out",
    { tags: ["slow"] },
    async () => {
      const raw = await start();
      raw.answerWith(({ socket }) =>
        socket.write(answerBytes(reply, "HTTP/1.1 200 Caf\xe9\r\nx-name: \x80\xff \xc3\xa9")),
      );
      expect(await ask(raw)).toMatch(/^HTTP\/1\.1 200 Caf\xe9\r\nx-name: \x80\xff \xc3\xa9\r\n/);
      raw.answerWith(({ socket }) => socket.write(answerBytes(reply, "HTTP/1.1 200 O\x01K")));
      expect(await ask(raw)).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*Well\./);
      await expect.poll(() => raw.outcomes()).toEqual(["answered", "answered"]);
    },
  );

  it("that breaks while the request is still read breaks the client's answer off in guard mode", async () => {
    const raw = await start({ mode: "guard" });
    raw.answerWith(({ socket }) =>
      socket.write("HTTP/1.1 400 Bad Request\r\ncontent-length: 100\r\n\r\npart", () => socket.resetAndDestroy()),
    );
    const content = Array.from({ length: 400_000 }, (_, index) => index.toString(36)).join(" ");
    const body = gzipSync(JSON.stringify({ ...question, messages: [{ role: "user", content }] }));
    expect(await ask(raw, { lines: ["content-encoding: gzip"], body })).toMatch(/^HTTP\/1\.1 (?:400|502) /);
    await expect.poll(async () => (await raw.outcomes()).length).toBe(1);
  });

  it("that quotes credentials is stored without them", { tags: ["slow"] }, async () => {
    const raw = await start();
    raw.answerWith(({ head, socket }) => socket.write(answerBytes({ error: head }, "HTTP/1.1 401 Unauthorized")));
    const shown = ["sk-planted-key", "planted-login", "planted-of-a-proxy"];
    const lines = [`x-api-key: ${shown[0]}`, `authorization: Bearer ${shown[1]}`, `helicone-auth: Bearer ${shown[2]}`];
    const heard = await ask(raw, { lines });
    for (const secret of shown) expect(heard).toContain(secret);
    const { serving, token } = raw;
    await fetch(`${serving.url}/own/v1/messages`, {
      method: "POST",
      headers: { "x-api-key": token },
      body: JSON.stringify(question),
    });
    await expect.poll(async () => (await raw.outcomes()).length).toBe(2);
    const sessions = await serving.ask("GET", "/sessions", { token });
    const keys = (sessions.body["items"] as readonly { readonly key: string }[]).map(({ key }) => key);
    const records = await Promise.all(
      keys.map(async (key) => (await serving.ask("GET", `/sessions/${key}/records?limit=500`, { token })).text),
    );
    expect(records.join("")).toContain("[credential]");
    for (const secret of [...shown, "key-of-the-server"]) expect(records.join("")).not.toContain(secret);
  });
});

describe("the end of an answer", () => {
  const answered = {
    id: "resp_1",
    object: "response",
    status: "completed",
    model: "m",
    instructions: "Be brief. ".repeat(200_000),
    output: [{ type: "message", role: "assistant", content: [{ type: "output_text", text: "Well then." }] }],
    usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
  };
  const event = `event: response.completed\ndata: ${JSON.stringify({ type: "response.completed", response: answered })}\n\n`;

  it.each([
    ["of 2 MB", "", Buffer.from(event)],
    ["that came packed", "content-encoding: gzip\r\n", gzipSync(event)],
  ])("%s is heard once the reply is on the disk in stateful mode", { tags: ["slow"] }, async (_which, lines, bytes) => {
    const inner = createMemoryStore();
    let storedMs = 0;
    const append: SessionStore["append"] = async (ref, drafts, options) => {
      if (JSON.stringify(drafts).includes("Well then.")) {
        await new Promise((resolve) => setTimeout(resolve, 500));
        storedMs = performance.now();
      }
      return inner.append(ref, drafts, options);
    };
    const store = new Proxy(inner, {
      get: (target, name): unknown => {
        const member: unknown = name === "append" ? append : Reflect.get(target, name);
        return typeof member === "function" ? member.bind(target) : member;
      },
    });
    const raw = await start({ api: "openai", mode: "stateful" }, { openStore: () => store });
    const head = `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n${lines}connection: close\r\n\r\n`;
    raw.answerWith(({ socket }) => {
      socket.write(head);
      socket.end(bytes);
    });
    const answer = await fetch(`${raw.serving.url}/own/v1/responses`, {
      method: "POST",
      headers: { authorization: `Bearer ${raw.token}` },
      body: JSON.stringify({ model: "m", stream: true, input: "Hello" }),
    });
    let [text, heardMs] = ["", 0];
    for await (const chunk of answer.body ?? []) {
      text += Buffer.from(chunk as Uint8Array).toString("latin1");
      if (heardMs === 0 && text.endsWith("\n\n")) heardMs = performance.now();
    }
    expect(text).toBe(event);
    expect([storedMs > 0, heardMs > storedMs]).toEqual([true, true]);
  });
});

describe("a request", () => {
  it(
    "that would like HTTP/2 is answered with what there is, by the gateway and the service",
    { tags: ["slow"] },
    async () => {
      const raw = await start();
      const lines = ["connection: Upgrade, HTTP2-Settings", "upgrade: h2c", "http2-settings: AAEAAEAAAAIAAAABAAMAAABk"];
      expect(await ask(raw, { lines })).toMatch(/^HTTP\/1\.1 200 [^]*Well\./);
      expect(raw.heard[0]?.body.toString()).toBe(JSON.stringify(question));
      expect(raw.heard[0]?.head).not.toMatch(/h2c|http2-settings/i);
      const own = headOf("GET", "/api/v1/sessions", [`authorization: Bearer ${raw.token}`, ...lines]);
      expect((await sendRaw(raw.serving.url, own)).text).toMatch(/^HTTP\/1\.1 200 /);
    },
  );

  it("that waits to be asked for its body is asked once it may pass", { tags: ["slow"] }, async () => {
    const raw = await start();
    const lines = ["expect: 100-continue", "content-length: 1000000"];
    const refused = await sendRaw(raw.serving.url, headOf("POST", "/caller/v1/messages", lines));
    expect(refused.text).toMatch(/^HTTP\/1\.1 401 /);
    expect(await ask(raw, { lines: ["expect: 100-continue"] })).toMatch(
      /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 /,
    );
  });

  it("whose query hides a key is stored without it", async () => {
    const raw = await start();
    const { serving, token } = raw;
    const query = `?beta=true&%6bey=planted-1&a=1;api_key=planted-2&%zz=planted-3`;
    await fetch(`${serving.url}/caller/v1/messages${query}`, {
      method: "POST",
      headers: { "throughline-token": token, "throughline-session": "hidden" },
      body: JSON.stringify(question),
    });
    expect(raw.heard[0]?.head).toContain(`POST /v1/messages${query} `);
    await expect.poll(async () => (await raw.outcomes()).length).toBe(1);
    const sessions = await serving.ask("GET", "/sessions", { token });
    const [{ key } = { key: "" }] = sessions.body["items"] as readonly { readonly key: string }[];
    const { text } = await serving.ask("GET", `/sessions/${key}/records?limit=500`, { token });
    expect(text).toContain("?beta=true".slice(1));
    expect(text).not.toContain("planted");
  });

  it(
    "that is rebuilt has no header of the client's own bytes, nor its key of repeats",
    { tags: ["slow"] },
    async () => {
      const raw = await start({ mode: "guard" });
      const long = Array.from({ length: 40_000 }, (_, index) => `line ${index}`).join("\n");
      const messages = [
        { role: "user", content: "Read it." },
        { role: "assistant", content: [{ type: "tool_use", id: "t1", name: "read", input: {} }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: long }] },
      ];
      const message = "prompt is too long: 250000 tokens > 200000 maximum";
      raw.answerWith(({ socket }) =>
        socket.write(
          raw.heard.length > 1
            ? answerBytes(reply)
            : answerBytes(
                { type: "error", error: { type: "invalid_request_error", message } },
                "HTTP/1.1 400 Bad Request",
              ),
        ),
      );
      const own = ["idempotency-key: once", "content-md5: abc", "digest: sha-256=abc"];
      expect(await ask(raw, { lines: own, body: JSON.stringify({ ...question, messages }) })).toContain("Well.");
      const heads = raw.heard.map(({ head }) => own.map((line) => head.includes(line)));
      expect(heads).toEqual([
        [true, true, true],
        [false, false, false],
      ]);
    },
  );

  it(
    "that is no JSON inside of a message or a member is stored, and given back byte for byte",
    { tags: ["slow"] },
    async () => {
      const raw = await start();
      const { serving, token } = raw;
      const bodies = [
        '{"model":"m","messages":[{"role":"user","content":tru}]}',
        '{"model":"m","messages":[{"role":"user","content":"one\nline"}]}',
        '{"model":tru,"max_tokens":x,"messages":[{"role":"user","content":"Hello"}]}',
        '{"metadata":{no},"messages":[{"role":"user","content":"Hello"}]}',
      ];
      for (const body of bodies) {
        const heard = await ask(raw, { body });
        const [session, call] = ["session", "call"].map(
          (name) => new RegExp(`throughline-${name}: (\\S+)`).exec(heard)?.[1],
        );
        const path = `${serving.url}/api/v1/sessions/${session}/calls/${call}/request?payload=bytes`;
        const given = async (): Promise<string> =>
          (await fetch(path, { headers: { authorization: `Bearer ${token}` } })).text();
        await expect.poll(given).toBe(body);
      }
      expect(raw.heard.map(({ body }) => body.toString())).toEqual(bodies);
    },
  );

  it("that is no JSON where it may name what another token was given is refused with a key of ours", async () => {
    const { serving, token, heard } = await start({ api: "openai" });
    const body = '{"model":"m","input":"Hello","previous_response_id":\'resp_1\'}';
    const headers = { authorization: `Bearer ${token}` };
    const answer = await fetch(`${serving.url}/own/v1/responses`, { method: "POST", headers, body });
    expect([answer.status, heard.length]).toEqual([400, 0]);
  });
});
