import { describe, expect, it } from "vitest";
import { auditSummary } from "@throughline/core/internal";
import { fitSections } from "../src/fit-sections.ts";
import { createExtractiveSummarizer } from "../src/extractive-summarizer.ts";
import { parseSummary } from "../src/parse-summary.ts";
import { emptySections, writeSections } from "../src/summary-sections.ts";

const conversation = `[User]: Please move the parser to src/parse.ts.
  Never use eval, and keep issue #412 in mind.

[Assistant]: I read the file first.

[Assistant calls]: read {"path":"src/index.ts"}

[Tool result read]: export const parse = 1;

[Assistant calls]: write {"path":"src/parse.ts","content":"x"}

[Tool result write]: Wrote "src/parse.ts".

[Assistant calls]: bash {"command":"npm test -- --run"}

[Tool result bash, failed]: 2 tests failed
  TypeError: parse is not a function

[User]: Use the name parseText instead of parse.

[Assistant]: We decided on parseText. I still need to update the README. Shall I also rename the tests?`;

const summarize = async (
  text: string,
  previousSummary: string | null = null,
  maxOutputTokens = 2000,
): Promise<string> =>
  (await createExtractiveSummarizer().summarize({ text, previousSummary, maxOutputTokens })).summary;

describe("the extractive summarizer", () => {
  it("takes requests, decisions, files, commands, failures and what is open, and rewords nothing", async () => {
    const summary = await summarize(conversation);
    expect(parseSummary(summary).sections).toEqual({
      topics: [
        "Please move the parser to src/parse.ts. Never use eval, and keep issue #412 in mind.",
        "Use the name parseText instead of parse.",
      ],
      decisions: [
        "User: Never use eval, and keep issue #412 in mind.",
        "User: Use the name parseText instead of parse.",
        "Assistant: We decided on parseText.",
      ],
      state: [
        "Read: src/index.ts",
        "Changed: src/parse.ts",
        "Ran: npm test -- --run",
        "Failed: 2 tests failed TypeError: parse is not a function",
        "Identifier: #412",
        "The assistant said last: We decided on parseText. I still need to update the README. Shall I also rename the tests?",
      ],
      open: ["The assistant asked: Shall I also rename the tests?", "I still need to update the README."],
    });
    expect(auditSummary(summary, { maxOutputTokens: 2000 })).toBeNull();
    expect(await summarize(conversation)).toBe(summary);
  });

  it("says what was not answered", async () => {
    const summary = await summarize(`${conversation}\n\n[User]: Yes, rename them.`);
    expect(parseSummary(summary).sections.open).toContain("Not answered yet: Yes, rename them.");
  });

  it("builds on the summary before, of its own or of a model, with one place for everything", async () => {
    const first = await summarize(conversation);
    const second = await summarize(
      `[User]: Yes.\n\n[Assistant calls]: edit {"path":"src/index.ts","old_text":"a","new_text":"b"}\n\n[Assistant]: Renamed.`,
      first,
    );
    const { topics, state, open } = parseSummary(second).sections;
    expect(topics).toEqual([...parseSummary(first).sections.topics, "Yes."]);
    expect(state).toContain("Changed: src/index.ts");
    expect(state).not.toContain("Read: src/index.ts");
    expect(state.filter((item) => item.startsWith("The assistant said last"))).toEqual([
      "The assistant said last: Renamed.",
    ]);
    expect(open).toEqual(["I still need to update the README."]);
    const onModel = await summarize(
      "[User]: Go on.",
      "**Key decisions**\n1. Keep the API.\n\nEverything else is done.",
    );
    expect(parseSummary(onModel).sections.decisions).toEqual(expect.arrayContaining(["Keep the API."]));
  });

  it("stays in its room over fifty summaries, and never loses the first request nor the newest", async () => {
    let summary: string | null = null;
    for (let turn = 0; turn < 50; turn++) {
      const text = `[User]: Request number ${turn}: change src/file-${turn}.ts and never touch src/kept-${turn}.ts.\n\n[Assistant calls]: edit {"path":"src/file-${turn}.ts"}\n\n[Assistant]: Done with ${turn}.`;
      summary = await summarize(text, summary, 400);
      expect(Math.ceil(summary.length / 4)).toBeLessThanOrEqual(400);
      expect(summary).toContain("Request number 0:");
      expect(summary).toContain(`Request number ${turn}:`);
      expect(summary).toContain(`Changed: src/file-${turn}.ts`);
      expect(auditSummary(summary, { maxOutputTokens: 400 })).toBeNull();
    }
    expect(summary).toMatch(/\(\d+ more, left out\)/);
  });

  it("takes any text, and says when there is nothing to take", async () => {
    expect(await summarize("just some words without a label")).toContain("just some words without a label");
    await expect(summarize("")).rejects.toMatchObject({ code: "SUMMARY_REJECTED", details: { problem: "empty" } });
    await expect(summarize(" \n ", "")).rejects.toMatchObject({ code: "SUMMARY_REJECTED" });
  });

  it.each([10_000, 20_000, 40_000])(
    "counts each of %i records a fixed number of times",
    { tags: ["slow"] },
    async (records) => {
      let counted = 0;
      const countText = (text: string): number => {
        counted += text.length;
        return Math.ceil(text.length / 4);
      };
      const text = Array.from(
        { length: records / 2 },
        (_, index) => `[User]: Look at part ${index} of it.\n\n[Assistant]: We decided on number ${index} there.`,
      ).join("\n\n");
      const { summary } = await createExtractiveSummarizer({ countText }).summarize({
        text,
        previousSummary: null,
        maxOutputTokens: 2000,
      });
      expect(parseSummary(summary).sections.topics.slice(0, 2)).toEqual([
        "Look at part 0 of it.",
        expect.stringMatching(/^\(\d+ more, left out\)$/),
      ]);
      expect(counted).toBeLessThan(text.length * 4 + 500_000);
    },
  );

  it("leaves out as few items as have to be", () => {
    const countText = (text: string): number => text.length;
    const decisions = Array.from({ length: 200 }, (_, index) => `User: We decided on number ${index}.`);
    const textOf = (count: number): string =>
      writeSections({
        ...emptySections(),
        decisions: [`(${200 - count} more, left out)`, ...decisions.slice(200 - count)],
      });
    for (let count = 1; count < 200; count++) {
      const fitted = fitSections({ ...emptySections(), decisions }, textOf(count).length + 0.5, countText);
      expect(writeSections(fitted)).toBe(textOf(count));
    }
  });
});
