import { spawn } from "node:child_process";
import { closeSync, openSync, readFileSync, rmSync, truncateSync, writeSync } from "node:fs";
import type { SessionEvent, SessionStore } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { describe, expect, it } from "vitest";
import { bundledWorker } from "../../../tools/bundle-worker.ts";
import { findingCodesOf, mainRef, storeWithSession, transcriptOf, userDraft } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();
const child = bundledWorker(new URL("./append-child.ts", import.meta.url));

/** What a watch gives until it has so many records. */
async function watched(store: SessionStore, count: number, afterSeq = 0): Promise<readonly string[]> {
  const controller = new AbortController();
  const seen: string[] = [];
  for await (const { records } of store.watch!.watch(mainRef, { afterSeq, signal: controller.signal })) {
    for (const { seq, record } of records)
      seen.push(`${seq} ${(record["message"] as { content: string }).content.split(" ")[0]}`);
    if (seen.length >= count) controller.abort();
  }
  return seen;
}

describe("watching a session", () => {
  it(
    "misses no record that other processes append, and gives none twice",
    { tags: ["slow"], timeout: 60_000 },
    async () => {
      const root = newFolder();
      const events: SessionEvent[] = [];
      const store = await storeWithSession(root, { sessionsJson: false, onEvent: (event) => void events.push(event) });
      const following = watched(store, 600);
      const writers = ["a", "b"].map((name) =>
        spawn(process.execPath, [child, root, name, "300", "3000"], { stdio: ["ignore", "ignore", "inherit"] }),
      );
      await Promise.all(writers.map((writer) => new Promise((resolve) => writer.on("close", resolve))));
      const seen = await following;
      expect(seen.map((text) => Number(text.split(" ")[0]))).toEqual(
        Array.from({ length: 600 }, (_, index) => index + 1),
      );
      for (const name of ["a", "b"]) {
        const own = seen.filter((text) => text.includes(` ${name}-`)).map((text) => Number(text.split("-")[1]));
        expect(own).toEqual(Array.from({ length: 300 }, (_, index) => index));
      }
      expect(findingCodesOf(events)).toEqual([]);
      await store.close();
    },
  );

  it.for([
    ["new ones", false],
    ["acknowledged ones that were cut off and are put back", true],
  ] as const)(
    "gives no half record and no half batch, however slowly they arrive: %s",
    { tags: ["slow"], timeout: 60_000 },
    async ([, isKnown]) => {
      const root = newFolder();
      const writer = await storeWithSession(root, { sessionsJson: false });
      await writer.append(mainRef, [userDraft("first")]);
      const from = readFileSync(transcriptOf(root)).length;
      await writer.append(mainRef, ["a", "b", "c"].map(userDraft));
      await writer.close();
      const bytes = readFileSync(transcriptOf(root)).subarray(from);
      truncateSync(transcriptOf(root), from);
      if (!isKnown) rmSync(`${root}/agents/main/throughline/index.db`);
      const events: SessionEvent[] = [];
      const store = createJsonlStore({ root, sessionsJson: false, onEvent: (event) => void events.push(event) });
      const controller = new AbortController();
      const pages: number[] = [];
      const following = (async (): Promise<void> => {
        for await (const { records } of store.watch!.watch(mainRef, { afterSeq: 0, signal: controller.signal })) {
          pages.push(records.length);
          if (pages.reduce((sum, count) => sum + count) === 4) controller.abort();
        }
      })();
      const handle = openSync(transcriptOf(root), "a");
      for (let at = 0; at < bytes.length; at += 40) {
        writeSync(handle, bytes.subarray(at, at + 40));
        await new Promise((resolve) => setTimeout(resolve, 30));
      }
      closeSync(handle);
      await following;
      // What is being put back is waited for from the first page on.
      expect(pages).toEqual(isKnown ? [4] : [1, 3]);
      if (!isKnown) expect(findingCodesOf(events)).toEqual([]);
      await store.close();
    },
  );

  it.for([0, 4, 9])(
    "tells of records that another program cut off, and misses none that is appended after that, from seq %d on",
    async (afterSeq) => {
      const root = newFolder();
      const writer = await storeWithSession(root, { sessionsJson: false });
      const sizes: number[] = [];
      for (const text of ["m1", "m2", "m3", "m4", "m5"]) {
        await writer.append(mainRef, [userDraft(text)]);
        sizes.push(readFileSync(transcriptOf(root)).length);
      }
      const events: SessionEvent[] = [];
      const store = createJsonlStore({ root, sessionsJson: false, onEvent: (event) => void events.push(event) });
      const controller = new AbortController();
      const seen: string[] = [];
      const following = (async (): Promise<void> => {
        for await (const { records } of store.watch!.watch(mainRef, { afterSeq, signal: controller.signal }))
          for (const { seq, record } of records) {
            const { content, reason } = (record["message"] ?? record["data"]) as Record<string, unknown>;
            seen.push(`${seq} ${String(content ?? reason)}`);
          }
      })();
      const until = async (text: string): Promise<void> => {
        for (let waited = 0; !seen.includes(text) && waited < 500; waited++)
          await new Promise((resolve) => setTimeout(resolve, 10));
      };
      if (afterSeq < 5) await until("5 m5");
      // Nothing is given before the cut: a busy machine takes a while to begin.
      else await new Promise((resolve) => setTimeout(resolve, 1000));
      // In one turn of the loop: the watch sees the file when it is longer than before.
      truncateSync(transcriptOf(root), sizes[2]);
      await writer.append(mainRef, ["n1", "n2", "n3", "n4"].map(userDraft));
      await until("9 n4");
      await writer.append(mainRef, [userDraft("n5")]);
      await until("10 n5");
      controller.abort();
      await following;
      const before = ["1 m1", "2 m2", "3 m3", "4 m4", "5 m5"].slice(afterSeq);
      expect(seen).toEqual([...before, "4 lost", "5 lost", "6 n1", "7 n2", "8 n3", "9 n4", "10 n5"]);
      const findings = events.flatMap((event) => (event.name === "finding" ? [event.finding] : []));
      expect(findings.filter(({ message }) => message.includes("The watch continues"))).toHaveLength(1);
      // A scan does not report missing records when the file grows during the scan.
      expect(["RECORD_MISSING", "RECORD_MISSING,RECORD_MISSING"]).toContain(findingCodesOf(events).join());
      await writer.close();
      await store.close();
    },
  );

  it("ends when its store is closed", async () => {
    const root = newFolder();
    const store = await storeWithSession(root, { sessionsJson: false });
    const following = watched(store, 1);
    await new Promise((resolve) => setTimeout(resolve, 50));
    await store.close();
    await expect(following).rejects.toMatchObject({ code: "STORE_CLOSED" });
  });
});
