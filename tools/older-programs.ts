// An older program on stores that the present one wrote, and the other way round: both read the same records, build a valid
// context, write, redact and purge, and neither finds anything wrong with what the other left, also when it was killed.
// node --conditions=@throughline/source tools/older-programs.ts [--commit 31a8733] [--stores jsonl,sqlite] [--kills 20]
// PostgreSQL where THROUGHLINE_POSTGRES_URL names an empty database.
import { execFileSync, spawn } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { isDeepStrictEqual, parseArgs } from "node:util";
import { repositoryRoot } from "./find-files.ts";

/** A store in a process of a checkout. */
interface Program {
  readonly name: string;
  /** Sends one operation, and gives what came of it. */
  ask(name: string, ...args: readonly unknown[]): Promise<unknown>;
  /** As `ask`; an error is a problem. */
  do(name: string, ...args: readonly unknown[]): Promise<unknown>;
  /** Sends all at once and kills the process when so many are answered. Gives how many were, those on their way included. */
  killAfter(answers: number, asked: readonly (readonly unknown[])[]): Promise<number>;
  close(): Promise<void>;
}

interface Tally {
  operations: number;
  kills: number;
  records: number;
  /** Operations that the older program refused because the store has a newer version. */
  refused: number;
  readonly problems: string[];
}

const key = (name: string): string => `agent:main:older:${name}`;
const nodeFlags = ["--conditions=@throughline/source", "--no-warnings"];

function openProgram(
  name: string,
  folder: string,
  place: readonly [scheme: string, place: string, schema: string],
  tally: Tally,
): Program {
  const child = spawn(process.execPath, [...nodeFlags, join(folder, "tools/older-child.ts"), ...place], {
    cwd: folder,
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const ask = async (...asked: readonly unknown[]): Promise<unknown> => {
    tally.operations += 1;
    child.stdin.write(`${JSON.stringify(asked)}\n`);
    const { value, done } = await lines.next();
    if (done === true) throw new Error(`The ${name} program ended at ${JSON.stringify(asked).slice(0, 200)}.`);
    return JSON.parse(value) as unknown;
  };
  return {
    name,
    ask,
    async do(...asked) {
      const answer = (await ask(...asked)) as { readonly value?: unknown; readonly error?: string };
      if (answer.error !== undefined) tally.problems.push(`${name}: ${String(asked[0])}: ${answer.error}`);
      return answer.value;
    },
    async killAfter(answers, asked) {
      // What it has not read when it is killed is lost with it.
      child.stdin.on("error", () => undefined);
      child.stdin.write(asked.map((each) => `${JSON.stringify(each)}\n`).join(""));
      let answered = 0;
      for await (const line of lines) {
        answered += 1;
        const { error } = JSON.parse(line) as { readonly error?: string };
        if (error !== undefined) tally.problems.push(`${name}: ${error}`);
        if (answered === answers) child.kill("SIGKILL");
      }
      await ended;
      if (child.signalCode !== "SIGKILL") tally.problems.push(`${name}: it ended before it was killed`);
      tally.operations += answered;
      tally.kills += 1;
      return answered;
    },
    async close() {
      child.stdin.end();
      await ended;
    },
  };
}

/** Every kind of record, as the format document shows it; two that only later programs know, one of them critical. */
function everyKind(): readonly Readonly<Record<string, unknown>>[] {
  const text = readFileSync(join(repositoryRoot, "docs/formats/records.md"), "utf8");
  const block = /### One line of each\n+```jsonl\n([^`]*)```/.exec(text)?.[1] ?? "";
  const records = block
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>);
  if (records.length < 20) throw new Error("docs/formats/records.md has no line of each kind.");
  return records.filter(({ type }) => type !== "session");
}

const message = (id: string, content: string) => ({ type: "message", id, message: { role: "user", content } });
const future = (critical: boolean) => ({
  type: "custom",
  customType: "throughline.future",
  v: 1,
  critical,
  data: { x: 1 },
});
const turn = (fence: number) => ({ action: "open", turnId: `t${fence}`, owner: "kit", leaseUntilMs: 1, fence });
const partial = {
  v: 1,
  sessionId: "kinds",
  turnId: "t1",
  fence: 1,
  step: 1,
  attempt: 0,
  afterSeq: 1,
  provider: null,
  api: null,
  model: null,
  text: "open-reply",
  updatedMs: 1,
};

/** Both read the same, find nothing wrong, and build a context that Anthropic takes. */
async function compare(programs: readonly Program[], names: readonly string[], tally: Tally): Promise<void> {
  for (const name of names) {
    const [one, two] = await Promise.all(programs.map((program) => program.do("records", key(name))));
    const records = (each: unknown) => (each as readonly Readonly<Record<string, unknown>>[]).map(withoutColumns);
    tally.records += records(one).length;
    if (!isDeepStrictEqual(records(one), records(two))) tally.problems.push(`${name}: the records differ`);
    const states = await Promise.all(programs.map((program) => program.do("load", key(name))));
    if (!isDeepStrictEqual(states[0], states[1]))
      tally.problems.push(`${name}: ${states.map((state) => JSON.stringify(state)).join(" instead of ")}`);
    for (const program of programs) {
      const context = (await program.do("context", key(name))) as { readonly violations: readonly unknown[] };
      if (context.violations.length > 0) tally.problems.push(`${program.name}: ${name}: an invalid context`);
    }
  }
  for (const program of programs) {
    const findings = (await program.do("verify")) as readonly { readonly severity: string; readonly code: string }[];
    for (const { severity, code } of findings)
      if (severity !== "info") tally.problems.push(`${program.name}: finding ${code}`);
  }
}

/** Columns that older programs do not give. */
function withoutColumns({ role: _role, toolName: _toolName, ...rest }: Readonly<Record<string, unknown>>): object {
  return rest;
}

/** `first` writes all it can, `second` opens it, reads, writes and removes, and `first` reads what came of it. */
async function life(
  [first, second]: readonly [Program, Program],
  { isNewer, mayRefuse }: { readonly isNewer: boolean; readonly mayRefuse: boolean },
  tally: Tally,
): Promise<void> {
  const kinds = everyKind();
  await first.do(
    "save",
    key("kinds"),
    { sessionId: "kinds", title: "A title", titleBy: "rules" },
    { ifRevision: null },
  );
  // All in one append: a leaf that rewinds would let the next one begin elsewhere.
  if (isNewer) await first.do("append", key("kinds"), kinds);
  else await first.do("append", key("kinds"), [message("m1", "one"), message("m2", "two")]);
  await first.do("append", key("kinds"), [message("q1", "asked")], { turn: turn(1) });
  await first.ask("partials", "write", key("kinds"), partial);
  if (mayRefuse) return refusal(first, second, tally);
  await first.do("save", key("future"), { sessionId: "future" }, { ifRevision: null });
  await first.do("append", key("future"), [message("f1", "one"), future(false)]);
  await compare([first, second], ["kinds", "future"], tally);
  // The other one writes to both, and makes sessions of its own.
  await second.do("append", key("kinds"), [message("n1", "from the other")]);
  await second.do("append", key("kinds"), [message("n2", "in a turn")], { turn: { ...turn(2), turnId: "t2" } });
  await second.do("append", key("kinds"), [message("n3", "its end")], { turn: { action: "close", fence: 2 } });
  await second.do("redact", key("kinds"), ["q1"], { reason: "asked for" });
  await second.do("save", key("own"), { sessionId: "own" }, { ifRevision: null });
  await second.do("append", key("own"), isNewer ? [message("o1", "own")] : kinds);
  await compare([first, second], ["kinds", "future", "own"], tally);
  // The partial belonged to a turn that was taken over.
  const left = (await first.ask("partials", "read", key("kinds"))) as { readonly value?: unknown };
  if (isNewer && left.value !== null) tally.problems.push(`a partial of an old turn: ${JSON.stringify(left)}`);
  await second.do("move", key("future"), { kind: "rename", key: key("renamed") });
  await second.do("move", key("own"), { kind: "archive" });
  await first.do("remove", key("kinds"), { purge: true });
  await compare([first, second], ["renamed"], tally);
  // What is critical and unknown stops a context, and nothing else, in both.
  await first.do("append", key("renamed"), [future(true)]);
  for (const program of [first, second]) {
    const context = (await program.ask("context", key("renamed"))) as { readonly error?: string };
    if (context.error !== "RECORD_FROM_NEWER_VERSION")
      tally.problems.push(`${program.name}: ${JSON.stringify(context)}`);
    await program.do("records", key("renamed"));
  }
}

/**
 * Each in turn is killed while it appends. The other one finds all that was acknowledged, once and in order, and nothing
 * wrong, and goes on with it until it is killed itself.
 */
async function killInTurns(open: readonly [() => Program, () => Program], rounds: number, tally: Tally): Promise<void> {
  const acknowledged = new Set<string>();
  const ref = key("killed");
  const maker = open[0]();
  await maker.do("save", ref, { sessionId: "killed" }, { ifRevision: null });
  await maker.close();
  for (let round = 0; round < rounds; round++) {
    const ids = Array.from({ length: 400 }, (_, at) => `k${round}-${at}`);
    const appends = ids.map((id) => ["append", ref, [message(id, "x".repeat(500)), message(`${id}b`, "its answer")]]);
    const writer = open[round % 2 === 0 ? 0 : 1]();
    const answered = await writer.killAfter(1 + ((round * 37) % 120), appends);
    for (const id of ids.slice(0, answered)) acknowledged.add(id).add(`${id}b`);
    const reader = open[round % 2 === 0 ? 1 : 0]();
    const found = ((await reader.do("records", ref)) as readonly { readonly id: string }[]).map(({ id }) => id);
    tally.records += found.length;
    const kept = found.filter((id) => acknowledged.has(id));
    if (!isDeepStrictEqual(kept, [...acknowledged]))
      tally.problems.push(`${reader.name}: ${kept.length} of ${acknowledged.size} acknowledged records in their order`);
    if (new Set(found).size !== found.length) tally.problems.push(`${reader.name}: a record twice`);
    const findings = (await reader.do("verify")) as readonly { readonly severity: string; readonly code: string }[];
    // The end of a line that was being written is moved aside, and said.
    for (const { severity, code } of findings)
      if (severity === "error") tally.problems.push(`${reader.name}: finding ${code} after a kill`);
    await reader.close();
  }
}

/** The older program refuses the file and leaves it as it is. */
async function refusal(newer: Program, older: Program, tally: Tally): Promise<void> {
  const before = await newer.do("records", key("kinds"));
  const operations: readonly (readonly [name: string, ...args: unknown[]])[] = [
    ["records", key("kinds")],
    ["append", key("kinds"), [message("n1", "from the other")]],
    ["remove", key("kinds"), { purge: true }],
  ];
  for (const operation of operations) {
    const answer = (await older.ask(...operation)) as { readonly error?: string };
    if (answer.error === "STORE_VERSION_UNSUPPORTED") tally.refused += 1;
    else tally.problems.push(`${older.name}: ${operation[0]}: ${JSON.stringify(answer).slice(0, 200)}`);
  }
  if (!isDeepStrictEqual(await newer.do("records", key("kinds")), before))
    tally.problems.push("the refused file changed");
  await compare([newer, newer], ["kinds"], tally);
}

function checkOut(commit: string, folder: string): void {
  const archive = execFileSync("git", ["archive", commit], { cwd: repositoryRoot, maxBuffer: 2 ** 30 });
  execFileSync("tar", ["-x", "-C", folder], { input: archive });
  const install = ["-y", "pnpm@12.21.0", "install", "--frozen-lockfile"];
  execFileSync("npx", install, { cwd: folder, env: { ...process.env, CI: "true" }, stdio: "pipe" });
  copyFileSync(join(repositoryRoot, "tools/older-child.ts"), join(folder, "tools/older-child.ts"));
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      commit: { type: "string", default: "31a8733" },
      stores: { type: "string", default: "jsonl,sqlite,postgres" },
      kills: { type: "string", default: "20" },
    },
  });
  const known = spawnSyncOk("git", ["cat-file", "-e", `${values.commit}^{commit}`]);
  if (!known) {
    process.stdout.write(`skipped: this checkout does not have the commit ${values.commit}\n`);
    return 0;
  }
  const folder = mkdtempSync(join(tmpdir(), "older-programs-"));
  const url = process.env["THROUGHLINE_POSTGRES_URL"];
  let failed = 0;
  try {
    const older = join(folder, "older");
    mkdirSync(older);
    checkOut(values.commit, older);
    process.stdout.write(
      "| store | written by | operations | kills | records compared | refused | problems |\n| --- | --- | --: | --: | --: | --: | --: |\n",
    );
    for (const store of values.stores.split(",")) {
      if (store === "postgres" && url === undefined) continue;
      for (const isNewer of [true, false]) {
        const tally: Tally = { operations: 0, kills: 0, records: 0, refused: 0, problems: [] };
        const name = `${store}-${isNewer ? "newer" : "older"}`;
        const at = store === "postgres" ? `${url}` : join(folder, store === "sqlite" ? `${name}.db` : name);
        const openNewer = () => openProgram("newer", repositoryRoot, [store, at, `older_${isNewer}`], tally);
        const openElder = () => openProgram("older", older, [store, at, `older_${isNewer}`], tally);
        const open = isNewer ? ([openNewer, openElder] as const) : ([openElder, openNewer] as const);
        const [first, second] = [open[0](), open[1]()];
        // Earlier versions of the SQLite store open no schema that is newer than theirs.
        const mayRefuse = store === "sqlite" && isNewer;
        try {
          await life([first, second], { isNewer, mayRefuse }, tally);
        } catch (error) {
          tally.problems.push(error instanceof Error ? error.message : String(error));
        }
        await Promise.all([first.close(), second.close()]);
        try {
          // A SQLite file that the newer program has opened is one that the older refuses to open again.
          if (store !== "sqlite") await killInTurns(open, Number(values.kills), tally);
        } catch (error) {
          tally.problems.push(error instanceof Error ? error.message : String(error));
        }
        const { operations, kills, records, refused, problems } = tally;
        process.stdout.write(
          `| ${store} | ${first.name} | ${operations} | ${kills} | ${records} | ${refused} | ${problems.length} |\n`,
        );
        for (const problem of problems) process.stdout.write(`  ${problem}\n`);
        failed += problems.length;
      }
    }
    process.stdout.write(`${failed} problems between this program and commit ${values.commit}\n`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return failed === 0 ? 0 : 1;
}

function spawnSyncOk(program: string, args: readonly string[]): boolean {
  try {
    execFileSync(program, args, { cwd: repositoryRoot, stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

if (import.meta.main) process.exitCode = await main();
