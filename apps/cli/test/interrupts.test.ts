import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createMemoryStore } from "@throughline/store-memory";
import { sessionRef } from "@throughline/core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { listSessions } from "@throughline/core/internal";
import { scanRecords } from "@throughline/core/internal/node";
import { objects, runHere, seed, start, temporaryDirectory, user } from "./harness.ts";

const directory = temporaryDirectory();
const home = directory.path;
const count = 300;
const keys = Array.from({ length: count }, (_, at) => `agent:main:s${at}`);
const url = `jsonl:${join(home, "store")}`;

beforeAll(() =>
  seed(
    home,
    keys.map((key) => ({ key, drafts: [user("word")] })),
    url,
  ),
);
afterAll(() => directory.remove());

describe("an interrupt", () => {
  it(
    "of an export says what holds, leaves whole files only, and the same command goes on",
    { tags: ["slow"] },
    async () => {
      const target = join(home, "exported");
      const args = ["export", "--all", "-o", target, "--store", url, "--json"];
      const child = start(home, args);
      let stderr = "";
      child.stderr.on("data", (chunk) => (stderr += chunk));
      child.stdout.once("data", () => child.kill("SIGINT"));
      child.stdout.resume();
      expect(await new Promise((resolve) => child.on("close", resolve))).toBe(130);
      expect(objects(stderr)).toEqual([
        expect.objectContaining({
          kind: "error",
          code: "ABORTED",
          remedy: expect.stringContaining("Run the same command again") as string,
        }),
      ]);
      const folder = join(target, "agents/main/sessions");
      const before = readdirSync(folder);
      expect(before.length).toBeLessThan(count);
      expect(before.every((name) => /^id-.+\.jsonl$/.test(name))).toBe(true);
      const { code, stdout } = await runHere(home, args);
      expect(code).toBe(0);
      expect(objects(stdout).at(-1)).toEqual({ kind: "end", count: count + 1, nextCursor: null });
      expect(readdirSync(folder)).toHaveLength(count + 1);
      expect((await runHere(home, args)).stderr).toContain("EXPORT_EXISTS");
    },
  );

  it("of an import says how much was done, and the same command goes on", { tags: ["slow"] }, async () => {
    const source = join(home, "source");
    mkdirSync(source);
    const header = '{"type":"session","version":3,"id":"ID","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/x"}\n';
    for (const at of keys.keys()) writeFileSync(join(source, `i${at}.jsonl`), header.replace("ID", `i${at}`));
    const store = join(home, "other");
    const args = ["import", source, "--store", `jsonl:${store}`, "--json"];
    // A process of its own: in this one the import would keep the look from its turn.
    const child = start(home, args);
    let [stdout, stderr] = ["", ""];
    child.stdout.on("data", (chunk) => (stdout += chunk));
    child.stderr.on("data", (chunk) => (stderr += chunk));
    const look = setInterval(() => {
      try {
        if (readdirSync(join(store, "agents/main/sessions")).length <= 5) return;
      } catch {
        return; // Not begun yet.
      }
      clearInterval(look);
      child.kill("SIGINT");
    }, 2);
    const code = await new Promise((resolve) => child.on("close", resolve));
    clearInterval(look);
    expect([code, stdout]).toEqual([130, ""]);
    const [note, error] = objects(stderr);
    const done = Number(/Until then: (\d+) imported/.exec(String(note?.["message"]))?.[1]);
    expect(done).toBeGreaterThan(0);
    expect(error).toMatchObject({ code: "ABORTED", message: "import was interrupted." });
    const again = await runHere(home, args);
    const { totals } = objects(again.stdout)[0] as { readonly totals: Record<string, number> };
    expect([again.code, totals["sources"], (totals["unchanged"] ?? 0) >= done]).toEqual([0, count, true]);
  });

  it.each([["show", "--json"], ["context", "--provider", "text"], ["export"]])(
    "ends a long output between two pieces: %s",
    async (command, ...options) => {
      const place = join(home, command);
      mkdirSync(place);
      await seed(place, [
        { key: "agent:main:long", drafts: Array.from({ length: 60 }, () => user("x".repeat(100_000))) },
      ]);
      const interrupt = new AbortController();
      let written = 0;
      const { code, stderr } = await runHere(place, [command, "agent:main:long", ...options], {
        signal: interrupt.signal,
        onStdout: (chunk) => {
          written += chunk.length;
          setImmediate(() => interrupt.abort());
        },
      });
      expect([code, stderr.includes("INTERNAL")]).toEqual([130, false]);
      expect(written).toBeGreaterThan(0);
      expect(written).toBeLessThan(3_000_000);
    },
  );

  it("reaches a scan of a store that answers at once", async () => {
    const store = createMemoryStore();
    for (const key of keys) {
      await store.save(sessionRef({ key }), { sessionId: key.slice(11) }, { ifRevision: null });
      await store.append(sessionRef({ key }), [user("word")]);
    }
    const interrupt = new AbortController();
    const { signal } = interrupt;
    setImmediate(() => interrupt.abort());
    const hits = scanRecords(store, listSessions(store, { sort: "key" }), { text: "word", signal });
    await expect(Array.fromAsync(hits)).rejects.toMatchObject({ code: "ABORTED" });
  });
});
