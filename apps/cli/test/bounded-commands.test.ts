import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { sessionRef } from "@throughline/core";
import { throughlineDraft } from "@throughline/core/internal";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openStore } from "../src/open-store.ts";
import { assistant, binPath, cleanEnvironment, objects, sourceCondition, temporaryDirectory, user } from "./harness.ts";
import type { Run } from "./harness.ts";

const key = "agent:main:cli:direct:long";
/** A million in the full size, which takes minutes. */
const count = Number(process.env["THROUGHLINE_RECORDS"] ?? 80_000);
const heapMebibytes = 64;
const directory = temporaryDirectory();

beforeAll(async () => {
  await using store = await openStore(`sqlite:${join(directory.path, "sessions.db")}`, {
    workingDirectory: directory.path,
    create: true,
  });
  const ref = sessionRef({ key });
  await store.save(ref, { sessionId: "long" }, { ifRevision: null });
  const call = { part: 1, turnId: "t", step: 1, attempt: 0, provider: "p", api: "a", model: "m" };
  await store.append(ref, [throughlineDraft("call", call), user("the first")]);
  for (let made = 2; made < count; made += 1000) {
    const size = Math.min(1000, count - made);
    const drafts = Array.from({ length: size }, (_, at) =>
      (at % 2 === 0 ? user : assistant)(`number ${made + at} ${"harbour ".repeat(30)}`),
    );
    await store.append(ref, drafts, { durability: "process" });
  }
}, 600_000);
afterAll(() => directory.remove());

function run(...args: readonly string[]): Run {
  const limits = [`--max-old-space-size=${heapMebibytes}`, sourceCondition, binPath];
  const child = spawnSync(process.execPath, [...limits, ...args, "--json", "--quiet"], {
    cwd: directory.path,
    env: cleanEnvironment(directory.path),
    encoding: "utf8",
    maxBuffer: 1024 ** 3,
  });
  return { code: child.status, stdout: child.stdout, stderr: child.stderr };
}

describe(`commands on ${count} records with a heap of ${heapMebibytes} MiB`, () => {
  it.each([
    [["show", key, "--tail", "3"], 3],
    [["show", key, "--tail", "3", "--all"], 3],
    [["show", key, "--tail", "3", "--all-branches"], 3],
    [["show", key, "--after-seq", String(count - 10)], 10],
    [["show", key, "--after-seq", String(count - 10), "--all"], 10],
    [["show", key, "--after-seq", String(count - 10), "--all-branches"], 10],
    [["show", key, "--role", "nobody"], 0],
    [["show", key], count - 1],
    [["show", key, "--all-branches"], count],
    [["watch", key, "--after-seq", String(count - 10), "--limit", "3"], 3],
    [["explain", key, "--tail", "1"], 0],
    [["search", "harbour", "--scan", "--limit", "3"], 3],
    [["sessions"], 1],
  ])("%j ends with the records it was asked for", { tags: ["slow"] }, (args, expected) => {
    const { code, stdout, stderr } = run(...args);
    expect([code, stderr.slice(0, 300)]).toEqual([0, ""]);
    const last = objects(stdout.slice(stdout.lastIndexOf("\n", stdout.length - 2) + 1));
    expect(last).toEqual([{ kind: "end", count: expected, nextCursor: null }]);
  });

  it("export and stats need no more than a page", { tags: ["slow"] }, () => {
    expect(run("export", key, "-o", join(directory.path, "out.jsonl")).code).toBe(0);
    expect(objects(run("stats").stdout)[0]).toMatchObject({ records: count });
  });

  it.each([
    ["context", key],
    ["rewind", key, "--to", "1"],
  ])("%s refuses what does not fit, and does not die", { tags: ["slow"] }, (...args) => {
    const { code, stderr } = run(...args);
    expect([code, objects(stderr).at(-1)?.["code"]]).toEqual([1, "MEMORY_SHORT"]);
  });
});
