import { afterEach, describe, expect, it, vi } from "vitest";
import { createSlices } from "../src/slices.ts";
import { holdLocks } from "./lock-holder.ts";
import { mainRef, storeWithSession, userDraft } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();
const hourMs = 3_600_000;

afterEach(() => void vi.restoreAllMocks());

/** As when the computer's clock is corrected. */
function setClock(byMs: number): void {
  const nowMs = Date.now;
  vi.spyOn(Date, "now").mockImplementation(() => nowMs() + byMs);
}

describe("a clock that is set while somebody waits", () => {
  it.for([
    ["an hour back", -hourMs],
    ["an hour forward", hourMs],
  ] as const)("%s does not move the deadline of a lock", { tags: ["slow"] }, async ([, byMs]) => {
    const root = newFolder();
    const store = await storeWithSession(root, { lockTimeoutMs: 400, sessionsJson: false });
    const holder = await holdLocks(root);
    try {
      const startMs = performance.now();
      const appended = store.append(mainRef, [userDraft("refused")]);
      setTimeout(() => setClock(byMs), 100);
      const error: unknown = await appended.then(
        () => null,
        (reason: unknown) => reason,
      );
      expect(error).toMatchObject({ code: "STORE_LOCKED", outcome: "not-applied" });
      const { waitedMs } = (error as { details: { waitedMs: number } }).details;
      expect(waitedMs).toBeGreaterThanOrEqual(400);
      expect(waitedMs).toBeLessThanOrEqual(performance.now() - startMs + 1);
    } finally {
      holder.kill("SIGKILL");
    }
    await store.close();
  });

  it("back leaves long work in its slices", () => {
    const slices = createSlices();
    setClock(-hourMs);
    const startMs = performance.now();
    let pauses = 0;
    while (pauses === 0 && performance.now() - startMs < 1000) if (slices.next() !== undefined) pauses++;
    expect(pauses).toBe(1);
  });
});
