import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Finding, SessionStore } from "@throughline/core";
import { createSqliteStore } from "@throughline/store-sqlite";
import { describe, expect, it } from "vitest";
import { refOf, say } from "./append-drafts.ts";
import { createSession, quickFolder, testFolder, textsOf } from "./test-folder.ts";

const pageBytes = 8192;
const names = ["a", "b", "c"];

function open(path: string): SessionStore {
  return createSqliteStore({ path, recover: false, searchFill: "on-demand" });
}

/** A closed store of three sessions with twenty records each. */
async function threeSessions(folder: string): Promise<Buffer> {
  const path = join(folder, "store.db");
  await using store = open(path);
  for (const name of names) {
    const ref = await createSession(store, name);
    for (let each = 0; each < 20; each++)
      await store.append(ref, [say(`${name}${each} ${"x".repeat(1500)}`, { id: `${name}-${each}` })]);
  }
  await store.close();
  return readFileSync(path);
}

/** A copy of the file in which one page is zeros, or what is as good as random. */
function damaged(folder: string, bytes: Buffer, page: number, isZero: boolean): string {
  const path = join(folder, `${isZero ? "zero" : "random"}-${page}.db`);
  const copy = Buffer.from(bytes);
  for (let at = page * pageBytes; at < (page + 1) * pageBytes; at += 32) {
    if (isZero) copy.fill(0, at, at + 32);
    else createHash("sha256").update(String(at)).digest().copy(copy, at);
  }
  writeFileSync(path, copy, { mode: 0o600 });
  return path;
}

async function gathered(findings: AsyncIterable<Finding> | undefined): Promise<Finding[]> {
  const found: Finding[] = [];
  for await (const each of findings ?? []) found.push(each);
  return found;
}

async function readableTexts(store: SessionStore): Promise<number> {
  let count = 0;
  for (const name of names) {
    const texts = (await store.load(refOf(name))) === null ? [] : await textsOf(store, refOf(name));
    count += texts.filter((text) => typeof text === "string").length;
  }
  return count;
}

describe("a store of which one page is gone", () => {
  it.each([
    ["zeros", true],
    ["garbage", false],
  ])("is verified where it can be opened, and repaired to the end: %s", { timeout: 120_000 }, async (_what, isZero) => {
    const folder = testFolder(quickFolder());
    const bytes = await threeSessions(folder);
    const kept: number[] = [];
    for (let page = 1; page < bytes.length / pageBytes; page++) {
      const path = damaged(folder, bytes, page, isZero);
      await using store = open(path);
      const isOpen = await store.list().then(
        () => true,
        () => false,
      );
      // Of forty pages a few hold the schema, without which nothing is opened.
      const found = isOpen ? await gathered(store.maintenance?.verify({ full: true })) : null;
      if (found !== null) {
        expect(
          found.map(({ severity }) => severity),
          `page ${page}`,
        ).toContain("error");
        expect(
          found.map(({ code }) => code),
          `page ${page}`,
        ).toContain("STORE_DAMAGED");
      }
      const last = (await gathered(store.maintenance?.repair())).at(-1);
      expect(last, `page ${page}`).toMatchObject({ code: "STORE_DAMAGED", repaired: true });
      await using copy = open(last?.path ?? "");
      expect(await gathered(copy.maintenance?.verify({ full: true })), `page ${page}`).toEqual([]);
      kept.push(await readableTexts(copy));
      // The damaged file is read, and not touched.
      expect(
        readFileSync(path)
          .subarray(page * pageBytes, (page + 1) * pageBytes)
          .every((byte) => byte === 0),
      ).toBe(isZero);
    }
    expect(kept.length).toBe(bytes.length / pageBytes - 1);
    // A page of records takes those that stand on it; most pages hold nothing that cannot be made again.
    expect(kept.filter((count) => count >= 55).length).toBeGreaterThan(kept.length * 0.9);
  });
});
