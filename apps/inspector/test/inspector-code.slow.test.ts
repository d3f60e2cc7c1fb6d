import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { chromiumPath, launch, openPage, skipReason, sessionPath } from "./browser.ts";
import { fullKey, writeFullSession } from "./full-session.ts";

const session = sessionPath(fullKey);

/** Lists the texts that have the color of a kind. */
function colored(page: Page, kind: string): Promise<readonly string[]> {
  return page.evaluate((name) => {
    const texts: string[] = [];
    CSS.highlights.get(name)?.forEach(({ startContainer, startOffset, endOffset }) => {
      texts.push(startContainer.textContent?.slice(startOffset, endOffset) ?? "");
    });
    return texts;
  }, `code-${kind}`);
}

/** Returns the contrast of each color of code on each ground that code stands on. Is run in the page. */
function contrasts(): readonly (readonly [pair: string, ratio: number])[] {
  const probe = document.createElement("i");
  document.body.append(probe);
  const canvas = document.createElement("canvas").getContext("2d");
  if (canvas === null) return [];
  const luminance = (color: string): number => {
    probe.style.color = color;
    canvas.fillStyle = getComputedStyle(probe).color;
    canvas.fillRect(0, 0, 1, 1);
    const [r = 0, g = 0, b = 0] = canvas.getImageData(0, 0, 1, 1).data;
    const part = (value: number): number =>
      value / 255 <= 0.03928 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4;
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const found: (readonly [string, number])[] = [];
  for (const kind of ["comment", "string", "number", "keyword"])
    for (const ground of ["bg", "raised", "add", "cut", "prompt"]) {
      const [one, other] = [luminance(`var(--code-${kind})`), luminance(`var(--${ground})`)];
      found.push([`${kind} on ${ground}`, (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05)]);
    }
  probe.remove();
  return found;
}

describe.skipIf(chromiumPath === undefined)(`the colors of code${skipReason}`, () => {
  let browser: Browser;

  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser.close());

  it("are painted over code and diffs, without an element, and go with their rows", async () => {
    const opened = await openPage(browser, writeFullSession);
    const { page } = opened;
    await opened.go(`${session}?v=plain`);
    await page.locator(".diff").first().waitFor();
    await expect.poll(() => colored(page, "keyword")).toContain("def");
    expect(await colored(page, "comment")).toContain("/** Returns the next high water. */");
    expect(await colored(page, "string")).toContain('"""Returns the next high water."""');
    // The result of a call that writes is no code of its file.
    expect(await colored(page, "number")).not.toContain("5");
    expect(await page.locator(".long pre > *:not(.add, .cut, .at)").count()).toBe(0);
    await page.getByRole("button", { name: "Copy the code" }).first().click();
    // The policy of the page does not let it read the clipboard.
    const other = await opened.context.newPage();
    await other.goto(`${opened.server.url}/healthz`);
    const copied = await other.evaluate(() => navigator.clipboard.readText());
    await other.close();
    expect(copied).toMatch(/^\/\*\* Returns[^]*meters\n\}$/);
    await opened.go(`${session}?v=files&path=next.py`);
    await expect.poll(() => colored(page, "keyword")).toEqual(["def", "return", "None", "def", "return"]);
    await page.getByRole("link", { name: "Context", exact: true }).click();
    await page.locator(".stack").waitFor();
    await expect.poll(() => colored(page, "keyword")).toEqual([]);
    await opened.close();
    expect(opened.reports).toEqual({ errors: [], foreignRequests: [], dialogs: [], violations: [] });
  });

  it.each(["light", "dark"] as const)("have a contrast of 4.5 on every ground, %s", async (theme) => {
    const opened = await openPage(browser, async () => {}, { theme });
    const found = await opened.page.evaluate(contrasts);
    await opened.close();
    expect(found).toHaveLength(20);
    expect(found.filter(([, ratio]) => ratio < 4.5)).toEqual([]);
  });
});
