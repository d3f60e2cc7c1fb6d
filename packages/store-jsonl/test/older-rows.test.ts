import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { crc32 } from "node:zlib";
import { createJsonlStore, nodeFiles, type Files } from "@throughline/store-jsonl";
import { describe, expect, it } from "vitest";
import { mainRef, storeWithSession, textsOf, transcriptOf, userDraft } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();

/** A store with a session that an earlier version made at durability `process`: its row says that nothing was flushed. */
async function olderStore(): Promise<string> {
  const root = newFolder();
  await (await storeWithSession(root, { index: false, sessionsJson: false })).close();
  const log = `${root}/agents/main/throughline/entries.log`;
  const { crc: _crc, ...fields } = JSON.parse(readFileSync(log, "utf8")) as Readonly<Record<string, unknown>>;
  const text = JSON.stringify({ ...fields, isUnflushed: true });
  writeFileSync(log, `${text.slice(0, -1)},"crc":${crc32(text)}}\n`);
  return root;
}

function lastRow(root: string): Readonly<Record<string, unknown>> {
  const lines = readFileSync(`${root}/agents/main/throughline/entries.log`, "utf8").trimEnd().split("\n");
  return JSON.parse(lines.at(-1) ?? "") as Record<string, unknown>;
}

describe("a session that an earlier version made without flushing it", () => {
  it.each([
    ["an append at process", { durability: "process" }],
    ["an append at disk", { durability: "disk" }],
  ] as const)("is on the disk before the first write to it: %s", async (_name, how) => {
    const root = await olderStore();
    const calls: string[] = [];
    const files: Files = {
      ...nodeFiles,
      write: (handle, bytes) => (calls.push("write"), nodeFiles.write(handle, bytes)),
      flushNow: (handle) => (calls.push("flush"), nodeFiles.flushNow(handle)),
      flushFolder: (path) => (calls.push("flush folder"), nodeFiles.flushFolder(path)),
    };
    await using store = createJsonlStore({ root, files, index: false, sessionsJson: false });
    await store.append(mainRef, [userDraft("one")], how);
    expect(lastRow(root)).toMatchObject({ sessionId: "s1" });
    expect(lastRow(root)).not.toHaveProperty("isUnflushed");
    // The transcript, its name and the log; then the row without the mark, then the record.
    expect(calls.slice(0, calls.lastIndexOf("write") + 1)).toEqual([
      "flush",
      "flush folder",
      "flush",
      "write",
      "write",
    ]);
    expect(await textsOf(store)).toEqual(["one"]);
  });

  it("begins again where a power cut took its transcript, and the same file gone later is an error", async () => {
    const root = await olderStore();
    rmSync(transcriptOf(root));
    const store = createJsonlStore({ root, index: false, sessionsJson: false });
    await store.append(mainRef, [userDraft("one")]);
    expect(await textsOf(store)).toEqual(["one"]);
    await store.close();
    rmSync(transcriptOf(root));
    await using later = createJsonlStore({ root, index: false, sessionsJson: false });
    await expect(later.append(mainRef, [userDraft("two")])).rejects.toMatchObject({ code: "STORE_CORRUPT" });
  });
});
