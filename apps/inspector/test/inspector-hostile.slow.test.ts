import type { SessionStore } from "@throughline/core";
import { viewTags } from "@throughline/transcript-view/internal";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
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
import { hostileValues } from "./hostile-values.ts";

/** Is how many values one session holds, so that a page of the plain transcript shows all its records. */
const valuesOfSession = 20;
const groups = Array.from({ length: Math.ceil(hostileValues.length / valuesOfSession) }, (_, index) =>
  hostileValues.slice(index * valuesOfSession, (index + 1) * valuesOfSession),
);

function recordsOf(value: string, index: number): readonly Readonly<Record<string, unknown>>[] {
  const id = `t${index}`;
  return [
    prompt(value),
    reply(
      [
        { type: "thinking", thinking: value },
        { type: "text", text: value },
        { type: "toolCall", id, name: value, arguments: { path: value, [value]: value } },
      ],
      { model: value, errorMessage: value, stopReason: "error" },
    ),
    result(id, value, value, true),
    { type: "compaction", summary: value, details: { source: value } },
    { type: "model_change", provider: value, modelId: value },
    { type: "custom_message", customType: value, content: value },
  ];
}

/** Puts each value into the fields of an entry, and into every field of a conversation that the page shows. */
async function writeHostile(store: SessionStore): Promise<void> {
  for (const [index, value] of hostileValues.entries())
    await writeSession(store, `agent:main:entry-${index}`, { title: value, cwd: `/home/${value}`, program: value }, []);
  for (const [index, values] of groups.entries()) {
    const [first = ""] = values;
    const key = `agent:main:hostile-${String(index).padStart(3, "0")}`;
    await writeSession(store, key, { title: first, label: first, cwd: first }, values.flatMap(recordsOf));
    const ref = { namespace: "", agentId: "main", key };
    const call = (id: string): object => ({ type: "toolCall", id, name: "Task", arguments: { prompt: first } });
    await store.append(ref, [reply(values.map((_, at) => call(`agent${at}`)))] as never);
    // Each value is the name, the program, the folder and the words of a sub-agent too.
    for (const [at, value] of values.entries()) {
      const entry = { title: value, cwd: value, program: value, spawnedBy: key, spawnDepth: 1 };
      await writeSession(store, `${key}-agent-${at}`, entry, [prompt(value), reply([{ type: "text", text: value }])]);
    }
    await store.append(ref, values.map((value, at) => result(`agent${at}`, "Task", value)) as never);
  }
}

/** Elements that the page itself has beside those of transcripts. */
const ownTags: readonly string[] = (
  "html head meta title link script body noscript header main nav aside form input select option button svg path rect kbd " +
  "h1 h2 h3 time b bdi mark article small dl dt dd section label"
).split(" ");

describe.skipIf(chromiumPath === undefined)(`hostile texts on the page${skipReason}`, () => {
  let browser: Browser;

  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser.close());

  it(`shows ${hostileValues.length} hostile values in every field as text, and nothing else happens`, async () => {
    expect(hostileValues.length).toBeGreaterThanOrEqual(300);
    const opened = await openPage(browser, writeHostile);
    const { page, reports } = opened;
    const allowed = [...new Set([...ownTags, ...viewTags])];
    const strange = (): Promise<readonly string[]> =>
      page.evaluate(
        (names) => [
          ...[...document.querySelectorAll("*")]
            .map((element) => element.localName)
            .filter((name) => !names.includes(name)),
          ...[...document.querySelectorAll("*")].flatMap((element) =>
            element.getAttributeNames().filter((name) => name.startsWith("on") || name === "srcdoc"),
          ),
          ...[...document.querySelectorAll("a[href]")]
            .map((element) => (element as HTMLAnchorElement).protocol)
            .filter((protocol) => !["http:", "https:", "mailto:"].includes(protocol)),
        ],
        allowed,
      );
    const found: string[] = [];
    await page.locator("a.line").nth(5).waitFor();
    for (let step = 0; step < 30; step++) {
      found.push(...(await strange()));
      await page.locator(".home .scroll").evaluate((element) => element.scrollBy(0, 640));
      await page.waitForTimeout(50);
    }
    for (const [index, values] of groups.entries()) {
      const key = `agent:main:hostile-${String(index).padStart(3, "0")}`;
      await page.evaluate(
        (to) => {
          history.pushState(null, "", to);
          dispatchEvent(new PopStateEvent("popstate"));
        },
        `/inspect/${sessionPath(key)}?v=plain`,
      );
      await page.locator(".plain-item").first().waitFor();
      // Sub-agents arrive behind the rows.
      await page
        .locator(".row.agent")
        .nth(values.length - 1)
        .waitFor();
      // Everything that folds is opened, so that its content is on the page.
      const folds = page.locator('.plain-page button.row-line[aria-expanded="false"]');
      await folds.evaluateAll((buttons) => buttons.forEach((button) => (button as HTMLButtonElement).click()));
      await page
        .locator(".row.agent.open .agent-pages")
        .nth(values.length - 1)
        .waitFor();
      await expect.poll(() => page.locator(".row.agent .loading").count(), { timeout: 60_000 }).toBe(0);
      const now = await strange();
      if (now.length > 0) found.push(`${JSON.stringify(values)}: ${now.join(", ")}`);
    }
    await opened.close();
    expect(found).toEqual([]);
    expect(reports).toEqual({ errors: [], foreignRequests: [], dialogs: [], violations: [] });
  }, 600_000);

  it("shows invisible characters and turned text as signs, and copies the original", async () => {
    const opened = await openPage(browser, (store) =>
      writeSession(store, "agent:main:signs", { title: "a\u202egnp.exe\u001b[31m" }, [
        prompt("left \u202eright\u200b"),
      ]),
    );
    const { page } = opened;
    await page.locator("a.line").waitFor();
    expect(await page.locator(".line-name").innerText()).toContain("⟨U+202E⟩gnp.exe␛[31m");
    await page.locator("a.line").click();
    await page.locator(".prose.prompt").waitFor();
    expect(await page.locator(".prose.prompt").innerText()).toBe("left ⟨U+202E⟩right⟨U+200B⟩");
    await opened.close();
  });
});
