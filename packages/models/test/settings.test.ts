import { inspect } from "node:util";
import { ThroughlineError } from "@throughline/core";
import { createProviderSimulator } from "@throughline/provider-simulator";
import { describe, expect, it } from "vitest";
import { createAnthropicModel } from "../src/anthropic.ts";
import { modelFromSettings, modelProviders, parseModelName } from "../src/index.ts";
import { createOpenAiChatModel } from "../src/openai.ts";

const code = (run: () => unknown): string => {
  try {
    run();
  } catch (error) {
    if (ThroughlineError.isInstance(error)) return error.code;
    throw error;
  }
  return "no error";
};

describe("the name of a model", () => {
  it("is its provider and, after the first slash, its own", () => {
    expect(parseModelName("anthropic/claude-opus-5")).toEqual({ provider: "anthropic", modelId: "claude-opus-5" });
    expect(parseModelName(" Ollama/hf.co/org/model:Q4_K_M ")).toEqual({
      provider: "ollama",
      modelId: "hf.co/org/model:Q4_K_M",
    });
    expect(parseModelName("offline")).toEqual({ provider: "offline", modelId: "offline-rules" });
  });

  it("is refused without both, with an example", () => {
    for (const text of ["", "claude-opus-5", "/x", "anthropic/", "a b/c", "anthropic/ x"])
      expect(code(() => parseModelName(text))).toBe("INPUT_INVALID");
    expect(() => parseModelName("gpt-5")).toThrow(/does not name a model/);
  });
});

describe("the model of settings", () => {
  it("speaks the format of its provider, and of a server where one is named", () => {
    const api = (settings: Parameters<typeof modelFromSettings>[0]): string => {
      const { provider, api: format } = modelFromSettings(settings);
      return `${provider} ${format}`;
    };
    expect(api({ provider: "anthropic", apiKey: "k" })).toBe("anthropic anthropic");
    expect(api({ provider: "openai", apiKey: "k" })).toBe("openai openai-responses");
    expect(api({ provider: "openai", apiKey: "k", baseUrl: "http://127.0.0.1:1/v1" })).toBe("openai openai");
    expect(api({ provider: "openai", apiKey: "k", api: "openai" })).toBe("openai openai");
    expect(api({ provider: "ollama" })).toBe("ollama ollama");
    expect(api({ provider: "offline" })).toBe("offline anthropic");
    expect(api({ provider: "vllm", baseUrl: "http://127.0.0.1:1/v1" })).toBe("vllm openai");
    expect(api({ provider: "gateway", baseUrl: "http://127.0.0.1:1", api: "anthropic" })).toBe("gateway anthropic");
  });

  it("is refused at once without a key where one is wanted, and for a provider nobody knows", () => {
    expect(code(() => modelFromSettings({ provider: "anthropic" }))).toBe("MODEL_KEY_MISSING");
    expect(code(() => modelFromSettings({ provider: "openai", apiKey: null }))).toBe("MODEL_KEY_MISSING");
    expect(() => modelFromSettings({ provider: "anthropic" })).toThrow(/ANTHROPIC_API_KEY/);
    expect(code(() => modelFromSettings({ provider: "nobody" }))).toBe("INPUT_INVALID");
  });

  it("reaches the server it names, with its key, its retries and its window", async () => {
    await using simulator = createProviderSimulator({
      apiKey: "right",
      fallback: ({ number }) => (number < 3 ? { kind: "error", status: 429, retryAfterMs: 1 } : "Yes."),
    });
    await simulator.start();
    const request = { model: "m", system: null, messages: [{ role: "user", content: "Hi" }] };
    const once = modelFromSettings({ provider: "anthropic", apiKey: "right", baseUrl: simulator.url, maxRetries: 0 });
    await expect(once.chat(request)).rejects.toMatchObject({ status: 429 });
    expect(simulator.requests).toHaveLength(1);
    const model = modelFromSettings({ provider: "openai", apiKey: "right", baseUrl: `${simulator.url}/v1` });
    expect((await model.chat(request)).message.content).toEqual([{ type: "text", text: "Yes." }]);
    const ollama = modelFromSettings({ provider: "ollama", baseUrl: simulator.url, contextTokens: 9000 });
    await ollama.chat(request);
    expect(simulator.requests.at(-1)?.body).toMatchObject({ options: { num_ctx: 9000 } });
  });

  it("repeats no password of an address, in no error", async () => {
    const request = { model: "m", system: null, messages: [{ role: "user", content: "Hi" }] };
    for (const provider of ["anthropic", "openai", "ollama"]) {
      for (const baseUrl of ["http://ada:hidden@127.0.0.1:1/v1", "http://ada:hidden@:x:/"]) {
        const asked = modelFromSettings({ provider, apiKey: "k", baseUrl, maxRetries: 0 }).chat(request);
        const error = await asked.catch((caught: unknown) => caught);
        expect(error).toBeInstanceOf(Error);
        expect(inspect(error, { depth: 20, showHidden: true })).not.toContain("hidden");
      }
    }
  });

  it("takes nothing from the environment by itself", async () => {
    const variables = modelProviders.flatMap(({ keyVariable, baseUrlVariable }) => [keyVariable, baseUrlVariable]);
    const names = variables.filter((name) => name !== null);
    expect(names).toContain("OLLAMA_HOST");
    const before = names.map((name) => [name, process.env[name]] as const);
    for (const name of names) process.env[name] = name.endsWith("KEY") ? "from-environment" : "http://127.0.0.1:1";
    try {
      const request = { model: "m", system: null, messages: [{ role: "user", content: "Hi" }] };
      await expect(createAnthropicModel().chat(request)).rejects.toMatchObject({ code: "MODEL_KEY_MISSING" });
      await expect(createOpenAiChatModel().chat(request)).rejects.toMatchObject({ code: "MODEL_KEY_MISSING" });
      await using simulator = createProviderSimulator({ fallback: () => "Yes." });
      await simulator.start();
      await createAnthropicModel({ apiKey: "given", baseUrl: simulator.url }).chat(request);
      await createOpenAiChatModel({ apiKey: "given", baseUrl: `${simulator.url}/v1` }).chat(request);
      const sent = simulator.requests.map(({ headers }) => headers["authorization"] ?? headers["x-api-key"]);
      expect(sent).toEqual(["Bearer given", "Bearer given"]);
      expect(JSON.stringify(simulator.requests.map((one) => one.headers))).not.toContain("from-environment");
    } finally {
      for (const [name, value] of before) {
        if (value === undefined) delete process.env[name];
        else process.env[name] = value;
      }
    }
  });
});
