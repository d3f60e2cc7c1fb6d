import { writeFileSync } from "node:fs";
import { createJsonlStore } from "@throughline/store-jsonl";
import { attachEnvelope } from "@throughline/openclaw-format/internal";
import { describe, expect, it } from "vitest";
import { faultyFiles } from "./faulty-files.ts";
import { mainRef, storeWithSession, transcriptOf, userDraft } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();

/** A transcript of so many records, as the store would have written it. */
function longTranscript(count: number): string {
  const lines = [
    attachEnvelope(
      JSON.stringify({
        type: "session",
        version: 3,
        id: "s1",
        timestamp: "2026-01-02T03:04:05.006Z",
        cwd: "",
        key: mainRef.key,
      }),
      { seq: 0 },
    ),
  ];
  for (let seq = 1; seq <= count; seq++) {
    const parentId = seq === 1 ? null : `r${seq - 1}`;
    const record = {
      type: "message",
      id: `r${seq}`,
      parentId,
      timestamp: "2026-01-02T03:04:05.006Z",
      message: { role: "user", content: "x".repeat(200) },
    };
    lines.push(attachEnvelope(JSON.stringify(record), { seq, at: 1_767_323_045_006 }));
  }
  return `${lines.join("\n")}\n`;
}

/** What one durable turn of four records with an entry patch asks of the file system, in a session of so many records. */
async function costOfTurn(count: number): Promise<Readonly<Record<string, number>>> {
  const root = newFolder();
  await (await storeWithSession(root, { sessionsJson: false })).close();
  writeFileSync(transcriptOf(root), longTranscript(count));
  const faults = faultyFiles();
  const store = createJsonlStore({ root, sessionsJson: false, files: faults.files });
  const turn = () => store.append(mainRef, ["a", "b", "c", "d"].map(userDraft), { entry: { totalTokens: 5 } });
  expect((await turn()).head.lastSeq).toBe(count + 4);
  faults.reset();
  await turn();
  const counts = { ...faults.counts };
  await store.close();
  return counts;
}

describe("the cost of an append", () => {
  it("is the same at 10, 1,000 and 100,000 records: one write and one flush", { timeout: 60_000 }, async () => {
    const [small = {}, middle, large] = [await costOfTurn(10), await costOfTurn(1000), await costOfTurn(100_000)];
    const { bytesWritten: smallBytes = 0, ...smallCalls } = small;
    for (const { bytesWritten = 0, ...calls } of [middle, large]) {
      expect(calls).toEqual(smallCalls);
      // The seq has more digits in a longer session, and nothing else is longer.
      expect(bytesWritten - smallBytes).toBeLessThan(64);
    }
    // One look at the entries log, one at the lock file, one at the transcript, one at where the open transcript lies,
    // one behind the write. Nothing is read while nobody else wrote.
    expect(smallCalls).toEqual({ facts: 4, factsOf: 1, whereIs: 1, write: 1, flush: 1 });
  });
});

describe("the cost of an append with an idempotency key", () => {
  it("is a look at the window for a key that is new, and at the whole file for any other", async () => {
    const root = newFolder();
    await (await storeWithSession(root, { sessionsJson: false })).close();
    writeFileSync(transcriptOf(root), longTranscript(20_000));
    const sizeBytes = longTranscript(20_000).length;
    {
      await using store = createJsonlStore({ root, sessionsJson: false });
      await store.append(mainRef, [userDraft("window")], { windowFromSeq: 20_001 });
    }
    const opened = async (): Promise<readonly [number, boolean]> => {
      const faults = faultyFiles();
      await using store = createJsonlStore({ root, sessionsJson: false, files: faults.files });
      await store.load(mainRef);
      const { replayed } = await store.append(mainRef, [userDraft("keyed")], { idempotencyKey: "k" });
      const again = await store.append(mainRef, [userDraft("keyed")], { idempotencyKey: "k" });
      expect(again.replayed).toBe(true);
      return [faults.counts["bytesRead"] ?? 0, replayed];
    };
    // The repeat looks for the key in all of it, the first attempt did not.
    const faults = faultyFiles();
    await using store = createJsonlStore({ root, sessionsJson: false, files: faults.files });
    await store.load(mainRef);
    const first = { idempotencyKey: "new", isNewKey: true };
    expect((await store.append(mainRef, [userDraft("new")], first)).replayed).toBe(false);
    expect(faults.counts["bytesRead"]).toBeLessThan(sizeBytes / 20);
    expect((await store.append(mainRef, [userDraft("new")], { idempotencyKey: "new" })).replayed).toBe(true);
    await store.close();
    const [bytesRead, replayed] = await opened();
    expect([bytesRead > sizeBytes, replayed]).toEqual([true, false]);
    expect((await opened())[1]).toBe(true);
  });
});

describe("the cost of a redaction", () => {
  it("is a read and a write for each part of the file, and none for each record", { timeout: 60_000 }, async () => {
    const root = newFolder();
    await (await storeWithSession(root, { sessionsJson: false })).close();
    writeFileSync(transcriptOf(root), longTranscript(20_000));
    const faults = faultyFiles();
    await using store = createJsonlStore({ root, sessionsJson: false, files: faults.files });
    await store.load(mainRef);
    faults.reset();
    await store.redact(mainRef, ["r7", "r19999"], { reason: "asked" });
    const { read = 0, write = 0, bytesRead = 0 } = faults.counts;
    const sizeBytes = longTranscript(20_000).length;
    expect(bytesRead).toBeLessThan(2.3 * sizeBytes);
    expect(read).toBeLessThan((2.3 * sizeBytes) / 100_000);
    expect(write).toBeLessThan(sizeBytes / 500_000 + 5);
    const types: string[] = [];
    for await (const { records } of store.read(mainRef)) types.push(...records.map(({ type }) => type));
    expect(types.flatMap((type, index) => (type === "custom" ? [index + 1] : []))).toEqual([7, 19_999]);
    expect(types.length).toBe(20_000);
  });
});
