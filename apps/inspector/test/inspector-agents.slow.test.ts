import type { SessionStore } from "@throughline/core";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { testSize } from "../../../tools/test-size.ts";
import {
  chromiumPath,
  launch,
  openPage,
  prompt,
  reply,
  result,
  skipReason,
  writeSession,
  sessionPath,
} from "./browser.ts";

const timeout = testSize({ short: 120_000, long: 900_000 });
const parent = "agent:main:coast";

/** Writes a session with two sub-agents of one message. The second of them has more records than a page of it holds. */
async function writeAgents(store: SessionStore): Promise<void> {
  const call = (id: string, text: string): object => ({
    type: "toolCall",
    id,
    name: "Task",
    arguments: { prompt: text },
  });
  await writeSession(store, parent, { title: "Map the coast" }, [
    prompt("Map the coast."),
    reply([call("t1", "Read the charts of the north."), call("t2", "Read the charts of the south.")]),
  ]);
  const entry = { spawnedBy: parent, spawnDepth: 1 };
  await writeSession(store, "agent:main:south", { title: "South", ...entry }, [
    prompt("Read the charts of the south."),
    ...Array.from({ length: 30 }, (_, index) => reply([{ type: "text", text: `Sunny bay ${index}.` }])),
  ]);
  await writeSession(store, "agent:main:north", { title: "North", ...entry }, [
    prompt("Read the charts of the north."),
    reply([{ type: "text", text: "The north has **fog**." }]),
  ]);
  const ref = { namespace: "", agentId: "main", key: parent };
  await store.append(ref, [result("t2", "Task", "south done"), result("t1", "Task", "north done")] as never);
}

describe.skipIf(chromiumPath === undefined)(`the sub-agents of a session on the page${skipReason}`, () => {
  let browser: Browser;

  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser.close());

  it.each(["transcript", "plain"])("open under their calls with their own turns, in the view %s", async (view) => {
    const opened = await openPage(browser, writeAgents);
    const { page } = opened;

    await opened.go(`${sessionPath(parent)}?v=${view}`);
    const agents = page.locator(".row.agent");
    await agents.nth(1).waitFor();
    // Each stands behind the row of its call.
    const order = await page.locator(".row.tool, .row.agent").allInnerTexts();
    expect(order.map((text) => /north|south/.exec(text)?.[0])).toEqual(["north", "north", "south", "south"]);
    const [north, south] = [agents.nth(0), agents.nth(1)];
    await north.getByRole("button", { name: /^Sub-agent/ }).click();
    await north.locator("strong", { hasText: "fog" }).waitFor();
    await south.getByRole("button", { name: /^Sub-agent/ }).click();
    await south.getByText("Sunny bay 18.").waitFor();
    expect(await south.getByText("Sunny bay 19.").count()).toBe(0);
    await south.getByRole("button", { name: "Later" }).click();
    await south.getByText("Sunny bay 29.").waitFor();
    expect(await south.locator(".agent-pages").innerText()).toContain("Records 21 to 31 of 31");
    await south.getByRole("link", { name: "Open this session" }).click();
    await page.locator("h1", { hasText: "South" }).waitFor();
    expect(page.url()).toContain(sessionPath("agent:main:south"));
    const { reports } = opened;
    await opened.close();
    expect(reports).toEqual({ errors: [], foreignRequests: [], dialogs: [], violations: [] });
  });

  // Relations look at 10,000 sessions, of which three are the others.
  const children = testSize({ short: 300, long: 9997 });

  it(`are lines in Tree, ${children} of them without more elements than fit on the screen`, { timeout }, async () => {
    const opened = await openPage(browser, async (store) => {
      await writeAgents(store);
      for (let at = 0; at < children; at++)
        await writeSession(store, `agent:main:child-${at}`, { title: `Child ${at}`, spawnedBy: parent }, []);
    });
    const { page } = opened;
    await opened.go(`${sessionPath(parent)}?v=tree`);
    const lines = page.locator(".tree-list a.line");
    await lines.first().waitFor({ timeout });
    const elements = (): Promise<number> => page.evaluate(() => document.querySelectorAll("*").length);
    expect(await elements()).toBeLessThan(1500);
    expect(await page.locator(".tree h2").first().innerText()).toContain((children + 2).toLocaleString("en-US"));
    // The oldest is the last one of the list.
    await page.locator(".tree-list .scroll").evaluate((element) => element.scrollTo(0, element.scrollHeight));
    await page.getByRole("link", { name: "South" }).waitFor({ timeout });
    expect(await elements()).toBeLessThan(1500);
    await opened.close();
  });
});
