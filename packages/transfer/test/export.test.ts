import { mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { PayloadCodec, SessionRef } from "@throughline/core";
import { noteArchiving, systemClock } from "@throughline/core/internal";
import { createMemoryStore } from "@throughline/store-memory";
import { exportAll, exportToFile } from "../src/export-files.ts";
import { exportSession } from "@throughline/transfer";
import type { ExportRemark } from "../src/export-types.ts";
import {
  exported,
  fixtureFolder,
  header,
  importAll,
  jsonLines,
  message,
  recordsOf,
  sessionId,
} from "./fixture-folder.ts";

const key = `agent:main:import:direct:${sessionId}`;
const ref: SessionRef = { namespace: "", agentId: "main", key };

async function importedText(text: string | Uint8Array): Promise<ReturnType<typeof createMemoryStore>> {
  using folder = fixtureFolder({ [`${sessionId}.jsonl`]: text });
  const store = createMemoryStore();
  await importAll(store, folder.at(`${sessionId}.jsonl`), { from: "pi" });
  return store;
}

/** A session that was never a file. */
async function ownSession(): Promise<ReturnType<typeof createMemoryStore>> {
  const store = createMemoryStore();
  await store.save(ref, { sessionId, label: "mine" }, { ifRevision: null });
  await store.append(
    ref,
    ["a", "b", "c"].map((id) => ({ type: "message", id, message: { role: "user", content: id } })),
  );
  return store;
}

describe("export to jsonl", () => {
  it.each([
    [
      "numbers and keys as written",
      `${JSON.stringify(header)}\n{"type":"custom","id":"a","parentId":null,"timestamp":"t","customType":"x","data":[1.0,1e3,-0,9007199254740993,"\\u00e9","\\ud800"],"k":1,"k":2}\n`,
    ],
    ["no line feed at the end", jsonLines(header, message("a", null)).trimEnd()],
    ["torn, blank, malformed, NUL", jsonLines(header, "", " \t", "{broken", "\0\0", message("a", null)) + '{"half'],
    ["carriage returns", jsonLines(header, message("a", null)).replaceAll("\n", "\r\n")],
    ["no header", jsonLines(message("a", null))],
    [
      "flat",
      jsonLines({ type: "user", content: "x", ts: 1.5 }, { type: "tool_use", tool_use_id: "t", name: "n", input: {} }),
    ],
    [
      "version 1",
      jsonLines(
        { type: "session", id: sessionId, timestamp: "t", cwd: "/" },
        { type: "message", timestamp: "t", message: { role: "user", content: "x" } },
      ),
    ],
    ["empty", ""],
  ])("gives back the file: %s", async (_name, text) => {
    expect(await exported(await importedText(text), ref, "jsonl")).toBe(Buffer.from(text).toString("latin1"));
  });

  it("gives back bytes that are not text, and a byte order mark", async () => {
    const bytes = Buffer.concat([
      Buffer.from("\uFEFF"),
      Buffer.from(jsonLines(header)),
      Buffer.from([0xff, 0xfe, 0x00, 0x0a]),
      Buffer.from(jsonLines(message("a", null))),
    ]);
    expect(await exported(await importedText(bytes), ref, "jsonl")).toBe(bytes.toString("latin1"));
  });

  it("of a session of ours can be imported with the same seq, ids, key and head", async () => {
    const store = await ownSession();
    const text = await exported(store, ref, "jsonl");
    using folder = fixtureFolder({ "x.jsonl": text });
    const other = createMemoryStore();
    const [source] = await importAll(other, folder.at("x.jsonl"));
    expect(source).toMatchObject({
      format: "jsonl",
      key,
      sessionId,
      state: "imported",
      lines: 3,
      records: 3,
      findings: [],
    });
    const ids = async (one: typeof store): Promise<unknown> =>
      (await recordsOf(one, ref)).map(({ seq, id, source: line }) => [seq, id, line]);
    expect(await ids(other)).toEqual(await ids(store));
    expect((await other.load(ref))?.head).toEqual((await store.load(ref))?.head);
  });

  it("tells where the head is when the records do not", async () => {
    const store = await ownSession();
    await store.append(ref, [], { rewindTo: "a" });
    using folder = fixtureFolder({ "x.jsonl": await exported(store, ref, "jsonl") });
    const other = createMemoryStore();
    await importAll(other, folder.at("x.jsonl"));
    expect((await other.load(ref))?.head.headId).toBe("a");
  });
});

describe("export to version 3", () => {
  it.each(["pi", "openclaw"] as const)("for %s gives version 3 files back byte for byte", async (to) => {
    const text = jsonLines(header, message("a", null), message("b", "a"), {
      type: "label",
      id: "l",
      parentId: "a",
      timestamp: "t",
      targetId: "a",
      label: "x",
    });
    expect(await exported(await importedText(text), ref, to)).toBe(text);
  });

  it("brings old lines to version 3, and says what it leaves out and adds", async () => {
    const store = await importedText(
      jsonLines({ type: "user", content: "x", ts: 1735689600 }, "{broken", "", message("a", null), message("a", "a")),
    );
    const remarks: ExportRemark[] = [];
    const text = Buffer.concat(
      await Array.fromAsync(exportSession(store, ref, { to: "pi", onRemark: (remark) => remarks.push(remark) })),
    ).toString();
    const rows = text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(rows[0]).toEqual({
      type: "session",
      version: 3,
      id: sessionId,
      timestamp: expect.any(String) as string,
      cwd: "",
      key,
    });
    expect(rows.slice(1).map(({ type, id, parentId }) => [type, id, parentId])).toEqual([
      ["message", "00000000", null],
      ["message", "a", null],
      ["message", "a~2", "a"],
    ]);
    expect(remarks).toEqual([
      { seq: null, id: null, what: "added", reason: "a header" },
      { seq: 2, id: "00000001", what: "left-out", reason: "not a record: malformed" },
      { seq: 3, id: "00000002", what: "left-out", reason: "not a record: blank" },
    ]);
  });

  it("raises an old header, and for pi one of version 4", async () => {
    const old = await importedText(
      jsonLines(
        { type: "session", id: sessionId, timestamp: "2025-01-01T00:00:00.000Z", cwd: "/w", extra: 1 },
        message("a", null),
      ),
    );
    expect(JSON.parse((await exported(old, ref, "openclaw")).split("\n")[0] ?? "")).toEqual({
      type: "session",
      version: 3,
      id: sessionId,
      timestamp: "2025-01-01T00:00:00.000Z",
      cwd: "/w",
      extra: 1,
    });
    const four = jsonLines({ ...header, version: 4 }, message("a", null));
    expect(await exported(await importedText(four), ref, "openclaw")).toBe(four);
    expect(JSON.parse((await exported(await importedText(four), ref, "pi")).split("\n")[0] ?? "")).toEqual(header);
  });

  it("ends with a row on the head's branch when the last record is not there", async () => {
    const store = await ownSession();
    await store.append(ref, [], { rewindTo: "b" });
    for (const to of ["pi", "openclaw"] as const) {
      const rows = (await exported(store, ref, to)).trimEnd().split("\n");
      const last = rows.slice(to === "pi" ? -2 : -1).map((row) => JSON.parse(row) as unknown);
      const leaf = { type: "leaf", parentId: "b", targetId: "b" };
      // pi keeps the session's name in a row, on the same branch.
      const name = { type: "session_info", parentId: "b", name: "mine" };
      expect(last).toMatchObject(to === "pi" ? [leaf, name] : [leaf]);
    }
    await store.append(ref, [{ type: "message", id: "d", message: { role: "user", content: "d" } }]);
    expect(await exported(store, ref, "pi")).not.toContain('"leaf"');
  });

  it("refuses a format that it does not write, instead of writing another one", async () => {
    const store = await ownSession();
    const pieces = exportSession(store, ref, { to: "markdown" as "pi" });
    const expected = { code: "INPUT_INVALID", message: expect.stringContaining('"claude-code"') };
    await expect(Array.fromAsync(pieces)).rejects.toMatchObject(expected);
  });

  it("an empty session is a header", async () => {
    const store = createMemoryStore();
    await store.save(ref, { sessionId }, { ifRevision: null });
    expect((await exported(store, ref, "pi")).split("\n").length).toBe(2);
  });
});

describe("export to files", () => {
  it("has names as long as a name may be", async () => {
    const store = await ownSession();
    using folder = fixtureFolder();
    const name = `${"港".repeat(80)}.jsonl`;
    await exportToFile(store, ref, folder.at(name), { to: "jsonl" });
    expect(Object.keys(folder.state())).toEqual([name]);
  });

  it("writes 0600, whole or not at all, and never over anything", async () => {
    const store = await ownSession();
    using folder = fixtureFolder();
    const file = await exportToFile(store, ref, folder.at("new", "x.jsonl"), { to: "jsonl" });
    expect(file).toMatchObject({ key, sessionId, records: 3, remarks: [] });
    expect(statSync(file.path).mode & 0o777).toBe(0o600);
    expect(statSync(folder.at("new")).mode & 0o777).toBe(0o700);
    expect(statSync(file.path).size).toBe(file.sizeBytes);
    const before = folder.state();
    await expect(exportToFile(store, ref, file.path, { to: "pi" })).rejects.toMatchObject({ code: "EXPORT_EXISTS" });
    symlinkSync(folder.at("nowhere"), folder.at("link.jsonl"));
    await expect(exportToFile(store, ref, folder.at("link.jsonl"), { to: "pi" })).rejects.toMatchObject({
      code: "EXPORT_EXISTS",
    });
    await expect(
      exportToFile(store, { ...ref, key: "agent:main:none" }, folder.at("none.jsonl"), { to: "pi" }),
    ).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
    // Somebody else takes the name while the export runs.
    const late = exportToFile(store, ref, folder.at("late.jsonl"), {
      to: "pi",
      onRemark: () => writeFileSync(folder.at("late.jsonl"), "theirs"),
    });
    await expect(late).rejects.toMatchObject({ code: "EXPORT_EXISTS" });
    const after = Object.keys(folder.state()).filter((name) => !(name in before));
    expect(after).toEqual(["late.jsonl"]);
  });

  it("writes everything as a state directory that imports to the same", async () => {
    using source = fixtureFolder({
      "agents/main/sessions/sessions.json": JSON.stringify({
        "agent:main:main": {
          sessionId,
          updatedAt: 1706803200000,
          sendPolicy: "deny",
          later: { x: [1] },
          sessionFile: "/x/y.jsonl",
        },
      }),
      [`agents/main/sessions/${sessionId}.jsonl`]: jsonLines(header, message("a", null)),
      "agents/codex/sessions/old.jsonl.reset.2026-03-01T00-00-00.000Z": jsonLines(
        { ...header, id: "old" },
        message("a", null),
      ),
    });
    const store = createMemoryStore();
    await importAll(store, source.path);
    using target = fixtureFolder();
    const files = await Array.fromAsync(exportAll(store, target.path, { to: "openclaw", archived: true }));
    expect(
      files.map(({ path, records }) => [path.slice(target.path.length + 1).replace(/\d{4}-.*Z$/, "TIME"), records]),
    ).toEqual([
      ["agents/codex/sessions/old.jsonl.reset.TIME", 2],
      [`agents/main/sessions/${sessionId}.jsonl`, 2],
      ["agents/codex/sessions/sessions.json", 0],
      ["agents/main/sessions/sessions.json", 0],
    ]);
    const again = createMemoryStore();
    expect(
      (await importAll(again, target.path)).map(({ key: each, state, archived }) => [each, state, archived]),
    ).toEqual([
      ["agent:codex:import:direct:old", "imported", true],
      ["agent:main:main", "imported", false],
    ]);
    const entry = (await again.load({ namespace: "", agentId: "main", key: "agent:main:main" }))?.entry;
    expect(entry).toMatchObject({ sessionId, sendPolicy: "deny", later: { x: [1] } });
    await expect(Array.fromAsync(exportAll(store, target.path, { to: "jsonl" }))).rejects.toMatchObject({
      code: "EXPORT_EXISTS",
    });
  });

  it("goes on where it was interrupted: files of the same bytes stay, and no other", async () => {
    const store = await importedText(jsonLines(header, message("a", null)));
    await store.save({ ...ref, key: "agent:main:b" }, { sessionId: "b" }, { ifRevision: null });
    await store.append({ ...ref, key: "agent:main:b" }, [{ type: "message", message: { role: "user", content: "b" } }]);
    using target = fixtureFolder();
    const files = await Array.fromAsync(exportAll(store, target.path, { to: "jsonl" }));
    const [first, second, index] = files.map(({ path }) => path);
    if (first === undefined || second === undefined || index === undefined) throw new Error("three files");
    rmSync(index);
    rmSync(second);
    const { ino } = statSync(first);
    expect(await Array.fromAsync(exportAll(store, target.path, { to: "jsonl" }))).toEqual(files);
    expect(statSync(first).ino).toBe(ino);
    rmSync(index);
    for (const damage of ["", "x".repeat(statSync(first).size), `${readFileSync(first, "utf8")}x`]) {
      writeFileSync(first, damage);
      await expect(Array.fromAsync(exportAll(store, target.path, { to: "jsonl" }))).rejects.toMatchObject({
        code: "EXPORT_EXISTS",
      });
    }
  });

  it("refuses one session id for all sessions", async () => {
    using target = fixtureFolder();
    const options = { to: "openclaw", sessionId: "one" } as const;
    await expect(Array.fromAsync(exportAll(createMemoryStore(), target.path, options))).rejects.toMatchObject({
      code: "INPUT_INVALID",
      details: { argument: "sessionId" },
    });
  });

  it("for pi names folders by working directory and files by time and id", async () => {
    const store = await importedText(jsonLines(header, message("a", null)));
    using folder = fixtureFolder();
    mkdirSync(folder.at("--home-u-project--"));
    const [file] = await Array.fromAsync(exportAll(store, folder.path, { to: "pi" }));
    expect(file?.path).toBe(folder.at("--home-u-project--", `2026-02-01T16-10-50-414Z_${sessionId}.jsonl`));
    expect(
      (await importAll(createMemoryStore(), folder.path)).map(({ format, sessionId: id }) => [format, id]),
    ).toEqual([["pi", sessionId]]);
  });

  it("keeps when and why a session was put aside, and the topic, in the names", async () => {
    const other = sessionId.replace(/^.{8}/, "11111111");
    const names = [
      `${sessionId}-topic-7.jsonl`,
      `${other}-topic-a%2Fb.jsonl.reset.2026-03-01T00-00-00.000Z`,
      "gone.jsonl.deleted.2026-03-02T10-20-30.400Z",
      "old.jsonl.reset.2026-03-03T00-00-00.000Z",
    ];
    const text = (id: string): string => jsonLines({ ...header, id }, message("a", null));
    using source = fixtureFolder({
      "agents/main/sessions/sessions.json": "{}",
      ...Object.fromEntries(
        names.map((name) => [`agents/main/sessions/${name}`, text(name.replace(/(-topic|\.).*/, ""))]),
      ),
    });
    const store = createMemoryStore();
    await importAll(store, source.path);
    const own: SessionRef = { namespace: "", agentId: "main", key: "agent:main:own" };
    await store.save(own, { sessionId: "own" }, { ifRevision: null });
    const clock = { ...systemClock, nowMs: () => Date.parse("2026-04-05T06:07:08.009Z") };
    await noteArchiving(store, own, clock);
    await store.move(own, { kind: "archive" });
    using target = fixtureFolder();
    const files = await Array.fromAsync(exportAll(store, target.path, { to: "openclaw", archived: true }));
    const written = files.map(({ path }) => path.slice(path.lastIndexOf("/") + 1));
    expect(written.toSorted()).toEqual(
      [...names, "own.jsonl.reset.2026-04-05T06-07-08.009Z", "sessions.json"].toSorted(),
    );
  });

  it("goes on after a session that cannot be read, and leaves it out of the index", async () => {
    let lost = "";
    const codec: PayloadCodec = {
      name: "losing",
      encode: (plain) => plain,
      decode: (coded, { id }) => {
        if (id === lost) throw new Error("lost");
        return coded;
      },
    };
    const store = createMemoryStore({ codec });
    for (const name of ["one", "two", "three"]) {
      const each: SessionRef = { ...ref, key: `agent:main:${name}` };
      await store.save(each, { sessionId: name }, { ifRevision: null });
      await store.append(each, [{ type: "message", id: name, message: { role: "user", content: name } }]);
    }
    lost = "two";
    for (const to of ["openclaw", "pi", "jsonl"] as const) {
      using folder = fixtureFolder();
      const files = await Array.fromAsync(exportAll(store, folder.path, { to }));
      expect(files.map(({ sessionId: id, error }) => [id, error?.code ?? null])).toEqual([
        ["one", null],
        ["three", null],
        ["two", "CODEC_FAILED"],
        ...(to === "pi" ? [] : [[null, null]]),
      ]);
      const index = Object.entries(folder.state()).filter(([name]) => name.endsWith("sessions.json"));
      expect(index).toHaveLength(to === "pi" ? 0 : 1);
      if (to !== "pi")
        expect(
          Object.keys(JSON.parse(readFileSync(folder.at("agents/main/sessions/sessions.json"), "utf8")) as object),
        ).toEqual(["agent:main:one", "agent:main:three"]);
      expect(Object.keys(folder.state()).filter((name) => /two|\.tmp/.test(name))).toEqual([]);
    }
  });
});
