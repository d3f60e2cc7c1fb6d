import { describe, expect, it } from "vitest";
import { offline } from "@throughline/models/offline";
import {
  createChatSummarizer,
  createExtractiveSummarizer,
  createSummarizerBreakers,
  createSummarizerChain,
} from "@throughline/summarizer-providers";

/** Options that are no object go as they are. */
const beside = (needed: object, options: object): never =>
  (typeof options === "object" && options !== null && !Array.isArray(options)
    ? { ...needed, ...options }
    : options) as never;

type Make = (options: object) => unknown;
type Wrong = Readonly<Record<string, readonly unknown[]>>;

/** Of each option a value of another type or out of range. */
const factories: readonly (readonly [string, Make, Wrong])[] = [
  [
    "createChatSummarizer",
    (options) => createChatSummarizer(beside({ model: offline() }, options)),
    {
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
  ],
  ["createExtractiveSummarizer", (options) => createExtractiveSummarizer(options), { name: [""], countText: [5] }],
  [
    "createSummarizerChain",
    (options) => createSummarizerChain(beside({ summarizers: [] }, options)),
    {
      summarizers: [5, [{}], [{ name: "a", summarizer: {} }]],
      breakers: [{}],
      onFailed: [5],
      countText: [5],
    },
  ],
  [
    "createSummarizerBreakers",
    (options) => createSummarizerBreakers(options),
    { threshold: [0, "3"], resetMs: [-1, "1"], onChange: [5], clock: [{}] },
  ],
];

describe.each(factories)("%s()", (name, make, wrong) => {
  it.each(Object.entries(wrong).flatMap(([option, values]) => values.map((value) => [option, value] as const)))(
    "refuses `%s`: %j",
    (option, value) => {
      expect(() => make({ [option]: value })).toThrow(
        expect.objectContaining({
          code: "INPUT_INVALID",
          message: expect.stringMatching(new RegExp(`^${name}\\(\\): \`${option}[^\`]*\` must be `)) as string,
        }),
      );
    },
  );

  it.each(Object.keys(wrong))("names the option that a misspelling of `%s` means", (option) => {
    const misspelt = `${option}s`;
    expect(() => make({ [misspelt]: 1 })).toThrow(`${name}(): \`${misspelt}\` is not an option; did you mean`);
  });

  it("refuses options that are no object", () => {
    for (const options of [5, "text", null, []])
      expect(() => make(options as never)).toThrow(expect.objectContaining({ code: "INPUT_INVALID" }));
  });
});

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
