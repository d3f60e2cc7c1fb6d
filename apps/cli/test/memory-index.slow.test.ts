import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type EmbeddingServer, startEmbeddingServer } from "@throughline/test-kit/embedding-server";
import { assistant, objects, runHere, seed, start, temporaryDirectory, user } from "./harness.ts";

let directory = temporaryDirectory();
let embeddings: EmbeddingServer;
const children: ReturnType<typeof start>[] = [];
beforeEach(async () => {
  directory = temporaryDirectory();
  embeddings = await startEmbeddingServer();
});
afterEach(async () => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  await embeddings.kill();
  directory.remove();
});

const sessions = [
  { key: "agent:main:trip", drafts: [user("I rented a bike in Porto"), assistant("It had a flat tyre.")] },
  { key: "agent:main:work", drafts: [user("The supper with the client is on Friday"), assistant("Noted.")] },
];
const stores = ["sqlite:sessions.db", "jsonl:store"] as const;

function configure(store: string, search: object = {}): void {
  const embedder = { provider: "openai-compatible", url: `${embeddings.url}/v1`, model: "test", dimensions: 64 };
  writeFileSync(
    join(directory.path, "config.json"),
    JSON.stringify({ store, memory: { search: { embedder, ...search } } }),
  );
}

const index = async () => {
  const { code, stdout, stderr } = await runHere(directory.path, ["memory", "index", "--json"]);
  return { code, stderr, found: stdout === "" ? null : objects(stdout).at(-1) };
};

const ask = async (question: string) => {
  const { stdout } = await runHere(directory.path, ["memory", "search", question, "--json"]);
  const found = objects(stdout);
  const summary = found.find(({ kind }) => kind === "memory-search");
  return { keys: found.filter(({ kind }) => kind === "memory").map(({ key }) => key), summary };
};

describe.each(stores)("memory index over %s, with an embedding server in a process of its own", (store) => {
  beforeEach(async () => {
    await seed(directory.path, sessions, store.replace(":", `:${directory.path}/`));
    configure(store);
  });

  it("gives past sessions vectors once, by which a question without a shared word finds its answer", async () => {
    const before = await ask("hired a bicycle");
    expect([before.summary?.["isWhole"], String(before.summary?.["notes"])]).toEqual([
      false,
      expect.stringContaining("4 records have no vector yet"),
    ]);
    await embeddings.received();
    const { code, found } = await index();
    expect([code, found]).toMatchObject([0, { kind: "memory-index", embedder: "openai/test@64", records: 4, left: 0 }]);
    const sent = (await embeddings.received()).flatMap(({ body }) => body["input"] as readonly string[]);
    expect(sent.toSorted()).toEqual([
      "I rented a bike in Porto\nIt had a flat tyre.",
      "The supper with the client is on Friday\nNoted.",
    ]);
    const { keys, summary } = await ask("hired a bicycle");
    expect([keys[0], summary]).toMatchObject(["agent:main:trip", { isWhole: true, notes: [] }]);
    expect((await index()).found).toMatchObject({ records: 0, left: 0 });
    expect((await embeddings.received()).flatMap(({ body }) => body["input"])).toEqual(["hired a bicycle"]);
  });

  it.each([
    ["500", "EMBEDDING_FAILED", "The model crashed."],
    ["429", "EMBEDDING_FAILED", "Rate limit reached."],
    ["short", "EMBEDDING_INVALID", "63 numbers instead of 64"],
    ["fewer", "EMBEDDING_INVALID", "vectors came back"],
    ["nan", "EMBEDDING_INVALID", "vector"],
    ["zero", "EMBEDDING_INVALID", "vector"],
    ["html", "EMBEDDING_FAILED", "no JSON"],
    ["reset", "EMBEDDING_FAILED", "did not answer"],
    ["redirect", "EMBEDDING_FAILED", "did not answer"],
  ] as const)("fails by name when the server answers with %s, and goes on from there", async (fault, code, text) => {
    await embeddings.control({ fault });
    const failed = await index();
    expect(failed.code).toBe(1);
    expect(failed.stderr).toContain(code);
    expect(failed.stderr).toContain(text);
    const { keys, summary } = await ask("supper");
    expect([keys[0], summary?.["isWhole"]]).toEqual(["agent:main:work", false]);
    expect(String(summary?.["notes"])).toContain("words");
    await embeddings.control({});
    expect((await index()).found).toMatchObject({ records: 4, left: 0 });
    expect((await ask("hired a bicycle")).keys[0]).toBe("agent:main:trip");
  });

  it("waits for a slow server, and a question does not", async () => {
    await embeddings.control({ slowMs: 2000 });
    expect((await index()).found).toMatchObject({ records: 4, left: 0 });
    const { keys, summary } = await ask("supper bicycle");
    expect([keys, summary?.["isWhole"]]).toEqual([["agent:main:work"], false]);
    expect(String(summary?.["notes"])).toContain("within 1500 ms");
  });

  it("stops at the tokens of the day, and says what is left", async () => {
    configure(store, { maxTokensPerDay: 5 });
    const { found } = await index();
    expect(Number(found?.["left"])).toBeGreaterThan(0);
    const { summary } = await ask("hired a bicycle");
    expect(summary?.["isWhole"]).toBe(false);
    expect(String(summary?.["notes"])).toContain("records have no vector yet");
  });
});

describe("vectors beside other work", () => {
  const running = (args: readonly string[]) => {
    const child = start(directory.path, args);
    children.push(child);
    const ended = new Promise<number | null>((resolve) => child.on("close", resolve));
    let stderr = "";
    child.stderr.on("data", (chunk) => (stderr += String(chunk)));
    return { child, ended, stderr: () => stderr };
  };
  const commands = [
    ["serve", ["serve", "--port", "0"], "SIGTERM"],
    ["mcp", ["mcp"], "end of input"],
  ] as const;

  it.each(commands)("are filled by %s when an embedder is named", async (_name, args, end) => {
    await seed(directory.path, sessions);
    configure("sqlite:sessions.db");
    const { child, ended } = running(args);
    await expect
      .poll(() => ask("hired a bicycle").then(({ keys }) => keys[0]), { timeout: 60_000 })
      .toBe("agent:main:trip");
    if (end === "SIGTERM") child.kill("SIGTERM");
    else child.stdin.end();
    expect(await ended).toBe(0);
    const { summary } = await ask("hired a bicycle");
    expect(summary).toMatchObject({ isWhole: true, notes: [] });
  });

  it.each(commands)("hold up no end of %s while a request is under way", async (_name, args, end) => {
    await seed(directory.path, sessions);
    configure("sqlite:sessions.db");
    await embeddings.control({ slowMs: 3_600_000 });
    const { child, ended } = running(args);
    await expect.poll(() => embeddings.received(), { timeout: 60_000 }).not.toEqual([]);
    if (end === "SIGTERM") child.kill("SIGTERM");
    else child.stdin.end();
    expect(await ended).toBe(0);
  });

  it.each(commands)("end no %s when the server fails, which is reported once", async (_name, args, end) => {
    await seed(directory.path, sessions);
    configure("sqlite:sessions.db");
    await embeddings.control({ fault: "500" });
    const { child, ended, stderr } = running(args);
    await expect.poll(stderr, { timeout: 60_000 }).toContain("The model crashed.");
    expect(child.exitCode).toBeNull();
    if (end === "SIGTERM") child.kill("SIGTERM");
    else child.stdin.end();
    expect(await ended).toBe(0);
    expect(stderr().split("The model crashed.")).toHaveLength(2);
  });
});
