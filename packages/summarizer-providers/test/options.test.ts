import { describe, expect, it } from "vitest";
import { describeWrongValues, type CheckedValues } from "@throughline/test-kit/options";
import { offline } from "@throughline/models/offline";
import {
  createChatSummarizer,
  createExtractiveSummarizer,
  createSummarizerBreakers,
  createSummarizerChain,
} from "@throughline/summarizer-providers";

/** Of each option a value of another type or out of range. */
const calls: readonly CheckedValues[] = [
  {
    name: "createChatSummarizer",
    needed: { model: offline() },
    wrong: {
      model: [5, "claude-opus-5", null],
      name: ["", 5],
      style: ["prose"],
      deadlineMs: [0, "1"],
      countText: [5],
      isOverflow: [true],
      messageChars: [0],
      toolResults: ["all"],
      clock: [{}],
    },
    call: (options) => createChatSummarizer(options),
  },
  {
    name: "createExtractiveSummarizer",
    wrong: { name: [""], countText: [5] },
    call: (options) => createExtractiveSummarizer(options),
  },
  {
    name: "createSummarizerChain",
    needed: { summarizers: [] },
    wrong: {
      summarizers: [5, [{}], [{ name: "a", summarizer: {} }]],
      breakers: [{}],
      onFailed: [5],
      countText: [5],
    },
    call: (options) => createSummarizerChain(options),
  },
  {
    name: "createSummarizerBreakers",
    wrong: { threshold: [0, "3"], resetMs: [-1, "1"], onChange: [5], clock: [{}] },
    call: (options) => createSummarizerBreakers(options),
  },
];

describeWrongValues(calls);

describe("the model of a summarizer", () => {
  it.each([
    [{ chat: offline().chat }, "modelId"],
    [{ modelId: "m" }, "chat"],
    [{ chat: {}, modelId: "m" }, "chat"],
    [{ ...offline(), windowTokens: "9000" }, "windowTokens"],
  ])("is refused where it is none: %j", (model, argument) => {
    expect(() => createChatSummarizer({ model: model as never })).toThrow(
      expect.objectContaining({ code: "INPUT_INVALID", details: expect.objectContaining({ argument }) as object }),
    );
  });
});
