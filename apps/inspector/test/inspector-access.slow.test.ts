import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer, type Server } from "@throughline/server";
import type { SessionStore } from "@throughline/core";
import { createSqliteStore } from "@throughline/store-sqlite";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { builtPage, chromiumPath, launch, skipReason, writeUsualSessions, sessionPath } from "./browser.ts";

const session = sessionPath("agent:main:tides");
const words = /tides|lighthouse|login|zone/i;

describe.skipIf(chromiumPath === undefined)(`the page with a token that does not fit${skipReason}`, () => {
  const folder = mkdtempSync(join(tmpdir(), "throughline-access-"));
  let browser: Browser;
  let server: Server;

  beforeAll(async () => {
    browser = await launch();
    let store: SessionStore | null = null;
    server = await createServer({
      openStore: () => (store = createSqliteStore({ path: join(folder, "sessions.db") })),
      port: 0,
      inspect: await builtPage(),
      limits: { failedTokensPerMinute: 100_000 },
    });
    if (store !== null) await writeUsualSessions(store);
  });
  afterAll(async () => {
    await server.close();
    await browser.close();
    rmSync(folder, { recursive: true });
  });

  const tokenOf = async (rights: object): Promise<string> => {
    const all = { namespace: "", agents: "*", scopes: ["read"], expiresAtMs: null } as const;
    return (await server.tokens.create({ ...all, ...rights }, "page")).text;
  };
  const cases: readonly (readonly [string, () => Promise<string>, RegExp])[] = [
    ["wrong", async () => "tl_wrong", /token is not accepted/],
    ["expired", () => tokenOf({ expiresAtMs: Date.now() - 1000 }), /token is not accepted|expired/],
    ["of another agent", () => tokenOf({ agents: ["other"] }), /Not found|not found/],
    ["of another tenant", () => tokenOf({ namespace: "tenant" }), /Not found|not found/],
    ["that only writes", () => tokenOf({ scopes: ["write"] }), /may not|does not allow|scope/],
  ];

  it.each(cases)("says so in one sentence and shows nothing of a session: %s", async (_name, token, sentence) => {
    const context = await browser.newContext();
    const page = await context.newPage();
    const answers: Promise<string>[] = [];
    // Each body is read here, because the browser forgets it with the next page.
    await page.route("**/api/**", async (route) => {
      const response = await route.fetch();
      answers.push(response.text());
      await route.fulfill({ response });
    });
    await page.goto(`${server.url}/inspect/${session}#token=${await token()}`);
    await page.getByText(sentence).first().waitFor();
    for (const path of ["", "search?q=tides", "usage", `${session}?v=raw`, `${session}?v=files`]) {
      await page.goto(`${server.url}/inspect/${path}`);
      await page.locator(".state, .token, .empty").first().waitFor();
      expect(await page.locator("main").innerText()).not.toMatch(
        /There is no lighthouse|Read the tides of|Fix the login/,
      );
    }
    await page.unrouteAll({ behavior: "wait" });
    const texts = await Promise.all(answers);
    expect(texts.length).toBeGreaterThan(0);
    expect(texts.filter((text) => words.test(text.replaceAll("agent:main:tides", "")))).toEqual([]);
    await context.close();
  });
});
