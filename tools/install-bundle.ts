import { cpSync, mkdirSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { bundleCli, externalPackages } from "./bundle-cli.ts";

const packageRoot = join(import.meta.dirname, "../apps/cli");

/** Bundles the command line and installs it in a folder as npm would; gives the file that starts it. */
export async function installBundle(folder: string): Promise<{ readonly bin: string }> {
  rmSync(join(folder, "node_modules"), { recursive: true, force: true });
  const installed = join(folder, "node_modules/@throughline/cli");
  mkdirSync(installed, { recursive: true });
  cpSync(join(packageRoot, "bin"), join(installed, "bin"), { recursive: true });
  await bundleCli(packageRoot, join(installed, "dist"));
  const manifest = JSON.parse(readFileSync(join(packageRoot, "package.json"), "utf8")) as object;
  // Without the condition for sources, which tests set for every process they start.
  writeFileSync(join(installed, "package.json"), JSON.stringify({ ...manifest, exports: "./dist/main.js" }));
  for (const name of externalPackages) {
    const link = join(folder, "node_modules", name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(realpathSync(join(packageRoot, "node_modules", name)), link);
  }
  return { bin: join(installed, "bin/throughline.js") };
}
