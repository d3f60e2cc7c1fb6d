import { chmodSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { createSqliteStore } from "@throughline/store-sqlite";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { testSize } from "../../../tools/test-size.ts";
import { chromiumPath, launch, prompt, reply, result, skipReason, writeSession, sessionPath } from "./browser.ts";
import { install, type Installed } from "./installed.ts";
import { writeLongSession } from "./long-session.ts";

type Fields = Readonly<Record<string, unknown>>;

const own = "agent:main:harbor";
const long = "agent:main:long";
const targets = ["claude-code", "codex", "gemini", "pi", "openclaw"] as const;
const names = { "claude-code": "Claude Code", codex: "Codex", gemini: "Gemini CLI", pi: "pi", openclaw: "OpenClaw" };
const holdMs = testSize({ short: 3000, long: 60_000 });
const timeout = testSize({ short: 300_000, long: 900_000 });

const addressOf = (url: string, key: string): string => `${new URL(url).origin}/inspect/${sessionPath(key)}`;
const objects = (text: string): readonly Fields[] =>
  text.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line) as Fields]));

describe.skipIf(chromiumPath === undefined)(`the page of the installed command line${skipReason}`, () => {
  let browser: Browser;
  let installed: Installed;
  let work = "";
  /** Has the session that is handed off; the store of the home has what the programs then hold. */
  let first = "";

  beforeAll(async () => {
    browser = await launch();
    installed = await install();
    work = join(installed.home, "my work");
    mkdirSync(work);
    first = join(installed.home, "first.db");
    for (const path of [first, join(installed.home, ".throughline/sessions.db")]) {
      mkdirSync(join(path, ".."), { recursive: true });
      const store = createSqliteStore({ path });
      if (path === first) await writeSession(store, own, { title: "Sound the harbor", cwd: work }, records);
      else await writeLongSession(store, long, 3000);
      await store.close();
    }
  }, timeout);
  afterAll(async () => {
    await installed.remove();
    await browser.close();
  });

  /** Opens an address that was printed, and notes every answer that is refused for its rate. */
  async function openPrinted(url: string): Promise<{ readonly page: Page; readonly refused: string[] }> {
    const page = await browser.newPage();
    const refused: string[] = [];
    page.on("response", (response) => void (response.status() === 429 && refused.push(response.url())));
    await page.goto(url);
    await page.locator("a.line, article").first().waitFor();
    return { page, refused };
  }

  it("offers the command of each program, names what is missing, and what a hand-off loses", { timeout }, async () => {
    const { run, programs } = installed;
    const fromFirst = ["--store", `sqlite:${first}`];
    const losses = new Map<string, readonly string[]>();
    const paths = new Map<string, string>();
    for (const to of targets) {
      const { stdout, stderr } = await run(["handoff", own, "--to", to, "--json", ...fromFirst]);
      paths.set(to, String(objects(stdout).at(-1)?.["path"]));
      // With `--json`, each note is a line of JSON too.
      losses.set(
        to,
        objects(stderr).flatMap(({ message }) => lossOf(String(message))),
      );
    }
    expect((await run(["import", ...paths.values()])).code).toBe(0);
    const listed = objects((await run(["sessions", "--json"])).stdout);
    for (const name of ["claude", "codex", "gemini"]) {
      writeFileSync(join(programs, name), "#!/bin/sh\n");
      chmodSync(join(programs, name), 0o755);
    }
    const ui = await installed.start(["ui", "--no-open", "--no-sync"]);
    const { page } = await openPrinted(ui.line);
    const resumed = async (program: string): Promise<readonly string[]> => {
      const key = String(listed.find((row) => row["program"] === program)?.["key"]);
      await page.goto(addressOf(ui.line, key));
      await page.getByRole("button", { name: "Resume" }).click();
      await page
        .locator(".hand-off")
        .nth(targets.length - 1)
        .waitFor();
      const commands = await page.locator(".panel .shell code").allInnerTexts();
      const asked = await run(["resume", key, "--json"]);
      const stated = asked.code === 0 ? [String(objects(asked.stdout)[0]?.["command"])] : [];
      const isOwn = commands.length > 1;
      if (asked.code === 0) expect([program, commands[0]]).toEqual([program, stated[0]]);
      expect([program, isOwn]).toEqual([program, program !== "openclaw"]);
      expect(commands.at(-1)).toBe(`throughline chat --key=${key}`);
      expect((await page.locator(".hand-off").allInnerTexts()).map((text) => text.trim())).toEqual(
        targets.map((to) => names[to]),
      );
      return page.locator(".panel .warning-text").allInnerTexts();
    };
    expect(await resumed("claude-code")).toEqual([]);
    expect(await resumed("codex")).toEqual([]);
    expect(await resumed("gemini")).toEqual([]);
    expect(await resumed("pi")).toEqual(["pi is not installed here, or not on the path."]);
    expect(await resumed("openclaw")).toEqual([]);
    rmSync(String(paths.get("claude-code")));
    rmSync(join(programs, "claude"));
    rmSync(work, { recursive: true });
    expect(await resumed("claude-code")).toEqual([
      "The file of Claude Code is not there any more.",
      `Its folder ${work} is not there any more.`,
      "Claude Code is not installed here, or not on the path.",
    ]);
    await ui.end();
    const other = await installed.start(["ui", "--no-open", "--no-sync", ...fromFirst]);
    const second = await openPrinted(other.line);
    await second.page.goto(addressOf(other.line, own));
    await second.page.getByRole("button", { name: "Resume" }).click();
    for (const to of targets) {
      const part = second.page.locator(".hand-off").filter({ hasText: names[to] });
      await part.getByRole("button", { name: names[to], exact: true }).click();
      await part.locator(".losses, p").first().waitFor();
      await expect.poll(() => part.innerText()).not.toContain("Looking for");
      expect([to, (await part.locator(".losses li").allInnerTexts()).toSorted()]).toEqual([
        to,
        losses.get(to)?.toSorted(),
      ]);
    }
    expect([...losses.values()].flat().length).toBeGreaterThan(4);
    await other.end();
  });

  it(
    "reads a store beside, and changes nothing in it, while somebody walks through a session",
    { timeout },
    async () => {
      const before = contents(join(installed.home, ".throughline/sessions.db"));
      const ui = await installed.start(["ui", long, "--no-open", "--no-sync"]);
      const { page, refused } = await openPrinted(ui.line);
      await holdKey(page);
      for (const path of ["", "search?q=tide", "usage"]) {
        await page.goto(`${new URL(ui.line).origin}/inspect/${path}`);
        await page.locator("a.line, .hit, .totals, .state").first().waitFor();
      }
      expect(refused).toEqual([]);
      expect(await ui.end()).toBe(0);
      expect(contents(join(installed.home, ".throughline/sessions.db"))).toBe(before);
    },
  );

  it("opens on a running server with a token of its own, and with one that only reads", { timeout }, async () => {
    const server = await installed.start(["serve", "--port", "0", "--json"]);
    const { url } = JSON.parse(server.line) as { readonly url: string };
    const made = await installed.run(["token", "create", "reader", "--scopes", "read"]);
    const printed = [
      await installed.run(["ui", long, "--no-open"]),
      await installed.run(["ui", long, "--no-open", "--store", url], {
        THROUGHLINE_HOME: join(installed.home, "away"),
        THROUGHLINE_TOKEN: made.stdout.trim(),
      }),
    ];
    for (const { stdout, stderr } of printed) {
      expect([new URL(stdout.trim()).origin, stderr]).toEqual([url, expect.any(String)]);
      const { page, refused } = await openPrinted(stdout.trim());
      await holdKey(page);
      expect(refused).toEqual([]);
      await page.close();
    }
    expect(server.child.exitCode).toBeNull();
  });
});

/** Holds `j`, which a keyboard repeats about 30 times a second, and expects that the reader gets on. */
async function holdKey(page: Page): Promise<void> {
  await page.locator("article .prose").first().waitFor();
  const seq = (): Promise<number> =>
    page.evaluate(() => Number(document.activeElement?.closest<HTMLElement>("[data-seq]")?.dataset["seq"] ?? 0));
  const endMs = Date.now() + holdMs;
  while (Date.now() < endMs) {
    await page.keyboard.down("j");
    await page.waitForTimeout(33);
  }
  await page.keyboard.up("j");
  await expect.poll(seq).toBeGreaterThan(10);
}

/** Returns every record and entry that is stored. Derived tables are left out. */
function contents(path: string): string {
  using database = new DatabaseSync(path, { readOnly: true });
  const tables = ["store_sessions", "store_entries", "store_records", "store_partials", "store_files"];
  return JSON.stringify(tables.map((name) => database.prepare(`SELECT * FROM ${name}`).all()));
}

/** Returns how the page words a loss that the command states; nothing for another note. */
function lossOf(message: string): readonly string[] {
  const [, what = "", kind = "", records = ""] = /^([\w-]+): (.+) (\(\d+ records?\))$/.exec(message) ?? [];
  return records === "" ? [] : [`${kind}: ${what.replace("-", " ")} ${records}`];
}

const records: readonly Fields[] = [
  prompt("Sound the harbor."),
  { type: "message", message: { role: "user", content: [{ type: "hologram", depth: 3 }] } },
  reply([
    { type: "thinking", thinking: "The lead first." },
    { type: "text", text: "I sound it." },
    { type: "toolCall", id: "s1", name: "read", arguments: { path: "depths.csv" } },
  ]),
  result("s1", "read", "4 m"),
  { type: "note", text: "beside" },
  { type: "compaction", summary: "It is deep enough.", tokensBefore: 9000, tokensAfter: 400 },
  prompt("And the channel?"),
  reply([{ type: "text", text: "It is 6 m." }]),
];
