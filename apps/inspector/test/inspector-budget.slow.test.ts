import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { builtPage, chromiumPath, launch, openPage, skipReason, sessionPath } from "./browser.ts";
import { testSize } from "../../../tools/test-size.ts";
import { writeLongSession } from "./long-session.ts";

interface ListedFile {
  readonly name: string;
}

/** Returns the sizes of the files of the page with gzip, in bytes. */
async function sizes(): Promise<ReadonlyMap<string, number>> {
  const folder = await builtPage();
  const files = JSON.parse(readFileSync(join(folder, "files.json"), "utf8")) as readonly ListedFile[];
  return new Map(files.map(({ name }) => [name, readFileSync(join(folder, `${name}.gz`)).length]));
}

function sum(all: ReadonlyMap<string, number>, matches: (name: string) => boolean): number {
  return [...all].filter(([name]) => matches(name)).reduce((total, [, bytes]) => total + bytes, 0);
}

const records = testSize({ short: 20_000, long: 1_000_000 });
/** The heap holds at most this much, with the columns of numbers beside it. */
const mostBytes = testSize({ short: 60_000_000, long: 120_000_000 });
const timeout = testSize({ short: 300_000, long: 1_800_000 });
const wait = { timeout };

/** Returns what the page holds after a collection: objects, and buffers outside of the heap. */
async function heldBytes(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize, backingStorageSize } = (await session.send("Runtime.getHeapUsage")) as {
    readonly usedSize: number;
    readonly backingStorageSize?: number;
  };
  return usedSize + (backingStorageSize ?? 0);
}

describe("the size of the page", () => {
  it("is at most 40 kB of JavaScript for a first load, 48 kB for a session, 8 kB of styles, 110 kB of JavaScript in all", async () => {
    const all = await sizes();
    // The page names the scripts that it starts with.
    const first = readFileSync(join(await builtPage(), "index.html"), "utf8");
    expect(sum(all, (name) => first.includes(`"/inspect/${name}"`) && name.endsWith(".js"))).toBeLessThan(40_000);
    expect(sum(all, (name) => /^session-page-.*\.js$/.test(name))).toBeLessThan(48_000);
    expect(sum(all, (name) => /^color-code-.*\.js$/.test(name))).toBeLessThan(24_000);
    expect(sum(all, (name) => name.endsWith(".css"))).toBeLessThan(8000);
    expect(sum(all, (name) => name.endsWith(".js"))).toBeLessThan(110_000);
  });

  it("is that of a production build, whatever the environment is: no element has its place in the source", async () => {
    const folder = await builtPage();
    const scripts = readdirSync(folder).filter((name) => name.endsWith(".js"));
    expect(scripts.length).toBeGreaterThan(3);
    for (const name of scripts)
      expect([name, readFileSync(join(folder, name), "utf8").includes("lineNumber:")]).toEqual([name, false]);
  });

  it("adds at most 0.8 MB to the installed package", async () => {
    const folder = await builtPage();
    const bytes = readdirSync(folder).reduce((total, name) => total + statSync(join(folder, name)).size, 0);
    expect(bytes).toBeLessThan(800_000);
  });
});

describe.skipIf(chromiumPath === undefined)(`the page over a long session${skipReason}`, () => {
  let browser: Browser;

  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser.close());

  it(
    `holds at most 1,500 elements over ${records} records, and lands on the record of a link`,
    { timeout },
    async () => {
      const opened = await openPage(browser, (store) => writeLongSession(store, "agent:main:long", records));
      const { page } = opened;
      const path = sessionPath("agent:main:long");
      const elements = (): Promise<number> => page.evaluate(() => document.querySelectorAll("*").length);
      await opened.go(path);
      await page.locator("article .prose").first().waitFor(wait);
      const counts = [await elements()];
      await page.mouse.move(700, 500);
      for (let step = 0; step < 60; step++) {
        await page.mouse.wheel(0, 1000);
        if (step % 10 === 0) counts.push(await elements());
      }
      // Parts of a twentieth, so that the record of a link is in a late one at any size.
      await page.route("**/outline?*", (request) => {
        const address = new URL(request.request().url());
        const from = Number(address.searchParams.get("fromSeq"));
        if (!address.searchParams.has("toSeq")) address.searchParams.set("toSeq", String(from + records / 20));
        return request.continue({ url: address.href });
      });
      for (const seq of [0.6706 * records, 12, records - 18, records / 2 + 1]) {
        await opened.go(`${path}?at=${seq}`);
        const target = page.locator(`article[data-seq="${seq}"]`);
        await target.locator(".prose, .row").first().waitFor(wait);
        await expect.poll(async () => (await target.boundingBox())?.y ?? -1, wait).toBeGreaterThan(100);
        expect((await target.boundingBox())?.y ?? 9999, `record ${seq}`).toBeLessThan(760);
        counts.push(await elements());
      }
      const bytes = await heldBytes(page);
      await opened.close();
      expect(Math.max(...counts)).toBeLessThan(1500);
      expect(bytes).toBeLessThan(mostBytes);
      expect(opened.reports.violations).toEqual([]);
    },
  );
});
