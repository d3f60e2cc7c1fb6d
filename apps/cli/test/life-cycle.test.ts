import { spawn } from "node:child_process";
import { join } from "node:path";
import { sessionRef } from "@throughline/core";
import { throughlineDraft } from "@throughline/core/internal";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openStore } from "../src/open-store.ts";
import { assistant, objects, runHere, seed, temporaryDirectory, user } from "./harness.ts";
import type { Run, RunOptions } from "./harness.ts";

const key = "agent:main:cli:direct:plans";
let directory = temporaryDirectory();

beforeEach(async () => {
  directory = temporaryDirectory();
  await seed(directory.path, [
    {
      key,
      entry: {
        label: "Plans",
        sendPolicy: "deny",
        thinkingLevel: "high",
        model: "model-1",
        origin: { provider: "discord" },
        lastTo: "keeper",
        totalTokens: 900,
        compactionCount: 2,
        claudeSessionId: "sdk-1",
      },
      drafts: [user("one"), assistant("two"), user("three"), assistant("four")],
    },
    { key: "agent:main:main", drafts: [user("hello")] },
  ]);
});
afterEach(() => directory.remove());

function run(args: readonly string[], options?: RunOptions): Promise<Run> {
  return runHere(directory.path, args, options);
}

async function json(...args: readonly string[]): Promise<Record<string, unknown>> {
  const { stdout } = await run([...args, "--json", "--quiet"]);
  return objects(stdout)[0] ?? {};
}

async function texts(of: string, ...options: readonly string[]): Promise<string[]> {
  const { stdout } = await run(["show", of, ...options, "--json", "--quiet"]);
  const records = objects(stdout).filter(({ kind }) => kind === "record");
  return records.map(({ record }) => JSON.stringify((record as { message?: { content: unknown } }).message?.content));
}

describe("new", () => {
  it("makes a key from the label, and the next number where it is taken", async () => {
    const made = [
      await json("new", "My Project"),
      await json("new", "my project"),
      await json("new", "my", "project!"),
    ];
    expect(made.map((session) => session["key"])).toEqual([
      "agent:main:cli:direct:my-project",
      "agent:main:cli:direct:my-project-2",
      "agent:main:cli:direct:my-project-3",
    ]);
    expect(made[2]).toMatchObject({ label: "my project!", recordCount: 0, state: "active" });
    expect((await json("new", "x", "--agent", "work"))["key"]).toBe("agent:work:cli:direct:x");
    expect((await run(["new", "--key", key])).stderr).toContain("already");
  });
});

describe("rename", () => {
  it("moves the session with its id and records, and sets or takes away the label", async () => {
    const renamed = await json("rename", key, "agent:main:harbour", "--label", "Harbour");
    expect(renamed).toMatchObject({
      key: "agent:main:harbour",
      sessionId: "id-agent-main-cli-direct-plans",
      label: "Harbour",
    });
    expect(await texts("agent:main:harbour")).toHaveLength(4);
    expect(await json("rename", "agent:main:harbour", "--label", "")).toMatchObject({ label: null });
    expect(objects((await run(["rename", "agent:main:harbour", "agent:main:main", "--json"])).stderr)[0]).toMatchObject(
      {
        code: "SESSION_EXISTS",
      },
    );
    expect(objects((await run(["rename", "agent:main:harbour", "agent:work:x", "--json"])).stderr)[0]).toMatchObject({
      code: "KEY_AGENT_MISMATCH",
    });
  });
});

describe("reset", () => {
  it("archives the old session and keeps settings and routes, not what belonged to the conversation", async () => {
    const fresh = await json("reset", key);
    expect(fresh).toMatchObject({ key, label: "Plans", recordCount: 0 });
    const { entry } = await json("entry", key);
    expect(entry).toMatchObject({
      sendPolicy: "deny",
      thinkingLevel: "high",
      model: "model-1",
      origin: { provider: "discord" },
      lastTo: "keeper",
      previousSessionIds: ["id-agent-main-cli-direct-plans"],
    });
    for (const field of ["totalTokens", "compactionCount", "claudeSessionId"]) expect(entry).not.toHaveProperty(field);
    expect(await texts("id-agent-main-cli-direct-plans")).toHaveLength(4);
    expect(await texts(key)).toEqual([]);
  });

  it("is still so for the next process", async () => {
    await run(["reset", key]);
    await using store = await openStore(`sqlite:${join(directory.path, "sessions.db")}`, {
      workingDirectory: directory.path,
      create: false,
    });
    expect(await store.load(sessionRef({ key }))).toMatchObject({ head: { lastSeq: 0 }, messageCount: 0 });
  });

  it("keeps nothing with --bare, and nothing of the old session with --purge --yes", async () => {
    expect(objects((await run(["reset", key, "--purge", "--json"])).stderr)[0]).toMatchObject({ code: "USAGE" });
    expect(await texts(key)).toHaveLength(4);
    expect(await json("reset", key, "--purge", "--yes", "--bare")).toMatchObject({ label: null, recordCount: 0 });
    expect(objects((await run(["show", "id-agent-main-cli-direct-plans", "--json"])).stderr)[0]).toMatchObject({
      code: "SESSION_NOT_FOUND",
    });
  });

  it("takes an exact key or id only", async () => {
    for (const command of ["reset", "delete", "rewind", "fork", "redact", "rename"]) {
      const more =
        command === "rewind"
          ? ["--to", "1"]
          : command === "redact"
            ? ["1", "--yes"]
            : ["x"].slice(0, command === "rename" ? 1 : 0);
      const { code, stderr } = await run([command, "agent:main:cli:direct:pl", ...more, "--json"]);
      expect([command, code, objects(stderr)[0]?.["code"]]).toEqual([command, 1, "SESSION_NOT_FOUND"]);
    }
  });
});

describe("delete and restore", () => {
  it("archives, and brings back what was archived", async () => {
    expect(await json("delete", key)).toMatchObject({ state: "archived", archiveId: "id-agent-main-cli-direct-plans" });
    expect((await run(["show", key])).code).toBe(1);
    expect(await json("restore", "--archive", "id-agent-main-cli-direct-plans")).toMatchObject({
      key,
      state: "active",
    });
    expect(await texts(key)).toHaveLength(4);
  });

  it("refuses the main session and waits for a turn that is running", { tags: ["slow"] }, async () => {
    expect(objects((await run(["delete", "agent:main:main", "--json"])).stderr)[0]).toMatchObject({
      code: "SESSION_PROTECTED",
    });
    await using store = await openStore(`sqlite:${join(directory.path, "sessions.db")}`, {
      workingDirectory: directory.path,
      create: false,
    });
    const turn = { action: "open", turnId: "t1", owner: "test", fence: 1, leaseUntilMs: Date.now() + 60_000 } as const;
    await store.append(sessionRef({ key }), [throughlineDraft("turn", { turnId: "t1" })], { turn });
    const deleting = run(["delete", key]);
    await new Promise((resolve) => setTimeout(resolve, 600));
    expect((await store.load(sessionRef({ key })))?.archived).toBe(false);
    await store.append(sessionRef({ key }), [user("last")], { turn: { action: "close", fence: 1 } });
    expect((await deleting).code).toBe(0);
    expect(await texts("id-agent-main-cli-direct-plans")).toHaveLength(5);
  });

  it("asks on a terminal, takes only yes for yes, and never asks with --no-input", { tags: ["slow"] }, async () => {
    const ask = async (answer: string, ...more: readonly string[]): Promise<number | null> => {
      const { runInTerminal } = await import("./terminal.ts");
      await using terminal = runInTerminal(directory.path, ["delete", key, "--purge", ...more]);
      if (answer !== "") {
        await terminal.waitFor("for good? [y/N]");
        terminal.write(`${answer}\r`);
      }
      return await terminal.exitCode();
    };
    expect(await ask("n")).toBe(1);
    expect(await ask("", "--no-input")).toBe(2);
    expect(await texts(key)).toHaveLength(4);
    expect(await ask("y")).toBe(0);
    expect((await run(["show", key])).code).toBe(1);
  });
});

describe("fork and rewind", () => {
  it("forks at a record and leaves the origin as it is", async () => {
    expect(await json("fork", key, "--at", "2", "--label", "Other")).toMatchObject({
      key: `${key}-fork`,
      label: "Other",
      recordCount: 2,
    });
    expect(await json("fork", key)).toMatchObject({ key: `${key}-fork-2`, label: "Plans", recordCount: 4 });
    await run(["append", `${key}-fork`], { stdin: `${JSON.stringify(user("elsewhere"))}\n` });
    expect(await texts(`${key}-fork`)).toEqual(['"one"', '[{"type":"text","text":"two"}]', '"elsewhere"']);
    expect(await texts(key)).toHaveLength(4);
    expect(objects((await run(["fork", key, "--key", "agent:main:main", "--json"])).stderr).at(-1)).toMatchObject({
      code: "SESSION_EXISTS",
    });
  });

  it("goes back, leaves what was left readable, and leads back again", async () => {
    await run(["rewind", key, "--to", "#2"]);
    expect(await texts(key)).toEqual(['"one"', '[{"type":"text","text":"two"}]']);
    expect(await texts(key, "--all-branches")).toHaveLength(5);
    await run(["append", key], { stdin: `${JSON.stringify(user("otherwise"))}\n` });
    expect((await texts(key)).at(-1)).toBe('"otherwise"');
    await run(["rewind", key, "--to", "4"]);
    expect((await texts(key)).slice(0, 4).at(-1)).toBe('[{"type":"text","text":"four"}]');
    await run(["rewind", key, "--to", "start"]);
    expect(await texts(key)).toEqual([]);
    expect(objects((await run(["rewind", key, "--to", "99", "--json"])).stderr)[0]).toMatchObject({
      code: "RECORD_NOT_FOUND",
    });
  });
});

describe("redact", () => {
  it("takes content away for good and leaves a tombstone with the reason", async () => {
    expect(objects((await run(["redact", key, "1", "--json"])).stderr)[0]).toMatchObject({ code: "USAGE" });
    expect(await json("redact", key, "#1", "--reason", "a password", "--yes")).toMatchObject({
      seqs: [1],
      reason: "a password",
    });
    const { stdout } = await run(["show", key, "--all-branches", "--raw"]);
    expect(stdout).not.toContain('"one"');
    expect(stdout.split("\n")[0]).toContain("a password");
  });
});

describe("entry", () => {
  it("reads, sets and takes away fields; text stays text where that is said", async () => {
    expect((await run(["entry", "Pla", "get", "label"])).stdout).toBe("Plans\n");
    expect(await json("entry", key, "set", "note", '{"a":[1]}')).toMatchObject({ entry: { note: { a: [1] } } });
    expect(await json("entry", key, "set", "note", "12", "--text")).toMatchObject({ entry: { note: "12" } });
    expect((await json("entry", key, "unset", "note"))["entry"]).not.toHaveProperty("note");
    expect((await run(["entry", key, "set", "sessionId", "x"])).code).toBe(2);
    expect((await run(["entry", key, "set", "note"])).code).toBe(2);
    expect((await run(["entry", key, "polish"])).code).toBe(2);
    expect((await run(["entry", "Pla", "set", "note", "1"])).code).toBe(1);
  });
});

describe("entry set", () => {
  it("brings the fields of a route into agreement, and counts as activity", async () => {
    await run(["entry", key, "set", "lastThreadId", "42"]);
    const before = (await json("entry", key))["entry"] as Record<string, number>;
    await new Promise((resolve) => setTimeout(resolve, 2));
    const route = { channel: "slack", to: "U1", accountId: "acc" };
    const { entry } = await json("entry", key, "set", "deliveryContext", JSON.stringify(route));
    expect(entry).toMatchObject({ deliveryContext: route, lastChannel: "slack", lastTo: "U1", lastAccountId: "acc" });
    expect(entry).not.toHaveProperty("lastThreadId");
    expect((entry as Record<string, number>)["updatedAt"]).toBeGreaterThan(before["updatedAt"] ?? Infinity);
    const renamed = await json("rename", key, "--label", "Other plans");
    expect(renamed["updatedAtMs"]).toBeGreaterThanOrEqual((entry as Record<string, number>)["updatedAt"] ?? Infinity);
    await run(["rename", key, "--label", "Plans"]);
  });

  it.each([
    [["sendpolicy", "deny"], `throughline entry ${key} set sendPolicy deny`],
    [["send_policy", "deny"], `throughline entry ${key} set sendPolicy deny`],
    [["lable", "Mine"], `throughline entry ${key} set label Mine`],
    [["label", "12"], `throughline entry ${key} set label 12 --text`],
  ])("refuses %j and names the command that is meant, which works", async ([field = "", value = ""], meant) => {
    const { code, stderr } = await run(["entry", key, "set", field, value, "--json"]);
    const [error] = objects(stderr);
    expect([code, error?.["code"]]).toEqual([2, "USAGE"]);
    expect(error?.["remedy"]).toContain(`\`${meant}\``);
    expect((await json("entry", key, "get"))["entry"]).not.toHaveProperty(field === "label" ? "none" : field);
    expect((await run(meant.split(" ").slice(1))).code).toBe(0);
  });

  it("refuses values that a field does not take", async () => {
    const { stderr } = await run(["entry", key, "set", "sendPolicy", "Deny", "--json"]);
    expect(objects(stderr)[0]).toMatchObject({ code: "USAGE", details: { values: ["allow", "deny"] } });
    expect((await json("entry", key, "get", "sendPolicy"))["entry"]).toEqual({ sendPolicy: "deny" });
  });

  it("changes a field that another program wrote, and policy names it", async () => {
    await seed(directory.path, [{ key: "agent:main:odd", entry: { sendpolicy: "deny" }, drafts: [user("x")] }]);
    expect((await run(["policy", "agent:main:odd"])).stderr).toContain('The field is "sendPolicy".');
    expect((await run(["entry", "agent:main:odd", "set", "sendpolicy", "allow"])).code).toBe(0);
    expect((await run(["entry", "agent:main:odd", "unset", "sendpolicy"])).code).toBe(0);
    expect((await run(["policy", "agent:main:odd"])).stderr).toBe("");
  });
});

describe("watch", () => {
  it("prints what is appended, once and in order, until the limit", async () => {
    const watching = run(["watch", key, "--json", "--after-seq", "4", "--limit", "2", "--role", "user"]);
    for (const text of ["five", "six"])
      await run(["append", key], { stdin: `${JSON.stringify(user(text))}\n${JSON.stringify(assistant("ok"))}\n` });
    const { stdout, code } = await watching;
    expect(code).toBe(0);
    expect(objects(stdout).map(({ seq, kind }) => seq ?? kind)).toEqual([5, 7, "end"]);
  });
});

describe("completion", () => {
  it("completes commands, options, words and keys in bash, colons or not", { tags: ["slow"] }, async () => {
    const { stdout: script } = await run(["completion", "bash"]);
    const complete = (line: string): Promise<string> =>
      new Promise((resolve, reject) => {
        const shim = `throughline() { "${process.execPath}" --conditions=@throughline/source "${join(import.meta.dirname, "../bin/throughline.js")}" "$@"; }`;
        const text = `${shim}\n${script}\nCOMP_LINE=${JSON.stringify(line)} COMP_POINT=${line.length} ; _throughline; printf '%s\\n' "\${COMPREPLY[@]}"`;
        const child = spawn("bash", ["-c", text], { env: { ...process.env, THROUGHLINE_HOME: directory.path } });
        let printed = "";
        child.stdout.on("data", (chunk) => (printed += chunk));
        child.on("error", reject);
        child.on("close", () => resolve(printed));
      });
    expect(await complete("throughline rew")).toBe("rewind\n");
    expect(await complete("throughline append --durab")).toBe("--durability\n");
    expect(await complete("throughline append --durability p")).toBe("process\n");
    expect(await complete("throughline show agent:main:cli:d")).toBe("direct:plans\n");
    expect(await complete("throughline show Pl")).toBe("Plans\n");
    expect(await complete("throughline show --store jsonl:/nowhere/at/all ag")).toBe("\n");
  });
});
