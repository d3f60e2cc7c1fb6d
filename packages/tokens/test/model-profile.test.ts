import { describe, expect, it } from "vitest";
import { modelProfile } from "../src/model-profile.ts";

describe("modelProfile", () => {
  it.each([
    ["claude-3-5-sonnet-20241022", "claude", 1.1],
    ["claude-opus-4-20250514", "claude", 1.1],
    ["claude-opus-4-5", "claude", 1.1],
    ["anthropic/claude-opus-4.6", "claude", 1.1],
    ["us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude", 1.1],
    ["claude-haiku-4-5@20251001", "claude", 1.1],
    ["claude-opus-4-7", "claude", 1.43],
    ["claude-opus-4-7[1m]", "claude", 1.43],
    ["anthropic/claude-opus-5", "claude", 1.43],
    ["claude-sonnet-5", "claude", 1.43],
    ["claude-fable-5-1", "claude", 1.43],
    ["gpt-4", "cl100k_base", 1],
    ["gpt-4-0613", "cl100k_base", 1],
    ["gpt-4-turbo", "cl100k_base", 1],
    ["gpt-3.5-turbo", "cl100k_base", 1],
    ["gpt-4.1-mini", "o200k_base", 1],
    ["gpt-4o-2024-08-06", "o200k_base", 1],
    ["o3-mini", "o200k_base", 1],
    ["openai/gpt-5.1-codex", "o200k_base", 1],
    ["gpt-oss:20b", "o200k_base", 1],
    ["models/gemini-2.5-pro", "o200k_base", 1.08],
    ["qwen3:8b", "cl100k_base", 1],
    ["nobody-knows-this-one", "claude", 1.1],
  ])("of %s names %s and the factor %d", (modelId, vocabulary, factor) => {
    const profile = modelProfile({ provider: null, modelId });
    expect(profile).toMatchObject({ vocabulary, factor });
    expect(profile.source).not.toBe("");
  });

  it("is less sure of what it does not know", () => {
    const spread = (modelId: string): number => modelProfile({ provider: null, modelId }).spread;
    expect(spread("nobody-knows-this-one")).toBeGreaterThan(spread("claude-sonnet-5"));
    expect(spread("claude-sonnet-5")).toBeGreaterThan(spread("claude-sonnet-4-5"));
  });
});
