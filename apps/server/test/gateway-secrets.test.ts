import { afterEach, describe, expect, it } from "vitest";
import { createMemoryStore } from "@throughline/store-memory";
import { reply, serveRaw, type RawServing } from "./raw-upstream.ts";

let raw: RawServing | null = null;
afterEach(async () => {
  await raw?.close();
  raw = null;
});

const key = "key-of-the-server";
const body = { model: "m", max_tokens: 1, messages: [{ role: "user", content: "Hi" }] };

async function start(): Promise<RawServing> {
  const store = createMemoryStore();
  raw = await serveRaw({}, { openStore: () => store });
  return raw;
}

async function ask(name: "own" | "caller", more = "", headers: Record<string, string> = {}): Promise<Response> {
  const { serving, token } = raw ?? (await start());
  const shown =
    name === "own"
      ? { authorization: `Bearer ${token}` }
      : { "throughline-token": token, "x-api-key": "sk-of-the-caller" };
  return fetch(`${serving.url}/${name}/v1/messages${more}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...shown, ...headers },
    body: JSON.stringify(body),
  });
}

/** Everything that the store has of all sessions. */
async function stored({ serving, token }: RawServing): Promise<string> {
  const texts: string[] = [];
  const list = await serving.ask("GET", "/sessions?limit=1000&entry=true", { token });
  for (const { key: session } of list.body["items"] as readonly { readonly key: string }[])
    texts.push(list.text, (await serving.ask("GET", `/sessions/${session}/records`, { token })).text);
  return texts.join("\n");
}

describe("a token of ours where it does not belong", () => {
  it.each([
    ["in the query", (token: string) => `?key=${token}`],
    ["in the name of a member", (token: string) => `?${token}=1`],
    ["behind a word", (token: string) => `?a=x${token}`],
    ["in capitals", (token: string) => `?a=${token.toUpperCase()}`],
    ["with escapes", (token: string) => `?a=${token.replace("tl_", "%74%6C%5f")}`],
    ["with escapes of escapes", (token: string) => `?a=${token.replace("tl_", "%2574l%255F")}`],
    ["in the path", (token: string) => `/${token}`],
  ])("%s reaches neither provider nor store", async (_where, place) => {
    const { token, heard } = await start();
    for (const name of ["own", "caller"] as const) {
      const answer = await ask(name, place(token));
      expect([answer.status, await answer.text()]).toEqual([expect.any(Number), expect.not.stringContaining(token)]);
      expect(answer.status).toBeGreaterThanOrEqual(400);
    }
    expect(heard).toEqual([]);
    expect((await stored(raw as RawServing)).toLowerCase()).not.toContain(token.toLowerCase());
  });

  it("in the user agent is removed", async () => {
    const { token, heard } = await start();
    for (const name of ["own", "caller"] as const)
      for (const agent of [token, `agent/1 (${token})`, `x${token}`, token.replace("tl_", "%74l_")])
        expect((await ask(name, "", { "user-agent": agent, "anthropic-beta": `b,${token}` })).status).toBe(200);
    await expect.poll(() => (raw as RawServing).outcomes().then(({ length }) => length)).toBe(8);
    const secret = token.slice(-43);
    expect(heard.map(({ head }) => head).join("\n")).not.toContain(secret);
    expect(await stored(raw as RawServing)).not.toContain(secret);
  });
});

describe("what a provider says to the account of the server", () => {
  const refusal = `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key: ${key}${key} of k"}}`;
  const head = (more: readonly string[], length: number): string =>
    [
      `HTTP/1.1 401 Unauthorized ${key}`,
      "content-type: application/json",
      `content-length: ${length}`,
      ...more,
      "",
      "",
    ].join("\r\n");
  const headers = [
    `x-quoted: ${key}`,
    "set-cookie: __cf=1; path=/",
    "Set-Cookie2: b=2",
    "Access-Control-Allow-Origin: *",
    "access-control-expose-headers: x",
    "clear-site-data: *",
    "request-id: req_1",
  ];

  it.each([1, 3, 7, 1000])("is passed on without the key, cookies and CORS, in pieces of %i bytes", async (size) => {
    const { answerWith } = await start();
    answerWith(({ socket }) => {
      const bytes = Buffer.from(head(headers, Buffer.byteLength(refusal)) + refusal);
      const from = bytes.indexOf("\r\n\r\n") + 4;
      socket.write(bytes.subarray(0, from));
      const next = (at: number): void => {
        if (at >= bytes.length) return;
        socket.write(bytes.subarray(at, at + size), () => setImmediate(next, at + size));
      };
      next(from);
    });
    const answer = await ask("own");
    const text = await answer.text();
    expect([answer.status, text]).toEqual([401, refusal.replaceAll(key, "*".repeat(key.length))]);
    expect(answer.statusText).toBe(`Unauthorized ${"*".repeat(key.length)}`);
    const names = [...answer.headers.keys()];
    expect(names.filter((name) => /^set-cookie|^access-control|^clear-site/.test(name))).toEqual([]);
    expect([answer.headers.get("x-quoted"), answer.headers.get("request-id")]).toEqual(["*".repeat(17), "req_1"]);
    await expect.poll(() => (raw as RawServing).outcomes()).toEqual(["failed"]);
    expect(await stored(raw as RawServing)).not.toContain(key);
  });

  it("comes to a caller with its own key as it is", async () => {
    const { answerWith } = await start();
    answerWith(({ socket }) => void socket.write(head(headers, refusal.length) + refusal));
    const answer = await ask("caller");
    expect([answer.status, await answer.text()]).toEqual([401, refusal]);
    expect([answer.headers.get("set-cookie"), answer.headers.get("x-quoted")]).toEqual(["__cf=1; path=/", key]);
  });

  it("is whole where it ends with the beginning of the key", async () => {
    const { answerWith } = await start();
    const text = JSON.stringify({ ...reply, id: "msg_key-of-the-serve" }).slice(0, -1) + ',"z":"key-of"}  key-of-the';
    answerWith(
      ({ socket }) =>
        void socket.write(
          `HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: ${text.length}\r\n\r\n${text}`,
        ),
    );
    expect(await (await ask("own")).text()).toBe(text);
  });
});
