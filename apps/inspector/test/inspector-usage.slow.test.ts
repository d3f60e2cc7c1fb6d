import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createSqliteStore } from "@throughline/store-sqlite";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { chromiumPath, launch, prompt, reply, skipReason, writeSession } from "./browser.ts";
import { install, type Installed } from "./installed.ts";

type Fields = Readonly<Record<string, unknown>>;

const claude = "claude-sonnet-4-5";
const at = (day: number, second: number): string => new Date(Date.UTC(2026, 9, day, 12, 0, second)).toISOString();

const own = (day: number, second: number, model: string, input: number, output: number): Fields => ({
  ...reply([{ type: "text", text: `Reply ${second}.` }], {
    model,
    provider: "anthropic",
    usage: { input, output, cacheRead: 100, cacheWrite: 7 },
  }),
  timestamp: at(day, second),
});

/** Makes a file of Claude Code. A resumed one repeats the lines of the earlier file, with their ids. */
function transcript(
  sessionId: string,
  turns: readonly (readonly [day: number, name: string, input: number])[],
): string {
  const lines = turns.flatMap(([day, name, input], index) => {
    const base = { sessionId, cwd: "/srv/app", version: "2.0.0", isSidechain: false, timestamp: at(day, index) };
    const [said, answered] = [`${name}-0000-4000-8000-000000000001`, `${name}-0000-4000-8000-000000000002`];
    const parentUuid = index === 0 ? null : `${turns[index - 1]?.[1]}-0000-4000-8000-000000000002`;
    const usage = {
      input_tokens: input,
      output_tokens: 11,
      cache_read_input_tokens: 200,
      cache_creation_input_tokens: 5,
    };
    const content = [{ type: "text", text: `Answer ${name}.` }];
    const message = { id: `msg_${name}`, type: "message", role: "assistant", model: claude, content, usage };
    return [
      { ...base, type: "user", uuid: said, parentUuid, message: { role: "user", content: `Question ${name}` } },
      { ...base, type: "assistant", uuid: answered, parentUuid: said, requestId: `req_${name}`, message },
    ];
  });
  return `${lines.map((line) => JSON.stringify(line)).join("\n")}\n`;
}

describe.skipIf(chromiumPath === undefined)(
  `usage of imports, own sessions, forks and resumed files${skipReason}`,
  () => {
    let browser: Browser;
    let installed: Installed;

    beforeAll(async () => {
      browser = await launch();
      installed = await install();
      const path = join(installed.home, ".throughline/sessions.db");
      mkdirSync(join(path, ".."), { recursive: true });
      const store = createSqliteStore({ path });
      await writeSession(store, "agent:main:own", { title: "Own" }, [
        prompt("One"),
        own(14, 1, claude, 1000, 50),
        prompt("Two"),
        own(15, 2, "claude-opus-5", 2000, 60),
      ]);
      await store.close();
      const folder = join(installed.home, ".claude/projects/-srv-app");
      mkdirSync(folder, { recursive: true });
      const [first, second] = ["0b0e1b5e-1111-4000-8000-000000000001", "0b0e1b5e-2222-4000-8000-000000000002"];
      const turns = [
        [14, "aaaaaaaa", 300],
        [14, "bbbbbbbb", 400],
      ] as const;
      writeFileSync(join(folder, `${first}.jsonl`), transcript(first, turns));
      writeFileSync(join(folder, `${second}.jsonl`), transcript(second, [...turns, [15, "cccccccc", 500]]));
      expect((await installed.run(["fork", "agent:main:own", "--key", "agent:main:fork"])).code).toBe(0);
      expect((await installed.run(["import", folder])).code).toBe(0);
      const again = createSqliteStore({ path });
      const ref = { namespace: "", agentId: "main", key: "agent:main:fork" };
      await again.append(ref, [prompt("Three"), own(15, 3, claude, 4000, 70)] as never);
      await again.close();
    });
    afterAll(async () => {
      await installed.remove();
      await browser.close();
    });

    it("counts each reply once, by day and model, as a person counts it", async () => {
      // Model, day, calls, input, cache read, output. The fork shares two replies, the resumed file repeats two.
      const byHand = [
        ["2026-10-14", claude, 3, 1000 + 300 + 400, 100 + 200 + 200, 50 + 11 + 11],
        ["2026-10-15", "claude-opus-5", 1, 2000, 100, 60],
        ["2026-10-15", claude, 2, 4000 + 500, 100 + 200, 70 + 11],
      ];
      const ordered = (rows: readonly (readonly unknown[])[]): readonly string[] =>
        rows.map((row) => row.join(" ")).toSorted();
      const { stdout } = await installed.run(["usage", "--by", "day,model", "--json"]);
      const rows = stdout.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line) as Fields]));
      const printed = rows
        .filter(({ kind }) => kind === "usage")
        .map(({ group, calls, input, cacheRead, output }) => {
          const { day, model } = group as Fields;
          return [day, String(model).replace(/^anthropic\//, ""), calls, input, cacheRead, output];
        });
      expect(ordered(printed)).toEqual(ordered(byHand));
      const ui = await installed.start(["ui", "--no-open", "--no-sync"]);
      const page = await browser.newPage();
      await page.goto(ui.line);
      await page.locator("a.line").first().waitFor();
      await page.goto(`${new URL(ui.line).origin}/inspect/usage?by=day,model`);
      await page
        .locator("tbody tr")
        .nth(byHand.length - 1)
        .waitFor();
      const cells = await page
        .locator("tbody tr")
        .evaluateAll((all) =>
          all.map((row) =>
            [...row.querySelectorAll("td")]
              .map((cell) => (cell.textContent ?? "").trim())
              .filter((text) => text !== ""),
          ),
        );
      const shown = cells.map((row) =>
        row.slice(0, 6).map((text) => text.replaceAll(",", "").replace(/^anthropic\//, "")),
      );
      expect(ordered(shown)).toEqual(ordered(byHand));
      await ui.end();
    });
  },
);
