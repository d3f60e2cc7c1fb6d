import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { cellWidth } from "../src/cells.ts";
import { flatSnippet, snippetPieces } from "../src/search/show-group.ts";
import { assistant, objects, runHere, seed, temporaryDirectory, user } from "./harness.ts";

describe("the text of a hit", () => {
  it("has one space for each run of white space, and the same matches", () => {
    const snippet = "\n  the   login\n\tbug  came 🙂  back ";
    const words = ["login", "bug", "back"];
    const highlights = words.map((word) => [snippet.indexOf(word), snippet.indexOf(word) + word.length] as const);
    const flat = flatSnippet(snippet, highlights);
    expect(flat.snippet).toBe("the login bug came 🙂 back ");
    expect(flat.highlights.map(([start, end]) => flat.snippet.slice(start, end))).toEqual(words);
  });

  it.each([10, 20, 33, 80])("cuts a text around its first match to %i cells", (cells) => {
    for (const text of ["修复登录错误".repeat(20), "the login bug ".repeat(20), "🙂 ".repeat(60)])
      for (const at of [0, 6, 60, text.length - 2]) {
        const pieces = snippetPieces(text, [[at, at + 2]], cells);
        const shown = pieces.map((piece) => (typeof piece === "string" ? piece : piece.text)).join("");
        expect(cellWidth(shown)).toBeLessThanOrEqual(cells);
        expect(shown.isWellFormed()).toBe(true);
        expect(pieces.some((piece) => typeof piece !== "string" && piece.style === "bold")).toBe(true);
      }
  });
});

describe("search for people", () => {
  const directory = temporaryDirectory();
  afterAll(() => directory.remove());
  const run = async (
    ...args: readonly string[]
  ): Promise<{ readonly rows: readonly string[]; readonly stderr: string; readonly raw: string }> => {
    const { stdout, stderr } = await runHere(directory.path, args, { isTerminal: true });
    // oxlint-disable-next-line no-control-regex -- styles are taken out to measure the rows
    return { raw: stdout, stderr, rows: stdout.replaceAll(/\u001b\[[\d;]*m/g, "").split("\n") };
  };
  beforeAll(async () => {
    const importedFrom = { format: "claude-code" };
    const result = { role: "toolResult", toolCallId: "c", toolName: "read", content: "harbour, says the file" };
    await seed(directory.path, [
      {
        key: "agent:main:plans",
        entry: { title: "Plan the harbour", cwd: `${directory.path}/src/app`, importedFrom },
        drafts: [
          { type: "message", message: result },
          user("the harbour lights are lit"),
          assistant("the harbour lights are lit"),
          ...[1, 2, 3].map((number) => assistant(`harbour number ${number}`)),
          ...Array.from({ length: 12 }, (_, index) => user(`something else ${index}`)),
        ],
      },
      { key: "agent:main:own", drafts: [user("the harbour of another session")] },
      { key: "agent:work:c", drafts: [user("lanterns of work")] },
      { key: "agent:main:old", drafts: [user("an archived anchor"), user("anchors")] },
    ]);
    await runHere(directory.path, ["delete", "agent:main:old"]);
  });

  it("groups the hits by session, with name, program, folder and age, and says how to see a place", async () => {
    const { rows, raw, stderr } = await run("search", "harbour");
    const start = rows.findIndex((row) => row.includes("Plan the harbour"));
    expect(rows[start]).toMatch(/^Plan the harbour {2}Claude Code {2}~\/src\/app {2}\d+ s$/);
    expect(rows[start + 1]).toBe("     agent:main:plans");
    expect(rows.slice(start + 2, start + 5).every((row) => /^ {2}\d {2}#\d+ (user|assistant): /.test(row))).toBe(true);
    expect(rows[start + 5]).toBe("     +2 more");
    expect(rows.some((row) => /^"the harbour of another session" {2}own {2}\d+ s$/.test(row))).toBe(true);
    const numbers = rows.flatMap((row) => /^ +(\d+) {2}#/.exec(row)?.[1] ?? []);
    expect(numbers).toEqual(["1", "2", "3", "4"]);
    expect(rows.every((row) => cellWidth(row) <= 80)).toBe(true);
    expect(raw).toContain("\u001b[1mharbour\u001b[22m");
    expect(stderr).toContain("7 hits in 2 sessions.\n");
    const place = /`throughline (show [^`]* --at \d+)` prints the first hit/.exec(stderr)?.[1] ?? "";
    expect((await run(...place.split(" "))).rows.join("\n")).toMatch(/^> #\d+ (user|assistant).*\n.*harbour/m);
    const pipe = await runHere(directory.path, ["search", "harbour"]);
    expect(pipe.stdout).not.toContain("\u001b");
    expect(pipe.stdout).toContain("Plan the harbour  Claude Code");
  });

  it("gives the same groups without an index, and every hit of one session that is asked for", async () => {
    const [indexed, scanned] = [await run("search", "harbour"), await run("search", "harbour", "--scan")];
    const names = (rows: readonly string[]): readonly string[] => rows.filter((row) => row.startsWith("     agent:"));
    expect(names(scanned.rows).toSorted()).toEqual(names(indexed.rows).toSorted());
    expect(scanned.rows).toContain("     +2 more");
    const one = await run("search", "harbour", "--session", "agent:main:plans");
    expect(one.rows.filter((row) => /^ +\d+ {2}#/.test(row)).length).toBe(6);
    const few = await run("search", "harbour", "--limit", "2");
    expect(few.rows.filter((row) => /^ +\d+ {2}#/.test(row)).length).toBe(2);
    expect(few.stderr).toContain("The first 2 hits");
  });

  it("shows ten sessions, and says that there are more", async () => {
    const sessions = Array.from({ length: 12 }, (_, at) => ({ key: `agent:main:n${at}`, drafts: [user("pontoon")] }));
    await seed(directory.path, sessions);
    for (const scan of [[], ["--scan"]]) {
      const { rows, stderr } = await run("search", "pontoon", ...scan);
      expect(rows.filter((row) => row.startsWith("     agent:")).length).toBe(10);
      expect(stderr).toContain("(--limit all shows the rest)");
      const all = await run("search", "pontoon", "--limit", "all", ...scan);
      expect(all.rows.filter((row) => row.startsWith("     agent:")).length).toBe(12);
    }
  });

  it("says of 0 hits which change finds something, or that none does", async () => {
    expect((await run("search", "harbo")).stderr).toBe("0 hits.\n  with 'harbo*': 7 hits\n");
    expect((await run("search", "lanterns")).stderr).toBe("0 hits.\n  with --all-agents: 1 hit\n");
    expect((await run("search", "archived", "anchor")).stderr).toBe("0 hits.\n  with --archived: 2 hits\n");
    expect((await run("search", "lit", "--role", "system")).stderr).toBe("0 hits.\n  without --role: 2 hits\n");
    const none = "0 hits.\nAlso none with 'xyzzy*', with --archived or with --all-agents.\n";
    expect((await run("search", "xyzzy")).stderr).toBe(none);
    // Words that must all occur are limited to 1,000 characters, so such a text is not tried as beginnings.
    const long = await run("search", "xyzzy ".repeat(300));
    expect(long.stderr).toBe("0 hits.\nAlso none with --archived or with --all-agents.\n");
    const scanned = await run("search", "xyzzy", "--scan", "--archived");
    expect(scanned.stderr.split("\n").at(-2)).toBe("Try again with 'xyzzy*' or with --all-agents.");
  });

  it("show --at prints a record with five on either side, the record marked", async () => {
    const { rows } = await run("show", "Plan the harbour", "--at", "9");
    const heads = rows.filter((row) => /^(> )?#\d+ /.test(row));
    expect(heads.map((row) => /#(\d+)/.exec(row)?.[1])).toEqual([
      "4",
      "5",
      "6",
      "7",
      "8",
      "9",
      "10",
      "11",
      "12",
      "13",
      "14",
    ]);
    expect(heads.filter((row) => row.startsWith("> "))).toEqual([expect.stringMatching(/^> #9 user/)]);
    const json = objects((await runHere(directory.path, ["show", "Plan the harbour", "--at", "2", "--json"])).stdout);
    expect(json.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6, 7, undefined]);
    const raw = await runHere(directory.path, ["show", "Plan the harbour", "--at", "18", "--raw"]);
    expect(objects(raw.stdout).length).toBe(6);
  });

  it("show --at refuses a number that is no record's, and options that choose other records", async () => {
    const missing = await runHere(directory.path, ["show", "Plan the harbour", "--at", "19", "--json"]);
    expect(missing.code).toBe(1);
    expect(objects(missing.stderr)[0]).toMatchObject({
      code: "RECORD_NOT_FOUND",
      message: '"agent:main:plans" has no record #19: its records are #1 to #18.',
      details: { seq: 19, lastSeq: 18 },
    });
    const wrong = await runHere(directory.path, ["show", "Plan the harbour", "--at", "3", "--tail", "2"]);
    expect([wrong.code, wrong.stderr.split("\n")[0]]).toEqual([
      2,
      "error: --at shows a record with its neighbors; it does not go with --tail.",
    ]);
  });
});
