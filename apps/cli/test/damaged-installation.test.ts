import { execFile } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { bundleCli } from "../../../tools/bundle-cli.ts";
import { cleanEnvironment, objects, seed, temporaryDirectory, user } from "./harness.ts";

const directory = temporaryDirectory();
const packageRoot = join(import.meta.dirname, "..");
const whole = join(directory.path, "whole");
const modules = join(directory.path, "damaged/node_modules");
const cli = join(modules, "@throughline/cli");
const driver = join(modules, "better-sqlite3");

beforeAll(async () => {
  const installed = join(whole, "@throughline/cli");
  mkdirSync(installed, { recursive: true });
  for (const name of ["bin", "package.json"])
    cpSync(join(packageRoot, name), join(installed, name), { recursive: true });
  await bundleCli(packageRoot, join(installed, "dist"));
  const from = realpathSync(join(packageRoot, "node_modules/better-sqlite3"));
  for (const name of ["package.json", "lib", "prebuilds"])
    cpSync(join(from, name), join(whole, "better-sqlite3", name), { recursive: true });
  await seed(directory.path, [{ key: "notes", drafts: [user("hello")] }]);
});
beforeEach(() => {
  rmSync(modules, { recursive: true, force: true });
  cpSync(whole, modules, { recursive: true });
});
afterAll(() => directory.remove());

interface Ended {
  readonly code: unknown;
  readonly stdout: string;
  readonly stderr: string;
}

function run(...args: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    const env = cleanEnvironment(directory.path, { NODE_OPTIONS: "", NODE_PATH: "" });
    execFile(process.execPath, [join(cli, "bin/throughline.js"), ...args], { env }, (error, stdout, stderr) =>
      resolve({ code: error?.code ?? 0, stdout, stderr }),
    );
  });
}

const native = `${process.platform}-${process.arch}.node`;
const ways: readonly (readonly [string, () => void])[] = [
  ["without its main file", () => rmSync(join(cli, "dist/main.js"))],
  ["with a main file that was cut", () => cut(join(cli, "dist/main.js"))],
  ["without the file that starts it", () => rmSync(join(cli, "bin/start.js"))],
  ["without its chunks", () => rmSync(join(cli, "dist/chunks"), { recursive: true })],
  ["without the driver of SQLite", () => rmSync(driver, { recursive: true })],
  ["without the driver's native modules", () => rmSync(join(driver, "prebuilds"), { recursive: true })],
  ["with a native module that is none", () => writeFileSync(join(driver, "prebuilds", native), "none")],
  [
    "with a native module of another system",
    () => renameSync(join(driver, "prebuilds/darwin-arm64.node"), join(driver, "prebuilds", native)),
  ],
];

function cut(path: string): void {
  writeFileSync(path, readFileSync(path).subarray(0, 1000));
}

describe("an installation", () => {
  it("that is whole lists its sessions", async () => {
    const { code, stdout } = await run("sessions", "--json");
    expect([code, objects(stdout).length]).toEqual([0, 2]);
  });

  it("in a checkout prints the command that works there", async () => {
    mkdirSync(join(cli, "src"));
    writeFileSync(join(cli, "src/main.ts"), "");
    rmSync(driver, { recursive: true });
    const command = await run("sessions");
    rmSync(join(cli, "dist/main.js"));
    const start = await run("--version");
    for (const { code, stderr } of [command, start])
      expect([code, stderr]).toEqual([1, expect.stringMatching(/\n[^\n]*`npm run reinstall`\.\n$/)]);
  });

  it.each(ways)("%s says so in a sentence, and how to install it again", { tags: ["slow"] }, async (_name, damage) => {
    damage();
    const forPeople = await run("sessions");
    expect(forPeople).toMatchObject({ code: 1, stdout: "" });
    expect(forPeople.stderr).toMatch(/^error: [^\n]+ cannot be loaded[^\n]+\n[^\n]*npm install[^\n]+\n$/);
    const { code, stderr } = await run("sessions", "--json");
    expect([code, objects(stderr)]).toEqual([
      1,
      [
        expect.objectContaining({
          kind: "error",
          code: "INSTALLATION_DAMAGED",
          outcome: "not-applied",
          retryable: false,
        }),
      ],
    ]);
  });
});
