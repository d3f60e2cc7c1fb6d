import { spawn } from "node:child_process";
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const here = import.meta.dirname;
let folder: string;

/** A folder with this package and what it depends on, and none of the SDKs, as after a plain install. */
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "throughline-models-"));
  const scope = join(folder, "node_modules", "@throughline");
  await mkdir(scope, { recursive: true });
  await cp(join(here, "..", "src"), join(folder, "src"), { recursive: true });
  for (const name of ["core", "tokens"]) await symlink(join(here, "..", "..", name), join(scope, name), "dir");
  await writeFile(join(folder, "package.json"), '{"type":"module"}');
});
afterAll(() => rm(folder, { recursive: true, force: true }));

function run(script: string): Promise<string> {
  const child = spawn(process.execPath, ["--input-type=module", "--no-warnings", "-e", script], { cwd: folder });
  return new Promise((resolve, reject) => {
    let output = "";
    child.stdout.on("data", (data) => (output += String(data)));
    child.stderr.on("data", (data) => (output += String(data)));
    child.on("error", reject);
    child.on("close", () => resolve(output));
  });
}

const ask = (factory: string): string => `
  import { ${factory} } from "./src/${factory}.ts";
  const { chat } = ${factory}("m", { apiKey: "k" });
  const error = await chat.chat({ modelId: "m", system: null, messages: [] }).catch((caught) => caught);
  console.log(JSON.stringify([error.code, error.message, error.remedy, error.retryable]));
`;

describe("without the package of the provider", () => {
  for (const [factory, name] of [
    ["anthropic", "@anthropic-ai/sdk"],
    ["openai", "openai"],
    ["ollama", "ollama"],
  ] as const) {
    it(`${factory}() makes a model, which says at the first call what to install`, { tags: ["slow"] }, async () => {
      expect(JSON.parse(await run(ask(factory)))).toEqual([
        "MODEL_SDK_MISSING",
        `The package ${name} is not installed.`,
        `Install it: npm install ${name}`,
        false,
      ]);
    });
  }

  it("the offline rules answer all the same", async () => {
    const script = `
      import { createModel } from "./src/index.ts";
      const messages = [{ role: "user", content: "hello" }];
      const { chat } = createModel({ provider: "offline", modelId: "m" });
      const { message } = await chat.chat({ modelId: "m", system: null, messages });
      console.log(message.content[0].text);
    `;
    expect(await run(script)).toMatch(/^\[offline rules, not a language model\] Hello\./);
  });
});
