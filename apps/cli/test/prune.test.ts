import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { sessionRef } from "@throughline/core";
import { throughlineDraft } from "@throughline/core/internal";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openStore } from "../src/open-store.ts";
import { objects, runHere, seed, temporaryDirectory, user } from "./harness.ts";

let directory = temporaryDirectory();
const day = 86_400_000;
const nowMs = Date.now();
const keyOf = (name: string): string => `agent:main:cli:direct:${name}`;

beforeEach(async () => {
  directory = temporaryDirectory();
  const sessions = [
    ...["oldest", "older", "old"].map((name) => ({ key: keyOf(name), drafts: [user(name.repeat(200))] })),
    { key: "agent:main:main", drafts: [user("main")] },
    { key: keyOf("newest"), drafts: [user("new")] },
  ];
  for (const session of sessions) {
    await seed(directory.path, [session]);
    // Sessions of one millisecond have no order of age.
    await setTimeout(2);
  }
});
afterEach(() => directory.remove());

interface Plan {
  readonly state: string;
  readonly steps: readonly { action: string; key: string; reason: string; state: string; sizeBytes: number | null }[];
  readonly spared: readonly { key: string; why: string }[];
  readonly [field: string]: unknown;
}

async function prune(...args: readonly string[]): Promise<Plan> {
  const run = await runHere(directory.path, ["prune", ...args, "--json", "--quiet"]);
  expect(run).toMatchObject({ code: 0, stderr: "" });
  return objects(run.stdout)[0] as Plan;
}

async function states(): Promise<Record<string, unknown>> {
  const { stdout } = await runHere(directory.path, ["sessions", "--archived", "--json", "--quiet"]);
  return Object.fromEntries(
    objects(stdout).flatMap((session) => (session["kind"] === "session" ? [[session["key"], session["state"]]] : [])),
  );
}

describe("prune", () => {
  it("only plans without --yes, and never touches the newest and the main session", async () => {
    const before = await states();
    const plan = await prune("--keep", "0");
    expect(plan.state).toBe("planned");
    expect(plan.steps.map(({ key, action, reason, state }) => [key, action, reason, state])).toEqual(
      ["oldest", "older", "old"].map((name) => [keyOf(name), "archive", "count", "planned"]),
    );
    expect(plan.spared.map(({ key, why }) => [key, why])).toEqual([
      ["agent:main:main", "protected"],
      [keyOf("newest"), "protected"],
    ]);
    expect(await prune("--keep", "0", "--yes", "--dry-run")).toMatchObject({ state: "planned" });
    expect(await states()).toEqual(before);
  });

  it("archives with --yes, purges an archive only when its grace is over, and one of unknown age never", async () => {
    expect((await prune("--keep", "3", "--yes")).steps).toMatchObject([
      { key: keyOf("oldest"), state: "done" },
      { key: keyOf("older"), state: "done" },
    ]);
    expect(await states()).toMatchObject({ [keyOf("oldest")]: "archived", [keyOf("older")]: "archived" });
    // Archived a moment ago: the grace of 30 days keeps it, a grace that is over does not.
    expect((await prune("--max-bytes", "1", "--yes")).steps.filter(({ action }) => action === "purge")).toEqual([]);
    const purged = await prune("--max-bytes", "1", "--grace", "0s", "--yes");
    expect(purged.steps.filter(({ action }) => action === "purge").map(({ key }) => key)).toEqual(
      expect.arrayContaining([keyOf("oldest"), keyOf("older")]),
    );
    expect(Object.keys(await states())).not.toContain(keyOf("oldest"));
    // Put aside by another program: nobody noted when.
    const ref = sessionRef({ key: keyOf("elsewhere") });
    const url = `sqlite:${join(directory.path, "sessions.db")}`;
    {
      await using store = await openStore(url, { workingDirectory: directory.path, create: false });
      await store.save(ref, { sessionId: "elsewhere", updatedAt: nowMs - 400 * day }, { ifRevision: null });
      await store.remove(ref);
    }
    const kept = await prune("--max-bytes", "1", "--grace", "1s", "--yes");
    expect(kept.spared).toContainEqual({ key: keyOf("elsewhere"), sessionId: "elsewhere", why: "grace" });
    expect(await prune("--max-bytes", "1", "--keep-archives", "--grace", "0s")).toMatchObject({ steps: [] });
  });

  it("leaves a session alone that has a turn open", async () => {
    const ref = sessionRef({ key: keyOf("oldest") });
    {
      await using store = await openStore(`sqlite:${join(directory.path, "sessions.db")}`, {
        workingDirectory: directory.path,
        create: false,
      });
      const leaseUntilMs = nowMs + 3_600_000;
      const mark = throughlineDraft("turn", { turnId: "t", state: "open", owner: "test" });
      await store.append(ref, [mark], { turn: { action: "open", turnId: "t", owner: "test", leaseUntilMs, fence: 1 } });
    }
    const plan = await prune("--keep", "0", "--yes");
    expect(plan.steps.map(({ key }) => key)).not.toContain(keyOf("oldest"));
  });

  it("deletes files that no record names and that are old enough, with --yes, and no other", async () => {
    const scope = { namespace: "", agentId: "main" };
    const url = `sqlite:${join(directory.path, "sessions.db")}`;
    const where = { workingDirectory: directory.path, create: false };
    const put = async (text: string): Promise<string> => {
      await using store = await openStore(url, where);
      const content = async function* (): AsyncGenerator<Uint8Array> {
        yield new TextEncoder().encode(text);
      };
      return (await store.files!.put(scope, content())).id;
    };
    const [used, unused] = [await put("used"), await put("unused")];
    {
      await using store = await openStore(url, where);
      const message = { role: "user", content: [{ type: "file", fileId: used }] };
      await store.append(sessionRef({ key: keyOf("newest") }), [{ type: "message", message }]);
    }
    await setTimeout(2);
    const before = await states();
    expect(await prune("--unused-files", "1d", "--yes")).toMatchObject({ state: "done", steps: [], files: [] });
    const file = { agentId: "main", fileId: unused, bytes: 6, storedAtMs: expect.any(Number) };
    expect(await prune("--unused-files", "0s")).toMatchObject({
      state: "planned",
      files: [{ ...file, state: "planned" }],
    });
    expect(await prune("--unused-files", "0s", "--yes")).toMatchObject({ files: [{ ...file, state: "done" }] });
    await using store = await openStore(url, where);
    expect((await Array.fromAsync(store.files!.list(scope))).flat().map(({ id }) => id)).toEqual([used]);
    expect(await states()).toEqual(before);
  });

  it.each([[["--older-than", "soon"]], [["--max-bytes", "much"]], [["--keep", "-1"]], [[]]])(
    "refuses %j with 2",
    async (args) => {
      const run = await runHere(directory.path, ["prune", ...args, "--json"]);
      expect([run.code, objects(run.stderr).at(-1)?.["code"]]).toEqual([2, "USAGE"]);
    },
  );
});

describe("policy", () => {
  const answer = async (...args: readonly string[]): Promise<Record<string, unknown>> => {
    const run = await runHere(directory.path, ["policy", ...args, "--json", "--quiet"]);
    expect(run).toMatchObject({ code: 0, stderr: "" });
    return objects(run.stdout)[0] ?? {};
  };

  it("names what decided: the session, a rule, the default, or nothing", async () => {
    const key = keyOf("old");
    expect(await answer(key)).toMatchObject({ action: "allow", source: "unset", rule: null, mode: null });
    const rules = [
      { match: { channel: "discord" }, action: "allow" },
      { match: { channel: "discord", chatType: "group" }, action: "deny" },
    ];
    writeFileSync(
      join(directory.path, "config.json"),
      JSON.stringify({ session: { sendPolicy: { default: "deny", rules } } }),
    );
    expect(await answer(key)).toMatchObject({ action: "deny", source: "default", channel: "cli", chatType: "direct" });
    expect(await answer(key, "--channel", "Discord", "--chat-type", "group")).toMatchObject({
      action: "allow",
      source: "rule",
      ruleIndex: 0,
      rule: rules[0],
      dependsOnMode: true,
    });
    await runHere(directory.path, ["entry", key, "set", "sendPolicy", "allow"]);
    expect(await answer(key)).toMatchObject({ action: "allow", source: "session", reset: { mode: "never" } });
    const shown = await runHere(directory.path, ["policy", key]);
    expect(shown.stdout).toContain(`by the session's own sendPolicy, "allow"`);
    expect(shown.stdout).toContain("reset: never by itself");
  });
});
