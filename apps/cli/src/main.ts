import process from "node:process";
import { ThroughlineError } from "@throughline/core";
import { reportError } from "./error-report.ts";
import { ownCommandName } from "./printed-commands.ts";
import { runCli } from "./run-cli.ts";
import { findUserHome, findWorkingDirectory } from "./starting-place.ts";

/** How long a command may take to end in good order after an interrupt. */
const graceMs = 2000;

const interrupt = new AbortController();
let interruptedExitCode: number | null = null;
let isService = false;

/** Asks the command to end; a second signal, or patience running out, ends it. */
function onSignal(exitCode: number): void {
  if (interrupt.signal.aborted) process.exit(exitCode);
  interrupt.abort();
  // A service ends its requests first; it knows itself how long they may take.
  if (isService) return;
  interruptedExitCode = exitCode;
  setTimeout(() => process.exit(exitCode), graceMs).unref();
}

/** Runs the command line of this process to its end and sets its exit code. */
export async function main(reinstallRemedy: string): Promise<void> {
  watchStreams();
  process.on("SIGINT", () => onSignal(130));
  process.on("SIGTERM", () => onSignal(143));
  process.on("SIGHUP", () => onSignal(129));
  const exitCode = await run(reinstallRemedy);
  process.exitCode = interruptedExitCode ?? exitCode;
}

/** A reader that has seen enough, as in `| head -1`, is no failure. */
function watchStreams(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      // A terminal that was closed: what is under way is being ended in good order, and nobody reads about it.
      if (error.code === "EIO" && interrupt.signal.aborted) return;
      // Requests are served on when nobody reads the log any more.
      if (isService) return;
      if (error.code === "EPIPE" || error.code === "ERR_STREAM_DESTROYED") process.exit(0);
      // A failed write cannot be undone: the output is cut, and its reader must get an error.
      const failure = new ThroughlineError(
        error.code === "ENOSPC" ? "STORE_FULL" : "STORE_IO",
        `The output cannot be written: ${error.message}`,
      );
      if (stream === process.stdout)
        process.stderr.write(
          reportError(failure, { isJson: process.argv.includes("--json"), isDebug: false, command: null }).text,
        );
      process.exit(1);
    });
  }
}

async function run(reinstallRemedy: string): Promise<number> {
  let workingDirectory: string;
  try {
    workingDirectory = findWorkingDirectory();
  } catch (error) {
    const { exitCode, text } = reportError(error, {
      isJson: process.argv.includes("--json"),
      isDebug: false,
      command: null,
    });
    process.stderr.write(text);
    return exitCode;
  }
  return await runCli({
    arguments: process.argv.slice(2),
    environment: process.env,
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    workingDirectory,
    userHome: findUserHome(workingDirectory),
    signal: interrupt.signal,
    reinstallRemedy,
    onService: () => (isService = true),
    commandName: () =>
      ownCommandName({
        environment: process.env,
        nodeArguments: process.execArgv,
        program: process.argv[1] ?? "throughline",
      }),
    self: { command: process.execPath, arguments: [...process.execArgv, process.argv[1] ?? ""] },
  });
}
