import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { errorCodes, findingCodes } from "@throughline/core/internal";
import { describe, expect, it } from "vitest";
import { commandTable } from "../src/command-table.ts";
import { globalOptions } from "../src/program.ts";
import { objects, runHere } from "./harness.ts";

const root = join(import.meta.dirname, "../../..");

function sourcesBelow(folder: string): readonly string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return ["node_modules", "dist", "test"].includes(entry.name) ? [] : sourcesBelow(path);
    return entry.name.endsWith(".ts") ? [path] : [];
  });
}

/** Every command line that a text prints for people: between backticks, or after a colon. */
function namedCommands(text: string): readonly string[] {
  return [...text.matchAll(/(?:\\?`|: )throughline ((?:__)?[a-z][a-z-]*(?: [^`"\n\\]*)?)/g)].map(
    ([, line = ""]) => line,
  );
}

/** What is wrong with a command line, placeholders aside; null: it is one. */
function problemOf(line: string): string | null {
  const [name = ""] = line.split(" ");
  const definition = commandTable.find((one) => one.name === name);
  if (name === "help") return null;
  if (definition === undefined) return `no command ${name}`;
  const flags = [...globalOptions, ...definition.options].flatMap(({ flags: text }) => text.split(/[ ,]+/));
  const unknown = [...line.matchAll(/(?<=\s)--[a-z][a-z-]*/g)].find(([flag]) => !flags.includes(flag));
  return unknown === undefined ? null : `${name} has no ${unknown[0]}`;
}

describe("commands that messages name", () => {
  it("exist, with the options they are named with, in every table and source", () => {
    const texts = ["apps", "packages"]
      .flatMap((folder) => sourcesBelow(join(root, folder)))
      .map((path) => [path.slice(root.length), readFileSync(path, "utf8")] as const);
    const named = texts.flatMap(([path, text]) => namedCommands(text).map((line) => ({ path, line })));
    const wrong = named.map(({ path, line }) => ({ path, line, problem: problemOf(line) }));
    expect(wrong.filter(({ problem }) => problem !== null)).toEqual([]);
    expect(named.length).toBeGreaterThan(20);
  });

  it("stand in the remedy of each error and finding, which is never empty", () => {
    for (const [code, { remedy }] of [...Object.entries(errorCodes), ...Object.entries(findingCodes)]) {
      expect(remedy.trim(), code).not.toBe("");
      expect(remedy, code).toMatch(/[.]$/);
      for (const line of namedCommands(remedy)) expect(problemOf(line), code).toBeNull();
    }
  });
});

describe("a command that the command itself advises", () => {
  it("stays in the remedy when it has arguments, and its words are quoted for a shell", async () => {
    const home = mkdtempSync(join(tmpdir(), "throughline-named-"));
    const path = join(home, "it's a talk.jsonl");
    const line = (content: string): string => `${JSON.stringify({ type: "user", content, ts: 1 })}\n`;
    writeFileSync(path, line("one"));
    expect((await runHere(home, ["import", path, "--key", "talk"])).code).toBe(0);
    writeFileSync(path, line("another"));
    const { stderr } = await runHere(home, ["import", path, "--key", "talk", "--json"]);
    const { code, remedy } = objects(stderr).at(-1) ?? {};
    expect(code).toBe("SOURCE_CHANGED");
    const [, command = ""] = /`throughline ([^`]+)`/.exec(String(remedy)) ?? [];
    const words = spawnSync("sh", ["-c", `printf '%s\\n' ${command.replace("KEY", "second")}`], { encoding: "utf8" });
    expect((await runHere(home, words.stdout.trimEnd().split("\n"))).code).toBe(0);
    rmSync(home, { recursive: true });
  });

  it("gives back what was imported of a file that was cut since", async () => {
    const home = mkdtempSync(join(tmpdir(), "throughline-named-"));
    const path = join(home, "talk.jsonl");
    const text = ["one", "two"].map((content) => `${JSON.stringify({ type: "user", content, ts: 1 })}\n`).join("");
    writeFileSync(path, text);
    expect((await runHere(home, ["import", path, "--key", "talk"])).code).toBe(0);
    writeFileSync(path, text.slice(0, 40));
    const { stderr } = await runHere(home, ["import", path, "--key", "talk", "--json"]);
    const { code, message, remedy } = objects(stderr).at(-1) ?? {};
    expect(code).toBe("SOURCE_CHANGED");
    expect(message).toBe(`${JSON.stringify(path)} has 40 bytes now; ${text.length} bytes of it were imported before.`);
    const [, command = ""] = /`throughline ([^`]+)`/.exec(String(remedy)) ?? [];
    expect((await runHere(home, command.split(" "))).code).toBe(0);
    expect(readFileSync(`${path}.imported`, "utf8")).toBe(text);
    rmSync(home, { recursive: true });
  });
});
