import { describe, expect, it } from "vitest";
import { buildContext } from "@throughline/history";
import { corpusFolder, readCorpusRecords, readGolden } from "./corpus.ts";

describe.skipIf(corpusFolder === undefined)("what three programs agree on", () => {
  it.each([
    ["before-compaction", 446],
    ["large-session", 914],
    ["tree-all-types", 7],
  ])("%s gives the same roles, model and thinking level [HIS-18, HIS-15]", (name, count) => {
    const context = buildContext(readCorpusRecords(`golden/${name}.v3.jsonl`));
    const golden = readGolden(name);
    expect(context.recordsInContext).toBe(count);
    expect(context.messages.map((message) => message.role)).toEqual(golden.roles);
    expect(context.model).toEqual(golden.model);
    expect(context.thinkingLevel).toBe(golden.thinkingLevel);
    expect(context.findings).toEqual([]);
  });
});
