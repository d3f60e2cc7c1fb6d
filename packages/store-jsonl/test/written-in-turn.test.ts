import { closeSync, openSync, readFileSync, statSync, writeSync } from "node:fs";
import type { SessionStore } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import type { Files } from "../src/files.ts";
import { describe, expect, it } from "vitest";
import { faultyFiles } from "./faulty-files.ts";
import { mainRef, storeWithSession, textsOf, transcriptOf, userDraft } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();
const count = 800;

async function longSession(root: string): Promise<SessionStore> {
  const store = await storeWithSession(root, { sessionsJson: false, index: false });
  for (let from = 0; from < count; from += 100)
    await store.append(
      mainRef,
      Array.from({ length: 100 }, (_, index) => userDraft(`${from + index} ${"x".repeat(300)}`)),
    );
  return store;
}

describe("a session that others write to", () => {
  it("is not read anew by who looks in the middle of a write, which shows in its time before it shows in its size", async () => {
    const root = newFolder();
    await using writer = await longSession(root);
    const { files, counts, reset } = faultyFiles();
    let endsAt: number | null = null;
    const looking: Files = {
      ...files,
      facts(path) {
        const facts = files.facts(path);
        if (facts === null || endsAt === null || path !== transcriptOf(root)) return facts;
        return { ...facts, sizeBytes: endsAt };
      },
      factsOf(handle) {
        endsAt = null;
        return files.factsOf(handle);
      },
    };
    await using reader = createJsonlStore({ root, files: looking, sessionsJson: false, index: false });
    await reader.load(mainRef);
    endsAt = statSync(transcriptOf(root)).size;
    await writer.append(mainRef, [userDraft("new")]);
    reset();
    expect((await reader.load(mainRef))?.head.lastSeq).toBe(count + 1);
    expect(endsAt).toBe(null);
    expect(counts["bytesRead"]).toBeLessThan(4096);
  });

  it("is read anew where it was changed in place a moment ago", async () => {
    const root = newFolder();
    await using store = await longSession(root);
    await store.load(mainRef);
    const handle = openSync(transcriptOf(root), "r+");
    const before = await textsOf(store);
    const at = Buffer.from(`"${before[3] ?? ""}"`);
    const place = readFileSync(transcriptOf(root)).indexOf(at);
    writeSync(handle, Buffer.from('"9'), 0, 2, place);
    closeSync(handle);
    expect((await textsOf(store))[3]).toBe(`9${before[3]?.slice(1) ?? ""}`);
  });

  it("is read before its lock is taken, once this process and others write in turn", async () => {
    const root = newFolder();
    await using other = await longSession(root);
    const { files } = faultyFiles();
    let isLocked = false;
    let bytes = { ahead: 0, locked: 0 };
    const watched: Files = {
      ...files,
      facts(path) {
        isLocked ||= path.includes("/locks/");
        return files.facts(path);
      },
      read(handle, into, position) {
        const read = files.read(handle, into, position);
        bytes[isLocked ? "locked" : "ahead"] += read;
        return read;
      },
    };
    await using store = createJsonlStore({ root, files: watched, sessionsJson: false, index: false });
    const turn = async (text: string): Promise<typeof bytes> => {
      await other.append(mainRef, [userDraft(`other ${text} ${"y".repeat(5000)}`)]);
      isLocked = false;
      bytes = { ahead: 0, locked: 0 };
      await store.append(mainRef, [userDraft(text)]);
      return bytes;
    };
    await turn("first");
    await turn("second");
    const { ahead, locked } = await turn("third");
    expect(ahead).toBeGreaterThan(5000);
    // The end of what was understood, to see that it is still there.
    expect(locked).toBeLessThanOrEqual(512);
    expect((await textsOf(other)).slice(-6).map((text) => text.slice(0, 8))).toEqual([
      "other fi",
      "first",
      "other se",
      "second",
      "other th",
      "third",
    ]);
    // Who writes alone looks no further than its own lock.
    await store.append(mainRef, [userDraft("fourth")]);
    isLocked = false;
    bytes = { ahead: 0, locked: 0 };
    await store.append(mainRef, [userDraft("fifth")]);
    expect(bytes.ahead).toBe(0);
  });
});
