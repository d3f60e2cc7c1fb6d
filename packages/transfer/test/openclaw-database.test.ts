import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { zstdCompressSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { createMemoryStore } from "@throughline/store-memory";
import { createSqliteStore } from "../../store-sqlite/src/index.ts";
import { openclawFixture, talk, transcriptArchive } from "./database-fixtures.ts";
import { exported, fixtureFolder, importAll, refOf, stateOf } from "./fixture-folder.ts";

const corpus = process.env["THROUGHLINE_CORPUS"];
const key = "agent:ops:discord:direct:7";
const summary = (sources: Awaited<ReturnType<typeof importAll>>): unknown[] =>
  sources.map(({ key: to, sessionId, state, records, archived, error }) => [
    to,
    sessionId,
    state,
    records,
    archived,
    error?.code ?? null,
  ]);

describe("a database of OpenClaw since 2026.8", () => {
  it("gives back the lines of its rows, packed ones too, and keeps the entry [C47]", async () => {
    using folder = fixtureFolder();
    const lines = talk("s1", ["Hello \u2028 é", "Hi", "How many?", "x".repeat(3000), "1e3 and 1.0"]);
    {
      using fixture = openclawFixture(folder.at("openclaw-agent.sqlite"));
      fixture.node(key, "s1", {
        sessionId: "s1",
        updatedAt: 1_790_000_100_000,
        sendPolicy: "deny",
        strange: { "1": [true] },
      });
      fixture.window("s1", key, 1_790_000_000_000);
      fixture.events("s1", lines);
    }
    const before = folder.state();
    const store = createMemoryStore();
    const sources = await importAll(store, folder.at("openclaw-agent.sqlite"));
    expect(summary(sources)).toEqual([[key, "s1", "imported", 6, false, null]]);
    expect(sources[0]).toMatchObject({ format: "openclaw-sqlite", agentId: "ops", lines: 6, lost: [] });
    expect(await exported(store, refOf(sources[0]!), "jsonl")).toBe(
      Buffer.from(`${lines.join("\n")}\n`).toString("latin1"),
    );
    const state = await store.load(refOf(sources[0]!));
    expect(state?.entry).toMatchObject({ sendPolicy: "deny", strange: { "1": [true] }, updatedAt: 1_790_000_100_000 });
    expect((await importAll(store, folder.path)).map(({ state: again, records }) => [again, records])).toEqual([
      ["unchanged", 0],
    ]);
    // Not a byte changed and no file appeared beside it.
    expect(folder.state()).toEqual(before);
  });

  it("imports what a reset put aside as archives of the key, and the rest when the key moves on", async () => {
    using folder = fixtureFolder();
    const path = folder.at("openclaw-agent.sqlite");
    using fixture = openclawFixture(path);
    fixture.node(key, "s2", { sessionId: "s2" });
    fixture.window("s1", key, 1000, "initial");
    fixture.window("s2", key, 2000, "reset");
    fixture.events("s1", talk("s1", ["old"]));
    fixture.events("s2", talk("s2", ["new", "answer"]));
    const store = createMemoryStore();
    expect(summary(await importAll(store, path))).toEqual([
      [key, "s1", "imported", 2, true, null],
      [key, "s2", "imported", 3, false, null],
    ]);
    fixture.window("s3", key, 3000, "reset");
    fixture.database.exec("UPDATE session_nodes SET current_session_id = 's3', entry_json = '{\"sessionId\":\"s3\"}'");
    fixture.events("s2", [talk("s2", ["", "", "last words"])[3]!], 3);
    fixture.events("s3", talk("s3", ["newest"]));
    expect(summary(await importAll(store, path))).toEqual([
      [key, "s1", "unchanged", 0, true, null],
      [key, "s2", "grown", 1, true, null],
      [key, "s3", "imported", 2, false, null],
    ]);
    expect((await store.load({ namespace: "", agentId: "ops", key }))?.sessionId).toBe("s3");
    expect((await store.list({ state: "archived" })).sessions.map(({ sessionId }) => sessionId).toSorted()).toEqual([
      "s1",
      "s2",
    ]);
  });

  it("reads its archives and its cold storage, and refuses alone what cannot be read", async () => {
    using folder = fixtureFolder();
    const path = folder.at("openclaw-agent.sqlite");
    using fixture = openclawFixture(path);
    fixture.node(key, "cold", { sessionId: "cold" });
    fixture.window("cold", key, 1000);
    const lines = talk("cold", ["a", "b", "c"]);
    const insert = fixture.database.prepare(
      "INSERT INTO session_transcript_cold_archives VALUES (?, 'x.zst', 1, ?, ?, ?)",
    );
    const cold = transcriptArchive(lines.slice(0, 2), true);
    insert.run("cold", 1, cold.blob, cold.sha256);
    fixture.events("cold", lines.slice(2), 2);
    fixture.window("elsewhere", "agent:ops:elsewhere", 1001);
    fixture.node("agent:ops:elsewhere", "elsewhere", { sessionId: "elsewhere" });
    fixture.database
      .prepare("INSERT INTO session_transcript_cold_archives VALUES ('elsewhere', 'y.zst', 1, 5, NULL, NULL)")
      .run();
    const archive = fixture.database.prepare(
      "INSERT INTO session_transcript_archives VALUES (?, 'g', ?, ?, ?, ?, ?, ?)",
    );
    const [plain, packed] = [transcriptArchive(talk("a1", ["x"]), false), transcriptArchive(talk("a2", ["y"]), true)];
    archive.run("a1", key, "reset", "identity", plain.blob, plain.sha256, 500);
    archive.run("a2", key, "deleted", "zstd", packed.blob, packed.sha256, 600);
    archive.run("a3", key, "deleted", "zstd", packed.blob, plain.sha256, 700);
    const store = createMemoryStore();
    const sources = await importAll(store, path);
    expect(summary(sources)).toEqual([
      [key, "a1", "imported", 2, true, null],
      [key, "a2", "imported", 2, true, null],
      [key, "a3", "refused", 0, true, "FILE_UNREADABLE"],
      [key, "cold", "imported", 4, false, null],
      ["agent:ops:elsewhere", "elsewhere", "refused", 0, false, "FILE_UNREADABLE"],
    ]);
    expect(await exported(store, refOf(sources[3]!), "jsonl")).toBe(`${lines.join("\n")}\n`);
    expect(sources[4]?.error?.message).toContain("y.zst");
  });

  it("keeps a row that cannot be unpacked in its place, and says so", async () => {
    using folder = fixtureFolder();
    const path = folder.at("openclaw-agent.sqlite");
    using fixture = openclawFixture(path);
    fixture.node(key, "s1", "[no object]");
    fixture.window("s1", key, 1000);
    const lines = talk("s1", ["a", "b"]);
    fixture.events("s1", lines);
    fixture.database
      .prepare("UPDATE transcript_events SET event_zstd = ? WHERE seq = 1")
      .run(zstdCompressSync("x").subarray(0, 5));
    const store = createMemoryStore();
    const [source] = await importAll(store, path);
    expect(source).toMatchObject({ state: "imported", lines: 3, records: 3, repaired: 1, lost: [] });
    expect(source?.findings.map(({ code }) => code)).toEqual(
      expect.arrayContaining(["ENTRY_UNREADABLE", "LINE_MALFORMED"]),
    );
    expect(await exported(store, refOf(source!), "jsonl")).toContain("row 1 cannot be unpacked: ");
  });

  it("refuses a database of a newer schema and one of another program, whole", async () => {
    using folder = fixtureFolder({ "no.sqlite": "SQLite format 3\0 but no more" });
    const path = folder.at("openclaw-agent.sqlite");
    {
      using fixture = openclawFixture(path);
      fixture.database.exec("PRAGMA user_version = 24");
    }
    {
      using other = openclawFixture(folder.at("other.sqlite"));
      other.database.exec("DROP TABLE transcript_events");
    }
    const store = createMemoryStore();
    const codes = async (name: string): Promise<unknown> =>
      (await importAll(store, folder.at(name))).map(({ error }) => error?.code);
    expect(await codes("openclaw-agent.sqlite")).toEqual(["STORE_VERSION_UNSUPPORTED"]);
    expect(await codes("other.sqlite")).toEqual(["FORMAT_UNKNOWN"]);
    expect(await codes("no.sqlite")).toEqual(["FILE_UNREADABLE"]);
  });

  it.each(["open elsewhere", "left behind by a kill", "left behind by a power cut"])(
    "reads what only the log has, the database being %s",
    async (kind) => {
      using folder = fixtureFolder();
      const path = folder.at("openclaw-agent.sqlite");
      using fixture = openclawFixture(path);
      fixture.database.exec("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0");
      fixture.node(key, "s1", { sessionId: "s1" });
      fixture.window("s1", key, 1000);
      fixture.events("s1", talk("s1", ["a", "b", "c"]));
      // After a power cut the index that whoever wrote the log shared is not there.
      const gone = kind.includes("power") ? "-shm" : "-nothing";
      using copy = fixtureFolder();
      for (const name of readdirSync(folder.path))
        if (!name.endsWith(gone)) copy.write(name, readFileSync(folder.at(name)));
      const source = kind === "open elsewhere" ? folder : copy;
      const before = stateOf(source.path);
      expect(summary(await importAll(createMemoryStore(), source.at("openclaw-agent.sqlite")))).toEqual([
        [key, "s1", "imported", 4, false, null],
      ]);
      // Nothing beside it either: an index of the log is written by whoever opens it, even to read.
      expect(stateOf(source.path)).toEqual(before);
    },
  );

  it("names its sessions by paths that can be imported alone, under another key too", async () => {
    using folder = fixtureFolder();
    const path = folder.at("openclaw-agent.sqlite");
    {
      using fixture = openclawFixture(path);
      for (const id of ["s1", "s2"]) {
        fixture.node(`${key}:${id}`, id, { sessionId: id });
        fixture.window(id, `${key}:${id}`, 1000);
        fixture.events(id, talk(id, ["a", "b"]));
      }
    }
    await using store = createSqliteStore({ path: folder.at("own.db") });
    const sources = await importAll(store, path);
    expect(sources.map((source) => source.path)).toEqual([`${path}#s1`, `${path}#s2`]);
    await store.append(refOf(sources[0]!), [{ type: "message", message: { role: "user", content: "here" } }]);
    {
      const database = new DatabaseSync(path);
      database.exec(
        "INSERT INTO transcript_events SELECT 's1', 9, event_json, NULL, 0, 0 FROM transcript_events WHERE session_id = 's2' AND seq = 2",
      );
      database.close();
    }
    const [refused] = await importAll(store, path);
    expect(refused?.error?.remedy).toContain(`throughline import '${path}#s1' --key KEY`);
    const beside = "agent:ops:beside";
    expect(summary(await importAll(store, `${path}#s1`, { key: beside }))).toEqual([
      [beside, "s1-2", "imported", 4, false, null],
    ]);
    expect(summary(await importAll(store, path))).toEqual([
      [beside, "s1-2", "unchanged", 0, false, null],
      [`${key}:s2`, "s2", "unchanged", 0, false, null],
    ]);
    const [missing] = await importAll(store, `${path}#s3`);
    expect(missing?.error?.code).toBe("FILE_NOT_FOUND");
  });

  it("is found in a state directory, beside transcripts that were not taken over", async () => {
    using folder = fixtureFolder({ "agents/ops/sessions/rest.jsonl": `${talk("rest", ["left"]).join("\n")}\n` });
    folder.write("agents/ops/agent/placeholder", "");
    rmSync(folder.at("agents/ops/agent/placeholder"));
    {
      using fixture = openclawFixture(folder.at("agents/ops/agent/openclaw-agent.sqlite"));
      fixture.node(key, "s1", { sessionId: "s1" });
      fixture.window("s1", key, 1000);
      fixture.events("s1", talk("s1", ["a"]));
    }
    const store = createMemoryStore();
    expect((await importAll(store, folder.path)).map(({ sessionId, state }) => [sessionId, state])).toEqual([
      ["s1", "imported"],
      ["rest", "imported"],
    ]);
    expect(
      (await importAll(createMemoryStore(), folder.at("agents/ops/agent"))).map(({ sessionId }) => sessionId),
    ).toEqual(["s1"]);
  });

  it("imports one key under another, and nothing else", async () => {
    using folder = fixtureFolder();
    const path = folder.at("openclaw-agent.sqlite");
    using fixture = openclawFixture(path);
    for (const [name, id] of [
      ["agent:main:main", "m"],
      ["agent:main:other", "o"],
    ] as const) {
      fixture.node(name, id, { sessionId: id });
      fixture.window(id, name, 1000);
      fixture.events(id, talk(id, ["a"]));
    }
    fixture.database.close();
    const before = folder.state();
    const store = createMemoryStore();
    const options = { readKey: "agent:main:main", key: "goclaw:main:main" };
    expect(summary(await importAll(store, path, options))).toEqual([
      ["goclaw:main:main", "m", "imported", 2, false, null],
    ]);
    expect(summary(await importAll(store, path, options))).toEqual([
      ["goclaw:main:main", "m", "unchanged", 0, false, null],
    ]);
    expect((await store.list({})).sessions).toHaveLength(1);
    expect(folder.state()).toEqual(before);
  });
});

describe.skipIf(corpus === undefined)("a real database of OpenClaw 2026.9", () => {
  it("has 2,045 events, byte for byte the lines they were made of [C47]", async () => {
    const root = join(corpus ?? "", "openclaw-sqlite-v23");
    const before = stateOf(root);
    const [fromDatabase, fromFiles] = [createMemoryStore(), createMemoryStore()];
    const sources = await importAll(fromDatabase, join(root, "openclaw-agent.sqlite"));
    const files = await importAll(fromFiles, join(root, "source-sessions"));
    expect(sources.reduce((sum, { records }) => sum + records, 0)).toBe(2045);
    for (const source of sources) {
      const file = files.find(({ sessionId }) => sessionId === source.sessionId);
      expect(source.key).toBe(file?.key);
      expect(
        (await exported(fromDatabase, refOf(source), "jsonl")) === (await exported(fromFiles, refOf(file!), "jsonl")),
      ).toBe(true);
    }
    expect(stateOf(root)).toEqual(before);
  });
});
