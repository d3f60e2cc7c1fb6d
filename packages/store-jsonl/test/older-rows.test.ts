import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { crc32 } from "node:zlib";
import { createJsonlStore } from "@throughline/store-jsonl";
import { type Files, nodeFiles } from "../src/files.ts";
import { describe, expect, it } from "vitest";
import { crashStates, imageDigest } from "./crash-states.ts";
import { simulatedStore } from "./crash-explorer.ts";
import { countFaults } from "./fault-counts.ts";
import { mainRef, storeWithSession, textsOf, transcriptOf, userDraft } from "./session-fixture.ts";
import { createSimulatedDisk, type DiskImage, type DiskMoment } from "./simulated-disk.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();

/** A store with a session that an earlier version made at durability `process`: its row says that nothing was flushed. */
async function olderStore(): Promise<string> {
  const root = newFolder();
  await (await storeWithSession(root, { index: false, sessionsJson: false })).close();
  const log = `${root}/agents/main/throughline/entries.log`;
  writeFileSync(log, olderLine(readFileSync(log, "utf8")));
  return root;
}

/** The line of a session as a version wrote it that did not flush a session when it made it. */
function olderLine(line: string): string {
  const { crc: _crc, ...fields } = JSON.parse(line) as Readonly<Record<string, unknown>>;
  const text = JSON.stringify({ ...fields, isUnflushed: true });
  return `${text.slice(0, -1)},"crc":${crc32(text)}}\n`;
}

/** The same on a simulated disk. `isThere`: a power cut has left its transcript. */
async function olderImage(isThere: boolean): Promise<DiskImage> {
  const disk = createSimulatedDisk();
  const store = simulatedStore(disk, { called: "a", sessionsJson: false });
  await store.save(mainRef, { sessionId: "s1" }, { ifRevision: null });
  await store.close();
  const changed = [...disk.image()].map(([path, bytes]) => {
    const isLog = path.endsWith("/entries.log");
    return [path, isLog ? Buffer.from(olderLine(Buffer.from(bytes ?? []).toString())) : bytes] as const;
  });
  return new Map(changed.filter(([path]) => isThere || !path.endsWith("/s1.jsonl")));
}

/** What an append leads to in each state that a power cut may leave of moments. */
async function appendedAfter(moments: readonly DiskMoment[]): Promise<readonly string[]> {
  const images = moments.flatMap((moment) => [...crashStates(moment, { cutEveryBytes: 32 })]);
  const found: string[] = [];
  for (const image of new Map(images.map((one) => [imageDigest(one), one])).values()) {
    const store = simulatedStore(createSimulatedDisk(image), { called: "c", sessionsJson: false });
    await store.append(mainRef, [userDraft("two")]);
    found.push((await textsOf(store)).join(" "));
    await store.close();
  }
  return found;
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

  it.for([true, false])(
    "takes appends after a power cut at any moment of its first write, and keeps that once it is acknowledged: %s",
    { tags: ["slow"] },
    async (isThere, context) => {
      const disk = createSimulatedDisk(await olderImage(isThere));
      const moments: DiskMoment[] = [];
      disk.onChange = () => void moments.push(disk.moment());
      const store = simulatedStore(disk, { called: "b", sessionsJson: false });
      await store.append(mainRef, [userDraft("one")]);
      disk.onChange = () => undefined;
      const during = await appendedAfter(moments);
      expect(new Set(during)).toEqual(new Set(["two", "one two"]));
      expect(new Set(await appendedAfter([disk.moment()]))).toEqual(new Set(["one two"]));
      await store.close();
      expect(during.length).toBeGreaterThan(20);
      countFaults(context, { states: during.length });
    },
  );
});
