import { buildContext, createHistory } from "@throughline/history";
import { limitContext } from "../src/limit-context.ts";
import { truncateResults } from "../src/truncate-results.ts";
import { renderAnthropic } from "@throughline/history/anthropic";
import { renderBedrock } from "@throughline/history/bedrock";
import { renderGemini } from "@throughline/history/gemini";
import { renderMistral } from "@throughline/history/mistral";
import { renderOllama } from "@throughline/history/ollama";
import { renderOpenAiChat, renderOpenAiResponses } from "@throughline/history/openai";
import { describe, expect, it } from "vitest";

/** What plain JavaScript may hand over. */
type Loose = (...args: readonly unknown[]) => unknown;

const renderings = {
  renderAnthropic,
  renderOpenAiChat,
  renderOpenAiResponses,
  renderOllama,
  renderGemini,
  renderMistral,
  renderBedrock,
} as Readonly<Record<string, Loose>>;

const refusal = (message: string): unknown =>
  expect.objectContaining({ code: "INPUT_INVALID", message: expect.stringContaining(message) as string });

describe("options of history", () => {
  it.each(Object.entries(renderings))("%s names what it does not know", (name, render) => {
    const context = buildContext([]);
    expect(() => render(context, { sytem: "x" })).toThrow(
      refusal(`${name}(): \`sytem\` is not an option; did you mean \`system\`?`),
    );
    expect(() => render(context, { media: "none" })).toThrow(
      refusal('`media` must be one of "carry", "marker"; received "none".'),
    );
    expect(() => render(context, { target: { provider: "a" } })).toThrow(refusal("`target` must be an object with"));
    expect(() => render(context, { carryBlocks: ["compaction"] })).toThrow(refusal("`carryBlocks` must be a Set"));
    const renderForDevelopers = (): unknown => render(context, { systemRole: "developer" });
    if (name === "renderOpenAiChat") expect(renderForDevelopers).not.toThrow();
    else expect(renderForDevelopers).toThrow(refusal("`systemRole` is not an option"));
  });

  it.each([
    [{ limit: { maxToken: 5 } }, "`limit.maxToken` is not an option; did you mean `limit.maxTokens`?"],
    [{ limit: { keepShare: 2 } }, "`limit.keepShare` must be a number from 0 to 1; received 2."],
    [{ truncate: { maxChars: "5" } }, '`truncate.maxChars` must be a number from 0 on; received "5".'],
    [{ systemRole: "developer" }, "`systemRole` is not an option"],
    [5, "`options` must be an object; received 5."],
  ])("createHistory refuses %j", (options, message) => {
    expect(() => (createHistory as Loose)("anthropic", options)).toThrow(refusal(`createHistory(): ${message}`));
  });

  it("later limits and those of a context are looked at, too", () => {
    const history = createHistory("anthropic");
    expect(() => (history.setWindow as Loose)({ limits: {} })).toThrow(refusal("did you mean `limit`?"));
    expect(() => (limitContext as Loose)(buildContext([]), { maxMessages: -1 })).toThrow(refusal("`maxMessages`"));
    expect(() => (truncateResults as Loose)(buildContext([]), { maxChar: 5 })).toThrow(refusal("`maxChars`"));
  });
});
