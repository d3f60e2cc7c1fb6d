import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createProviderSimulator, type ProviderSimulator } from "@throughline/testing";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { type ChatServer, killAtQuestion, startChat } from "./chat-server.ts";

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

const places = [process.env["CHROMIUM"] ?? "", "/usr/bin/chromium", "/usr/bin/chromium-browser"];
const executablePath = places.find((path) => path !== "" && existsSync(path));
/** Is the lease of a turn where the program states none. */
const leaseMs = 30_000;
const words = Array.from({ length: 400 }, (_, at) => `word${at} `).join("");

describe.skipIf(executablePath === undefined)(
  `the page in a browser${executablePath === undefined ? " (no Chromium here: set CHROMIUM to its path)" : ""}`,
  () => {
    let browser: Browser;
    let context: BrowserContext;
    let folder = "";
    let provider: ProviderSimulator;
    let servers: ChatServer[] = [];

    beforeAll(async () => {
      browser = await chromium.launch({ executablePath: executablePath ?? "", args: ["--no-sandbox"] });
    });
    afterAll(() => browser.close());
    beforeEach(async () => {
      folder = mkdtempSync(join(tmpdir(), "throughline-page-"));
      provider = createProviderSimulator({ fallback: () => "Done." });
      await provider.start();
      context = await browser.newContext();
    });
    afterEach(async () => {
      await context.close();
      for (const server of servers.splice(0)) await server.stop("SIGKILL");
      await provider.close();
      rmSync(folder, { recursive: true, force: true });
    });

    async function start(): Promise<ChatServer> {
      const server = await startChat(folder, provider);
      servers = [...servers, server];
      return server;
    }

    async function open({ url }: ChatServer): Promise<Page> {
      const page = await context.newPage();
      await page.goto(url);
      return page;
    }

    const textOf = async (page: Page): Promise<string> => (await page.locator("main").textContent()) ?? "";

    async function ask(page: Page, text: string): Promise<void> {
      await page.getByLabel("Message").fill(text);
      await page.getByLabel("Message").press("Enter");
    }

    /**
     * Expects the answer so far in the first event of `GET /turn`: a page that waited for a later one would show it
     * after the next poll of the server.
     */
    async function expectInFirstEvent(page: Page, text: string): Promise<void> {
      await page.getByText(text).waitFor();
      const frames = await page.evaluate(() => (globalThis as { turnText?: string }).turnText?.split("\n\n") ?? []);
      const event = frames.find((frame) => frame.startsWith("event: "));
      expect(event).toContain("event: text.snapshot");
      expect(event).toContain(text);
    }

    /** Is run in the page before its own script. */
    const noteTurnText: { readonly content: string } = {
      content: `
        const { fetch } = globalThis;
        globalThis.fetch = async (...request) => {
          const response = await fetch(...request);
          if (request[0] !== "turn" || response.body === null) return response;
          const decoder = new TextDecoder();
          const body = response.body.pipeThrough(
            new TransformStream({
              transform(piece, controller) {
                globalThis.turnText = (globalThis.turnText ?? "") + decoder.decode(piece, { stream: true });
                controller.enqueue(piece);
              },
            }),
          );
          return new Response(body, response);
        };`,
    };

    function timesOf(text: string, word: string): number {
      return text.split(`${word} `).length - 1;
    }

    it("shows the answer so far with the first event after a reload, then the rest, and nothing twice", async () => {
      provider.enqueue({ kind: "answer", content: words, eventDelayMs: 25 });
      const page = await open(await start());
      await ask(page, "Tell me.");
      await page.getByText("word60 ").waitFor();
      await page.addInitScript(noteTurnText);
      await page.reload({ waitUntil: "commit" });
      await expectInFirstEvent(page, "word60 ");
      await page.getByRole("button", { name: "Regenerate" }).waitFor({ timeout: 30_000 });
      const text = await textOf(page);
      for (const at of [0, 59, 60, 61, 200, 399]) expect(timesOf(text, `word${at}`), `word${at}`).toBe(1);
      expect(provider.refusals).toEqual([]);
    });

    it("shows the answer that another server writes, and ends before the lease of that one, which is killed", async () => {
      provider.enqueue({ kind: "answer", content: words.repeat(20), eventDelayMs: 25 });
      const [answering, other] = [await start(), await start()];
      const first = await open(answering);
      await ask(first, "Tell me.");
      await first.getByText("word80 ").waitFor();
      const page = await context.newPage();
      await page.addInitScript(noteTurnText);
      await page.goto(other.url, { waitUntil: "commit" });
      await expectInFirstEvent(page, "word20 ");
      await page.getByText("word150 ").waitFor();
      await answering.stop("SIGKILL");
      // The lease of the turn runs for longer than this: the reader ends because the process is gone.
      await page.getByText("[cut off]").waitFor({ timeout: leaseMs / 2 });
      expect(timesOf(await textOf(page), "word150")).toBe(1);
      // The page of the server that was killed says so itself.
      await first.getByText("[failed]").waitFor();
    });

    it("lets a user decide after the server that asked was killed", async () => {
      provider.enqueue({ kind: "answer", content: [{ type: "tool-call", name: "refund", input: { order: "A7" } }] });
      const asking = await start();
      const page = await open(asking);
      await ask(page, "Pay it back.");
      await page.getByRole("button", { name: "Allow" }).waitFor();
      await asking.stop("SIGKILL");
      const next = await start();
      await page.goto(next.url);
      await page.getByRole("button", { name: "Allow" }).click();
      await page.getByText("Done.").waitFor();
      expect(JSON.stringify(provider.requests.at(-1)?.body)).toContain("Order A7 is paid back.");
      expect(await page.getByRole("button", { name: "Allow" }).count()).toBe(0);
    });

    it("lets a user decide after the process was killed while its question was open, and runs the call once", async () => {
      provider.enqueue({ kind: "answer", content: [{ type: "tool-call", name: "refund", input: { order: "A7" } }] });
      const server = await start();
      const page = await open(server);
      await expect.poll(async () => (await context.cookies()).length).toBe(1);
      const [cookie] = await context.cookies();
      const user = decodeURIComponent(cookie?.value ?? "").split(".")[0] ?? "";
      await killAtQuestion(folder, `agent:main:web:direct:${user}`, provider);
      await page.reload();
      await page.getByRole("button", { name: "Allow" }).click();
      await page.getByText("Done.").waitFor();
      const sent = JSON.stringify(provider.requests.at(-1)?.body);
      expect(sent.split("Order A7 is paid back.")).toHaveLength(2);
      expect(sent).not.toContain("may have run");
      expect(provider.requests).toHaveLength(2);
      await page.reload();
      await page.getByText("Done.").waitFor();
      expect(await page.getByRole("button", { name: "Allow" }).count()).toBe(0);
    });
  },
);
