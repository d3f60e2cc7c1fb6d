import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createProviderSimulator } from "../src/provider-simulator.ts";
import type { ProviderSimulator } from "../src/simulator-options.ts";
import type { SimulatedApi } from "../src/wire-adapter.ts";
import { anthropicBlockCases, anthropicMessageCases, anthropicToolCases } from "./anthropic-cases.ts";
import { ollamaCases } from "./ollama-cases.ts";
import {
  anthropicOutputCases,
  ollamaOutputCases,
  openAiChatOutputCases,
  openAiResponsesOutputCases,
} from "./output-cases.ts";
import { openAiChatCases, openAiResponsesCases } from "./openai-cases.ts";
import { anthropicShapeCases, openAiChatShapeCases, openAiResponsesShapeCases } from "./shape-cases.ts";
import { errorText, post } from "./refusal-case.ts";
import type { RefusalCase } from "./refusal-case.ts";

const tables: readonly (readonly [SimulatedApi, readonly RefusalCase[]])[] = [
  ["anthropic", anthropicMessageCases],
  ["anthropic", anthropicBlockCases],
  ["anthropic", anthropicToolCases],
  ["openai-chat", openAiChatCases],
  ["openai-responses", openAiResponsesCases],
  ["ollama", ollamaCases],
  ["anthropic", anthropicShapeCases],
  ["openai-chat", openAiChatShapeCases],
  ["openai-responses", openAiResponsesShapeCases],
  ["anthropic", anthropicOutputCases],
  ["openai-chat", openAiChatOutputCases],
  ["openai-responses", openAiResponsesOutputCases],
  ["ollama", ollamaOutputCases],
];

describe("invalid requests", () => {
  let simulator: ProviderSimulator;

  beforeAll(async () => {
    simulator = createProviderSimulator({
      fallback: () => "Yes.",
      models: { "*": { windowTokens: 1_000_000 }, plain: { capabilities: ["completion"] } },
    });
    await simulator.start();
  });

  afterAll(() => simulator.close());

  for (const [api, cases] of tables)
    it.each(cases.map((one) => [one.title, one] as const))(`${api}: %s`, async (_title, one) => {
      const before = simulator.refusals.length;
      const refused = await post(simulator.url, api, one.bad, one.headers);
      expect(await errorText(refused)).toBe(one.says);
      expect(refused.status).toBe(one.status ?? 400);
      expect(simulator.refusals.slice(before)).toEqual([
        { request: simulator.requests.length, api, kind: "invalid", status: one.status ?? 400, message: one.says },
      ]);
      const corrected = await post(simulator.url, api, one.good, { ...one.headers, ...one.goodHeaders });
      expect(await corrected.text()).toContain("Yes.");
      expect(corrected.status).toBe(200);
      expect(simulator.refusals).toHaveLength(before + 1);
    });

  it("holds enough cases", () => {
    const cases = tables.flatMap(([, list]) => list);
    expect(cases.length).toBeGreaterThanOrEqual(60);
    expect(new Set(tables.flatMap(([api, list]) => list.map(({ title }) => `${api} ${title}`))).size).toBe(
      cases.length,
    );
  });
});
