import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { anthropic } from "@throughline/models/anthropic";
import { offline } from "@throughline/models/offline";
import { createSessions } from "@throughline/session";
import { createProviderSimulator } from "@throughline/testing";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { CallJson } from "../src/json.ts";
import {
  chromiumPath,
  launch,
  openPage,
  prompt,
  reply,
  skipReason,
  writeCalls,
  writeSession,
  sessionPath,
} from "./browser.ts";
import { fullKey, writeFullSession } from "./full-session.ts";

const isReply = ({ message }: { readonly [field: string]: unknown }): boolean =>
  (message as { readonly role?: unknown } | undefined)?.role === "assistant";

describe.skipIf(chromiumPath === undefined)(`calls, maps and lines of a session${skipReason}`, () => {
  let browser: Browser;

  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser.close());

  it("lists calls, shows what one sent, and compares it with the one before", async () => {
    const opened = await openPage(browser, writeCalls);
    const { page } = opened;
    const session = sessionPath("agent:main:calls");
    await opened.go(session);
    await page.getByRole("link", { name: "Calls" }).click();
    await page.locator(".wide-table tbody tr").nth(1).waitFor();
    await page.locator(".wide-table tbody a").first().click();
    await page.locator(".sent > li").nth(2).waitFor();
    // The second call sent what the first sent, the answer, and the new prompt.
    expect(await page.locator(".sent > li summary b").allInnerTexts()).toEqual(["user", "assistant", "user"]);
    expect(await page.locator(".call-head").innerText()).toContain("offline/offline-rules · answered");
    await page.getByRole("link", { name: "Diff to the call before" }).click();
    await page.locator(".compared-part").first().waitFor();
    const signs = await page.locator(".compared-part > p code").allInnerTexts();
    expect(signs).toEqual(["=", "+", "+"]);
    expect(await page.locator(".view-page").innerText()).toContain("System prompt: the same");
    expect(await page.locator(".view-page").innerText()).not.toContain("cache breaks here");
    expect(opened.reports).toEqual({ errors: [], foreignRequests: [], dialogs: [], violations: [] });
    await opened.close();
  });

  it("marks the first difference of two calls where the cache of the provider missed", async () => {
    await using provider = createProviderSimulator({ minimumCacheTokens: 1, fallback: () => "The tide is high. " });
    await provider.start();
    const opened = await openPage(browser, async (store) => {
      const model = anthropic("claude-opus-5", { apiKey: "any", baseUrl: provider.url });
      const say = async (system: string, texts: readonly string[], isFromFirst = false): Promise<void> => {
        const sessions = createSessions({ store, model, system });
        const session = await sessions.open("agent:main:cache");
        const pages = isFromFirst ? await Array.fromAsync(store.read(session.ref)) : [];
        const first = pages.flatMap(({ records }) => records).find(({ record }) => isReply(record));
        if (first !== undefined) await session.rewind(first.id);
        for (const text of texts) await session.runTurn(`${text} `.repeat(40));
        await sessions.close();
      };
      await say("You help.", ["Read the tides", "And the lighthouse", "And the fog"]);
      await say("You help.", ["And the harbor"], true);
      await say("You help, and briefly.", ["And the quay"]);
    });
    const { page, server } = opened;
    const session = "/api/v1/sessions/agent:main:cache/calls";
    const answer = await fetch(server.url + session, { headers: { authorization: `Bearer ${server.token}` } });
    const { items: calls } = (await answer.json()) as { readonly items: readonly CallJson[] };
    const promptOf = (at: number): number => {
      const { input = 0, cacheRead = 0, cacheWrite = 0 } = calls[at]?.actual ?? {};
      return input + cacheRead + cacheWrite;
    };
    const breakOf = async (at: number): Promise<string> => {
      const [a, b] = [calls[at - 1]?.callId, calls[at]?.callId];
      await opened.go(`${sessionPath("agent:main:cache")}?v=diff&a=${a}&b=${b}`);
      await page.locator(".compared-part").first().waitFor();
      const marks = page.locator(":is(li, p):has(> .badge.warning)");
      expect(await marks.count()).toBeLessThan(2);
      return (await marks.count()) === 0 ? "" : (await marks.innerText()).replaceAll(/\s+/g, " ");
    };
    expect(calls.length).toBe(5);
    // Messages are only added: the provider reads what it kept after the call before.
    expect([await breakOf(2), calls[2]?.actual?.cacheRead]).toEqual(["", promptOf(1)]);
    // The third message differs, and the last prefix that was kept before it is the prompt of the first call.
    expect([await breakOf(3), calls[3]?.actual?.cacheRead]).toEqual([
      "~ Message 3: changed cache breaks here",
      promptOf(0),
    ]);
    expect([await breakOf(4), calls[4]?.actual?.cacheRead]).toEqual(["System prompt: changed cache breaks here", 0]);
    expect(opened.reports).toEqual({ errors: [], foreignRequests: [], dialogs: [], violations: [] });
    await opened.close();
  });

  it("lists what the next request holds and leaves out, and cuts what a browser could not lay out", async () => {
    const long = "The boats swing round to face the sea. ".repeat(8000);
    const opened = await openPage(browser, (store) =>
      writeSession(store, "agent:main:long", {}, [
        prompt("Read the tides"),
        reply([{ type: "text", text: "They are high." }], { usage: { input: 900, output: 30, cacheRead: 0 } }),
        { ...prompt("And the fog?"), id: "kept" },
        {
          type: "compaction",
          summary: "The tides are high.",
          firstKeptEntryId: "kept",
          tokensBefore: 900,
          tokensAfter: 90,
        },
        prompt(long),
        reply([{ type: "toolCall", id: "w1", name: "write", arguments: { path: "/sea.txt", content: long } }], {
          usage: { input: 90_000, output: 40_000, cacheRead: 0 },
        }),
      ]),
    );
    const { page } = opened;
    await opened.go(`${sessionPath("agent:main:long")}?v=context`);
    const lists = page.locator(".context-lists > section");
    await lists.nth(1).locator("li").nth(3).waitFor();
    expect(await lists.nth(0).innerText()).toMatch(/Left out\s+In a summary\s+#1 to #2/);
    expect(await lists.nth(1).locator("summary b").allInnerTexts()).toEqual([
      "compactionSummary",
      "user",
      "user",
      "assistant",
    ]);
    const large = lists.nth(1).locator("li").nth(2);
    expect(await large.locator("pre").count()).toBe(0);
    await large.locator("summary b").click();
    await large.locator("pre").waitFor();
    expect((await large.locator("pre").innerText()).length).toBeLessThan(100_001);
    expect(await large.innerText()).toContain("more are not shown here");
    await opened.go(`${sessionPath("agent:main:long")}?v=files&path=${encodeURIComponent("/sea.txt")}`);
    await page.getByText("more in this line").waitFor();
    expect((await page.locator(".files-changes").innerText()).length).toBeLessThan(4000);
    await opened.go(`${sessionPath("agent:main:long")}?v=usage`);
    const curve = page.getByRole("img", { name: /^Context after each prompt: at most 130,000, at last 130,000/ });
    await curve.waitFor();
    expect(opened.reports).toEqual({ errors: [], foreignRequests: [], dialogs: [], violations: [] });
    await opened.close();
  });

  it("states the parts and the time of a call, and copies it as a command without a key", async () => {
    const hostile = "It's $(touch tide) `x`\nEND_OF_BODY\n";
    const opened = await openPage(browser, async (store) => {
      const model = offline({ windowTokens: 200_000 });
      const sessions = createSessions({ store, model, system: "You help." });
      const session = await sessions.open("agent:main:calls");
      await session.runTurn(hostile);
      await sessions.close();
    });
    const { page } = opened;
    await opened.go(`${sessionPath("agent:main:calls")}?v=calls`);
    await page.locator(".wide-table tbody a").first().click();
    const parts = await page.locator(".stack-names dd").allInnerTexts();
    const head = await page.locator(".call-head").innerText();
    const [, sent] = /~?([\d,]+) tokens/.exec(head) ?? [];
    const numbers = [...parts, sent ?? ""].map((text) => Number(text.replaceAll(",", "")));
    expect(numbers.slice(0, -1).reduce((sum, part) => sum + part, 0)).toBe(numbers.at(-1));
    expect(numbers.at(-1)).toBeGreaterThan(0);
    expect(head).toMatch(/ · [\d.]+ m?s · /);
    await page.getByRole("button", { name: "Copy as curl" }).click();
    await page.getByText("Copied").waitFor({ state: "attached" });
    // The policy of the page does not let it read the clipboard.
    const other = await opened.context.newPage();
    await other.goto(`${opened.server.url}/healthz`);
    const command = await other.evaluate(() => navigator.clipboard.readText());
    await other.close();
    // The provider is not one of those whose address is known, so no key goes to them.
    expect(command).toContain('curl "$BASE_URL"/v1/messages');
    const shell = `curl() { printf '%s|' "$@" >&2; cat; }\n${command}`;
    const folder = mkdtempSync(join(tmpdir(), "throughline-curl-"));
    const { stdout, stderr } = spawnSync("bash", ["-uc", shell], {
      cwd: folder,
      encoding: "utf8",
      env: { BASE_URL: "http://127.0.0.1:9", API_KEY: "key" },
    });
    const { messages } = JSON.parse(stdout) as { readonly messages: readonly object[] };
    expect(messages).toEqual([{ role: "user", content: [{ type: "text", text: hostile }] }]);
    expect(readdirSync(folder)).toEqual([]);
    expect(stderr).toContain("http://127.0.0.1:9/v1/messages|-H|content-type: application/json|-H|x-api-key: key|");
    rmSync(folder, { recursive: true });
    expect(opened.reports).toEqual({ errors: [], foreignRequests: [], dialogs: [], violations: [] });
    await opened.close();
  });

  it("says of an import in one sentence why it has no calls, and shows no tab for them", async () => {
    const opened = await openPage(browser, (store) =>
      writeSession(store, "agent:main:import", { importedFrom: { format: "claude-code", path: "/x.jsonl" } }, [
        { type: "message", message: { role: "user", content: "Read the tides" } },
      ]),
    );
    const { page } = opened;
    for (const view of ["calls", "diff"]) {
      await opened.go(`${sessionPath("agent:main:import")}?v=${view}`);
      await page.getByText("Claude Code does not record what it sent to the model.").waitFor();
    }
    expect(await page.locator(".tabs a").allInnerTexts()).toEqual(["Transcript", "Files", "Usage", "Context"]);
    await opened.close();
  });

  it("goes to each prompt by the keys of the time axis, and shows lines as they are kept", async () => {
    const opened = await openPage(browser, writeFullSession);
    const { page } = opened;
    await opened.go(sessionPath(fullKey));
    const axis = page.getByRole("slider", { name: /^Time axis/ });
    await axis.focus();
    await page.keyboard.press("End");
    await page.locator('article[data-seq="9"]:focus').waitFor();
    const map = page.getByRole("slider", { name: "Map of the session" });
    expect(await map.getAttribute("aria-valuetext")).toMatch(/^Record \d+ of 12$/);
    await opened.go(`${sessionPath(fullKey)}?v=raw`);
    const line = page.locator(".raw li").nth(7);
    await line.locator("summary b").click();
    expect(await line.innerText()).toMatch(/#8\s+compaction .* crc [0-9a-f]{8}/);
    expect(await line.locator("pre").innerText()).toContain('"tokensBefore":180112');
    await opened.close();
  });
});
