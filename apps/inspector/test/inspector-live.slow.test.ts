import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createInterface, type Interface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { builtPage, chromiumPath, launch, skipReason, sessionPath } from "./browser.ts";

type Child = ChildProcessByStdio<Writable, Readable, null>;

const key = "agent:main:live";
const address = sessionPath(key);

/** Starts a file of this folder as a process of its own. */
function start(
  file: string,
  args: readonly string[],
): { readonly child: Child; readonly lines: AsyncIterator<string> } {
  const path = fileURLToPath(new URL(file, import.meta.url));
  const child = spawn(process.execPath, ["--conditions=@throughline/source", path, ...args], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines: Interface = createInterface({ input: child.stdout });
  return { child, lines: lines[Symbol.asyncIterator]() };
}

async function kill(child: Child): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}

describe.skipIf(chromiumPath === undefined)(`a session that somebody writes${skipReason}`, () => {
  let browser: Browser;
  let folder = "";
  let server: ReturnType<typeof start>;
  let writer: ReturnType<typeof start>;
  let page: Page;
  let url = "";

  const serve = async (port: string): Promise<string> => {
    server = start("page-server.ts", [await builtPage(), join(folder, "sessions.db"), port]);
    return String((await server.lines.next()).value);
  };
  const ask = (text: string): boolean => writer.child.stdin.write(`${text}\n`);
  const seqs = (): Promise<string[]> =>
    page.locator("article[data-seq]").evaluateAll((all) => all.map((each) => each.getAttribute("data-seq") ?? ""));
  const distanceFromEnd = (): Promise<number> =>
    page
      .locator(".reading .scroll")
      .evaluate(({ scrollHeight, scrollTop, clientHeight }) => scrollHeight - scrollTop - clientHeight);
  const prompts = (): Promise<string[]> => page.locator(".prose.prompt").allInnerTexts();

  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser.close());
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), "throughline-live-"));
    writer = start("live-writer.ts", [join(folder, "sessions.db"), key, "4"]);
    await writer.lines.next();
    ask("Say the first thing");
    await writer.lines.next();
    url = await serve("0");
    page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
    await page.goto(url);
    await page.locator("a.line").first().waitFor();
    await page.goto(new URL(`/inspect/${address}`, url).href);
    await page.locator(".prose.prompt").first().waitFor();
  });
  afterEach(async () => {
    await page.close();
    await kill(writer.child);
    await kill(server.child);
    rmSync(folder, { recursive: true, force: true });
  });

  it("shows the text of a reply while it arrives, then its record once, and stays at the end", async () => {
    await page.locator(".prose.assistant").first().waitFor();
    const first = await page.locator("article[data-seq]").first().elementHandle();
    ask("Hold the second thing");
    await page.locator(".item.arriving").waitFor();
    const early = await page.locator(".item.arriving .prose").innerText();
    ask("Go on");
    const whole = JSON.parse(String((await writer.lines.next()).value)) as string;
    expect(whole.startsWith(early.trim().slice(0, 24))).toBe(true);
    await page.locator(".prose.assistant").nth(1).waitFor();
    await expect.poll(() => page.locator(".item.arriving").count()).toBe(0);
    expect(await prompts()).toEqual(["Say the first thing", "Hold the second thing"]);
    await expect.poll(() => page.locator(".prose.assistant").count()).toBe(2);
    const shownSeqs = await seqs();
    expect(new Set(shownSeqs).size).toBe(shownSeqs.length);
    // The rows that were there are the same elements, so a selection in them stays.
    expect(await first?.evaluate((node) => node.isConnected)).toBe(true);
    await expect.poll(distanceFromEnd).toBeLessThan(120);
  });

  describe("that fills more than the screen", () => {
    const arrivals = (): Locator => page.getByRole("button", { name: /^\d+ new/ });
    const lastReply = (): Locator => page.locator("article[data-seq]").last().locator(".prose.assistant");

    beforeEach(async () => {
      for (let turn = 0; turn < 4; turn++) {
        ask(`Say ${turn}, ${"a long thing, ".repeat(60)}`);
        await writer.lines.next();
      }
      await page.locator(".prose.prompt", { hasText: "Say 3" }).waitFor();
      await lastReply().waitFor();
      await expect.poll(distanceFromEnd).toBeLessThan(120);
    });

    it("counts what arrives below a reader who is elsewhere, and goes there on a click", async () => {
      await page.locator(".reading .scroll").evaluate((box) => box.scrollTo(0, 0));
      await page.locator(".prose.prompt", { hasText: "Say the first thing" }).waitFor();
      ask("Say the last thing");
      await writer.lines.next();
      await expect.poll(() => arrivals().innerText()).toBe("2 new ↓");
      expect(await page.locator(".prose.prompt", { hasText: "Say the first thing" }).count()).toBe(1);
      await arrivals().click();
      await expect.poll(() => arrivals().count()).toBe(0);
      await expect.poll(distanceFromEnd).toBeLessThan(120);
      ask("Say one thing more");
      await page.locator(".prose.prompt", { hasText: "Say one thing more" }).waitFor();
      await lastReply().waitFor();
      await expect.poll(distanceFromEnd).toBeLessThan(120);
      expect(await arrivals().count()).toBe(0);
    });

    it("leaves a reader alone who goes up in the moment in which a record arrives", async () => {
      const box = page.locator(".reading .scroll");
      await box.evaluate((element) => {
        const feed = element.querySelector(".feed");
        // The page has grown, and nothing else has run since.
        const observer = new MutationObserver(() => {
          observer.disconnect();
          element.scrollTo(0, 0);
        });
        if (feed !== null) observer.observe(feed, { attributeFilter: ["style"] });
      });
      ask("Say the last thing");
      await writer.lines.next();
      const offset = (): Promise<number> => box.evaluate(({ scrollTop }) => scrollTop);
      await expect.poll(offset).toBe(0);
      ask("Say one thing more");
      await writer.lines.next();
      await arrivals().waitFor();
      expect(await offset()).toBe(0);
    });
  });

  it("says since when it is stale while the server is away, and has every record once when it is back", async () => {
    await kill(server.child);
    await page.getByText(/^stale since \d\d:\d\d$/).waitFor();
    // A server that starts again has another token. The page is offline until it has that one.
    await page.context().setOffline(true);
    ask("Say what nobody saw");
    await writer.lines.next();
    const again = await serve(new URL(url).port);
    await page.evaluate((token) => sessionStorage.setItem("throughline-token", token), again.split("#token=")[1] ?? "");
    await page.context().setOffline(false);
    await page.locator(".prose.prompt", { hasText: "Say what nobody saw" }).waitFor();
    expect(await page.getByText(/^stale since/).count()).toBe(0);
    expect(await prompts()).toEqual(["Say the first thing", "Say what nobody saw"]);
    await expect.poll(() => page.locator(".prose.assistant").count()).toBe(2);
  });
});
