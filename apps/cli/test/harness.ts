import { spawn } from "node:child_process";
import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough, Readable, Writable } from "node:stream";
import { sessionRef } from "@throughline/core";
import type { RecordDraft, SessionEntry, SessionStore } from "@throughline/core";
import { inject } from "vitest";
import { openStore } from "../src/open-store.ts";
import { runCli } from "../src/run-cli.ts";

/** The program that the processes of the tests run: the bundle that the global setup has installed. */
export const binPath: string = inject("cliProgram");
export const sourceCondition = "--conditions=@throughline/source";

/** What a run left behind. */
export interface Run {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly stdin?: string | Uint8Array;
  readonly environment?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Whether the streams pretend to be a terminal of 80 columns. Only in this process. */
  readonly isTerminal?: boolean;
  /** An interrupt. Only in this process. */
  readonly signal?: AbortSignal;
  /** Told what is written to stdout. Only in this process. */
  readonly onStdout?: (chunk: Buffer) => void;
  /** Told what is written to stderr. Only in this process. */
  readonly onStderr?: (chunk: Buffer) => void;
}

/** A directory for one test file, gone afterwards. */
export function temporaryDirectory(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), "throughline-cli-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** Variables that name folders of Throughline and of other programs, and `NO_COLOR`. */
const ofThisMachine = /^(?:THROUGHLINE|OPENCLAW|CLAUDE|CODEX|GEMINI|QWEN|KIMI|OPENCODE|COPILOT|XDG)_|^NO_COLOR$/;

/** What a command finds in its environment: this machine's own settings and transcripts must not reach it. */
export function cleanEnvironment(home: string, extra: Readonly<Record<string, string>> = {}): Record<string, string> {
  const own = Object.entries(process.env).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && !ofThisMachine.test(entry[0]),
  );
  return { ...Object.fromEntries(own), HOME: home, THROUGHLINE_HOME: home, ...extra };
}

/** Starts the command line in a process of its own. */
export function start(home: string, args: readonly string[], options: RunOptions = {}): ChildProcessWithoutNullStreams {
  return spawn(process.execPath, [sourceCondition, binPath, ...args], {
    cwd: options.cwd ?? home,
    env: cleanEnvironment(home, options.environment),
    stdio: "pipe",
  });
}

/** Runs it to its end. */
export async function runChild(home: string, args: readonly string[], options: RunOptions = {}): Promise<Run> {
  const child = start(home, args, options);
  const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)];
  // A command that does not read its input closes it.
  child.stdin.on("error", () => {});
  child.stdin.end(options.stdin ?? "");
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", resolve);
  });
  return { code, stdout: stdout(), stderr: stderr() };
}

/** Runs it in this process: the same code without the start of a process. */
export async function runHere(home: string, args: readonly string[], options: RunOptions = {}): Promise<Run> {
  const chunks = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
  const stream = (name: "stdout" | "stderr"): Writable & { isTTY?: boolean; columns?: number } => {
    const writable = new Writable({
      write(chunk: Buffer, _encoding, done) {
        chunks[name].push(chunk);
        (name === "stdout" ? options.onStdout : options.onStderr)?.(chunk);
        done();
      },
    });
    return options.isTerminal === true ? Object.assign(writable, { isTTY: true, columns: 80 }) : writable;
  };
  const code = await runCli({
    arguments: args,
    environment: { THROUGHLINE_HOME: home, ...options.environment },
    stdin: options.stdin === undefined ? new PassThrough().end() : Readable.from([Buffer.from(options.stdin)]),
    stdout: stream("stdout"),
    stderr: stream("stderr"),
    workingDirectory: options.cwd ?? home,
    userHome: home,
    signal: options.signal ?? new AbortController().signal,
    self: { command: process.execPath, arguments: [sourceCondition, binPath] },
  });
  return {
    code,
    stdout: Buffer.concat(chunks.stdout).toString("utf8"),
    stderr: Buffer.concat(chunks.stderr).toString("utf8"),
  };
}

/** The JSON objects of an output; fails on a line that is none. */
export function objects(text: string): Record<string, unknown>[] {
  const lines = text.split("\n");
  if (lines.pop() !== "") throw new Error(`the output does not end with a line feed: ${text.slice(-200)}`);
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

/** What the person said in a session, as the command line shows it. */
export async function saidIn(home: string, key: string): Promise<unknown[]> {
  const { stdout } = await runHere(home, ["show", key, "--json", "--role", "user", "--quiet"]);
  return objects(stdout).flatMap(({ record }) =>
    record === undefined ? [] : [(record as { message: { content: unknown } }).message.content],
  );
}

/** A session to be made. */
export interface SeedSession {
  readonly key: string;
  readonly entry?: Partial<SessionEntry>;
  readonly drafts: readonly RecordDraft[];
}

/**
 * Fills a store; the default one of the home unless another is named. Each session is of a later millisecond than the
 * one before, so that the newest first is one order only.
 */
export async function seed(
  home: string,
  sessions: readonly SeedSession[],
  storeUrl = `sqlite:${join(home, "sessions.db")}`,
): Promise<void> {
  await using store: SessionStore = await openStore(storeUrl, { workingDirectory: home, create: true });
  for (const { key, entry, drafts } of sessions) {
    const ref = sessionRef({ key });
    await store.save(ref, { sessionId: `id-${key.replace(/[^a-z0-9]+/gi, "-")}`, ...entry }, { ifRevision: null });
    await store.append(ref, drafts);
    const doneAtMs = Date.now();
    while (Date.now() === doneAtMs) await new Promise((resolve) => setImmediate(resolve));
  }
}

/** The body of a request that a provider of the tests got. */
export function sentBody(request: { readonly body: unknown } | undefined): Readonly<Record<string, unknown>> {
  return (request?.body ?? {}) as Readonly<Record<string, unknown>>;
}

export function user(text: string): RecordDraft {
  return { type: "message", message: { role: "user", content: text } };
}

export function assistant(text: string, usage: Readonly<Record<string, number>> | null = null): RecordDraft {
  const message = {
    role: "assistant",
    content: [{ type: "text", text }],
    provider: "example",
    model: "model-1",
    stopReason: "stop",
  };
  return { type: "message", message: usage === null ? message : { ...message, usage } };
}

function collect(stream: Readable): () => string {
  const chunks: Buffer[] = [];
  stream.on("data", (chunk: Buffer) => chunks.push(chunk));
  return () => Buffer.concat(chunks).toString("utf8");
}
