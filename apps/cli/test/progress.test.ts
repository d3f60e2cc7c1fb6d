import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Writable } from "node:stream";
import { afterAll, describe, expect, it } from "vitest";
import { cellWidth } from "../src/cells.ts";
import { createOutput } from "../src/output.ts";
import { foreignFixtures } from "./foreign-fixtures.ts";
import { temporaryDirectory } from "./harness.ts";
import { runInTerminal } from "./terminal.ts";

const directory = temporaryDirectory();
afterAll(() => directory.remove());

/** What was written as progress: each piece takes the place of the one before. */
function progressOf(raw: string): readonly string[] {
  return raw
    .split("\r\u001b[K")
    .slice(1)
    .filter((text) => text !== "");
}

describe("progress", () => {
  it.each([40, 80, 120])("is one row at %i columns, whatever is being done", (columns) => {
    for (const isAscii of [false, true]) expectRows(columns, isAscii);
  });

  function expectRows(columns: number, isAscii: boolean): void {
    let raw = "";
    const write = (chunk: Buffer, _encoding: string, done: () => void): void => {
      raw += chunk.toString("utf8");
      done();
    };
    const stderr = Object.assign(new Writable({ write }), { isTTY: true, columns });
    const stdout = new Writable({ write });
    const output = createOutput(
      { stdout, stderr },
      { isJson: false, isQuiet: false, logLevel: "info", color: "never", isAscii },
    );
    const messages = [`checking /${"long/".repeat(60)}a.jsonl`, `measuring ${"修复登录错误".repeat(20)}`, "a\nb"];
    for (const message of messages) output.progress(message);
    output.clearProgress();
    expect(progressOf(raw).length).toBe(messages.length);
    for (const text of progressOf(raw)) {
      expect(cellWidth(text)).toBeLessThan(columns);
      expect(text).not.toContain("\n");
    }
    expect(progressOf(raw)[0]).toMatch(/^checking .*a\.jsonl$/);
    expect(progressOf(raw)[0]).toContain(isAscii ? "..." : "…");
    expect(raw.includes("…")).toBe(!isAscii);
  }

  it.each([40, 80])("of an import is one row of a terminal with %i columns", async (columns) => {
    const home = join(directory.path, String(columns));
    const source = join(home, ".claude/projects/-home-u-a-project-with-a-long-name-that-nobody-would-type-twice");
    mkdirSync(source, { recursive: true });
    const text = foreignFixtures.find(({ format }) => format === "claude-code")?.stages.at(-1) ?? "";
    const id = (at: number): string => `5e551011-0000-4000-8000-00000000000${at}`;
    for (const at of [1, 2, 3]) writeFileSync(join(source, `${id(at)}.jsonl`), text.replaceAll(id(1), id(at)));
    await using terminal = runInTerminal(home, ["import", ".claude"], { columns });
    expect(await terminal.exitCode()).toBe(0);
    const rows = progressOf(terminal.raw()).filter((row) => row.startsWith("importing "));
    expect(rows.length).toBeGreaterThan(0);
    for (const row of rows) expect(cellWidth(row)).toBeLessThan(columns);
  });
});
