import { execFile, spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { testSize } from "../../../tools/test-size.ts";
import { commandTable } from "../src/command-table.ts";
import {
  assistant,
  binPath,
  cleanEnvironment,
  objects,
  runChild,
  runHere,
  seed,
  sourceCondition,
  start,
  temporaryDirectory,
  user,
} from "./harness.ts";

const directory = temporaryDirectory();
const home = directory.path;

beforeAll(async () => {
  await seed(home, [
    { key: "agent:main:one", entry: { label: "First" }, drafts: [user("hello"), assistant("hi")] },
    { key: "agent:main:two", drafts: [user("x")] },
    { key: "agent:work:plans", drafts: [user("secret plan")] },
  ]);
  writeFileSync(join(home, "bad-config.json"), '{"stoer":"memory:"}');
  writeFileSync(join(home, "plain.txt"), "no transcript at all\n");
});
afterAll(() => directory.remove());

interface Case {
  readonly args: readonly string[];
  readonly code: number;
  /** Of the error; null when there is none. */
  readonly error: string | null;
  readonly message?: RegExp;
  readonly stdin?: string;
}

const cases: readonly Case[] = [
  { args: ["bogus"], code: 2, error: "USAGE", message: /unknown command 'bogus'/ },
  { args: ["session"], code: 2, error: "USAGE", message: /Did you mean sessions/ },
  { args: ["--bogus"], code: 2, error: "USAGE", message: /unknown option/ },
  { args: ["sessions", "--bogus"], code: 2, error: "USAGE" },
  { args: ["sessions", "surplus"], code: 2, error: "USAGE", message: /too many arguments/ },
  { args: ["show"], code: 2, error: "USAGE", message: /missing required argument/ },
  { args: ["help", "nothing"], code: 2, error: "USAGE", message: /unknown command 'nothing'/ },
  { args: ["search", " "], code: 2, error: "USAGE", message: /needs a word/ },
  // No line is read of it, and still it is no success.
  { args: ["append", "bad\nkey"], code: 1, error: "KEY_INVALID" },
  { args: ["append", "agent:work:x", "--agent", "main"], code: 1, error: "KEY_AGENT_MISMATCH" },
  { args: ["sessions", "--limit", "0"], code: 2, error: "USAGE" },
  { args: ["sessions", "--limit", "1.5"], code: 2, error: "USAGE" },
  { args: ["sessions", "--since", "yesterday"], code: 2, error: "USAGE" },
  { args: ["sessions", "--sort", "size"], code: 2, error: "USAGE" },
  { args: ["sessions", "--log-level", "loud"], code: 2, error: "USAGE" },
  {
    args: ["context", "agent:main:one", "--provider", "zorp"],
    code: 2,
    error: "USAGE",
    message: /neutral, anthropic, openai, openai-responses, ollama, gemini, mistral, bedrock, text/,
  },
  { args: ["append", "x", "--batch", "1001"], code: 2, error: "USAGE" },
  { args: ["append", "x", "--durability", "maybe"], code: 2, error: "USAGE" },
  { args: ["append", "x", "--durability", "disk", "--store", "memory:"], code: 2, error: "USAGE" },
  { args: ["export"], code: 2, error: "USAGE" },
  { args: ["export", "agent:main:one", "--all"], code: 2, error: "USAGE" },
  { args: ["export", "--all"], code: 2, error: "USAGE" },
  { args: ["export", "agent:main:one", "--to", "pdf"], code: 2, error: "USAGE" },
  { args: ["copy", "agent:main:one"], code: 2, error: "USAGE" },
  { args: ["relocate"], code: 2, error: "USAGE" },
  { args: ["import", "a", "b", "--key", "k"], code: 2, error: "USAGE" },
  { args: ["show", "nobody"], code: 1, error: "SESSION_NOT_FOUND" },
  { args: ["show", "agent:main"], code: 1, error: "SESSION_AMBIGUOUS", message: /agent:main:one/ },
  { args: ["show", "agent:work:plans", "--agent", "main"], code: 1, error: "KEY_AGENT_MISMATCH" },
  { args: ["show", "x", "--agent", "../x"], code: 1, error: "AGENT_ID_INVALID" },
  { args: ["sessions", "--namespace", "../x"], code: 1, error: "NAMESPACE_INVALID" },
  { args: ["sessions", "--cursor", "nonsense"], code: 1, error: "CURSOR_INVALID" },
  { args: ["sessions", "--store", "nothing"], code: 1, error: "STORE_URL_INVALID" },
  { args: ["sessions", "--store", "mysql://h/x"], code: 1, error: "STORE_URL_INVALID", message: /jsonl:DIRECTORY/ },
  {
    args: ["sessions", "--store", "postgres://ada:geheim@127.0.0.1:1/db"],
    code: 1,
    error: "STORE_UNREACHABLE",
    message: /^(?!.*geheim).*127\.0\.0\.1:1\/db/,
  },
  {
    args: ["sessions", "--store=postgres://ada:geheim@h/db", "--stoer=postgres://ada:geheim@h"],
    code: 2,
    error: "USAGE",
  },
  {
    args: ["sessions", "--store", "http://127.0.0.1:1"],
    code: 1,
    error: "STORE_UNREACHABLE",
    message: /127\.0\.0\.1:1/,
  },
  { args: ["sessions", "--store", "http://ada:geheim@127.0.0.1:1"], code: 1, error: "STORE_URL_INVALID" },
  { args: ["sessions", "--store", "http://127.0.0.1:1/?token=geheim"], code: 1, error: "STORE_URL_INVALID" },
  { args: ["serve", "--store", "http://127.0.0.1:1"], code: 2, error: "USAGE", message: /a store of its own/ },
  { args: ["serve", "--host", "0.0.0.0", "--port", "0"], code: 2, error: "USAGE", message: /no token yet/ },
  { args: ["serve", "--port", "x"], code: 1, error: "CONFIG_INVALID" },
  { args: ["serve", "--port", "70000"], code: 1, error: "CONFIG_INVALID", message: /0 to 65535/ },
  { args: ["serve", "--port", "0", "--host", "192.0.2.1", "--token-file", "none"], code: 1, error: "FILE_NOT_FOUND" },
  { args: ["serve", "--port", "0", "--public-url", "ftp://x"], code: 2, error: "USAGE" },
  { args: ["serve", "--port", "0", "--quiet", "--timeout", "300"], code: 0, error: null },
  { args: ["mcp", "--quiet"], code: 0, error: null },
  { args: ["mcp", "--http", "192.0.2.1:80"], code: 2, error: "USAGE", message: /not a loopback address/ },
  { args: ["mcp", "--http", "localhost"], code: 2, error: "USAGE", message: /HOST:PORT/ },
  { args: ["mcp", "--http", "70000"], code: 2, error: "USAGE", message: /HOST:PORT/ },
  { args: ["mcp", "--http", "0"], code: 2, error: "USAGE", message: /no token yet/ },
  { args: ["mcp", "--http", "0", "--store", "http://127.0.0.1:1"], code: 2, error: "USAGE", message: /of its own/ },
  { args: ["mcp", "--store", "sqlite:missing.db"], code: 1, error: "STORE_NOT_FOUND" },
  { args: ["token", "make"], code: 2, error: "USAGE" },
  { args: ["token", "create"], code: 2, error: "USAGE" },
  { args: ["token", "create", "x", "--scopes", "everything"], code: 2, error: "USAGE", message: /read, write, delete/ },
  { args: ["token", "create", "x", "--expires", "soon"], code: 2, error: "USAGE" },
  { args: ["token", "create", "x", "--store", "memory:"], code: 2, error: "USAGE" },
  { args: ["token", "revoke"], code: 2, error: "USAGE" },
  { args: ["token", "revoke", "nothing"], code: 1, error: "INPUT_INVALID" },
  { args: ["token", "list", "--store", "http://127.0.0.1:1"], code: 1, error: "STORE_UNREACHABLE" },
  { args: ["token"], code: 0, error: null },
  { args: ["config", "--config", "missing.json"], code: 1, error: "FILE_NOT_FOUND" },
  { args: ["config", "--config", "bad-config.json"], code: 1, error: "CONFIG_INVALID", message: /did you mean store/ },
  { args: ["config", "--check"], code: 0, error: null },
  { args: ["import", "missing.jsonl"], code: 1, error: "FILE_NOT_FOUND" },
  { args: ["doctor", "missing.jsonl"], code: 1, error: "FILE_NOT_FOUND" },
  { args: ["import", "plain.txt"], code: 1, error: "FORMAT_UNKNOWN" },
  { args: ["append", "x\u0007y"], stdin: '{"type":"note"}\n', code: 1, error: "KEY_INVALID" },
  {
    args: ["append", "missing", "--expect-head", "h"],
    stdin: '{"type":"note"}\n',
    code: 1,
    error: "SESSION_NOT_FOUND",
  },
  {
    args: ["append", "agent:main:two", "--expect-head", "h"],
    stdin: '{"type":"note"}\n',
    code: 1,
    error: "APPEND_CONFLICT",
  },
  { args: ["append", "agent:main:tw"], stdin: "", code: 0, error: null },
  { args: ["search", "harbour"], code: 0, error: null },
  { args: ["sessions", "--agent", "nobody"], code: 0, error: null },
  { args: ["chat", "--once", "  "], code: 2, error: "USAGE" },
  {
    args: ["chat", "--model", "gpt", "--once", "x"],
    code: 1,
    error: "INPUT_INVALID",
    message: /does not name a model/,
  },
  { args: ["chat", "--model", "anthropic/x", "--once", "x"], code: 1, error: "MODEL_KEY_MISSING" },
  { args: ["chat", "--when-busy", "shove", "--once", "x"], code: 2, error: "USAGE" },
  { args: [], stdin: "", code: 2, error: "USAGE", message: /nothing to say/ },
  { args: ["--help"], code: 0, error: null },
  { args: ["help", "show"], code: 0, error: null },
  { args: ["--version"], code: 0, error: null },
];

describe("exit codes", () => {
  const check = async ({ args, code, error, message = /./, stdin = "" }: Case): Promise<void> => {
    const asJson = await runHere(home, [...args, "--json"], { stdin });
    const talk = asJson.stderr === "" ? [] : objects(asJson.stderr);
    const errors = talk.filter(({ kind }) => kind === "error");
    expect(asJson.code).toBe(code);
    expect(errors.map((found) => found["code"])).toEqual(error === null ? [] : [error]);
    if (error !== null) {
      expect(errors[0]?.["message"]).toMatch(message);
      // The failure comes last, so that a reader of the last line has it.
      expect(talk.at(-1)?.["kind"]).toBe("error");
    }
    const forPeople = await runHere(home, args, { stdin });
    expect(forPeople.code).toBe(code);
    if (error !== null) expect(forPeople.stderr).toMatch(/(^|\n)error: .+\n.+\n$/s);
    expect(JSON.stringify([asJson, forPeople])).not.toContain("geheim");
  };

  // A client tries for seconds to reach a server.
  const isSlow = ({ error }: Case): boolean => error === "STORE_UNREACHABLE";
  it.each(cases.filter((each) => !isSlow(each)))("$args gives $code $error", check);
  it.each(cases.filter(isSlow))("$args gives $code $error", { tags: ["slow"] }, check);

  it("names the help that answers a wrong call", async () => {
    const { stderr } = await runHere(home, ["show", "--json"]);
    expect(objects(stderr)[0]?.["remedy"]).toBe("See `throughline show --help`.");
  });

  it("creates nothing where a command only reads", async () => {
    const fresh = join(home, "fresh");
    for (const args of [
      ["sessions"],
      ["show", "x"],
      ["context", "x"],
      ["search", "x"],
      ["export", "x"],
      ["doctor"],
      ["copy", "x", "--to-store", `jsonl:${fresh}2`],
      ["copy", "--all", "--to-store", `jsonl:${fresh}2`],
    ]) {
      const { stderr, code } = await runHere(home, [...args, "--json", "--store", `jsonl:${fresh}`]);
      expect([args[0], code, objects(stderr).at(-1)?.["code"]]).toEqual([args[0], 1, "STORE_NOT_FOUND"]);
    }
    expect([existsSync(fresh), existsSync(`${fresh}2`)]).toEqual([false, false]);
    await runHere(home, ["append", "x", "--store", `jsonl:${fresh}`], { stdin: "{oops\n" });
    const { stdout } = await runHere(home, ["sessions", "--json", "--store", `jsonl:${fresh}`]);
    expect(stdout === "" || objects(stdout).length === 1).toBe(true);
  });

  it("shows details of a failure at debug level only", async () => {
    const quiet = await runHere(home, ["show", "nobody"]);
    const loud = await runHere(home, ["show", "nobody", "--log-level", "debug"]);
    expect(quiet.stderr).not.toContain('"agentId"');
    expect(loud.stderr).toContain('SESSION_NOT_FOUND {"text":"nobody","agentId":"main"}');
  });

  it("takes global options before and after the command", async () => {
    const before = await runHere(home, ["--json", "--agent", "work", "sessions"]);
    const after = await runHere(home, ["sessions", "--agent", "work", "--json"]);
    expect(objects(before.stdout)).toEqual(objects(after.stdout));
    expect(objects(after.stdout)[0]).toMatchObject({ agentId: "work", key: "agent:work:plans" });
  });

  it("reads settings from the file in the home and shows where each comes from", async () => {
    const other = join(home, "other-home");
    mkdirSync(other);
    writeFileSync(join(other, "config.json"), JSON.stringify({ agent: "work", store: "postgres://ada:geheim@h/db" }));
    const { stdout } = await runHere(other, ["config", "--json", "--namespace", "n"]);
    const settings = new Map(objects(stdout).map((value) => [value["key"], value]));
    expect(settings.get("agent")).toMatchObject({ value: "work", source: "file", default: "main" });
    expect(settings.get("namespace")).toMatchObject({ value: "n", source: "flag" });
    expect(settings.get("home")).toMatchObject({ source: "environment" });
    expect(settings.get("store")).toMatchObject({
      value: "postgres://ada:***@h/db",
      default: `sqlite:${other}/sessions.db`,
    });
  });
});

describe("a process of its own", () => {
  it("never waits for input that is closed, whatever the command", { tags: ["slow"] }, async () => {
    // A server serves on: serve.test.ts ends one.
    const all = commandTable.filter(
      ({ name, isHidden, isService }) => name !== "demo" && isHidden !== true && isService !== true,
    );
    const readers = ["append", "chat", "import"];
    const short = all.filter(({ name }, at) => readers.includes(name) || at % 4 === 0);
    const waiting = testSize({ short, long: all }).values();
    const worker = async (): Promise<void> => {
      for (const { name, arguments: parameters } of waiting) {
        const given = parameters.filter((each) => each.name.startsWith("<")).map(() => "zzz");
        const child = spawn(process.execPath, [sourceCondition, binPath, name, ...given], {
          env: cleanEnvironment(home),
          cwd: home,
          stdio: "ignore",
        });
        const code = await new Promise<number | null>((resolve) => child.on("close", resolve));
        expect([name, [0, 1, 2, 3].includes(code ?? -1)]).toEqual([name, true]);
      }
    };
    await Promise.all([worker(), worker()]);
  });

  it("ends with 2 and one line on a Node that is too old, before anything new is parsed", async () => {
    const preload = join(home, "old-node.cjs");
    writeFileSync(
      preload,
      'Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.18.0" } });',
    );
    const run = promisify(execFile)(process.execPath, ["--require", preload, binPath, "sessions"], {
      env: cleanEnvironment(home),
    });
    await expect(run).rejects.toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringMatching(/^throughline needs Node 22\.18 or newer; this is 20\.18\.0\. .+\n$/),
    });
    const text = readFileSync(binPath, "utf8");
    expect(text).not.toMatch(/^\s*(import\s|export\s|await\s)|\?\?|\?\.|=>|`/m);
  });

  it("ends with 0 and without a word when its reader has seen enough", { tags: ["slow"] }, async () => {
    const many = join(home, "many");
    await seed(many, [
      {
        key: "agent:main:long",
        drafts: Array.from({ length: 900 }, (_, index) => user(`${index} ${"x".repeat(400)}`)),
      },
    ]);
    for (const args of [
      ["show", "agent:main:long", "--json"],
      ["show", "agent:main:long"],
      ["export", "agent:main:long"],
      ["search", "x", "--limit", "all"],
    ]) {
      const child = start(many, [...args, "--quiet"], { cwd: home });
      let stderr = "";
      child.stderr.on("data", (chunk) => (stderr += chunk));
      child.stdout.once("data", () => child.stdout.destroy());
      const code = await new Promise((resolve) => child.on("close", resolve));
      expect([args, code, stderr]).toEqual([args, 0, ""]);
    }
  });

  it("follows a session until it is interrupted, then ends with 130", async () => {
    const child = start(home, ["show", "agent:main:one", "--follow", "--json"]);
    let stdout = "";
    child.stdout.on("data", (chunk) => (stdout += chunk));
    await expect.poll(() => stdout.split("\n").length).toBe(3);
    await runHere(home, ["append", "agent:main:one"], { stdin: `${JSON.stringify(user("later"))}\n` });
    await expect.poll(() => stdout).toContain('"later"');
    child.kill("SIGINT");
    expect(await new Promise((resolve) => child.on("close", resolve))).toBe(130);
    expect(objects(stdout).map(({ kind }) => kind)).toEqual(["record", "record", "record"]);
  });

  it.skipIf(!existsSync("/dev/full"))("says that its output could not be written", async () => {
    const command = `"${process.execPath}" ${sourceCondition} "${binPath}" sessions --json > /dev/full`;
    const attempt = promisify(execFile)("bash", ["-c", command], { env: cleanEnvironment(home), cwd: home });
    await expect(attempt).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining('"code":"STORE_FULL"') });
  });

  it("keeps what it has acknowledged when it is interrupted", async () => {
    const child = start(home, ["append", "agent:main:interrupted", "--json"]);
    child.stdin.on("error", () => {});
    child.stdin.write(`${JSON.stringify(user("kept"))}\n`);
    await new Promise((resolve) => child.stdout.once("data", resolve));
    child.kill("SIGINT");
    expect(await new Promise((resolve) => child.on("close", resolve))).toBe(130);
    expect((await runHere(home, ["show", "agent:main:interrupted"])).stdout).toContain("kept");
  });

  it("takes a time limit that no timer counts to for none", async () => {
    for (const limit of ["2147483647", "3000000000", "99999999999"])
      expect(await runHere(home, ["sessions", "--json", "--timeout", limit])).toMatchObject({ code: 0, stderr: "" });
  });

  // The variable was never set: the working directory would be imported, or written full.
  it.each([
    ["import", ""],
    ["export", "agent:main:one", "-o", ""],
    ["export", "--all", "-o", ""],
    ["backup", ""],
    ["restore-backup", ""],
    ["doctor", ""],
  ])("refuses an empty path: %s", async (...args) => {
    const before = readdirSync(home);
    const { code, stderr } = await runHere(home, [...args, "--json"]);
    expect([code, objects(stderr)[0]?.["code"]]).toEqual([2, "USAGE"]);
    expect(readdirSync(home)).toEqual(before);
  });

  it("finds a store in the user's directory by its tilde, which a shell leaves behind sqlite:", async () => {
    const text = `${JSON.stringify(user("at home"))}\n`;
    expect((await runHere(home, ["append", "a", "--store", "sqlite:~/tilde.db"], { stdin: text })).code).toBe(0);
    expect(
      (await runHere(home, ["copy", "a", "--store", "sqlite:~/tilde.db", "--to-store", "jsonl:~/tilde"])).code,
    ).toBe(0);
    expect(readdirSync(home)).toEqual(expect.arrayContaining(["tilde.db", "tilde"]));
  });

  it("gives up when the time allowed is over", { tags: ["slow"] }, async () => {
    const child = start(home, ["append", "agent:main:one", "--timeout", "300", "--json"]);
    let stderr = "";
    child.stderr.on("data", (chunk) => (stderr += chunk));
    expect(await new Promise((resolve) => child.on("close", resolve))).toBe(1);
    expect(objects(stderr)[0]).toMatchObject({ code: "ABORTED", details: { timeoutMs: 300 } });
  });

  it("ends after a bad line although its input stays open", async () => {
    const child = start(home, ["append", "agent:main:two", "--json"]);
    child.stdin.on("error", () => {});
    child.stdin.write(`\uFEFF${JSON.stringify(user("a\u2028b"))}\r\n{oops\n`);
    let stdout = "";
    let stderr = "";
    child.stdout.on("data", (chunk) => (stdout += chunk));
    child.stderr.on("data", (chunk) => (stderr += chunk));
    expect(await new Promise((resolve) => child.on("close", resolve))).toBe(1);
    expect(objects(stdout)).toHaveLength(1);
    expect(objects(stderr)[0]).toMatchObject({ code: "INPUT_INVALID", outcome: "not-applied", details: { line: 2 } });
    const shown = await runChild(home, ["show", "agent:main:two", "--tail", "1", "--raw"]);
    expect(JSON.parse(shown.stdout)).toMatchObject({ message: { content: "a\u2028b" } });
  });
});
