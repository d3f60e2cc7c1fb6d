import process from "node:process";
import { describe, expect, it } from "vitest";
import { classifyOverflow } from "@throughline/guard";
import { overflowRules } from "../src/overflow-rules.ts";
import { errorOf, leaveOneProviderOut, readCorpus, recallOf, rowsOfRule } from "./overflow-corpus.ts";

const folder = process.env["THROUGHLINE_CORPUS"];

/** Rules for wordings that no row of the corpus has; `unseen-wordings.ts` has them. */
const withoutRows = ["item-too-long", "bound-of-model"];

describe.skipIf(folder === undefined)("the corpus of provider errors", () => {
  const rows = folder === undefined ? [] : readCorpus(folder);

  it("finds every overflow with its kind, and raises no false alarm [GRD-11, C40]", () => {
    const recall = recallOf("all", rows);
    expect(recall).toMatchObject({ overflows: 77, found: 77, rightKind: 77, lookAlikes: 51, falseAlarms: 0 });
  });

  it("raises no false alarm about the texts alone either", () => {
    const alarms = rows.filter((row) => !row.overflow && classifyOverflow(row.message).overflow);
    expect(alarms.map(({ id }) => id)).toEqual([]);
  });

  it("reads the sizes that the texts state", () => {
    for (const row of rows.filter(({ overflow, tokens, limit }) => overflow && (tokens ?? limit) !== undefined)) {
      const { inputTokens, limitTokens, maxOutputTokens } = classifyOverflow(errorOf(row));
      if (row.tokens !== undefined) expect([row.id, inputTokens]).toEqual([row.id, row.tokens]);
      if (row.limit !== undefined) expect([row.id, limitTokens]).toEqual([row.id, row.limit]);
      if (row.maxTokens !== undefined) expect([row.id, maxOutputTokens]).toEqual([row.id, row.maxTokens]);
    }
  });

  it("still finds nine of ten overflows of a provider whose errors it has never seen", () => {
    const recall = leaveOneProviderOut(rows);
    expect(recall.falseAlarms).toBe(0);
    expect(recall.found / recall.overflows).toBeGreaterThanOrEqual(0.9);
  });

  it("has no rule for a single wording without a reason, and none without any", () => {
    for (const rule of overflowRules) {
      const { length } = rowsOfRule(rule, rows);
      expect([rule.id, length === 1 && rule.because === undefined]).toEqual([rule.id, false]);
      expect([rule.id, length === 0]).toEqual([rule.id, withoutRows.includes(rule.id)]);
    }
  });
});
