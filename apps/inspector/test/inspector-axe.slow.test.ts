import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { SessionStore } from "@throughline/core";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { chromiumPath, launch, openPage, skipReason, writeCalls, writeUsualSessions, sessionPath } from "./browser.ts";
import { fullKey, writeFullSession } from "./full-session.ts";

const axeSource: string = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const session = "s/~YWdlbnQ6bWFpbjp0aWRlcw";

const full = sessionPath(fullKey);
const openAgent = (page: Page): Promise<void> => page.getByRole("button", { name: /^Sub-agent/ }).click();

const calls = "s/~YWdlbnQ6bWFpbjpjYWxscw";

async function fill(store: SessionStore): Promise<void> {
  await writeFullSession(store);
  await writeUsualSessions(store);
  await writeCalls(store);
}

/** Each screen, and what shows that it is there. */
const screens: readonly (readonly [name: string, path: string, sign: string, act?: (page: Page) => Promise<void>])[] = [
  ["home", "", "a.line"],
  ["home without a match", "?q=zzzz", ".state"],
  ["search", "search?q=login", ".hit"],
  ["search without words", "search", ".search-help"],
  ["transcript", session, ".axis, .prose.prompt"],
  ["transcript with hits", `${session}?q=lighthouse&at=7`, ".prose.prompt"],
  ["an open sub-agent", full, ".row.agent", openAgent],
  ["an open sub-agent in the plain transcript", `${full}?v=plain`, ".row.agent", openAgent],
  ["tree with children and forks", `${full}?v=tree`, ".tree a.line"],
  ["usage with numbers", `${full}?v=usage`, ".totals"],
  ["files", `${session}?v=files&path=zone.ts`, ".files .diff"],
  ["usage of a session", `${session}?v=usage`, ".state, .totals"],
  ["context", `${session}?v=context`, ".stack"],
  ["findings", `${session}?v=findings`, ".state, .findings"],
  ["tree", `${session}?v=tree`, ".state, .tree"],
  ["raw", `${session}?v=raw`, ".raw summary"],
  ["calls", `${calls}?v=calls`, ".wide-table a"],
  ["diff of calls", `${calls}?v=diff`, ".compared"],
  ["usage", "usage", ".state, .totals"],
  ["plain transcript", `${session}?v=plain`, ".prose.prompt"],
  ["unknown session", "s/~YWdlbnQ6bWFpbjpub25l", ".state"],
  ["help", "help", "dialog[open]"],
];

interface AxeResult {
  readonly id: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
}

describe.skipIf(chromiumPath === undefined)(`the page for everybody${skipReason}`, () => {
  let browser: Browser;

  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser.close());

  for (const theme of ["light", "dark"] as const)
    it(`has no violation that axe knows on any screen, ${theme}`, async () => {
      const opened = await openPage(browser, fill, { theme });
      const found: string[] = [];
      for (const [name, path, sign, act] of screens) {
        await opened.go(path);
        await opened.page.locator(sign).first().waitFor();
        await act?.(opened.page);
        await opened.page.evaluate(axeSource);
        const violations = await opened.page.evaluate(async () => {
          const { axe } = globalThis as unknown as { axe: { run(): Promise<{ violations: AxeResult[] }> } };
          return (await axe.run()).violations;
        });
        for (const { id, nodes } of violations)
          found.push(
            `${name}: ${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join("; ")}`,
          );
      }
      await opened.close();
      expect(found).toEqual([]);
    }, 600_000);

  it("needs no scrolling to the side at 320 px, which is 400 % of 1280", async () => {
    const opened = await openPage(browser, fill, { width: 320, height: 640 });
    const wide: string[] = [];
    for (const [name, path, sign, act] of screens) {
      await opened.go(path);
      await opened.page.locator(sign).first().waitFor();
      await act?.(opened.page);
      const width = await opened.page.evaluate(() => document.documentElement.scrollWidth);
      if (width > 320) wide.push(`${name}: ${width}`);
    }
    await opened.close();
    expect(wide).toEqual([]);
  });
});
