import { fstatSync } from "node:fs";
import process from "node:process";
import { findUserHome, findWorkingDirectory } from "@throughline/config/internal";
import { ThroughlineError } from "@throughline/core";
import { reportError } from "./error-report.ts";
import { ownCommandName } from "./printed-commands.ts";
import { runCli } from "./run-cli.ts";

/** Limits the time for an orderly end after an interrupt, in milliseconds. */
const graceMs = 2000;

const interrupt = new AbortController();
let interruptedExitCode: number | null = null;
let isService = false;

/** Requests the command to end. A second signal, or the end of the grace period, exits at once. */
function onSignal(exitCode: number): void {
  if (interrupt.signal.aborted) process.exit(exitCode);
  interrupt.abort();
  // A service ends its running requests first, under its own time limits.
  if (isService) return;
  interruptedExitCode = exitCode;
  setTimeout(() => process.exit(exitCode), graceMs).unref();
}

export async function main(reinstallRemedy: string): Promise<void> {
  watchStreams();
  process.on("SIGINT", () => onSignal(130));
  process.on("SIGTERM", () => onSignal(143));
  process.on("SIGHUP", () => onSignal(129));
  const exitCode = await run(reinstallRemedy);
  process.exitCode = interruptedExitCode ?? exitCode;
}

/** A reader that closes early, as in `| head -1`, is no failure. */
function watchStreams(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      // The terminal was closed. The running work ends in order, and no reader is left.
      if (error.code === "EIO" && interrupt.signal.aborted) return;
      // A service continues when its log has no reader.
      if (isService) return;
      if (error.code === "EPIPE" || error.code === "ERR_STREAM_DESTROYED") process.exit(0);
      // A failed write cannot be undone, so the output is incomplete and its reader must get an error.
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
    terminalName,
    ...(process.platform === "win32" ? {} : { stopProcess }),
    interrupt: () => onSignal(130),
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

/** A process that runs for this long after the signal was not stopped by it. */
const notStoppedMs = 100;

/** The whole job stops, or a program that started this one would read the keys meanwhile. */
function stopProcess(onContinue: () => void): void {
  const resume = (): void => {
    clearTimeout(timer);
    process.off("SIGCONT", resume);
    onContinue();
  };
  process.on("SIGCONT", resume);
  process.kill(0, "SIGTSTP");
  // A signal alone keeps no process running. And where no shell could continue this job, the system does not stop it.
  const timer = setTimeout(resume, notStoppedMs);
}

/** Each terminal is a device of its own. Without a terminal, commands of one shell or script belong together. */
function terminalName(): string {
  // Loaded on use: the module brings sockets, which no other part of a start needs.
  const { isatty } = process.getBuiltinModule("node:tty");
  const terminal = [0, 1, 2].find((descriptor) => isatty(descriptor));
  // Windows gives its consoles no device number, and its terminal names each tab.
  if (terminal !== undefined && process.platform !== "win32") return `terminal ${fstatSync(terminal).rdev}`;
  return process.env["WT_SESSION"] ?? `process ${process.ppid}`;
}
