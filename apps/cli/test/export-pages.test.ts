import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { assistant, objects, type Run, runHere, seed, temporaryDirectory, user } from "./harness.ts";

let directory = temporaryDirectory();
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(() => directory.remove());

const here = (...args: readonly string[]): Promise<Run> => runHere(directory.path, args);
const token = ["tl_abcdefghijkl", "x".repeat(43)].join("_");

const files = (): readonly string[] => readdirSync(directory.path).filter((name) => /\.(html|md)$/.test(name));

describe("export --to html and --to markdown", () => {
  it("writes the newest session to a new file with mode 0600, and prints the counts of the secret scan", async () => {
    await seed(directory.path, [{ key: "agent:main:cli:direct:old", drafts: [user("Old")] }]);
    await seed(directory.path, [
      { key: "agent:main:cli:direct:new", drafts: [user(`Use ${token}`), assistant("<b>Yes</b>")] },
    ]);
    await seed(directory.path, [
      { key: "agent:main:cli:direct:empty", drafts: [{ type: "custom", customType: "note" }] },
    ]);
    const run = await here("export", "--latest", "--to", "html");
    expect([run.code, run.stderr]).toEqual([
      0,
      "The secret scan replaced 1 text: 1 × Throughline token. The scan knows certain shapes only.\n",
    ]);
    const [name = ""] = files();
    expect(name).toMatch(/^use-throughline-token-[A-Za-z0-9]{8}-\d{4}-\d\d-\d\d\.html$/);
    const path = join(directory.path, name);
    expect(run.stdout.split("\t")[0]).toBe(path);
    if (process.platform !== "win32") expect(statSync(path).mode & 0o777).toBe(0o600);
    const html = readFileSync(path, "utf8");
    expect([html.includes("&lt;b>Yes&lt;/b>"), html.includes("[Throughline token]"), html.includes(token)]).toEqual([
      true,
      true,
      false,
    ]);
  });

  it("never overwrites a file", async () => {
    await seed(directory.path, [{ key: "agent:main:cli:direct:new", drafts: [user("Hi")] }]);
    writeFileSync(join(directory.path, "a.html"), "mine");
    const run = await here("export", "new", "--to", "html", "-o", "a.html", "--json");
    expect([run.code, objects(run.stderr)[0]?.["code"]]).toEqual([1, "EXPORT_EXISTS"]);
    expect(readFileSync(join(directory.path, "a.html"), "utf8")).toBe("mine");
    expect(files()).toEqual(["a.html"]);
  });

  it("takes a level, expressions and the scan as options, and prints JSON", async () => {
    await seed(directory.path, [{ key: "agent:main:cli:direct:new", drafts: [user("Ask ACME-1 and BETA-2")] }]);
    const options = ["--level", "words", "--redact-pattern", "ACME-\\d", "--redact-pattern", "BETA-\\d", "-o", "a.md"];
    const run = await here("export", "new", "--to", "markdown", ...options, "--json");
    expect(objects(run.stdout)).toMatchObject([
      { kind: "export", format: "markdown", records: 1, replaced: [{ what: "own pattern", count: 2 }] },
      { kind: "end", count: 1 },
    ]);
    expect(readFileSync(join(directory.path, "a.md"), "utf8")).toContain("Ask \\[own pattern\\] and \\[own pattern\\]");
    await here("export", "new", "--to", "markdown", "--redact", "off", "-o", "b.md");
    expect(readFileSync(join(directory.path, "b.md"), "utf8")).toContain("The secret scan was off");
  });

  it.each([
    [["--to", "html"], "takes either a KEY or --latest"],
    [["new", "--latest", "--to", "html"], "takes either a KEY or --latest"],
    [["--all", "--to", "html", "-o", "x"], "writes one session"],
    [["new", "--here", "--to", "html"], "--here is for --latest"],
    [["new", "--level", "full"], "--level is for --to html and --to markdown"],
    [["--latest", "--here", "--to", "html"], "This folder has no session"],
  ])("refuses %j", async (args, reason) => {
    await seed(directory.path, [{ key: "agent:main:cli:direct:new", drafts: [user("Hi")] }]);
    const run = await here("export", ...args);
    expect(run.code).toBe(2);
    expect(run.stderr).toContain(reason);
    expect(files()).toEqual([]);
  });

  it("refuses an expression that has no linear form", async () => {
    await seed(directory.path, [{ key: "agent:main:cli:direct:new", drafts: [user("Hi")] }]);
    const run = await here("export", "new", "--to", "html", "--redact-pattern", "(a)\\1");
    expect(run.code).not.toBe(0);
    expect(run.stderr).toContain("has no linear form");
    expect(files()).toEqual([]);
  });

  it.skipIf(process.platform === "win32" || process.platform === "darwin")("opens the file with --open", async () => {
    await seed(directory.path, [{ key: "agent:main:cli:direct:new", drafts: [user("Hi")] }]);
    const opener = join(directory.path, "xdg-open");
    writeFileSync(opener, `#!/bin/sh\nprintf %s "$1" > "${join(directory.path, "opened")}"\n`, { mode: 0o755 });
    const args = ["export", "new", "--to", "html", "-o", "a.html", "--open"];
    const run = await runHere(directory.path, args, {
      environment: { PATH: `${directory.path}:/usr/bin:/bin`, DISPLAY: ":0" },
    });
    expect(run.code).toBe(0);
    expect(readFileSync(join(directory.path, "opened"), "utf8")).toBe(join(directory.path, "a.html"));
    const none = await runHere(directory.path, ["export", "new", "--to", "html", "-o", "b.html", "--open"], {
      environment: { PATH: "", DISPLAY: ":0" },
    });
    expect([none.code, none.stderr.includes("Open the file in a browser")]).toEqual([0, true]);
  });
});
