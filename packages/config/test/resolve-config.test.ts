import { describe, expect, it } from "vitest";
import { explainSettings } from "@throughline/config";
import { parseSettingText } from "../src/setting-definition.ts";
import { settingAliases } from "../src/setting-aliases.ts";
import { settingTables } from "../src/setting-tables.ts";
import type { SettingKind, SettingValue } from "@throughline/core/internal";
import { filePath, resolve, settingsOf } from "./resolve.ts";

const definitions = settingTables.flatMap(({ settings }) => settings);

describe("resolveConfig", () => {
  it("gives every setting its default, and the store's place follows the home [C44]", async () => {
    const settings = await settingsOf({});
    expect(settings.get("home")).toMatchObject({ value: "/home/ada/.throughline", source: "default" });
    expect(settings.get("store")).toMatchObject({
      value: "sqlite:/home/ada/.throughline/sessions.db",
      source: "default",
    });
    for (const { key, default: fallback } of definitions) {
      if (["home", "store", "session.inherit.source"].includes(key)) continue;
      expect([key, settings.get(key)?.value, settings.get(key)?.source]).toEqual([key, fallback, "default"]);
    }
    const moved = await settingsOf({ environment: { THROUGHLINE_HOME: "/srv/t" } });
    expect(moved.get("store")?.value).toBe("sqlite:/srv/t/sessions.db");
  });

  it("lets a flag win over the environment, that over the file, that over the preset, that over the default", async () => {
    const all = {
      file: { preset: "claw0", maxOutputTokens: 1000 },
      environment: { THROUGHLINE_MAX_OUTPUT_TOKENS: "2000" },
      flags: { maxOutputTokens: 3000 },
    };
    const { flags, environment, file } = all;
    const seen = await Promise.all(
      [all, { environment, file }, { file }, { file: { preset: "claw0" } }, {}].map(async (from) => {
        const { value, source, sourceName, line } = (await settingsOf(from)).get("maxOutputTokens") ?? {};
        return [value, source, sourceName, line];
      }),
    );
    expect(flags.maxOutputTokens).toBe(3000);
    expect(seen).toEqual([
      [3000, "flag", null, null],
      [2000, "environment", "THROUGHLINE_MAX_OUTPUT_TOKENS", null],
      [1000, "file", filePath, 3],
      [8096, "preset", "claw0", null],
      [8192, "default", null, null],
    ]);
  });

  it("says of each value where it came from, and hides what is secret", async () => {
    const file = { preset: "goclaw-doc", modelApiKey: "sk-1", session: { checkpoint: { turnThreshold: 12 } } };
    const explained = explainSettings(
      await resolve({ file, environment: { THROUGHLINE_AGENT: "work" }, flags: { store: "memory:" } }),
    );
    const lines = new Map(explained.map(({ key, value, from }) => [key, [value, from]]));
    expect(lines.get("session.checkpoint.turnThreshold")).toEqual([12, `file ${filePath}:6`]);
    expect(lines.get("session.checkpoint.model")).toEqual(["ollama", "preset goclaw-doc"]);
    expect(lines.get("agent")).toEqual(["work", "environment THROUGHLINE_AGENT"]);
    expect(lines.get("store")).toEqual(["memory:", "flag --store"]);
    expect(lines.get("modelApiKey")).toEqual(["***", `file ${filePath}:3`]);
    expect(lines.get("session.turn.maxSteps")).toEqual([50, "default"]);
  });

  it("shows nothing of a secret in a complaint", async () => {
    const said = { message: expect.not.stringContaining("sk-1") as string, details: { value: "***" } };
    await expect(resolve({ file: { modelApiKey: ["sk-1"] } })).rejects.toMatchObject({
      code: "CONFIG_INVALID",
      ...said,
    });
    await expect(resolve({ file: '{ "modelApiKey": "sk-1" "x": 1 }' })).rejects.toMatchObject({
      message: said.message,
    });
    await expect(resolve({ file: '{ "modelApiKey": sk-1 }' })).rejects.toMatchObject({ message: said.message });
  });

  it("reads switches by their presence and ignores empty variables", async () => {
    const settings = await settingsOf({
      environment: { NO_COLOR: "1", THROUGHLINE_NO_INPUT: "yes", THROUGHLINE_AGENT: "" },
    });
    expect(settings.get("color")?.value).toBe("never");
    expect(settings.get("input")?.value).toBe(false);
    expect(settings.get("agent")?.source).toBe("default");
  });

  it("reads every setting of sessions from a variable of our prefix, and the cache's time from OpenClaw's as well [C44]", async () => {
    const environment = {
      THROUGHLINE_SESSION_COMPACTION_RESERVE_TOKENS: "25000",
      THROUGHLINE_SESSION_CHECKPOINT_TOKEN_THRESHOLD_PERCENTS: "20, 40",
      THROUGHLINE_SESSION_COMPACTION_OLLAMA_URL: "http://gpu:11434",
      OPENCLAW_SESSION_CACHE_TTL_MS: " 500 ",
    };
    const settings = await settingsOf({ environment });
    expect(settings.get("session.compaction.reserveTokens")).toMatchObject({ value: 25_000, source: "environment" });
    expect(settings.get("session.checkpoint.tokenThresholdPercents")?.value).toEqual([20, 40]);
    expect(settings.get("session.compaction.summaryModels")?.value).toEqual(["ollama"]);
    expect(settings.get("session.cacheTtlMs")).toMatchObject({
      value: 500,
      sourceName: "OPENCLAW_SESSION_CACHE_TTL_MS",
    });
    const ours = await settingsOf({ environment: { ...environment, THROUGHLINE_SESSION_CACHE_TTL_MS: "0" } });
    expect(ours.get("session.cacheTtlMs")).toMatchObject({ value: 0, sourceName: "THROUGHLINE_SESSION_CACHE_TTL_MS" });
    for (const { environment: variables } of definitions) {
      const [own] = variables;
      expect(own?.name).toMatch(/^(THROUGHLINE_|NO_COLOR$)/);
    }
  });

  it("refuses keys beside OpenClaw's settings of memory search", async () => {
    await expect(resolve({ file: { agents: { defaults: { memorySearch: null } } } })).resolves.toMatchObject({});
    await expect(resolve({ file: { agents: { defaults: { thinking: "high" } } } })).rejects.toThrow(
      /"agents\.defaults\.thinking" is not a setting/,
    );
    await expect(resolve({ file: { agents: 5 } })).rejects.toThrow("agents is 5; it must be an object");
  });

  it("passes over another program's variable that says nothing here, with a note [C44]", async () => {
    const { settings, notes } = await resolve({ environment: { OPENCLAW_SESSION_CACHE_TTL_MS: "soon" } });
    expect(settings.find(({ key }) => key === "session.cacheTtlMs")).toMatchObject({
      value: 45_000,
      source: "default",
    });
    expect(notes).toMatchObject([
      { kind: "ignored", key: "session.cacheTtlMs", path: "OPENCLAW_SESSION_CACHE_TTL_MS" },
    ]);
    await expect(resolve({ environment: { THROUGHLINE_SESSION_CACHE_TTL_MS: "soon" } })).rejects.toThrow(
      'THROUGHLINE_SESSION_CACHE_TTL_MS is "soon"; it must be a whole number',
    );
  });

  it.each([
    [{ stor: "x" }, 2, /"stor" is not a setting; did you mean store\?$/],
    [{ banana: 1 }, 2, /"banana" is not a setting; the keys there are store, preset/],
    [{ session: { reserveTokens: 1 } }, 3, /did you mean session\.compaction\.reserveTokens\?$/],
    [{ session: { compaction: { reserveToken: 1 } } }, 4, /did you mean session\.compaction\.reserveTokens\?$/],
    [{ session: { compaction: { ollama: { uri: "x" } } } }, 5, /did you mean session\.compaction\.ollama\.url\?$/],
    [{ compaction: { reserveTokens: 1 } }, 2, /"compaction" is not a setting; did you mean session\.compaction\?$/],
    [{ "session.store": "sqlite" }, 2, /"session\.store" is not a setting; did you mean session\.store\?$|keys there/],
    [{ session: 5 }, 2, /session is 5; it must be an object/],
    [{ session: { compaction: [] } }, 3, /session\.compaction is \[\]; it must be an object/],
    [{ timeoutMs: -1 }, 2, /timeoutMs is -1; it must be a whole number from 0 to 2147483647\.$/],
    [{ timeoutMs: 1.5 }, 2, /timeoutMs is 1\.5/],
    [{ logLevel: "loud" }, 2, /logLevel is "loud"; it must be one of debug, info, warn, error\.$/],
    [{ input: "no" }, 2, /input is "no"; it must be true or false/],
    [{ home: "/x" }, 2, /home cannot be set in the file; use --home or THROUGHLINE_HOME/],
    [{ preset: "claw1" }, 2, /preset is "claw1"; it must be one of claw0, goclaw-doc, goclaw-spec, openclaw/],
    [
      { session: { store: "mysql" } },
      3,
      /session\.store is "mysql"; it must be one of sqlite, jsonl, postgres, memory/,
    ],
    [{ session: { inherit: "yes" } }, 3, /session\.inherit is "yes"; it must be true or false/],
    [
      { session: { checkpoint: { tokenThresholdPercents: [25, 100] } } },
      6,
      /session\.checkpoint\.tokenThresholdPercents\.1 is 100; it must be a number above 0 and below 100/,
    ],
    [
      { session: { memoryFlush: { thresholds: [{ percent: 50, prompt: "x", injectas: "user" }] } } },
      8,
      /"session\.memoryFlush\.thresholds\.0\.injectas" is not a setting; did you mean injectAs\?$/,
    ],
    [
      { session: { sendPolicy: { rules: [{ match: { chanel: "x" } }] } } },
      7,
      /"session\.sendPolicy\.rules\.0\.match\.chanel" is not a setting; did you mean channel\?$/,
    ],
    [[], 1, /not a JSON object/],
    ["{", 1, /not JSON: it ends before its end/],
    ['{\n "agent": "a",\n "agent": "b"\n}', 3, /"agent" stands in line 2 already/],
    ['{"__proto__": {"agent": "x"}}', 1, /"__proto__" is not a setting/],
    ['{"session": {"constructor": {}}}', 1, /"session\.constructor" is not a setting/],
  ])("refuses %j and names the place", async (file, line, message) => {
    await expect(resolve({ file })).rejects.toMatchObject({
      code: "CONFIG_INVALID",
      message: expect.stringMatching(message) as string,
      details: expect.objectContaining({ path: filePath, line }) as object,
      // `throughline config` reads the same file, and fails as well while it is as it is.
      remedy: expect.stringMatching(/take it away; `throughline config` then lists every key/) as string,
    });
    await expect(resolve({ file })).rejects.toThrow(`${filePath}:${line}: `);
  });

  it("refuses two words for one setting that disagree, and takes two that agree [C35]", async () => {
    await expect(resolve({ file: { session: { store: "sqlite", storage: "jsonl" } } })).rejects.toThrow(
      /:4: session\.storage is "jsonl", and the same setting is "sqlite" in line 3; keep one/,
    );
    await expect(resolve({ file: { session: { store: "sqlite", storage: "sqlite" } } })).resolves.toMatchObject({
      notes: [{ kind: "alias", key: "session.storage", meant: "session.store" }],
    });
    await expect(resolve({ file: { store: "memory:", session: { store: "sqlite" } } })).rejects.toThrow(
      /store and session\.store \(.*:4\) both say where sessions are kept/,
    );
  });

  it("has for every alias a setting it means [C35]", () => {
    const keys = definitions.map(({ key }) => key);
    for (const [alias, key] of Object.entries(settingAliases)) {
      expect([alias, keys.includes(key), keys.includes(alias)]).toEqual([alias, true, false]);
    }
  });

  it("names the flag or the variable whose value is wrong", async () => {
    await expect(resolve({ environment: { THROUGHLINE_TIMEOUT_MS: "soon" } })).rejects.toThrow(
      'THROUGHLINE_TIMEOUT_MS is "soon"; it must be a whole number',
    );
    await expect(resolve({ flags: { logLevel: "loud" } })).rejects.toThrow("--log-level is");
  });

  it("reads a byte order mark, comments, commas and null as a default", async () => {
    const file = "\uFEFF{ // whose\n agent: 'work', /* not yet\n */ \"model\": null,\n}";
    const settings = await settingsOf({ file });
    expect(settings.get("agent")).toMatchObject({ value: "work", line: 2 });
    expect(settings.get("model")).toMatchObject({ value: null, source: "default" });
  });
});

describe("the store", () => {
  it.each([
    [{ store: "sqlite" }, "sqlite:/home/ada/.throughline/sessions.db"],
    [{ store: "sqlite", storePath: "/data/x.db" }, "sqlite:/data/x.db"],
    [{ storePath: "~/x.db" }, "sqlite:/home/ada/x.db"],
    [{ store: "jsonl" }, "jsonl:/home/ada/.throughline"],
    [{ store: "jsonl", storePath: "/data/logs" }, "jsonl:/data/logs"],
    [{ store: "jsonl", storePath: "/data/agents/main/sessions/" }, "jsonl:/data"],
    [{ store: "memory" }, "memory:"],
    [{ store: "postgres", storePath: "postgres://h/db" }, "postgres://h/db"],
    [{ store: "sqlite", storePath: "~/.openclaw/goclaw/sessions.db" }, "sqlite:/home/ada/.openclaw/goclaw/sessions.db"],
  ])("of %j is %s", async (session, url) => {
    expect((await settingsOf({ file: { session } })).get("store")?.value).toBe(url);
  });

  it.each([
    [{ store: "postgres" }, /session\.storePath is missing; it must be postgres/],
    [{ store: "postgres", storePath: "/x" }, /no URL of a server/],
    [{ store: "memory", storePath: "/x" }, /left out where session\.store is memory/],
    [{ storePath: "postgres://h/db" }, /a path where session\.store is sqlite/],
  ])("refuses %j", async (session, message) => {
    await expect(resolve({ file: { session } })).rejects.toThrow(message);
  });

  it("takes the agent from the folder of one agent's sessions", async () => {
    const file = { session: { store: "jsonl", storePath: "/data/agents/work/sessions" } };
    expect((await settingsOf({ file })).get("agent")).toMatchObject({ value: "work", source: "file", line: 4 });
    expect((await settingsOf({ file, flags: { agent: "main" } })).get("agent")?.value).toBe("main");
  });
});

describe("a list or an object in a variable", () => {
  it.each([
    [
      "SESSION_SEND_POLICY",
      '{"defalt": "deny"}',
      /"session\.sendPolicy\.defalt" is not a setting; did you mean default\?$/,
    ],
    [
      "SESSION_SEND_POLICY",
      '{"rules": [{"acton": "deny"}]}',
      /"session\.sendPolicy\.rules\.0\.acton" .* did you mean action\?$/,
    ],
    ["SESSION_SEND_POLICY", '"deny"', /session\.sendPolicy is "deny"; it must be an object\.$/],
    ["SESSION_MEMORY_FLUSH_THRESHOLDS", '[{"percent": 50, "promt": "x"}]', /thresholds\.0\.prompt is undefined/],
    ["SESSION_MEMORY_FLUSH_THRESHOLDS", '["a"]', /thresholds\.0 is "a"; it must be an object/],
    [
      "SESSION_CHECKPOINT_TOKEN_THRESHOLD_PERCENTS",
      "[25, 100]",
      /tokenThresholdPercents\.1 is 100; it must be a number above 0/,
    ],
    ["TOOLS_ALLOW", '[".git", 1]', /toolsAllow\.1 is 1; it must be text/],
    ["TOOLS_ALLOW", '["__proto__", {"length": 1}]', /toolsAllow\.1 is \{"length":1\}; it must be text/],
  ])("is held to the rules of the file: %s %s", async (name, text, message) => {
    const variable = `THROUGHLINE_${name}`;
    const failure = await resolve({ environment: { [variable]: text } }).then(
      () => null,
      (error: unknown) => error,
    );
    expect(failure).toMatchObject({ code: "CONFIG_INVALID", details: { name: variable } });
    expect(String(failure)).toMatch(message);
    expect(String(failure)).toContain(variable);
  });
});

describe("the tables of settings", () => {
  it("have unique keys, flags and variables", () => {
    const names = definitions.flatMap(({ key, flag, environment }) => [
      key,
      flag,
      ...environment.map(({ name }) => name),
    ]);
    const given = names.filter((name) => name !== null);
    expect(new Set(given).size).toBe(given.length);
  });

  it("hold providers by name, in the file and in a variable", async () => {
    const upstreams = { anthropic: { api: "anthropic", apiKeyEnv: "KEY" }, "local-1": { api: "ollama" } };
    const valueOf = async (given: Parameters<typeof resolve>[0]): Promise<unknown> =>
      (await resolve(given)).settings.find(({ key }) => key === "gateway.upstreams")?.value;
    expect(await valueOf({ file: { gateway: { upstreams } } })).toEqual(upstreams);
    const variable = (value: unknown): Record<string, string> => ({
      THROUGHLINE_GATEWAY_UPSTREAMS: typeof value === "string" ? value : JSON.stringify(value),
    });
    expect(await valueOf({ environment: variable(upstreams) })).toEqual(upstreams);
    for (const [wrong, why] of [
      [{ a: {} }, "it must be one of anthropic, openai, ollama."],
      [{ a: { api: "gemini" } }, 'gateway.upstreams.a.api is "gemini"; it must be one of anthropic, openai, ollama.'],
      [
        { a: { api: "openai", apiKey: "sk-1" } },
        '"gateway.upstreams.a.apiKey" is not a setting; did you mean apiKeyEnv?',
      ],
      [{ a: { api: "openai", credentials: "none" } }, "it must be one of server, caller."],
      [Object.fromEntries(Array.from({ length: 101 }, (_, at) => [`a${at}`, { api: "openai" }])), "at most 100 names"],
      [["anthropic"], "it must be an object of at most 100 names"],
    ] as const) {
      await expect(resolve({ file: { gateway: { upstreams: wrong } } })).rejects.toThrow(why);
      await expect(resolve({ environment: variable(wrong) })).rejects.toThrow(why);
    }
    await expect(resolve({ environment: variable("anthropic") })).rejects.toThrow("an object of at most 100 names");
  });

  it("take the same values as text and in the file", { tags: ["slow"] }, async () => {
    const texts = [
      "x",
      "main",
      "debug",
      "true",
      "false",
      "0",
      "1",
      "25",
      "2147483647",
      "2147483648",
      "-1",
      "1.5",
      "99.5",
      "100",
      "[25,50]",
      "25,50",
    ];
    for (const { key, kind, isFileAllowed, environment } of definitions) {
      const isText = kind.type !== "block" && kind.type !== "object" && kind.type !== "map";
      if (!isText || !isFileAllowed || /^(store$|session\.)/.test(key)) continue;
      for (const text of texts) {
        const fromFile = await resolve({ file: inFile(key, fileValueOf(kind, text)) }).then(
          ({ settings }) => settings.find((setting) => setting.key === key)?.value,
          () => undefined,
        );
        const variable = environment[0]?.name ?? "";
        const fromVariable = await resolve({ environment: { [variable]: text } }).then(
          ({ settings }) => settings.find((setting) => setting.key === key)?.value,
          () => undefined,
        );
        const given = environment[0]?.meaning === undefined ? fromVariable : parseSettingText(kind, text);
        expect([key, text, given]).toEqual([key, text, fromFile]);
      }
    }
  });
});

/** The setting where the file has it: each part of its key is an object. */
function inFile(key: string, value: SettingValue): Record<string, SettingValue> {
  const [last = "", ...areas] = key.split(".").toReversed();
  return areas.reduce<Record<string, SettingValue>>((inner, area) => ({ [area]: inner }), { [last]: value });
}

function fileValueOf(kind: SettingKind, text: string): SettingValue {
  if (kind.type === "list") return text.startsWith("[") ? (JSON.parse(text) as SettingValue) : text.split(",");
  if (kind.type === "integer" || kind.type === "number") return Number.isNaN(Number(text)) ? text : Number(text);
  return kind.type === "boolean" ? ({ true: true, false: false, "1": true, "0": false }[text] ?? text) : text;
}
