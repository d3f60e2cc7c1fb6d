import { inspect } from "node:util";
import type { SessionModel } from "@throughline/core/internal";
import { createProviderSimulator } from "@throughline/testing";
import { describe, expect, it } from "vitest";
import { createModel, type CreateModelOptions } from "@throughline/models";
import { parseModelName } from "../src/parse-model-name.ts";

const error = (run: () => unknown): unknown => {
  try {
    run();
  } catch (caught) {
    return caught;
  }
  return null;
};

/** An environment without variables. */
const environment = { get: (): undefined => undefined };

describe("the name of a model", () => {
  it("is its provider and, after the first slash, its own", () => {
    expect(parseModelName("anthropic/claude-opus-5")).toEqual({ provider: "anthropic", modelId: "claude-opus-5" });
    expect(parseModelName(" Ollama/hf.co/org/model:Q4_K_M ")).toEqual({
      provider: "ollama",
      modelId: "hf.co/org/model:Q4_K_M",
    });
    expect(parseModelName("offline")).toEqual({ provider: "offline", modelId: "offline-rules" });
  });

  it.each(["", "claude-opus-5", "/x", "anthropic/", "a b/c", "anthropic/ x", "gpt-5", 5, undefined, null])(
    "is refused without both, with an example: %j",
    (text) => {
      expect(error(() => parseModelName(text as string))).toMatchObject({ code: "INPUT_INVALID" });
    },
  );
});

describe("a model by the name of its provider", () => {
  const made = (options: Omit<CreateModelOptions, "modelId" | "environment">): SessionModel =>
    createModel({ ...options, modelId: "m", environment });

  it("speaks the format of its provider, and of a server where one is named", () => {
    const api = (options: Omit<CreateModelOptions, "modelId">): string => {
      const { chat } = made(options);
      return `${chat.provider} ${chat.api}`;
    };
    const baseUrl = "http://127.0.0.1:1/v1";
    expect(api({ provider: "anthropic", apiKey: "k" })).toBe("anthropic anthropic");
    expect(api({ provider: "openai", apiKey: "k" })).toBe("openai openai-responses");
    expect(api({ provider: "openai", apiKey: "k", baseUrl })).toBe("openai openai");
    expect(api({ provider: "openai", apiKey: "k", api: "openai" })).toBe("openai openai");
    expect(api({ provider: "openai", apiKey: "k", baseUrl, api: "openai-responses" })).toBe("openai openai-responses");
    expect(api({ provider: "ollama" })).toBe("ollama ollama");
    expect(api({ provider: "offline" })).toBe("offline anthropic");
    expect(api({ provider: "vllm", baseUrl })).toBe("vllm openai");
    expect(api({ provider: "gateway", baseUrl: "http://127.0.0.1:1", api: "anthropic" })).toBe("gateway anthropic");
  });

  it("is refused without a key where one is needed, and for a provider that is not known", () => {
    for (const [provider, variable] of [
      ["anthropic", "ANTHROPIC_API_KEY"],
      ["openai", "OPENAI_API_KEY"],
    ] as const) {
      expect(error(() => made({ provider }))).toMatchObject({ code: "MODEL_KEY_MISSING", details: { variable } });
      expect(error(() => made({ provider, apiKey: null }))).toMatchObject({ code: "MODEL_KEY_MISSING" });
    }
    expect(error(() => made({ provider: "nobody" }))).toMatchObject({ code: "INPUT_INVALID" });
    // OpenAI's key would go out under another name.
    expect(error(() => made({ provider: "nobody", api: "openai", apiKey: "k" }))).toMatchObject({
      code: "INPUT_INVALID",
    });
  });

  it("has its limits, its key, its repeats and its window", async () => {
    await using simulator = createProviderSimulator({
      apiKey: "right",
      fallback: ({ number }) => (number < 3 ? { kind: "error", status: 429, retryAfterMs: 1 } : "Yes."),
    });
    await simulator.start();
    const request = { modelId: "m", system: null, messages: [{ role: "user", content: "Hi" }] };
    const once = made({ provider: "anthropic", apiKey: "right", baseUrl: simulator.url, maxRetries: 0 });
    await expect(once.chat.chat(request)).rejects.toMatchObject({ status: 429 });
    expect(simulator.requests).toHaveLength(1);
    const model = made({ provider: "openai", apiKey: "right", baseUrl: `${simulator.url}/v1` });
    expect((await model.chat.chat(request)).message.content).toEqual([{ type: "text", text: "Yes." }]);
    const ollama = made({ provider: "ollama", baseUrl: simulator.url, windowTokens: 9000 });
    await ollama.chat.chat(request);
    expect(simulator.requests.at(-1)?.body).toMatchObject({ options: { num_ctx: 9000 } });
    const limits = { windowTokens: 9000, maxOutputTokens: 100, thinkingLevel: "low" } as const;
    expect(made({ provider: "vllm", baseUrl: "http://127.0.0.1:1/v1", ...limits })).toMatchObject(limits);
    expect(made({ provider: "offline", windowTokens: 9000 })).toMatchObject({ windowTokens: 9000 });
  });

  it("repeats no password of an address, in no error", () => {
    for (const provider of ["anthropic", "openai", "ollama"]) {
      for (const baseUrl of ["http://ada:hidden@127.0.0.1:1/v1", "http://ada:hidden@:x:/"]) {
        const caught = error(() => made({ provider, apiKey: "k", baseUrl }));
        // Ollama takes a name and a password as the header that they stand for.
        if (provider !== "ollama" || baseUrl.endsWith(":/")) expect(caught).toBeInstanceOf(Error);
        expect(inspect(caught, { depth: 20, showHidden: true })).not.toContain("hidden");
      }
    }
  });
});
