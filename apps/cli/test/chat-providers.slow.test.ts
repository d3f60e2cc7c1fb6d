import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createProviderSimulator } from "@throughline/testing";
import type { ProviderSimulatorOptions } from "@throughline/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { isLongRun } from "../../../tools/test-size.ts";
import { objects, runChild, runHere, start, temporaryDirectory } from "./harness.ts";
import { screenOf } from "./screens.ts";
import { runInTerminal, type Terminal } from "./terminal.ts";

interface Provider {
  readonly model: string;
  environment(url: string): Record<string, string>;
}

const providers: Readonly<Record<string, Provider>> = {
  "@anthropic-ai/sdk": {
    model: "anthropic/claude-opus-5",
    environment: (url) => ({ ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: url }),
  },
  openai: {
    model: "openai/gpt-5",
    environment: (url) => ({ OPENAI_API_KEY: "sk-test", OPENAI_BASE_URL: `${url}/v1` }),
  },
  ollama: { model: "ollama/qwen3:8b", environment: (url) => ({ OLLAMA_HOST: url }) },
};

const key = "agent:main:cli:direct:work";
let directory = temporaryDirectory();
beforeEach(() => {
  directory = temporaryDirectory();
  writeFileSync(join(directory.path, "a.txt"), "alpha");
  writeFileSync(join(directory.path, "b.txt"), "beta");
});
afterEach(() => directory.remove());

async function roles(of: string): Promise<string[]> {
  const { stdout } = await runHere(directory.path, ["show", of, "--json", "--quiet"]);
  return objects(stdout).flatMap(({ record }) => {
    const { message } = (record ?? {}) as { message?: { role: string } };
    return message === undefined ? [] : [message.role];
  });
}

async function simulator(options: ProviderSimulatorOptions): Promise<ReturnType<typeof createProviderSimulator>> {
  const made = createProviderSimulator({ ollamaContextTokens: 100_000, ...options });
  await made.start();
  return made;
}

/** The rows of the screen as one text: the terminal does not join what the reply was wrapped at. */
async function shownText(terminal: Terminal): Promise<string> {
  return (await screenOf(terminal)).join(" ");
}

const bothFiles = {
  kind: "answer",
  content: [
    { type: "text", text: "I read both." },
    { type: "tool-call", name: "read", input: { path: "a.txt" } },
    { type: "tool-call", name: "read", input: { path: "b.txt" } },
  ],
} as const;
/** It lasts longer than any time that a test allows. */
const endlessAnswer = { kind: "answer", content: "word ".repeat(40_000), eventDelayMs: 50 } as const;
const longAnswer = { kind: "answer", content: "word ".repeat(400), eventDelayMs: 100 } as const;

describe.each(Object.entries(providers))("a conversation through %s", (name, { model, environment }) => {
  // On a terminal the command line does the same for each of them; the short tier tries the first.
  const onTerminal = (title: string, body: () => Promise<void>): void => {
    if (isLongRun || name === "@anthropic-ai/sdk") it(title, body);
  };

  it("is killed in the middle of a reply, says so at the next start, and goes on without a refusal", async () => {
    await using provider = await simulator({ replies: [bothFiles, longAnswer], fallback: () => "Here again." });
    const options = { environment: environment(provider.url) };
    const args = ["chat", "--key", key, "--model", model];

    const child = start(directory.path, [...args, "--once", "Read a.txt and b.txt"], options);
    child.stdin.end();
    let printed = "";
    let talk = "";
    child.stdout.on("data", (chunk) => (printed += chunk));
    child.stderr.on("data", (chunk) => (talk += chunk));
    await expect.poll(() => printed).toMatch(/word word/);
    child.kill("SIGKILL");
    await once(child, "close");
    expect(printed).toContain("I read both.");
    // The two run at the same time; whichever ends first is told first.
    for (const line of [/^read a\.txt \(5 B, \d+ ms\)$/m, /^read b\.txt \(4 B, \d+ ms\)$/m]) expect(talk).toMatch(line);

    const next = await runChild(directory.path, [...args, "--once", "Go on"], options);
    expect(next).toMatchObject({ code: 0, stdout: "Here again.\n" });
    expect(next.stderr).toMatch(
      /The last turn, of another process \(pid \d+\), was interrupted .+ ago: "Read a\.txt and b\.txt"/,
    );
    const last = await runChild(directory.path, [...args, "--once", "And?", "--json"], options);
    expect(objects(last.stdout)).toMatchObject([{ kind: "turn", key, outcome: "done", text: "Here again.", calls: 1 }]);

    expect(provider.refusals).toEqual([]);
    const sent = JSON.stringify(provider.requests.at(-1)?.body);
    for (const text of ["I read both.", "alpha", "beta", "Go on", "And?"]) expect(sent).toContain(text);
    expect(await roles(key)).toEqual([
      "user",
      "assistant",
      "toolResult",
      "toolResult",
      "user",
      "assistant",
      "user",
      "assistant",
    ]);
  });

  onTerminal("keeps what had arrived when Ctrl-C cancels a turn, and is there for the next one", async () => {
    await using provider = await simulator({ replies: [longAnswer], fallback: () => "Here again." });
    await using terminal = runInTerminal(directory.path, ["chat", "--key", key, "--model", model], {
      environment: environment(provider.url),
    });
    await terminal.waitForPrompt();
    terminal.write("Tell me\r");
    await terminal.waitFor("word word");
    terminal.write("\u0003");
    await terminal.waitFor("(canceled; what had arrived is kept)");
    await terminal.waitForPrompt();
    terminal.write("And now?\r");
    await terminal.waitFor("Here again.");
    await terminal.waitForPrompt();
    const { stdout } = await runHere(directory.path, ["show", key, "--json", "--role", "assistant", "--quiet"]);
    const [kept] = objects(stdout).map(({ record }) => (record as { message: object } | undefined)?.message);
    expect(kept).toMatchObject({
      stopReason: "aborted",
      content: [{ type: "text", text: expect.stringMatching(/^(word ){2,399}/) }],
    });
    expect(provider.refusals).toEqual([]);
  });

  onTerminal("keeps what had arrived when its terminal is closed", async () => {
    await using provider = await simulator({ replies: [longAnswer], fallback: () => "Here again." });
    const options = { environment: environment(provider.url) };
    {
      await using terminal = runInTerminal(directory.path, ["chat", "--key", key, "--model", model], options);
      await terminal.waitForPrompt();
      terminal.write("Tell me\r");
      await terminal.waitFor("word word");
      terminal.kill("SIGHUP");
      await terminal.exitCode();
    }
    const { stdout } = await runHere(directory.path, ["show", key, "--json", "--role", "assistant", "--quiet"]);
    expect(objects(stdout)).toMatchObject([{ record: { message: { stopReason: "aborted" } } }, { kind: "end" }]);
    const next = await runChild(directory.path, ["chat", "--key", key, "--model", model, "--once", "Go on"], options);
    expect(next).toMatchObject({
      code: 0,
      stdout: "Here again.\n",
      stderr: expect.not.stringContaining("interrupted"),
    });
    expect(provider.refusals).toEqual([]);
  });

  onTerminal(
    "says what the provider said when a call fails, keeps what was said, and asks again with /continue",
    async () => {
      const failure = { kind: "error", status: 400, message: "the moon is in the wrong phase" } as const;
      await using provider = await simulator({ replies: [failure], fallback: () => "Here again." });
      await using terminal = runInTerminal(directory.path, ["chat", "--key", key, "--model", model], {
        environment: environment(provider.url),
      });
      await terminal.waitForPrompt();
      terminal.write("Tell me\r");
      await terminal.waitFor("wrong phase");
      await terminal.waitForPrompt();
      terminal.write("/continue\r");
      await terminal.waitFor("Here again.");
      await terminal.waitForPrompt();
      expect(await roles(key)).toEqual(["user", "assistant"]);
      expect(provider.refusals).toEqual([]);
    },
  );
});

describe("two terminals on one session", () => {
  it("reject, queue and branch as asked, and nothing of two turns is mixed", async () => {
    const slow = { kind: "answer", content: "slow ".repeat(600), eventDelayMs: 50 } as const;
    await using provider = await simulator({ replies: ["quick", slow], fallback: () => "quick" });
    const anthropic = providers["@anthropic-ai/sdk"];
    const options = { environment: anthropic?.environment(provider.url) ?? {} };
    const args = ["chat", "--key", key, "--model", anthropic?.model ?? "", "--json"];
    await runChild(directory.path, [...args, "--once", "before all"], options);

    const first = start(directory.path, [...args.slice(0, -1), "--once", "first"], options);
    first.stdin.end();
    let printed = "";
    first.stdout.on("data", (chunk) => (printed += chunk));
    const isOver = once(first, "close");
    await expect.poll(() => printed).toContain("slow slow");

    const rejected = await runChild(directory.path, [...args, "--once", "rejected"], options);
    expect(rejected.code).toBe(1);
    expect(objects(rejected.stderr).at(-1)).toMatchObject({
      code: "SESSION_BUSY",
      retryable: true,
      details: { owner: expect.stringContaining(`pid ${first.pid} `) },
    });
    const branched = await runChild(directory.path, [...args, "--once", "branched", "--when-busy", "branch"], options);
    expect(branched.code).toBe(0);
    const [branch] = objects(branched.stdout);
    expect(branch).toMatchObject({ outcome: "done", text: "quick", key: expect.not.stringMatching(/:work$/) });
    const queued = start(directory.path, [...args, "--once", "queued", "--when-busy", "queue"], options);
    queued.stdin.end();
    let answer = "";
    let talk = "";
    queued.stdout.on("data", (chunk) => (answer += chunk));
    queued.stderr.on("data", (chunk) => (talk += chunk));
    const isAnswered = once(queued, "close");
    await expect.poll(() => talk).toContain(`Waiting for another process (pid ${first.pid}) to end.`);
    first.kill("SIGINT");
    expect(await isOver).toEqual([130, null]);
    await isAnswered;
    expect(objects(answer)).toMatchObject([{ outcome: "done", text: "quick", key }]);

    const texts = async (of: string): Promise<string[]> => {
      const { stdout } = await runHere(directory.path, ["show", of, "--json", "--role", "user", "--quiet"]);
      return objects(stdout).flatMap(({ record }) =>
        record === undefined ? [] : [(record as { message: { content: string } }).message.content],
      );
    };
    expect(await texts(key)).toEqual(["before all", "first", "queued"]);
    expect(await roles(key)).toEqual(["user", "assistant", "user", "assistant", "user", "assistant"]);
    expect(await texts(String(branch?.["key"]))).toEqual(["before all", "branched"]);
    expect(provider.refusals).toEqual([]);
  });

  it("take turns in one conversation, each seeing what the other said", async () => {
    const args = ["chat", "--key", key, "--model", "offline"];
    await using first = runInTerminal(directory.path, args);
    await using second = runInTerminal(directory.path, args);
    await first.waitForPrompt();
    await second.waitForPrompt();
    first.write("my name is Ada\r");
    await first.waitFor("Hello, Ada.");
    // The answer is seen before the turn is closed; the prompt comes after.
    await first.waitForPrompt();
    second.write("what is my name\r");
    await second.waitFor("Your name is Ada.");
    await second.waitForPrompt();
    first.write("what did I say before\r");
    await first.waitFor('"what is my name"');
    await first.waitForPrompt();
    expect(await roles(key)).toEqual(["user", "assistant", "user", "assistant", "user", "assistant"]);
  });

  it("hear of each other: who has the turn, and what was interrupted", async () => {
    await using provider = await simulator({ replies: [endlessAnswer], fallback: () => "Here again." });
    const anthropic = providers["@anthropic-ai/sdk"];
    const options = { environment: anthropic?.environment(provider.url) ?? {} };
    const args = ["chat", "--key", key, "--model", anthropic?.model ?? ""];
    await using first = runInTerminal(directory.path, args, options);
    await first.waitForPrompt();
    first.write("Tell me\r");
    await first.waitFor("word word");
    await using second = runInTerminal(directory.path, args, options);
    await second.waitFor(/Another process \(pid \d+\) is still answering in this session\./);
    await second.waitForPrompt();
    second.write("Me too\r");
    await second.waitFor(/Its lock expires in \d+ s\.\s+Try again in \d+ s, or pass --when-busy queue\./);
    await second.waitForPrompt();
    // What was shown in the last second may be lost, and a reply of less than 80 characters is asked for again.
    await expect.poll(() => shownText(first), { timeout: 60_000 }).toMatch(/(?:word ){60}/);
    first.kill("SIGKILL");
    await first.exitCode();
    await using third = runInTerminal(directory.path, args, options);
    await third.waitFor(
      /The last turn, of .+, was interrupted .+ ago: "Tell me"\. \d+ characters of its reply are kept\./,
    );
    await third.waitForPrompt();
    third.write("/continue\r");
    // What was shown before the kill, and the rest on the same line.
    await expect.poll(() => shownText(third), { timeout: 60_000 }).toMatch(/(?:word )+(?:w|wo|wor|word)?Here again\./);
    await third.waitForPrompt();
    expect(await roles(key)).toEqual(["user", "assistant", "user", "assistant"]);
    const { stdout } = await runHere(directory.path, ["show", key]);
    expect(stdout).toContain("(cut off, continued)");
    expect(stdout).not.toContain("Your last reply was cut off");
    expect(provider.refusals).toEqual([]);
  });

  it("is given up after the time allowed, and what had arrived is kept", async () => {
    let askedAtMs = Number.POSITIVE_INFINITY;
    await using provider = await simulator({
      fallback: () => {
        askedAtMs = Math.min(askedAtMs, performance.now());
        return endlessAnswer;
      },
    });
    const anthropic = providers["@anthropic-ai/sdk"];
    // On a busy machine the start of a process takes longer than any fixed time. The words arrive in the second after the request.
    for (let timeoutMs = 4000; ; timeoutMs *= 2) {
      askedAtMs = Number.POSITIVE_INFINITY;
      const own = `${key}-${timeoutMs}`;
      const limit = ["--timeout", String(timeoutMs), "--json"];
      const args = ["chat", "--key", own, "--model", anthropic?.model ?? "", "--once", "Tell me", ...limit];
      const { code, stderr } = await runChild(directory.path, args, {
        environment: anthropic?.environment(provider.url) ?? {},
      });
      expect([code, objects(stderr).at(-1)?.["code"]]).toEqual([1, "ABORTED"]);
      if (performance.now() - askedAtMs < 2000) continue;
      expect(await roles(own)).toEqual(["user", "assistant"]);
      return;
    }
  });
});
