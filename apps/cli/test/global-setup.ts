import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { installBundle } from "../../../tools/install-bundle.ts";

declare module "vitest" {
  export interface ProvidedContext {
    /** The program of an installed command line, which the processes of the tests run. */
    readonly cliProgram: string;
  }
}

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
  const { bin } = await installBundle(folder);
  project.provide("cliProgram", bin);
  return () => rmSync(folder, { recursive: true, force: true });
}
