import { describe, expect, it } from "vitest";
import { cliSettings, nearestKey, parseSettingText, resolveSettings } from "@throughline/config";
import type { ResolveSettingsOptions, Setting, SettingKind } from "@throughline/config";

const base: ResolveSettingsOptions = { userHome: "/home/ada", environment: {}, flags: {}, readFile: () => null };

async function resolve(options: Partial<ResolveSettingsOptions>): Promise<Map<string, Setting>> {
  const settings = await resolveSettings({ ...base, ...options });
  return new Map(settings.map((setting) => [setting.key, setting]));
}

function file(content: unknown): Partial<ResolveSettingsOptions> {
  const text = typeof content === "string" ? content : JSON.stringify(content);
  return { readFile: () => ({ path: "/home/ada/.throughline/config.json", text }) };
}

describe("resolveSettings", () => {
  it("gives every setting its default, and the store's place follows the home", async () => {
    const settings = await resolve({});
    expect([...settings.values()].map(({ key, value, source }) => [key, value, source])).toEqual([
      ["home", "/home/ada/.throughline", "default"],
      ["store", "sqlite:/home/ada/.throughline/sessions.db", "default"],
      ["agent", "main", "default"],
      ["namespace", "", "default"],
      ["logLevel", "info", "default"],
      ["color", "auto", "default"],
      ["input", true, "default"],
      ["timeoutMs", 0, "default"],
      ["model", null, "default"],
      ["modelBaseUrl", null, "default"],
      ["modelApiKey", null, "default"],
      ["windowTokens", 0, "default"],
      ["system", expect.stringContaining("assistant"), "default"],
      ["workspace", null, "default"],
      ["tools", "read", "default"],
      ["newResets", false, "default"],
    ]);
    const moved = await resolve({ environment: { THROUGHLINE_HOME: "/srv/t" } });
    expect(moved.get("store")?.value).toBe("sqlite:/srv/t/sessions.db");
  });

  it("lets a flag win over the environment, that over the file, that over the default", async () => {
    const all = {
      ...file({ agent: "from-file" }),
      environment: { THROUGHLINE_AGENT: "from-environment" },
      flags: { agent: "from-flag" },
    };
    expect((await resolve(all)).get("agent")).toMatchObject({
      value: "from-flag",
      source: "flag",
      sourceName: "--agent",
    });
    expect((await resolve({ ...all, flags: {} })).get("agent")).toMatchObject({
      value: "from-environment",
      source: "environment",
      sourceName: "THROUGHLINE_AGENT",
    });
    expect((await resolve({ ...all, flags: {}, environment: {} })).get("agent")).toMatchObject({
      value: "from-file",
      source: "file",
      default: "main",
    });
  });

  it("names what is secret, and shows none of it in a complaint", async () => {
    const settings = await resolve({ environment: { THROUGHLINE_MODEL_API_KEY: "sk-1" } });
    expect(settings.get("modelApiKey")).toMatchObject({ value: "sk-1", isSecret: true });
    expect(settings.get("model")).toMatchObject({ isSecret: false });
    await expect(resolve(file({ modelApiKey: ["sk-1"] }))).rejects.toMatchObject({
      code: "CONFIG_INVALID",
      message: expect.not.stringContaining("sk-1"),
      details: { value: "***" },
    });
  });

  it("reads switches by their presence and ignores empty variables", async () => {
    const settings = await resolve({
      environment: { NO_COLOR: "1", THROUGHLINE_NO_INPUT: "yes", THROUGHLINE_AGENT: "" },
    });
    expect(settings.get("color")?.value).toBe("never");
    expect(settings.get("input")?.value).toBe(false);
    expect(settings.get("agent")?.source).toBe("default");
  });

  it.each([
    [{ stor: "x" }, /"stor" is not a setting; did you mean store\?$/],
    [{ banana: 1 }, /"banana" is not a setting; the keys are store, agent/],
    [{ timeoutMs: -1 }, /timeoutMs is -1; it must be a whole number from 0 to 2147483647/],
    [{ timeoutMs: 1.5 }, /timeoutMs is 1\.5/],
    [{ logLevel: "loud" }, /logLevel is "loud"; it must be one of debug, info, warn, error/],
    [{ input: "no" }, /input is "no"; it must be true or false/],
    [{ home: "/x" }, /home cannot be set in the file; use --home or THROUGHLINE_HOME/],
    [[], /not a JSON object/],
    ["{", /not JSON/],
    ['{"__proto__": {"agent": "x"}}', /"__proto__" is not a setting/],
  ])("refuses the file %j", async (content, message) => {
    await expect(resolve(file(content))).rejects.toMatchObject({
      code: "CONFIG_INVALID",
      message: expect.stringMatching(message),
      details: expect.objectContaining({ path: "/home/ada/.throughline/config.json" }),
    });
  });

  it("names the flag or the variable whose value is wrong", async () => {
    await expect(resolve({ environment: { THROUGHLINE_TIMEOUT_MS: "soon" } })).rejects.toThrow(
      'THROUGHLINE_TIMEOUT_MS is "soon"; it must be a whole number',
    );
    await expect(resolve({ flags: { logLevel: "loud" } })).rejects.toThrow("--log-level is");
  });

  it("reads a file with a byte order mark", async () => {
    expect((await resolve(file(`\uFEFF{"agent":"work"}`))).get("agent")?.value).toBe("work");
  });
});

describe("the table of settings", () => {
  it("has unique keys, flags and variables", () => {
    const { settings } = cliSettings;
    const names = settings.flatMap(({ key, flag, environment }) => [key, flag, ...environment.map(({ name }) => name)]);
    const given = names.filter((name) => name !== null);
    expect(new Set(given).size).toBe(given.length);
  });

  it("takes the same values as text and in the file", async () => {
    const texts = [
      "",
      "x",
      "main",
      "debug",
      "auto",
      "true",
      "false",
      "0",
      "1",
      "2147483647",
      "2147483648",
      "-1",
      "1.5",
    ];
    const fileValueOf = (kind: SettingKind, text: string): unknown => {
      if (kind.type === "integer") return Number(text === "" ? "NaN" : text);
      return kind.type === "boolean" ? ({ true: true, false: false, "1": true, "0": false }[text] ?? text) : text;
    };
    for (const { key, kind, isFileAllowed } of cliSettings.settings) {
      for (const text of isFileAllowed ? texts : []) {
        const fromFile = await resolve(file({ [key]: fileValueOf(kind, text) })).then(
          (settings) => settings.get(key)?.value,
          () => undefined,
        );
        expect([key, text, parseSettingText(kind, text)]).toEqual([key, text, fromFile]);
      }
    }
  });
});

describe("nearestKey", () => {
  it.each([
    ["log-level", "logLevel"],
    ["Store", "store"],
    ["timeout", "timeoutMs"],
    ["colour", "color"],
    ["zzz", null],
  ])("finds for %s %s", (key, nearest) => {
    expect(nearestKey(key, ["store", "agent", "logLevel", "color", "timeoutMs"])).toBe(nearest);
  });
});
