import { appendFileSync, readFileSync, statSync, truncateSync } from "node:fs";
import { attachEnvelope } from "@throughline/openclaw-format/internal";
import { createJsonlStore } from "@throughline/store-jsonl";
import { type Files, nodeFiles } from "../src/files.ts";
import { describe, expect, it } from "vitest";
import { faultyFiles } from "./faulty-files.ts";
import { mainRef, storeWithSession, transcriptOf, userDraft } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();
const timestamp = "2026-01-02T03:04:05.006Z";
const count = 20_000;

/** Lines of so many records behind the header, some of them another program's. */
function manyLines(foreignEvery = Infinity): string {
  let text = "";
  for (let seq = 1; seq <= count; seq++) {
    const parentId = seq === 1 ? null : `r${seq - 1}`;
    const message = { role: "user", content: "x".repeat(450) };
    const line = JSON.stringify({ type: "message", id: `r${seq}`, parentId, timestamp, message });
    text += `${seq % foreignEvery === 0 ? line : attachEnvelope(line, { seq, at: 1_767_323_045_006 })}\n`;
  }
  return text;
}

describe("a transcript of many megabytes that is read as a whole", () => {
  let root = "";
  const long = async (foreignEvery?: number): Promise<void> => {
    root = newFolder();
    await (await storeWithSession(root, { sessionsJson: false })).close();
    appendFileSync(transcriptOf(root), manyLines(foreignEvery));
    expect(statSync(transcriptOf(root)).size).toBeGreaterThan(8 * 1024 * 1024);
  };
  it("is read with nothing locked and with pauses, and each byte of it once", { timeout: 60_000 }, async () => {
    await long();
    await using other = createJsonlStore({ root, sessionsJson: false });
    await other.append(mainRef, [userDraft("first")]);
    const faults = faultyFiles();
    await using store = createJsonlStore({ root, sessionsJson: false, files: faults.files });
    const order: string[] = [];
    let turns = 0;
    const counting = setInterval(() => turns++, 0);
    const keyed = store.append(mainRef, [userDraft("keyed")], { idempotencyKey: "key" });
    const done = keyed.then(() => order.push("keyed"));
    await other.append(mainRef, [userDraft("plain")]).then(() => order.push("plain"));
    await done;
    clearInterval(counting);
    expect(order).toEqual(["plain", "keyed"]);
    expect(turns).toBeGreaterThan(3);
    expect((await keyed).head.lastSeq).toBe(count + 3);
    expect(faults.counts["bytesRead"]).toBeLessThan(1.5 * statSync(transcriptOf(root)).size);
    const again = await store.append(mainRef, [userDraft("keyed")], { idempotencyKey: "key" });
    expect([again.replayed, again.head.lastSeq]).toEqual([true, count + 3]);
    await expect(store.append(mainRef, [{ ...userDraft("twice"), id: "r7" }])).rejects.toMatchObject({
      code: "RECORD_ID_TAKEN",
    });
  });

  it("is not opened by a load of what the index knows", async () => {
    await long();
    {
      await using other = createJsonlStore({ root, sessionsJson: false });
      await other.append(mainRef, [userDraft("last")]);
    }
    const faults = faultyFiles();
    await using store = createJsonlStore({ root, sessionsJson: false, files: faults.files });
    expect((await store.load(mainRef))?.head.lastSeq).toBe(count + 1);
    // The entries log is read, and of the transcript nothing.
    expect(faults.counts["bytesRead"]).toBeLessThan(4096);
  });

  it("is another file by then, when it was redacted meanwhile", { timeout: 60_000 }, async () => {
    await long();
    await using other = createJsonlStore({ root, sessionsJson: false });
    await other.load(mainRef);
    await using store = createJsonlStore({ root, sessionsJson: false });
    const [keyed] = await Promise.all([
      store.append(mainRef, [userDraft("keyed")], { idempotencyKey: "key" }),
      other.redact(mainRef, ["r9"], { reason: "asked" }),
    ]);
    expect(keyed.head.lastSeq).toBe(count + 1);
    for (const each of [store, other]) {
      const types: string[] = [];
      for await (const { records } of each.read(mainRef)) types.push(...records.map(({ type }) => type));
      expect([types.length, types.indexOf("custom"), types.lastIndexOf("custom")]).toEqual([count + 1, 8, 8]);
    }
  });

  it("knows nothing of a write that was taken back while it was read", { timeout: 60_000 }, async () => {
    await long();
    const path = transcriptOf(root);
    const sizeBytes = statSync(path).size;
    const lineOf = (id: string, seq: number, idem: string): string => {
      const message = { role: "user", content: "keyed" };
      const line = JSON.stringify({ type: "message", id, parentId: "r20000", timestamp, message });
      return `${attachEnvelope(line, { seq, at: 1_767_323_045_006, idem, digest: "0".repeat(64) })}\n`;
    };
    // Two appends in one write, for the second of which there was no room.
    appendFileSync(path, `${lineOf("a", count + 1, "key-a")}${lineOf("b", count + 2, "key-b").slice(0, 90)}`);
    const secondAt = sizeBytes + lineOf("a", count + 1, "key-a").length;
    const files: Files = {
      ...nodeFiles,
      read(handle, into, position) {
        if (position === secondAt && !readFileSync(path).includes("key-c")) {
          truncateSync(path, sizeBytes);
          appendFileSync(path, `${lineOf("c", count + 1, "key-c")}${lineOf("d", count + 2, "key-d")}`);
        }
        return nodeFiles.read(handle, into, position);
      },
    };
    await using store = createJsonlStore({ root, sessionsJson: false, files });
    const keyed = await store.append(mainRef, [userDraft("keyed")], { idempotencyKey: "key-a" });
    expect([keyed.replayed, keyed.head.lastSeq]).toEqual([false, count + 3]);
  });

  it("may hold lines of other programs", { timeout: 60_000 }, async () => {
    await long(5000);
    await using store = createJsonlStore({ root, sessionsJson: false });
    const [state, fork] = await Promise.all([
      store.load(mainRef),
      store.fork?.fork(mainRef, { ...mainRef, key: "agent:main:fork" }, { sessionId: "fork", atSeq: 15_001 }),
    ]);
    expect([state?.head.lastSeq, state?.messageCount]).toEqual([count, count]);
    expect(fork?.head.lastSeq).toBe(15_001);
  });
});
