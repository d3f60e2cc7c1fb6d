import { dirname, join } from "node:path";
import { isThere } from "@throughline/config/internal";
import { ThroughlineError } from "@throughline/core";

/** Returns the folder with the built page, which lies beside the program; null in a checkout that was not built. */
export function findPageFolder(from: string = import.meta.dirname): string | null {
  // The program is one file in `dist`, a chunk below it, or a source: the manifest is above each of them.
  let root = from;
  while (!isThere(join(root, "package.json")) && dirname(root) !== root) root = dirname(root);
  const folder = join(root, "dist/inspect");
  return isThere(join(folder, "files.json")) ? folder : null;
}

/** @throws {ThroughlineError} INSTALLATION_DAMAGED, CAPABILITY_UNSUPPORTED in a checkout without a build */
export function pageFolder(from: string = import.meta.dirname): string {
  const folder = findPageFolder(from);
  if (folder !== null) return folder;
  const isCheckout = from.endsWith(join("src", "page"));
  if (!isCheckout)
    throw new ThroughlineError("INSTALLATION_DAMAGED", "The files of the page are missing.", {
      outcome: "not-applied",
    });
  throw new ThroughlineError("CAPABILITY_UNSUPPORTED", "The page is not built: npm run build.", {
    outcome: "not-applied",
    remedy: "Build it in the checkout, and run the command again: `npm run build`.",
  });
}
