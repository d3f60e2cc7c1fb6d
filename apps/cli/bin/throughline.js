#!/usr/bin/env node
// Old syntax on purpose, and no import: a Node that is too old must get as far as the message below.
const version = process.versions.node.split(".").map(Number);
if (version[0] < 22 || (version[0] === 22 && version[1] < 18)) {
  process.stderr.write(
    "throughline needs Node 22.18 or newer; this is " +
      process.versions.node +
      ". Install a newer Node and run the command again.\n",
  );
  process.exitCode = 2;
} else {
  import("./start.js");
}
