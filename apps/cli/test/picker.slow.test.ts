import { mkdirSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { sessionRef } from "@throughline/core";
import { openStore } from "../src/open-store.ts";
import { assistant, objects, runHere, seed, temporaryDirectory, user } from "./harness.ts";
import { rowOf, screenOf } from "./screens.ts";
import { runInTerminal, type Terminal } from "./terminal.ts";

let directory = temporaryDirectory();
beforeEach(() => {
  directory = temporaryDirectory();
  // No program of the machine may be found.
  writeFileSync(join(directory.path, "config.json"), JSON.stringify({ model: "offline" }));
});
afterEach(() => directory.remove());

const down = "\u001b[B";
const escape = "\u001b";

function importedFrom(format: string, path = "/nowhere/t.jsonl"): object {
  const counts = { sizeBytes: 1, sha256: "", lineCount: 1, recordCount: 1, endsWithLineFeed: true };
  return { format, path, sessionId: "0b7e1c1e-0000-4000-8000-000000000001", ...counts };
}

/** Sessions of two programs and of our own, in two folders; none of ours is in the folder of the tests. */
async function seedPrograms(): Promise<void> {
  const here = realpathSync(directory.path);
  await seed(directory.path, [
    {
      key: "agent:main:cli:direct:api",
      entry: { label: "Refactor the 認証 module", cwd: "/elsewhere/api" },
      drafts: [user("split it"), assistant("Done.")],
    },
    {
      key: "agent:main:deploy",
      entry: { title: "Deploy scripts", cwd: here, importedFrom: importedFrom("codex") },
      drafts: [user("write a script"), assistant("It copies the zebrafish first.")],
    },
    {
      key: "agent:main:login",
      entry: { title: "Fix the login bug", cwd: here, importedFrom: importedFrom("claude-code") },
      drafts: [user("please look at auth.ts"), assistant("The **guard** was missing.")],
    },
  ]);
}

function open(columns = 80, args: readonly string[] = []): Terminal {
  return runInTerminal(directory.path, args, { columns });
}

async function chosenRow(terminal: Terminal, columns = 80): Promise<string> {
  return rowOf(terminal, /^ ❯ /, columns);
}

describe("throughline in a folder without a session, in a store with imports", () => {
  it("shows the sessions of the folder by program, and widens by Tab", async () => {
    await seedPrograms();
    await using terminal = open();
    await rowOf(terminal, /2 sessions: (?:Claude Code 1, Codex 1|Codex 1, Claude Code 1)$/);
    expect(await chosenRow(terminal)).toMatch(/^ ❯ Fix the login bug +Claude Code .* \d+ (?:s|min) +2 msg$/);
    await rowOf(terminal, /^ 1 more in other scopes · Enter opens, Space shows · Esc new session$/);
    terminal.write("\t");
    await rowOf(terminal, /^ {3}Refactor the 認証 module +own .*api +\d+ (?:s|min) +2 msg$/);
    await rowOf(terminal, /3 sessions: /);
  });

  it("finds names as they are typed, words in the texts behind them, and clears by Esc", async () => {
    await seedPrograms();
    await using terminal = open();
    await rowOf(terminal, /^ ❯ Fix the login bug/);
    terminal.write("depl");
    await rowOf(terminal, /^ ❯ Deploy scripts/);
    await rowOf(terminal, /^ 1 of 2 by name · /);
    terminal.write("\u0015zebra");
    await rowOf(terminal, /^ {3}── in the texts ──$/);
    await rowOf(terminal, /^ {5}assistant: It copies the zebrafish first\.$/);
    await rowOf(terminal, /^ 0 of 2 by name · 1 hit in 1 session · /);
    terminal.write(escape);
    await rowOf(terminal, /^ ❯ Fix the login bug/);
    // A filter of wide characters, in the widest scope.
    terminal.write("\t認証");
    await rowOf(terminal, /^ ❯ Refactor the 認証 module/);
  });

  it("opens an own session at once, and shows an import first, which continues in a fork", async () => {
    await seedPrograms();
    {
      await using terminal = open();
      await rowOf(terminal, /^ ❯ Fix the login bug/);
      terminal.write("\r");
      await rowOf(terminal, /^ Claude Code · .* · \d+ (?:s|min) · 2 messages · agent:main:login$/);
      await rowOf(terminal, /^The guard was missing\.$/);
      terminal.write("c");
      await terminal.waitFor(/Continuing in a fork: ~[\d,]+ tokens of\s+"Fix the login bug" \(Claude Code\)/);
      await terminal.waitForPrompt();
      terminal.write("/quit\r");
      expect(await terminal.exitCode()).toBe(0);
    }
    // Nothing was said, so nothing was made.
    const { stdout } = await runHere(directory.path, ["sessions", "--json", "--quiet"]);
    expect(objects(stdout).filter(({ kind }) => kind === "session")).toHaveLength(3);
    await using terminal = open();
    await rowOf(terminal, /^ ❯ Fix the login bug/);
    terminal.write("\tRefactor");
    await rowOf(terminal, /^ ❯ Refactor the/);
    terminal.write("\r");
    await terminal.waitFor("Restored: 1 previous turn");
    await terminal.waitForPrompt();
  });

  it("prints the command of the session's own program with r, or why there is none", async () => {
    const folder = join(directory.path, "app");
    const file = join(directory.path, "t.jsonl");
    mkdirSync(folder);
    writeFileSync(file, "{}\n");
    const entry = { title: "Fix it", cwd: folder, importedFrom: importedFrom("claude-code", file) };
    await seed(directory.path, [
      { key: "agent:main:one", entry, drafts: [user("hello")] },
      {
        key: "agent:main:two",
        entry: { title: "Gone", cwd: folder, importedFrom: importedFrom("claude-code") },
        drafts: [user("hello")],
      },
    ]);
    await using terminal = open(200);
    await rowOf(terminal, /Fix it/, 200);
    terminal.write("Gone");
    await rowOf(terminal, /^ ❯ Gone/, 200);
    terminal.write(" \r");
    await rowOf(terminal, /own file is missing: \/nowhere\/t\.jsonl/, 200);
    terminal.write("r");
    await rowOf(terminal, /^ The session's own file is missing/, 200);
    terminal.write(escape);
    await rowOf(terminal, /^ search: Gone/, 200);
    terminal.write("\u0015Fix\r");
    await rowOf(terminal, /^ r {2}cd .* && claude --resume 0b7e1c1e-/, 200);
    terminal.write("r");
    await terminal.waitFor(/cd \S+app && claude --resume 0b7e1c1e-0000-4000-8000-000000000001\n/);
    const [, copied = ""] = terminal.raw().split("\u001b]52;c;");
    expect(Buffer.from(copied.split("\u0007", 1)[0] ?? "", "base64").toString()).toMatch(
      /^cd \S+app && claude --resume 0b7e1c1e-0000-4000-8000-000000000001$/,
    );
    expect(await terminal.exitCode()).toBe(0);
  });

  it("is left by Esc to a new session, and by Ctrl-C with 130; a store without imports has none", async () => {
    await seedPrograms();
    {
      await using terminal = open();
      await rowOf(terminal, /^ ❯ Fix the login bug/);
      terminal.write(escape);
      await terminal.waitFor("New session");
      await terminal.waitForPrompt();
    }
    {
      await using terminal = open();
      await rowOf(terminal, /^ ❯ Fix the login bug/);
      terminal.write("\u0003");
      expect(await terminal.exitCode()).toBe(130);
    }
    await using own = runInTerminal(directory.path, ["--store", "sqlite:other.db"]);
    await own.waitFor("New session");
    await own.waitForPrompt();
  });

  it("works from 20 to 300 columns, and erases itself", async () => {
    await seedPrograms();
    for (const columns of [20, 40, 64, 120, 300]) {
      await using terminal = open(columns);
      await chosenRow(terminal, columns);
      terminal.write(`${down}\tlogin`);
      await rowOf(terminal, /^ search: .*login|^ search: …/, columns);
      terminal.write(`\u0015${escape}`);
      await terminal.waitForPrompt();
      const rows = await screenOf(terminal, columns);
      expect(rows.filter((row) => row.includes("❯") || row.startsWith(" search:"))).toEqual([]);
    }
  });
});

describe("/resume", () => {
  it("picks another session, renames one, and goes back to the chat by Esc with what was typed", async () => {
    await seedPrograms();
    await using terminal = open(80, ["chat", "--key", "agent:main:cli:direct:api"]);
    await terminal.waitForPrompt();
    terminal.write("/resume\r");
    await rowOf(terminal, /Esc back to chat/);
    terminal.write(escape);
    await terminal.waitForPrompt();
    terminal.write("/switch\r");
    await rowOf(terminal, /^ ❯ Fix the login bug/);
    terminal.write(" ");
    await rowOf(terminal, /R rename/);
    terminal.write("RLogin, done\r");
    await rowOf(terminal, /^ Login, done$/);
    terminal.write(escape);
    await rowOf(terminal, /^ ❯ Login, done/);
    terminal.write("\r");
    await rowOf(terminal, /c fork/);
    terminal.write("c");
    await terminal.waitFor("Switched to agent:main:cli:direct:");
    await terminal.waitForPrompt();
    const { stdout } = await runHere(directory.path, ["sessions", "--json", "--quiet"]);
    expect(objects(stdout)).toContainEqual(expect.objectContaining({ key: "agent:main:login", label: "Login, done" }));
  });

  it("lists 10,000 sessions while they are read, and finds one of them by its name", async () => {
    await using store = await openStore(`sqlite:${join(directory.path, "sessions.db")}`, {
      workingDirectory: directory.path,
      create: true,
    });
    for (let at = 0; at < 10_000; at++)
      await store.save(
        sessionRef({ key: `agent:main:cli:direct:s${at}` }),
        { sessionId: `id-${at}`, label: `Session number ${at}` },
        { ifRevision: null },
      );
    await using terminal = open(80, ["chat", "--key", "other"]);
    await terminal.waitForPrompt();
    terminal.write("/resume\r");
    await rowOf(terminal, /10,000 sessions: own 10,000$/);
    terminal.write("number 4711");
    await rowOf(terminal, /^ ❯ Session number 4711 /);
  });
});

describe("the picker for a screen reader", () => {
  it("ends without an error where the input ends", async () => {
    await seedPrograms();
    await using terminal = open(80, ["--plain"]);
    await terminal.waitFor(/Enter begins a new session: /);
    terminal.write("\u0004");
    expect(await terminal.exitCode()).toBe(0);
  });

  it("is a numbered list and a question, which also searches", async () => {
    await seedPrograms();
    await using terminal = open(80, ["--plain"]);
    await terminal.waitFor("2 sessions of this folder. 1 more elsewhere.\n1. Fix the login bug, Claude Code, ");
    await terminal.waitFor(/2\. Deploy scripts, Codex, .*2 messages\n/);
    const question =
      /Which session\? a number opens; words search; all lists every session; Enter begins a new session: /;
    await terminal.waitFor(question);
    terminal.write("7\n");
    await terminal.waitFor("The list has no number 7.");
    await terminal.waitFor(question);
    terminal.write("zebrafish\n");
    await terminal.waitFor("0 sessions by name, 1 more by their texts.\n1. Deploy scripts, Codex, ");
    await terminal.waitFor(question);
    terminal.write("1\n");
    await terminal.waitFor("c continues it here in a fork; r prints its own command; Enter goes back: ");
    terminal.write("r\n");
    await terminal.waitFor(/\/nowhere\/t\.jsonl/);
    await terminal.waitFor(question);
    terminal.write("all\n");
    await terminal.waitFor(/3\. Refactor the 認証 module, own, \/elsewhere\/api, /);
    await terminal.waitFor(question);
    terminal.write("3\n");
    await terminal.waitFor("Restored: 1 previous turn");
    await terminal.waitFor("> ");
    terminal.write("/resume\r");
    await terminal.waitFor(/words search; all lists every session; new begins a session, Enter goes back: /);
    terminal.write("\n");
    await terminal.waitFor("> ");
    terminal.write("/quit\r");
    expect(await terminal.exitCode()).toBe(0);
    expect(terminal.raw()).toContain("\u0007Which session?");
    // oxlint-disable-next-line no-control-regex -- movements of the cursor are what must not be there
    expect(terminal.raw()).not.toMatch(/\u001b\[[\d;]*[A-HJKfsu]/);
  });
});
