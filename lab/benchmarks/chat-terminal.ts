// The start of `throughline` in a folder over bare node, both in a terminal, one after the other in each round: to the first prompt, and
// until the conversation is open; and how long the screen
// of a chat takes for a frame at 1,000 tokens a second, over a terminal that throws the bytes away. Beside each time stands the time of the processor, which other work on the machine changes less.
// node --conditions=@throughline/source lab/benchmarks/chat-terminal.ts [rounds] [--check]
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { Writable } from "node:stream";
import { createHighlighter } from "../../apps/cli/src/chat/screen/highlight.ts";
import { MarkdownStream } from "../../apps/cli/src/chat/screen/markdown-stream.ts";
import { type Frame, Screen } from "../../apps/cli/src/chat/screen/screen.ts";
import { signsOf } from "../../apps/cli/src/chat/screen/signs.ts";
import { createStyles } from "../../apps/cli/src/chat/screen/styles.ts";
import { installBundle } from "../../tools/install-bundle.ts";

const [mostStartMs, mostFrameMs, mostBytes] = [150, 33, 25];
const rounds = Number(process.argv[2] ?? 15);
const cli = createRequire(new URL("../../apps/cli/package.json", import.meta.url));
const { spawn } = cli("@lydell/node-pty") as {
  spawn(
    file: string,
    args: readonly string[],
    options: object,
  ): {
    readonly pid: number;
    onData(take: (data: string) => void): void;
    onExit(take: () => void): void;
    kill(signal: string): void;
  };
};

interface Moment {
  readonly wallMs: number;
  /** The time of the processor over all threads; 0 where the system does not tell it. */
  readonly cpuMs: number;
}

interface Start {
  readonly prompt: Moment;
  /** The greeting stands there too, which the open conversation prints. */
  readonly open: Moment;
}

function cpuMs(pid: number): number {
  if (process.platform !== "linux") return 0;
  const tasks = readdirSync(`/proc/${pid}/task`);
  return tasks.reduce((sum, task) => sum + taskNs(`/proc/${pid}/task/${task}/schedstat`), 0) / 1e6;
}

/** Returns what a thread has taken; 0 for one that has ended since the threads were listed. */
function taskNs(path: string): number {
  try {
    return Number(readFileSync(path, "utf8").split(" ")[0]);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    return 0;
  }
}

/** Returns what a program in a terminal takes from its start to its prompt. */
async function toPrompt(args: readonly string[], folder: string): Promise<Start> {
  const environment = { PATH: process.env["PATH"], HOME: folder, THROUGHLINE_HOME: join(folder, "home") };
  const beganMs = performance.now();
  const child = spawn(process.execPath, args, {
    name: "xterm-256color",
    cols: 80,
    rows: 24,
    cwd: join(folder, "project"),
    env: environment,
  });
  let raw = "";
  let prompt: Moment | null = null;
  const shown = new Promise<Start>((resolve) =>
    child.onData((data) => {
      raw += data;
      if (!raw.includes("> ")) return;
      const now = { wallMs: performance.now() - beganMs, cpuMs: cpuMs(child.pid) };
      prompt ??= now;
      if (raw.includes("/help lists") || raw.includes("bare")) resolve({ prompt, open: now });
    }),
  );
  const ended = new Promise<void>((resolve) => child.onExit(resolve));
  const start = await shown;
  child.kill("SIGKILL");
  await ended;
  return start;
}

function share(sorted: readonly number[], part: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
}

async function measureStart(): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), "throughline-chat-terminal-"));
  try {
    for (const name of ["home", "project"]) mkdirSync(join(folder, name));
    const { bin } = await installBundle(join(folder, "program"));
    const bare = ["-e", "process.stdout.write('bare > '); setTimeout(() => {}, 60000)"];
    const ours = [bin, "--model", "offline"];
    const starts = { bare: [] as Start[], ours: [] as Start[] };
    // The first starts compile.
    for (const args of [bare, ours, ours]) await toPrompt(args, folder);
    for (let round = 0; round < rounds; round++) {
      starts.bare.push(await toPrompt(bare, folder));
      starts.ours.push(await toPrompt(ours, folder));
    }
    const middle = (of: (ours: Start, bare: Start) => number): number =>
      share(
        starts.ours.map((start, at) => of(start, starts.bare[at] ?? start)).toSorted((one, other) => one - other),
        0.5,
      );
    const overMs = middle((ours, bare) => ours.prompt.wallMs - bare.prompt.wallMs);
    const figures = {
      rounds,
      bareMs: middle((_, bare) => bare.prompt.wallMs),
      promptMs: middle((ours) => ours.prompt.wallMs),
      overMs,
      overCpuMs: middle((ours, bare) => ours.prompt.cpuMs - bare.prompt.cpuMs),
      openOverMs: middle((ours, bare) => ours.open.wallMs - bare.open.wallMs),
      openOverCpuMs: middle((ours, bare) => ours.open.cpuMs - bare.open.cpuMs),
      bareCpuMs: middle((_, bare) => bare.prompt.cpuMs),
    };
    process.stdout.write(`${JSON.stringify({ what: "start", ...figures, mark: mostStartMs })}\n`);
    return overMs <= mostStartMs;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

class CountingTerminal extends Writable {
  readonly isTTY = true;
  readonly columns = 80;
  readonly rows = 24;
  bytes = 0;

  override _write(chunk: string | Buffer, _encoding: string, done: () => void): void {
    this.bytes += Buffer.byteLength(chunk);
    done();
  }
}

const documents: Readonly<Record<string, string>> = {
  mixed:
    `# Title\n\n${"Some **bold** words and `code` in a sentence that goes on. ".repeat(20)}\n\n- one\n- two\n\n| a | b |\n| - | - |\n| 1 | 2 |\n\n`.repeat(
      8,
    ),
  "a fence of 600 lines": `\`\`\`ts\n${Array.from({ length: 600 }, (_, at) => `const value${at}: number = call("${at}"); // line`).join("\n")}\n\`\`\`\n`,
};

/** Streams four characters a token and 33 tokens a frame, and times each frame. */
async function measureFrames(): Promise<boolean> {
  const styles = createStyles(true);
  const highlighter = createHighlighter(styles);
  await highlighter.load("ts");
  let isGood = true;
  for (const [name, text] of Object.entries(documents)) {
    const terminal = new CountingTerminal({ decodeStrings: false });
    const stream = new MarkdownStream({ styles, signs: signsOf({}), hasLinks: false, highlighter });
    const draw = (): Frame => {
      const { finished, open } = stream.take({ columns: 80, mostRows: screen.mostRows - 2 });
      return { finished, rows: [...open, "", "> "], caret: { row: open.length + 1, column: 2 } };
    };
    const screen: Screen = new Screen(terminal, { draw, frameMs: 0 });
    const [frames, spent]: [number[], number[]] = [[], []];
    for (let at = 0; at < text.length; at += 4 * 33) {
      for (let piece = at; piece < Math.min(text.length, at + 4 * 33); piece += 4)
        stream.push(text.slice(piece, piece + 4));
      const [beganMs, before] = [performance.now(), process.cpuUsage()];
      screen.flush();
      const { user, system } = process.cpuUsage(before);
      frames.push(performance.now() - beganMs);
      spent.push((user + system) / 1000);
    }
    const [sorted = [], sortedCpu = []] = [frames, spent].map((each) => each.toSorted((one, other) => one - other));
    const bytesAToken = terminal.bytes / (text.length / 4);
    const figures = {
      frames: frames.length,
      p50: share(sorted, 0.5),
      p99: share(sorted, 0.99),
      most: sorted.at(-1),
      p50Cpu: share(sortedCpu, 0.5),
      p99Cpu: share(sortedCpu, 0.99),
    };
    process.stdout.write(
      `${JSON.stringify({ what: "frames", name, ...figures, bytesAToken, marks: [mostFrameMs, mostBytes] })}\n`,
    );
    isGood &&= figures.p99 <= mostFrameMs && bytesAToken <= mostBytes;
  }
  return isGood;
}

const isGood = [await measureFrames(), await measureStart()].every(Boolean);
if (process.argv.includes("--check") && !isGood) process.exitCode = 1;
