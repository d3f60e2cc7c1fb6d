/* oxlint-disable no-control-regex -- control characters are what is looked for */
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { assistant, binPath, objects, runHere, seed, temporaryDirectory, user, saidIn } from "./harness.ts";
import { createScreenJudge } from "./screens.ts";
import { runInTerminal, say } from "./terminal.ts";
import type { Terminal, TerminalOptions } from "./terminal.ts";

let directory = temporaryDirectory();
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(() => directory.remove());

/** No key of this machine may reach a test. */
const noKeys = {
  ANTHROPIC_API_KEY: "",
  OPENAI_API_KEY: "",
  ANTHROPIC_BASE_URL: "",
  OPENAI_BASE_URL: "",
  OLLAMA_HOST: "",
};

function chat(args: readonly string[] = [], options: TerminalOptions = {}): Terminal {
  return runInTerminal(directory.path, ["chat", ...args], {
    ...options,
    environment: { ...noKeys, ...options.environment },
  });
}

describe("a conversation on a terminal", () => {
  it("makes sessions, finds one by the beginning of its label, and lists them with the current one marked [C17, C19, C57, CLI-01, CLI-03]", async () => {
    await using terminal = chat();
    await terminal.waitForPrompt();
    // The source's own transcript of use, in its order.
    await say(terminal, "/new my-project");
    expect(terminal.text()).toMatch(/New session agent:main:cli:direct:my-project \(id [0-9a-f-]{36}\)/);
    await say(terminal, "Tell me about Python generators");
    await say(terminal, "/new experiments");
    await say(terminal, "What is 2+2?");
    await say(terminal, "/switch my-p");
    expect(terminal.text()).toContain("Switched to agent:main:cli:direct:my-project");
    expect(terminal.text()).toContain("Restored: 1 previous turn\n");
    await say(terminal, "what did I say before");
    expect(terminal.text()).toContain('"Tell me about Python generators"');
    await say(terminal, "/context");
    expect(terminal.text()).toMatch(/Context usage: ~[\d,]+ tokens/);
    await say(terminal, "/list");
    expect(terminal.text()).toMatch(/\* +my-project +own +~ +4 +\d+ s +agent/);
    expect(terminal.text()).toMatch(/\n +experiments +own +~ +2 +\d+ s +agent/);
    terminal.write("/quit\r");
    expect(await terminal.exitCode()).toBe(0);
    expect(terminal.text()).toMatch(/Saved\. Resume: `.* chat --key agent:main:cli:direct:my-project`/);
    expect(await saidIn(directory.path, "agent:main:cli:direct:experiments")).toEqual(["What is 2+2?"]);
  });

  it("is where it was after a restart, the session that was used last, and says so", async () => {
    await seed(directory.path, [{ key: "agent:main:cli:direct:older", drafts: [user("old")] }]);
    {
      await using first = chat(["--key", "agent:main:cli:direct:home"]);
      await first.waitForPrompt();
      await say(first, "my name is Ada");
      await say(first, "hello");
      first.write("exit\r");
      expect(await first.exitCode()).toBe(0);
    }
    await using second = chat();
    await second.waitFor("Restored: 2 previous turns");
    await second.waitForPrompt();
    expect(second.text()).toContain("agent:main:cli:direct:home");
    await say(second, "what is my name");
    expect(second.text()).toContain("Your name is Ada.");
    await say(second, "/switch older");
    await say(second, "/switch agent:main:cli:direct:older");
    expect(second.text()).toContain("Restored: 1 previous turn\n");
    second.write("quit\r");
    expect(await second.exitCode()).toBe(0);
  });

  it.each(["/quit", "quit", "exit"])(
    "is left with %s, which is never sent [C20, CLI-09]",

    async (word) => {
      await using terminal = chat(["--key", "k"]);
      await terminal.waitForPrompt();
      await say(terminal, "hello");
      terminal.write(`${word}\r`);
      expect(await terminal.exitCode()).toBe(0);
      expect(await saidIn(directory.path, "k")).toEqual(["hello"]);
    },
  );

  it.each(["/sessions", "/list"])(
    "lists the sessions with %s, the current one marked [C18, CLI-02]",
    async (command) => {
      const at = (updatedAt: number) => ({ updatedAt });
      await seed(directory.path, [
        { key: "agent:main:one", entry: at(1000), drafts: [user("1"), assistant("2")] },
        { key: "agent:main:two", drafts: [user("3")] },
      ]);
      await using terminal = chat(["--key", "agent:main:one"]);
      await terminal.waitForPrompt();
      await say(terminal, command);
      expect(terminal.text()).toMatch(/\n\* +"1" +own +2 +\d+ s +agent:main:one\n/);
      expect(terminal.text()).toMatch(/\n +"3" +own +1 +\d+ s +agent:main:two\n/);
    },
  );

  it("lists what a name may mean and stays where it is [C19, CLI-03]", async () => {
    await seed(directory.path, [
      { key: "agent:main:a", entry: { label: "plan one" }, drafts: [user("1")] },
      { key: "agent:main:b", entry: { label: "plan two" }, drafts: [user("2")] },
      { key: "agent:main:now", drafts: [user("3")] },
    ]);
    await using terminal = chat(["--key", "agent:main:now"]);
    await terminal.waitForPrompt();
    await say(terminal, "/switch plan");
    expect(terminal.text()).toContain('"plan" fits 2 sessions');
    await say(terminal, "/switch nothing-of-that-name");
    expect(terminal.text()).toContain("matches");
    await say(terminal, "/status");
    expect(terminal.text()).toMatch(/session +agent:main:now/);
  });

  it("takes an unknown command for an error and sends nothing of it", async () => {
    await using terminal = chat(["--key", "k"]);
    await terminal.waitForPrompt();
    await say(terminal, "/swich my-p");
    expect(terminal.text()).toContain("Unknown command /swich: did you mean /switch?");
    await say(terminal, "/etc/hosts is what?");
    await say(terminal, "/help");
    expect(terminal.text()).toMatch(/\/switch SESSION +go to another/);
    await say(terminal, " /etc/hosts is what?");
    expect(await saidIn(directory.path, "k")).toEqual([" /etc/hosts is what?"]);
  });

  it("shows what was said, 200 characters of a text and 100 of a result", async () => {
    const result = {
      role: "toolResult",
      toolCallId: "c",
      toolName: "read",
      content: [{ type: "text", text: "r".repeat(300) }],
      isError: false,
    };
    const call = {
      role: "assistant",
      content: [{ type: "toolCall", id: "c", name: "read", arguments: {} }],
      stopReason: "toolUse",
    };
    await seed(directory.path, [
      {
        key: "k",
        drafts: [
          user("u".repeat(300)),
          { type: "message", message: call },
          { type: "message", message: result },
          assistant("done"),
        ],
      },
    ]);
    await using terminal = chat(["--key", "k"], { columns: 400 });
    await terminal.waitForPrompt();
    await say(terminal, "/history");
    expect(terminal.text()).toMatch(/#1 user {2}u{200}…/);
    expect(terminal.text()).toMatch(/#3 toolResult {2}r{100}…/);
    await say(terminal, "/history 1");
    expect(terminal.text()).toContain("… 3 earlier messages");
  });

  it("draws the bar of the window in 30 cells, by its color [C52, CLI-06, TOK-06]", async () => {
    const counted = (total: number) => assistant("x", { input: total - 10, output: 10, cacheRead: 0, cacheWrite: 0 });
    await seed(directory.path, [{ key: "k", drafts: [user("a"), counted(1234)] }]);
    await using terminal = chat(["--key", "k", "--window", "180000", "--model", "offline"]);
    await terminal.waitForPrompt();
    await say(terminal, "/context");
    expect(terminal.text()).toMatch(/Context usage: ~[\d,]+ \/ 180,000 tokens\n\[-{30}\] 0\.\d%/);
    expect(terminal.raw()).toMatch(/\u001b\[32m\[-{30}\]/);
  });

  it("refuses to delete where it is, and archives elsewhere by the exact name only", async () => {
    await seed(directory.path, [
      { key: "agent:main:here", drafts: [user("1")] },
      { key: "agent:main:there", drafts: [user("2")] },
    ]);
    await using terminal = chat(["--key", "agent:main:here"]);
    await terminal.waitForPrompt();
    await say(terminal, "/delete agent:main:here");
    expect(terminal.text()).toContain("This is the current session");
    await say(terminal, "/delete agent:main:th");
    expect(terminal.text()).toContain("has exactly the key or id");
    await say(terminal, "/delete agent:main:there");
    expect(terminal.text()).toContain("Archived agent:main:there");
    expect(await saidIn(directory.path, "id-agent-main-there")).toEqual(["2"]);
  });

  it("begins anew with /reset, and /new does so where it is set up to [C16, C17, CLI-08]", async () => {
    await seed(directory.path, [{ key: "k", entry: { label: "Kept" }, drafts: [user("1")] }]);
    writeFileSync(join(directory.path, "config.json"), JSON.stringify({ newResets: true }));
    await using terminal = chat(["--key", "k"]);
    await terminal.waitForPrompt();
    await say(terminal, "/reset");
    expect(terminal.text()).toMatch(/Reset\. The new id is .+; the old session is archived as id-k\./);
    await say(terminal, "hello");
    await say(terminal, "/new whatever");
    await say(terminal, "/status");
    expect(terminal.text()).toMatch(/messages +0, 0 records/);
    const { stdout } = await runHere(directory.path, ["sessions", "--archived", "--json"]);
    expect(objects(stdout).filter(({ state }) => state === "archived")).toHaveLength(2);
    expect(objects(stdout).filter(({ state }) => state === "active")).toMatchObject([{ key: "k", label: "Kept" }]);
  });

  it("says that another program reset the session, sends nothing, and goes where it is told to", async () => {
    await using terminal = chat(["--key", "k"]);
    await terminal.waitForPrompt();
    await say(terminal, "the first word");
    const resetElsewhere = async (): Promise<void> => {
      expect(await runHere(directory.path, ["reset", "k", "--yes"])).toMatchObject({ code: 0 });
    };
    await resetElsewhere();
    await say(terminal, "the second word");
    const text = terminal.text();
    expect(text).toMatch(/error: Session \S+ was reset by another program: the key k has the new session/);
    expect(text).toMatch(/Nothing was sent\. \/accept continues in the new session; \/recover continues in a copy/);
    expect(await saidIn(directory.path, "k")).toEqual([]);
    for (const command of ["/history", "/model offline/offline-rules", "/compact"]) {
      await say(terminal, command);
      expect(terminal.text().match(/was reset by another program/g)?.length).toBeGreaterThanOrEqual(2);
    }
    await say(terminal, "/accept");
    expect(terminal.text()).toContain("Continuing in the new session k");
    await say(terminal, "the third word");
    expect(await saidIn(directory.path, "k")).toEqual(["the third word"]);
    await resetElsewhere();
    await say(terminal, "/recover");
    expect(terminal.text()).toContain("Continuing in a copy of the earlier session: k-recovered");
    await say(terminal, "the fourth word");
    expect(await saidIn(directory.path, "k")).toEqual([]);
    expect(await saidIn(directory.path, "k-recovered")).toEqual(["the third word", "the fourth word"]);
    await say(terminal, "/accept");
    expect(terminal.text()).toContain("No other program has reset this session.");
  });

  it("says what it cannot do instead of doing something else", async () => {
    await using terminal = chat();
    await terminal.waitForPrompt();
    await say(terminal, "/compact");
    expect(terminal.text()).toContain("There are no messages yet.");
    await say(terminal, "/status");
    for (const name of ["messages", "tokens", "compactions", "breaker", "pending"])
      expect(terminal.text()).toMatch(new RegExp(`\\n${name} +\\S`));
    await say(terminal, "/model nobody/x");
    expect(terminal.text()).toContain('No provider is called "nobody"');
    await say(terminal, "/model anthropic/claude-opus-5");
    expect(terminal.text()).toContain("Set ANTHROPIC_API_KEY");
    await say(terminal, "/quiet");
    terminal.write("\u0004");
    expect(await terminal.exitCode()).toBe(0);
    expect(terminal.text()).toContain("No messages, so nothing is saved.");
  });

  it("says which model answers and why, and that the offline one is no language model", async () => {
    await using terminal = chat([], { columns: 200 });
    await terminal.waitFor("offline rules, not a language model (ANTHROPIC_API_KEY and OPENAI_API_KEY are not set)");
    await terminal.waitForPrompt();
    await using keyed = chat([], { environment: { OPENAI_API_KEY: "sk-test" } });
    await keyed.waitFor("model: openai/gpt-5 (OPENAI_API_KEY is set)");
    await keyed.waitForPrompt();
    await using named = chat(["--model", "ollama/qwen3:8b"], { environment: { OPENAI_API_KEY: "sk-test" } });
    await named.waitFor("model: ollama/qwen3:8b (--model)");
    await named.waitForPrompt();
  });
});

describe("keys", () => {
  it("paste several lines as one text, and a key right behind them is not lost", async () => {
    await using terminal = chat(["--key", "k"]);
    await terminal.waitForPrompt();
    const pasted = "\u001b[200~first\r\nsecond\rthird \u001b]0;x\u0007\u001b[201~!\r";
    // Byte by byte: a terminal may cut its input anywhere.
    for (const byte of pasted) terminal.write(byte);
    await terminal.waitForPrompt();
    await say(terminal, "one\\\rtwo");
    await say(terminal, "a\u001b\rb");
    expect(await saidIn(directory.path, "k")).toEqual(["first\nsecond\nthird !", "one\ntwo", "a\nb"]);
  });

  it("edit in the middle, and bring back what was said before, from a file of its owner's", async () => {
    await using terminal = chat(["--key", "k"]);
    await terminal.waitForPrompt();
    await say(terminal, "wrld\u001b[D\u001b[D\u001b[Do\u0001the \u0005!");
    await say(terminal, "👩‍👩‍👧한\u007fok");
    await say(terminal, "\u001b[A\u001b[A");
    expect(await saidIn(directory.path, "k")).toEqual(["the world!", "👩‍👩‍👧ok", "the world!"]);
    const file = join(directory.path, "chat-history-main.jsonl");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readFileSync(file, "utf8").split("\n")[0]).toBe('"the world!"');
  });

  it("cancel a line, then leave with two of Ctrl-C and 130", async () => {
    await using terminal = chat();
    await terminal.waitForPrompt();
    terminal.write("half a thought\u0003");
    await terminal.waitFor("> half a thought\n");
    terminal.write("\u0003");
    await terminal.waitFor("Ctrl-C again leaves");
    terminal.write("\u0003");
    expect(await terminal.exitCode()).toBe(130);
    expect(existsSync(join(directory.path, "chat-history-main.jsonl"))).toBe(false);
  });

  it("are shown on a terminal that says it has 0 columns and rows, as on one of the usual size", async () => {
    const script = join(directory.path, "no-size.mjs");
    const bin = JSON.stringify(binPath);
    const unsized = `execFileSync("stty", ["cols", "0", "rows", "0"], { stdio: "inherit" });`;
    writeFileSync(script, `import { execFileSync } from "node:child_process";\n${unsized}\nawait import(${bin});\n`);
    await using terminal = chat(["--key", "k"], { script });
    await terminal.waitForPrompt();
    terminal.write("a few words");
    await terminal.waitFor("words");
    terminal.write("\u001b[D\u001b[D\r");
    await terminal.waitForPrompt();
    expect(terminal.raw()).not.toContain("Infinity");
    expect(await saidIn(directory.path, "k")).toEqual(["a few words"]);
  });

  it("wrap on a terminal of 20 columns and are right after it changes its size", async () => {
    await using terminal = chat(["--key", "k"], { columns: 20 });
    await terminal.waitForPrompt();
    terminal.write("a line that is longer than twenty columns");
    await terminal.waitFor("columns");
    terminal.resize(60, 24);
    terminal.write(" and more\r");
    await terminal.waitForPrompt();
    expect(await saidIn(directory.path, "k")).toEqual(["a line that is longer than twenty columns and more"]);
  });

  it("work without moving the cursor on a terminal that cannot, and without color under NO_COLOR", async () => {
    await using dumb = chat(["--key", "k"], { environment: { TERM: "dumb", NO_COLOR: "1" } });
    await dumb.waitFor("> ");
    dumb.write("helo\u007flo\r");
    await dumb.waitFor(/\n> $/);
    expect(dumb.raw()).not.toContain("\u001b");
    expect(await saidIn(directory.path, "k")).toEqual(["hello"]);
    await using plain = chat(["--key", "k"], { environment: { NO_COLOR: "1" } });
    await plain.waitForPrompt();
    await say(plain, "hello");
    expect(plain.raw()).not.toMatch(/\u001b\[\d*m/);
  });
});

describe("what was printed", () => {
  it("is never written again: nothing above the line that is typed is erased", async () => {
    await using terminal = chat(["--key", "k"]);
    await terminal.waitForPrompt();
    for (let turn = 0; turn < 12; turn++) await say(terminal, `hello, this is turn ${turn} of them`);
    // Clearing, scroll regions, scrolling, saved cursors, the second screen, the mouse.
    expect(terminal.raw()).not.toMatch(
      /\u001b\[[23]J|\u001b\[H|\u001b\[[\d;]*r|\u001b\[\d*[ST]|\u001b[78]|\?1049h|\?100\dh/,
    );
    const judge = createScreenJudge(80, 24);
    judge.write(terminal.raw());
    const lines = await judge.lines();
    for (let turn = 0; turn < 12; turn++)
      expect(lines.filter((line) => line === `> hello, this is turn ${turn} of them`)).toHaveLength(1);
    expect(lines.filter((line) => line.trim() === ">")).toHaveLength(1);
  });

  it("holds nothing a transcript could do to a terminal", async () => {
    const attack = "a\u001b]52;c;cm0gLXJm\u0007b\u001b[2Jc\u009b31md\u202ee\rf\u0008";
    await seed(directory.path, [{ key: "k", entry: { label: attack }, drafts: [user(attack), assistant(attack)] }]);
    await using terminal = chat(["--key", "k"], { environment: { NO_COLOR: "1" } });
    await terminal.waitForPrompt();
    for (const line of ["/history", "/sessions", "/status", "/switch a", "what did I say before"])
      await say(terminal, line);
    const own = /\u001b\[\?(?:2004|2026|7)[hl]|\u001b\[[JK]|\u001b\[\d+[ABC]|\u001b\]133;[ACD]\u0007|\r/g;
    expect(terminal.raw().replace(own, "").replaceAll("\n", "")).not.toMatch(
      /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202e]/,
    );
  });
});
