import { appendFileSync, copyFileSync, readdirSync, readFileSync, renameSync } from "node:fs";
import { sessionRef, type AppendResult } from "@throughline/core";
import { createXorCodec } from "@throughline/store-conformance";
import { createTranscriptReader } from "@throughline/openclaw-format";
import { createJsonlStore } from "@throughline/store-jsonl";
import { type Files, nodeFiles } from "../src/files.ts";
import { describe, expect, it } from "vitest";
import { faultyFiles } from "./faulty-files.ts";
import { mainRef, storeWithSession, textsOf, transcriptOf, userDraft } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();

function theirLine(text: string): string {
  const timestamp = "2026-01-02T03:04:05.006Z";
  return JSON.stringify({
    type: "message",
    id: "theirs",
    parentId: null,
    timestamp,
    message: { role: "user", content: text },
  });
}

function seqsOf({ records }: AppendResult): readonly number[] {
  return records.map(({ seq }) => seq);
}

describe("a program that writes to a transcript without a lock", () => {
  it("keeps its line when our write behind it fails", async () => {
    const root = newFolder();
    const faults = faultyFiles();
    const store = await storeWithSession(root, { sessionsJson: false, files: faults.files });
    await store.append(mainRef, [userDraft("first")]);
    faults.beforeNextWrite(() => {
      appendFileSync(transcriptOf(root), `${theirLine("theirs")}\n`);
      faults.failNext("write", "ENOSPC");
    });
    await expect(store.append(mainRef, [userDraft("ours")])).rejects.toMatchObject({
      code: "STORE_FULL",
      outcome: "not-applied",
    });
    expect(await textsOf(store)).toEqual(["first", "theirs"]);
    await store.close();
  });

  it.each(["in plain", "under a codec"])(
    "may double a line of ours %s, and no two records go by one id",
    async (how) => {
      const root = newFolder();
      const coded = how === "in plain" ? {} : { codec: createXorCodec() };
      const store = await storeWithSession(root, { sessionsJson: false, ...coded });
      const { records } = await store.append(mainRef, [userDraft("one"), userDraft("two")]);
      const lines = readFileSync(transcriptOf(root), "utf8").split("\n");
      appendFileSync(transcriptOf(root), `${lines.slice(1, 3).join("\n")}\n`);
      const [one, two] = records.map(({ id }) => id);
      const fresh = createJsonlStore({ root, sessionsJson: false, ...coded });
      for (const each of [store, fresh]) {
        const ids: string[] = [];
        for await (const { records: page } of each.read(mainRef))
          for (const { id, record } of page) {
            expect(record.id).toBe(id);
            ids.push(id);
          }
        expect(ids).toEqual([one, two, `${one}~2`, `${two}~2`]);
        expect(await textsOf(each)).toEqual(["one", "two", "one", "two"]);
      }
      const next = await fresh.append(mainRef, [userDraft("three")]);
      expect(next.records[0]).toMatchObject({ seq: 5, parentId: `${two}~2` });
      const fork = sessionRef({ key: "agent:main:fork" });
      await fresh.fork?.fork(mainRef, fork, { sessionId: "s2" });
      expect(await textsOf(fresh, fork)).toEqual(["one", "two", "one", "two", "three"]);
      await Promise.all([store.close(), fresh.close()]);
    },
  );

  it("loses nothing when it is met in the middle of its line", async () => {
    const root = newFolder();
    const line = `${theirLine("theirs")}\n`;
    const first = await storeWithSession(root, { sessionsJson: false });
    await first.append(mainRef, [userDraft("first")]);
    await first.close();
    appendFileSync(transcriptOf(root), line.slice(0, 60));
    let rest = line.slice(60);
    const files: Files = {
      ...nodeFiles,
      // The copy of what looks like a torn tail is put on the disk: that takes longer than the rest of the line.
      flushNow(handle) {
        appendFileSync(transcriptOf(root), rest);
        rest = "";
        nodeFiles.flushNow(handle);
      },
    };
    const store = createJsonlStore({ root, sessionsJson: false, files });
    expect(seqsOf(await store.append(mainRef, [userDraft("ours")]))).toEqual([3]);
    expect(await textsOf(store)).toEqual(["first", "theirs", "ours"]);
    expect(readdirSync(`${root}/agents/main/throughline/torn`)).toEqual([]);
    await store.close();
  });

  it.each(["before our look at the file, without a line feed", "between our look and our write"])(
    "writes %s, and the append with a window is found again in a long file",
    async (when) => {
      const root = newFolder();
      const faults = faultyFiles();
      const store = await storeWithSession(root, { sessionsJson: false, files: faults.files });
      await store.append(mainRef, [userDraft("x".repeat(300_000))], { entry: { label: "long" } });
      const intrude = (): void => appendFileSync(transcriptOf(root), `${theirLine("theirs")}\n`);
      if (when.startsWith("before")) appendFileSync(transcriptOf(root), theirLine("theirs"));
      else faults.beforeNextWrite(intrude);
      const result = await store.append(mainRef, [userDraft("ours")], { windowFromSeq: 1 });
      expect([seqsOf(result), result.head.lastSeq]).toEqual([[3], 3]);
      expect((await textsOf(store)).slice(1)).toEqual(["theirs", "ours"]);
      await store.close();
    },
  );

  it("puts another file in its place while we write, and no append into the old one is acknowledged", async () => {
    const root = newFolder();
    const faults = faultyFiles();
    const store = await storeWithSession(root, { sessionsJson: false, files: faults.files });
    await store.append(mainRef, [userDraft("first")]);
    faults.beforeNextWrite(() => {
      copyFileSync(transcriptOf(root), `${root}/copy`);
      renameSync(`${root}/copy`, transcriptOf(root));
    });
    await expect(store.append(mainRef, [userDraft("lost")])).rejects.toMatchObject({ outcome: "unknown" });
    await store.append(mainRef, [userDraft("second")]);
    expect(await textsOf(store)).toEqual(["first", "second"]);
    await store.close();
  });
});

describe("a file that is read or replaced with a failure", () => {
  it("is read again from where it was understood, not in the middle of another's append", async () => {
    const root = newFolder();
    let reads = Infinity;
    const files: Files = {
      ...nodeFiles,
      read(handle, into, position) {
        if (into.length > 100_000 && --reads === 0)
          throw Object.assign(new Error("EIO"), { code: "EIO", syscall: "read" });
        return nodeFiles.read(handle, into, position);
      },
    };
    const store = await storeWithSession(root, { sessionsJson: false, files });
    await store.append(mainRef, [userDraft("first")]);
    const other = createJsonlStore({ root, sessionsJson: false });
    await other.append(
      mainRef,
      Array.from({ length: 20 }, (_, index) => userDraft(`${index} ${"x".repeat(20_000)}`)),
    );
    reads = 2;
    await expect(textsOf(store)).rejects.toMatchObject({ code: "STORE_IO" });
    expect(seqsOf(await store.append(mainRef, [userDraft("after")]))).toEqual([22]);
    await Promise.all([store.close(), other.close()]);
  });

  it("takes no append of those that waited with a replacement whose name may be lost", async () => {
    const root = newFolder();
    let fails = false;
    const files: Files = {
      ...nodeFiles,
      flushFolder(path) {
        if (fails && path.endsWith("/sessions")) {
          fails = false;
          throw Object.assign(new Error("EIO"), { code: "EIO", syscall: "fsync" });
        }
        nodeFiles.flushFolder(path);
      },
    };
    const store = await storeWithSession(root, { sessionsJson: false, files });
    const timestamp = "2026-01-02T03:04:05.006Z";
    const source = JSON.stringify({ type: "session", version: 3, id: "theirs", timestamp, cwd: "/" });
    const { record } = createTranscriptReader().push(source, { line: 1, byteOffset: 0, envelope: null });
    fails = true;
    // An imported header takes the place of the file's own.
    const [header, behind] = await Promise.allSettled([
      store.append(mainRef, [{ source, record }]),
      store.append(mainRef, [userDraft("acknowledged")]),
    ]);
    expect(header).toMatchObject({ status: "rejected", reason: { outcome: "unknown" } });
    expect(behind.status).toBe("fulfilled");
    await store.close();
    expect(readFileSync(transcriptOf(root), "utf8")).toContain('"acknowledged"');
  });
});
