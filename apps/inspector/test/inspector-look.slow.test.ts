import { mkdirSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  chromiumPath,
  launch,
  type Opened,
  openPage,
  skipReason,
  writeCalls,
  writeUsualSessions,
  sessionPath,
} from "./browser.ts";
import { fullKey, writeFullSession } from "./full-session.ts";

/** Names a folder for the pictures of each screen and state: `THROUGHLINE_PICTURES=FOLDER`. Without it none are kept. */
const pictures = process.env["THROUGHLINE_PICTURES"] ?? "";
const session = sessionPath(fullKey);
const calls = sessionPath("agent:main:calls");
const empty = sessionPath("agent:main:empty");

type Act = (page: Page) => Promise<void>;
type Screen = readonly [name: string, path: string, sign: string, act?: Act];

const press =
  (name: string | RegExp): Act =>
  (page) =>
    page.getByRole("button", { name }).first().click();

const full: readonly Screen[] = [
  ["home", "", "a.line"],
  ["search", "search?q=login", ".hit"],
  ["usage", "usage", ".state, .totals"],
  ["transcript", session, ".axis canvas"],
  ["transcript-agent", session, ".axis canvas", press(/^Sub-agent/)],
  ["transcript-find", `${session}?q=tide`, ".find-count"],
  ["transcript-end", `${session}?at=12`, ".axis canvas"],
  ["plain", `${session}?v=plain`, ".prose.prompt"],
  ["resume", session, ".axis canvas", press("Resume")],
  [
    "hand-off",
    session,
    ".axis canvas",
    async (page) => {
      await press("Resume")(page);
      await press("Codex")(page);
      await page.locator(".losses, .hand-off .shell").first().waitFor();
    },
  ],
  ["export", session, ".axis canvas", press("Export")],
  ["more", session, ".axis canvas", press("More")],
  ["help", "help", "dialog[open]"],
  ["files", `${session}?v=files&path=next.py`, ".files .diff"],
  ["session-usage", `${session}?v=usage`, ".state, .totals"],
  ["context", `${session}?v=context`, ".stack"],
  ["calls", `${calls}?v=calls`, ".wide-table a"],
  [
    "call",
    `${calls}?v=calls`,
    ".wide-table a",
    async (page) => {
      await page.locator(".wide-table a").first().click();
      await page.locator(".sent").waitFor();
    },
  ],
  ["diff", `${calls}?v=diff`, ".compared"],
  ["tree", `${session}?v=tree`, ".state, .tree"],
  ["raw", `${session}?v=raw`, ".raw summary"],
];

const without: readonly Screen[] = [
  ["home-empty", "?q=zzzz", ".state"],
  ["search-empty", "search?q=zzzz", ".state"],
  ["transcript-empty", empty, ".state"],
  ["files-empty", `${empty}?v=files`, ".state"],
  ["usage-empty", `${empty}?v=usage`, ".state"],
  ["context-empty", `${empty}?v=context`, ".state"],
  ["findings-empty", `${empty}?v=findings`, ".state"],
];

/** What a server that answers nothing, or refuses, leaves of a screen. */
const parts: readonly (readonly [name: string, path: string, route: string])[] = [
  ["home", "", "**/api/v1/sessions?**"],
  ["search", "search?q=login", "**/api/v1/search?**"],
  ["usage", "usage", "**/api/v1/usage?**"],
  ["transcript", session, "**/outline*"],
  ["prompts", session, "**/digest*"],
  ["files", `${session}?v=files`, "**/changed-files*"],
  ["context", `${session}?v=context`, "**/context*"],
  ["calls", `${calls}?v=calls`, "**/calls?*"],
];

/** Lists what is not on the type scale or the grid, and what the width cuts off. Is run in the page. */
function lookAt(): readonly string[] {
  const scale = new Set(["13px", "14px", "16px", "20px", "28px"]);
  const spaces = ["paddingTop", "paddingLeft", "marginTop", "marginLeft", "rowGap", "columnGap"] as const;
  const found = new Set<string>();
  const nameOf = ({ tagName, className }: Element): string => `${tagName.toLowerCase()}.${String(className)}`;
  for (const node of document.body.querySelectorAll<HTMLElement>("*")) {
    if (node.closest("svg") !== null || !node.checkVisibility()) continue;
    const style = getComputedStyle(node);
    const hasText = [...node.childNodes].some(({ nodeType, data }: { nodeType: number; data?: string }) =>
      nodeType === 3 ? data?.trim() !== "" : false,
    );
    if (hasText && !scale.has(style.fontSize)) found.add(`${nameOf(node)} font-size ${style.fontSize}`);
    for (const space of spaces) {
      const value = Number.parseFloat(style[space]);
      // A line of one pixel lies on the edge of a box.
      const isOnGrid = Number.isNaN(value) || Math.abs(value) <= 1 || value % 4 === 0;
      // A margin that is `auto` takes the rest of the width.
      const isRest = (space === "marginLeft" && value > 64) || (node.matches("dialog") && space.startsWith("margin"));
      if (!isOnGrid && !isRest) found.add(`${nameOf(node)} ${space} ${style[space]}`);
    }
    const isCut = node.scrollWidth > node.clientWidth + 1 && style.overflowX === "hidden";
    if (hasText && isCut && style.textOverflow !== "ellipsis" && !node.classList.contains("hidden"))
      found.add(`${nameOf(node)} is cut off`);
  }
  const { scrollWidth, clientWidth } = document.documentElement;
  if (scrollWidth > clientWidth) found.add(`the page is ${scrollWidth} px wide`);
  return [...found];
}

describe.skipIf(chromiumPath === undefined)(`the look of each screen${skipReason}`, () => {
  let browser: Browser;
  let opened: Opened;

  beforeAll(async () => {
    browser = await launch();
    opened = await openPage(browser, async (store) => {
      await writeFullSession(store);
      await writeUsualSessions(store);
      await writeCalls(store);
    });
    if (pictures !== "") mkdirSync(pictures, { recursive: true });
  });
  afterAll(async () => {
    await opened.close();
    await browser.close();
  });

  /** Looks at a screen in both themes and at two widths. */
  async function look(page: Page, name: string): Promise<readonly string[]> {
    const found: string[] = [];
    for (const width of [1280, 390])
      for (const theme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme: theme });
        await page.setViewportSize({ width, height: 800 });
        if (theme === "light") found.push(...(await page.evaluate(lookAt)).map((what) => `${name} ${width}: ${what}`));
        if (pictures !== "") await page.screenshot({ path: join(pictures, `${name}-${theme}-${width}.png`) });
      }
    return found;
  }

  it("keeps to a type scale and a grid, and cuts nothing off, with content", { timeout: 300_000 }, async () => {
    const found: string[] = [];
    for (const [name, path, sign, act] of full) {
      await opened.page.setViewportSize({ width: 1280, height: 800 });
      await opened.go(path);
      await opened.page.locator(sign).first().waitFor();
      await act?.(opened.page);
      found.push(...(await look(opened.page, name)));
    }
    expect(found).toEqual([]);
  });

  it("gives the lines of the list their height again when the window gets narrow", async () => {
    const { page } = opened;
    await page.setViewportSize({ width: 1280, height: 800 });
    await opened.go("");
    await page.locator("a.line").first().waitFor();
    const gap = async (): Promise<number> => {
      const tops = await page
        .locator("a.line")
        .evaluateAll((all) => all.map((each) => each.getBoundingClientRect().top));
      return (tops[1] ?? 0) - (tops[0] ?? 0);
    };
    expect(await gap()).toBe(48);
    await page.setViewportSize({ width: 390, height: 800 });
    await expect.poll(gap).toBe(72);
    await page.setViewportSize({ width: 1280, height: 800 });
    await expect.poll(gap).toBe(48);
  });

  it("does so without content, and says in a title what is missing", { timeout: 300_000 }, async () => {
    const found: string[] = [];
    for (const [name, path, sign] of without) {
      await opened.go(path);
      await opened.page.locator(sign).first().waitFor();
      expect((await opened.page.locator(".state h2").first().innerText()).length).toBeGreaterThan(8);
      found.push(...(await look(opened.page, name)));
    }
    expect(found).toEqual([]);
  });

  it("does so while it loads, and when the server fails", { timeout: 300_000 }, async () => {
    const { page } = opened;
    const found: string[] = [];
    for (const [name, path, route] of parts) {
      let release = (): void => {};
      const held = new Promise<void>((resolve) => (release = resolve));
      await page.route(route, async (request) => {
        await held;
        const problem = { code: "STORE_IO", message: "The disk is full.", remedy: "Free some space.", status: 500 };
        await request.fulfill({ status: 500, contentType: "application/problem+json", body: JSON.stringify(problem) });
      });
      await opened.go(path);
      await page.locator(".loading, .bone").first().waitFor();
      found.push(...(await look(page, `${name}-loading`)));
      await page.setViewportSize({ width: 1280, height: 800 });
      release();
      await page.getByText("The disk is full.").first().waitFor();
      await page.getByRole("button", { name: "Try again" }).first().waitFor();
      found.push(...(await look(page, `${name}-failed`)));
      await page.unroute(route);
    }
    expect(found).toEqual([]);
  });
});
