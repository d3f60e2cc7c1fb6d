import { appendFileSync, readFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { attachEnvelope } from "@throughline/openclaw-format/internal";
import { createJsonlStore } from "@throughline/store-jsonl";
import { describe, expect, it } from "vitest";
import { isLongRun } from "../../../tools/test-size.ts";
import { faultyFiles } from "./faulty-files.ts";
import { mainRef, storeWithSession, textsOf, transcriptOf, userDraft } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();
const gibibyte = 2 ** 30;

describe("a transcript of more than 2 GB", () => {
  it("is resumed, read and written at its end, whatever lies before the window", async () => {
    const root = newFolder();
    const writer = await storeWithSession(root, { sessionsJson: false });
    await writer.append(mainRef, [userDraft("before")]);
    await writer.append(mainRef, [userDraft("one"), userDraft("two")], { windowFromSeq: 2 });
    await writer.append(mainRef, [userDraft("three")]);
    await writer.close();
    const path = transcriptOf(root);
    const lines = readFileSync(path, "utf8").trimEnd().split("\n");
    // What lies before is a hole: whoever read it would need seconds.
    writeFileSync(path, `${lines.slice(0, 2).join("\n")}\n`);
    truncateSync(path, 2.5 * gibibyte);
    appendFileSync(path, `\n${lines.slice(2).join("\n")}\n`);
    const faults = faultyFiles();
    const store = createJsonlStore({ root, files: faults.files, sessionsJson: false, index: false });
    expect((await store.load(mainRef))?.head).toMatchObject({ lastSeq: 4, windowSeq: 2 });
    const texts: unknown[] = [];
    for await (const { records } of store.read(mainRef, { afterSeq: 1 }))
      texts.push(...records.map(({ record }) => (record["message"] as { content: string }).content));
    expect(texts).toEqual(["one", "two", "three"]);
    await store.append(mainRef, [userDraft("four")]);
    expect(statSync(path).size).toBeGreaterThan(2.5 * gibibyte);
    expect(faults.counts["bytesRead"]).toBeLessThan(4 * 2 ** 20);
    await store.close();
    const again = createJsonlStore({ root, sessionsJson: false });
    expect((await again.load(mainRef))?.head.lastSeq).toBe(5);
    await again.close();
  });

  it.skipIf(!isLongRun)(
    isLongRun ? "is read as a whole" : "is read as a whole: only in the long tier, it takes a minute and 2.2 GB",
    { timeout: 600_000 },
    async () => {
      const root = newFolder();
      await (await storeWithSession(root, { sessionsJson: false })).close();
      const path = transcriptOf(root);
      const content = "x".repeat(1_000_000);
      const count = 2200;
      for (let seq = 1; seq <= count; seq++) {
        const parentId = seq === 1 ? null : `r${seq - 1}`;
        const record = { type: "message", id: `r${seq}`, parentId, timestamp: "2026-01-02T03:04:05.006Z" };
        const line = JSON.stringify({ ...record, message: { role: "user", content: `${seq} ${content}` } });
        appendFileSync(path, `${attachEnvelope(line, { seq, at: 1_767_323_045_006 })}\n`);
      }
      const store = createJsonlStore({ root, sessionsJson: false });
      // An id of the caller's: all of them must be known.
      const draft = { ...userDraft("last"), id: "r7" };
      await expect(store.append(mainRef, [draft])).rejects.toMatchObject({ code: "RECORD_ID_TAKEN" });
      expect((await store.append(mainRef, [{ ...draft, id: "last" }])).records[0]?.seq).toBe(count + 1);
      const texts = await textsOf(store);
      expect(texts.length).toBe(count + 1);
      expect(texts.every((text, index) => index === count || text.startsWith(`${index + 1} x`))).toBe(true);
      await store.close();
    },
  );
});
