import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import type { RecordDraft } from "@throughline/core";
import { createMemoryStore } from "@throughline/store-memory";
import { viewAttributes, viewTags } from "@throughline/transcript-view/internal";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { hostileTexts } from "./hostile-texts.ts";
import { pageRef, pageTexts, said } from "./page-texts.ts";

vi.setConfig({ testTimeout: 240_000, hookTimeout: 60_000 });

const places = [process.env["CHROMIUM"] ?? "", "/usr/bin/chromium", "/usr/bin/chromium-browser"];
const executablePath = places.find((path) => path !== "" && existsSync(path));

/** The frame of a file has these elements and attributes beside those of the tree. */
const frameTags =
  "html head meta title style body header h1 h2 dl dt dd p nav main section footer details summary b small time";
const frameAttributes = "lang charset http-equiv content name id aria-label open";
/** The parser adds a body to each table. */
const allowedTags = new Set([...viewTags, ...frameTags.split(" "), "tbody"]);
const allowedAttributes = new Set([...viewAttributes, ...frameAttributes.split(" ")]);

interface Opened {
  readonly page: Page;
  /** Holds dialogs, requests, reports of the policy and errors. */
  readonly happened: readonly string[];
}

describe.skipIf(executablePath === undefined)(
  `an exported page in a browser${executablePath === undefined ? " (no Chromium here: set CHROMIUM to its path)" : ""}`,
  () => {
    let browser: Browser;
    let folder = "";
    beforeAll(async () => {
      browser = await chromium.launch({ executablePath: executablePath ?? "", args: ["--no-sandbox"] });
    });
    afterAll(() => browser.close());
    beforeEach(() => {
      folder = mkdtempSync(join(tmpdir(), "throughline-export-"));
    });
    afterEach(() => rmSync(folder, { recursive: true, force: true }));

    async function open(html: string): Promise<Opened> {
      const path = join(folder, "page.html");
      writeFileSync(path, html);
      const page = await browser.newPage();
      const happened: string[] = [];
      page.on("dialog", (dialog) => {
        happened.push(`dialog ${dialog.message()}`);
        void dialog.dismiss();
      });
      page.on("request", (request) => {
        const url = request.url();
        if (url !== `file://${path}` && !url.startsWith("data:image/")) happened.push(`request ${url}`);
      });
      page.on("console", (message) => happened.push(`console ${message.text()}`));
      page.on("pageerror", (error) => happened.push(`error ${error.message}`));
      await page.goto(`file://${path}`);
      return { page, happened };
    }

    /** The script runs in the page, which the policy of the page does not bind. */
    const unknownIn = (page: Page): Promise<readonly string[]> =>
      page.evaluate<readonly string[]>(`(() => {
        const tags = ${JSON.stringify([...allowedTags])};
        const attributes = ${JSON.stringify([...allowedAttributes])};
        const found = new Set();
        for (const element of document.querySelectorAll("*")) {
          const tag = element.tagName.toLowerCase();
          if (!tags.includes(tag)) found.add(tag);
          for (const { name } of element.attributes) if (!attributes.includes(name)) found.add(tag + "[" + name + "]");
          const href = element.getAttribute("href");
          if (href !== null && !/^(https?:|mailto:|#|\\.\\/)/.test(href)) found.add(href);
        }
        return [...found];
      })()`);

    it("shows 300 hostile texts in every field as text: no element, no dialog, no request, no report", async () => {
      const store = createMemoryStore();
      const [first = ""] = hostileTexts;
      const entry = { sessionId: "s1", label: first, title: first, cwd: first, model: first, modelProvider: first };
      await store.save(pageRef, { ...entry, importedFrom: { format: first, path: first } }, { ifRevision: null });
      for (const [index, text] of hostileTexts.entries()) await store.append(pageRef, recordsWith(text, index));
      for (const level of ["full", "compact", "words"] as const) {
        const { texts } = await pageTexts(store, { to: "html", level, images: true, recordsPerFile: 100_000 });
        const { page, happened } = await open(texts[0] ?? "");
        expect(await unknownIn(page)).toEqual([]);
        // Rows that are not on the screen are laid out when a person scrolls to them or opens a fold.
        await page.evaluate(`for (const details of document.querySelectorAll("details")) details.open = true;
          window.scrollTo(0, document.body.scrollHeight);`);
        await page.mouse.move(300, 300);
        await page.waitForTimeout(500);
        expect(happened).toEqual([]);
        await page.close();
      }
    });

    it("shows the text itself, folds, and runs no script that somebody adds", async () => {
      const store = createMemoryStore();
      await store.save(pageRef, { sessionId: "s1" }, { ifRevision: null });
      await store.append(pageRef, [said("user", "<b>bold</b> & `x<y`"), ...recordsWith("plain", 1)]);
      const { texts } = await pageTexts(store, { to: "html", level: "full" });
      const { page, happened } = await open(texts[0] ?? "");
      expect(await page.locator("#c1 p").first().textContent()).toBe("<b>bold</b> & x<y");
      const fold = page.locator("details.tool").first();
      const wasOpen = (await fold.getAttribute("open")) !== null;
      await fold.locator("summary").click();
      expect((await fold.getAttribute("open")) !== null).toBe(!wasOpen);
      const border = `getComputedStyle(document.querySelector("#c1 .prompt")).borderLeftWidth`;
      expect(await page.evaluate<string>(border)).toBe("4px");
      expect(happened).toEqual([]);
      const injected = (texts[0] ?? "").replace(
        "</main>",
        "<script>alert(1)</script><img src=x onerror=alert(2)></main>",
      );
      const attacked = await open(injected);
      await attacked.page.waitForTimeout(300);
      expect(attacked.happened.filter((what) => what.startsWith("dialog"))).toEqual([]);
    });

    it("is three files of 12,000 records, and none of them holds up a reader", async () => {
      const store = createMemoryStore();
      await store.save(pageRef, { sessionId: "s1" }, { ifRevision: null });
      const records = Array.from({ length: 12_000 }, (_, at) =>
        said(at % 10 === 0 ? "user" : "assistant", `Text ${at}.`),
      );
      for (let at = 0; at < records.length; at += 1000) await store.append(pageRef, records.slice(at, at + 1000));
      const { texts, records: counts } = await pageTexts(store, { to: "html" });
      expect(counts).toEqual([5000, 5000, 2000]);
      const { page } = await open(texts[0] ?? "");
      await page.locator("#c500").scrollIntoViewIfNeeded();
      expect(await page.locator("#c500").isVisible()).toBe(true);
    });
  },
);

/** Returns records with the text in each field that a page shows. */
function recordsWith(text: string, index: number): readonly RecordDraft[] {
  const image = { type: "image", mimeType: text, data: text };
  const file = { type: "file", fileId: text, name: text, mimeType: text, sizeBytes: 1 };
  const call = (id: string, name: string, args: object): object => ({
    type: "toolCall",
    id: `${id}${index}`,
    name,
    arguments: args,
  });
  const details = { structuredPatch: [{ newStart: text, lines: [text, `-${text}`, `+${text}`] }] };
  return [
    said("user", [{ type: "text", text }, image, file, { type: text }]),
    {
      type: "message",
      message: {
        role: "assistant",
        model: text,
        content: [
          { type: "thinking", thinking: text },
          { type: "text", text },
          call("a", text, { [text]: text, path: text }),
          call("b", "edit", { path: text, oldText: text, newText: `${text}\n${text}` }),
          call("c", "write", { path: text, content: text }),
        ],
        stopReason: "error",
        errorMessage: text,
      },
    },
    {
      type: "message",
      message: {
        role: "toolResult",
        toolCallId: `a${index}`,
        toolName: text,
        content: [{ type: "text", text }, image, file],
      },
    },
    {
      type: "message",
      message: { role: "toolResult", toolCallId: `b${index}`, content: text, details, isError: true },
    },
    { type: "message", message: { role: "bashExecution", command: text, output: text, exitCode: 1 } },
    { type: "message", message: { role: "custom", customType: text, content: text } },
    { type: "custom_message", customType: text, content: text },
    { type: "model_change", provider: text, modelId: text },
    { type: "thinking_level_change", thinkingLevel: text },
    { type: "compaction", summary: text, firstKeptEntryId: text, tokensBefore: 1, details: { source: text } },
    { type: "branch_summary", fromId: text, summary: text },
    { type: "reset", reason: text },
  ];
}
