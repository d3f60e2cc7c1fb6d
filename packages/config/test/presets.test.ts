import { describe, expect, it } from "vitest";
import { presets } from "../src/presets.ts";
import { sessionSettings } from "@throughline/config";
import { settingTables } from "../src/setting-tables.ts";
import { resultLimitsFor, safePromptTokens } from "@throughline/guard/internal";
import { settingsForWindow } from "@throughline/compaction/internal";
import { managementBlock, persistenceBlock } from "./documents.ts";
import { resolve, settingsOf, written } from "./resolve.ts";

const definitions = settingTables.flatMap(({ settings }) => settings);

async function preset(name: string): Promise<Readonly<Record<string, unknown>>> {
  return written({ file: { preset: name, tools: "all" } });
}

/** What both say of the same keys; the words of a block are read as they stand. */
async function fromBlock(block: string): Promise<Readonly<Record<string, unknown>>> {
  const values = await written({ file: block, flags: { tools: "all" } });
  const where = /^(store|tools|session\.(store|storePath|inherit\.(enabled|source|format)))$/;
  return Object.fromEntries(Object.entries(values).filter(([key]) => !where.test(key)));
}

describe("presets", () => {
  it("set what the page on session management states [CFG-07, C22, C28b]", async () => {
    expect(await preset("goclaw-doc")).toMatchObject({
      ...(await fromBlock(managementBlock)),
      "session.compaction.keepPercent": 10,
      "session.compaction.emergencyKeepPercent": 20,
      // Ollama, then Anthropic, then nobody else.
      "session.compaction.summaryModels": ["ollama", "anthropic/claude-haiku-4-5"],
      "session.compaction.fallbackToMain": false,
      "session.checkpoint.model": "ollama",
      "session.checkpoint.fallbackToMain": true,
    });
  });

  it("set what the specification of persistence states, word for word [CFG-07, CKP-04b, CKP-05b, C21b, C22b]", async () => {
    const values = await preset("goclaw-spec");
    expect(values).toMatchObject(await fromBlock(persistenceBlock));
    expect(values).toMatchObject({
      "session.checkpoint.turnThreshold": 15,
      "session.checkpoint.minTokensForGen": 10_000,
      "session.compaction.reserveTokens": 4000,
      "session.inherit.readKey": "agent:main:main",
      "session.inherit.writeKey": "goclaw:main:main",
    });
  });

  it("set what the lesson states: 8096 for the answer, a limit of 180,000, half of the messages [CFG-07, C38c, C39b]", async () => {
    const config = await resolve({ file: { preset: "claw0", tools: "all" } });
    const { maxOutputTokens, compaction, checkpoint, memoryFlush, results, summaryStyle } = sessionSettings(config);
    expect(config.settings.find(({ key }) => key === "windowTokens")?.value).toBe(180_000);
    expect(maxOutputTokens).toBe(8096);
    expect(safePromptTokens(200_000, maxOutputTokens)).toBe(180_000);
    expect(compaction.inAdvance).toBe(false);
    expect(resultLimitsFor(results, 180_000)).toMatchObject({ eachCharacters: 216_000, keep: "head" });
    expect(summaryStyle).toBe("concise");
    expect(settingsForWindow(compaction, 180_000)).toMatchObject({
      keepPercent: 50,
      minMessages: 4,
      maxSummaryTokens: 2048,
      repairs: [],
    });
    expect([checkpoint.enabled, memoryFlush?.enabled]).toEqual([false, false]);
    expect((await settingsOf({})).get("maxOutputTokens")?.value).toBe(8192);
  });

  it("set what OpenClaw does", async () => {
    const settings = sessionSettings(await resolve({ file: { preset: "openclaw", tools: "all" } }));
    expect(settings).toMatchObject({
      cacheTtlMs: 45_000,
      compaction: { reserveTokens: 20_000, keepRecentTokens: 20_000, keepPercent: 0, minMessages: 0 },
      checkpoint: { enabled: false },
      summaryModels: [],
      asksMainModel: true,
    });
    // 4,000 tokens before the compaction at 180,000.
    expect(settings.memoryFlush?.thresholds?.map(({ percent }) => percent * 2000)).toEqual([176_000]);
    const policy = { session: { sendPolicy: { rules: [] } } };
    const { sendPolicy } = sessionSettings(await resolve({ file: { preset: "openclaw", ...policy } }));
    expect(sendPolicy?.mode).toBe("deny-overrides");
  });

  it("default to what is safest, by the rows that chose [C21, C22, C23, C28]", async () => {
    const settings = await settingsOf({});
    const values = Object.fromEntries([...settings].map(([key, { value }]) => [key, value]));
    expect(values).toMatchObject({
      "session.checkpoint.turnThreshold": 10,
      "session.checkpoint.minTokensForGen": 5000,
      "session.compaction.reserveTokens": 30_000,
      "session.compaction.reserveFloorTokens": 20_000,
      "session.compaction.summaryModels": null,
      "session.compaction.fallbackToMain": true,
    });
    expect(sessionSettings(await resolve({})).summaryModels).toEqual([]);
  });

  it.each(Object.keys(presets))("%s has only settings there are, and values they take", async (name) => {
    const values = presets[name] ?? {};
    expect(Object.keys(values).filter((key) => !definitions.some((definition) => definition.key === key))).toEqual([]);
    // As a file: what a preset says is checked as if somebody had written it.
    const file = { tools: "all", ...nested(values) };
    await expect(resolve({ file })).resolves.toMatchObject({ settings: expect.any(Array) as unknown[] });
    for (const key of Object.keys(values)) expect(key).not.toMatch(/^(store|home)$|^session\.store/);
  });

  it.each(Object.keys(presets))("%s gives way to what is written by itself", async (name) => {
    const settings = await settingsOf({ file: { preset: name, session: { compaction: { keepPercent: 33 } } } });
    expect(settings.get("session.compaction.keepPercent")).toMatchObject({ value: 33, source: "file" });
  });

  it("are chosen by a variable as well", async () => {
    const settings = await settingsOf({ environment: { THROUGHLINE_PRESET: "claw0" } });
    expect(settings.get("maxOutputTokens")).toMatchObject({ value: 8096, source: "preset", sourceName: "claw0" });
  });
});

function nested(values: Readonly<Record<string, unknown>>): object {
  const root: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(values)) {
    const steps = key.split(".");
    const last = steps.pop() ?? "";
    let at = root;
    for (const step of steps) at = (at[step] ??= {}) as Record<string, unknown>;
    at[last] = value;
  }
  return root;
}
