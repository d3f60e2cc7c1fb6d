import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { costText } from "../src/usage/cost-text.ts";
import {
  chromiumPath,
  launch,
  type Opened,
  openPage,
  prompt,
  reply,
  skipReason,
  writeSession,
  writeUsualSessions,
  sessionPath,
} from "./browser.ts";

type Fields = Readonly<Record<string, unknown>>;
type Numbers = Readonly<Record<string, number>>;

const cli = fileURLToPath(new URL("../../cli/bin/throughline.js", import.meta.url));
const corpus = process.env["THROUGHLINE_CORPUS"] ?? "";
const transcripts = [
  "foreign/claude-code/toolpath-convo.jsonl",
  "foreign/codex/toolpath-convo.jsonl",
  "pi/before-compaction.jsonl",
].map((path) => join(corpus, path));

describe.skipIf(chromiumPath === undefined)(`the same numbers everywhere${skipReason}`, () => {
  let browser: Browser;
  let opened: Opened;
  let home = "";
  let listed: readonly Fields[] = [];

  beforeAll(async () => {
    browser = await launch();
    home = mkdtempSync(join(tmpdir(), "throughline-same-home-"));
    opened = await openPage(browser, async (store) => {
      await writeUsualSessions(store);
      await writeSession(store, "agent:main:priced", { title: "A priced session", cwd: "/home/ada/app" }, [
        prompt("What does it cost?"),
        reply([{ type: "text", text: "Little." }], {
          model: "claude-sonnet-4-5",
          provider: "anthropic",
          usage: { input: 1234, output: 567, cacheRead: 89_012, cacheWrite: 345 },
        }),
        prompt("And now?"),
        reply([{ type: "text", text: "A little more." }], {
          model: "claude-sonnet-4-5",
          provider: "anthropic",
          usage: { input: 2345, output: 678, cacheRead: 90_123, cacheWrite: 0 },
        }),
      ]);
    });
    const there = transcripts.filter((each) => corpus !== "" && existsSync(each));
    if (there.length > 0) await run("import", ...there);
    listed = kindOf(await run("sessions"), "session");
  }, 600_000);
  afterAll(async () => {
    await opened.close();
    await browser.close();
    rmSync(home, { recursive: true });
  });

  /** Runs the command line over the store of the page, beside this server; gives the objects that it prints. */
  async function run(...args: readonly string[]): Promise<readonly Fields[]> {
    const words = ["--conditions=@throughline/source", cli, ...args, "--json", "--store", `sqlite:${opened.store}`];
    const env = { PATH: process.env["PATH"], HOME: home, THROUGHLINE_HOME: join(home, ".throughline") };
    const { stdout } = await promisify(execFile)(process.execPath, words, { env, maxBuffer: 64 * 1024 * 1024 });
    return stdout.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line) as Fields]));
  }

  async function ask(path: string): Promise<Fields> {
    const response = await fetch(`${opened.server.url}/api/v1${path}`, {
      headers: { authorization: `Bearer ${opened.server.token}` },
    });
    expect([path, response.status]).toEqual([path, 200]);
    return (await response.json()) as Fields;
  }

  const pathOf = (key: unknown): string => `/sessions/${encodeURIComponent(String(key))}`;
  const addressOf = (key: unknown): string => sessionPath(String(key));
  const shown = (value: number | undefined): string => Number(value).toLocaleString("en-US");
  const kindOf = (rows: readonly Fields[], kind: string): readonly Fields[] =>
    rows.filter((row) => row["kind"] === kind);
  const totalsOf = async (): Promise<readonly string[]> => {
    await opened.page.locator(".totals dd").first().waitFor();
    return opened.page.locator(".totals dd").allInnerTexts();
  };
  const cellsOf = (total: Fields): readonly string[] => {
    const { costUsd, calls, input, cacheRead, cacheWrite, output } = total as Numbers;
    return [costText(costUsd ?? null), ...[calls, input, cacheRead, cacheWrite, output].map(shown)];
  };

  /** A sum of dollars depends on its order in the last digits. */
  const rounded = (sums: Fields): Fields => ({ ...sums, costUsd: Number(sums["costUsd"]).toFixed(9) });

  it(
    "counts the same messages and tokens of each session on the page, over HTTP and in the terminal",
    { timeout: 600_000 },
    async () => {
      expect(listed.length).toBeGreaterThanOrEqual(5);
      const { items } = await ask("/sessions?limit=100");
      expect((items as readonly Fields[]).map(({ key, messageCount }) => [key, messageCount])).toEqual(
        listed.map(({ key, messageCount }) => [key, messageCount]),
      );
      // Two sessions of the fixtures and, where there is a corpus, the imports. Each is one start of the command line.
      const own = ["agent:main:tides", "agent:main:priced"];
      const chosen = listed.filter(({ key, program }) => own.includes(String(key)) || program !== null);
      for (const { key, messageCount } of chosen) {
        const [context = {}] = kindOf(await run("context", String(key)), "context");
        const answer = await ask(`${pathOf(key)}/context`);
        expect([key, answer["gauge"], answer["breakdown"]]).toEqual([key, context["gauge"], context["breakdown"]]);
        const { tokens } = context["gauge"] as Numbers;
        const parts = Object.values(context["breakdown"] as Numbers);
        expect(parts.reduce((sum, part) => sum + part, 0)).toBe(tokens);
        await opened.go(`${addressOf(key)}?v=context`);
        const total = opened.page.locator(".context-total b");
        await total.waitFor();
        expect((await total.innerText()).replace(/^~/, "")).toBe(shown(tokens));
        const numbers = await opened.page.locator(".stack-names dd").allInnerTexts();
        expect(numbers.reduce((sum, text) => sum + Number(text.replaceAll(",", "")), 0)).toBe(tokens);
        expect(await opened.page.locator(".facts").innerText()).toContain(`${shown(Number(messageCount))} message`);
      }
    },
  );

  it("counts the same tokens and cost of each session and of all", { timeout: 600_000 }, async () => {
    const bySession = kindOf(await run("usage", "--by", "session"), "usage");
    expect(bySession.length).toBeGreaterThanOrEqual(1);
    for (const { kind: _kind, group, name: _name, ...sums } of bySession) {
      const key = (group as Fields)["session"];
      const { total } = await ask(`${pathOf(key)}/usage`);
      const comparable = Object.fromEntries(Object.keys(sums).map((name) => [name, (total as Fields)[name]]));
      expect([key, rounded(comparable)]).toEqual([key, rounded(sums)]);
      await opened.go(`${addressOf(key)}?v=usage`);
      expect([key, await totalsOf()]).toEqual([key, cellsOf(sums)]);
    }
    for (const by of ["model", "folder"]) {
      const rows = await run("usage", "--by", by);
      const [total = {}] = kindOf(rows, "usageTotal");
      const answer = await ask(`/usage?by=${by}`);
      const calls = (each: Fields): unknown => [each["group"], each["calls"], each["input"], each["costUsd"]];
      expect((answer["rows"] as readonly Fields[]).map(calls)).toEqual(kindOf(rows, "usage").map(calls));
      await opened.go(`usage?by=${by}`);
      expect([by, await totalsOf()]).toEqual([by, cellsOf(total)]);
    }
  });

  it("counts the same lines of changed files as its diffs show", { timeout: 600_000 }, async () => {
    const { page } = opened;
    let compared = 0;
    for (const { key, recordCount } of listed) {
      if (recordCount === 0) continue;
      const { items } = await ask(`${pathOf(key)}/changed-files`);
      for (const { path, ...counts } of (items as readonly Fields[]).slice(0, 3)) {
        const { added = 0, removed = 0, failed = 0 } = counts as Numbers;
        // The view shows a long list of changes in parts.
        if (failed > 0 || added + removed === 0 || added + removed > 40) continue;
        await opened.go(`${addressOf(key)}?v=files&path=${encodeURIComponent(String(path))}`);
        await page.locator(".files-changes .diff").first().waitFor();
        const text = await page.locator(".files-list a[aria-current]").innerText();
        const signs = [added > 0 ? `+${shown(added)}` : "", removed > 0 ? `−${shown(removed)}` : ""];
        for (const sign of signs) expect([key, path, text]).toEqual([key, path, expect.stringContaining(sign)]);
        const lines = [".add", ".cut"].map((each) => page.locator(`.files-changes .diff ${each}`).count());
        expect([key, path, await Promise.all(lines)]).toEqual([key, path, [added, removed]]);
        compared += 1;
      }
    }
    expect(compared).toBeGreaterThan(0);
  });
});
