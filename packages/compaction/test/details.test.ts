import { describe, expect, it } from "vitest";
import { proseOf } from "@throughline/core/internal";
import type { NeutralBlock, NeutralMessage } from "@throughline/history/internal";
import { extractDetails } from "../src/extract-details.ts";
import { readCompactionDetails } from "../src/compaction-details.ts";
import { summaryText } from "../src/summary-text.ts";

let seq = 0;
function message(
  role: "user" | "assistant",
  text: string,
  calls: readonly (readonly [string, Record<string, unknown>])[] = [],
): NeutralMessage {
  seq++;
  const blocks: NeutralBlock[] = [{ type: "text", text }];
  for (const [name, args] of calls) blocks.push({ type: "toolCall", id: `c${seq}`, name, arguments: args });
  const base = { recordId: `r${seq}`, seq, tsMs: null, isPrefixChanged: false, content: blocks };
  if (role === "user") return { role, ...base };
  const nothing = {
    api: null,
    provider: null,
    model: null,
    stopReason: null,
    errorMessage: null,
    responseId: null,
    usage: null,
  };
  return { role, ...base, ...nothing, isFragment: false };
}

/** A token a word: what a test can follow. */
const countText = (text: string): number => text.split(/[\s,]+/).filter(Boolean).length;

describe("details", () => {
  it("are found by their form: files, names, commands, ids, values, wishes, the first request", () => {
    const details = extractDetails([
      message("user", 'Port the parser to `parseLine`, but never change "lib/legacy.js". Use port localhost:5432.'),
      message("assistant", "I will look at readWindow().", [
        ["read", { path: "src/parse-line.ts" }],
        ["edit", { path: "src/new-parser.ts", oldText: "a", newText: "export function splitFields() {}" }],
        ["bash", { command: "pnpm vitest run packages/history\necho done" }],
      ]),
      message("user", "Ticket ABC-123, commit 04d3d1f, see https://example.org/a?b=1, version 1.2.3."),
    ]);
    expect(details.modifiedFiles).toEqual(["src/new-parser.ts"]);
    expect(details.readFiles).toEqual(["src/parse-line.ts"]);
    expect(details.paths).toContain("lib/legacy.js");
    for (const name of ["parseLine", "readWindow", "splitFields"]) expect(details.symbols).toContain(name);
    expect(details.commands).toEqual(["pnpm vitest run packages/history"]);
    for (const id of ["ABC-123", "04d3d1f", "https://example.org/a?b=1", "1.2.3", "localhost:5432"]) {
      expect(details.identifiers).toContain(id);
    }
    for (const value of ["parseLine", "lib/legacy.js"]) expect(details.quoted).toContain(value);
    expect(details.constraints[0]).toContain("never change");
    expect(details.firstRequest).toMatch(/^Port the parser/);
  });

  it("go on from one compaction to the next, and what was changed stays changed", () => {
    const first = extractDetails([
      message("user", "Start."),
      message("assistant", "ok", [["write", { path: "src/old.ts" }]]),
    ]);
    const next = extractDetails(
      [message("user", "Go on."), message("assistant", "ok", [["read", { path: "src/new.ts" }]])],
      {
        previous: first,
      },
    );
    expect(next.paths).toEqual(["src/new.ts", "src/old.ts"]);
    expect([next.modifiedFiles, next.readFiles]).toEqual([["src/old.ts"], ["src/new.ts"]]);
    expect(next.firstRequest).toBe("Start.");
  });

  it("never take more than their tokens, heading included, and leave out what is seen anyway", () => {
    const many = Array.from({ length: 200 }, (_, index) =>
      message("assistant", `someName${index}Here`, [["read", { path: `packages/p${index % 7}/src/file-${index}.ts` }]]),
    );
    const details = extractDetails([message("user", "You must never stop."), ...many]);
    for (const maxDetailTokens of [0, 10, 60, 350]) {
      const text = summaryText({ prose: "They worked.", details, maxDetailTokens, countText });
      expect(countText(text) - countText("They worked.")).toBeLessThanOrEqual(maxDetailTokens);
      expect(proseOf(text)).toBe("They worked.");
    }
    const visibleText = "file-199.ts is at src/file-199.ts; someName199Here";
    const text = summaryText({ prose: "They worked.", details, maxDetailTokens: 350, countText, visibleText });
    expect(text).not.toContain("file-199.ts");
    expect(text).toContain("src/file-198.ts");
    expect(text).toContain("must never stop");
  });

  it("of other programs and of newer versions are not read", () => {
    expect(readCompactionDetails({ readFiles: ["a"], modifiedFiles: [] })).toBeNull();
    expect(readCompactionDetails(null)).toBeNull();
    expect(readCompactionDetails({ v: 2 })).toBeNull();
  });
});
