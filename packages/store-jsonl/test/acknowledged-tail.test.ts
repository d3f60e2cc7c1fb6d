import { readdirSync, readFileSync, rmSync, truncateSync } from "node:fs";
import type { Finding } from "@throughline/core";
import { createJsonlStore, type JsonlStoreOptions } from "@throughline/store-jsonl";
import { describe, expect, it } from "vitest";
import { kindsOf, mainRef, storeWithSession, transcriptOf, userDraft } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();

function textsTo(count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `r${index + 1}`);
}

/** A closed store whose session ends in an acknowledged append of the given number of records. */
async function closedStore(count: number, options: Partial<JsonlStoreOptions> = {}): Promise<string> {
  const root = newFolder();
  const store = await storeWithSession(root, { sessionsJson: false, ...options });
  await store.append(mainRef, textsTo(count).map(userDraft));
  await store.close();
  return root;
}

async function verified(root: string): Promise<readonly Finding[]> {
  await using store = createJsonlStore({ root, sessionsJson: false });
  const findings: Finding[] = [];
  for await (const finding of store.maintenance?.verify({ full: true }) ?? []) findings.push(finding);
  return findings;
}

function codesOf(findings: readonly Finding[]): readonly string[] {
  return findings.map(({ code, severity }) => `${code} ${severity}`);
}

describe("an acknowledged append whose end is cut off", () => {
  it("keeps its whole records, and the next append gets no earlier seq", async () => {
    const root = await closedStore(405);
    const path = transcriptOf(root);
    truncateSync(path, readFileSync(path).length - 20);
    const whole = readFileSync(path, "utf8");
    const [found] = await verified(root);
    expect(found).toMatchObject({ code: "RECORD_MISSING", severity: "error", line: 406 });
    expect(found?.message).toBe("The file ends in the middle of an acknowledged append: 1 of its records is missing.");
    const store = createJsonlStore({ root, sessionsJson: false });
    expect(await kindsOf(store)).toEqual([...textsTo(404), "malformed"]);
    expect((await store.append(mainRef, [userDraft("next")])).records[0]?.seq).toBe(406);
    expect(await kindsOf(store)).toEqual([...textsTo(404), "malformed", "next"]);
    await store.close();
    expect(readFileSync(path, "utf8").startsWith(`${whole}\n`)).toBe(true);
    expect(readdirSync(`${root}/agents/main/throughline/torn`)).toEqual([]);
    expect(codesOf(await verified(root))).toContain("RECORD_MISSING error");
  });

  it("keeps them wherever it is cut off, and gives each lost record a place", { tags: ["slow"] }, async () => {
    const length = (line: number, root: string): number =>
      readFileSync(transcriptOf(root), "utf8").split("\n").slice(0, line).join("\n").length + 1;
    const cuts = [
      [1, 30],
      [2, 0],
      [2, 1],
      [3, 0],
      [3, 50],
      [4, 0],
      [5, -2],
    ] as const;
    for (const [line, more] of cuts) {
      const root = await closedStore(4);
      const path = transcriptOf(root);
      const size = length(line, root) + more;
      truncateSync(path, size);
      const [lines, isHalf] = more < 0 ? [line - 2, true] : [line - 1, more > 0];
      const store = createJsonlStore({ root, sessionsJson: false });
      const left = [...textsTo(lines), ...(isHalf ? ["malformed"] : [])];
      expect([size, await kindsOf(store)]).toEqual([size, left]);
      await store.append(mainRef, [userDraft("next")]);
      const lost = Array.from({ length: 4 - left.length }, () => "lost");
      expect([size, await kindsOf(store)]).toEqual([size, [...left, ...lost, "next"]]);
      await store.close();
      expect([size, codesOf(await verified(root))]).toEqual([size, expect.arrayContaining(["RECORD_MISSING error"])]);
    }
  });

  it("is known by an append without records that came after it, too", async () => {
    const root = newFolder();
    const store = await storeWithSession(root, { sessionsJson: false, index: false });
    await store.append(mainRef, textsTo(3).map(userDraft));
    await store.append(mainRef, [], {
      turn: { action: "open", turnId: "t", owner: "o", leaseUntilMs: 9e15, fence: 1 },
    });
    await store.close();
    const path = transcriptOf(root);
    truncateSync(path, readFileSync(path).length - 5);
    await using again = createJsonlStore({ root, sessionsJson: false, index: false });
    expect(await kindsOf(again)).toEqual(["r1", "r2", "malformed"]);
  });

  it("is repaired in a copy that has its whole records", async () => {
    const root = await closedStore(3);
    const path = transcriptOf(root);
    truncateSync(path, readFileSync(path).length - 5);
    await using store = createJsonlStore({ root, sessionsJson: false });
    for await (const finding of store.maintenance?.repair() ?? []) expect(finding.repaired).toBe(true);
    const copy = readFileSync(`${root}/agents/main/throughline/repaired/s1.jsonl`, "utf8");
    for (const text of ["r1", "r2", "throughline.unparsed"]) expect(copy).toContain(`"${text}"`);
  });
});

describe("acknowledged appends that are cut off as a whole", () => {
  it.each([
    ["the last two", 3],
    ["all records", 1],
    ["all records and the header", 0],
  ])("are reported, and no seq is given twice: %s", async (_what, linesLeft) => {
    const root = newFolder();
    const store = await storeWithSession(root, { sessionsJson: false });
    for (const text of textsTo(4)) await store.append(mainRef, [userDraft(text)]);
    await store.close();
    const path = transcriptOf(root);
    const lines = readFileSync(path, "utf8").split("\n");
    truncateSync(path, lines.slice(0, linesLeft).join("\n").length + Math.sign(linesLeft));
    const left = textsTo(Math.max(0, linesLeft - 1));
    const lost = Array.from({ length: 4 - left.length }, () => "lost");
    const [found] = await verified(root);
    expect(found).toMatchObject({ code: "RECORD_MISSING", severity: "error", path });
    expect(found?.message).toBe(`${lost.length} acknowledged records are missing at the end of the file.`);
    const again = createJsonlStore({ root, sessionsJson: false });
    expect(await kindsOf(again)).toEqual(left);
    expect((await again.append(mainRef, [userDraft("next")])).records[0]?.seq).toBe(5);
    expect(await kindsOf(again)).toEqual([...left, ...lost, "next"]);
    await again.close();
    await using third = createJsonlStore({ root, sessionsJson: false });
    expect(await kindsOf(third)).toEqual([...left, ...lost, "next"]);
    expect(readFileSync(path, "utf8").startsWith('{"type":"session"')).toBe(true);
  });

  it("have their places in a backup of an emptied transcript, behind a header", async () => {
    const root = newFolder();
    const store = await storeWithSession(root, { sessionsJson: false });
    for (const text of textsTo(2)) await store.append(mainRef, [userDraft(text)]);
    await store.close();
    truncateSync(transcriptOf(root), 0);
    const copy = `${newFolder()}/copy`;
    await using again = createJsonlStore({ root, sessionsJson: false });
    await again.maintenance!.backup(copy);
    expect(readFileSync(transcriptOf(copy), "utf8").startsWith('{"type":"session"')).toBe(true);
    await using copied = createJsonlStore({ root: copy, sessionsJson: false });
    expect(await kindsOf(copied)).toEqual(["lost", "lost"]);
    expect((await copied.append(mainRef, [userDraft("next")])).records[0]?.seq).toBe(3);
  });

  it("are noticed by an open store that wrote them", async () => {
    const root = newFolder();
    await using store = await storeWithSession(root, { sessionsJson: false });
    for (const text of textsTo(4)) await store.append(mainRef, [userDraft(text)]);
    const path = transcriptOf(root);
    truncateSync(path, readFileSync(path, "utf8").split("\n").slice(0, 3).join("\n").length + 1);
    expect((await store.append(mainRef, [userDraft("next")])).records[0]?.seq).toBe(5);
    expect(await kindsOf(store)).toEqual(["r1", "r2", "lost", "lost", "next"]);
  });
});

describe("an append whose acknowledgement nothing proves", () => {
  it.each<readonly [string, Partial<JsonlStoreOptions>, boolean]>([
    ["the index is gone", {}, true],
    ["there never was one", { index: false }, false],
  ])("leaves nothing: %s", async (_why, options, removesIndex) => {
    const root = await closedStore(4, options);
    const path = transcriptOf(root);
    if (removesIndex) rmSync(`${root}/agents/main/throughline/index.db`);
    truncateSync(path, readFileSync(path).length - 20);
    await using store = createJsonlStore({ root, sessionsJson: false, ...options });
    expect(await kindsOf(store)).toEqual([]);
    expect((await store.append(mainRef, [userDraft("next")])).records[0]?.seq).toBe(1);
  });

  it("leaves nothing where it was never flushed", async () => {
    const root = newFolder();
    const store = await storeWithSession(root, { sessionsJson: false });
    await store.append(mainRef, textsTo(4).map(userDraft), { durability: "process" });
    await store.close();
    const path = transcriptOf(root);
    truncateSync(path, readFileSync(path).length - 20);
    await using again = createJsonlStore({ root, sessionsJson: false });
    expect(await kindsOf(again)).toEqual([]);
  });
});
