import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";
import { readdirSync, readFileSync, renameSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { sessionRef, type SessionEvent } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { createXorCodec } from "@throughline/store-conformance";
import { describe, expect, it } from "vitest";
import { faultyFiles } from "./faulty-files.ts";
import { findingCodesOf, mainRef, storeWithSession, textsOf, transcriptOf, userDraft } from "./session-fixture.ts";
import { contentsBelow, filesBelow, temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();

describe("archived sessions", () => {
  it("go by the names OpenClaw gives them, and come back", async () => {
    const root = newFolder();
    const store = await storeWithSession(root);
    await store.append(mainRef, [userDraft("first")]);
    await store.save(mainRef, { sessionId: "s2" }, { ifRevision: 1 });
    await store.remove(mainRef);
    const names = filesBelow(`${root}/agents/main/sessions`).filter((name) => name !== "sessions.json");
    expect(names).toEqual([
      expect.stringMatching(/^s1\.jsonl\.reset\.\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z$/),
      expect.stringMatching(/^s2\.jsonl\.deleted\.\d{4}/),
    ]);
    const archived = { ...mainRef, archiveId: "s1" };
    expect(await textsOf(store, archived)).toEqual(["first"]);
    await store.move(archived, { kind: "restore" });
    await store.append(mainRef, [userDraft("second")]);
    await store.close();
    expect(readdirSync(`${root}/agents/main/sessions`)).toContain("s1.jsonl");
    const again = createJsonlStore({ root });
    expect(await textsOf(again)).toEqual(["first", "second"]);
    await again.close();
  });

  it("are found although the process died between the commit and the renaming", async () => {
    const root = newFolder();
    const faults = faultyFiles();
    const events: SessionEvent[] = [];
    const store = await storeWithSession(root, {
      files: faults.files,
      sessionsJson: false,
      onEvent: (event) => void events.push(event),
    });
    await store.append(mainRef, [userDraft("first")]);
    faults.failNext("rename", "EIO");
    expect((await store.move(mainRef, { kind: "archive" })).archived).toBe(true);
    expect(findingCodesOf(events)).toEqual(["FILE_UNREADABLE"]);
    await store.close();
    const again = createJsonlStore({ root, sessionsJson: false });
    expect(
      (await again.list({ state: "any" })).sessions.map(({ archived, messageCount }) => [archived, messageCount]),
    ).toEqual([[true, 1]]);
    await again.move({ ...mainRef, archiveId: "s1" }, { kind: "restore" });
    expect(await textsOf(again)).toEqual(["first"]);
    await again.close();
  });

  it("are not put in the place of a file that another program has begun anew", async () => {
    const root = newFolder();
    const store = await storeWithSession(root);
    await store.append(mainRef, [userDraft("ours")]);
    await store.move(mainRef, { kind: "archive" });
    writeFileSync(transcriptOf(root), "theirs\n");
    const archived = { ...mainRef, archiveId: "s1" };
    await expect(store.move(archived, { kind: "restore" })).rejects.toMatchObject({
      code: "SESSION_EXISTS",
      outcome: "not-applied",
    });
    expect(readFileSync(transcriptOf(root), "utf8")).toBe("theirs\n");
    expect(await textsOf(store, archived)).toEqual(["ours"]);
    await store.close();
  });
});

describe("what is taken out", () => {
  it("is purged with every copy: transcript, archive, torn lines, entry", async () => {
    const root = newFolder();
    const store = await storeWithSession(root);
    const other = sessionRef({ key: "agent:main:other" });
    await store.save(other, { sessionId: "s2", label: "stays" }, { ifRevision: null });
    await store.append(mainRef, [userDraft("secret-text")], { entry: { label: "secret-label" } });
    await store.append(mainRef, [userDraft("secret-torn")]);
    await store.close();
    truncateSync(transcriptOf(root), readFileSync(transcriptOf(root)).length - 20);
    const again = createJsonlStore({ root });
    await again.append(mainRef, [userDraft("secret-more")]);
    await again.close();
    expect(Buffer.concat(contentsBelow(root)).includes("secret-torn")).toBe(true);
    const last = createJsonlStore({ root });
    await last.remove(mainRef, { purge: true });
    expect(Buffer.concat(contentsBelow(root)).includes("secret-")).toBe(false);
    expect(await last.load(mainRef)).toBeNull();
    expect((await last.load(other))?.entry.label).toBe("stays");
    await last.close();
    expect(Buffer.concat(contentsBelow(root)).includes("secret-")).toBe(false);
  });

  it("stays out when the process died after the commit of the purge", async () => {
    const root = newFolder();
    const store = await storeWithSession(root, { sessionsJson: false });
    await store.append(mainRef, [userDraft("secret")]);
    const transcript = readFileSync(transcriptOf(root));
    const log = `${root}/agents/main/throughline/entries.log`;
    const before = readFileSync(log, "utf8");
    await store.remove(mainRef, { purge: true });
    await store.close();
    // As a process that died right after its commit leaves it.
    writeFileSync(transcriptOf(root), transcript);
    const purge = '{"v":1,"op":"remove","removed":["s1"]}';
    writeFileSync(log, `${before}${purge.slice(0, -1)},"crc":${crc32(purge)}}\n`);
    const again = createJsonlStore({ root, sessionsJson: false });
    expect((await again.list({ state: "any" })).sessions).toEqual([]);
    expect(Buffer.concat(contentsBelow(root)).includes("secret")).toBe(false);
    await again.close();
  });

  it("is redacted in place, in archives and in torn lines, and every other line keeps its bytes", async () => {
    const root = newFolder();
    const store = await storeWithSession(root, { sessionsJson: false });
    await store.append(mainRef, [userDraft("before")], { idempotencyKey: "k0", entry: { label: "l" } });
    const { records } = await store.append(mainRef, [userDraft("secret-one"), userDraft("between")], {
      idempotencyKey: "k1",
    });
    await store.append(mainRef, [userDraft("secret-torn")]);
    await store.close();
    truncateSync(transcriptOf(root), readFileSync(transcriptOf(root)).length - 20);
    rmSync(`${root}/agents/main/throughline/index.db`);
    const again = createJsonlStore({ root, sessionsJson: false });
    await again.append(mainRef, [userDraft("after")]);
    const linesBefore = readFileSync(transcriptOf(root), "utf8").split("\n");
    await again.move(mainRef, { kind: "archive" });
    const archived = { ...mainRef, archiveId: "s1" };
    expect(await again.redact(archived, [records[0]?.id ?? ""], { reason: "asked" })).toEqual({ seqs: [2] });
    expect(Buffer.concat(contentsBelow(root)).includes("secret-")).toBe(false);
    await again.move(archived, { kind: "restore" });
    const linesAfter = readFileSync(transcriptOf(root), "utf8").split("\n");
    expect(linesAfter.filter((line, index) => line !== linesBefore[index])).toHaveLength(1);
    const next = await again.append(mainRef, [userDraft("next")]);
    expect(next.records[0]?.seq).toBe(5);
    expect((await again.load(mainRef))?.entry.label).toBe("l");
    await again.close();
  });
});

describe("two handles", () => {
  it("see each other's entries, records and archived sessions without being opened again", async () => {
    const root = newFolder();
    const one = await storeWithSession(root, { sessionsJson: false });
    const other = createJsonlStore({ root, sessionsJson: false });
    await other.append(mainRef, [userDraft("a")], { entry: { label: "theirs" } });
    expect(await one.load(mainRef)).toMatchObject({ revision: 2, entry: { label: "theirs" }, messageCount: 1 });
    await one.save(mainRef, { sessionId: "s1", label: "ours" }, { ifRevision: 2 });
    await expect(other.save(mainRef, { sessionId: "s1", label: "late" }, { ifRevision: 2 })).rejects.toMatchObject({
      code: "REVISION_CONFLICT",
    });
    await one.move(mainRef, { kind: "archive" });
    await expect(other.append(mainRef, [userDraft("b")])).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
    await Promise.all([one.close(), other.close()]);
  });
});

describe("odd transcripts", () => {
  it("with a line that is no JSON in the middle keep it in its place, and a bad checksum is reported", async () => {
    const root = newFolder();
    const store = await storeWithSession(root, { sessionsJson: false });
    await store.append(mainRef, [userDraft("first")]);
    await store.append(mainRef, [userDraft("second")]);
    await store.close();
    const lines = readFileSync(transcriptOf(root), "utf8")
      .replace('"content":"second"', '"content":"sEcond"')
      .trimEnd()
      .split("\n");
    lines.splice(2, 0, "{not json", "");
    writeFileSync(transcriptOf(root), `${lines.join("\n")}\n`);
    const digest = createHash("sha256")
      .update(readFileSync(transcriptOf(root)))
      .digest("hex");
    const events: SessionEvent[] = [];
    const again = createJsonlStore({ root, sessionsJson: false, onEvent: (event) => void events.push(event) });
    const seen: unknown[] = [];
    for await (const page of again.read(mainRef, { payload: "source", beforeSeq: 4 }))
      seen.push(...page.records.map(({ seq, type, source }) => [seq, type, source === "{not json" || source === ""]));
    expect(seen).toEqual([
      [1, "message", false],
      [2, "custom", true],
      [3, "custom", true],
    ]);
    expect(JSON.stringify(await Array.fromAsync(again.read(mainRef)))).toContain("sEcond");
    // What a copy or an export takes is what was written, or nothing.
    await expect(Array.fromAsync(again.read(mainRef, { payload: "source" }))).rejects.toMatchObject({
      code: "STORE_CORRUPT",
      details: { seq: 4 },
    });
    expect(
      createHash("sha256")
        .update(readFileSync(transcriptOf(root)))
        .digest("hex"),
    ).toBe(digest);
    expect(findingCodesOf(events)).toEqual(expect.arrayContaining(["CHECKSUM_MISMATCH", "LINE_MALFORMED"]));
    expect((await again.append(mainRef, [userDraft("third")])).records[0]?.seq).toBe(5);
    await again.close();
  });

  it("are read backwards as they are read forwards, in pages of any size", async () => {
    const root = newFolder();
    const store = await storeWithSession(root, { sessionsJson: false, limits: { pageRecords: 3 } });
    for (let index = 0; index < 10; index++)
      await store.append(mainRef, [userDraft(`n${index}`)], { durability: "none" });
    const forwards: number[][] = [];
    const backwards: number[][] = [];
    for await (const page of store.read(mainRef, { afterSeq: 1, beforeSeq: 9 }))
      forwards.push(page.records.map(({ seq }) => seq));
    for await (const page of store.read(mainRef, { order: "descending", limit: 5 }))
      backwards.push(page.records.map(({ seq }) => seq));
    expect(forwards).toEqual([[2, 3, 4], [5, 6, 7], [8]]);
    expect(backwards).toEqual([
      [10, 9, 8],
      [7, 6],
    ]);
    await store.close();
  });

  it("lose no entry patch when the process dies before the log has it", async () => {
    const root = newFolder();
    const store = await storeWithSession(root, { codec: createXorCodec() });
    await store.append(mainRef, [userDraft("a")], { entry: { label: "one", model: "m" } });
    await store.append(mainRef, [userDraft("b")], { entry: { label: undefined } });
    // No close: what is in the files now is all there is.
    const again = createJsonlStore({ root, codec: createXorCodec() });
    expect(await again.load(mainRef)).toMatchObject({ revision: 3, entry: { sessionId: "s1", model: "m" } });
    expect((await again.load(mainRef))?.entry).not.toHaveProperty("label");
    await Promise.all([store.close(), again.close()]);
  });

  it("are read anew when another program has written them anew in place", async () => {
    const root = newFolder();
    const store = await storeWithSession(root, { sessionsJson: false });
    await store.append(mainRef, [userDraft("first"), userDraft("second")]);
    const text = readFileSync(transcriptOf(root), "utf8");
    // The same file, the same size, another content before the end.
    writeFileSync(transcriptOf(root), text.replace('"first"', '"FIRST"'));
    expect(await textsOf(store)).toEqual(["FIRST", "second"]);
    // The same file, longer, and nothing is where it was.
    const [header = "", ...lines] = text.trimEnd().split("\n");
    const message = { role: "user", content: "zeroth" };
    const added = { type: "message", id: "ffff0001", parentId: null, timestamp: "2026-01-02T03:04:05.006Z", message };
    writeFileSync(transcriptOf(root), [header, JSON.stringify(added), ...lines, ""].join("\n"));
    expect(await textsOf(store)).toEqual(["zeroth", "first", "second"]);
    expect((await store.append(mainRef, [userDraft("third")])).records[0]?.seq).toBe(4);
    await store.close();
  });

  it("whose file is gone are listed and refuse to be written", async () => {
    const root = newFolder();
    await (await storeWithSession(root, { sessionsJson: false })).close();
    renameSync(transcriptOf(root), `${root}/elsewhere`);
    const events: SessionEvent[] = [];
    const store = createJsonlStore({ root, sessionsJson: false, onEvent: (event) => void events.push(event) });
    expect((await store.list()).sessions).toHaveLength(1);
    await expect(store.append(mainRef, [userDraft("x")])).rejects.toMatchObject({
      code: "STORE_CORRUPT",
      outcome: "not-applied",
    });
    expect(findingCodesOf(events)).toEqual(["SESSION_FILE_MISSING"]);
    await store.close();
  });
});

describe("many sessions at once", () => {
  it("are written side by side, more than are kept open", { tags: ["slow"], timeout: 60_000 }, async () => {
    const root = newFolder();
    const store = createJsonlStore({ root, sessionsJson: false });
    const refs = Array.from({ length: 150 }, (_, index) => sessionRef({ key: `agent:main:n${index}` }));
    for (const [index, ref] of refs.entries())
      await store.save(ref, { sessionId: `s${index}` }, { ifRevision: null, durability: "process" });
    for (let round = 0; round < 3; round++)
      await Promise.all(refs.map((ref) => store.append(ref, [userDraft(`r${round}`)])));
    for (const ref of refs) expect(await textsOf(store, ref)).toEqual(["r0", "r1", "r2"]);
    expect((await store.list({ limit: 1000 })).sessions).toHaveLength(150);
    await store.close();
  });
});

describe("the end of a handle", () => {
  it("is the same for everybody who asks for it", async () => {
    const store = await storeWithSession(newFolder());
    await store.append(mainRef, [userDraft("first")]);
    let isOver = false;
    const first = store.close().then(() => (isOver = true));
    await store.close();
    await Promise.resolve();
    expect(isOver).toBe(true);
    await first;
  });
});
