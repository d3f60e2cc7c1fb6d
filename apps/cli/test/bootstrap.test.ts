import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { promisify } from "node:util";
import { spawn } from "@lydell/node-pty";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { temporaryDirectory } from "./harness.ts";

const directory = temporaryDirectory();
const root = directory.path;
const script = join(root, "tools/bootstrap.mjs");

/** A checkout that has everything installed already, with a command line that only says what it was called with. */
beforeAll(() => {
  for (const folder of ["tools", "apps/cli/bin", "node_modules/.cache/throughline"])
    mkdirSync(join(root, folder), { recursive: true });
  cpSync(join(import.meta.dirname, "../../../tools/bootstrap.mjs"), script);
  writeFileSync(
    join(root, "apps/cli/bin/throughline.js"),
    'console.log("called: " + process.argv.slice(2).join(" "));',
  );
  const [, version = ""] = /pnpmVersion = "([^"]+)"/.exec(readFileSync(script, "utf8")) ?? [];
  const hash = createHash("sha256").update(version);
  for (const name of ["pnpm-lock.yaml", "pnpm-workspace.yaml"]) {
    writeFileSync(join(root, name), name);
    hash.update(name);
  }
  const marker = { hash: hash.digest("hex"), scope: "all" };
  writeFileSync(join(root, "node_modules/.cache/throughline/install.json"), JSON.stringify(marker));
});
afterAll(() => directory.remove());

async function piped(...args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [script, "start", ...args], { cwd: root });
  return stdout.trim();
}

describe("npm run build", () => {
  it("hands turbo the pinned pnpm, on a path that has none", async () => {
    const folder = join(root, "path");
    mkdirSync(folder);
    symlinkSync(process.execPath, join(folder, "node"));
    // What the registry would be asked for: says how it was called.
    writeFileSync(
      join(folder, "npx"),
      `#!${process.execPath}\nconsole.log("npx " + process.argv.slice(2).join(" "));`,
      {
        mode: 0o755,
      },
    );
    const { stdout } = await promisify(execFile)(process.execPath, [script, "build", "--dry"], {
      cwd: root,
      env: { PATH: folder },
    });
    expect(stdout.trim()).toMatch(/^npx -y pnpm@\d+\.\d+\.\d+ exec turbo run build --dry$/);
    const { scripts } = JSON.parse(readFileSync(join(import.meta.dirname, "../../../package.json"), "utf8")) as {
      scripts: Record<string, string>;
    };
    expect(Object.entries(scripts).filter(([, line]) => /(^|\s)turbo\s/.test(line))).toEqual([]);
    expect(scripts["build"]).toBe("node tools/bootstrap.mjs build");
  });
});

describe("npm start", () => {
  it("opens a conversation on a terminal", async () => {
    const child = spawn(process.execPath, [script, "start"], { cols: 80, rows: 24, cwd: root, env: process.env });
    let printed = "";
    child.onData((data) => (printed += data));
    await new Promise((resolve) => child.onExit(resolve));
    expect(printed).toContain("called: chat\r\n");
  });

  it("runs the demonstration without one, and any command that is given", async () => {
    expect(await piped()).toBe("called: demo");
    expect(await piped("sessions", "--json")).toBe("called: sessions --json");
  });
});
