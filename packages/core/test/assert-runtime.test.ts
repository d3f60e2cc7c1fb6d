import { execFileSync } from "node:child_process";
import process from "node:process";
import { describe, expect, it } from "vitest";
import { assertVersions } from "../src/assert-runtime.ts";

describe("the version of the runtime", () => {
  it.each(["20.20.2", "18.0.0", "4.9.1", "22.17.1", "22.0.0"])(
    "Node %s is refused, and the message names it",
    (node) => {
      expect(() => assertVersions({ node })).toThrow(
        expect.objectContaining({ code: "RUNTIME_UNSUPPORTED", message: expect.stringContaining(`this is ${node}.`) }),
      );
    },
  );

  it.each(["22.18.0", "24.21.0", "100.0.0", process.versions.node])("Node %s is accepted", (node) => {
    expect(() => assertVersions({ node })).not.toThrow();
  });

  it("says nothing of runtimes that name a version of Node beside their own, or none", () => {
    for (const versions of [{ node: "20.0.0", bun: "1.4.5" }, { node: "20.0.0", deno: "2.9.6" }, {}])
      expect(() => assertVersions(versions)).not.toThrow();
  });

  it.each([
    ["@throughline/store-memory", "createMemoryStore({})"],
    ["@throughline/store-sqlite", "createSqliteStore({ path: ':memory:' })"],
    ["@throughline/store-jsonl", "createJsonlStore({ root: '.' })"],
    ["@throughline/session", "createSessions({})"],
    ["@throughline/history", "createHistory('openai', {})"],
  ])(
    "a Node that is too old is refused by %s when it is first called, and not when it is loaded",
    { tags: ["slow"] },
    (name, call) => {
      const program = `
      Object.defineProperty(process.versions, "node", { value: "20.20.2" });
      const exported = await import(${JSON.stringify(name)});
      try { exported.${call}; console.log("called"); } catch (error) { console.log(error.code + " " + error.message); }`;
      const cwd = new URL("../../../apps/cli/", import.meta.url);
      const args = ["--conditions=@throughline/source", "--input-type=module", "-e", program];
      expect(execFileSync(process.execPath, args, { cwd, encoding: "utf8" }).trim()).toBe(
        "RUNTIME_UNSUPPORTED Throughline needs Node 22.18 or newer; this is 20.20.2.",
      );
    },
  );
});
