import { appendFileSync, truncateSync, writeFileSync } from "node:fs";
import { zstdCompressSync } from "node:zlib";
import { createMemoryStore } from "@throughline/store-memory";
import { describe, expect, it } from "vitest";
import { isLongRun, testSize } from "../../../tools/test-size.ts";
import { openclawFixture, talk } from "./database-fixtures.ts";
import { exported, fixtureFolder, importAll, jsonLines, refOf } from "./fixture-folder.ts";

const at = "2026-06-30T10:00:00.000Z";
const rollout = "rollout-2026-05-07T18-27-42-019e03b2-11a2-7320-9098-5d831813e66c.jsonl";

/** The first and the last line of a session of each program that keeps lines. */
const files: Readonly<Record<string, readonly [name: string, first: object, last: object]>> = {
  "claude-code": [
    "s1.jsonl",
    {
      type: "user",
      uuid: "u1",
      parentUuid: null,
      sessionId: "s1",
      timestamp: at,
      message: { role: "user", content: "Hi" },
    },
    {
      type: "user",
      uuid: "u2",
      parentUuid: "u1",
      sessionId: "s1",
      timestamp: at,
      message: { role: "user", content: "On" },
    },
  ],
  codex: [
    rollout,
    { timestamp: at, type: "session_meta", payload: { id: "019e03b2-11a2-7320-9098-5d831813e66c", cwd: "/w" } },
    {
      timestamp: at,
      type: "response_item",
      payload: { type: "message", role: "user", content: [{ type: "input_text", text: "On" }] },
    },
  ],
  gemini: [
    "session-1.jsonl",
    { sessionId: "g1", projectHash: "743e", startTime: at, lastUpdated: at, kind: "main" },
    { id: "m1", timestamp: at, type: "user", content: "On" },
  ],
  "copilot-cli": [
    "events.jsonl",
    { type: "session.start", id: "e1", parentId: null, timestamp: at, data: { sessionId: "s1", copilotVersion: "1" } },
    { type: "user.message", id: "e2", parentId: "e1", timestamp: at, data: { content: "On" } },
  ],
  goose: [
    "old.jsonl",
    { working_dir: "/w", description: "T", message_count: 1 },
    { role: "user", created: 1, content: [{ type: "text", text: "On" }] },
  ],
};

const lineBytes = testSize({ short: 100 * 2 ** 20, long: 1000 * 2 ** 20 });

describe("a file that is larger than anybody expects", () => {
  it.each(testSize({ short: ["claude-code", "goose"], long: Object.keys(files) }))(
    "has a line of 100 MB, which is lost with its size, and the others are there: %s",
    { tags: ["slow"] },
    async (name) => {
      const [file, first, last] = files[name] ?? ["", {}, {}];
      using folder = fixtureFolder();
      const path = folder.write(file, jsonLines(first));
      const firstBytes = Buffer.byteLength(jsonLines(first));
      truncateSync(path, firstBytes + lineBytes);
      appendFileSync(path, `\n${jsonLines(last)}`);
      await using store = createMemoryStore();
      const before = process.memoryUsage().arrayBuffers;
      const [source] = await importAll(store, path);
      expect(source).toMatchObject({ format: name, state: "imported", lines: 3, records: 2, error: null });
      expect(source?.lost).toEqual([{ line: 2, bytes: lineBytes, reason: "too-long" }]);
      expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(100 * 2 ** 20);
      expect((await importAll(store, path))[0]?.state).toBe("unchanged");
    },
  );

  it(
    "has an element of 20 MB in its list, which is lost with its size, and the others are there",
    { tags: ["slow"] },
    async () => {
      using folder = fixtureFolder();
      const long = { role: "user", content: "x".repeat(20 * 2 ** 20) };
      const list = [{ role: "user", content: "Hi" }, long, { role: "assistant", content: "Yo" }];
      const path = folder.write("chat.json", JSON.stringify({ model: "gpt-5", messages: list }));
      await using store = createMemoryStore();
      const [source] = await importAll(store, path);
      expect(source).toMatchObject({ format: "openai", lines: 5, records: 4, error: null });
      expect(source?.lost).toMatchObject([{ line: 3, reason: "too-long" }]);
      expect(source?.lost[0]?.bytes).toBeGreaterThan(20 * 2 ** 20);
    },
  );

  it("is nested a hundred thousand deep, and is kept as what it is", async () => {
    using folder = fixtureFolder();
    const [, first, last] = files["claude-code"] ?? ["", {}, {}];
    const deep = `{"type":"user","message":${"[".repeat(100_000)}${"]".repeat(100_000)}}`;
    const path = folder.write("s1.jsonl", jsonLines(first, deep, last));
    await using store = createMemoryStore();
    const [source] = await importAll(store, path);
    expect(source).toMatchObject({ lines: 3, records: 3, repaired: 1, lost: [], error: null });
    expect(await exported(store, refOf(source ?? { agentId: "", key: "" }), "claude-code")).toBe(
      jsonLines(first, deep, last),
    );
  });
});

describe("compressed contents", () => {
  it("that would be 64 MB are not unpacked: a row of OpenClaw's database", async () => {
    using folder = fixtureFolder();
    const path = folder.at("openclaw-agent.sqlite");
    using fixture = openclawFixture(path);
    fixture.node("agent:ops:main", "s1", { sessionId: "s1" });
    fixture.window("s1", "agent:ops:main", 1000);
    fixture.events("s1", talk("s1", ["a", "b"]));
    const bomb = zstdCompressSync(Buffer.alloc(64 * 2 ** 20));
    expect(bomb.length).toBeLessThan(2 ** 20);
    fixture.database.prepare("UPDATE transcript_events SET event_zstd = ? WHERE seq = 1").run(bomb);
    await using store = createMemoryStore();
    const before = process.memoryUsage().rss;
    const [source] = await importAll(store, path);
    expect(source).toMatchObject({ state: "imported", lines: 3, records: 3, repaired: 1, error: null });
    expect(process.memoryUsage().rss - before).toBeLessThan(60 * 2 ** 20);
  });

  it.runIf(isLongRun)("that would be 1 GB are not unpacked: an archive of OpenClaw's database", async () => {
    using folder = fixtureFolder();
    const path = folder.at("openclaw-agent.sqlite");
    using fixture = openclawFixture(path);
    fixture.node("agent:ops:main", "s1", { sessionId: "s1" });
    // Frames one behind the other are one content.
    const frame = zstdCompressSync(Buffer.alloc(64 * 2 ** 20));
    const bomb = Buffer.concat(Array.from({ length: 16 }, () => frame));
    fixture.database
      .prepare(
        "INSERT INTO session_transcript_archives VALUES ('a1', 'g', 'agent:ops:main', 'deleted', 'zstd', ?, '0', 1)",
      )
      .run(bomb);
    await using store = createMemoryStore();
    const sources = await importAll(store, path);
    expect(sources.map(({ state, error }) => [state, error?.code])).toContainEqual(["refused", "FILE_UNREADABLE"]);
  });

  it("of files are reported, and nothing unpacks them", async () => {
    using folder = fixtureFolder();
    const day = ".codex/sessions/2026/05/07";
    const [, first, last] = files["codex"] ?? ["", {}, {}];
    folder.write(`${day}/${rollout}`, jsonLines(first, last));
    const bomb = zstdCompressSync(Buffer.alloc(100 * 2 ** 20));
    const packed = folder.write(`${day}/${rollout.replace("42-", "43-")}.zst`, bomb);
    const zip = folder.at("sessions.zip");
    writeFileSync(zip, Buffer.concat([Buffer.from("PK\u0003\u0004"), bomb]));
    await using store = createMemoryStore();
    const [good, refused, zipped] = await importAll(store, [folder.at(".codex"), zip]);
    expect(good).toMatchObject({ format: "codex", state: "imported", records: 2 });
    expect([refused?.path, refused?.state, refused?.error?.code]).toEqual([packed, "refused", "FORMAT_UNKNOWN"]);
    expect(refused?.error?.remedy).toContain("zstd -d");
    expect([zipped?.state, zipped?.error?.code]).toEqual(["refused", "FORMAT_UNKNOWN"]);
  });
});
