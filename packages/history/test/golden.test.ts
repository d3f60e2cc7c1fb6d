import { describe, expect, it } from "vitest";
import { buildContext, renderAnthropic, validateAnthropic } from "@throughline/history";
import { corpusFolder, readCorpusRecords, readGolden } from "./corpus.ts";

describe.skipIf(corpusFolder === undefined)("real transcripts", () => {
  it.each([
    ["before-compaction", 446],
    ["large-session", 914],
    ["tree-all-types", 7],
  ])("%s gives the roles, model and thinking level three programs agree on [HIS-15, HIS-18]", (name, count) => {
    const context = buildContext(readCorpusRecords(`golden/${name}.v3.jsonl`));
    const golden = readGolden(name);
    expect(context.recordsInContext).toBe(count);
    expect(context.messages.map((message) => message.role)).toEqual(golden.roles);
    expect(context.model).toEqual(golden.model);
    expect(context.thinkingLevel).toBe(golden.thinkingLevel);
    expect(context.findings).toEqual([]);
  });

  it.each(["before-compaction", "large-session", "tree-all-types"])(
    "%s is valid for Anthropic wherever it is cut [HIS-01]",
    (name) => {
      const records = readCorpusRecords(`golden/${name}.v3.jsonl`);
      for (let length = 1; length <= records.length; length++) {
        const { messages } = renderAnthropic(buildContext(records.slice(0, length)));
        if (messages.length > 0) expect(validateAnthropic(messages), `cut after ${length}`).toEqual([]);
      }
    },
  );
});
