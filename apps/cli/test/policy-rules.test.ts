import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { objects, runHere, seed, temporaryDirectory, user } from "./harness.ts";

const directory = temporaryDirectory();
afterAll(() => directory.remove());

const keys = {
  group: "agent:main:discord:group:123",
  direct: "agent:main:discord:direct:7",
  slack: "agent:main:slack:channel:C1",
  plain: "agent:main:main",
} as const;

let count = 0;

/** A home whose configuration has this send policy, with one session for each key. */
async function homeWith(sendPolicy: unknown, entries: Readonly<Record<string, object>> = {}): Promise<string> {
  const home = join(directory.path, `home-${++count}`);
  mkdirSync(home);
  writeFileSync(join(home, "config.json"), JSON.stringify({ session: { sendPolicy } }));
  await seed(
    home,
    Object.entries(keys).map(([name, key]) => ({ key, entry: entries[name] ?? {}, drafts: [user("hello")] })),
  );
  return home;
}

/** What `policy` says of a session. */
async function decided(home: string, name: keyof typeof keys): Promise<string> {
  const [row] = objects((await runHere(home, ["policy", keys[name], "--json"])).stdout);
  return `${String(row?.["action"])} by ${String(row?.["source"])}`;
}

/** Whether a turn in the session asks the model. */
async function answers(home: string, name: keyof typeof keys): Promise<boolean> {
  const { stdout } = await runHere(home, ["chat", "--key", keys[name], "--once", "help", "--model", "offline"]);
  return stdout.includes("offline rules");
}

async function table(home: string): Promise<Readonly<Record<string, string>>> {
  const rows: [string, string][] = [];
  for (const name of Object.keys(keys) as (keyof typeof keys)[]) {
    const decision = await decided(home, name);
    expect([name, await answers(home, name)]).toEqual([name, decision.startsWith("allow")]);
    rows.push([name, decision]);
  }
  return Object.fromEntries(rows);
}

// The block of the fifth document, as it stands there.
const documented = {
  default: "allow",
  rules: [
    { match: { channel: "discord", chatType: "group" }, action: "deny" },
    { match: { keyPrefix: "agent:main:slack" }, action: "allow" },
  ],
};

describe("a send policy", () => {
  let home = "";
  beforeAll(async () => {
    home = await homeWith(documented, { direct: { sendPolicy: "deny" } });
  });

  it("decides by the session, then the first rule, then the default", async () => {
    expect(await table(home)).toEqual({
      group: "deny by rule",
      direct: "deny by session",
      slack: "allow by rule",
      plain: "allow by default",
    });
  });

  it("matches channel, chat type and prefix without regard to case", async () => {
    const rules = [
      { match: { channel: "DISCORD", chatType: "dm" }, action: "deny" },
      { match: { keyPrefix: "Agent:Main:SLACK" }, action: "deny" },
      { match: {}, action: "allow" },
    ];
    expect(await table(await homeWith({ default: "deny", rules }))).toEqual({
      group: "allow by rule",
      direct: "deny by rule",
      slack: "deny by rule",
      plain: "allow by rule",
    });
  });

  it("mutes a channel, keeps groups silent, and allows direct chats only", { tags: ["slow"] }, async () => {
    const mute = await homeWith({ rules: [{ match: { channel: "discord" }, action: "deny" }] });
    expect(Object.values(await table(mute)).map((row) => row.slice(0, 5))).toEqual([
      "deny ",
      "deny ",
      "allow",
      "allow",
    ]);
    const directOnly = await homeWith({ default: "deny", rules: [{ match: { chatType: "direct" }, action: "allow" }] });
    expect(await decided(directOnly, "direct")).toBe("allow by rule");
    expect([await answers(directOnly, "group"), await answers(directOnly, "direct")]).toEqual([false, true]);
    // One conversation, by its entry, against the default of all.
    expect((await runHere(directOnly, ["entry", keys.group, "set", "sendPolicy", "allow"])).code).toBe(0);
    expect(await answers(directOnly, "group")).toBe(true);
  });
});

describe("groups and messages that wait", () => {
  it("prints what the entry says of them, and chat answers whoever sits at it", async () => {
    const home = await homeWith(
      {},
      {
        group: {
          groupActivation: "mention",
          queueMode: "collect",
          queueDebounceMs: 300,
          queueCap: 5,
          queueDrop: "old",
        },
      },
    );
    const { stdout } = await runHere(home, ["policy", keys.group]);
    expect(stdout).toContain("group: answers what mentions the agent, and stores the rest (groupActivation)\n");
    expect(stdout).toContain(
      "queue: messages that arrive while a turn runs have one turn together, 300 ms after the last one; at most 5 wait, then the oldest is refused\n",
    );
    const [row] = objects((await runHere(home, ["policy", keys.group, "--json"])).stdout);
    expect(row).toMatchObject({
      groupActivation: "mention",
      queue: { behavior: "collect", debounceMs: 300, cap: 5, drop: "old" },
    });
    const direct = objects((await runHere(home, ["policy", keys.direct, "--json"])).stdout)[0];
    expect(direct).toMatchObject({ groupActivation: null, queue: { behavior: "followup", cap: null } });
    expect(await answers(home, "group")).toBe(true);
  });
});
