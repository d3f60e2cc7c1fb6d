import { linkSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { objects, runHere } from "./harness.ts";

it("an import tells every source once and in order, however many there are", async () => {
  const home = mkdtempSync(join(tmpdir(), "throughline-many-"));
  try {
    const count = 2100;
    const folder = join(home, "agents/main/sessions");
    mkdirSync(folder, { recursive: true });
    // Most are no sessions, which takes no time and is told all the same.
    writeFileSync(join(home, "empty"), "");
    const name = (at: number): string => `s${String(at).padStart(5, "0")}.jsonl.bak`;
    for (let at = 0; at < count; at++) linkSync(join(home, "empty"), join(folder, name(at)));
    writeFileSync(join(folder, "sessions.json"), "{}");
    const json = await runHere(home, ["import", "agents/main/sessions", "--json", "--dry-run"]);
    const [told] = objects(json.stdout) as {
      readonly sources?: { readonly path: string }[];
      readonly totals?: unknown;
    }[];
    expect(told?.sources?.map(({ path }) => path.slice(-name(0).length))).toEqual(
      Array.from({ length: count }, (_, at) => name(at)),
    );
    expect(told?.totals).toMatchObject({ sources: count, skipped: count, imported: 0 });
    const text = await runHere(home, ["import", "agents/main/sessions", "--dry-run"]);
    expect(text.stdout.split("\n").length).toBe(count + 2);
  } finally {
    rmSync(home, { recursive: true });
  }
});
