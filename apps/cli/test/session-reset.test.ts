import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { sessionRef } from "@throughline/core";
import { systemClock } from "@throughline/core/internal";
import { createSqliteStore } from "@throughline/store-sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { objects, runHere, temporaryDirectory } from "./harness.ts";

let directory = temporaryDirectory();
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(() => directory.remove());

const key = "agent:main:cli:direct:notes";
const run = (...args: readonly string[]) => runHere(directory.path, args);
const say = (text: string, ...args: readonly string[]) =>
  run("chat", "--key", key, "--once", text, "--model", "offline", ...args);

function configure(reset: unknown): void {
  writeFileSync(join(directory.path, "config.json"), JSON.stringify({ session: { reset } }));
}

/** A session in which something was said so long ago. */
async function saidBefore(agoMs: number): Promise<void> {
  const clock = { ...systemClock, nowMs: () => systemClock.nowMs() - agoMs };
  const store = createSqliteStore({ path: join(directory.path, "sessions.db"), clock });
  const ref = sessionRef({ key });
  await store.save(ref, { sessionId: "earlier", label: "Notes" }, { ifRevision: null });
  await store.append(ref, [{ type: "message", message: { role: "user", content: "an old word" } }]);
  await store.close();
}

async function ids(...options: readonly string[]): Promise<readonly unknown[]> {
  const listed = objects((await run("sessions", ...options, "--json", "--quiet")).stdout);
  return listed.flatMap(({ kind, sessionId }) => (kind === "session" ? [sessionId] : []));
}

describe("session.reset in chat", () => {
  it("begins a new session with the message after the idle minutes, archives the earlier one, and says so [STO-10, C51, DEF-06]", async () => {
    configure({ mode: "idle", idleMinutes: 5 });
    await saidBefore(6 * 60_000);
    expect((await run("policy", key)).stdout).toMatch(/reset: idle, by the general rule: due since .* \(idle\)/);
    const { code, stdout, stderr } = await say("hello", "--json");
    expect(code).toBe(0);
    const [turn = {}] = objects(stdout);
    expect(turn["sessionId"]).not.toBe("earlier");
    const event = { name: "session.reset", data: { reason: "idle", sessionId: "earlier" } };
    expect((turn["events"] as { readonly name: string }[]).filter(({ name }) => name === event.name)).toMatchObject([
      event,
    ]);
    expect(stderr.match(/throughline show earlier/g)).toHaveLength(1);
    expect(await ids()).toEqual([turn["sessionId"]]);
    const shown = await run("show", "earlier");
    expect(shown).toMatchObject({ code: 0, stdout: expect.stringContaining("an old word") });
    const note = objects((await run("show", key, "--all-branches", "--json")).stdout)[0]?.["record"];
    expect(note).toMatchObject({ customType: "throughline.note", data: { kind: "session-reset", reason: "idle" } });
    expect((await say("hello")).stderr).not.toContain("new session");
  });

  it("resets daily, and never by default", async () => {
    await saidBefore(25 * 3_600_000);
    await say("hello");
    expect(await ids()).toEqual(["earlier"]);
    configure({ mode: "daily", atHour: 4 });
    expect((await say("hello")).stderr).not.toContain("new session");
    directory.remove();
    directory = temporaryDirectory();
    configure({ mode: "daily", atHour: 4 });
    await saidBefore(25 * 3_600_000);
    expect((await say("hello")).stderr).toContain("(session.reset, daily)");
  });

  it.each([
    [{ mode: "idel" }, 'session.reset.mode is "idel"; it must be one of never, idle, daily.'],
    [{ mod: "idle" }, '"session.reset.mod" is not a setting; did you mean session.reset.mode?'],
    [{ mode: "idle", idleMinutes: -5 }, "session.reset.idleMinutes is -5; it must be a whole number from 1 to 525600."],
    [{ mode: "daily", atHour: 24 }, "session.reset.atHour is 24; it must be a whole number from 0 to 23."],
    [{ idleMinutes: 5 }, 'session.reset.mode is "never": it would have no effect'],
    [{ mode: "idle", atHour: 3 }, 'session.reset.mode is "idle": it would have no effect'],
    ["daily", 'session.reset is "daily"; it must be an object.'],
  ])("refuses %j and changes nothing", async (reset, message) => {
    configure(reset);
    const { code, stderr } = await say("hello");
    expect([code, stderr]).toEqual([1, expect.stringContaining(message)]);
  });
});
