import { appendFileSync, renameSync } from "node:fs";
import { redactRecords, type SessionRef, type SessionStore } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { createMemoryStore } from "@throughline/store-memory";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createSqliteStore } from "../../store-sqlite/src/index.ts";
import { resetSession, systemRandom } from "@throughline/core/internal";
import {
  exported,
  fixtureFolder,
  importAll,
  jsonLines,
  message,
  recordsOf,
  refOf,
  type FixtureFolder,
} from "./fixture-folder.ts";

const idA = "0b83cd1e-54ce-4a39-9089-188d2669ead4";
const idB = "1b83cd1e-54ce-4a39-9089-188d2669ead4";
const key = "agent:main:main";
const ref: SessionRef = { namespace: "", agentId: "main", key };
const sessions = "state/agents/main/sessions";
const asideAt = "2026-03-01T00-00-00.000Z";

function transcript(id: string, ...texts: readonly string[]): string {
  const header = { type: "session", version: 3, id, timestamp: "2026-02-01T16:10:50.414Z", cwd: "/" };
  const rows = texts.map((text, at) => message(`${id[0]}${at}`, at === 0 ? null : `${id[0]}${at - 1}`, text));
  return jsonLines(header, ...rows);
}

function indexOf(entries: Readonly<Record<string, string>>): string {
  return JSON.stringify(
    Object.fromEntries(Object.entries(entries).map(([name, sessionId]) => [name, { sessionId, updatedAt: 5 }])),
  );
}

const makers: readonly (readonly [string, (folder: FixtureFolder) => SessionStore])[] = [
  ["memory", () => createMemoryStore()],
  ["jsonl", (folder) => createJsonlStore({ root: folder.at("own"), create: true })],
  ["sqlite", (folder) => createSqliteStore({ path: folder.at("own.db") })],
];

describe.each(makers)("an import again into a %s store", (_name, make) => {
  let folder: FixtureFolder;
  let store: SessionStore;

  beforeEach(() => {
    folder = fixtureFolder({
      [`${sessions}/${idA}.jsonl`]: transcript(idA, "one", "a secret"),
      [`${sessions}/sessions.json`]: indexOf({ [key]: idA }),
    });
    store = make(folder);
  });

  afterEach(async () => {
    await store.close();
    folder[Symbol.dispose]();
  });

  const again = async (path = "state", options = {}): Promise<unknown[]> =>
    (await importAll(store, folder.at(path), options))
      .filter(({ state }) => state !== "skipped")
      .map(({ key: at, state, records, archived, error }) => [at, state, records, archived, error?.code ?? null]);

  const all = async (): Promise<unknown[]> =>
    (await store.list({ state: "any", sort: "key" })).sessions.map(({ ref: at, sessionId, head }) => [
      at.key,
      sessionId,
      at.archiveId !== undefined,
      head.lastSeq,
    ]);

  const grow = (): void => appendFileSync(folder.at(sessions, `${idA}.jsonl`), jsonLines(message("02", "01", "three")));

  it("finds a session that was renamed, and what came since goes there", async () => {
    await again();
    await store.move(ref, { kind: "rename", key: "agent:main:kept" });
    expect(await again()).toEqual([["agent:main:kept", "unchanged", 0, false, null]]);
    grow();
    expect(await again()).toEqual([["agent:main:kept", "grown", 1, false, null]]);
    expect(await all()).toEqual([["agent:main:kept", idA, false, 4]]);
  });

  it("leaves one that was reset or deleted where it is, and says when its source goes on", async () => {
    await again();
    await resetSession(store, ref, { random: systemRandom });
    expect(await again()).toEqual([[key, "unchanged", 0, true, null]]);
    await store.remove(ref);
    expect(await again()).toEqual([[key, "unchanged", 0, true, null]]);
    grow();
    const [refused] = await importAll(store, folder.at("state"));
    expect(refused?.error).toMatchObject({ code: "SESSION_ARCHIVED" });
    expect(refused?.error?.remedy).toContain("--key KEY");
    expect((await store.list()).sessions).toEqual([]);
    // As the refusal says: restored, it takes the rest.
    await store.move({ ...ref, archiveId: idA }, { kind: "restore" });
    expect(await again()).toEqual([[key, "grown", 1, false, null]]);
  });

  it("brings nothing back that was redacted, wherever the session went", async () => {
    await again();
    await redactRecords(store, ref, ["01"], { reason: "private" });
    await store.move(ref, { kind: "rename", key: "agent:main:kept" });
    grow();
    await again();
    expect(await all()).toMatchObject([["agent:main:kept", idA, false, expect.any(Number)]]);
    const text = await exported(store, { ...ref, key: "agent:main:kept" }, "jsonl");
    expect([text.includes("a secret"), text.includes("three")]).toEqual([false, true]);
    // Nor in a session somebody makes of the source beside it.
    expect(await again(`${sessions}/${idA}.jsonl`, { key: "agent:main:beside" })).toEqual([
      ["agent:main:beside", "imported", 4, false, null],
    ]);
    const beside = await recordsOf(store, { ...ref, key: "agent:main:beside" });
    expect(JSON.stringify(beside)).not.toContain("a secret");
    expect(beside.find(({ id }) => id === "01")?.record).toMatchObject({ customType: "throughline.redaction" });
    expect(await again(`${sessions}/${idA}.jsonl`, { key: "agent:main:beside" })).toEqual([
      ["agent:main:beside", "unchanged", 0, false, null],
    ]);
  });

  it("a line that went on after its beginning was redacted comes as a tombstone", async () => {
    appendFileSync(folder.at(sessions, `${idA}.jsonl`), '{"type":"message","id":"02","parentId":"01","hidden');
    await again();
    const torn = (await recordsOf(store, ref)).at(-1);
    await redactRecords(store, ref, [torn?.id ?? ""], { reason: "private" });
    appendFileSync(folder.at(sessions, `${idA}.jsonl`), `":1}\n${jsonLines(message("03", "02", "after"))}`);
    expect(await again()).toEqual([[key, "grown", 2, false, null]]);
    const text = await exported(store, ref, "jsonl");
    expect([text.includes("hidden"), text.includes("after")]).toEqual([false, true]);
    expect((await store.load(ref))?.head.headId).toBe("03");
  });

  it("a purged session stays away, and comes under another key when it is asked for", async () => {
    await again();
    await store.remove(ref, { purge: true });
    grow();
    const [left] = await importAll(store, folder.at("state"));
    expect(left).toMatchObject({ state: "skipped", records: 0, lines: 0, error: null });
    expect(left?.findings.map(({ code }) => code)).toEqual(["SESSION_LEFT_ALONE"]);
    renameSync(folder.at(sessions, `${idA}.jsonl`), folder.at(sessions, `${idA}.jsonl.deleted.${asideAt}`));
    folder.write(`${sessions}/sessions.json`, indexOf({}));
    expect(await again()).toEqual([]);
    expect(await all()).toEqual([]);
    renameSync(folder.at("state"), folder.at("moved"));
    expect(await again("moved")).toEqual([]);
    const path = `moved/agents/main/sessions/${idA}.jsonl.deleted.${asideAt}`;
    expect(await again(path, { key: "agent:main:anew" })).toEqual([["agent:main:anew", "imported", 4, false, null]]);
    await store.remove({ ...ref, key: "agent:main:anew" }, { purge: true });
    expect(await again("moved")).toEqual([]);
    // A key is a request, also after the purge of what it named. One that repeats itself says since when it asks.
    expect(await again(path, { key: "agent:main:anew", purgedSinceMs: 0 })).toEqual([]);
    expect(await again(path, { key: "agent:main:anew" })).toEqual([["agent:main:anew", "imported", 4, false, null]]);
  });

  it("a purged session stays away under every name of its file", async () => {
    const opencodeId = "ses_0a1b2c3d4e5fghijklmnopqrst";
    const line = (sessionId: string): string =>
      jsonLines({ type: "user", uuid: idB, parentUuid: null, sessionId, message: { role: "user", content: "hello" } });
    const opencode = (id: string): string =>
      JSON.stringify({
        info: { id, title: "t", time: { created: 1, updated: 1 } },
        messages: [
          {
            info: { id: "m1", role: "user", sessionID: id, time: { created: 1 } },
            parts: [{ id: "p1", type: "text", text: "hello", messageID: "m1", sessionID: id }],
          },
        ],
      });
    const files: readonly (readonly [name: string, other: string, text: string])[] = [
      ["s1.jsonl", "copy.jsonl", transcript("s1", "hello")],
      [`x/${idA}.jsonl`, "x/copy of it.jsonl", line(idA)],
      ["opencode.json", "second.json", opencode(opencodeId)],
      [
        `x/rollout-2026-02-01T16-10-50-${idB}.jsonl`,
        "x/r.jsonl",
        jsonLines(
          { timestamp: "2026-02-01T16:10:50.000Z", type: "session_meta", payload: { id: idB, cwd: "/x" } },
          {
            timestamp: "2026-02-01T16:10:51.000Z",
            type: "response_item",
            payload: { type: "message", role: "user", content: [{ type: "input_text", text: "hello" }] },
          },
        ),
      ],
    ];
    for (const [name, other, text] of files) {
      using places = fixtureFolder({ [name]: text, [other]: text });
      const [made] = await importAll(store, places.at(name));
      expect([name, made?.state]).toEqual([name, "imported"]);
      await store.remove(refOf(made ?? { agentId: "", key: "" }), { purge: true });
      const [left] = await importAll(store, places.at(other));
      expect([name, left?.state, left?.findings.map(({ code }) => code)]).toEqual([
        name,
        "skipped",
        ["SESSION_LEFT_ALONE"],
      ]);
      expect(left?.findings[0]?.message).toContain(`session "${made?.sessionId}"`);
      const [asked] = await importAll(store, places.at(other), { key: `agent:main:anew:${made?.sessionId}` });
      expect([name, asked?.state, asked?.sessionId]).toEqual([name, "imported", made?.sessionId]);
    }
  });

  it("another session is not taken for a purged one: a topic of it, another file without an id, a number in a list", async () => {
    const text = transcript(idA, "hello");
    const list = (words: string): string =>
      JSON.stringify([
        {
          id: "identity_0",
          conversations: [
            { from: "human", value: words },
            { from: "gpt", value: "b" },
          ],
        },
      ]);
    const messages = JSON.stringify([{ role: "user", content: "hello" }]);
    for (const [one, other, [first, second]] of [
      [
        `agents/main/sessions/${idA}.jsonl`,
        `agents/main/sessions/${idA}-topic-7.jsonl`,
        [text, transcript(idA, "topic")],
      ],
      ["a/list.json", "b/list.json", [list("one"), list("two")]],
      ["a/aconversationwithaverylongname.json", "b/aconversationwithaverylongname.json", [messages, messages]],
    ] as const) {
      using places = fixtureFolder({ [one]: first, [other]: second });
      const [made] = await importAll(store, places.at(one));
      expect([one, made?.state]).toEqual([one, "imported"]);
      await store.remove(refOf(made ?? { agentId: "", key: "" }), { purge: true });
      expect([one, (await importAll(store, places.at(other)))[0]?.state]).toEqual([one, "imported"]);
    }
  });

  it("keeps nothing beside its sessions, and finds a session that moves between programs with the same lines", async () => {
    await again();
    expect((await store.list({ namespace: "throughline.imports", state: "any" })).sessions).toEqual([]);
    await store.move(ref, { kind: "rename", key: "agent:main:kept" });
    renameSync(folder.at(sessions, `${idA}.jsonl`), folder.at("alone.jsonl"));
    const [alone] = await importAll(store, folder.at("alone.jsonl"));
    expect(alone).toMatchObject({ format: "pi", state: "unchanged", key: "agent:main:kept" });
  });

  it("follows a reset of the program's: its session is archived, the new one has the key", async () => {
    await again();
    grow();
    renameSync(folder.at(sessions, `${idA}.jsonl`), folder.at(sessions, `${idA}.jsonl.reset.${asideAt}`));
    folder.write(`${sessions}/${idB}.jsonl`, transcript(idB, "new"));
    folder.write(`${sessions}/sessions.json`, indexOf({ [key]: idB }));
    expect(await again()).toEqual([
      [key, "grown", 1, true, null],
      [key, "imported", 2, false, null],
    ]);
    expect(await all()).toEqual(
      expect.arrayContaining([
        [key, idA, true, 4],
        [key, idB, false, 2],
      ]),
    );
    expect(await again()).toEqual([
      [key, "unchanged", 0, true, null],
      [key, "unchanged", 0, false, null],
    ]);
    expect((await all()).length).toBe(2);
  });

  it("follows a deletion of the program's, and not against one who restored the session here", async () => {
    await again();
    renameSync(folder.at(sessions, `${idA}.jsonl`), folder.at(sessions, `${idA}.jsonl.deleted.${asideAt}`));
    folder.write(`${sessions}/sessions.json`, indexOf({}));
    expect(await again()).toEqual([[key, "grown", 0, true, null]]);
    expect(await again()).toEqual([[key, "unchanged", 0, true, null]]);
    await store.move({ ...ref, archiveId: idA }, { kind: "restore" });
    expect(await again()).toEqual([[key, "unchanged", 0, false, null]]);
    expect(await all()).toEqual([[key, idA, false, 3]]);
  });

  it("does not take a conversation away that went on here", async () => {
    await again();
    await store.append(ref, [{ type: "message", id: "own", message: { role: "user", content: "here" } }]);
    renameSync(folder.at(sessions, `${idA}.jsonl`), folder.at(sessions, `${idA}.jsonl.reset.${asideAt}`));
    folder.write(`${sessions}/${idB}.jsonl`, transcript(idB, "new"));
    folder.write(`${sessions}/sessions.json`, indexOf({ [key]: idB }));
    expect(await again()).toEqual([
      [key, "unchanged", 0, false, null],
      [`${key}-2`, "imported", 2, false, null],
    ]);
    expect((await again()).map((one) => (one as unknown[]).slice(0, 2))).toEqual([
      [key, "unchanged"],
      [`${key}-2`, "unchanged"],
    ]);
  });

  it("a torn index that is whole the second time, and a file before its directory, make nothing twice", async () => {
    folder.write(`${sessions}/sessions.json`, '{"agent:main:main": {"sessionId"');
    const [first] = (await again()) as [unknown[]];
    folder.write(`${sessions}/sessions.json`, indexOf({ [key]: idA }));
    expect(await again()).toEqual([[first[0], "unchanged", 0, false, null]]);
    folder.write(`${sessions}/${idB}.jsonl`, transcript(idB, "alone"));
    expect(await again(`${sessions}/${idB}.jsonl`)).toEqual([[expect.any(String), "imported", 2, false, null]]);
    folder.write(`${sessions}/sessions.json`, indexOf({ [key]: idA, "agent:main:b": idB }));
    expect((await again()).map((one) => (one as unknown[])[1])).toEqual(["unchanged", "unchanged"]);
    expect((await all()).length).toBe(2);
  });

  it("one file under two keys of an index stays two sessions, also when one is renamed", async () => {
    folder.write(`${sessions}/sessions.json`, indexOf({ [key]: idA, "agent:main:second": idA }));
    expect((await again()).map((one) => (one as unknown[])[1])).toEqual(["imported", "imported"]);
    await store.move({ ...ref, key: "agent:main:second" }, { kind: "rename", key: "agent:main:kept" });
    expect(await again()).toEqual([
      [key, "unchanged", 0, false, null],
      ["agent:main:kept", "unchanged", 0, false, null],
    ]);
  });

  it("says of a source that goes on beside a conversation here how to have all of it, and does so", async () => {
    await again();
    await store.append(ref, [{ type: "message", id: "own", message: { role: "user", content: "here" } }]);
    expect(await again()).toEqual([[key, "unchanged", 0, false, null]]);
    grow();
    for (const dryRun of [true, false]) {
      const [refused] = await importAll(store, folder.at("state"), { dryRun });
      expect(refused?.error).toMatchObject({ code: "APPEND_CONFLICT", outcome: "not-applied" });
      expect(refused?.error?.remedy).toContain(`throughline import ${refused?.path} --key KEY`);
    }
    const beside = "agent:main:beside";
    const path = `${sessions}/${idA}.jsonl`;
    expect(await again(path, { key: beside })).toEqual([[beside, "imported", 4, false, null]]);
    grow();
    expect(await again(path, { key: beside })).toEqual([[beside, "grown", 1, false, null]]);
    // Without a key it is found there too: that one has all of it.
    expect(await again()).toEqual([[beside, "unchanged", 0, false, null]]);
    await store.move({ ...ref, key: beside }, { kind: "rename", key: "agent:main:elsewhere" });
    expect(await again(path, { key: beside })).toEqual([["agent:main:elsewhere", "unchanged", 0, false, null]]);
  });
});
