import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, realpathSync, symlinkSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { errorCodes, findingCodes } from "@throughline/core/internal";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bundleCli } from "../../../tools/bundle-cli.ts";
import { filledRemedy, remedyKey } from "./filled-remedy.ts";
import { cleanEnvironment, seed, temporaryDirectory, user } from "./harness.ts";

const directory = temporaryDirectory();
const home = directory.path;
const packageRoot = join(import.meta.dirname, "..");
const root = join(packageRoot, "../..");
const bin = join(home, "node_modules/.bin");

beforeAll(async () => {
  const installed = join(home, "node_modules/@throughline/cli");
  mkdirSync(join(installed, "dist"), { recursive: true });
  mkdirSync(join(home, "node_modules/@anthropic-ai"));
  mkdirSync(bin);
  for (const name of ["bin", "package.json"])
    cpSync(join(packageRoot, name), join(installed, name), { recursive: true });
  await bundleCli(packageRoot, join(installed, "dist"));
  for (const name of ["better-sqlite3", "@anthropic-ai/sdk", "openai", "ollama", "pg"])
    symlinkSync(realpathSync(join(packageRoot, "node_modules", name)), join(home, "node_modules", name));
  symlinkSync("../@throughline/cli/bin/throughline.js", join(bin, "throughline"));
  await seed(home, [{ key: remedyKey, drafts: [user("one")] }]);
}, 120_000);
afterAll(() => directory.remove());

interface Result {
  readonly status: number | null;
  readonly stderr: string;
}

/** Types a command into a shell. */
function typed(command: string, folder: string): Result {
  const path = [bin, dirname(process.execPath), process.env["PATH"] ?? ""].join(delimiter);
  const env = cleanEnvironment(home, { PATH: path, NODE_OPTIONS: "" });
  const { status, stderr } = spawnSync("sh", ["-c", command], { cwd: folder, encoding: "utf8", env });
  return { status, stderr };
}

const commands = Object.entries({ ...errorCodes, ...findingCodes }).flatMap(([code, { remedy }]) =>
  Array.from(remedy.matchAll(/`throughline ([^`]+)`/g), ([, rest = ""]) => [code, filledRemedy(rest, home)] as const),
);

/** A command may delete the session that the next one is about. */
async function seedAfter(command: string): Promise<void> {
  if (command.startsWith("delete ")) await seed(home, [{ key: remedyKey, drafts: [user("one")] }]);
}

describe("a remedy of the installed command", () => {
  it("names the command as it is started there", () => {
    const { status, stderr } = typed("throughline show nothing", home);
    const [, command = ""] = /`([^`]+)`/.exec(stderr) ?? [];
    expect([status, command]).toEqual([1, expect.stringMatching(/^throughline sessions/)]);
    expect(typed(command, home)).toMatchObject({ status: 0 });
  });

  it.each(commands)("of %s works: throughline %s", async (_code, rest) => {
    const { status, stderr } = typed(`throughline ${rest}`, home);
    expect([status, stderr]).toEqual([0, expect.not.stringContaining("error:")]);
    await seedAfter(rest);
  });
});

describe("a remedy in a checkout", () => {
  it.each(["npm run -s throughline --", "npm start --"])(
    "names the command that works there, after %s",
    { tags: ["slow"] },
    (start) => {
      const { status, stderr } = typed(`${start} show nothing`, root);
      expect([status, stderr]).toEqual([1, expect.stringContaining("`npm run -s throughline -- sessions")]);
    },
  );

  it.each(commands)("of %s works: npm run -s throughline -- %s", { tags: ["slow"] }, async (_code, rest) => {
    const { status, stderr } = typed(`npm run -s throughline -- ${rest}`, root);
    expect([status, stderr]).toEqual([0, expect.not.stringContaining("error:")]);
    await seedAfter(rest);
  });
});
