import { describe, expect, it } from "vitest";
import { buildContext } from "@throughline/history";
import { historyTargets } from "../src/history-targets.ts";
import { corpusFolder, readCorpusRecords, readGolden } from "./corpus.ts";
import { corpusTranscripts, violationsOf } from "./corpus-cuts.ts";

describe.skipIf(corpusFolder === undefined)("real transcripts", () => {
  it.each([
    ["before-compaction", 446],
    ["large-session", 914],
    ["tree-all-types", 7],
  ])("%s gives the roles, model and thinking level three programs agree on", (name, count) => {
    const context = buildContext(readCorpusRecords(`golden/${name}.v3.jsonl`));
    const golden = readGolden(name);
    expect(context.recordsInContext).toBe(count);
    expect(context.messages.map((message) => message.role)).toEqual(golden.roles);
    expect(context.model).toEqual(golden.model);
    expect(context.thinkingLevel).toBe(golden.thinkingLevel);
    expect(context.findings).toEqual([]);
  });

  it.each([...historyTargets.keys()])(
    "are valid for %s wherever they are cut",
    (name) => {
      for (const path of corpusTranscripts()) expect(violationsOf(name, readCorpusRecords(path)), path).toEqual([]);
    },
    1_200_000,
  );
});
