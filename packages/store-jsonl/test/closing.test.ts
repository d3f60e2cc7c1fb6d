import { appendFileSync, existsSync, readdirSync, readlinkSync } from "node:fs";
import { platform } from "node:process";
import { hasErrorCode, type SessionStore } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { describe, expect, it } from "vitest";
import { mainRef, storeWithSession, transcriptOf, userDraft } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();

/** What this process has open below a folder, locks and the index too. */
function openBelow(root: string): readonly string[] {
  const open = readdirSync("/proc/self/fd").map((name) => {
    try {
      return readlinkSync(`/proc/self/fd/${name}`);
    } catch {
      return "";
    }
  });
  return open.filter((path) => path.startsWith(root));
}

/** One session of over four megabytes, with a line in it that is to be repaired. */
async function filledFolder(): Promise<string> {
  const root = newFolder();
  const store = await storeWithSession(root);
  await store.append(
    mainRef,
    Array.from({ length: 45 }, () => userDraft("x".repeat(100_000))),
  );
  await store.close();
  appendFileSync(transcriptOf(root), "no record\n");
  return root;
}

async function drain(steps: AsyncIterable<unknown> | undefined): Promise<void> {
  if (steps === undefined) throw new Error("the store has no such facet");
  for await (const _step of steps);
}

const operations: Readonly<Record<string, (store: SessionStore) => Promise<unknown>>> = {
  read: (store) => drain(store.read(mainRef)),
  watch: (store) => drain(store.watch?.watch(mainRef, { afterSeq: 0, signal: new AbortController().signal })),
  verify: (store) => drain(store.maintenance?.verify({ full: true })),
  repair: (store) => drain(store.maintenance?.repair()),
};

describe.skipIf(platform !== "linux")("a store that is closed while it is read", () => {
  it.each(Object.keys(operations))("opens nothing again behind its end: %s", async (name) => {
    const root = await filledFolder();
    for (const turns of [0, 2]) {
      const store = createJsonlStore({ root });
      const ended = operations[name]?.(store).then(
        () => "done",
        (error: unknown) => (hasErrorCode(error, "STORE_CLOSED") ? "closed" : String(error)),
      );
      for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => void setImmediate(resolve));
      await store.close();
      expect(["closed", "done"]).toContain(await ended);
      expect(openBelow(root)).toEqual([]);
    }
  });

  it("writes no repaired copy after it was closed", async () => {
    const root = await filledFolder();
    const store = createJsonlStore({ root });
    const ended = operations["repair"]?.(store);
    await Promise.all([store.close(), expect(ended).rejects.toMatchObject({ code: "STORE_CLOSED" })]);
    expect(readdirSync(`${root}/agents/main/throughline/repaired`)).toEqual([]);
    expect(existsSync(transcriptOf(root))).toBe(true);
  });

  it("gives none of the findings that were left", async () => {
    const root = await filledFolder();
    appendFileSync(transcriptOf(root), "no record either\n");
    const store = createJsonlStore({ root });
    const findings = store.maintenance?.verify()[Symbol.asyncIterator]();
    expect(await findings?.next()).toMatchObject({ done: false });
    await store.close();
    await expect(findings?.next()).rejects.toMatchObject({ code: "STORE_CLOSED" });
    expect(openBelow(root)).toEqual([]);
  });
});
