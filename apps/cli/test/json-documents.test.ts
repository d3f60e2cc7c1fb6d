import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { commandTable } from "../src/command-table.ts";
import { objects, runHere, seed, user } from "./harness.ts";

let home = "";
beforeAll(() => (home = mkdtempSync(join(tmpdir(), "throughline-documents-"))));
afterAll(() => rmSync(home, { recursive: true }));

async function document(...args: readonly string[]): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await runHere(home, args);
  expect([code, stderr]).toEqual([0, ""]);
  const [only, ...rest] = objects(stdout);
  expect(rest).toEqual([]);
  return only ?? {};
}

describe("version and help with --json", () => {
  it("are one document each, wherever the options stand", async () => {
    for (const args of [
      ["--version", "--json"],
      ["--json", "--version"],
    ])
      expect(await document(...args)).toEqual({ kind: "version", version: expect.any(String) });
    for (const args of [
      ["help", "--json"],
      ["--json", "--help"],
      ["-h", "--json"],
    ]) {
      const help = await document(...args);
      expect(help).toMatchObject({ kind: "help", command: null, arguments: [], options: [] });
      const commands = help["commands"] as readonly { readonly name: string; readonly group: string }[];
      const names = commands.map(({ name }) => name);
      expect(commands.every(({ group }) => group !== "")).toBe(true);
      expect(names).toEqual(commandTable.filter(({ isHidden }) => isHidden !== true).map(({ name }) => name));
    }
  });

  it("describe every command with its own arguments and options", async () => {
    for (const { name, isHidden, examples } of commandTable) {
      if (isHidden === true) continue;
      const [asked, flagged] = [await document("help", name, "--json"), await document(name, "--json", "--help")];
      expect(asked).toEqual(flagged);
      expect(asked).toMatchObject({ kind: "help", command: name, commands: [] });
      expect(asked["examples"]).toEqual(examples.map((example) => `throughline ${example}`));
    }
    const values = await document("--store", "show", "--json", "search", "--help");
    expect(values["command"]).toBe("search");
  });
});

describe("an import of what is not there", () => {
  it("has one code in its finding and in its error", async () => {
    const { code, stderr } = await runHere(home, ["import", join(home, "nope"), "--json"]);
    expect([code, objects(stderr).map((object) => object["code"])]).toEqual([1, ["FILE_NOT_FOUND", "FILE_NOT_FOUND"]]);
  });
});

describe("an export for pi of a session that was not imported", () => {
  it("names a folder in its header: the one in the entry, else where it was exported", async () => {
    await seed(home, [
      { key: "agent:main:cli:direct:a", drafts: [user("one")] },
      { key: "agent:main:cli:direct:b", entry: { cwd: "/work/there" }, drafts: [user("one")] },
    ]);
    const target = join(home, "pi");
    expect((await runHere(home, ["export", "--all", "--to", "pi", "-o", target])).code).toBe(0);
    const { stdout } = await runHere(home, ["export", "agent:main:cli:direct:a", "--to", "pi"]);
    expect(objects(stdout)[0]).toMatchObject({ type: "session", cwd: home });
    const there = await runHere(home, ["export", "agent:main:cli:direct:b", "--to", "pi", "-o", join(home, "b.jsonl")]);
    expect(there.code).toBe(0);
    expect(objects(readFileSync(join(home, "b.jsonl"), "utf8"))[0]).toMatchObject({ cwd: "/work/there" });
  });
});
