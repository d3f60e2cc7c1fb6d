import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { runHere, seed, temporaryDirectory, user } from "./harness.ts";

const key = "agent:main:cli:direct:plans";
let directory = temporaryDirectory();
beforeEach(async () => {
  directory = temporaryDirectory();
  await seed(directory.path, [{ key, drafts: [user("one"), user("two")] }]);
});
afterEach(() => directory.remove());

describe("calls of the gateway that wait in files", () => {
  it("are reported by what removes for good, and by nothing else", async () => {
    const home = directory.path;

    const run = async (...args: readonly string[]): Promise<string> => (await runHere(home, args)).stderr;
    expect(await run("redact", key, "1", "--yes")).not.toContain("gateway");
    mkdirSync(join(home, "spool"), { recursive: true });
    for (const name of ["1.call", "2.call.failed", "3.call.tmp"]) writeFileSync(join(home, "spool", name), "");
    expect(await run("show", key)).not.toContain("gateway");
    const said = `2 calls of the gateway in ${JSON.stringify(join(home, "spool"))} may hold it.`;
    expect(await run("redact", key, "2", "--yes")).toContain(said);
    expect(await run("delete", key, "--purge", "--yes")).toContain(said);
  });
});
