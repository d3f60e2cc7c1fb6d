import { readFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { redactRecords, sessionRef } from "@throughline/core";
import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  chromiumPath,
  launch,
  type Opened,
  openPage,
  prompt,
  reply,
  skipReason,
  writeSession,
  sessionPath,
} from "./browser.ts";

const key = "agent:main:harbor";
const address = sessionPath(key);
const secret = "quicksilver lantern";

describe.skipIf(chromiumPath === undefined)(`a session that was damaged or redacted${skipReason}`, () => {
  let browser: Browser;
  let opened: Opened;

  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser.close());
  beforeEach(async () => {
    opened = await openPage(browser, (store) =>
      writeSession(store, key, { title: "Light the harbor" }, [
        { ...prompt(`Hang the ${secret} at the quay.`), id: "r1" },
        reply([
          { type: "text", text: "It hangs there." },
          { type: "toolCall", id: "w1", name: "write", arguments: { path: "quay.txt", content: "one lantern\n" } },
        ]),
        prompt("And the second one?"),
        reply([{ type: "text", text: "Tomorrow." }]),
      ]),
    );
  });
  afterEach(async () => {
    const { reports } = opened;
    await opened.close();
    expect(reports).toEqual({ errors: [], foreignRequests: [], dialogs: [], violations: [] });
  });

  it("names a damaged record with its remedy, in Findings and where it would stand", async () => {
    const { page, store } = opened;
    using database = new DatabaseSync(store);
    const { changes } = database
      .prepare("UPDATE store_records SET text = replace(text, 'Tomorrow', 'Yesterday') WHERE text LIKE '%Tomorrow%'")
      .run();
    expect(changes).toBe(1);
    await opened.go(`${address}?v=findings`);
    await page.locator(".findings li").first().waitFor();
    const findings = await page.locator(".findings").innerText();
    expect(findings).toContain("checksum");
    expect(findings).toMatch(/Restore the newest backup.*\n+STORE_DAMAGED/);
    await opened.go(address);
    await page.getByText("is damaged: it does not match its checksum").first().waitFor();
  });

  it("keeps a redacted text in no answer, view, export or store, and takes it from the page that shows it", async () => {
    const { page, server, store } = opened;
    const token = { authorization: `Bearer ${server.token}` };
    const session = `/sessions/${encodeURIComponent(key)}`;
    const below = ["", "/records", "/records?payload=preview", "/outline", "/digest", "/usage", "/context", "/calls"];
    const paths = [
      ...[...below, "/changed-files", "/relations", "/resume", "/findings", "/records/r1"].map(
        (path) => session + path,
      ),
      ...["html", "markdown", "jsonl"].map((to) => `${session}/export?to=${to}`),
      `/search?q=${encodeURIComponent("quicksilver")}`,
      `/search?q=${encodeURIComponent("quicksilver")}&group=session`,
      "/sessions?firstWords=true&limit=50",
    ];
    const holding = async (): Promise<readonly string[]> => {
      const found: string[] = [];
      for (const path of paths) {
        const response = await fetch(`${server.url}/api/v1${path}`, { headers: token });
        if ((await response.text()).includes("quicksilver")) found.push(path);
      }
      return found;
    };
    await opened.go(address);
    await page.getByText(secret).first().waitFor();
    await page.locator(".chapters li").nth(1).waitFor();
    const before = await holding();
    expect(before).toEqual(expect.arrayContaining([`${session}/records`, `${session}/digest`, `${session}/context`]));
    await redactRecords(server.store, sessionRef({ key }), ["r1"], { reason: "a secret" });
    // The page follows the session, and forgets what it had loaded.
    await page.locator(".row.redacted").waitFor();
    await expect.poll(() => page.locator("body").innerText()).not.toContain("quicksilver");
    expect(await page.locator(".row.redacted").innerText()).toContain("a secret");
    expect(await holding()).toEqual([]);
    for (const view of ["plain", "context", "raw", "files", "tree"]) {
      await opened.go(`${address}?v=${view}`);
      await page.locator("main article, main li, main .files, main .state").first().waitFor();
      expect([view, await page.locator("body").innerText()]).toEqual([
        view,
        expect.not.stringContaining("quicksilver"),
      ]);
    }
    using database = new DatabaseSync(store);
    database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    expect(readFileSync(store).includes("quicksilver")).toBe(false);
  });

  /** Hides the page as another tab in front of it does, or shows it again. */
  const setVisible = (visibility: "visible" | "hidden"): Promise<void> =>
    opened.page.evaluate((state) => {
      Object.defineProperty(document, "visibilityState", { configurable: true, get: () => state });
      document.dispatchEvent(new Event("visibilitychange"));
    }, visibility);
  const ref = sessionRef({ key });
  const fork = { ...ref, key: `${key}:fork` };
  const redact = async (): Promise<void> => {
    await redactRecords(opened.server.store, ref, ["r1"], { reason: "a secret" });
  };
  const cases: readonly (readonly [string, string, () => Promise<unknown>, () => Promise<void>])[] = [
    [
      "while the page is hidden",
      address,
      async () => undefined,
      async () => {
        const left = opened.page.waitForEvent("requestfailed", (request) => request.url().includes("/events"));
        await setVisible("hidden");
        await left;
        await redact();
        // The count of messages is what it was, so only the note tells of the redaction.
        await opened.server.store.append(ref, [prompt("And the third one?")] as never);
        await setVisible("visible");
      },
    ],
    [
      "in the session that it was forked from",
      sessionPath(fork.key),
      async () => opened.server.store.fork?.fork(ref, fork, { sessionId: "fork" }),
      redact,
    ],
    [
      "in an archived session",
      `${address}?archive=agent-main-harbor`,
      () => opened.server.store.move(ref, { kind: "archive" }),
      async () => {
        const archived = { ...ref, archiveId: "agent-main-harbor" };
        await redactRecords(opened.server.store, archived, ["r1"], { reason: "a secret" });
      },
    ],
  ];
  it.each(cases)("takes a redacted text from the page that shows it: %s", async (_name, path, prepare, change) => {
    const { page } = opened;
    // The page reads a part of a session again when records follow close behind it.
    const rest = Array.from({ length: 250 }, (_, at) => prompt(`Lamp ${at} burns.`));
    await opened.server.store.append(ref, rest as never);
    await prepare();
    const followed = page.waitForResponse((response) => response.url().includes("/events"));
    await opened.go(path);
    await page.getByText(secret).first().waitFor();
    await followed;
    await change();
    await page.locator(".row.redacted").waitFor();
    await expect.poll(() => page.locator("body").innerText()).not.toContain("quicksilver");
  });

  it("shows new records in pages without a list that changes by itself", async () => {
    const { page, server } = opened;
    await opened.go(`${address}?v=plain`);
    await page.getByText("Tomorrow.").waitFor();
    await server.store.append(sessionRef({ key }), [prompt("And now the third lamp?")] as never);
    await page.getByText("And now the third lamp?").waitFor();
  });
});
