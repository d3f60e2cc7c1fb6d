import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SessionStore } from "@throughline/core";
import { createMemoryStore } from "@throughline/store-memory";
import { createSqliteStore } from "@throughline/store-sqlite";
import { afterAll, describe, expect, it } from "vitest";
import { attempts, fill, overviews, refOf, secret, serve, type Serving } from "./memory-clients.ts";

const base = realpathSync(mkdtempSync(join(tmpdir(), "throughline-mcp-folders-")));
afterAll(() => rmSync(base, { recursive: true, force: true }));
for (const folder of ["a/b/web", "a/bc", "other/deep"]) mkdirSync(join(base, folder), { recursive: true });
symlinkSync(join(base, "other"), join(base, "a/b/out"));
symlinkSync(join(base, "a/b"), join(base, "link"));
const folder = join(base, "a/b");

const inside = {
  own: folder,
  below: join(base, "a/b/web"),
  linked: join(base, "link/web"),
  gone: join(base, "a/b/x/y"),
};
/** Each has the secret in its text, its label and its key. */
const outside: Readonly<Record<string, unknown>> = {
  sibling: join(base, "a/bc"),
  parent: join(base, "a"),
  away: join(base, "a/b/out"),
  "away-deep": join(base, "a/b/out/deep"),
  "away-gone": join(base, "a/b/out/gone"),
  dots: `${base}/a/b/../bc`,
  relative: "a/b",
  here: ".",
  empty: "",
  number: 7,
  nested: { path: folder },
  none: undefined,
};
const hiddenRef = (name: string): ReturnType<typeof refOf> => refOf("main", `${secret}-${name}`);

async function filled(store: SessionStore): Promise<SessionStore> {
  // Hidden sessions come before, between and after the others in every order.
  const hidden = Object.entries(outside);
  for (const [index, [name, cwd]] of hidden.entries()) {
    const shown = Object.entries(inside)[index];
    if (shown !== undefined) await fill(store, refOf("main", shown[0]), ["a violin"], { cwd: shown[1] });
    const entry = { label: `${secret} label`, ...(cwd === undefined ? {} : { cwd }) };
    await fill(store, hiddenRef(name), [`a violin and the ${secret} of ${name}`], entry);
  }
  return store;
}

function serveFolder(store: SessionStore, more: object = {}): Promise<Serving> {
  return serve(store, { folder, ...more });
}

async function listedKeys({ call }: Serving, args: object): Promise<readonly string[]> {
  const keys: string[] = [];
  let cursor: unknown;
  do {
    const { structured } = await call("list_sessions", { ...args, ...(cursor ? { cursor } : {}) });
    keys.push(...(structured["sessions"] as { readonly key: string }[]).map(({ key }) => key));
    cursor = structured["nextCursor"];
    if (cursor) expect(deepText(String(cursor))).not.toContain(secret);
  } while (cursor);
  return keys;
}

/** A cursor is text as well: what is in it must not name what is not seen. */
function deepText(cursor: string): string {
  const inner = Buffer.from(cursor, "base64url").toString();
  const parts = Array.from(inner.matchAll(/[\w-]{20,}/g), ([part]) => Buffer.from(part, "base64url").toString());
  return [inner, ...parts].join("\n");
}

describe.each(["memory", "SQLite"])("a client that is limited to a folder, over a store of %s", (kind) => {
  let number = 0;
  const open = (): SessionStore =>
    kind === "memory" ? createMemoryStore() : createSqliteStore({ path: join(base, `${kind}-${++number}.db`) });
  const insideKeys = Object.keys(inside)
    .map((name) => refOf("main", name).key)
    .toSorted();

  it("reaches no session of another folder or of none, whatever a call names", { tags: ["slow"] }, async () => {
    await using store = await filled(open());
    for (const scope of [{}, { agents: "*" as const }, { folder: join(base, "link") }]) {
      const serving = await serveFolder(store, scope);
      const missing = (await serving.call("read_session", { key: refOf("main", "nothing").key })).text;
      for (const name of Object.keys(outside))
        for (const agent of [undefined, "main", "*"]) {
          const texts = await attempts(serving, hiddenRef(name).key, agent);
          expect(texts.join("\n")).not.toContain(`the ${secret} of`);
          expect(texts.join("\n")).not.toContain(`${secret} label`);
          // What is not seen is answered as what is not there.
          expect(texts[0]).toBe(missing);
        }
      expect(await overviews(serving)).not.toMatch(new RegExp(secret));
    }
  });

  it("sees the sessions of the folder and below it, through links too, by every tool", async () => {
    await using store = await filled(open());
    const serving = await serveFolder(store);
    for (const limit of [1, 2, 3, 50]) expect((await listedKeys(serving, { limit })).toSorted()).toEqual(insideKeys);
    expect(await listedKeys(serving, { prefix: "agent:main:cli:direct:o" })).toEqual([refOf("main", "own").key]);
    const found = (await serving.call("search_sessions", { query: "violin", limit: 20 })).structured;
    expect((found["hits"] as { readonly key: string }[]).map(({ key }) => key).toSorted()).toEqual(insideKeys);
    expect(found["isComplete"]).toBe(true);
    for (const key of insideKeys) expect((await serving.call("read_session", { key })).text).toContain("a violin");
    const { resources } = await serving.client.listResources();
    expect(resources).toHaveLength(insideKeys.length);
    for (const { uri } of resources) await serving.client.readResource({ uri });
  });

  it("finds its own words although a thousand better places are elsewhere", async () => {
    await using store = open();
    const many = Array.from({ length: 1100 }, (_, index) => `violin violin violin ${secret} ${index}`);
    await fill(store, hiddenRef("many"), many, { cwd: join(base, "a/bc") });
    await fill(store, refOf("main", "own"), ["a violin among many other words of this session"], { cwd: folder });
    const { text } = await (await serveFolder(store)).call("search_sessions", { query: "violin" });
    expect(text).toContain("a violin among many");
    expect(text).not.toContain(secret);
  });

  it("keeps notes for each folder, and reads none of another", async () => {
    await using store = open();
    const whole = await serve(store, { allowNotes: true });
    await whole.call("add_note", { topic: secret, text: `the ${secret} of all` });
    const other = await serveFolder(store, { folder: join(base, "a/bc"), allowNotes: true });
    await other.call("add_note", { topic: secret, text: `the ${secret} of a customer` });
    const own = await serveFolder(store, { allowNotes: true });
    await own.call("add_note", { topic: "instruments", text: "a violin" });
    for (const args of [{}, { query: secret }, { topic: secret }, { query: "violin" }])
      expect((await own.call("read_memory", args)).text).not.toContain(secret);
    expect((await own.call("read_memory", { topic: "instruments" })).text).toContain("a violin");
    expect((await own.call("search_sessions", { query: "violin" })).structured["hits"]).toHaveLength(1);
    expect((await other.call("read_memory", { query: secret })).text).toContain("of a customer");
    expect((await other.call("read_memory", { query: secret })).text).not.toContain("of all");
  });

  it("sees nothing where its own folder cannot be resolved", async () => {
    await using store = await filled(open());
    symlinkSync(join(base, `loop-${kind}`), join(base, `loop-${kind}`));
    for (const unknown of [join(base, `loop-${kind}`), "", "a/b"]) {
      const serving = await serveFolder(store, { folder: unknown });
      expect(await listedKeys(serving, {})).toEqual([]);
      expect((await serving.call("search_sessions", { query: "violin" })).text).toBe("[Nothing found.]");
    }
  });
});
