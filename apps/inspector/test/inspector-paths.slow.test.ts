import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { chromiumPath, launch, type Opened, openPage, skipReason, writeUsualSessions } from "./browser.ts";

describe.skipIf(chromiumPath === undefined)(`the paths through the page${skipReason}`, () => {
  let browser: Browser;
  let opened: Opened;
  let page: Page;

  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser.close());
  beforeEach(async () => {
    opened = await openPage(browser, writeUsualSessions);
    ({ page } = opened);
  });
  afterEach(async () => {
    const { reports } = opened;
    await opened.close();
    expect(reports).toEqual({ errors: [], foreignRequests: [], dialogs: [], violations: [] });
  });

  const names = (): Promise<string[]> => page.locator("a.line .line-name").allInnerTexts();
  const focused = (): Promise<string> => page.evaluate(() => document.activeElement?.textContent ?? "");

  it("takes the token out of the address, and lists the sessions newest first", async () => {
    await page.locator("a.line").nth(3).waitFor();
    expect(page.url()).not.toContain("token");
    expect(await names()).toEqual([
      "An empty session",
      "Deploy scripts",
      "Fix the login bug",
      "Read the tides of November",
    ]);
    // The page counts all sessions by a request of its own, which may be answered behind the list.
    await expect.poll(() => page.locator(".home-head").innerText()).toContain("4 sessions");
  });

  it("filters names while somebody types, and finds the words in the texts below", async () => {
    await page.getByRole("searchbox", { name: "Find a session" }).fill("login");
    await page.waitForFunction(() => document.querySelectorAll("a.line").length === 1);
    expect(await names()).toEqual(["Fix the login bug"]);
    await page.locator(".hit mark").first().waitFor();
    expect(new URL(page.url()).searchParams.get("q")).toBe("login");
    await page.locator(".hit-group", { hasText: "Deploy scripts" }).locator("a.hit").first().click();
    await page.locator("article.target").waitFor();
    expect(await page.locator("article.target").innerText()).toContain("login bug came back");
    await page.waitForFunction(() => document.querySelector(".find-count")?.textContent === "1 of 1");
  });

  it("opens the third session by keys alone, and comes back to its row", async () => {
    await page.locator("a.line").nth(3).waitFor();
    for (const key of ["j", "j", "j"]) await page.keyboard.press(key);
    expect(await focused()).toContain("Fix the login bug");
    await page.keyboard.press("Enter");
    await page.locator("h1", { hasText: "Fix the login bug" }).waitFor();
    await page.goBack();
    await page.locator("a.line").nth(3).waitFor();
    await page.waitForFunction(() => document.activeElement?.textContent?.includes("Fix the login bug") === true);
  });

  it("walks through a transcript by keys: messages, prompts, compaction, hits and a link", async () => {
    await page.getByText("Read the tides of November").click();
    await page.locator("article").first().waitFor();
    await page.locator(".prose.prompt").first().waitFor();
    const seq = (): Promise<string | null> =>
      page.evaluate(() => document.activeElement?.closest("[data-seq]")?.getAttribute("data-seq") ?? null);
    await page.keyboard.press("j");
    await expect.poll(seq).toBe("1");
    await page.keyboard.press("j");
    await expect.poll(seq).toBe("2");
    await page.locator(".chapters li").nth(1).waitFor();
    await page.keyboard.press("J");
    await expect.poll(seq).toBe("7");
    await page.keyboard.press("[");
    await expect.poll(seq).toBe("6");
    await page.keyboard.press("/");
    await page.keyboard.type("lighthouse");
    await page.waitForFunction(() => document.querySelector(".find-count")?.textContent?.includes("of 4") === true);
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => /^[1-4] of 4$/.test(document.querySelector(".find-count")?.textContent ?? ""));
    await page.keyboard.press("Escape");
    await page.keyboard.press("y");
    // The policy of the page forbids it to read the clipboard.
    await page.getByRole("searchbox", { name: "Find in this session" }).fill("");
    await page.keyboard.press("Control+V");
    const copied = await page.getByRole("searchbox", { name: "Find in this session" }).inputValue();
    expect(copied).toContain("/inspect/s/~");
    expect(copied).not.toContain("token");
  });

  it("shows a call with its result, size and failure in one row, an edit as a difference, and opens thinking", async () => {
    await page.getByText("Read the tides of November").click();
    const read = page.locator(".row.tool", { hasText: "tides.csv" });
    await read.waitFor();
    expect(await read.innerText()).toMatch(/read\s+tides\.csv\s+1\.\d kB/);
    expect(await page.locator(".row.tool", { hasText: "zone.ts" }).locator(".diff .add").innerText()).toContain(
      "zone = 2",
    );
    expect(await page.locator(".row.tool", { hasText: "lighthouse" }).innerText()).toContain("failed");
    expect(await page.locator(".row.thinking .row-body").count()).toBe(0);
    await page.keyboard.press("t");
    await page.locator(".row.thinking .row-body").waitFor();
    await read.getByRole("button").first().click();
    await read.locator(".row-body").waitFor();
    await read.getByRole("button", { name: "Show all" }).click();
    expect(await read.innerText()).toContain("2026-11-59");
    expect(await page.locator(".row.compaction").innerText()).toContain("180,112 → 41,020 tokens");
  });

  it("opens a link to a record, and says what to do without a token", async () => {
    await page.getByText("Read the tides of November").click();
    await page.locator(".prose.prompt").first().waitFor();
    const address = `${page.url()}?at=7`;
    await page.goto(address);
    await page.locator('article.target[data-seq="7"]').waitFor();
    await page.goto(`${page.url().split("?")[0]}?at=999`);
    await page.getByText("There is no record 999. This session ends with record 10.").waitFor();
    await page.locator('article[data-seq="10"]').waitFor();
    const fresh = await opened.context.newPage();
    await fresh.goto(address);
    await fresh.getByText("throughline ui").waitFor();
    expect(await fresh.locator("article").count()).toBe(0);
    await fresh.getByLabel("Or paste a token").fill("tl_wrong");
    await fresh.getByRole("button", { name: "Open" }).click();
    await fresh.getByText("The token is not accepted").waitFor();
  });

  it("says what an empty session and an unknown session are", async () => {
    await page.getByText("An empty session").click();
    await page.getByText("This session has no records yet").waitFor();
    await opened.go("s/~YWdlbnQ6bWFpbjpub25l");
    await page.getByText("Not found").waitFor();
  });

  it("lists before an export what the search for secrets replaces", async () => {
    await page.getByText("Read the tides of November").click();
    await page.getByRole("button", { name: "Export" }).click();
    await page.getByText("home directory replaced").waitFor();
    const saved = page.waitForEvent("download");
    await page.getByRole("button", { name: "Save the file" }).click();
    expect((await saved).suggestedFilename()).toMatch(/^read-the-tides-of-november-agent-ma-\d{4}-\d\d-\d\d\.html$/);
  });
});
