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
  import("./start.js").catch(function (error) {
    // What is thrown here was thrown while the program's own files were loaded.
    const message = "The program cannot be loaded: " + String(error && error.message).split("\n")[0];
    const manifest = process
      .getBuiltinModule("node:fs")
      .readFileSync(new URL("../package.json", import.meta.url), "utf8");
    const name = JSON.parse(manifest).name;
    const remedy = "Install it again: npm install --global " + name + ", or npm install where it is a dependency.";
    const failure = { kind: "error", code: "INSTALLATION_DAMAGED", message: message, remedy: remedy };
    const rest = { retryable: false, outcome: "not-applied", details: { name: error && error.name } };
    process.stderr.write(
      process.argv.indexOf("--json") === -1
        ? "error: " + message + "\n" + remedy + "\n"
        : JSON.stringify(Object.assign(failure, rest)) + "\n",
    );
    process.exitCode = 1;
  });
}
