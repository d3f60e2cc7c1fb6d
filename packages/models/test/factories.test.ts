import Anthropic from "@anthropic-ai/sdk";
import type { Environment, SessionModel } from "@throughline/core/internal";
import { createProviderSimulator, type ProviderSimulator } from "@throughline/testing";
import OpenAI from "openai";
import { afterEach, describe, expect, it } from "vitest";
import { anthropic } from "@throughline/models/anthropic";
import { offline } from "@throughline/models/offline";
import { ollama } from "@throughline/models/ollama";
import { openai } from "@throughline/models/openai";

let simulator: ProviderSimulator;
afterEach(() => simulator.close());

async function start(): Promise<void> {
  simulator = createProviderSimulator({ fallback: () => "Yes." });
  await simulator.start();
}

const environmentOf = (variables: Readonly<Record<string, string>> = {}): Environment => ({
  get: (name) => variables[name],
});

const ask = (model: SessionModel): ReturnType<SessionModel["chat"]["chat"]> =>
  model.chat.chat({ modelId: model.modelId, system: null, messages: [{ role: "user", content: "Hi" }] });

/** The key that a request was sent with; null without one. */
function sentKey(): string | null {
  const { headers = {} } = simulator.requests.at(-1) ?? {};
  return headers["x-api-key"] ?? headers["authorization"] ?? null;
}

interface Factory {
  readonly name: "anthropic" | "openai" | "ollama";
  readonly create: (options: Parameters<typeof openai>[1] & object) => SessionModel;
  readonly keyVariable: string;
  readonly urlVariable: string;
  readonly path: string;
}

const factories: readonly Factory[] = [
  {
    name: "anthropic",
    create: (options) => anthropic("claude-opus-5", options as object),
    keyVariable: "ANTHROPIC_API_KEY",
    urlVariable: "ANTHROPIC_BASE_URL",
    path: "",
  },
  {
    name: "openai",
    create: (options) => openai("gpt-4o", options),
    keyVariable: "OPENAI_API_KEY",
    urlVariable: "OPENAI_BASE_URL",
    path: "/v1",
  },
  {
    name: "ollama",
    create: (options) => ollama("qwen3", options as object),
    keyVariable: "OLLAMA_API_KEY",
    urlVariable: "OLLAMA_HOST",
    path: "",
  },
];

describe.each(factories)("$name()", ({ name, create, keyVariable, urlVariable, path }) => {
  it("gives what createSessions takes, with the limits that were given and no others", async () => {
    await start();
    const environment = environmentOf({ [keyVariable]: "k" });
    expect(Object.keys(create({ environment })).toSorted()).toEqual(["chat", "modelId"]);
    const limits = { assumedWindowTokens: 90_000, maxOutputTokens: 500, thinkingLevel: "low" } as const;
    const model = create({ environment, ...limits });
    expect(model).toMatchObject({ ...limits, chat: { provider: name } });
    expect(create({ environment, maxOutputTokens: null }).maxOutputTokens).toBeNull();
  });

  it("reads key and address from the environment, where blank counts as not set", async () => {
    await start();
    const url = simulator.url + path;
    await ask(create({ environment: environmentOf({ [keyVariable]: "from-environment", [urlVariable]: url }) }));
    expect(sentKey()).toMatch(/from-environment$/);
    const blank = environmentOf({ [keyVariable]: " ", [urlVariable]: "" });
    if (name === "ollama") expect(create({ environment: blank }).modelId).toBe("qwen3");
    else expect(() => create({ environment: blank })).toThrow(expect.objectContaining({ code: "MODEL_KEY_MISSING" }));
  });

  it("reads the variables of the process by itself", async () => {
    await start();
    const before = [keyVariable, urlVariable].map((variable) => [variable, process.env[variable]] as const);
    process.env[keyVariable] = "of-the-process";
    process.env[urlVariable] = simulator.url + path;
    try {
      await ask(create({}));
      expect(sentKey()).toMatch(/of-the-process$/);
    } finally {
      for (const [variable, value] of before) {
        if (value === undefined) delete process.env[variable];
        else process.env[variable] = value;
      }
    }
  });

  it("gives the key of the environment to no other server that the program names", async () => {
    await start();
    const environment = environmentOf({ [keyVariable]: "from-environment" });
    await ask(create({ environment, baseUrl: simulator.url + path, maxRetries: undefined as never })).catch(() => null);
    expect(simulator.requests).toHaveLength(1);
    expect(JSON.stringify(simulator.requests[0]?.headers)).not.toContain("from-environment");
    await ask(create({ environment, baseUrl: simulator.url + path, apiKey: "given" }));
    expect(sentKey()).toMatch(/given$/);
  });

  it("sends its requests with the given function, and its headers", async () => {
    await start();
    const seen: string[] = [];
    const own: typeof fetch = (input, init) => {
      seen.push(String(input instanceof Request ? input.url : input));
      return fetch(input, init);
    };
    const baseUrl = simulator.url + path;
    await ask(create({ baseUrl, apiKey: "k", fetch: own, headers: { "x-gate": "open" } }));
    expect(seen).toHaveLength(1);
    expect(simulator.requests[0]?.headers).toMatchObject({ "x-gate": "open" });
  });

  it("asks nothing when it is made", async () => {
    await start();
    create({ baseUrl: simulator.url + path, apiKey: "k" });
    expect(simulator.requests).toEqual([]);
  });
});

describe.each(factories.filter(({ name }) => name !== "ollama"))(
  "$name() without a key",
  ({ name, create, keyVariable }) => {
    it("is refused when it is made, and names the variable and the option", async () => {
      await start();
      expect(() => create({ environment: environmentOf() })).toThrow(
        expect.objectContaining({
          code: "MODEL_KEY_MISSING",
          message: `No API key for ${name}: neither \`apiKey\` nor ${keyVariable} is set.`,
          retryable: false,
          details: { provider: name, variable: keyVariable, option: "apiKey" },
          remedy: `Set ${keyVariable}, or pass \`apiKey\`. The offline rules need no key.`,
        }),
      );
      expect(() => create({ environment: environmentOf({ [keyVariable]: "k" }), apiKey: null })).toThrow(
        expect.objectContaining({ code: "MODEL_KEY_MISSING" }),
      );
    });
  },
);

describe("a client of the SDK", () => {
  it("is used as it is", async () => {
    await start();
    await ask(anthropic("claude-opus-5", { client: new Anthropic({ apiKey: "own", baseURL: simulator.url }) }));
    expect(sentKey()).toMatch(/own$/);
    const client = new OpenAI({ apiKey: "own", baseURL: `${simulator.url}/v1` });
    const model = openai("gpt-4o", { client });
    expect(model.chat.api).toBe("openai");
    await ask(model);
    expect(sentKey()).toBe("Bearer own");
    expect(openai("gpt-5", { client: new OpenAI({ apiKey: "own" }) }).chat.api).toBe("openai-responses");
  });

  it.each(["apiKey", "baseUrl", "headers", "fetch", "maxRetries", "environment"])(
    "takes no `%s` beside it",
    async (option) => {
      await start();
      const value = { headers: {}, fetch, maxRetries: 1, environment: environmentOf() }[option] ?? "http://127.0.0.1:1";
      const client = new Anthropic({ apiKey: "own" });
      expect(() => anthropic("claude-opus-5", { client, [option]: value })).toThrow(
        expect.objectContaining({ code: "INPUT_INVALID", details: { argument: option } }),
      );
    },
  );
});

describe("openai()", () => {
  it("asks Responses of OpenAI and Chat Completions of others, unless it is told", async () => {
    await start();
    const api = (options: Parameters<typeof openai>[1]): string =>
      openai("gpt-5", { apiKey: "k", ...options }).chat.api;
    expect(api({ environment: environmentOf() })).toBe("openai-responses");
    expect(api({ baseUrl: "https://api.openai.com/v1" })).toBe("openai-responses");
    expect(api({ baseUrl: "https://api.openai.com.evil.example/v1" })).toBe("openai");
    expect(api({ baseUrl: simulator.url })).toBe("openai");
    expect(api({ baseUrl: simulator.url, api: "openai-responses" })).toBe("openai-responses");
  });

  it("refuses an option of the other format", async () => {
    await start();
    const baseUrl = simulator.url;
    expect(() => openai("m", { baseUrl, reasons: true })).toThrow(
      /`reasons` applies to `api: "openai-responses"` only/,
    );
    expect(() => openai("m", { apiKey: "k", api: "openai-responses", outputLimitField: "max_tokens" })).toThrow(
      /`outputLimitField` applies to `api: "openai"` only/,
    );
  });

  it("gives the key of the environment to OpenAI also where its address is written out", async () => {
    await start();
    const environment = environmentOf({ OPENAI_API_KEY: "from-environment" });
    const seen: string[] = [];
    const own: typeof fetch = async (_, init) => {
      seen.push(new Headers(init?.headers).get("authorization") ?? "none");
      return Response.json({ error: { message: "no" } }, { status: 401 });
    };
    for (const baseUrl of ["https://api.openai.com/v1", "https://api.openai.com.evil.example/v1"])
      await ask(openai("gpt-5", { environment, baseUrl, fetch: own })).catch(() => null);
    expect(seen).toEqual(["Bearer from-environment", "none"]);
  });
});

describe("ollama()", () => {
  it("asks for the window that is given, and takes it for the window where the server states none", async () => {
    await start();
    const model = ollama("qwen3", { baseUrl: simulator.url, windowTokens: 9000 });
    expect(model).toMatchObject({ assumedWindowTokens: 9000 });
    expect(model).not.toHaveProperty("windowTokens");
    await ask(model);
    expect(simulator.requests[0]?.body).toMatchObject({ options: { num_ctx: 9000 } });
    expect(await model.chat.windowTokens?.("qwen3")).toBe(9000);
  });
});

describe("offline()", () => {
  it("answers by rules, without a key", async () => {
    await start();
    const model = offline({ windowTokens: 1000, maxOutputTokens: 200 });
    expect(model).toMatchObject({ modelId: "offline-rules", windowTokens: 1000, maxOutputTokens: 200 });
    expect((await ask(model)).message.provider).toBe("offline");
  });
});
