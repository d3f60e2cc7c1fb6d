import { rmSync } from "node:fs";
import { sessionRef, type SessionEntry, type SessionState, type SessionStore } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { describe, expect, it } from "vitest";
import { testSize } from "../../../tools/test-size.ts";
import { OpenClawFolder } from "./openclaw-folder.ts";
import { userDraft } from "./session-fixture.ts";
import { mortalFiles, playTurns } from "./adopt-histories.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();
const group = "agent:main:telegram:group:42";
const other = "agent:main:telegram:direct:7";

interface Session {
  readonly key: string;
  readonly id: string;
  readonly archived?: boolean;
  readonly entry?: object;
  readonly texts: readonly string[];
}

interface Case {
  readonly name: string;
  /** What this store wrote before, in a handle that is closed. */
  readonly ours?: (store: SessionStore) => Promise<unknown>;
  /** What the other program did after that and before the next handle. */
  readonly theirs: (folder: OpenClawFolder) => void;
  readonly expected: readonly Session[];
}

function begin(store: SessionStore, key: string, entry: SessionEntry, ...texts: readonly string[]): Promise<unknown> {
  const ref = sessionRef({ key });
  return store
    .save(ref, entry, { ifRevision: null })
    .then(() => store.append(ref, texts.map(userDraft), texts.length === 0 ? { entry: {} } : {}));
}

const cases: readonly Case[] = [
  {
    name: "an entry and its transcript",
    theirs: (folder) => folder.begin(group, "a", "hello", { label: "team", thinkingLevel: "low", own: { deep: [1] } }),
    expected: [
      { key: group, id: "a", entry: { label: "team", thinkingLevel: "low", own: { deep: [1] } }, texts: ["hello"] },
    ],
  },
  {
    name: "an entry without a transcript, with every field",
    theirs: (folder) =>
      folder.begin(group, "a", null, { sendPolicy: "deny", label: "quiet", queueMode: "collect", own: { deep: [1] } }),
    expected: [
      {
        key: group,
        id: "a",
        entry: { sendPolicy: "deny", label: "quiet", queueMode: "collect", own: { deep: [1] } },
        texts: [],
      },
    ],
  },
  {
    name: "a transcript without an entry",
    theirs: (folder) => folder.say("a.jsonl", "a", "alone"),
    expected: [{ key: "agent:main:import:direct:a", id: "a", texts: ["alone"] }],
  },
  {
    name: "the topic of a group in a file of its own, with an entry",
    theirs(folder) {
      folder.begin(group, "a", "in the group");
      folder.begin(`${group}:topic:9`, "a", "in the topic", { label: "nine" }, "a-topic-9.jsonl");
    },
    expected: [
      { key: group, id: "a", texts: ["in the group"] },
      { key: `${group}:topic:9`, id: "a-topic-9", entry: { label: "nine" }, texts: ["in the topic"] },
    ],
  },
  {
    name: "a thread in the file of its topic",
    theirs: (folder) => folder.begin(`${group}:thread:9`, "a", "in the thread", {}, "a-topic-9.jsonl"),
    expected: [{ key: `${group}:thread:9`, id: "a", texts: ["in the thread"] }],
  },
  {
    name: "the file of a topic without an entry",
    theirs(folder) {
      folder.begin(group, "a", "in the group");
      folder.say("a-topic-9.jsonl", "a", "in the topic");
    },
    expected: [
      { key: group, id: "a", texts: ["in the group"] },
      { key: `${group}:topic:9`, id: "a-topic-9", texts: ["in the topic"] },
    ],
  },
  {
    name: "fields that were changed, added and removed in an entry of ours",
    ours: (store) => begin(store, group, { sessionId: "a", label: "ours", model: "m", cwd: "/w" }, "one"),
    theirs: (folder) => folder.edit(group, { label: "theirs", sendPolicy: "deny" }, ["model"]),
    expected: [{ key: group, id: "a", entry: { label: "theirs", sendPolicy: "deny", cwd: "/w" }, texts: ["one"] }],
  },
  {
    name: "messages behind ours",
    ours: (store) => begin(store, group, { sessionId: "a" }, "one"),
    theirs: (folder) => folder.say("a.jsonl", "a", "two"),
    expected: [{ key: group, id: "a", texts: ["one", "two"] }],
  },
  {
    name: "a new id after a reset, with a transcript, the old one renamed",
    ours: (store) => begin(store, group, { sessionId: "a", label: "kept" }, "one"),
    theirs(folder) {
      folder.putAside("a.jsonl", "reset");
      folder.begin(group, "b", "new", { label: "kept" });
    },
    expected: [
      { key: group, id: "b", entry: { label: "kept" }, texts: ["new"] },
      { key: group, id: "a", archived: true, entry: { label: "kept" }, texts: ["one"] },
    ],
  },
  {
    name: "a new id after a reset, before its first message",
    ours: (store) => begin(store, group, { sessionId: "a" }, "one"),
    theirs: (folder) => folder.begin(group, "b", null, { sendPolicy: "deny" }),
    expected: [
      { key: group, id: "b", entry: { sendPolicy: "deny" }, texts: [] },
      { key: group, id: "a", archived: true, texts: ["one"] },
    ],
  },
  {
    name: "a session that was deleted, its transcript renamed",
    ours: (store) => begin(store, group, { sessionId: "a" }, "one").then(() => begin(store, other, { sessionId: "o" })),
    theirs(folder) {
      folder.drop(group);
      folder.putAside("a.jsonl", "deleted");
    },
    expected: [
      { key: other, id: "o", texts: [] },
      { key: group, id: "a", archived: true, texts: ["one"] },
    ],
  },
  {
    name: "all sessions that were deleted, their transcripts renamed",
    ours: async (store) => {
      await begin(store, group, { sessionId: "a" }, "hello");
      await begin(store, other, { sessionId: "b" }, "there");
    },
    theirs: (folder) => {
      for (const name of ["a.jsonl", "b.jsonl"]) folder.putAside(name, "deleted");
      folder.drop(group);
      folder.drop(other);
    },
    expected: [
      { key: group, id: "a", archived: true, texts: ["hello"] },
      { key: other, id: "b", archived: true, texts: ["there"] },
    ],
  },
  {
    name: "a session that was deleted with its transcript",
    ours: (store) => begin(store, group, { sessionId: "a" }, "one").then(() => begin(store, other, { sessionId: "o" })),
    theirs(folder) {
      folder.drop(group);
      rmSync(folder.path("a.jsonl"));
    },
    expected: [
      { key: other, id: "o", texts: [] },
      { key: group, id: "a", archived: true, texts: [] },
    ],
  },
  {
    name: "a session that was deleted and brought back",
    ours: (store) => begin(store, group, { sessionId: "a", label: "l" }, "one"),
    theirs(folder) {
      folder.begin(other, "o", "x");
      folder.drop(group);
      const aside = folder.putAside("a.jsonl", "deleted");
      folder.takeBack(aside, "a.jsonl");
      folder.begin(group, "a", "two", { label: "l" });
    },
    expected: [
      { key: other, id: "o", texts: ["x"] },
      { key: group, id: "a", entry: { label: "l" }, texts: ["one", "two"] },
    ],
  },
  {
    name: "a transcript that an entry names by a path of another machine",
    theirs: (folder) =>
      folder.begin(group, "a", "hello", { sessionFile: "/home/else/sessions/odd.jsonl" }, "odd.jsonl"),
    expected: [{ key: group, id: "a", texts: ["hello"] }],
  },
];

describe("what another program left is taken over", () => {
  it.for(cases)("$name", async ({ ours, theirs, expected }) => {
    const root = newFolder();
    const folder = new OpenClawFolder(root);
    if (ours !== undefined) {
      await using store = createJsonlStore({ root });
      await ours(store);
    }
    theirs(folder);
    for (const how of ["first handle", "next handle", "without derived files"]) {
      if (how === "without derived files") rmSync(`${root}/agents/main/throughline/index.db`, { force: true });
      await using store = createJsonlStore({ root });
      const found = (await store.list({ state: "any" })).sessions;
      const shown = await Promise.all(found.map((state) => sessionIn(store, state)));
      expect({ how, sessions: shown.toSorted(byId) }).toEqual({
        how,
        sessions: expected.map((one) => ({ archived: false, entry: {}, ...one })).toSorted(byId),
      });
    }
  });

  it("is there for a load of a key, without a list before", async () => {
    const root = newFolder();
    const folder = new OpenClawFolder(root);
    folder.begin(group, "a", "hello", { sendPolicy: "deny" });
    await using store = createJsonlStore({ root });
    expect(await store.load(sessionRef({ key: group }))).toMatchObject({
      sessionId: "a",
      entry: { sendPolicy: "deny" },
    });
    folder.begin(other, "o", null, { label: "later" });
    expect(await store.load(sessionRef({ key: other }))).toMatchObject({ sessionId: "o", entry: { label: "later" } });
  });

  it("keeps a field that the other program changed last, also when it added a line afterwards", async () => {
    const root = newFolder();
    const folder = new OpenClawFolder(root);
    const ref = sessionRef({ key: group });
    folder.begin(group, "a", "hello", { model: "first" });
    const first = createJsonlStore({ root });
    await first.list();
    await first.close();
    const files = mortalFiles();
    const killed = createJsonlStore({ root, files, derivedDelayMs: Infinity });
    await killed.append(ref, [userDraft("question")], { entry: { model: "ours" } });
    files.kill();
    await killed.close();
    folder.edit(group, { model: "theirs" });
    folder.say("a.jsonl", "a", "later");
    await using store = createJsonlStore({ root });
    expect(await store.load(ref)).toMatchObject({ entry: { model: "theirs" }, messageCount: 3 });
  });

  it("is the same as a model says after a random history of two programs in turn", async () => {
    expect(await playTurns({ root: newFolder(), seed: 1, turns: 4 })).toBeNull();
  });

  it(
    "is the same as a model says after many random histories of two programs in turn",
    { tags: ["slow"], timeout: 1_200_000 },
    async () => {
      const histories = testSize({ short: 12, long: 1000 });
      for (let seed = 1; seed <= histories; seed++) {
        const problem = await playTurns({ root: newFolder(), seed, turns: 8 });
        expect({ seed, problem }).toEqual({ seed, problem: null });
      }
    },
  );
});

function byId(one: Session, next: Session): number {
  return one.id < next.id ? -1 : 1;
}

async function sessionIn(store: SessionStore, { ref, entry, archived }: SessionState): Promise<Session> {
  const { updatedAt: _time, sessionFile: _file, sessionId: id, ...fields } = entry;
  const texts: string[] = [];
  for await (const { records } of store.read(ref))
    for (const { record } of records)
      if (record.type === "message") texts.push((record["message"] as { readonly content: string }).content);
  return { key: ref.key, id, archived, entry: fields, texts } as Session;
}
