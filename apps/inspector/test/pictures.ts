import { copyFileSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { offline } from "@throughline/models/offline";
import { createSessions } from "@throughline/session";
import { createSqliteStore } from "@throughline/store-sqlite";
import type { Browser, Page } from "playwright-core";
import { buildInspector } from "../../../tools/build-inspector.ts";
import { launch, sessionPath } from "./browser.ts";
import { servePage } from "./page-server.ts";

/**
 * Writes the pictures of the documentation into `docs/images`:
 * `THROUGHLINE_CORPUS=FOLDER node --conditions=@throughline/source apps/inspector/test/pictures.ts`. Programs find their
 * transcripts by name, so the corpus is copied under the names that they give.
 */
const corpus = process.env["THROUGHLINE_CORPUS"] ?? "";
const images: string = fileURLToPath(new URL("../../../docs/images/", import.meta.url));
const cli: string = fileURLToPath(new URL("../../cli/bin/throughline.js", import.meta.url));
const mostBytes = 80_000;

const uuid = (at: number): string => `6b0c3f5e-9a41-4d7e-8c2a-${String(at).padStart(12, "0")}`;
const transcripts: readonly (readonly [from: string, to: string])[] = [
  ["foreign/claude-code/toolpath-convo.jsonl", `.claude/projects/-home-ada-tour/${uuid(1)}.jsonl`],
  ["foreign/claude-code/agtrace-session.jsonl", `.claude/projects/-home-ada-agent-sample/${uuid(2)}.jsonl`],
  ["foreign/claude-code/agentsview-valid-session.jsonl", `.claude/projects/-home-ada-app/${uuid(3)}.jsonl`],
  ["foreign/codex/toolpath-convo.jsonl", `.codex/sessions/2026/05/07/rollout-2026-05-07T18-27-42-${uuid(4)}.jsonl`],
  [
    "foreign/codex/agtrace-codex_session.jsonl",
    `.codex/sessions/2026/05/07/rollout-2026-05-07T18-30-00-${uuid(5)}.jsonl`,
  ],
  [
    "foreign/codex/agentsview-standard_session.jsonl",
    `.codex/sessions/2026/05/08/rollout-2026-05-08T09-00-00-${uuid(6)}.jsonl`,
  ],
  ["pi/large-session.jsonl", `.pi/agent/sessions/--home-ada-pi-mono--/2025-11-20T23-33-50-805Z_${uuid(7)}.jsonl`],
  ["pi/before-compaction.jsonl", `.pi/agent/sessions/--home-ada-pi-mono--/2025-12-09T00-53-29-825Z_${uuid(8)}.jsonl`],
];

interface Picture {
  readonly name: string;
  readonly path: string;
  readonly sign: string;
  readonly theme: "light" | "dark";
  readonly width?: number;
  readonly act?: (page: Page) => Promise<void>;
}

/** Gives the address of the session of a program with the most messages. */
type Find = (name: string) => string;

function pictures(find: Find, own: string): readonly Picture[] {
  return [
    { name: "page-home", path: "", sign: "a.line", theme: "light" },
    { name: "page-home-dark", path: "", sign: "a.line", theme: "dark" },
    { name: "page-home-narrow", path: "", sign: "a.line", theme: "light", width: 390 },
    { name: "page-search", path: "search?q=compaction", sign: ".hit", theme: "light" },
    { name: "page-transcript", path: `${find("pi")}?q=compaction&at=193`, sign: ".axis canvas", theme: "light" },
    { name: "page-transcript-dark", path: `${find("codex")}`, sign: ".axis canvas", theme: "dark" },
    { name: "page-transcript-narrow", path: `${find("claude")}`, sign: ".axis canvas", theme: "dark", width: 390 },
    {
      name: "page-resume",
      path: `${find("claude")}`,
      sign: ".axis canvas",
      theme: "light",
      act: (page) => page.keyboard.press("r"),
    },
    {
      name: "page-files",
      path: `${find("pi")}?v=files`,
      sign: ".files-list a",
      theme: "light",
      act: async (page) => {
        await page.locator(".files-list a", { hasText: "agent-session.ts" }).first().click();
        await page.locator(".files .diff").first().waitFor();
        await page
          .locator(".change")
          .nth(3)
          .evaluate((element) => element.scrollIntoView());
      },
    },
    { name: "page-usage", path: "usage", sign: ".totals", theme: "dark" },
    { name: "page-context", path: `${find("pi")}?v=context`, sign: ".stack", theme: "light" },
    {
      name: "page-diff",
      path: `${own}?v=diff`,
      sign: ".compared",
      theme: "light",
    },
  ];
}

async function take(browser: Browser, url: string, token: string, picture: Picture): Promise<void> {
  const { name, path, sign, theme, width = 1280, act } = picture;
  const height = width === 390 ? 780 : 800;
  const page = await browser.newPage({ viewport: { width, height }, colorScheme: theme });
  await page.goto(`${url}/inspect/${path}#token=${token}`);
  await page.locator(sign).first().waitFor({ timeout: 120_000 });
  await act?.(page);
  await page.waitForTimeout(1500);
  const session = await page.context().newCDPSession(page);
  // WebP with these settings is a third of a PNG, and letters stay sharp.
  const { data } = await session.send("Page.captureScreenshot", { format: "webp", quality: 70 });
  const file = join(images, `${name}.webp`);
  writeFileSync(file, Buffer.from(data, "base64"));
  const { size } = statSync(file);
  process.stdout.write(`${name}  ${size} bytes\n`);
  if (size > mostBytes) throw new RangeError(`${name} has ${size} bytes, more than ${mostBytes}.`);
  await page.close();
}

async function writeOwn(path: string): Promise<void> {
  const store = await createSqliteStore({ path });
  const sessions = createSessions({
    store,
    model: offline({ windowTokens: 200_000 }),
    system: "You help in the harbor.",
  });
  const session = await sessions.open("agent:main:harbor");
  for (const text of ["Read the tides of November.", "Which days are good for sailing?", "Write them to a table."])
    await session.runTurn(text);
  await sessions.close();
  await store.close();
}

async function main(): Promise<void> {
  if (corpus === "") throw new Error("THROUGHLINE_CORPUS names no folder with transcripts.");
  const home = mkdtempSync(join(tmpdir(), "throughline-pictures-"));
  for (const [from, to] of transcripts) {
    mkdirSync(dirname(join(home, to)), { recursive: true });
    copyFileSync(join(corpus, from), join(home, to));
  }
  const env = { ...process.env, HOME: home, THROUGHLINE_HOME: join(home, ".throughline"), NO_COLOR: "1" };
  const folders = [".claude", ".codex", ".pi"].map((name) => join(home, name));
  const done = spawnSync(process.execPath, ["--conditions=@throughline/source", cli, "import", ...folders], {
    env,
    encoding: "utf8",
  });
  if (done.status !== 0) throw new Error(done.stdout + done.stderr);
  const path = join(home, ".throughline", "sessions.db");
  await writeOwn(path);
  const page = join(home, "page");
  await buildInspector(page);
  const server = await servePage(page, path);
  const browser = await launch();
  const find = await finder(server.url, server.token);
  const own = sessionPath("agent:main:harbor");
  const only = process.argv.slice(2);
  for (const picture of pictures(find, own))
    if (only.length === 0 || only.includes(picture.name)) await take(browser, server.url, server.token, picture);
  await browser.close();
  await server.close();
  rmSync(home, { recursive: true, force: true });
}

interface Listed {
  readonly key: string;
  readonly program: string | null;
  readonly messageCount: number;
}

async function finder(url: string, token: string): Promise<Find> {
  const response = await fetch(`${url}/api/v1/sessions?limit=100`, { headers: { authorization: `Bearer ${token}` } });
  const { items } = (await response.json()) as { readonly items: readonly Listed[] };
  return (name) => {
    const longest = items
      .filter(({ program }) => (program ?? "own").startsWith(name))
      .toSorted((a, b) => b.messageCount - a.messageCount)[0];
    if (longest === undefined) throw new Error(`The store has no session of ${name}.`);
    return sessionPath(longest.key);
  };
}

await main();
