import { afterAll, beforeAll, expect, it } from "vitest";
import { connectTo, headOf } from "./raw-socket.ts";
import { serve, type Serving } from "./serving.ts";

let serving: Serving;
beforeAll(async () => {
  serving = await serve();
});
afterAll(() => serving.close());

/** The texts of a session's messages: of one byte a character and of four, shorter and longer than a buffer. */
const textsOf = (name: string): readonly string[] =>
  Array.from({ length: 40 }, (_, index) => `${name}${index} ${"é😀".repeat(index % 7 === 0 ? 20_000 : 300)}`);

const names = ["a", "b", "c"] as const;
beforeAll(async () => {
  for (const name of names) {
    const drafts = textsOf(name).map((content) => ({ type: "message", message: { role: "user", content } }));
    for (let at = 0; at < drafts.length; at += 10) await serving.begin(name, drafts.slice(at, at + 10));
  }
});

interface Page {
  readonly items: readonly { readonly record: { readonly message: { readonly content: string } } }[];
}

async function pageOf(name: string, after: number): Promise<readonly string[]> {
  const { status, text, headers } = await serving.ask("GET", `/sessions/${name}/records?after=${after}`, {
    headers: { "accept-encoding": "identity" },
  });
  expect([status, headers.get("content-length")]).toEqual([200, String(Buffer.byteLength(text))]);
  return (JSON.parse(text) as Page).items.map(({ record }) => record.message.content);
}

it("gives each of many readers its own page, also while others break off", { tags: ["slow"] }, async () => {
  const leaving = (): void => {
    const socket = connectTo(serving.url);
    const bearer = `authorization: Bearer ${serving.token}`;
    socket.write(headOf("GET", "/api/v1/sessions/a/records", [bearer]));
    socket.once("data", () => socket.destroy());
  };
  for (let round = 0; round < 8; round++) {
    for (let count = 0; count < 3; count++) leaving();
    const asked = names.flatMap((name) => [0, 5].map((after) => ({ name, after })));
    const pages = await Promise.all(asked.map(({ name, after }) => pageOf(name, after)));
    for (const [index, { name, after }] of asked.entries()) {
      const page = pages[index] ?? [];
      expect(page.length).toBeGreaterThan(10);
      expect(page).toEqual(textsOf(name).slice(after, after + page.length));
    }
  }
});

it("gives the same lines as NDJSON", async () => {
  const [whole, lines] = [
    await serving.ask("GET", "/sessions/b/records"),
    await serving.ask("GET", "/sessions/b/records", { headers: { accept: "application/x-ndjson" } }),
  ];
  const items = lines.text.trimEnd().split("\n");
  expect(items.slice(0, -1).map((line) => JSON.parse(line) as unknown)).toEqual(whole.body["items"]);
  expect(JSON.parse(items.at(-1) ?? "")).toEqual({ kind: "end", count: items.length - 1, nextCursor: null });
});

it("answers a pipeline in order", async () => {
  const socket = connectTo(serving.url);
  const bearer = `authorization: Bearer ${serving.token}`;
  const chunks: Buffer[] = [];
  socket.on("data", (chunk) => chunks.push(chunk));
  const ended = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  const close = "connection: close";
  const ask = (name: string, ...lines: readonly string[]): string =>
    headOf("GET", `/api/v1/sessions/${name}/records?limit=20`, [bearer, ...lines]);
  socket.write(ask("a") + ask("b") + ask("c", close));
  await ended;
  const text = Buffer.concat(chunks).toString();
  const places = names
    .flatMap((name) => [`"content":"${name}0 `, `"content":"${name}19 `])
    .map((at) => text.indexOf(at));
  expect(places).toEqual(places.toSorted((one, other) => one - other));
  expect(places.every((at) => at > 0)).toBe(true);
});
