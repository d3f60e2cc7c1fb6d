import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { bundleCli, externalPackages } from "../../../tools/bundle-cli.ts";

declare module "vitest" {
  export interface ProvidedContext {
    /** The program of an installed command line, which the processes of the tests run. */
    readonly cliProgram: string;
  }
}

const packageRoot = join(import.meta.dirname, "..");

/**
 * Installs the bundled command line in a folder, once for the whole run: its start costs a third of the time that a
 * start from 400 source files costs, and it is what people run.
 */
export async function setup(project: {
  readonly provide: (key: "cliProgram", value: string) => void;
}): Promise<() => void> {
  const folder = mkdtempSync(join(tmpdir(), "throughline-installed-"));
  // Some tests run it as another user.
  chmodSync(folder, 0o755);
  const installed = join(folder, "node_modules/@throughline/cli");
  mkdirSync(installed, { recursive: true });
  cpSync(join(packageRoot, "bin"), join(installed, "bin"), { recursive: true });
  await bundleCli(packageRoot, join(installed, "dist"));
  const manifest = JSON.parse(readFileSync(join(packageRoot, "package.json"), "utf8")) as object;
  // Without the condition for sources, which the tests set for every process they start.
  writeFileSync(join(installed, "package.json"), JSON.stringify({ ...manifest, exports: "./dist/main.js" }));
  for (const name of externalPackages) {
    const link = join(folder, "node_modules", name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(realpathSync(join(packageRoot, "node_modules", name)), link);
  }
  project.provide("cliProgram", join(installed, "bin/throughline.js"));
  return () => rmSync(folder, { recursive: true, force: true });
}
