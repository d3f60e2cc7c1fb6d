import { appendFileSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createProviderSimulator } from "@throughline/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { objects, runChild, runHere, seed, temporaryDirectory, user, type Run } from "./harness.ts";
import { runInTerminal } from "./terminal.ts";

let directory = temporaryDirectory();
beforeEach(() => {
  directory = temporaryDirectory();
  for (const name of ["app", "api"]) mkdirSync(join(directory.path, name));
});
afterEach(() => directory.remove());

const noKeys = { ANTHROPIC_API_KEY: "", OPENAI_API_KEY: "", OLLAMA_HOST: "" };

function run(args: readonly string[], cwd = directory.path): Promise<Run> {
  return runHere(directory.path, args, { cwd, environment: noKeys });
}

/** Says something in a folder; gives the key of the session that it went to. */
async function say(cwd: string, text: string, more: readonly string[] = []): Promise<unknown> {
  const done = await run(["chat", "--once", text, "--json", "--model", "offline", ...more], cwd);
  expect([done.code, done.stderr.includes('"error"')]).toEqual([0, false]);
  return objects(done.stdout)[0]?.["key"];
}

async function session(key: string): Promise<Readonly<Record<string, unknown>> | undefined> {
  return objects((await run(["sessions", "--json"])).stdout).find((row) => row["key"] === key);
}

const importedKey = "agent:main:import:direct:s1";
const secret = "The harbor master keeps the lamp oil under the stairs";

/** A session in pi's form with a long first message. */
function piFile(usage: Readonly<Record<string, number>> = {}): string {
  const path = join(directory.path, "2026-01-01T00-00-00-000Z_s1.jsonl");
  const lines = [
    { type: "session", version: 3, id: "s1", timestamp: "2026-01-01T00:00:00.000Z", cwd: "/home/ada/pier" },
    {
      ...line("a1", null),
      message: { role: "user", content: `Can you fix the pier in src/app/pier/main.ts? ${secret}` },
    },
    {
      ...line("a2", "a1"),
      message: {
        role: "assistant",
        content: [{ type: "text", text: "Done." }],
        provider: "p",
        model: "m",
        stopReason: "stop",
        ...(Object.keys(usage).length === 0 ? {} : { usage }),
      },
    },
  ];
  writeFileSync(path, lines.map((one) => `${JSON.stringify(one)}\n`).join(""));
  return path;
}

function line(id: string, parentId: string | null): Readonly<Record<string, unknown>> {
  return { type: "message", id, parentId, timestamp: "2026-01-01T00:00:01.000Z" };
}

describe("the session that a conversation opens", () => {
  it("is the newest of the folder, through links, and of no other folder", async () => {
    const [app, api] = [join(directory.path, "app"), join(directory.path, "api")];
    const link = join(directory.path, "link");
    symlinkSync(app, link);
    expect(await say(app, "Can you fix the build?")).toBe("agent:main:cli:direct:app");
    expect(await say(api, "hello")).toBe("agent:main:cli:direct:api");
    expect(await say(link, "hello")).toBe("agent:main:cli:direct:app");
    expect(await say(directory.path, "hello", ["--workspace", link])).toBe("agent:main:cli:direct:app");
    expect(await say("/", "hello", ["--tools", "none"])).toBe("agent:main:cli:direct:chat");
    expect(await say("/", "hello", ["--tools", "none"])).toBe("agent:main:cli:direct:chat");
    expect(await session("agent:main:cli:direct:app")).toMatchObject({
      cwd: app,
      title: "Fix the build",
      titleBy: "rules",
      name: "Fix the build",
      program: null,
      messageCount: 6,
    });
    // Another folder of the same name is another folder.
    rmSync(app, { recursive: true });
    mkdirSync(join(directory.path, "new/app"), { recursive: true });
    expect(await say(join(directory.path, "new/app"), "hello")).toBe("agent:main:cli:direct:app-2");
  });

  it("keeps its folder over a reset, and /new makes one of the folder", async () => {
    const app = join(directory.path, "app");
    await say(app, "hello");
    expect((await run(["reset", "agent:main:cli:direct:app"])).code).toBe(0);
    expect(await say(app, "hello again")).toBe("agent:main:cli:direct:app");
    expect((await run(["new", "Plans"], app)).code).toBe(0);
    expect(await say(app, "hello")).toBe("agent:main:cli:direct:plans");
  });

  it("is never that of a channel, a group or a job, and none without a folder", async () => {
    const app = join(directory.path, "app");
    await seed(directory.path, [
      { key: "agent:main:cli:direct:old", drafts: [user("without a folder")] },
      { key: "agent:main:telegram:direct:ada", entry: { cwd: app }, drafts: [user("from a channel")] },
    ]);
    expect(await say(app, "hello")).toBe("agent:main:cli:direct:app");
  });
});

describe("a command of the terminal", () => {
  it("that is piped is not sent to a model", async () => {
    for (const text of ["/help", "/new plans", "/history --all"]) {
      const piped = await runHere(directory.path, ["chat", "--model", "offline"], { stdin: text, environment: noKeys });
      expect([piped.code, piped.stdout, piped.stderr.includes("Nothing was sent")]).toEqual([2, "", true]);
    }
    for (const text of ["/usr/bin is full", " /help", "/helper"])
      expect((await run(["chat", "--model", "offline", "--once", text])).code).toBe(0);
  });
});

describe("an imported session", () => {
  it("is neither resumed nor sent by itself", { tags: ["slow"] }, async () => {
    await using provider = createProviderSimulator({ fallback: () => "Hi." });
    await provider.start();
    expect((await run(["import", piFile()])).code).toBe(0);
    const environment = { ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: provider.url };
    const done = await runChild(directory.path, ["chat", "--once", "hello", "--model", "anthropic/claude-opus-5"], {
      environment,
    });
    expect(done).toMatchObject({ code: 0, stdout: "Hi.\n" });
    const sent = provider.requests.map(({ bytes }) => Buffer.from(bytes).toString("utf8")).join("\n");
    expect([provider.requests.length, sent.includes("harbor"), sent.includes("hello")]).toEqual([1, false, true]);
  });

  it("that is named states what is sent, without the system prompt and the tools that its program counted", async () => {
    await run(["import", piFile({ input: 16_000, output: 5, cacheRead: 0, cacheWrite: 0, totalTokens: 16_005 })]);
    const { stderr } = await run(["chat", "--key", importedKey, "--once", "hello", "--model", "offline"]);
    expect(stderr).toMatch(/Continuing in a fork: ~\d{2} tokens of "Fix the pier/);
  });

  it("that is named continues in a fork, after a line that says what goes where, and can be imported again", async () => {
    const path = piFile();
    await run(["import", path]);
    const app = join(directory.path, "app");
    const done = await run(["chat", "--key", importedKey, "--once", "hello", "--json", "--model", "offline"], app);
    expect(done.code).toBe(0);
    const notes = done.stderr.split("\n").join(" ");
    expect(notes).toMatch(
      /Continuing in a fork: ~[\d,]+ tokens of \\?"Fix the pier in main.ts\\?" \(pi\) are given to/,
    );
    expect(notes).toContain("The session worked in /home/ada/pier.");
    expect(objects(done.stdout)[0]?.["key"]).toBe("agent:main:cli:direct:app");
    const fork = await session("agent:main:cli:direct:app");
    expect(fork).toMatchObject({ title: "Fix the pier in main.ts", cwd: app, program: null, forkedFrom: "s1" });
    expect(fork?.["messageCount"]).toBe(4);
    expect(await session(importedKey)).toMatchObject({ messageCount: 2, program: "pi" });
    // Its program goes on writing.
    appendFileSync(path, `${JSON.stringify({ ...line("a3", "a2"), message: { role: "user", content: "More" } })}\n`);
    const again = await run(["import", path, "--json"]);
    expect([again.code, again.stdout.includes('"state":"grown"')]).toEqual([0, true]);
    expect(await session(importedKey)).toMatchObject({ messageCount: 3 });
    // The next conversation of the folder is the fork.
    expect(await say(app, "hello")).toBe("agent:main:cli:direct:app");
    expect(readFileSync(path, "utf8").split("\n")).toHaveLength(5);
  });

  it(
    "stays a new one when another conversation of the folder has taken its key meanwhile",
    { tags: ["slow"] },
    async () => {
      const app = join(directory.path, "app");
      const environment = { ...noKeys, HOME: directory.path, THROUGHLINE_HOME: directory.path };
      await using terminal = runInTerminal(app, ["chat", "--model", "offline"], { environment, columns: 200 });
      await terminal.waitFor("New session");
      await terminal.waitForPrompt();
      expect(await say(app, "hello")).toBe("agent:main:cli:direct:app");
      terminal.write("hello\r");
      await terminal.waitFor("I answer by rules");
      terminal.write("/quit\r");
      await terminal.waitFor("Saved. Resume");
      expect(await session("agent:main:cli:direct:app")).toMatchObject({ messageCount: 2 });
      expect(await session("agent:main:cli:direct:app-2")).toMatchObject({ messageCount: 2, cwd: app });
    },
  );

  it(
    "continues in a fork on a terminal with the first word, also after /switch by its title",
    { tags: ["slow"] },
    async () => {
      await run(["import", piFile()]);
      const app = join(directory.path, "app");
      const environment = { ...noKeys, HOME: directory.path, THROUGHLINE_HOME: directory.path };
      await using terminal = runInTerminal(app, ["chat", "--model", "offline"], { environment, columns: 200 });
      await terminal.waitFor("Esc new session");
      terminal.write("\u001b");
      await terminal.waitForPrompt();
      expect(terminal.text()).toMatch(/New session(?! here)/);
      terminal.write("/switch fix the pier\r");
      await terminal.waitFor("Continuing in a fork");
      terminal.write("/history\r");
      await terminal.waitFor("lamp oil");
      terminal.write("/context\r");
      await terminal.waitFor("/context");
      await terminal.waitForPrompt();
      expect(terminal.text()).not.toContain("no messages yet");
      expect(await session("agent:main:cli:direct:app")).toBeUndefined();
      terminal.write("hello\r");
      await terminal.waitFor("I answer by rules");
      terminal.write("/quit\r");
      expect(await terminal.exitCode()).toBe(0);
      expect(await session("agent:main:cli:direct:app")).toMatchObject({
        messageCount: 4,
        name: "Fix the pier in main.ts",
      });
      expect(await session(importedKey)).toMatchObject({ messageCount: 2 });
    },
  );
});

describe("sessions", () => {
  it("names program and folder for people, filters by both, and ends with the key", async () => {
    await run(["import", piFile()]);
    const app = join(directory.path, "app");
    await say(app, "hi");
    const shown = (await run(["sessions"])).stdout.split("\n");
    expect(shown[0]?.split("\t")).toEqual([
      '"hi"',
      "own",
      "~/app",
      "2",
      expect.any(String),
      "",
      "",
      "agent:main:cli:direct:app",
    ]);
    expect(shown[1]?.split("\t").slice(0, 4)).toEqual(["Fix the pier in main.ts", "pi", "/home/ada/pier", "2"]);
    const keys = async (args: readonly string[], cwd = directory.path): Promise<readonly unknown[]> =>
      objects((await run(["sessions", "--json", ...args], cwd)).stdout).flatMap(({ key }) => key ?? []);
    expect(await keys(["--here"], app)).toEqual(["agent:main:cli:direct:app"]);
    expect(await keys(["--folder", "app"])).toEqual(["agent:main:cli:direct:app"]);
    expect(await keys(["--program", "pi"])).toEqual([importedKey]);
    expect(await keys(["--program", "own", "--folder", "/home/ada/pier"])).toEqual([]);
    expect((await run(["sessions", "--program", "vi"])).code).toBe(2);
    expect((await run(["show", "Fix the pier", "--json"])).code).toBe(0);
    // A fork that a command makes keeps the title, and belongs to the folder it was made in.
    expect((await run(["fork", importedKey], app)).code).toBe(0);
    expect(await session(`${importedKey}-fork`)).toMatchObject({ title: "Fix the pier in main.ts", cwd: app });
    expect((await run(["delete", "Fix the pier", "--yes"])).code).toBe(1);
  });
});
