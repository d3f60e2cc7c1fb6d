import { describe, expect, it } from "vitest";
import { sessionSettings } from "@throughline/config";
import { windowNotes } from "../src/window-notes.ts";
import { filePath, resolve, settingsOf, type Written } from "./resolve.ts";

/** What is said of a configuration, in short. */
async function notesOf(session: object, others: object = {}, from: Written = {}): Promise<readonly unknown[]> {
  const { notes } = await resolve({ file: { ...others, session }, ...from });
  return notes.map(({ kind, key, used }) => [kind, key, used]);
}

const tools = { tools: "all" };

describe("combinations that could have no effect", () => {
  it.each([
    [
      { checkpoint: { fallbackToMain: false } },
      /:4: session\.checkpoint\.fallbackToMain is false and no model is named/,
    ],
    [
      { compaction: { summaryModels: ["gpt-5"] } },
      /session\.compaction\.summaryModels has "gpt-5"; it must be provider\/name/,
    ],
    [{ checkpoint: { model: "haiku" } }, /:4: session\.checkpoint\.model has "haiku"; it must be provider\/name/],
    [
      {
        compaction: { summaryModels: ["openai/gpt-5"], ollama: { url: "http://x" } },
        checkpoint: { model: "openai/gpt-5" },
      },
      /:8: session\.compaction\.ollama\.url has no effect: nothing asks ollama/,
    ],
    [
      { memoryFlush: { showInSystemPrompt: false, thresholds: [{ percent: 50, prompt: "x", injectAs: "system" }] } },
      /:4: session\.memoryFlush\.showInSystemPrompt is false, so nothing would be asked/,
    ],
    [
      {
        memoryFlush: {
          thresholds: [
            { percent: 50, prompt: "x" },
            { percent: 50, prompt: "y" },
          ],
        },
      },
      /session\.memoryFlush\.thresholds\.1\.percent is 50; it must be each percent once/,
    ],
    [{ memoryFlush: { thresholds: [] } }, /it must be a list of 1 to 50/],
    [
      { memoryFlush: { timeZone: "Berlin" } },
      /:4: session\.memoryFlush\.timeZone is "Berlin"; it must be an IANA name/,
    ],
    [
      { compaction: { keepPercent: 30, emergencyKeepPercent: 20 } },
      /:5: session\.compaction\.emergencyKeepPercent is 20: .* it must be at least 30/,
    ],
    [
      { resetByType: { group: { mode: "never", idleMinutes: 5 } } },
      /:3: session\.resetByType\.group\.idleMinutes is 5 and session\.resetByType\.group\.mode is "never"/,
    ],
    [
      { resetByChannel: { slack: { mode: "idle", atHour: 5 } } },
      /session\.resetByChannel\.slack\.atHour is 5 .* session\.resetByChannel\.slack\.mode "daily"/,
    ],
    [{ resetByType: { dm: {}, direct: {} } }, /session\.resetByType has direct and dm, which are the same/],
    [{ resetByType: { room: {} } }, /session\.resetByType.*room/],
    [{ resetByType: { group: { mode: "idle", idleMinutes: 0 } } }, /:6: session\.resetByType\.group\.idleMinutes is 0/],
    [
      { idleMinutes: 30, reset: { mode: "never" } },
      /:3: session\.reset\.idleMinutes is 30 .*session\.reset\.mode is "never"/,
    ],
  ])("refuses %j", async (session, message) => {
    await expect(resolve({ file: { session } })).rejects.toMatchObject({ code: "CONFIG_INVALID" });
    await expect(resolve({ file: { session } })).rejects.toThrow(message);
    await expect(resolve({ file: { session } })).rejects.toThrow(filePath);
  });

  it.each([
    [
      { checkpoint: { enabled: false }, compaction: { preferCheckpoint: true } },
      [["repaired", "session.compaction.preferCheckpoint", false]],
    ],
    [{ checkpoint: { enabled: false } }, []],
    [
      { compaction: { fallbackToMain: false, summaryModels: [], retryIntervalSeconds: 30 } },
      [["repaired", "session.compaction.retryIntervalSeconds", 0]],
    ],
    [
      { compaction: { retryFirstDelayMs: 9000, retryMaxDelayMs: 500 } },
      [["repaired", "session.compaction.retryFirstDelayMs", 500]],
    ],
    [{ compaction: { keepPercent: 40 } }, []],
    [
      { checkpoint: { tokenThresholdPercents: [75, 25, 25] } },
      [["repaired", "session.checkpoint.tokenThresholdPercents", [25, 75]]],
    ],
    [{ memoryFlush: { enabled: true } }, [["repaired", "tools", "memory"]]],
    [
      { checkpoint: { model: "anthropic/claude-3-haiku" } },
      [["repaired", "session.checkpoint.model", "anthropic/claude-haiku-4-5"]],
    ],
    [
      { compaction: { reserveTokens: 4000, reserveFloorTokens: 4000 } },
      [["repaired", "session.compaction.reserveTokens", 4000]],
    ],
    [{ compaction: { reserveTokens: 4000 } }, [["repaired", "session.compaction.reserveTokens", 20_000]]],
  ])("mends %j, and says so where somebody wrote it", async (session, notes) => {
    expect(await notesOf(session)).toEqual(notes);
  });

  it("keeps what was written beside what is used", async () => {
    const file = {
      session: { checkpoint: { enabled: false }, compaction: { preferCheckpoint: true, keepPercent: 40 } },
    };
    const settings = await settingsOf({ file });
    expect(settings.get("session.compaction.preferCheckpoint")).toMatchObject({ value: false, given: true });
    expect(sessionSettings(await resolve({ file })).compaction).toMatchObject({
      preferCheckpoint: false,
      // Nobody wrote it: less would stay where the summary is poorer.
      emergencyKeepPercent: 40,
    });
  });
});

describe("settings and the window", () => {
  it("says what the window leaves of the reserve: the floor, and a quarter [C23, CFG-08]", async () => {
    const reserve = (windowTokens: number, reserveTokens: number) =>
      notesOf({ compaction: { reserveTokens } }, { windowTokens });
    expect(await reserve(200_000, 30_000)).toEqual([]);
    expect(await reserve(200_000, 4000)).toEqual([["repaired", "session.compaction.reserveTokens", 20_000]]);
    expect(await reserve(16_000, 30_000)).toEqual([["repaired", "session.compaction.reserveTokens", 4000]]);
    // Larger than the window itself.
    expect(await reserve(32_000, 100_000)).toEqual([["repaired", "session.compaction.reserveTokens", 8000]]);
  });

  it("says which flush thresholds compaction would come before, and moves them in order [C24, CFG-08]", async () => {
    const thresholds = [90, 50, 88].map((percent) => ({ percent, prompt: `{percent} ${percent}`, injectAs: "user" }));
    const { notes } = await resolve({
      file: { ...tools, windowTokens: 200_000, session: { memoryFlush: { thresholds } } },
    });
    expect(notes.map(({ key, message }) => [key, message.replace(/^.*?(?=has|\[\{)/, "").slice(0, 60)])).toEqual([
      ["session.memoryFlush.thresholds", expect.stringContaining("[{") as string],
      ["session.memoryFlush.thresholds", "has one at 90 %; it fires at 83 %: not below the compaction "],
      ["session.memoryFlush.thresholds", "has one at 88 %; it fires at 81 %: too close to the one abov"],
    ]);
  });

  it("says which checkpoint thresholds cannot be reached, and refuses a floor no conversation gets to", async () => {
    const at = (checkpoint: object) => notesOf({ checkpoint }, { windowTokens: 100_000 });
    expect(await at({ tokenThresholdPercents: [50, 80] })).toEqual([
      ["repaired", "session.checkpoint.tokenThresholdPercents", [50]],
    ]);
    await expect(at({ minTokensForGen: 80_000 })).rejects.toThrow(
      /session\.checkpoint\.minTokensForGen is 80000; it must be less than 75000/,
    );
    expect(await at({ enabled: false, minTokensForGen: 80_000 })).toEqual([]);
  });

  it("refuses an answer as large as the window, and caps what is kept", async () => {
    await expect(resolve({ file: { windowTokens: 8000, maxOutputTokens: 8000 } })).rejects.toThrow(
      `${filePath}:3: maxOutputTokens is 8000; it must be less than the window of 8000 tokens`,
    );
    const compaction = { keepRecentTokens: 20_000, maxSummaryTokens: 4000, maxDetailTokens: 1000 };
    expect(await notesOf({ compaction }, { windowTokens: 16_000 })).toEqual([
      ["repaired", "session.compaction.keepRecentTokens", 4000],
      ["repaired", "session.compaction.maxSummaryTokens", 1600],
      ["repaired", "session.compaction.maxDetailTokens", 800],
    ]);
  });

  it("says the same when the window is learned later", async () => {
    const config = await resolve({ file: { session: { compaction: { reserveTokens: 30_000 } } } });
    expect(config.notes).toEqual([]);
    expect(await windowNotes(config, 32_000)).toMatchObject([
      { key: "session.compaction.reserveTokens", used: 8000, line: 4 },
    ]);
    expect(await windowNotes(config, null)).toEqual([]);
  });

  it("says nothing of what nobody wrote", async () => {
    for (const windowTokens of [4000, 32_000, 200_000, 1_000_000]) {
      expect(await notesOf({}, { windowTokens })).toEqual([]);
    }
  });
});
