import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { objects, runHere, temporaryDirectory } from "./harness.ts";
import { runInTerminal } from "./terminal.ts";

let directory = temporaryDirectory();
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(() => directory.remove());

const run = (...args: readonly string[]) => runHere(directory.path, args);
const say = (key: string, text: string, ...args: readonly string[]) =>
  run("chat", "--key", key, "--once", text, "--model", "offline", ...args);

describe("chat in a session that may not send", () => {
  it("stores the message, prints no answer, and names the command that allows it", async () => {
    await say("notes", "hello");
    await run("entry", "notes", "set", "sendPolicy", "deny");
    const denied = await say("notes", "are you there?");
    expect(denied).toMatchObject({ code: 1, stdout: "" });
    expect(denied.stderr).toContain(
      'error: The agent may not answer in "notes" (by the session\'s own sendPolicy, "deny"). The message is stored.',
    );
    expect(denied.stderr).toContain("entry notes set sendPolicy allow");
    const records = objects((await run("show", "notes", "--json", "--quiet")).stdout);
    const messages = records.filter(({ kind }) => kind === "record").map(({ record }) => JSON.stringify(record));
    expect(messages.filter((text) => text.includes("are you there?"))).toHaveLength(1);
    expect(messages.at(-1)).toContain("are you there?");
    await run("entry", "notes", "set", "sendPolicy", "allow");
    expect(await say("notes", "hello")).toMatchObject({ code: 0, stdout: expect.stringContaining("Hello.") });
  });

  it("weighs the rules of the configuration, and policy explains them", async () => {
    const sendPolicy = {
      default: "allow",
      rules: [
        { match: { channel: "discord", chatType: "group" }, action: "deny" },
        { match: { keyPrefix: "agent:main:slack" }, action: "allow" },
      ],
    };
    writeFileSync(join(directory.path, "config.json"), JSON.stringify({ session: { sendPolicy } }));
    const group = "agent:main:discord:group:123";
    const { code, stdout, stderr } = await say(group, "hello", "--json");
    expect(code).toBe(1);
    expect(objects(stdout)).toMatchObject([
      {
        kind: "turn",
        outcome: "denied",
        text: "",
        events: [{ name: "send.denied", data: { source: "rule", ruleIndex: 0 } }],
      },
    ]);
    const [error] = objects(stderr).filter(({ kind }) => kind === "error");
    expect(error).toMatchObject({ code: "SEND_DENIED", details: { source: "rule", ruleIndex: 0 } });
    expect((await run("policy", group)).stdout).toMatch(/deny {2}by rule 1 .*\n(.*\n)+ {2}A turn stores the message/);
    for (const key of ["agent:main:slack:group:9", "agent:main:discord:dm:ada"])
      expect(await say(key, "hello")).toMatchObject({ code: 0, stdout: expect.stringContaining("Hello.") });
  });

  it("says so in a conversation, which continues with the stored message once it may", { tags: ["slow"] }, async () => {
    await run("new", "--key", "notes");
    await run("entry", "notes", "set", "sendPolicy", "deny");
    await using terminal = runInTerminal(directory.path, ["chat", "--key", "notes", "--model", "offline"]);
    await terminal.waitForPrompt();
    terminal.write("hello\r");
    await terminal.waitFor("Then /continue asks the model.)");
    await run("entry", "notes", "set", "sendPolicy", "allow");
    terminal.write("/continue\r");
    await terminal.waitFor("Hello. I answer by rules");
    terminal.write("/quit\r");
    expect(await terminal.exitCode()).toBe(0);
  });
});
