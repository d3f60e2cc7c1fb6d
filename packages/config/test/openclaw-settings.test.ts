import { describe, expect, it } from "vitest";
import { sessionSettings } from "@throughline/config";
import { filePath, resolve } from "./resolve.ts";

describe("OpenClaw's settings of sessions", () => {
  it("count where they have a meaning, and have no effect elsewhere, with notes", async () => {
    const config = await resolve({
      file: {
        session: {
          scope: "per-sender",
          mainKey: "main",
          idleMinutes: 30,
          resetByType: { thread: { mode: "daily", atHour: 5 }, dm: { idleMinutes: 240 }, group: {} },
        },
      },
    });
    const idle = (idleMinutes: number) => ({ mode: "idle", idleMinutes, atHour: 4 });
    expect(sessionSettings(config).reset).toMatchObject({
      rule: idle(30),
      byType: { thread: { mode: "daily", idleMinutes: 30, atHour: 5 }, direct: idle(240), group: idle(30) },
    });
    expect(config.notes.map(({ kind, key, line }) => [kind, key, line])).toEqual([
      ["ignored", "session.scope", 3],
      ["ignored", "session.mainKey", 4],
      ["alias", "session.idleMinutes", 5],
    ]);
    // A mode of the file holds, wherever it stands.
    const daily = await resolve({ file: { session: { idleMinutes: 30, reset: { mode: "daily" } } } });
    expect(sessionSettings(daily).reset.rule).toEqual({ mode: "daily", idleMinutes: 30, atHour: 4 });
  });

  it("that no command knows are each named in a note, with what there is instead, and refuse nothing", async () => {
    const session = {
      dmScope: "per-channel-peer",
      identityLinks: { ann: ["telegram:1", "discord:2"] },
      resetTriggers: ["/new", "/reset"],
      maintenance: { mode: "enforce", pruneAfter: "30d", maxEntries: 500 },
      reset: { mode: "daily" },
    };
    const config = await resolve({ file: { session } });
    expect(sessionSettings(config).reset.rule).toMatchObject({ mode: "daily" });
    expect(config.notes.map(({ kind, key, line }) => [kind, key, line])).toEqual([
      ["ignored", "session.dmScope", 3],
      ["ignored", "session.identityLinks", 4],
      ["ignored", "session.resetTriggers", 10],
      ["ignored", "session.maintenance", 14],
    ]);
    expect(config.notes[0]?.message).toBe(
      "session.dmScope has no effect: a program that receives messages names the key of each; `peerSessionKey` of core takes dmScope.",
    );
  });

  it("include the time of the cache, which has no effect in a file and one in a variable [C44]", async () => {
    const { settings, notes } = await resolve({ file: { session: { cacheTtlMs: 500 } } });
    expect(settings.find(({ key }) => key === "session.cacheTtlMs")?.value).toBe(500);
    expect(notes).toMatchObject([{ kind: "ignored", key: "session.cacheTtlMs", path: filePath, line: 3 }]);
    expect(notes[0]?.message).toMatch(
      /^session\.cacheTtlMs has no effect in a file: .*THROUGHLINE_SESSION_CACHE_TTL_MS/,
    );
    const environment = { OPENCLAW_SESSION_CACHE_TTL_MS: "500" };
    expect((await resolve({ environment })).notes).toEqual([]);
    expect((await resolve({ file: { preset: "openclaw", tools: "all" } })).notes).toEqual([]);
  });
});
