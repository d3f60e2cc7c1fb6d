import { join } from "node:path";
import { redactRecords, sessionRef, type SessionRef, type SessionStore, type StoredRecord } from "@throughline/core";
import { outdatedSummaryIds, throughlineDraft } from "@throughline/core/internal";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openStore } from "../src/open-store.ts";
import { objects, runChild, runHere, seed, temporaryDirectory, user } from "./harness.ts";

const origin = "agent:main:cli:direct:origin";
const fork = "agent:main:cli:direct:fork";
let directory = temporaryDirectory();
beforeEach(() => (directory = temporaryDirectory()));
afterEach(() => directory.remove());

for (const scheme of ["sqlite", "jsonl"] as const) {
  describe(`redact in a ${scheme} store with forks`, () => {
    it("names the sessions that lose the record before it is erased, and lists them afterwards", async () => {
      const url = `${scheme}:${join(directory.path, "store")}`;
      await seed(directory.path, [{ key: origin, drafts: [user("one"), user("my password"), user("three")] }], url);
      const run = (...args: readonly string[]): ReturnType<typeof runHere> =>
        runHere(directory.path, [...args, "--store", url]);
      await run("fork", origin, "--key", fork, "--at", "2");

      const asked = await runChild(directory.path, ["redact", fork, "2", "--store", url]);
      expect(asked.code).toBe(2);
      expect(asked.stderr).toContain(`1 record shared with 1 other session ("${origin}") is erased there too.`);
      expect((await run("show", origin)).stdout).toContain("my password");

      const { stdout } = await run("redact", fork, "2", "--yes", "--json");
      expect(objects(stdout)[0]).toMatchObject({
        key: fork,
        seqs: [2],
        shared: [{ agentId: "main", key: origin, archived: false, seqs: [2] }],
      });
      expect((await run("show", origin, "--raw", "--all-branches")).stdout).not.toContain("my password");

      const alone = await run("redact", origin, "3");
      expect(alone.stderr).not.toContain("other session");
      const text = await run("redact", origin, "1", "--yes");
      expect(text.stdout).toBe(`${origin}\t1 record redacted\t#1\n${fork}\t1 record redacted there too\t#1\n`);
    });
  });
}

describe.each(["sqlite", "jsonl"])("redact in a %s store where forks wrote summaries of their own", (scheme) => {
  it("erases these in the same operation: in a fork, in a fork of it, and in an archived one", async () => {
    const url = `${scheme}:${join(directory.path, "store")}`;
    await seed(directory.path, [{ key: origin, drafts: [user("my password"), user("two"), user("three")] }], url);
    const refOf = (name: string): SessionRef => sessionRef({ key: `agent:main:cli:direct:${name}` });
    const [first, second, apart] = [refOf("one"), refOf("two"), refOf("apart")];
    const summary = { type: "compaction", summary: "They spoke of my password.", tokensBefore: 10 } as const;
    const allOf = async (store: SessionStore, ref: SessionRef): Promise<readonly StoredRecord[]> =>
      (await Array.fromAsync(store.read(ref))).flatMap(({ records }) => records);
    await using store = await openStore(url, { workingDirectory: directory.path, create: false });
    await store.fork?.fork(sessionRef({ key: origin }), first, { atSeq: 2, sessionId: "one" });
    await store.append(first, [summary]);
    await store.fork?.fork(first, second, { atSeq: 3, sessionId: "two" });
    await store.append(second, [
      summary,
      { type: "checkpoint", id: "k", checkpoint: { summary: "my password" } },
      summary,
    ]);
    await store.fork?.fork(sessionRef({ key: origin }), apart, { sessionId: "apart" });
    await store.append(apart, [summary]);
    await store.move(apart, { kind: "archive" });
    const [secret, , third] = await allOf(store, sessionRef({ key: origin }));

    // The last of the three is in no fork but the archived one.
    await redactRecords(store, sessionRef({ key: origin }), [secret?.id ?? "", third?.id ?? ""], { reason: "asked" });
    for (const ref of [first, second, { ...apart, archiveId: "apart" }]) {
      const records = await allOf(store, ref);
      expect(JSON.stringify(records)).not.toContain("my password");
      expect(records.some(({ type }) => type === "compaction")).toBe(true);
    }
    const [own] = (await allOf(store, second)).filter(({ type }) => type === "compaction");
    expect(outdatedSummaryIds(await allOf(store, second)).has(own?.id ?? "")).toBe(true);
    // An archived session takes no notes, and its records can be redacted all the same.
    await redactRecords(store, { ...apart, archiveId: "apart" }, [secret?.id ?? ""], { reason: "asked again" });
  });
});

describe("rewind while another process has a turn open", () => {
  it("waits, and leaves the head where it is when it waited in vain", { tags: ["slow"] }, async () => {
    await seed(directory.path, [{ key: origin, drafts: [user("one"), user("two")] }]);
    const ref = sessionRef({ key: origin });
    {
      await using store = await openStore(`sqlite:${join(directory.path, "sessions.db")}`, {
        workingDirectory: directory.path,
        create: false,
      });
      const leaseUntilMs = Date.now() + 60_000;
      const turn = { action: "open", turnId: "t1", owner: "elsewhere", fence: 1, leaseUntilMs } as const;
      await store.append(ref, [throughlineDraft("turn", { turnId: "t1" })], { turn });
    }
    const { code, stderr } = await runHere(directory.path, ["rewind", origin, "--to", "1", "--timeout", "300"]);
    expect([code, stderr]).toEqual([1, expect.stringContaining("300 ms")]);
    const { stdout } = await runHere(directory.path, ["show", origin, "--json"]);
    expect(objects(stdout).filter(({ kind, type }) => kind === "record" && type === "message")).toHaveLength(2);
  });
});
