// Imports a folder as the command line does and ends itself with SIGKILL in the middle: run by large-imports.slow.test.ts.
// Arguments: the home, the folder, and the number of the progress report at which the process ends.
import { PassThrough, Writable } from "node:stream";
import process from "node:process";
import { runCli } from "../src/run-cli.ts";

const [home = "", source = "", dieAt = ""] = process.argv.slice(2);
let reports = 0;
// Progress is written to a terminal only. The write is synchronous: nothing is stored between it and the signal.
const stderr = new Writable({
  write(_chunk, _encoding, done) {
    reports += 1;
    if (reports === Number(dieAt)) process.kill(process.pid, "SIGKILL");
    done();
  },
});
await runCli({
  arguments: ["import", source],
  environment: { THROUGHLINE_HOME: home },
  stdin: new PassThrough().end(),
  stdout: new PassThrough().resume(),
  stderr: Object.assign(stderr, { isTTY: true }),
  workingDirectory: home,
  userHome: home,
  signal: new AbortController().signal,
  self: { command: process.execPath, arguments: [] },
});
