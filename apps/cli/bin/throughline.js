#!/usr/bin/env node
// Plain JavaScript without new syntax: an old Node must get as far as the message below.
import process from "node:process";

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < 22 || (major === 22 && minor < 18)) {
  process.stderr.write(
    `throughline needs Node 22.18 or newer; this is ${process.versions.node}. Install a newer Node and run the command again.\n`,
  );
  process.exit(2);
}

const { enableCompileCache } = await import("node:module");
enableCompileCache();
// By its own name, so that the export condition decides: sources in a checkout, the bundle once installed.
await import("@throughline/cli");
