import type { ChatModel } from "@throughline/core";
import { describe, expect, it } from "vitest";
import { anthropic } from "../src/anthropic.ts";
import { plainAddress } from "../src/base-url.ts";
import { ollama } from "../src/ollama.ts";
import { openai } from "../src/openai.ts";

interface Connection {
  readonly apiKey?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

// Nothing is asked there: the values are looked at before.
const baseUrl = "http://127.0.0.1:9";
const models: readonly (readonly [string, (how: Connection) => ChatModel])[] = [
  ["Anthropic", (how) => anthropic("claude-opus-5", { ...how, baseUrl }).chat],
  ["OpenAI Chat Completions", (how) => openai("gpt-5", { api: "openai", ...how, baseUrl }).chat],
  ["OpenAI Responses", (how) => openai("gpt-5", { api: "openai-responses", ...how, baseUrl }).chat],
  ["Ollama", (how) => ollama("qwen3", { ...how, baseUrl }).chat],
];

describe.each(models)("%s", (_, create) => {
  it.each(["sk-hidden\nx", "sk-hidden\r\nX-Other: y", "sk-hidden\u0000", "sk-hidden…"])(
    "refuses a key or a header that cannot be sent without repeating it: %j",
    (value) => {
      for (const how of [{ apiKey: value }, { apiKey: "k", headers: { "x-gate": value } }]) {
        let error: unknown = null;
        try {
          create(how);
        } catch (caught) {
          error = caught;
        }
        expect(error).toMatchObject({ code: "INPUT_INVALID" });
        expect(JSON.stringify([error, String(error), (error as Error).stack])).not.toContain("hidden");
      }
    },
  );
});

describe("an address with a name and a password", () => {
  it("is taken apart whatever the password holds", () => {
    const basic = (pair: string): string => `Basic ${Buffer.from(pair).toString("base64")}`;
    for (const [address, url, pair] of [
      ["http://ada:p@ss@host:1/v1", "http://host:1/v1", "ada:p@ss"],
      ["ada:pä%20s@host", "host", "ada:pä s"],
      ["http://ada:5%@host", "http://host", "ada:5%"],
      ["http://ada:パス@host", "http://host", "ada:パス"],
    ] as const)
      expect(plainAddress(address)).toEqual({ url, authorization: basic(pair) });
  });
});
