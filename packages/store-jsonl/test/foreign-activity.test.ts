import { appendFileSync } from "node:fs";
import type { Clock, SessionStore } from "@throughline/core";
import { systemClock } from "@throughline/core/internal";
import { createJsonlStore } from "@throughline/store-jsonl";
import { describe, expect, it } from "vitest";
import { mainRef, storeWithSession, transcriptOf } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();
const startMs = Date.parse("2026-01-02T03:04:05.006Z");
const hourMs = 3_600_000;

function foreignLine(id: string, atMs: number): string {
  const record = {
    type: "label",
    id,
    parentId: null,
    timestamp: new Date(atMs).toISOString(),
    targetId: "x",
    label: "l",
  };
  return `${JSON.stringify(record)}\n`;
}

async function updatedAtMs(store: SessionStore): Promise<number | undefined> {
  const [listed] = (await store.list()).sessions;
  const loaded = await store.load(mainRef);
  expect(listed?.updatedAtMs).toBe(loaded?.updatedAtMs);
  return loaded?.updatedAtMs;
}

describe("what another program writes to a transcript", () => {
  it("is activity of its own time, however long the session is open", async () => {
    const root = newFolder();
    let nowMs = startMs;
    const clock: Clock = { ...systemClock, nowMs: () => nowMs };
    await using store = await storeWithSession(root, { clock });
    appendFileSync(transcriptOf(root), foreignLine("one", nowMs));
    // Somebody who appends holds the image of the file from here on.
    await store.append(mainRef, [{ type: "usage" }]);
    nowMs += hourMs;
    appendFileSync(transcriptOf(root), foreignLine("two", nowMs));
    await store.append(mainRef, [], { entry: { label: "l" } });
    expect(await updatedAtMs(store)).toBe(startMs + hourMs);
    // A clock that is wrong is still not believed.
    appendFileSync(transcriptOf(root), foreignLine("three", nowMs + 10 * hourMs));
    expect(await updatedAtMs(store)).toBe(startMs + hourMs);
  });

  it("is activity that stays behind a later append, also when the clock is set back", async () => {
    const root = newFolder();
    let nowMs = startMs;
    const clock: Clock = { ...systemClock, nowMs: () => nowMs };
    const store = await storeWithSession(root, { clock, index: false });
    const aheadMs = nowMs + 4 * 60_000;
    appendFileSync(transcriptOf(root), foreignLine("one", aheadMs));
    await store.append(mainRef, [{ type: "usage" }]);
    expect(await updatedAtMs(store)).toBe(aheadMs);
    await store.close();
    nowMs -= hourMs;
    await using again = createJsonlStore({ root, clock, index: false });
    expect(await updatedAtMs(again)).toBe(aheadMs);
    await again.append(mainRef, [], { entry: { label: "l" } });
    expect(await updatedAtMs(again)).toBe(aheadMs);
  });

  it("leaves its activity time behind when it is redacted", async () => {
    const root = newFolder();
    let nowMs = startMs;
    const clock: Clock = { ...systemClock, nowMs: () => nowMs };
    await using store = await storeWithSession(root, { clock });
    nowMs += hourMs;
    appendFileSync(transcriptOf(root), foreignLine("one", nowMs - 1000));
    expect(await updatedAtMs(store)).toBe(nowMs - 1000);
    await store.redact(mainRef, ["one"], { reason: "test" });
    expect(await updatedAtMs(store)).toBe(nowMs - 1000);
    await using other = createJsonlStore({ root, clock });
    expect(await updatedAtMs(other)).toBe(nowMs - 1000);
  });
});
