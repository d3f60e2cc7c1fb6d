import { execFile } from "node:child_process";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { commandTable } from "../src/command-table.ts";
import { replCommands } from "../src/chat/repl-commands.ts";
import { createProgram, globalOptions } from "../src/program.ts";
import { version } from "../src/version.ts";
import {
  assistant,
  binPath,
  cleanEnvironment,
  runHere,
  seed,
  sourceCondition,
  temporaryDirectory,
  user,
} from "./harness.ts";

const packageRoot = join(import.meta.dirname, "..");
const reference = readFileSync(join(packageRoot, "../../docs/cli.md"), "utf8");

/** The text below a heading, up to the next one of the same or a higher level. */
function section(heading: string): string {
  const level = /^#+/.exec(heading)?.[0].length ?? 0;
  const [, rest] = reference.split(`\n${heading}\n`);
  if (rest === undefined) return "";
  const end = rest.search(new RegExp(`^#{1,${level}} `, "m"));
  return end < 0 ? rest : rest.slice(0, end);
}

/** The first cell of each row of the tables in a text, without code marks. */
function firstCells(text: string): string[] {
  return Array.from(text.matchAll(/^\| `([^`]+)` \|/gm), (match) => match[1] ?? "");
}

const visible = commandTable.filter(({ isHidden }) => isHidden !== true);
const program = createProgram({
  version,
  commands: commandTable,
  onCommand: () => {},
  writeOut: () => {},
  columns: 100,
});

describe("docs/cli.md", () => {
  it.each(visible.map(({ name }) => name))("has the options of %s, all of them and no others", (name) => {
    const text = section(`### ${name}`);
    expect(text.trim()).not.toBe("");
    const options =
      program.commands.find((command) => command.name() === name)?.options.filter(({ hidden }) => !hidden) ?? [];
    // Beside its options `chat` has a table of what can be typed in it.
    expect(
      firstCells(text)
        .filter((cell) => cell.startsWith("-"))
        .toSorted(),
    ).toEqual(options.map(({ flags }) => flags).toSorted());
  });

  it("has the global options and no command that is not there", () => {
    const flags = [...globalOptions.map((option) => option.flags), "--version"];
    expect(firstCells(section("## Global options")).toSorted()).toEqual(flags.toSorted());
    const headings = Array.from(section("## Commands").matchAll(/^### (.+)$/gm), (match) => match[1]);
    expect(headings.toSorted()).toEqual(visible.map(({ name }) => name).toSorted());
  });
});

describe("help in a conversation", () => {
  it("lists what docs/cli.md lists", () => {
    const words = (texts: readonly string[]): readonly string[] =>
      texts.flatMap((text) => Array.from(text.matchAll(/\/[a-z]+/g), ([word]) => word)).toSorted();
    const rows = section("### chat")
      .split("\n")
      .filter((line) => line.startsWith("| `/"));
    expect(words(rows.map((row) => row.split("|")[1] ?? ""))).toEqual(words(replCommands.map(({ usage }) => usage)));
  });
});

describe("help", () => {
  it("does not speak of commands that are not there", () => {
    const help = program.helpInformation();
    for (const name of ["inspect", "__complete"]) expect(help).not.toContain(name);
  });

  it("has no line over the width of a narrow terminal", () => {
    const narrow = createProgram({
      version: "1",
      commands: commandTable,
      onCommand: () => {},
      writeOut: () => {},
      columns: 40,
    });
    expect(
      narrow
        .helpInformation()
        .split("\n")
        .filter((line) => line.length > 40 && line.trim().includes(" ")),
    ).toEqual([]);
  });

  it("begins with five commands, in the first rows of a screen, and puts the others into the groups of the page", async () => {
    const { stdout } = await runHere(".", ["--help"], { isTerminal: true });
    const rows = stdout.split("\n");
    const screen = rows.slice(0, 23).join("\n");
    for (const name of ["chat", "sessions", "search", "import", "show"])
      expect(screen).toMatch(new RegExp(`^  ${name} `, "m"));
    const groups = rows.filter((row) => /^[A-Z][a-z ]+:$/.test(row)).map((row) => row.slice(0, -1));
    expect(groups.at(-1)).toBe("Options of every command");
    const page = Array.from(reference.matchAll(/^- ([A-Z][a-z ]+): (\[[^]*?)\.$/gm), ([, title = "", names = ""]) => [
      title,
      names,
    ]);
    expect(groups.slice(0, -1)).toEqual(page.map(([title]) => title));
    for (const [title, names = ""] of page)
      expect(Array.from(names.matchAll(/\[([a-z-]+)\]/g), ([, name]) => name)).toEqual(
        visible.filter(({ group }) => group === title).map(({ name }) => name),
      );
  });

  it("knows the version of the package", () => {
    const { version: stated } = JSON.parse(readFileSync(join(packageRoot, "package.json"), "utf8")) as {
      version: string;
    };
    expect(version).toBe(stated);
  });
});

describe("the examples of the help", () => {
  const filled = temporaryDirectory();
  let directory = filled;

  /** What the examples speak of. */
  beforeAll(async () => {
    const home = filled.path;
    const second = "agent:main:cli:direct:second";
    await seed(home, [
      { key: "notes", entry: { label: "Notes" }, drafts: [user("the harbour lights"), assistant("are lit")] },
      { key: "archived", entry: { sessionId: "id-archived" }, drafts: [user("old")] },
      { key: "archived-2", entry: { sessionId: "id-archived-2" }, drafts: [user("older")] },
      { key: second, drafts: [user("second")] },
      { key: "agent:main:cli:direct:notes-fork", drafts: [user("fork")] },
    ]);
    for (const key of ["archived", "archived-2"]) await runHere(home, ["delete", key]);
    await runHere(home, ["backup", "monday.db"]);
    writeFileSync(join(home, "drafts.jsonl"), `${JSON.stringify(user("one"))}\n${JSON.stringify(user("two"))}\n`);
    const header = '{"type":"session","version":3,"id":"s1","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/home/ada"}';
    const message =
      '{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"hi"}}';
    writeFileSync(join(home, "session.jsonl"), `${header}\n${message}\n`);
  });
  afterAll(() => filled.remove());

  // Each command finds it as it was: some of them take it away.
  beforeEach(() => {
    directory = temporaryDirectory();
    cpSync(filled.path, directory.path, { recursive: true });
  });
  afterEach(() => directory.remove());

  // The two of demo are the whole demonstration, which the test of shapes runs; those of a service do not end. Those of
  // relocate name two databases, which its own test has.
  const examples = commandTable
    .filter(({ name, isService }) => name !== "demo" && name !== "relocate" && isService !== true)
    .map(({ name, examples: texts }) => [name, texts] as const);

  it.each(examples)("of %s can be run as they stand", async (name, texts) => {
    const before = name === "open" ? ["search harbour"] : [];
    for (const text of [...before, ...texts]) {
      const words = wordsOf(text);
      if (words === null) await runInShell(text);
      else expect(await runHere(directory.path, words)).toMatchObject({ code: 0 });
    }
  });

  /** Splits a line as a shell does; null for one in which a shell does more than that. */
  function wordsOf(text: string): readonly string[] | null {
    const words = text.match(/'[^']*'|[^\s']+/g) ?? [];
    return /^[\w ,.:/-]*$/.test(text.replaceAll(/'[^']*'/g, "")) ? words.map((word) => word.replaceAll("'", "")) : null;
  }

  async function runInShell(text: string): Promise<void> {
    const home = directory.path;
    const shim = `throughline() { "${process.execPath}" ${sourceCondition} "${binPath}" "$@"; }`;
    const script = [shim, `throughline ${text}`].join("\n");
    await promisify(execFile)("bash", ["-c", script], { cwd: home, env: cleanEnvironment(home) });
  }
});
