import { readFileSync, truncateSync, writeFileSync } from "node:fs";
import { redactRecords, type SessionStore } from "@throughline/core";
import { buildContext } from "@throughline/history";
import { createJsonlStore } from "@throughline/store-jsonl";
import { createMemoryStore } from "@throughline/store-memory";
import { createSqliteStore } from "@throughline/store-sqlite";
import type { ImportSource } from "../src/import-types.ts";
import { describe, expect, it } from "vitest";
import {
  exported,
  failingAfter,
  fixtureFolder,
  importAll,
  recordsOf,
  refOf,
  type FixtureFolder,
} from "./fixture-folder.ts";

const messages: readonly object[] = [
  { role: "user", content: "What is in a\\b.txt?\n\u2028" },
  {
    role: "assistant",
    content: null,
    tool_calls: [{ id: "call_a", type: "function", function: { name: "read", arguments: "{}" } }],
  },
  { role: "tool", tool_call_id: "call_a", content: "hello" },
  { role: "assistant", content: "It says hello." },
];
const text = `${JSON.stringify({ model: "gpt-5", messages, tools: [{ a: "\\n" }] }, null, 2)}\n`;

const stores: readonly (readonly [string, (folder: FixtureFolder) => SessionStore])[] = [
  ["memory", () => createMemoryStore()],
  ["jsonl", (folder) => createJsonlStore({ root: folder.at("store"), create: true })],
  ["sqlite", (folder) => createSqliteStore({ path: folder.at("store.db"), create: true })],
];

async function importOne(store: SessionStore, path: string): Promise<ImportSource> {
  const [source, ...others] = await importAll(store, path);
  if (source === undefined || others.length > 0) throw new Error(`${others.length} others`);
  return source;
}

async function said(store: SessionStore, source: ImportSource): Promise<readonly string[]> {
  const state = await store.load(refOf(source));
  const records = await recordsOf(store, refOf(source));
  const { messages: found } = buildContext(records, { headId: state?.head.headId ?? null });
  return found.map(
    ({ role, content }) => `${role} ${content.map((block) => ("text" in block ? block.text : block.type)).join()}`,
  );
}

describe("a document of another program", () => {
  it.each(stores)("comes in a message at a time and goes out byte for byte: %s", async (_, create) => {
    using folder = fixtureFolder();
    await using store = create(folder);
    const path = folder.write("chat.json", text);
    const source = await importOne(store, path);
    expect(source).toMatchObject({
      format: "openai",
      state: "imported",
      sessionId: "chat",
      lines: 6,
      records: 6,
      lost: [],
    });
    expect(await exported(store, refOf(source), "openai")).toBe(readFileSync(path, "latin1"));
    expect(await importOne(store, path)).toMatchObject({ state: "unchanged", records: 0 });
    expect(await said(store, source)).toHaveLength(4);
    expect(readFileSync(path, "utf8")).toBe(text);
  });

  it(
    "that is cut at any byte is never an error, and all of it is there once it is whole",
    { tags: ["slow"] },
    async () => {
      using folder = fixtureFolder();
      const bytes = Buffer.from(
        '{"messages":[\n{"role":"user","content":"é\\n"},\n{"role":"assistant","content":"Yo"}\n],"t":[1]}\n',
      );
      for (let size = 0; size <= bytes.length; size++) {
        await using store = createMemoryStore();
        const path = folder.write(`cut-${size}.json`, bytes.subarray(0, size));
        const cut = await importOne(store, path);
        expect(["imported", "refused"]).toContain(cut.state);
        if (cut.state === "imported")
          expect(await exported(store, refOf(cut), "openai")).toBe(bytes.subarray(0, size).toString("latin1"));
        writeFileSync(path, bytes);
        const whole = await importOne(store, path);
        expect([size, whole.error]).toEqual([size, null]);
        expect(await exported(store, refOf(whole), "openai")).toBe(bytes.toString("latin1"));
        expect(await said(store, whole)).toEqual(["user é\n", "assistant Yo"]);
        expect((await importOne(store, path)).state).toBe("unchanged");
      }
    },
  );

  it("waits for its rest where texts alone could be of two formats, unless its format is named", async () => {
    using folder = fixtureFolder();
    const texts = [
      { role: "user", content: "Hi" },
      { role: "assistant", content: "Yo" },
    ];
    const call = { role: "assistant", content: [{ type: "tool_use", id: "t1", name: "f", input: {} }] };
    const text = JSON.stringify([...texts, call], null, 2);
    const cut = text.indexOf('"tool_use"');
    const path = folder.write("list.json", text.slice(0, cut));
    await using store = createMemoryStore();
    const early = await importOne(store, path);
    expect([early.state, early.error?.code]).toEqual(["refused", "FORMAT_UNKNOWN"]);
    expect(early.error?.remedy).toContain("--from openai");
    writeFileSync(path, text);
    const whole = await importOne(store, path);
    expect([whole.format, whole.state]).toEqual(["anthropic", "imported"]);
    expect(await exported(store, refOf(whole), "anthropic")).toBe(text);
    const [named] = await importAll(createMemoryStore(), folder.write("named.json", text.slice(0, cut)), {
      from: "openai",
    });
    expect([named?.format, named?.state]).toEqual(["openai", "imported"]);
  });

  const forms: readonly (readonly [string, (list: readonly object[], index: number) => object])[] = [
    ["end", (list, index) => ({ messages: list, updated: index })],
    ["beginning", (list, index) => ({ updated: "x".repeat(index), messages: list })],
    ["beginning and end", (list, index) => ({ updated: index, messages: list, count: index })],
  ];
  const cases = stores.flatMap(([name, create]) => forms.map(([place, form]) => [name, place, create, form] as const));
  it.each(cases)(
    "that is written anew with more in its list has grown by that: %s, %s",
    async (_, _place, create, form) => {
      using folder = fixtureFolder();
      await using store = create(folder);
      const path = folder.at("chat.json");
      const list: object[] = [];
      for (const [index, message] of [...messages, ...messages].entries()) {
        list.push(message);
        // What stands around the list changes with it.
        writeFileSync(path, JSON.stringify(form(list, index), null, 1));
        const source = await importOne(store, path);
        expect([index, source.state, source.records, source.error]).toEqual([
          index,
          index === 0 ? "imported" : "grown",
          index === 0 ? 3 : 1,
          null,
        ]);
        expect((await importOne(store, path)).state).toBe("unchanged");
        expect(await exported(store, refOf(source), "openai")).toBe(readFileSync(path, "latin1"));
        expect(await said(store, source)).toHaveLength(index + 1);
      }
    },
  );

  it("of which only the beginning changed has it anew, and no message twice", async () => {
    using folder = fixtureFolder();
    await using store = createMemoryStore();
    const path = folder.write("chat.json", text);
    await importOne(store, path);
    for (const model of ["gpt-5-mini", "o3"]) {
      writeFileSync(path, text.replace("gpt-5", model));
      const source = await importOne(store, path);
      expect(source).toMatchObject({ state: "grown", records: 0, error: null });
      expect(await exported(store, refOf(source), "openai")).toBe(readFileSync(path, "latin1"));
      expect(await said(store, source)).toHaveLength(4);
      expect((await importOne(store, path)).state).toBe("unchanged");
    }
  });

  it("that changed before the end of its list is refused, and imported under another key", async () => {
    using folder = fixtureFolder();
    await using store = createMemoryStore();
    const path = folder.write("chat.json", text);
    await importOne(store, path);
    writeFileSync(path, text.replace("It says hello.", "It said hello."));
    expect((await importOne(store, path)).error?.code).toBe("SOURCE_CHANGED");
    const [beside] = await importAll(store, path, { key: "agent:main:import:direct:beside" });
    expect(beside).toMatchObject({ state: "imported", lines: 6 });
  });

  it("whose import was killed is completed by the next one", { tags: ["slow"] }, async () => {
    using folder = fixtureFolder();
    const list = Array.from({ length: 450 }, (_none, index) => ({ role: "user", content: `Message ${index}` }));
    const path = folder.write("chat.json", JSON.stringify(list, null, 2));
    for (const appends of [1, 2, 4]) {
      await using store = createMemoryStore();
      await expect(importAll(failingAfter(store, appends), path)).rejects.toThrow("killed");
      const source = await importOne(store, path);
      expect(source.state).toBe("grown");
      expect(await exported(store, refOf(source), "openai")).toBe(readFileSync(path, "latin1"));
      expect(await said(store, source)).toHaveLength(450);
    }
  });

  it("that was continued here has what was added inside its list", async () => {
    using folder = fixtureFolder();
    await using store = createMemoryStore();
    const path = folder.write("chat.json", text);
    const source = await importOne(store, path);
    await store.append(refOf(source), [{ type: "message", message: { role: "user", content: "And b.txt?" } }]);
    const written = Buffer.from(await exported(store, refOf(source), "openai"), "latin1").toString();
    expect(JSON.parse(written)).toEqual({
      ...(JSON.parse(text) as object),
      messages: [...messages, { role: "user", content: "And b.txt?" }],
    });
    const end = text.indexOf("It says hello.");
    expect(written.slice(0, end)).toBe(text.slice(0, end));
    expect((await importOne(store, path)).state).toBe("unchanged");
  });

  it("has nothing of a message that was redacted", async () => {
    using folder = fixtureFolder();
    await using store = createJsonlStore({ root: folder.at("store"), create: true });
    const source = await importOne(store, folder.write("chat.json", text));
    const record = (await recordsOf(store, refOf(source))).find(({ record: one }) =>
      JSON.stringify(one).includes("hello"),
    );
    await redactRecords(store, refOf(source), [record?.id ?? ""], { reason: "secret" });
    expect(await exported(store, refOf(source), "openai")).not.toContain('"hello"');
  });

  it("of more than 64 MiB is refused with its size", async () => {
    using folder = fixtureFolder();
    await using store = createMemoryStore();
    const path = folder.write("chat.json", text.slice(0, -4));
    truncateSync(path, 64 * 2 ** 20 + 1);
    const source = await importOne(store, path);
    expect(source).toMatchObject({ state: "refused", records: 0 });
    expect(source.error?.message).toContain(`${64 * 2 ** 20 + 1} bytes`);
  });
});

const conversations = [
  '{"messages":[{"role":"user","content":"One"},{"role":"assistant","content":"1","weight":1}]}',
  "",
  '{"messages":[{"role":"user","content":"Two"}]}',
  "{broken",
];

describe("a file of several conversations", () => {
  it("is a session for each of its lines, and grows by lines", async () => {
    using folder = fixtureFolder();
    await using store = createSqliteStore({ path: folder.at("store.db"), create: true });
    const path = folder.write("train.jsonl", `${conversations.join("\n")}\n`);
    const sources = await importAll(store, path);
    expect(sources.map(({ path: one, state, sessionId }) => [one, state, sessionId])).toEqual([
      [`${path}#1`, "imported", "train-1"],
      [`${path}#3`, "imported", "train-3"],
      [`${path}#4`, "imported", "train-4"],
    ]);
    for (const source of sources) {
      const line = conversations[Number(source.path.split("#")[1]) - 1];
      expect(await exported(store, refOf(source), "openai")).toBe(line);
    }
    writeFileSync(path, `${conversations.join("\n")}\n{"messages":[{"role":"user","content":"Three"}]}`);
    expect((await importAll(store, path)).map(({ state }) => state)).toEqual([
      "unchanged",
      "unchanged",
      "unchanged",
      "imported",
    ]);
    expect((await importAll(store, `${path}#3`)).map(({ path: one, state }) => [one, state])).toEqual([
      [`${path}#3`, "unchanged"],
    ]);
    expect((await importAll(store, `${path}#9`))[0]?.error?.code).toBe("FILE_NOT_FOUND");
  });

  it("that was changed is refused for the lines that changed", async () => {
    using folder = fixtureFolder();
    await using store = createMemoryStore();
    const path = folder.write("train.jsonl", `${conversations.join("\n")}\n`);
    await importAll(store, path);
    writeFileSync(path, `${conversations.join("\n").replace("Two", "2wo")}\n`);
    const states = (await importAll(store, path)).map(({ state, error }) => error?.code ?? state);
    expect(states).toEqual(["unchanged", "SOURCE_CHANGED", "unchanged"]);
  });
});
