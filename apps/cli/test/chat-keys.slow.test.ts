import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createProviderSimulator } from "@throughline/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { objects, runHere, seed, sentBody, assistant, temporaryDirectory, user, saidIn } from "./harness.ts";
import { rowOf, screenOf } from "./screens.ts";
import { runInTerminal, type Terminal } from "./terminal.ts";

let directory = temporaryDirectory();
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(() => directory.remove());

const longAnswer = { kind: "answer", content: "word ".repeat(400), eventDelayMs: 100 } as const;
const escape = "\u001b";
const ctrlO = "\u000f";
const altEnter = "\u001b\r";
const altUp = "\u001b[1;3A";

function chat(url: string, columns = 80, environment: Readonly<Record<string, string>> = {}): Terminal {
  return runInTerminal(directory.path, ["chat", "--key", "k", "--model", "anthropic/claude-opus-5"], {
    columns,
    environment: { ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: url, ...environment },
  });
}

describe("while a reply is written", () => {
  it("Enter queues a text, Alt+Up takes it back, and Esc cancels the turn and gives back what waits", async () => {
    await using provider = createProviderSimulator({ replies: [longAnswer], fallback: () => "Here again." });
    await provider.start();
    await using terminal = chat(provider.url);
    await terminal.waitForPrompt();
    terminal.write("tell me\r");
    await rowOf(terminal, /^[⠋⠙⠹⠸⠼⠴⠦⠧] \d+ s$/);
    await rowOf(terminal, /word word/);
    terminal.write("first\r");
    await rowOf(terminal, /^1 queued · /);
    terminal.write("second\r");
    await rowOf(terminal, /^2 queued · /);
    terminal.write(altUp);
    await rowOf(terminal, /^> second$/);
    await rowOf(terminal, /^1 queued · /);
    terminal.write(escape);
    await rowOf(terminal, /canceled; what had arrived is kept/);
    await rowOf(terminal, /^> first$/);
    await rowOf(terminal, /^ {2}second$/);
    await terminal.waitForPrompt();
    expect(await saidIn(directory.path, "k")).toEqual(["tell me"]);
    terminal.write("\r");
    await rowOf(terminal, /Here again/);
    await terminal.waitForPrompt();
    expect(await saidIn(directory.path, "k")).toEqual(["tell me", "first\nsecond"]);
  });

  it("sends what waits as a turn of its own when the reply has ended", async () => {
    const answer = { kind: "answer", content: "one ".repeat(20), eventDelayMs: 100 } as const;
    await using provider = createProviderSimulator({ replies: [answer], fallback: () => "The second reply." });
    await provider.start();
    await using terminal = chat(provider.url);
    await terminal.waitForPrompt();
    terminal.write("tell me\r");
    await rowOf(terminal, /one one/);
    terminal.write("and then?\r");
    await terminal.waitFor("The second reply.");
    await terminal.waitForPrompt();
    await terminal.waitForPrompt();
    expect(await saidIn(directory.path, "k")).toEqual(["tell me", "and then?"]);
    const rows = await screenOf(terminal);
    expect(rows.filter((row) => row === "> and then?")).toHaveLength(1);
  });
});

/** Two calls with a read between them: what is steered reaches the second. */
const reading = {
  kind: "answer",
  content: [
    { type: "text", text: "I read the note, word for word." },
    { type: "tool-call", id: "call_1", name: "read", input: { path: "note.txt" } },
  ],
  eventDelayMs: 200,
} as const;

/** Sends the first text, and returns once the turn that reads the note runs. */
async function untilItReads(terminal: Terminal): Promise<void> {
  await terminal.waitForPrompt();
  terminal.write("read it\r");
  await rowOf(terminal, /I read/);
}

describe("a text that is steered", () => {
  it("is in the next call of the running turn, and stands where it came", async () => {
    writeFileSync(join(directory.path, "note.txt"), "the first line\n\u001b[31mthe second\n");
    await using provider = createProviderSimulator({ replies: [reading], fallback: () => "Both are done." });
    await provider.start();
    await using terminal = chat(provider.url);
    await untilItReads(terminal);
    terminal.write(`and count the words${altEnter}`);
    await rowOf(terminal, /^1 steering · /);
    await terminal.waitFor("Both are done.");
    await terminal.waitForPrompt();
    expect(provider.requests).toHaveLength(2);
    expect(JSON.stringify(sentBody(provider.requests[1])["messages"])).toContain("and count the words");
    expect(await saidIn(directory.path, "k")).toEqual(["read it", "and count the words"]);
    expect(await screenOf(terminal)).toContain("> and count the words (steered)");
    // The result of the tool stands in one row until it is asked for.
    terminal.write(ctrlO);
    await rowOf(terminal, /^ {2}the first line$/);
    await rowOf(terminal, /␛\[31mthe second$/);
  });

  it("brings the files that it names", async () => {
    writeFileSync(join(directory.path, "note.txt"), "the first line\n");
    writeFileSync(join(directory.path, "more.txt"), "the words of more\n");
    await using provider = createProviderSimulator({ replies: [reading], fallback: () => "Both are done." });
    await provider.start();
    await using terminal = chat(provider.url);
    await untilItReads(terminal);
    terminal.write(`and @more.txt${altEnter}`);
    await terminal.waitFor("Both are done.");
    await terminal.waitForPrompt();
    expect(provider.requests).toHaveLength(2);
    expect(JSON.stringify(sentBody(provider.requests[1])["messages"])).toContain("[more.txt]\\nthe words of more");
  });

  it("is a turn of its own without another call, and comes back with Alt+Up and with Esc before that", async () => {
    const answer = { kind: "answer", content: "one ".repeat(30), eventDelayMs: 100 } as const;
    await using provider = createProviderSimulator({ replies: [answer, answer, longAnswer], fallback: () => "Last." });
    await provider.start();
    await using terminal = chat(provider.url);
    await terminal.waitForPrompt();
    terminal.write("tell me\r");
    await rowOf(terminal, /one one/);
    terminal.write(`never mind${altEnter}`);
    await rowOf(terminal, /^1 steering · /);
    terminal.write(altUp);
    await rowOf(terminal, /^> never mind$/);
    terminal.write(altEnter);
    await terminal.waitFor("> never mind");
    await terminal.waitForPrompt();
    expect(await saidIn(directory.path, "k")).toEqual(["tell me", "never mind"]);
    terminal.write("go on\r");
    await rowOf(terminal, /word word/);
    terminal.write(`stop there${altEnter}`);
    await rowOf(terminal, /^1 steering · /);
    terminal.write(escape);
    await rowOf(terminal, /^> stop there$/);
    await terminal.waitForPrompt();
    expect(await saidIn(directory.path, "k")).toEqual(["tell me", "never mind", "go on"]);
  });
});

describe("a provider that asks to wait", () => {
  it("is named, and the status line counts down", async () => {
    const busy = { kind: "error", status: 429, retryAfterMs: 7000 } as const;
    await using provider = createProviderSimulator({ replies: [busy], fallback: () => "Here I am." });
    await provider.start();
    await using terminal = chat(provider.url);
    await terminal.waitForPrompt();
    terminal.write("hello\r");
    await terminal.waitFor("The provider answered 429 and is asked again in 7 seconds.");
    // Under load a second may pass before a frame is looked at.
    await rowOf(terminal, /^retry in [4-7] s · /);
    await rowOf(terminal, /^retry in [1-3] s · /);
    await terminal.waitFor("Here I am.");
    await terminal.waitForPrompt();
    expect((await screenOf(terminal)).some((row) => row.startsWith("retry in"))).toBe(false);
  });
});

describe("the commands of texts", () => {
  it("name the session, and copy a reply by its number from the end", async () => {
    await using provider = createProviderSimulator({ replies: ["The first.", "The **second**."] });
    await provider.start();
    await using terminal = chat(provider.url);
    const copied = (): string =>
      Buffer.from(terminal.raw().split("\u001b]52;c;").at(-1)?.split("\u0007", 1)[0] ?? "", "base64").toString();
    const say = async (line: string): Promise<void> => {
      terminal.write(`${line}\r`);
      await terminal.waitForPrompt();
    };
    await terminal.waitForPrompt();
    await say("/copy");
    expect(terminal.text()).toContain("There are no replies yet.");
    await say("one");
    await say("two");
    await say("/copy");
    expect(copied()).toBe("The **second**.");
    await say("/copy 2");
    expect(copied()).toBe("The first.");
    await say("/copy 3");
    expect(terminal.text()).toContain("There are only 2 replies.");
    await say("/rename Fix the login");
    await rowOf(terminal, /^Fix the login · /);
    const { stdout } = await runHere(directory.path, ["sessions", "--json"]);
    expect(objects(stdout)[0]).toMatchObject({ key: "k", name: "Fix the login" });
  });
});

describe("a session that another program writes", () => {
  it.each([[[]], [["--plain"]]])("is reported while the chat waits, and /reload takes it in %j", async (args) => {
    await using provider = createProviderSimulator({ fallback: () => "A reply." });
    await provider.start();
    await using terminal = runInTerminal(
      directory.path,
      ["chat", "--key", "k", "--model", "anthropic/claude-opus-5", ...args],
      { environment: { ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: provider.url } },
    );
    await terminal.waitFor("> ");
    terminal.write("first\r");
    await terminal.waitFor("A reply.");
    await (args.length === 0 ? terminal.waitForPrompt() : terminal.waitFor("> "));
    const environment = { ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: provider.url };
    const other = ["chat", "--key", "k", "--once", "from elsewhere", "--model", "anthropic/claude-opus-5"];
    expect((await runHere(directory.path, other, { environment })).code).toBe(0);
    if (args.length === 0) await rowOf(terminal, /^changed elsewhere: \/reload · /);
    else await terminal.waitFor("(changed elsewhere: /reload)");
    terminal.write("/reload\r");
    await terminal.waitFor(/Read again: the session and \d+ instruction files?\./);
    if (args.length === 0) {
      await rowOf(terminal, /^> from elsewhere$/);
      await expect.poll(async () => (await screenOf(terminal)).join("\n")).not.toContain("changed elsewhere");
    }
    terminal.write("next\r");
    await terminal.waitFor("A reply.");
    expect(await saidIn(directory.path, "k")).toEqual(["first", "from elsewhere", "next"]);
  });
});

describe("the status line", () => {
  it("states what the session cost, as usage counts it, also after a restart", async () => {
    const usage = { inputTokens: 10_000, outputTokens: 1000 };
    await using provider = createProviderSimulator({ fallback: () => ({ kind: "answer", content: "Here.", usage }) });
    await provider.start();
    const environment = { THROUGHLINE_PRICES: '{"claude-opus-5":{"input":200,"output":1000}}' };
    for (const isFirst of [true, false]) {
      await using terminal = chat(provider.url, 80, environment);
      await terminal.waitForPrompt();
      if (isFirst) terminal.write("hello\r");
      await rowOf(terminal, / · ~\$3\.00 · ~$/);
      terminal.write("/quit\r");
      await terminal.exitCode();
    }
    const { stdout } = await runHere(directory.path, ["usage", "--json"], { environment });
    expect(objects(stdout)).toContainEqual(expect.objectContaining({ costUsd: 3 }));
  });

  it("names the session, the model, the fullness and the folder, and drops them on a narrow terminal", async () => {
    await seed(directory.path, [
      { key: "k", entry: { label: "Fix the login" }, drafts: [user("hello"), assistant("Hi **there**, `code`.")] },
    ]);
    for (const [columns, wanted] of [
      [80, /^Fix the login · anthropic\/claude-opus-5 · ▯▯▯▯▯ \d % · ~$/],
      [47, /^anthropic\/claude-opus-5 · ▯▯▯▯▯ \d %$/],
      [20, /^\d %$/],
    ] as const) {
      await using terminal = chat("http://127.0.0.1:1", columns);
      await terminal.waitForPrompt();
      await rowOf(terminal, wanted, columns);
      if (columns !== 80) continue;
      // The session is shown again as it stood there.
      const rows = await screenOf(terminal);
      expect(rows.filter((row) => row === "> hello")).toHaveLength(1);
      expect(rows).toContain("Hi there, code.");
    }
  });
});
