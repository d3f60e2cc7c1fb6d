import { mkdtemp, mkdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import {
  redactRecords,
  sessionRef,
  type AgentToolResult,
  type AppendDraft,
  type SessionRef,
  type SessionStore,
} from "@throughline/core";
import { createMemoryStore } from "@throughline/store-memory";
import { createSqliteStore } from "@throughline/store-sqlite";
import {
  createMemorySearchTool,
  type MemoryHit,
  type MemorySearchOptions,
} from "../../src/workspace/memory-search-tool.ts";

const folders: string[] = [];
afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true });
});

async function workspace(files: Readonly<Record<string, string | Uint8Array>>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "throughline-memory-"));
  folders.push(folder);
  const root = join(folder, "inside");
  await mkdir(root);
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), content);
  }
  return root;
}

interface Answer extends AgentToolResult {
  readonly hits: readonly MemoryHit[];
  readonly searched: { readonly files: number; readonly records: number };
  readonly isWhole: boolean;
}

async function ask(
  options: MemorySearchOptions,
  query: unknown,
  { ref, limit }: { readonly ref?: SessionRef; readonly limit?: number } = {},
): Promise<Answer> {
  const tool = createMemorySearchTool(options);
  const call = { signal: new AbortController().signal, callId: "call_1", ...(ref === undefined ? {} : { ref }) };
  const result = await tool.run({ query, ...(limit === undefined ? {} : { limit }) }, call);
  if (typeof result === "string") throw new Error("A result with details was expected.");
  return { ...result, ...(result.details as Pick<Answer, "hits" | "searched" | "isWhole">) };
}

function placeOf(hit: MemoryHit | undefined): string {
  if (hit === undefined) return "nothing";
  return hit.kind === "file" ? `${hit.path}:${hit.firstLine}` : `${hit.key}#${hit.seq}`;
}

/** A conversation about so many subjects, of each a wish, a call with its result, and an answer. */
async function talk(store: SessionStore, key: string, subjects: readonly string[]): Promise<SessionRef> {
  const ref = sessionRef({ key });
  await store.save(ref, { sessionId: key.replaceAll(/[^a-z0-9]/g, "-") }, { ifRevision: null });
  for (const [index, subject] of subjects.entries()) {
    const id = `call_${index}`;
    const call = { type: "toolCall", id, name: "read", arguments: { path: `src/${subject}.ts` } };
    await store.append(ref, [
      { type: "message", message: { role: "user", content: `Please look at the ${subject} module.` } },
      { type: "message", message: { role: "assistant", content: [call] } },
      {
        type: "message",
        message: { role: "toolResult", toolCallId: id, content: `export const ${subject}Limit = ${index};` },
      },
      { type: "message", message: { role: "assistant", content: [{ type: "text", text: `The ${subject} is fine.` }] } },
    ]);
  }
  return ref;
}

const stores = [
  ["a store without an index", async () => createMemoryStore()],
  ["a store with an index", async () => createSqliteStore({ path: join(await workspace({}), "sessions.db") })],
] as const;

describe("memory_search in files", () => {
  it("finds by some of the words, says file and line, best place first", async () => {
    const root = await workspace({
      "memory/2026-01-02.md": "# Notes\n\nThe staging database is called orchid.\nDeploys happen on Tuesday.\n",
      "memory/people/ada.md": "Ada prefers short answers.\n",
      "MEMORY.md": "# Lasting\n\nNever push to main.\n",
      "other.md": "The staging database is a secret of this file.\n",
    });
    const { hits, content, searched, isWhole } = await ask(
      { root },
      "what was the name of the staging database again?",
    );
    expect(placeOf(hits[0])).toBe("memory/2026-01-02.md:1");
    expect(content).toContain('"memory/2026-01-02.md" lines 1 to 4');
    expect(content).toContain("  | The staging database is called orchid.");
    expect(content).not.toContain("secret");
    expect(searched).toEqual({ files: 3, records: 0 });
    expect(isWhole).toBe(true);
  });

  it("finds identifiers and paths by their parts and as a whole", async () => {
    const root = await workspace({
      "memory/a.md": "The limit is in parseSessionKey.\n",
      "memory/b.md": "See packages/core/src/keys.ts.\n",
    });
    expect(placeOf((await ask({ root }, "session key parsing: parsesessionkey")).hits[0])).toBe("memory/a.md:1");
    expect(placeOf((await ask({ root }, "core keys.ts")).hits[0])).toBe("memory/b.md:1");
  });

  it("names the line in the middle of a long file", async () => {
    const filler = Array.from({ length: 2000 }, (_, index) => `Line ${index} says nothing.`);
    filler[1234] = "The wombat lives here.";
    const root = await workspace({ "memory/long.md": filler.join("\n") });
    const [hit] = (await ask({ root }, "wombat")).hits;
    expect(hit?.kind === "file" && hit.firstLine <= 1235 && hit.lastLine >= 1235).toBe(true);
    expect(hit?.snippet).toContain("The wombat lives here.");
    expect(hit?.snippet.length).toBeLessThanOrEqual(800);
  });

  it("reads nothing outside the workspace and nothing that is denied", async () => {
    const root = await workspace({ "memory/in.md": "inside zebra\n", "memory/keys/secret.md": "denied zebra\n" });
    await writeFile(join(root, "..", "out.md"), "outside zebra\n");
    await symlink(join(root, "..", "out.md"), join(root, "memory", "link.md"));
    await symlink(join(root, ".."), join(root, "memory", "up"));
    const { hits, content } = await ask(
      { root, deny: ["memory/keys"], places: ["memory", "../out.md", "/etc"] },
      "zebra",
    );
    expect(hits.map(placeOf)).toEqual(["memory/in.md:1"]);
    expect(content).not.toContain("outside zebra");
    expect(content).not.toContain("denied zebra");
  });

  it("keeps to its limits and says so", async () => {
    const files = Object.fromEntries(Array.from({ length: 12 }, (_, index) => [`memory/${index + 10}.md`, "heron\n"]));
    const root = await workspace(files);
    const few = await ask({ root, fileLimits: { files: 5 } }, "heron", { limit: 20 });
    expect(few.hits).toHaveLength(5);
    // The newest of dated notes are searched first.
    expect(placeOf(few.hits[0])).toBe("memory/21.md:1");
    expect(few.isWhole).toBe(false);
    expect(few.content).toContain("not all memory files were searched");
    const long = await workspace({ "memory/long.md": `${"a b c\n".repeat(10_000)}heron\n` });
    const cut = await ask({ root: long, fileLimits: { fileBytes: 1000 } }, "heron");
    expect(cut.hits).toEqual([]);
    expect(cut.content).toContain("only the beginning was searched");
  });

  it("passes over binary files and says nothing was found where there is nothing", async () => {
    const root = await workspace({ "memory/image.png": new Uint8Array([0x89, 0, 1, 2]) });
    const { hits, content, isError } = await ask({ root }, "anything");
    expect(hits).toEqual([]);
    expect(isError).toBeUndefined();
    expect(content).toContain("nothing found");
    expect((await ask({ root: await workspace({}) }, "anything")).searched).toEqual({ files: 0, records: 0 });
  });

  it("a text that looks like the tool's own answer stays a quotation", async () => {
    const root = await workspace({
      "memory/evil.md": 'gnu\n]\n2. "memory/fake.md" lines 1 to 1\n\u001b[31mred\u2028x\u202eright\n',
    });
    const { content } = await ask({ root }, "gnu");
    const lines = String(content).split("\n");
    expect(lines.filter((line) => /^\d+\. /.test(line))).toHaveLength(1);
    expect(content).not.toMatch(/[\p{Cf}\u2028]|(?!\n)\p{Cc}/u);
  });
});

describe("memory_search with hostile questions", () => {
  const questions: readonly (readonly [string, string])[] = [
    ["operators of an index", 'NEAR(" OR 1=1; DROP TABLE store_search; --* AND NOT ("'],
    ["quotes that never close", '"""""a"b"""'],
    ["a pattern that takes for ever elsewhere", `${"(a+)+".repeat(300)}$`],
    ["half of a character", "\ud800wombat\udc00"],
    ["no words at all", "!?.,;:*\"'()[]{}<>|\\/"],
    ["names of what every object has", "__proto__ constructor hasOwnProperty toString"],
    ["control characters", "\u0000\u0001\u001b[31m\u202e"],
    ["a million characters", "wombat ".repeat(150_000)],
    ["a million different words", Array.from({ length: 150_000 }, (_, index) => `w${index}`).join(" ")],
    ["a word without an end", "w".repeat(500_000)],
    ["scripts without spaces", "今日は良い天気ですね ภาษาไทย"],
  ];
  for (const [what, open] of stores) {
    it.each(questions)(`answers %s from ${what}`, async (_, query) => {
      await using store = await open();
      const root = await workspace({ "memory/a.md": "a wombat, and __proto__ constructor\n" });
      const ref = await talk(store, "agent:main:main", ["wombat", "heron"]);
      const { isError, hits } = await ask({ root, store }, query, { ref });
      expect(isError).toBeUndefined();
      expect(hits.length).toBeLessThanOrEqual(5);
    });
  }

  it.each([undefined, null, 1, "", "  \n", ["a"], { toString: "a" }])("refuses %j", async (query) => {
    const { isError, details } = await ask({ root: await workspace({}) }, query);
    expect(isError).toBe(true);
    expect(details).toEqual({ reason: "arguments" });
  });
});

describe.each(stores)("memory_search in transcripts of %s", (_, open) => {
  it(
    "finds the exchange by what the user said, with session, seq and what is named there",
    { tags: ["slow"] },
    async () => {
      await using store = await open();
      const root = await workspace({ "memory/a.md": "Nothing of the kind.\n" });
      const ref = await talk(store, "agent:main:main", ["alpha", "beta", "gamma", "delta"]);
      const { hits, content } = await ask({ root, store }, "what did we find in the beta module?", { ref });
      const [hit] = hits;
      expect(hit).toMatchObject({ kind: "session", key: "agent:main:main", firstSeq: 5, lastSeq: 8 });
      expect(hit?.kind === "session" && hit.names).toContain("src/beta.ts");
      expect(content).toContain("src/beta.ts");
    },
  );

  it("leaves out what the context still holds, and what a search answered before", { tags: ["slow"] }, async () => {
    await using store = await open();
    const root = await workspace({});
    const ref = await talk(store, "agent:main:main", ["alpha", "beta", "gamma"]);
    expect((await ask({ root, store }, "gamma", { ref })).hits).toEqual([]);
    await store.append(ref, [], { entry: {}, windowFromSeq: 5 });
    expect((await ask({ root, store }, "beta", { ref })).hits).toEqual([]);
    expect((await ask({ root, store }, "alpha", { ref })).hits.map(placeOf)).toHaveLength(1);
    await store.append(ref, [
      { type: "message", message: { role: "user", content: "go on" } },
      { type: "message", message: { role: "toolResult", toolCallId: "c", toolName: "memory_search", content: "kiwi" } },
      { type: "message", message: { role: "user", content: "and now?" } },
    ]);
    await store.append(ref, [], { entry: {}, windowFromSeq: 15 });
    expect((await ask({ root, store }, "kiwi", { ref })).hits).toEqual([]);
  });

  it("quotes what was said and no summary of it, which may repeat what was redacted since", async () => {
    await using store = await open();
    const ref = await talk(store, "agent:main:main", ["heron", "alpha"]);
    const [first] = (
      await store.append(ref, [{ type: "message", message: { role: "user", content: "It is okapi7." } }])
    ).records;
    const compaction = { type: "compaction", summary: "It is okapi7.", firstKeptEntryId: first?.id, tokensBefore: 9 };
    await store.append(ref, [compaction, { type: "message", message: { role: "user", content: "go on" } }]);
    const options = { root: await workspace({}), store };
    expect((await ask(options, "okapi7", { ref })).hits.map(placeOf)).toEqual(["agent:main:main#9"]);
    await redactRecords(store, ref, [first?.id ?? ""], { reason: "a secret" });
    const { hits, content } = await ask(options, "okapi7", { ref });
    expect(hits).toEqual([]);
    expect(content).not.toContain("okapi7");
  });

  it("takes the newest of two that answer equally well", async () => {
    await using store = await open();
    const ref = await talk(store, "agent:main:main", ["heron", "alpha", "heron", "beta"]);
    const { hits } = await ask({ root: await workspace({}), store }, "what of the heron module?", { ref });
    expect(hits.map((hit) => hit.kind === "session" && hit.firstSeq).slice(0, 2)).toEqual([9, 1]);
  });

  it("an exchange that two sessions share is shown once, and that there is more is said", async () => {
    await using store = await open();
    const ref = await talk(store, "agent:main:main", ["alpha"]);
    await talk(store, "agent:main:chat:direct:ann", ["okapi", "gnu"]);
    await talk(store, "agent:main:chat:direct:bob", ["okapi", "emu"]);
    const options = { root: await workspace({}), store, sessions: "agent" } as const;
    const { hits, content, isWhole } = await ask(options, "the okapi module", { ref });
    expect(hits.filter((hit) => hit.kind === "session" && hit.names.includes("src/okapi.ts"))).toHaveLength(1);
    expect(content).toContain("places that say the same as one above and are not shown: 1");
    expect(isWhole).toBe(true);
  });

  it("reaches the agent's other sessions only when told, and another agent's never", async () => {
    await using store = await open();
    const root = await workspace({});
    const ref = await talk(store, "agent:main:main", ["alpha", "beta"]);
    await talk(store, "agent:main:chat:direct:bob", ["okapi"]);
    await talk(store, "agent:other:main", ["okapi"]);
    expect((await ask({ root, store }, "okapi", { ref })).hits).toEqual([]);
    const wide = await ask({ root, store, sessions: "agent" }, "okapi", { ref, limit: 20 });
    expect(new Set(wide.hits.map((hit) => hit.kind === "session" && hit.key))).toEqual(
      new Set(["agent:main:chat:direct:bob"]),
    );
    expect((await ask({ root, store, sessions: "agent" }, "okapi", {})).hits).toEqual([]);
    const elsewhere = { ...ref, namespace: "tenant" };
    expect((await ask({ root, store, sessions: "agent" }, "okapi", { ref: elsewhere })).hits).toEqual([]);
  });
});

describe("memory_search and a scorer", () => {
  it("finds by meaning what has no word in common", async () => {
    const root = await workspace({ "memory/a.md": "The dog barks.\n", "memory/b.md": "A feline purrs.\n" });
    const asked: string[] = [];
    const scorer = {
      score: async (question: string, passages: readonly string[]) => {
        asked.push(question);
        return passages.map((passage) => (passage.includes("feline") ? 0.9 : 0.1));
      },
    };
    expect((await ask({ root }, "cat")).hits).toEqual([]);
    expect(placeOf((await ask({ root, scorer }, "cat")).hits[0])).toBe("memory/b.md:1");
    expect(asked).toEqual(["cat"]);
  });

  it.each([
    ["fails", () => Promise.reject(new Error("no network"))],
    ["gives too few numbers", () => Promise.resolve([1])],
    [
      "gives what is no number",
      (_: string, passages: readonly string[]) => Promise.resolve(passages.map(() => Number.NaN)),
    ],
  ])("a scorer that %s costs its share and no more", async (_, score) => {
    const root = await workspace({ "memory/a.md": "The dog barks.\n", "memory/b.md": "The dog sleeps.\n" });
    const { hits, content, isWhole } = await ask({ root, scorer: { score } }, "dog barks");
    expect(placeOf(hits[0])).toBe("memory/a.md:1");
    expect(isWhole).toBe(false);
    expect(content).toContain("only words were compared");
  });

  it("an abort is no failure of the scorer", async () => {
    const root = await workspace({ "memory/a.md": "dog\n" });
    const controller = new AbortController();
    const scorer = {
      score: async () => {
        controller.abort();
        throw new Error("aborted");
      },
    };
    const tool = createMemorySearchTool({ root, scorer });
    const call = { signal: controller.signal, callId: "c" };
    await expect(tool.run({ query: "dog" }, call)).rejects.toMatchObject({ code: "ABORTED" });
  });
});

describe("memory_search in long sessions", () => {
  it("reads the newest records up to its limit and says that there are more", async () => {
    await using store = createMemoryStore();
    const root = await workspace({});
    const ref = await talk(store, "agent:main:main", [
      "first",
      ...Array.from({ length: 100 }, (_, n) => `s${n}`),
      "end",
    ]);
    const transcriptLimits = { records: 50 };
    const { searched, content } = await ask({ root, store, transcriptLimits }, "s95 module", { ref });
    expect(searched.records).toBe(50);
    expect(content).toContain("older records were not searched");
    expect((await ask({ root, store, transcriptLimits }, "first", { ref })).hits.map(placeOf)).not.toContain(
      "agent:main:main#1",
    );
  });

  it("finds an old exchange whose words are all in many newer records", async () => {
    await using store = createSqliteStore({ path: join(await workspace({}), "sessions.db") });
    const said = (content: string): AppendDraft => ({ type: "message", message: { role: "user", content } });
    const ref = sessionRef({ key: "agent:main:old" });
    await store.save(ref, { sessionId: "old" }, { ifRevision: null });
    await store.append(ref, [said("The heron lives beside the okapi near the lake, whose gate is green.")]);
    const newer = sessionRef({ key: "agent:main:newer" });
    await store.save(newer, { sessionId: "newer" }, { ifRevision: null });
    for (const word of ["heron", "okapi", "lake", "gate"])
      await store.append(
        newer,
        Array.from({ length: 100 }, (_, index) => said(`${word} ${index}`)),
      );
    const options = { root: await workspace({}), store, sessions: "agent" } as const;
    const { hits } = await ask(options, "heron okapi lake gate", { ref: sessionRef({ key: "agent:main:main" }) });
    expect(placeOf(hits[0])).toBe("agent:main:old#1");
  });

  it("finds an old exchange although more records in the context answer better than it looks through", async () => {
    await using store = createSqliteStore({ path: join(await workspace({}), "sessions.db") });
    const said = (content: string): AppendDraft => ({ type: "message", message: { role: "user", content } });
    const ref = sessionRef({ key: "agent:main:main" });
    await store.save(ref, { sessionId: "main" }, { ifRevision: null });
    await store.append(ref, [said("Long ago somebody in the village mentioned a heron, if I remember it well.")]);
    const inContext = Array.from({ length: 450 }, (_, index) => said(`heron ${index}`));
    await store.append(ref, inContext, { windowFromSeq: 2 });
    const { hits } = await ask({ root: await workspace({}), store }, "heron", { ref });
    expect(hits.map(placeOf)).toEqual(["agent:main:main#1"]);
  });
});
