import { enableCompileCache } from "node:module";

enableCompileCache();

/** Runs the command line; `reinstallRemedy` says how this installation is repaired. */
export async function start(reinstallRemedy) {
  // By its own name, so that the export condition decides: sources in a checkout, the bundle once installed.
  const { main } = await import("@throughline/cli");
  await main(reinstallRemedy);
}
