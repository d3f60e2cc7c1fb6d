// `throughline`, pi, Claude Code, Codex and opencode on a terminal of tmux, each with the same answer of a provider on this machine:
// milliseconds to the first screen that stands still, bytes that the program writes for a token of four characters, and the screens
// themselves at 80x24 and 120x40, as files in the folder. Each program has an empty home. A program that is not installed, or that does
// not show the answer, is skipped with the reason. Codex takes keys only when its own server has started, so Enter waits for the question. `--install` installs the agents into the folder, from the npm registry.
// node --conditions=@throughline/source lab/terminal-agents.ts [--install] [--only throughline,pi] FOLDER
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { createProviderSimulator } from "../packages/testing/src/index.ts";
import { installBundle } from "../tools/install-bundle.ts";
import { installAgents } from "./agent-programs.ts";
import { type AgentProgram, agentProgramList } from "./resumed-agents/programs.ts";

const { values, positionals } = parseArgs({
  options: { install: { type: "boolean" }, only: { type: "string" } },
  allowPositionals: true,
});
const [folder] = positionals;
if (folder === undefined) throw new Error("A folder for the programs and the screens is needed.");
const sizes = [
  [80, 24],
  [120, 40],
] as const;
const lastWord = "lastword";
const question = "Where does the retry live?";
const answer = `# Where the retry lives

The **client** retries a request that failed with \`429\` or \`5xx\`. ${"It waits for the time that the server states, and doubles its own wait after that. ".repeat(3)}

1. \`send\` builds the request.
2. \`retry\` waits and sends it again, three times at most.

\`\`\`ts
export async function retry<T>(send: () => Promise<T>): Promise<T> {
${Array.from({ length: 20 }, (_, at) => `  await attempt(${at}, send); // number ${at}`).join("\n")}
  return send();
}
\`\`\`

| file | what it holds |
| --- | --- |
| src/client.ts | the request and its timeout |
| src/retry.ts | the waits |

${lastWord}
`;

interface Started {
  readonly name: string;
  readonly words: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

/** The settings that a person would have given at the first start. */
function setUpScreen(program: AgentProgram, home: string, project: string): void {
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text, { flag: "a" });
  };
  if (program.program === "claude") {
    const projects = { [project]: { hasTrustDialogAccepted: true, hasCompletedProjectOnboarding: true } };
    write(join(home, ".claude.json"), JSON.stringify({ hasCompletedOnboarding: true, theme: "dark", projects }));
  }
  if (program.program === "codex")
    write(join(home, ".codex/config.toml"), `\n[projects."${project}"]\ntrust_level = "trusted"\n`);
}

function startOf(program: AgentProgram, bin: string, place: { url: string; home: string; project: string }): Started {
  const environment = program.setUp(place);
  setUpScreen(program, place.home, place.project);
  const asked = program
    .ask("-p")
    .filter((word) => !["-p", "exec", "--skip-git-repo-check", "run", "--"].includes(word));
  const words = [bin, ...asked.filter((word) => !word.startsWith("--allowedTools"))];
  return { name: program.name, words, environment };
}

/** A server of tmux with one window. */
class Tmux {
  readonly #socket: string;

  constructor(socket: string) {
    this.#socket = socket;
  }

  run(...args: readonly string[]): string {
    return execFileSync("tmux", ["-u", "-S", this.#socket, ...args], { encoding: "utf8" });
  }

  start(
    { words, environment }: Started,
    [columns, rows]: readonly [number, number],
    cwd: string,
    bytesPath: string,
  ): void {
    const quoted = (word: string): string => `'${word.replaceAll("'", String.raw`'\''`)}'`;
    const path = `${dirname(process.execPath)}:${process.env["PATH"] ?? ""}`;
    const set = Object.entries({ PATH: path, TERM: "tmux-256color", LANG: "C.UTF-8", ...environment });
    const command = ["env", "-i", ...set.map(([name, value]) => quoted(`${name}=${value}`)), ...words.map(quoted)];
    const size = ["-x", String(columns), "-y", String(rows)];
    // The window waits until its bytes are kept, so that none is missed.
    this.run("-f", "/dev/null", "new-session", "-d", ...size, "-c", cwd, `read go; exec ${command.join(" ")}`);
    this.run("pipe-pane", "-O", `cat > ${quoted(bytesPath)}`);
    this.run("send-keys", "Enter");
  }

  screen(): string {
    return this.run("capture-pane", "-p").replace(/\s+$/, "");
  }

  /** Returns the milliseconds until the screen holds what is wanted and stood still for half a second; null after a minute. */
  async settled(wanted: RegExp): Promise<number | null> {
    const beganMs = performance.now();
    let [last, sinceMs] = ["", beganMs];
    while (performance.now() - beganMs < 60_000) {
      const shown = this.screen();
      if (shown !== last) [last, sinceMs] = [shown, performance.now()];
      if (wanted.test(shown) && performance.now() - sinceMs > 500) return sinceMs - beganMs;
      await sleep(20);
    }
    return null;
  }

  end(): void {
    spawnSync("tmux", ["-S", this.#socket, "kill-server"]);
  }
}

type Outcome = { readonly startMs: number; readonly bytesAToken: number } | { readonly skipped: string };

async function show(name: string, size: readonly [number, number], make: (place: Place) => Started): Promise<Outcome> {
  const own = mkdtempSync(join(folder ?? "", "run-"));
  const [home, project] = [join(own, "home"), join(own, "project")];
  for (const each of [home, project]) mkdirSync(each);
  const provider = createProviderSimulator({ fallback: () => ({ kind: "answer", content: answer, eventDelayMs: 5 }) });
  await provider.start();
  const tmux = new Tmux(join(own, "tmux"));
  const keep = (what: string): void =>
    writeFileSync(join(folder ?? "", `${name}-${size.join("x")}-${what}.txt`), `${tmux.screen()}\n`);
  const bytesPath = join(own, "bytes");
  try {
    const started = make({ url: provider.url, home, project });
    tmux.start({ ...started, environment: { HOME: home, ...started.environment } }, size, project, bytesPath);
    const startMs = await tmux.settled(/\S/);
    await sleep(1000);
    keep("start");
    tmux.run("send-keys", "-l", question);
    await tmux.settled(new RegExp(question.replace("?", "")));
    const before = statSync(bytesPath).size;
    tmux.run("send-keys", "Enter");
    const isShown = (await tmux.settled(new RegExp(lastWord))) !== null;
    keep("answer");
    if (startMs === null || !isShown) return { skipped: "the answer did not come; see the screen" };
    return { startMs, bytesAToken: (statSync(bytesPath).size - before) / (answer.length / 4) };
  } finally {
    tmux.end();
    await provider.close();
    endServersOf(home);
    rmSync(own, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }
}

/** Ends the servers that a program installed into its home and left running, as Codex does. */
function endServersOf(home: string): void {
  const { stdout } = spawnSync("ps", ["-eo", "pid=,args="], { encoding: "utf8" });
  for (const line of stdout.split("\n"))
    if (line.includes(`${home}/`)) process.kill(Number(line.trim().split(" ", 1)[0]), "SIGKILL");
}

interface Place {
  readonly url: string;
  readonly home: string;
  readonly project: string;
}

mkdirSync(folder, { recursive: true });
const compared = ["pi", "claude", "codex", "opencode"];
const programs = agentProgramList.filter(({ program }) => compared.includes(program));
if (values.install === true)
  installAgents(folder, Object.fromEntries(programs.map(({ packageName, version }) => [packageName, version])));
const { bin } = await installBundle(join(folder, "throughline"));
const ours = ({ url, home }: Place): Started => ({
  name: "throughline",
  words: [process.execPath, bin, "--model", "openai/gpt-4.1"],
  environment: { THROUGHLINE_HOME: join(home, ".throughline"), OPENAI_API_KEY: "any", OPENAI_BASE_URL: `${url}/v1` },
});
const all: readonly (readonly [name: string, version: string, path: string, make: (place: Place) => Started])[] = [
  ["throughline", "this checkout", bin, ours],
  ...programs.map((program) => {
    const path = join(folder, "node_modules/.bin", program.program);
    return [program.program, program.version, path, (place: Place) => startOf(program, path, place)] as const;
  }),
];
process.stdout.write(
  "| program | version | size | first still screen | bytes a token |\n| --- | --- | --- | --- | --- |\n",
);
for (const [name, version, path, make] of all) {
  if (values.only !== undefined && !values.only.split(",").includes(name)) continue;
  for (const size of sizes) {
    const outcome = existsSync(path) ? await show(name, size, make) : { skipped: "it is not installed" };
    const cells =
      "skipped" in outcome
        ? [outcome.skipped, ""]
        : [`${Math.round(outcome.startMs)} ms`, outcome.bytesAToken.toFixed(1)];
    process.stdout.write(`| ${[name, version, size.join("x"), ...cells].join(" | ")} |\n`);
  }
}
