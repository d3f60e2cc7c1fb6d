import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type EmbeddingServer, startEmbeddingServer } from "@throughline/test-kit/embedding-server";
import { assistant, objects, runHere, seed, temporaryDirectory, user } from "./harness.ts";

const directory = temporaryDirectory();
const app = join(directory.path, "app");
const other = join(directory.path, "other");
const theirs = "agent:work:trip";
let embeddings: EmbeddingServer;

beforeAll(async () => {
  embeddings = await startEmbeddingServer();
  mkdirSync(app);
  mkdirSync(other);
  await seed(directory.path, [
    {
      key: "agent:main:trip",
      entry: { cwd: app },
      drafts: [user("I rented a bike in Porto"), assistant("It had a flat tyre.")],
    },
    { key: "agent:main:customer", entry: { cwd: other }, drafts: [user("The customer rented a bike")] },
    { key: theirs, drafts: [user("They rented a bike in Lagos")] },
  ]);
  const embedder = { provider: "openai-compatible", url: `${embeddings.url}/v1`, model: "test", dimensions: 64 };
  const memory = { search: { embedder } };
  writeFileSync(join(directory.path, "config.json"), JSON.stringify({ store: "sqlite:sessions.db", memory }));
  for (const agent of ["main", "work"]) {
    const { code } = await runHere(directory.path, ["memory", "index", "--agent", agent, "--json"]);
    expect(code).toBe(0);
  }
});
beforeEach(() => embeddings.control({}));
afterAll(async () => {
  await embeddings.kill();
  directory.remove();
});

interface Searched {
  readonly keys: readonly string[];
  readonly notes: readonly string[];
  readonly text: string;
  readonly stderr: string;
}

/** A busy machine may keep the embedder from answering in time, so such a question is asked again. */
async function search(
  given: Readonly<Record<string, unknown>>,
  args: readonly string[] = [],
  cwd = app,
): Promise<Searched> {
  for (;;) {
    const found = await searchOnce(given, args, cwd);
    if (!found.notes.some((note) => note.endsWith("in time"))) return found;
  }
}

async function searchOnce(
  given: Readonly<Record<string, unknown>>,
  args: readonly string[],
  cwd: string,
): Promise<Searched> {
  const params = { name: "search_sessions", arguments: { query: "hire cycling", ...given } };
  const stdin = `${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params })}\n`;
  const config = ["--config", join(directory.path, "config.json")];
  const { code, stdout, stderr } = await runHere(directory.path, ["mcp", ...config, ...args], { stdin, cwd });
  expect(code).toBe(0);
  const [{ result } = {}] = objects(stdout) as unknown as readonly { result?: Result }[];
  const { hits = [], notes = [] } = result?.structuredContent ?? {};
  return { keys: hits.map(({ key }) => key), notes, text: result?.content[0]?.text ?? "", stderr };
}

interface Result {
  readonly content: readonly { readonly text: string }[];
  readonly structuredContent: {
    readonly hits: readonly { readonly key: string }[];
    readonly notes: readonly string[];
  };
}

const store = (): readonly string[] => ["--store", `sqlite:${join(directory.path, "sessions.db")}`];

describe("search_sessions with an embedder", () => {
  it("finds a session that shares no word with the question, and asks no embedder for exact words", async () => {
    await embeddings.received();
    const { keys, notes, text } = await search({}, store());
    expect(keys.toSorted()).toEqual(["agent:main:customer", "agent:main:trip"]);
    expect([notes, text.includes("I rented a bike in Porto")]).toEqual([[], true]);
    const sent = (await embeddings.received()).flatMap(({ body }) => body["input"]);
    expect(new Set(sent)).toEqual(new Set(["hire cycling"]));
    expect((await search({ query: '"hire cycling"' }, store())).keys).toEqual([]);
    expect(await embeddings.received()).toEqual([]);
  });

  it("keeps to its filters, its folder and its agents", async () => {
    expect((await search({ key: "agent:main:trip" }, store())).keys).toEqual(["agent:main:trip"]);
    expect((await search({ role: "toolResult" }, store())).keys).toEqual([]);
    expect((await search({ until: "2020-01-01" }, store())).keys).toEqual([]);
    const { keys, text } = await search({}, ["--here", ...store()]);
    expect([keys, /customer|Lagos/.test(text)]).toEqual([["agent:main:trip"], false]);
    const all = await search({}, ["--all-agents", ...store()]);
    expect(all.keys).not.toContain(theirs);
    expect(all.notes).toEqual(["sessions of other agents were compared by words only"]);
  });

  it("finds words alone when the embedder fails, and names no host to the client", async () => {
    await embeddings.control({ fault: "500" });
    const { keys, notes, text, stderr } = await search({ query: "Porto hire" }, store());
    expect(keys).toEqual(["agent:main:trip"]);
    expect(notes).toEqual(["only words were compared: EMBEDDING_FAILED"]);
    expect(text).toContain("[only words were compared: EMBEDDING_FAILED]");
    expect(text).not.toContain("127.0.0.1");
    expect(stderr).toContain("EMBEDDING_FAILED");
  });
});
