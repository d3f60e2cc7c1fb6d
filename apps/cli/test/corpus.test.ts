import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { objects, runHere, temporaryDirectory } from "./harness.ts";

const corpus = process.env["THROUGHLINE_CORPUS"];

/** What the two programs agree on: the roles, or for the smallest one the messages themselves. */
interface Golden {
  readonly context: {
    readonly roles?: readonly string[];
    readonly messages: number | readonly { readonly role: string }[];
  };
}

describe.skipIf(corpus === undefined)("real transcripts", () => {
  const directory = temporaryDirectory();
  const home = directory.path;
  const golden = join(corpus ?? "", "golden");
  afterAll(() => directory.remove());

  it("give the contexts that pi and OpenClaw give, and their own bytes back", async () => {
    const imported = await runHere(home, ["import", golden, "--json"]);
    const { sources } = objects(imported.stdout)[0] as {
      sources: { path: string; sessionId: string; state: string; records: number }[];
    };
    expect(sources.map(({ state }) => state)).toEqual(["imported", "imported", "imported"]);
    const counts: unknown[] = [];
    for (const { path, sessionId } of sources) {
      const { stdout } = await runHere(home, ["context", sessionId, "--provider", "neutral", "--json"]);
      const context = objects(stdout)[0] as { recordsInContext: number; messages: { role: string }[] };
      const { context: expected } = JSON.parse(
        readFileSync(path.replace(/\.v3\.jsonl$/, ".golden.json"), "utf8"),
      ) as Golden;
      const roles = expected.roles ?? (expected.messages as readonly { role: string }[]).map(({ role }) => role);
      expect(context.messages.map(({ role }) => role)).toEqual(roles);
      expect(context.recordsInContext).toBe(context.messages.length);
      counts.push(context.recordsInContext);
      expect((await runHere(home, ["export", sessionId])).stdout).toBe(readFileSync(path, "utf8"));
    }
    expect(counts).toEqual([446, 914, 7]);
    const again = await runHere(home, ["import", golden, "--json"]);
    expect(objects(again.stdout)[0]).toMatchObject({ totals: { unchanged: 3, records: 0 } });
  });

  it("are read one and all, however odd, and none of them is changed", async () => {
    const variants = join(corpus ?? "", "openclaw-legacy-variants");
    const contents = (): Map<string, string> =>
      new Map(
        readdirSync(variants, { recursive: true, withFileTypes: true })
          .filter((entry) => entry.isFile())
          .map((entry) => [
            join(entry.parentPath, entry.name),
            readFileSync(join(entry.parentPath, entry.name), "utf8"),
          ]),
      );
    const before = contents();
    const odd = join(home, "odd");
    const { stdout, code } = await runHere(odd, ["import", variants, "--json"], { cwd: home });
    expect(code).toBe(3);
    const { sources, totals } = objects(stdout)[0] as {
      sources: { sessionId: string; state: string }[];
      totals: Record<string, number>;
    };
    expect(totals).toMatchObject({ refused: 0, skipped: 0, lost: 0 });
    for (const { sessionId } of sources) {
      for (const provider of ["neutral", "anthropic", "text"]) {
        expect((await runHere(odd, ["context", sessionId, "--provider", provider, "--json"], { cwd: home })).code).toBe(
          0,
        );
      }
      expect((await runHere(odd, ["show", sessionId, "--all-branches"], { cwd: home })).code).toBe(0);
    }
    expect((await runHere(odd, ["doctor", variants, "--json"], { cwd: home })).code).toBe(3);
    expect(contents()).toEqual(before);
  });
});
