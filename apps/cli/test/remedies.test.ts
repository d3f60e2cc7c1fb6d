import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { errorCodes, findingCodes } from "@throughline/core/internal";
import { afterAll, describe, expect, it } from "vitest";
import { commandTable } from "../src/command-table.ts";
import { createProgram } from "../src/program.ts";
import { version } from "../src/version.ts";
import { filledRemedy, remedyKey } from "./filled-remedy.ts";
import { runHere, seed, temporaryDirectory, user } from "./harness.ts";

const directory = temporaryDirectory();
afterAll(() => directory.remove());
const root = join(import.meta.dirname, "../../..");

/** The words of a printed command, with a value in the place of every part that varies. */
function wordsOf(command: string): readonly string[] {
  return command
    .replaceAll(/(?<=[a-z])\$\{[^}]*\}/g, "")
    .replaceAll(/--to \$\{[^}]*\}/g, "--to jsonl")
    .replaceAll(/\$\{[^}]*\}/g, "value")
    .replaceAll("\\", "")
    .replace(/ >> .*$/, "")
    .split(/\s+/)
    .slice(1);
}

const remedies = Object.entries({ ...errorCodes, ...findingCodes }).flatMap(([code, { remedy }]) =>
  Array.from(remedy.matchAll(/`(throughline [^`]+)`/g), ([, command = ""]) => [code, command] as const),
);

describe("a remedy", () => {
  it.each(remedies)("of %s works as it is printed: %s", async (_code, command) => {
    await seed(directory.path, [{ key: remedyKey, drafts: [user("one")] }]).catch(() => {});
    const args = wordsOf(filledRemedy(command, directory.path));
    const { code, stderr } = await runHere(directory.path, args);
    expect([code, stderr]).toEqual([0, expect.not.stringContaining("error:")]);
  });
});

/** The commands that a source prints, without those whose own name varies. */
function printedCommands(): readonly string[] {
  const folders = ["packages", "apps"]
    .flatMap((folder) => readdirSync(join(root, folder)).map((name) => join(root, folder, name, "src")))
    .filter((folder) => existsSync(folder));
  const sources = folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((path) => path.endsWith(".ts"))
      .map((path) => readFileSync(join(folder, path), "utf8")),
  );
  const commands = sources.flatMap((text) =>
    Array.from(text.matchAll(/\\?`(throughline [a-z][^`]*?)\\?`/g), ([, command = ""]) => command),
  );
  // A value with a text in it ends the match early: what is left of it is no command.
  return [...new Set(commands)].filter(
    (command) => (command.match(/\$\{/g) ?? []).length === (command.match(/\}/g) ?? []).length,
  );
}

describe("a command that a source prints", () => {
  const program = createProgram({
    version,
    commands: commandTable,
    onCommand: () => {},
    writeOut: () => {},
    columns: 80,
  });
  const commands = printedCommands();

  it("is found by this test", () => {
    expect(commands.length).toBeGreaterThan(25);
    expect(commands).toContain("throughline doctor --repair");
  });

  it.each(commands)("exists with its options: %s", (command) => {
    const [name = "", ...rest] = wordsOf(command);
    expect(commandTable.map((each) => each.name)).toContain(name);
    // A text may name a command without its arguments.
    if (rest.length > 0) expect(() => program.parse([...wordsOf(command)], { from: "user" })).not.toThrow();
  });
});
