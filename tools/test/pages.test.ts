import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { compactionSettings } from "../../packages/compaction/src/settings.ts";
import { errorCodes } from "../../packages/core/src/error-codes.ts";
import { findingCodes } from "../../packages/core/src/finding.ts";
import { memoryFlushSettings } from "../../packages/compaction/src/memory-flush/settings.ts";
import { repositoryRoot } from "../find-files.ts";

function page(name: string): string {
  return readFileSync(join(repositoryRoot, "docs", name), "utf8");
}

/** The cells of the table rows of a text, without the heads. */
function rows(text: string): readonly (readonly string[])[] {
  return text
    .split("\n")
    .filter((line) => line.startsWith("| ") && !line.startsWith("| ---"))
    .map((line) =>
      line
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
}

function defaultOf(
  fragment: { readonly fields: readonly { readonly key: string; readonly default?: unknown }[] },
  key: string,
): unknown {
  return fragment.fields.find((field) => field.key === key)?.default;
}

describe("docs/troubleshooting.md", () => {
  it("names every error and every finding, and none that is not", () => {
    const named = new Set(
      Array.from(page("troubleshooting.md").matchAll(/`([A-Z]+(?:_[A-Z]+)*)`/g), (match) => match[1]),
    );
    named.delete("THROUGHLINE_HOME");
    expect([...named].toSorted()).toEqual(
      [...new Set([...Object.keys(errorCodes), ...Object.keys(findingCodes)])].toSorted(),
    );
  });

  it("stands beside a configuration reference and a page on the architecture", () => {
    const links = Array.from(page("troubleshooting.md").matchAll(/\]\(([^)#]+)\)/g), (match) => match[1] ?? "");
    expect(links).toEqual(expect.arrayContaining(["configuration.md", "errors.md"]));
    for (const link of links) expect([link, existsSync(join(repositoryRoot, "docs", link))]).toEqual([link, true]);
    // config-reference.test.ts holds the reference to the schema, key by key.
    expect(readFileSync(join(repositoryRoot, "ARCHITECTURE.md"), "utf8").length).toBeGreaterThan(1000);
    expect(rows(page("troubleshooting.md")).filter((cells) => cells.length !== 3 || cells.includes(""))).toEqual([]);
  });
});

describe("docs/parity.md", () => {
  it(
    "compares storage, replay, overflow, compaction and estimation with OpenClaw, with the figures of the code",
    { tags: ["slow"] },
    () => {
      const compared = new Map(
        rows(page("parity.md").split("\n## ")[0] ?? "").map(([what = "", theirs = "", ours = ""]) => [
          what,
          { theirs, ours },
        ]),
      );
      for (const what of ["Storage format", "Replay", "Overflow handling", "Compaction", "Token estimation"])
        expect([what, compared.get(what)?.theirs, compared.get(what)?.ours]).not.toContain("");
      const figure = (value: unknown): string => Number(value).toLocaleString("en-US");
      const compaction = compared.get("Compaction")?.ours ?? "";
      expect(compaction).toContain(`reserve of ${figure(defaultOf(compactionSettings, "reserveTokens"))}`);
      expect(compaction).toContain(`at least ${figure(defaultOf(compactionSettings, "reserveFloorTokens"))}`);
      const thresholds = defaultOf(memoryFlushSettings, "thresholds") as readonly { readonly percent: number }[];
      const percents = thresholds.map(({ percent }) => String(percent));
      expect(compared.get("Memory flush")?.ours).toContain(
        `${percents.slice(0, -1).join(", ")} and ${percents.at(-1)} %`,
      );
    },
  );
});

describe("docs/checkpoints-and-memory.md", () => {
  it("tells a checkpoint from memory files in a table", () => {
    const [head = [], ...body] = rows(page("checkpoints-and-memory.md"));
    const [checkpoint, memory] = [head.indexOf("Checkpoint"), head.indexOf("Memory files")];
    expect(Math.min(checkpoint, memory)).toBeGreaterThan(0);
    for (const about of ["Content", "Written by", "Lives as long as", "Stored in"]) {
      const cells = body.find(([what]) => what === about) ?? [];
      expect([about, cells[checkpoint] === cells[memory], (cells[checkpoint] ?? "") !== ""]).toEqual([
        about,
        false,
        true,
      ]);
    }
    expect(page("checkpoints-and-memory.md")).toContain("memory/YYYY-MM-DD.md");
  });
});
