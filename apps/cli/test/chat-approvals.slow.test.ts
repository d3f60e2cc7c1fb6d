import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createProviderSimulator, type ProviderSimulator } from "@throughline/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { objects, runHere, sentBody, temporaryDirectory } from "./harness.ts";
import { rowOf, screenOf } from "./screens.ts";
import { runInTerminal, type Terminal, type TerminalOptions } from "./terminal.ts";

let directory = temporaryDirectory();
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(() => directory.remove());

const login = "export function login(user) {\n  if (user) return user;\n  return null;\n}\n";
const edit = {
  path: "login.js",
  old_text: "  if (user) return user;\n",
  new_text: "  if (user === null) throw new Error(name);\n",
};
const edited = login.replace(edit.old_text, edit.new_text);

interface Call {
  readonly type: "tool-call";
  readonly id: string;
  readonly name: string;
  readonly input: unknown;
}

/** A provider that asks for these calls, one reply after the other, and then says that it is done. */
async function asking(...replies: readonly (readonly Call[])[]): Promise<ProviderSimulator> {
  const provider = createProviderSimulator({
    replies: replies.map((calls) => ({ kind: "answer", content: [{ type: "text", text: "I change it." }, ...calls] })),
    fallback: () => "Done here.",
  });
  await provider.start();
  return provider;
}

const callOf = (id: string, name: string, input: unknown): Call => ({ type: "tool-call", id, name, input });
const editCall = (id: string): Call => callOf(id, "edit", edit);
const writeCall = (id: string, name: string): Call => callOf(id, "write", { path: name, content: "new\n" });

function chat(url: string, args: readonly string[] = [], options: TerminalOptions = {}): Terminal {
  return runInTerminal(directory.path, ["chat", "--key", "k", "--model", "anthropic/claude-opus-5", ...args], {
    ...options,
    environment: { ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: url, ...options.environment },
  });
}

const path = (name: string): string => join(directory.path, name);
const text = (name: string): string => readFileSync(path(name), "utf8");

async function decisions(): Promise<readonly Record<string, unknown>[]> {
  const { stdout } = await runHere(directory.path, ["show", "k", "--json", "--quiet", "--all-branches"]);
  return objects(stdout).flatMap(({ record }) => {
    const { data, customType, type } = (record ?? {}) as Readonly<Record<string, unknown>>;
    return String(customType ?? type).includes("approval") ? [data as Record<string, unknown>] : [];
  });
}

const question = /Allow this change\?/;

/** Types a text and waits for the question that it leads to. */
async function askFor(terminal: Terminal, said = "fix it"): Promise<void> {
  await terminal.waitForPrompt();
  terminal.write(`${said}\r`);
  await rowOf(terminal, question);
}

/** Presses keys once the question takes them: it leaves those that come sooner to the typed text. */
async function answer(terminal: Terminal, keys: string): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 400));
  terminal.write(keys);
}

/** Returns what the model read of a call. */
function resultOf(provider: ProviderSimulator, id: string): string {
  const last = JSON.stringify(sentBody(provider.requests.at(-1)));
  const [, result = ""] = last.split(`"tool_use_id":"${id}"`);
  return result;
}

describe("a change of a file", () => {
  it("is shown as a diff before it is made, and made after y, with a record of the decision", async () => {
    writeFileSync(path("login.js"), login);
    await using provider = await asking([editCall("call_1")]);
    await using terminal = chat(provider.url);
    await askFor(terminal);
    const rows = await screenOf(terminal);
    const at = rows.findIndex((row) => row.startsWith("● edit login.js"));
    expect(rows.slice(at, at + 11)).toEqual([
      "● edit login.js   +1 -1",
      "  1 1   export function login(user) {",
      "  2   -   if (user) return user;",
      "    2 +   if (user === null) throw new Error(name);",
      "  3 3     return null;",
      "  4 4   }",
      "  Allow this change?",
      "  ❯ Yes (y)",
      "    Yes, stop asking in this session (s)",
      "    No (n)",
      "    No, and say why (w)",
    ]);
    expect(text("login.js")).toBe(login);
    await answer(terminal, "y");
    await rowOf(terminal, /Done here/);
    await terminal.waitForPrompt();
    expect(text("login.js")).toBe(edited);
    expect(await decisions()).toMatchObject([{ callId: "call_1", decision: "once", by: "person", path: "login.js" }]);
    expect(await screenOf(terminal)).toContain("  allowed");
  });

  it("is not made after n, Esc and w, and the model reads the words of the person", async () => {
    writeFileSync(path("login.js"), login);
    await using provider = await asking([editCall("call_1")], [editCall("call_2")], [editCall("call_3")]);
    await using terminal = chat(provider.url, [], { columns: 120 });
    await askFor(terminal);
    expect(await rowOf(terminal, question, 120)).toBe(
      "  Allow this change? ❯ Yes (y)   Yes, stop asking in this session (s)   No (n)   No, and say why (w)",
    );
    await answer(terminal, "n");
    await expect.poll(() => provider.requests.length, { timeout: 60_000 }).toBe(2);
    expect(resultOf(provider, "call_1")).toContain("The user did not allow this edit.");
    await rowOf(terminal, question, 120);
    await answer(terminal, "\u001b");
    await expect.poll(() => provider.requests.length, { timeout: 60_000 }).toBe(3);
    await rowOf(terminal, question, 120);
    await answer(terminal, "w");
    await rowOf(terminal, /^Why not\?/, 120);
    terminal.write("Throw NotFound instead\r");
    await rowOf(terminal, /Done here/, 120);
    await terminal.waitForPrompt();
    expect(resultOf(provider, "call_3")).toContain("Throw NotFound instead");
    expect(text("login.js")).toBe(login);
    expect(await decisions()).toMatchObject([
      { decision: "no" },
      { decision: "no" },
      { decision: "no", words: "Throw NotFound instead" },
    ]);
  });

  it("is not asked about after s, also by the next process, until /approvals off; package.json always is, and a fork", async () => {
    writeFileSync(path("login.js"), login);
    await using provider = await asking(
      [editCall("call_1")],
      [writeCall("call_2", "a.txt")],
      [writeCall("call_3", "package.json")],
      [writeCall("call_4", "b.txt")],
      [],
      [writeCall("call_5", "c.txt")],
    );
    {
      await using first = chat(provider.url);
      await askFor(first);
      await answer(first, "s");
      await rowOf(first, /package\.json {3}new file, 1 line {3}always asked/);
      expect(text("a.txt")).toBe("new\n");
      first.kill("SIGKILL");
      await first.exitCode();
    }
    await using second = chat(provider.url);
    await second.waitForPrompt();
    await rowOf(second, /^edits: allowed · /);
    // The call that nobody decided on is asked about again.
    second.write("/continue\r");
    await rowOf(second, question);
    expect(existsSync(path("package.json"))).toBe(false);
    await answer(second, "y");
    await second.waitForPrompt();
    expect([text("package.json"), text("b.txt")]).toEqual(["new\n", "new\n"]);
    expect(await decisions()).toMatchObject([
      { callId: "call_1", decision: "session", by: "person" },
      { callId: "call_2", decision: "once", by: "session" },
      { callId: "call_3", decision: "once", by: "person" },
      { callId: "call_4", decision: "once", by: "session" },
    ]);
    second.write("/fork\r");
    await second.waitFor("the whole conversation");
    second.write("\r");
    await second.waitForPrompt();
    second.write("more\r");
    await rowOf(second, /c\.txt {3}new file, 1 line/);
    await answer(second, "n");
    await second.waitForPrompt();
    expect(existsSync(path("c.txt"))).toBe(false);
    second.write("/switch k\r");
    await second.waitForPrompt();
    await rowOf(second, /^edits: allowed · /);
    second.write("/approvals off\r");
    await second.waitFor("is asked again");
    await second.waitForPrompt();
    await expect.poll(async () => (await screenOf(second)).some((row) => row.startsWith("edits: allowed"))).toBe(false);
  });

  it("is not made when another program changed the file after it was shown", async () => {
    writeFileSync(path("login.js"), login);
    await using provider = await asking([editCall("call_1")]);
    await using terminal = chat(provider.url);
    await askFor(terminal);
    writeFileSync(path("login.js"), `// mine\n${login}`);
    await answer(terminal, "y");
    await rowOf(terminal, /Done here/);
    expect(text("login.js")).toBe(`// mine\n${login}`);
    expect(resultOf(provider, "call_1")).toContain("changed after the call was approved");
  });

  it("is one of several: each is asked alone, the second of a file on what the first left", async () => {
    writeFileSync(path("login.js"), login);
    const again = { path: "login.js", old_text: "Error(name)", new_text: "NotFound(name)" };
    // The second fits only the file that the first call leaves.
    await using provider = await asking([
      editCall("call_1"),
      callOf("call_2", "edit", again),
      writeCall("call_3", "c.txt"),
    ]);
    await using terminal = chat(provider.url);
    await askFor(terminal);
    await rowOf(terminal, /● edit login\.js {3}\+1 -1 {3}1 of 3/);
    await answer(terminal, "y");
    await rowOf(terminal, /2 of 3/);
    await answer(terminal, "y");
    await rowOf(terminal, /● write c\.txt {3}new file, 1 line {3}3 of 3/);
    await answer(terminal, "y");
    await rowOf(terminal, /Done here/);
    expect(text("login.js")).toBe(edited.replace("Error(name)", "NotFound(name)"));
    expect(text("c.txt")).toBe("new\n");
  });

  it("leaves keys to the typed text that were meant for it, and Ctrl-C cancels the turn", async () => {
    writeFileSync(path("login.js"), login);
    await using provider = await asking([editCall("call_1")]);
    await using terminal = chat(provider.url);
    await terminal.waitForPrompt();
    terminal.write("fix it\ryes, and y");
    await rowOf(terminal, question);
    await rowOf(terminal, /^> yes, and y$/);
    expect(text("login.js")).toBe(login);
    terminal.write("\u0003");
    await rowOf(terminal, /canceled; what had arrived is kept/);
    await terminal.waitForPrompt();
    await rowOf(terminal, /^> yes, and y$/);
    expect(text("login.js")).toBe(login);
    expect(provider.requests).toHaveLength(1);
  });

  it("shows what would not be seen, cuts long lines and many, and Ctrl-O shows the whole", async () => {
    const lines = Array.from({ length: 60 }, (_, at) => `line ${at} \u202e\u001b[31m${"x".repeat(100)}end`);
    await using provider = await asking([callOf("call_1", "write", { path: "long.txt", content: lines.join("\n") })]);
    await using terminal = chat(provider.url);
    await askFor(terminal);
    await rowOf(terminal, /● write long\.txt {3}new file, 60 lines/);
    await rowOf(terminal, / 0 ⟨U\+202E⟩␛\[31mx+…$/);
    expect((await screenOf(terminal)).some((row) => / {2}… \d+ more rows \(Ctrl-O\)/.test(row))).toBe(true);
    expect(terminal.raw()).not.toContain("\u001b[31mx");
    terminal.write("\u000f");
    await terminal.waitFor("line 59");
    await terminal.waitFor("xend");
    await answer(terminal, "y");
    await rowOf(terminal, /Done here/);
    expect(text("long.txt")).toBe(lines.join("\n"));
  });
});

describe("the setting approval", () => {
  it("denies, allows, and is refused when it is misspelt", async () => {
    writeFileSync(path("login.js"), login);
    const changes = [editCall("call_2"), writeCall("call_3", "package.json")];
    await using provider = await asking([editCall("call_1")], [], changes);
    await using denied = chat(provider.url, ["--approval", "deny"]);
    await denied.waitForPrompt();
    denied.write("fix it\r");
    await denied.waitForPrompt();
    expect(text("login.js")).toBe(login);
    expect(resultOf(provider, "call_1")).toContain("denies changes of files");
    denied.write("/quit\r");
    expect(await denied.exitCode()).toBe(0);
    await using allowed = chat(provider.url, ["--allow-edits"]);
    await allowed.waitForPrompt();
    allowed.write("now fix it\r");
    await expect.poll(() => text("login.js"), { timeout: 60_000 }).toBe(edited);
    // A person decides on each change of some files all the same.
    await rowOf(allowed, /package\.json {3}new file, 1 line {3}.*always asked/);
    expect(allowed.text()).not.toContain("● edit login.js   +1");
    await answer(allowed, "n");
    await allowed.waitForPrompt();
    expect(existsSync(path("package.json"))).toBe(false);
    const wrong = await runHere(directory.path, ["chat", "--once", "hi"], {
      environment: { THROUGHLINE_APPROVAL: "al" },
    });
    expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining("THROUGHLINE_APPROVAL")]);
  });

  it("leaves a script without a terminal to the setting tools, but for files that a person always decides on", async () => {
    writeFileSync(path("login.js"), login);
    // Without `edit` among the tools the first call fails, and the second reply ends the turn.
    await using provider = await asking(
      [editCall("call_1")],
      [],
      [editCall("call_2"), writeCall("call_3", "package.json")],
      [],
      [writeCall("call_4", "package.json"), writeCall("call_5", "a.txt")],
      [],
      [writeCall("call_6", "b.txt")],
    );
    const once = (args: readonly string[], more: Readonly<Record<string, string>> = {}) =>
      runHere(directory.path, ["chat", "--key", "k", "--once", "fix", "--model", "anthropic/claude-opus-5", ...args], {
        environment: { ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: provider.url, ...more },
      });
    await once([]);
    expect(text("login.js")).toBe(login);
    await once(["--tools", "all"]);
    expect(text("login.js")).toBe(edited);
    expect(resultOf(provider, "call_3")).toContain("nobody can be asked here");
    // A setting allows no more than a flag, and needs no record for what it allows.
    await once([], { THROUGHLINE_TOOLS: "all" });
    expect([existsSync(path("package.json")), text("a.txt")]).toEqual([false, "new\n"]);
    // A stated `deny` stays.
    await once(["--tools", "all", "--allow-edits"], { THROUGHLINE_APPROVAL: "deny" });
    expect(existsSync(path("b.txt"))).toBe(false);
    expect(await decisions()).toMatchObject([
      { callId: "call_2", decision: "once", by: "flag", path: "login.js" },
      { callId: "call_3", decision: "no", by: "program", path: "package.json" },
      { callId: "call_4", decision: "no", by: "program", path: "package.json" },
      { callId: "call_5", decision: "unasked" },
      { callId: "call_6", decision: "no", by: "setting", path: "b.txt" },
    ]);
  });
});

describe("on a terminal without cursor movement", () => {
  it("a change is asked about in words, and a reason may follow the no", async () => {
    writeFileSync(path("login.js"), login);
    await using provider = await asking([editCall("call_1")], [editCall("call_2")]);
    await using terminal = chat(provider.url, [], { environment: { TERM: "dumb" } });
    await terminal.waitFor("> ");
    terminal.write("fix it\r");
    await terminal.waitFor("edit login.js: +1 -1");
    await terminal.waitFor("removed line 2:   if (user) return user;");
    await terminal.waitFor("added line 2:   if (user === null) throw new Error(name);");
    await terminal.waitFor("Allow this change?");
    terminal.write("what\r");
    await terminal.waitFor("Answer y, s or n.");
    terminal.write("n not like this\r");
    await terminal.waitFor("Allow this change?");
    expect(resultOf(provider, "call_1")).toContain("not like this");
    terminal.write("y\r");
    await terminal.waitFor("Done here");
    expect(text("login.js")).toBe(edited);
    // oxlint-disable-next-line no-control-regex -- sequences are what must not be there
    expect(terminal.raw()).not.toMatch(/\u001b\[\d*[A-HJK]/);
  });
});
