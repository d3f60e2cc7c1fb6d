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
  import("./start.js")
    .then(function (module) {
      return module.start(reinstallRemedy());
    })
    .catch(function (error) {
      // What is thrown here was thrown while the program's own files were loaded.
      const message = "The program cannot be loaded: " + String(error && error.message).split("\n")[0];
      const remedy = reinstallRemedy();
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

/** How this installation is repaired. Here, because this file is all that a damaged installation surely has. */
function reinstallRemedy() {
  const fs = process.getBuiltinModule("node:fs");
  // Sources are in a checkout only.
  if (fs.existsSync(new URL("../src/main.ts", import.meta.url)))
    return "Install its packages again: \u0060npm run reinstall\u0060.";
  const name = JSON.parse(fs.readFileSync(new URL("../package.json", import.meta.url), "utf8")).name;
  return "Install it again: npm install --global " + name + ", or npm install where it is a dependency.";
}
