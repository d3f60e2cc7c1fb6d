import { request as httpRequest } from "node:http";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { serve, type Answered, type Serving } from "./serving.ts";

let serving: Serving;
beforeAll(async () => {
  serving = await serve();
});
afterAll(() => serving.close());

interface Item {
  readonly [name: string]: unknown;
  readonly key: string;
}
const itemsOf = ({ body }: Answered): readonly Item[] => body["items"] as readonly Item[];
const keysOf = (answer: Answered): readonly string[] => itemsOf(answer).map(({ key }) => key.slice(11));
const message = (role: string, content: unknown, more: object = {}): object => ({
  type: "message",
  message: { role, content, ...more },
});

async function make(name: string, entry: object = {}, token = serving.token): Promise<string> {
  const key = encodeURIComponent(`agent:main:${name}`);
  const made = await serving.ask("PUT", `/sessions/${key}`, { body: { sessionId: name, entry }, token });
  expect(made.status).toBe(201);
  return key;
}

describe("a list for people", () => {
  const prefix = encodeURIComponent("agent:main:l-");
  const list = (query: string, options = {}): Promise<Answered> =>
    serving.ask("GET", `/sessions?prefix=${prefix}&sort=key&${query}`, options);
  beforeAll(async () => {
    await make("l-a", { title: "Fix the login bug", cwd: "/src/app" });
    await make("l-b", {
      title: "Deploy",
      cwd: "/ops",
      importedFrom: { format: "pi", sessionId: "b", path: "/etc/hostname" },
    });
    await make("l-c", { spawnedBy: "agent:main:l-a", cwd: "/src/app/web" });
    await make("l-d", { forkedFrom: { agentId: "main", key: "agent:main:l-a", sessionId: "l-a", atSeq: 3 } });
    for (const odd of ["text", 5, { sessionId: "" }, { sessionId: 7, atSeq: "x" }, null])
      await make(`l-odd${JSON.stringify(odd).length}`, { forkedFrom: odd });
  });

  it("filters by words, program, folder and lineage, and counts what it left out", async () => {
    expect(keysOf(await list("q=LOGIN%20app"))).toEqual(["l-a"]);
    expect(keysOf(await list("program=pi,codex"))).toEqual(["l-b"]);
    expect(keysOf(await list("cwd=/src/app"))).toEqual(["l-a", "l-c"]);
    expect(keysOf(await list("spawned=true"))).toEqual(["l-c"]);
    const { body } = await list("spawned=false");
    expect([body["scanned"], body["leftOut"], body["count"]]).toEqual([9, 1, 8]);
    expect((await list("")).body).toMatchObject({ scanned: 9, leftOut: 0 });
  });

  it("says where a fork begins, and nothing for an entry that a client made up", async () => {
    const items = itemsOf(await list(""));
    expect(items.find(({ key }) => key.endsWith("l-d"))).toMatchObject({
      forkedFrom: "l-a",
      forkOrigin: { agentId: "main", key: "agent:main:l-a", sessionId: "l-a", atSeq: 3 },
    });
    const odd = items.filter(({ key }) => key.includes("l-odd"));
    expect(odd.map(({ forkOrigin }) => forkOrigin)).toEqual([null, null, null, null, null]);
  });

  it("looks at no file, whatever path an entry has", async () => {
    expect(itemsOf(await list("")).map(({ sourceAtMs }) => sourceAtMs)).toEqual(Array.from({ length: 9 }, () => null));
    expect((await serving.ask("GET", "/sessions/agent:main:l-b")).body["sourceAtMs"]).toBe(null);
  });

  it("binds a cursor to its filter", async () => {
    const first = await list("cwd=/src&limit=1");
    expect(keysOf(first)).toEqual(["l-a"]);
    const cursor = `&limit=1&cursor=${encodeURIComponent(String(first.body["nextCursor"]))}`;
    expect(keysOf(await list(`cwd=/src${cursor}`))).toEqual(["l-c"]);
    expect((await list(`cwd=/ops${cursor}`)).body).toMatchObject({ code: "CURSOR_INVALID" });
  });

  it("adds first words of a person on request", async () => {
    const harness = "<environment_context>\n<cwd>/x</cwd>\n</environment_context>";
    const key = await make("w-a");
    const drafts = [message("user", harness), message("user", `Fix the login ${"x".repeat(300)}\nSecond line`)];
    await serving.ask("POST", `/sessions/${key}/records`, { body: { drafts } });
    await make("w-b");
    const below = `prefix=${encodeURIComponent("agent:main:w-")}&sort=key`;
    const [first, second] = itemsOf(await serving.ask("GET", `/sessions?${below}&firstWords=true`));
    expect(first?.["firstWords"]).toMatch(/^Fix the login x+…$/);
    expect(String(first?.["firstWords"]).length).toBe(121);
    expect(second?.["firstWords"]).toBe(null);
    expect(itemsOf(await serving.ask("GET", `/sessions?${below}`))[0]).not.toHaveProperty("firstWords");
    expect(itemsOf(await serving.ask("GET", "/sessions?firstWords=true&limit=1000")).length).toBeLessThanOrEqual(50);
  });

  it("has an ETag that changes with the list, and 304 while it does not", async () => {
    const { headers } = await list("");
    const etag = headers.get("etag") ?? "";
    expect(etag).toMatch(/^W\/"/);
    const again = await list("", { headers: { "if-none-match": etag } });
    expect([again.status, again.text, again.headers.get("etag")]).toEqual([304, "", etag]);
    await serving.ask("PATCH", "/sessions/agent:main:l-b/entry", { body: { title: "Deploy again" } });
    expect((await list("", { headers: { "if-none-match": etag } })).status).toBe(200);
  });

  it("shows other tenants and agents nothing", async () => {
    for (const rights of [{ namespace: "tenant" }, { namespace: "", agents: ["other"] }]) {
      const token = await serving.tokenOf({ ...rights, scopes: ["read"] });
      const seen = await serving.ask("GET", "/sessions?q=login&firstWords=true", { token });
      expect(seen.body).toMatchObject({ items: [], scanned: 0, leftOut: 0 });
    }
    const token = await serving.tokenOf({ scopes: ["write"] });
    expect((await serving.ask("GET", "/sessions?q=login", { token })).status).toBe(403);
  });

  it.each(["q=" + "x".repeat(201), "program=", "program=a,,b", "cwd=", "spawned=maybe", "firstWords=1"])(
    "refuses %s",
    async (query) => {
      expect((await list(query)).body).toMatchObject({ status: 400, code: "INPUT_INVALID" });
    },
  );
});

describe("previews of records", () => {
  const image = Buffer.alloc(9000, 1).toString("base64");
  const call = { type: "toolCall", id: "t1", name: "write", arguments: { path: "a", content: "é".repeat(5000), n: 1 } };
  beforeAll(async () => {
    await serving.begin("previewed", [
      message("user", `😀${"x".repeat(4095)}`),
      message("assistant", [
        { type: "thinking", thinking: "t".repeat(199) + "😀".repeat(50) },
        { type: "text", text: "short" },
        call,
      ]),
      message("toolResult", [{ type: "image", mimeType: "image/png", data: image }], {
        toolCallId: "t1",
        toolName: "write",
        isError: false,
        details: { old: "d".repeat(10_000) },
      }),
      { type: "compaction", summary: "s".repeat(6000), firstKeptEntryId: null, tokensBefore: 5 },
      message("user", "whole"),
    ]);
  });

  interface Preview extends Item {
    readonly cut: readonly { readonly block: number | null; readonly totalBytes: number }[];
    readonly record: Readonly<Record<string, unknown>> & { readonly message: Readonly<Record<string, unknown>> };
  }

  it("cut long texts in whole characters, thinking and images, and say so", async () => {
    const answer = await serving.ask("GET", "/sessions/previewed/records?payload=preview");
    const [user, reply, result, summary, whole] = itemsOf(answer) as readonly Item[] as readonly Preview[];
    expect(user?.cut).toEqual([{ block: 0, totalBytes: 4099 }]);
    expect(user?.record.message["content"]).toBe(`😀${"x".repeat(4092)}`);
    const blocks = (reply?.record.message["content"] ?? []) as readonly Record<string, unknown>[];
    const [thinking, text, tool] = blocks;
    expect(thinking?.["thinking"]).toBe("t".repeat(199));
    expect(text).toEqual({ type: "text", text: "short" });
    expect(tool).toEqual({ ...call, arguments: { path: "a", content: "é".repeat(2048), n: 1 } });
    const wholeCall = Buffer.byteLength(JSON.stringify(call));
    expect(reply?.cut).toEqual([
      { block: 0, totalBytes: 399 },
      { block: 2, totalBytes: wholeCall },
    ]);
    expect(result?.record.message["content"]).toEqual([{ type: "image", mimeType: "image/png", data: "" }]);
    expect(result?.cut).toEqual([
      { block: 0, totalBytes: image.length },
      { block: null, totalBytes: 10_000 },
    ]);
    expect(summary?.cut).toEqual([{ block: null, totalBytes: 6000 }]);
    expect(summary?.record["summary"]).toBe("s".repeat(4096));
    expect([whole?.cut, whole?.record.message["content"]]).toEqual([[], "whole"]);
  });

  it("give the rest of a block by its place", async () => {
    const part = await serving.ask("GET", "/sessions/previewed/records/1?block=0&from=4096");
    expect(part.body).toMatchObject({ text: "xxx", totalBytes: 4099, nextFrom: null });
    const tool = await serving.ask("GET", "/sessions/previewed/records/2?block=2");
    expect(JSON.parse(String(tool.body["text"]))).toEqual(call);
  });

  it("go with a role and with ids, and heads by role name role and tool", async () => {
    const ofRole = await serving.ask("GET", "/sessions/previewed/records?role=user&payload=preview");
    expect(itemsOf(ofRole).map(({ cut }) => (cut as readonly unknown[]).length)).toEqual([1, 0]);
    const heads = await serving.ask("GET", "/sessions/previewed/records?role=toolResult&payload=head");
    const [head] = itemsOf(heads);
    expect(head).toMatchObject({ role: "toolResult", toolName: "write" });
    expect(head).not.toHaveProperty("record");
    const [id] = itemsOf(ofRole).map((item) => String(item["id"]));
    const named = await serving.ask("GET", `/sessions/previewed/records?ids=${id}&payload=preview`);
    expect(itemsOf(named)[0]).toMatchObject({ cut: [{ block: 0, totalBytes: 4099 }] });
  });

  it("take messages of any shape", async () => {
    const shapes = [
      null,
      5,
      "x",
      [],
      {},
      { content: null },
      { content: [null, 5, ["y".repeat(5000)], {}] },
      { content: {} },
    ];
    await serving.begin(
      "shapes",
      shapes.map((value) => ({ type: "note", message: value, constructor: "z".repeat(5000) })),
    );
    const answer = await serving.ask("GET", "/sessions/shapes/records?payload=preview");
    expect([answer.status, itemsOf(answer).length]).toEqual([200, shapes.length]);
    expect(answer.text.length).toBeLessThan(shapes.length * 10_000);
  });
});

/** Asks without `fetch`, which unpacks answers. */
function raw(
  path: string,
  encoding?: string,
): Promise<{ readonly headers: Record<string, unknown>; readonly bytes: Buffer }> {
  return new Promise((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${serving.token}`,
      ...(encoding === undefined ? {} : { "accept-encoding": encoding }),
    };
    const request = httpRequest(`${serving.url}/api/v1${path}`, { headers }, (response) => {
      const pieces: Buffer[] = [];
      response.on("data", (piece: Buffer) => pieces.push(piece));
      response.on("end", () => resolve({ headers: response.headers, bytes: Buffer.concat(pieces) }));
    });
    request.on("error", reject).end();
  });
}

describe("packed answers", () => {
  beforeAll(() =>
    serving.begin(
      "packed",
      Array.from({ length: 50 }, (_, at) => message("user", `text ${at} `.repeat(99))),
    ),
  );
  const paths = {
    list: "/sessions/packed/records",
    object: "/sessions/packed/outline",
    pieces: "/sessions/packed/context",
  };

  it.each(Object.entries(paths))("hold the same bytes: %s", async (_name, path) => {
    const plain = await raw(path);
    expect([plain.headers["content-encoding"], plain.headers["vary"]]).toEqual([undefined, "accept-encoding"]);
    const packed = await raw(path, "br, gzip;q=0.5");
    expect([packed.headers["content-encoding"], packed.headers["vary"]]).toEqual(["gzip", "accept-encoding"]);
    expect(packed.bytes.length).toBeLessThan(plain.bytes.length / 2);
    expect(gunzipSync(packed.bytes).equals(plain.bytes)).toBe(true);
  });

  it.each([undefined, "identity", "br, deflate", "gzip;q=0", "gzip; q=0.0", "notgzip", ";;,,;"])(
    "are sent plain for %s",
    async (encoding) => {
      expect((await raw(paths.list, encoding)).headers["content-encoding"]).toBe(undefined);
    },
  );

  it("are sent plain when they are small, and for events", async () => {
    await serving.begin("small");
    expect((await raw("/sessions/small", "gzip")).headers["content-encoding"]).toBe(undefined);
    const response = await fetch(`${serving.url}/api/v1/sessions/packed/events?after=0`, {
      headers: { authorization: `Bearer ${serving.token}`, "accept-encoding": "gzip" },
    });
    expect([response.headers.get("content-encoding"), response.headers.get("content-type")]).toEqual([
      null,
      "text/event-stream",
    ]);
    await response.body?.cancel();
  });
});
