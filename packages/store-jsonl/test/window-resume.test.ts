import { appendFileSync, copyFileSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import type { SessionStore, StoredRecord } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { describe, expect, it } from "vitest";
import { faultyFiles } from "./faulty-files.ts";
import { mainRef, storeWithSession, textsOf, transcriptOf, userDraft } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();
const filler = "x".repeat(900);

/** A session of so many records before the window, and sixty in it; the window is stated by the fiftieth of them. */
async function compactedSession(root: string, count: number): Promise<SessionStore> {
  const store = await storeWithSession(root, { sessionsJson: false });
  for (let from = 1; from <= count; from += 500) {
    const drafts = Array.from({ length: Math.min(500, count - from + 1) }, (_, index) => ({
      ...userDraft(`${from + index} ${filler}`),
      ...(from + index === 7 ? { id: "given" } : {}),
    }));
    await store.append(mainRef, drafts, { durability: "process", idempotencyKey: `k${from}` });
  }
  for (let index = 1; index <= 60; index++)
    await store.append(mainRef, [userDraft(`${count + index} ${filler}`)], {
      durability: "process",
      entry: { totalTokens: index },
      ...(index === 50 ? { windowFromSeq: count + 1 } : {}),
    });
  return store;
}

async function recordsFrom(store: SessionStore, afterSeq: number): Promise<readonly StoredRecord[]> {
  const records: StoredRecord[] = [];
  for await (const page of store.read(mainRef, { afterSeq })) records.push(...page.records);
  return records;
}

function deleteDerived(root: string): void {
  for (const name of ["index.db", "index.db-wal", "index.db-shm", "sessions-view.json"])
    rmSync(`${root}/agents/main/throughline/${name}`, { force: true });
}

describe("a long session with a window near its end", () => {
  it("is resumed by reading the window alone, however long it is", { tags: ["slow"], timeout: 60_000 }, async () => {
    const read: number[] = [];
    for (const count of [1000, 20_000]) {
      const root = newFolder();
      const writer = await compactedSession(root, count);
      const whole = await writer.load(mainRef);
      const wanted = await recordsFrom(writer, count);
      await writer.close();
      deleteDerived(root);
      const faults = faultyFiles();
      const store = createJsonlStore({ root, files: faults.files, sessionsJson: false });
      expect(await store.load(mainRef)).toEqual(whole);
      expect(whole).toMatchObject({ messageCount: count + 60, head: { lastSeq: count + 60, windowSeq: count + 1 } });
      expect(await recordsFrom(store, count)).toEqual(wanted);
      read.push(faults.counts["bytesRead"] ?? 0);
      await store.close();
    }
    const [small = 0, large = 0] = read;
    expect(large).toBeLessThan(small + 4096);
    expect(large).toBeLessThan(1_500_000);
  });

  it("is known without a look into the transcript where the index has it", { timeout: 60_000 }, async () => {
    const root = newFolder();
    const writer = await compactedSession(root, 2000);
    const whole = await writer.load(mainRef);
    const wanted = await recordsFrom(writer, 2000);
    await writer.close();
    const faults = faultyFiles();
    const store = createJsonlStore({ root, files: faults.files, sessionsJson: false });
    expect(await store.load(mainRef)).toEqual(whole);
    expect(faults.counts["bytesRead"] ?? 0).toBeLessThan(4096);
    expect(await recordsFrom(store, 2000)).toEqual(wanted);
    // The last line, to see that it is the one the index knows, and the window once.
    expect(faults.counts["bytesRead"]).toBeLessThan(350_000);
    await store.close();
  });

  it("is read from its beginning where the index is wrong about the window's place", { timeout: 60_000 }, async () => {
    const root = newFolder();
    const writer = await compactedSession(root, 2000);
    const wanted = await recordsFrom(writer, 2000);
    await writer.close();
    const index = new DatabaseSync(`${root}/agents/main/throughline/index.db`);
    const places = index.prepare("SELECT json_extract(summary, '$.windowAt') AS place FROM sessions").all();
    const place = Number(places[0]?.["place"]);
    expect(readFileSync(transcriptOf(root)).toString("utf8", place, place + 300)).toContain("2001 xxx");
    for (const wrong of [0, 17, place - 1, place + 1, 1e12, "'text'"]) {
      index.exec(`UPDATE sessions SET summary = json_set(summary, '$.windowAt', ${wrong})`);
      await using store = createJsonlStore({ root, sessionsJson: false });
      await store.load(mainRef);
      expect(await recordsFrom(store, 2000)).toEqual(wanted);
    }
    index.close();
  });

  it("answers every question about what lies before the window too", { timeout: 60_000 }, async () => {
    const root = newFolder();
    await (await compactedSession(root, 2000)).close();
    deleteDerived(root);
    const store = createJsonlStore({ root, sessionsJson: false });
    await store.load(mainRef);
    expect((await recordsFrom(store, 1990))[0]?.seq).toBe(1991);
    const newest: number[] = [];
    for await (const { records } of store.read(mainRef, { order: "descending", limit: 3 }))
      newest.push(...records.map(({ seq }) => seq));
    expect(newest).toEqual([2060, 2059, 2058]);
    await expect(store.append(mainRef, [{ ...userDraft("x"), id: "given" }])).rejects.toMatchObject({
      code: "RECORD_ID_TAKEN",
    });
    await store.close();
    deleteDerived(root);
    const again = createJsonlStore({ root, sessionsJson: false });
    const drafts = Array.from({ length: 500 }, (_, index) => userDraft(`${501 + index} ${filler}`));
    expect(await again.append(mainRef, drafts, { idempotencyKey: "k501" })).toMatchObject({ replayed: true });
    expect((await again.append(mainRef, [userDraft("new")])).records[0]?.seq).toBe(2061);
    expect(await textsOf(again)).toHaveLength(2061);
    await again.close();
  });

  it("takes over an entry that lies before the mark and is nowhere else", { timeout: 60_000 }, async () => {
    const root = newFolder();
    const writer = await compactedSession(root, 1000);
    const log = `${root}/agents/main/throughline/entries.log`;
    copyFileSync(transcriptOf(root), `${root}/transcript`);
    const early = readFileSync(log, "utf8").split("\n")[0] ?? "";
    await writer.close();
    // As a process leaves it that was killed before it wrote the entry to the log.
    copyFileSync(`${root}/transcript`, transcriptOf(root));
    writeFileSync(log, `${early}\n`);
    deleteDerived(root);
    const store = createJsonlStore({ root, sessionsJson: false });
    expect(await store.load(mainRef)).toMatchObject({ revision: 61, entry: { totalTokens: 60 } });
    await store.close();
  });

  it("reads all of it once another program has written behind the mark", { timeout: 60_000 }, async () => {
    const root = newFolder();
    await (await compactedSession(root, 1000)).close();
    deleteDerived(root);
    const theirs = { type: "message", id: "t1", parentId: null, timestamp: "2026-01-02T03:04:05.006Z", message: {} };
    appendFileSync(transcriptOf(root), `${JSON.stringify(theirs)}\n`);
    const store = createJsonlStore({ root, sessionsJson: false });
    expect((await store.load(mainRef))?.head).toMatchObject({ lastSeq: 1061, headId: "t1", windowSeq: 1001 });
    expect((await recordsFrom(store, 1058)).map(({ seq }) => seq)).toEqual([1059, 1060, 1061]);
    await store.close();
  });

  it(
    "reads all of it where another program's line lies in what is read",
    { tags: ["slow"], timeout: 60_000 },
    async () => {
      const root = newFolder();
      const first = await storeWithSession(root, { sessionsJson: false });
      await first.append(mainRef, [userDraft("first")]);
      await first.close();
      appendFileSync(transcriptOf(root), '{"type":"user","content":"flat"}\n');
      const writer = createJsonlStore({ root, sessionsJson: false });
      for (let index = 0; index < 600; index++)
        await writer.append(mainRef, [userDraft(filler)], {
          durability: "process",
          ...(index === 500 ? { windowFromSeq: 1 } : {}),
        });
      const wanted = await recordsFrom(writer, 0);
      await writer.close();
      deleteDerived(root);
      const store = createJsonlStore({ root, sessionsJson: false });
      await store.load(mainRef);
      expect(await recordsFrom(store, 0)).toEqual(wanted);
      expect(wanted[1]?.record.type).toBe("message");
      await store.close();
    },
  );

  it("counts right after a redaction before the mark", { timeout: 60_000 }, async () => {
    const root = newFolder();
    const writer = await compactedSession(root, 1000);
    await writer.redact(mainRef, ["given"], { reason: "asked" });
    const whole = await writer.load(mainRef);
    expect(whole?.messageCount).toBe(1059);
    await writer.close();
    deleteDerived(root);
    const store = createJsonlStore({ root, sessionsJson: false });
    expect(await store.load(mainRef)).toEqual(whole);
    await store.close();
  });

  it("is found where the line it is on is longer than what is read first", async () => {
    const root = newFolder();
    const writer = await storeWithSession(root, { sessionsJson: false });
    for (let count = 0; count < 40; count++) await writer.append(mainRef, [userDraft("x".repeat(100_000))]);
    await writer.append(mainRef, [userDraft("y".repeat(400_000))], { windowFromSeq: 41 });
    const whole = await writer.load(mainRef);
    await writer.close();
    deleteDerived(root);
    const faults = faultyFiles();
    const store = createJsonlStore({ root, sessionsJson: false, files: faults.files });
    expect(await store.load(mainRef)).toEqual(whole);
    expect(faults.counts["bytesRead"]).toBeLessThan(1_000_000);
    await store.close();
  });

  it("is not looked for at every place where a line of another program has its name", async () => {
    const root = newFolder();
    const writer = await storeWithSession(root, { sessionsJson: false });
    await writer.append(mainRef, [userDraft("x".repeat(300_000))]);
    await writer.close();
    deleteDerived(root);
    appendFileSync(transcriptOf(root), `{"a":"${'"mark":{'.repeat(100_000)}\n`);
    const store = createJsonlStore({ root, sessionsJson: false });
    expect((await store.load(mainRef))?.head.lastSeq).toBe(2);
    await store.close();
  });
});
