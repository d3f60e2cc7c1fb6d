import { describe, expect, it } from "vitest";
import { sessionSettings } from "@throughline/config";
import { filePath, resolve } from "./resolve.ts";

describe("OpenClaw's settings of sessions", () => {
  it("count where they have a meaning, and have no effect elsewhere, with notes [CFG-09]", async () => {
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
