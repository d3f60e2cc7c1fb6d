import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import type { SessionStore } from "@throughline/core";
import { offline } from "@throughline/models/offline";
import { createSessions } from "@throughline/session";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { buildInspector } from "../../../tools/build-inspector.ts";
import { type PageServer, servePage } from "./page-server.ts";

const places = [process.env["THROUGHLINE_CHROMIUM"] ?? "", "/usr/bin/chromium", "/usr/bin/chromium-browser"];
export const chromiumPath: string | undefined = places.find((path) => path !== "" && existsSync(path));
/** Says behind the name of a suite why it is skipped. */
export const skipReason: string =
  chromiumPath === undefined ? " (no Chromium here: set THROUGHLINE_CHROMIUM to its path)" : "";

let built: Promise<string> | null = null;

/** Builds the page once for all suites of a worker, and gives its folder. */
export function builtPage(): Promise<string> {
  built ??= (async () => {
    const folder = mkdtempSync(join(tmpdir(), "throughline-page-"));
    process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
    await buildInspector(folder);
    return folder;
  })();
  return built;
}

/** What must not happen on any page, with the reports that arrived. */
export interface Reports {
  readonly errors: string[];
  readonly foreignRequests: string[];
  readonly dialogs: string[];
  readonly violations: string[];
}

export interface Opened {
  readonly server: PageServer;
  readonly context: BrowserContext;
  readonly page: Page;
  readonly reports: Reports;
  /** Is the database that the server reads. */
  readonly store: string;
  /** Opens an address below `/inspect/`. */
  go(path: string): Promise<void>;
  close(): Promise<void>;
}

export interface OpenOptions {
  readonly width?: number;
  readonly height?: number;
  readonly theme?: "light" | "dark";
}

/** Serves a store that `fill` wrote, and opens a browser on the page with the token in the fragment. */
export async function openPage(
  browser: Browser,
  fill: (store: SessionStore) => Promise<void>,
  { width = 1280, height = 800, theme = "light" }: OpenOptions = {},
): Promise<Opened> {
  const folder = mkdtempSync(join(tmpdir(), "throughline-page-store-"));
  const store = join(folder, "sessions.db");
  const server = await servePage(await builtPage(), store);
  await fill(server.store);
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme });
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const page = await context.newPage();
  const reports = reportsOf(page, server.url);
  await page.goto(`${server.url}/inspect/#token=${server.token}`);
  await page.locator("h1").first().waitFor();
  return {
    server,
    context,
    page,
    reports,
    store,
    go: async (path) => void (await page.goto(`${server.url}/inspect/${path}`)),
    close: async () => {
      await context.close();
      await server.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function reportsOf(page: Page, url: string): Reports {
  const reports: Reports = { errors: [], foreignRequests: [], dialogs: [], violations: [] };
  page.on("pageerror", (error) => reports.errors.push(error.message));
  page.on("console", (message) => {
    const text = message.text();
    if (/content security policy|trusted type/i.test(text)) reports.violations.push(text);
  });
  page.on("dialog", (dialog) => {
    reports.dialogs.push(dialog.message());
    void dialog.dismiss();
  });
  page.on("request", (request) => {
    const address = request.url();
    if (!address.startsWith(url) && !address.startsWith("blob:")) reports.foreignRequests.push(address);
  });
  return reports;
}

export function launch(): Promise<Browser> {
  return chromium.launch({ executablePath: chromiumPath ?? "", args: ["--no-sandbox"] });
}

/** Returns the path of a session below that of the page. */
export function sessionPath(key: string): string {
  return `s/~${Buffer.from(key).toString("base64url")}`;
}

/** Writes a session from its messages. */
export async function writeSession(
  store: SessionStore,
  key: string,
  entry: Readonly<Record<string, unknown>>,
  records: readonly Readonly<Record<string, unknown>>[],
): Promise<void> {
  const ref = { namespace: "", agentId: "main", key };
  await store.save(ref, { sessionId: key.replaceAll(/[^a-zA-Z0-9]/g, "-"), ...entry }, { ifRevision: null });
  // The store takes records of programs with any fields.
  if (records.length > 0) await store.append(ref, records as Parameters<SessionStore["append"]>[1]);
}

export function prompt(text: string): Readonly<Record<string, unknown>> {
  return { type: "message", message: { role: "user", content: text } };
}

export function reply(content: readonly unknown[], more: object = {}): Readonly<Record<string, unknown>> {
  return { type: "message", message: { role: "assistant", model: "model-large-5", content, ...more } };
}

export function result(
  toolCallId: string,
  toolName: string,
  text: string,
  isError = false,
): Readonly<Record<string, unknown>> {
  const content = [{ type: "text", text }];
  return { type: "message", message: { role: "toolResult", toolCallId, toolName, isError, content } };
}

/** Ends in a later millisecond than all sessions state. Those that were changed in the same one are listed by their keys. */
async function nextMillisecond(store: SessionStore): Promise<void> {
  const { sessions } = await store.list({ namespace: "", agentId: "main" });
  const newestMs = Math.max(...sessions.map(({ updatedAtMs }) => updatedAtMs));
  while (Date.now() <= newestMs) await new Promise((resolve) => setImmediate(resolve));
}

/** Writes sessions as people have them: prompts, calls, an edit, a failure, a compaction, and words to find. */
export async function writeUsualSessions(store: SessionStore): Promise<void> {
  await writeSession(store, "agent:main:tides", { title: "Read the tides of November", cwd: "/home/ada/harbor" }, [
    prompt("Read the tides of November, please."),
    reply([
      { type: "thinking", thinking: "The table is in tides.csv." },
      { type: "text", text: "I read the **table** first." },
      { type: "toolCall", id: "t1", name: "read", arguments: { path: "/home/ada/harbor/tides.csv" } },
    ]),
    result("t1", "read", Array.from({ length: 60 }, (_, day) => `2026-11-${day} 0${day % 10}:12 high`).join("\n")),
    reply([
      { type: "text", text: "Now I correct the zone." },
      {
        type: "toolCall",
        id: "t2",
        name: "edit",
        arguments: {
          path: "/home/ada/harbor/zone.ts",
          old_string: "const zone = 1;\n",
          new_string: "const zone = 2;\n",
        },
      },
    ]),
    result("t2", "edit", "ok"),
    { type: "compaction", summary: "The tides were read.", tokensBefore: 180_112, tokensAfter: 41_020 },
    prompt("And the lighthouse?"),
    reply([{ type: "toolCall", id: "t3", name: "bash", arguments: { command: "cat lighthouse.txt" } }]),
    result("t3", "bash", "cat: lighthouse.txt: No such file or directory", true),
    reply([{ type: "text", text: "There is no lighthouse here.\n\n| day | height |\n| --- | ---: |\n| 1 | 4.2 |" }]),
  ]);
  await nextMillisecond(store);
  await writeSession(store, "agent:main:login", { title: "Fix the login bug", cwd: "/home/ada/app" }, [
    prompt("Fix the login bug in login.ts"),
    reply([{ type: "text", text: "The login bug was in the session cookie." }]),
  ]);
  await nextMillisecond(store);
  await writeSession(store, "agent:main:deploy", { title: "Deploy scripts", cwd: "/home/ada/ops" }, [
    prompt("Write the deploy script"),
    reply([{ type: "text", text: "The tides have nothing to do with it, but the login bug came back." }]),
  ]);
  await nextMillisecond(store);
  await writeSession(store, "agent:main:empty", { title: "An empty session" }, []);
}

/** Writes a session with two turns of a model, whose calls are recorded. */
export async function writeCalls(store: SessionStore): Promise<void> {
  const sessions = createSessions({ store, model: offline({ windowTokens: 200_000 }), system: "You help." });
  const session = await sessions.open("agent:main:calls");
  await session.runTurn("Read the tides");
  await session.runTurn("And the lighthouse?");
  await sessions.close();
}
