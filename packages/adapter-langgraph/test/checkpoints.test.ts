import { MemorySaver, uuid6, type BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import { describe, expect, it } from "vitest";
import { hasErrorCode, redactRecords } from "@throughline/core";
import { createMemoryStore } from "@throughline/store-memory";
import { createCheckpointSaver } from "../src/checkpoint-saver.ts";
import {
  ai,
  at,
  called,
  conversationOf,
  human,
  messagesOf,
  outline,
  put,
  recordsOf,
  refOf,
  result,
} from "./scripted.ts";

const savers: readonly (readonly [string, () => BaseCheckpointSaver])[] = [
  ["MemorySaver", () => new MemorySaver()],
  ["ours", () => createCheckpointSaver({ store: createMemoryStore() })],
];

describe.each(savers)("a checkpointer: %s", (_name, create) => {
  it("gives the newest checkpoint, one by its id, and its parent", async () => {
    const saver = create();
    const first = await put(saver, at("t"), { count: 1 });
    const second = await put(saver, first, { count: 2 }, { version: 2 });
    const newest = await saver.getTuple(at("t"));
    expect(newest?.config).toEqual(second);
    expect(newest?.parentConfig).toEqual(first);
    expect((await saver.getTuple(first))?.checkpoint.channel_values).toEqual({ count: 1 });
    expect((await saver.getTuple(first))?.parentConfig).toBeUndefined();
    expect(await saver.getTuple(at("t", uuid6(0)))).toBeUndefined();
    expect(await saver.getTuple(at("other"))).toBeUndefined();
  });

  it("keeps both sides of a fork, whose channels have the same versions", async () => {
    const saver = create();
    const root = await put(saver, at("t"), { doc: "start" });
    const left = await put(saver, root, { doc: "left" }, { version: 2 });
    const right = await put(saver, root, { doc: "right" }, { version: 2 });
    expect((await saver.getTuple(left))?.checkpoint.channel_values).toEqual({ doc: "left" });
    expect((await saver.getTuple(right))?.checkpoint.channel_values).toEqual({ doc: "right" });
    expect((await saver.getTuple(root))?.checkpoint.channel_values).toEqual({ doc: "start" });
  });

  it("gives the same state whether writes come before or after their checkpoint", async () => {
    const id = uuid6(0);
    const write = (saver: BaseCheckpointSaver): Promise<void> =>
      saver.putWrites(at("t", id), [["a", 1]], "task", "path");
    const [early, late] = [create(), create()];
    await write(early);
    await put(early, at("t"), { x: 1 }, { id });
    await put(late, at("t"), { x: 1 }, { id });
    await write(late);
    const [one, other] = [await early.getTuple(at("t")), await late.getTuple(at("t"))];
    expect(one?.pendingWrites).toEqual([["task", "a", 1]]);
    expect(one?.pendingWrites).toEqual(other?.pendingWrites);
    expect(one?.checkpoint.channel_values).toEqual(other?.checkpoint.channel_values);
  });

  it("replaces special writes, keeps the first of others, and sorts by path, task and place", async () => {
    const saver = create();
    const config = await put(saver, at("t"), {});
    await saver.putWrites(
      config,
      [
        ["z", 1],
        ["y", 2],
      ],
      "b",
      "p\u{10000}",
    );
    await saver.putWrites(config, [["z", 9]], "b", "p\u{10000}");
    await saver.putWrites(config, [["__interrupt__", "one"]], "c", "");
    await saver.putWrites(config, [["__interrupt__", "two"]], "c", "");
    await saver.putWrites(config, [["x", 3]], "a", "p\uffff");
    expect((await saver.getTuple(config))?.pendingWrites).toEqual([
      ["c", "__interrupt__", "two"],
      ["a", "x", 3],
      ["b", "z", 1],
      ["b", "y", 2],
    ]);
  });

  it("keeps writes to channels that are called like members of every object", async () => {
    const store = createMemoryStore();
    const config = await put(createCheckpointSaver({ store }), at("t"), { n: 1 });
    const channels = ["constructor", "toString", "__proto__", "hasOwnProperty"];
    await createCheckpointSaver({ store }).putWrites(
      config,
      channels.map((channel) => [channel, `to ${channel}`]),
      "task",
    );
    const tuple = await createCheckpointSaver({ store }).getTuple(config);
    expect(tuple?.pendingWrites).toEqual(channels.map((channel) => ["task", channel, `to ${channel}`]));
  });

  it("deletes every namespace of a thread and nothing of others", async () => {
    const saver = create();
    await put(saver, at("t"), { a: 1 });
    await put(saver, at("t", undefined, "sub:1"), { a: 1 });
    await put(saver, at("t2"), { a: 1 });
    await saver.deleteThread("t");
    expect(await Array.fromAsync(saver.list({ configurable: { thread_id: "t" } }))).toEqual([]);
    expect(await saver.getTuple(at("t2"))).toBeDefined();
    await saver.deleteThread("nobody");
    await put(saver, at("t"), { a: 2 });
    expect((await saver.getTuple(at("t")))?.checkpoint.channel_values).toEqual({ a: 2 });
  });

  it("gives values of all kinds back as they were", async () => {
    const saver = create();
    const values = {
      bytes: new Uint8Array([0, 255, 7]),
      set: new Set([1, "two"]),
      map: new Map([["k", { deep: [1] }]]),
      text: "\u0000 \u202e é 🦉 \ud800",
      nothing: null,
      list: [],
      messages: [human("h", "hi\n\u0007"), called("a", "c1"), result("r", "c1", "noon")],
      nested: { held: { said: human("n", "inside") } },
      ["constructor"]: "a name",
    };
    const config = await put(saver, at("t"), values);
    const tuple = await saver.getTuple(config);
    expect(tuple?.checkpoint.channel_values).toEqual(values);
    expect(messagesOf(tuple)[1]?.getType()).toBe("ai");
  });
});

describe("createCheckpointSaver", () => {
  it("writes nothing for what the log has already", async () => {
    const store = createMemoryStore();
    const saver = createCheckpointSaver({ store });
    const id = uuid6(0);
    const values = { messages: [human("h", "hi")], n: 1 };
    const checkpoint = { v: 4, id, ts: "2026-11-27T00:00:00.000Z", versions_seen: {}, channel_values: values };
    const versions = { messages: 1, n: 1 };
    for (const one of [saver, saver, createCheckpointSaver({ store })]) {
      await one.put(
        at("t"),
        { ...checkpoint, channel_versions: versions },
        { source: "input", step: -1, parents: {} },
        versions,
      );
      await one.putWrites(
        at("t", id),
        [
          ["a", 1],
          ["__interrupt__", 2],
        ],
        "task",
      );
    }
    expect((await recordsOf(store, "t")).map(({ record }) => record["customType"] ?? record.type)).toEqual([
      "message",
      "langgraph.checkpoint",
      "langgraph.write",
      "langgraph.write",
    ]);
  });

  it("does not let a run of before bring a deleted thread back, here and from another process", async () => {
    const store = createMemoryStore();
    const [saver, other] = [createCheckpointSaver({ store }), createCheckpointSaver({ store })];
    const config = await put(saver, at("t"), { a: 1 });
    await other.getTuple(at("t"));
    await saver.deleteThread("t");
    for (const one of [saver, other]) {
      const refused = await put(one, config, { a: 2 }, { version: 2 }).catch((error: unknown) => error);
      expect(hasErrorCode(refused, "SESSION_NOT_FOUND")).toBe(true);
      await expect(one.putWrites(config, [["a", 1]], "task")).rejects.toThrow(/was deleted/);
    }
    expect(await store.load(refOf("t"))).toBeNull();
    const { sessions } = await store.list({ state: "archived" });
    expect(sessions.map(({ head }) => head.lastSeq)).toEqual([1]);
    const purging = createCheckpointSaver({ store, purge: true });
    const again = await put(purging, at("t"), { a: 3 });
    await purging.deleteThread("t");
    await expect(put(purging, again, { a: 4 }, { version: 2 })).rejects.toThrow(/was deleted/);
    expect((await store.list({ state: "archived" })).sessions.length).toBe(1);
  });

  it.each([
    "__proto__",
    "constructor",
    "../x",
    "",
    " ",
    "x".repeat(300),
    "x".repeat(900),
    "🦉 é",
    "a\u0000b",
    "\ud800",
    "%empty",
  ])("keeps threads and namespaces of hostile names apart: %j", async (name) => {
    const store = createMemoryStore();
    const saver = createCheckpointSaver({ store });
    await put(saver, at(name, undefined, name), { [name]: name, own: 1 });
    await put(saver, at(`${name}'`), { [name]: "other" });
    const tuple = await createCheckpointSaver({ store }).getTuple(at(name, undefined, name));
    expect(Object.entries(tuple?.checkpoint.channel_values ?? {})).toEqual([
      [name, name],
      ["own", 1],
    ]);
    const listed = await Array.fromAsync(createCheckpointSaver({ store }).list({ configurable: {} }));
    const threads = listed.map(({ config }) => String(config.configurable?.["thread_id"]));
    expect(threads.toSorted()).toEqual([name, `${name}'`].toSorted());
    expect(({} as { own?: number }).own).toBeUndefined();
  });

  it("refuses wrong input by name and stores nothing of it", async () => {
    const store = createMemoryStore({ limits: { recordBytes: 4000 } });
    const saver = createCheckpointSaver({ store });
    expect(() => createCheckpointSaver({ store, agent: "x" } as never)).toThrow(/agent/);
    expect(() => createCheckpointSaver({} as never)).toThrow(/store/);
    await expect(put(saver, {}, {})).rejects.toThrow("configurable.thread_id");
    await expect(put(saver, { configurable: { thread_id: 7 } }, {})).rejects.toThrow(
      "must be a string; received number",
    );
    await expect(saver.putWrites(at("t"), [["a", 1]], "task")).rejects.toThrow("configurable.checkpoint_id");
    await expect(
      put(saver, at("t"), {
        bad: {
          toJSON: () => {
            throw new Error("no");
          },
        },
      }),
    ).rejects.toThrow('channel "bad"');
    const large = put(saver, at("t"), { messages: [human("h", "kept whole or not at all")], large: "x".repeat(5000) });
    expect(hasErrorCode(await large.catch((error: unknown) => error), "RECORD_TOO_LARGE")).toBe(true);
    expect(await saver.getTuple(at("t"))).toBeUndefined();
    expect((await store.load(refOf("t")))?.head.lastSeq ?? 0).toBe(0);
  });

  it("keeps values of a serializer of its own closed", async () => {
    const store = createMemoryStore();
    const serde = {
      dumpsTyped: (value: unknown): Promise<[string, Uint8Array]> =>
        Promise.resolve(["sealed", Buffer.from(JSON.stringify(value)).map((byte) => byte ^ 255)]),
      loadsTyped: (_type: string, data: Uint8Array | string): Promise<unknown> =>
        Promise.resolve(
          JSON.parse(
            Buffer.from(data as Uint8Array)
              .map((byte) => byte ^ 255)
              .toString(),
          ) as unknown,
        ),
    };
    const saver = createCheckpointSaver({ store, serde });
    const config = await put(saver, at("t"), { messages: ["the secret heron"] });
    await saver.putWrites(config, [["messages", "heron"]], "task");
    expect(JSON.stringify(await recordsOf(store, "t"))).not.toContain("heron");
    const tuple = await createCheckpointSaver({ store, serde }).getTuple(at("t"));
    expect(tuple?.checkpoint.channel_values).toEqual({ messages: ["the secret heron"] });
    expect(tuple?.pendingWrites).toEqual([["task", "messages", "heron"]]);
    // What others write does not take the place of what the log cannot read.
    await store.append(refOf("t"), [{ type: "message", message: { role: "user", content: "Meanwhile" } }]);
    const later = await createCheckpointSaver({ store, serde }).getTuple(at("t"));
    expect(later?.checkpoint.channel_values).toEqual({ messages: ["the secret heron"] });
  });

  it("loses a redacted message everywhere, and nothing else", async () => {
    const store = createMemoryStore();
    const saver = createCheckpointSaver({ store });
    const said = [human("h1", "my word is heron"), ai("a1", "Noted."), human("h2", "What now?")];
    let config = await put(saver, at("t"), { __start__: { messages: [said[0]] } });
    await saver.putWrites(config, [["messages", [said[0]]]], "task");
    config = await put(saver, config, { messages: said.slice(0, 1), kept: "yes" }, { version: 2 });
    config = await put(saver, at("t", undefined, "sub:1"), { messages: said.slice(0, 2) }, { version: 2 });
    config = await put(
      saver,
      at("t", (await saver.getTuple(at("t")))?.checkpoint.id),
      { messages: said, kept: "yes" },
      { version: 3 },
    );
    const id = (await recordsOf(store, "t")).find(
      ({ type, record }) => type === "message" && JSON.stringify(record).includes("heron"),
    )?.id;
    await redactRecords(store, refOf("t"), [id ?? ""], { reason: "a secret" });
    for (const one of [saver, createCheckpointSaver({ store })]) {
      const tuples = await Array.fromAsync(one.list({ configurable: { thread_id: "t" } }));
      expect(tuples.length).toBe(4);
      expect(JSON.stringify(tuples)).not.toContain("heron");
      const tuple = await one.getTuple(at("t"));
      expect(outline(messagesOf(tuple)).slice(-2)).toEqual(["ai: Noted.", "human: What now?"]);
      expect(tuple?.checkpoint.channel_values["kept"]).toBe("yes");
    }
    expect(JSON.stringify(await recordsOf(store, "t"))).not.toContain("heron");
    expect((await conversationOf(store, "t")).slice(-2)).toEqual(["ai: Noted.", "human: What now?"]);
  });
});
