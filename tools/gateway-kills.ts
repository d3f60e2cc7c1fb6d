// Kills a server with -9 while an answer streams through its gateway to the Anthropic SDK, at a random moment of each round or right
// after the last event, and starts it again. An answer that the client heard to its end must then be in the store without another
// call of the client. The client asks again what it did not hear the end of; one time in five the server is killed then as well. In
// the end the log must have each question once, in order, and behind it the answer that the client heard. The exit code is 1 when
// something that was acknowledged is lost or doubled. The same seed gives the same moments.
// node --conditions=@throughline/source tools/gateway-kills.ts [--rounds 200] [--modes record,guard,stateful] [--seed 1]
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import Anthropic from "@anthropic-ai/sdk";
import { createServer, type GatewayMode } from "../apps/server/src/index.ts";
import { systemClock } from "../packages/core/src/node/system-ports.ts";
import { walkBranch } from "../packages/history/src/walk-branch.ts";
import type { SessionRef, StoredRecord } from "../packages/core/src/index.ts";
import { createProviderSimulator } from "../packages/testing/src/index.ts";
import { createSqliteStore } from "../packages/store-sqlite/src/index.ts";
import { seededNumbers } from "../packages/store-jsonl/test/contention.ts";

export interface KillsResult {
  readonly mode: GatewayMode;
  readonly rounds: number;
  readonly seed: number;
  readonly kills: number;
  /** Kills that came before the client had heard the end. */
  readonly cut: number;
  /** Kills by what the client had heard: no head of the answer, some events, the last event. */
  readonly moments: Readonly<Record<KillMoment, number>>;
  /** Questions and heard answers that the log does not have at their place. */
  readonly lost: number;
  /** Questions that the log has more than once on the branch. */
  readonly doubled: number;
  /** Heard ends whose answer was not in the store after the restart, or in stateful mode right after the kill. */
  readonly early: number;
}

type KillMoment = "before" | "within" | "behind";

/** Where a kill comes: so long after an event, or with event 0 after the request was sent. */
interface KillPoint {
  readonly event: number;
  readonly delayMs: number;
}

/** An answer of the simulator, in events and in what lies between two of them. */
const eventCount = 18;
const eventDelayMs = 3;
/** A request is on its way, stored and answered within this. */
const openingMs = 60;
const serving = "--serving";
if (process.argv[2] === serving) await serve(process.argv.slice(3));
else {
  const { values } = parseArgs({
    options: {
      rounds: { type: "string", default: "200" },
      modes: { type: "string", default: "record,guard,stateful" },
      seed: { type: "string", default: "1" },
    },
  });
  for (const mode of values.modes.split(",") as readonly GatewayMode[]) {
    const result = await killInStreams(mode, Number(values.rounds), Number(values.seed));
    process.stdout.write(`${JSON.stringify(result)}\n`);
    if (result.lost + result.doubled + result.early > 0) process.exitCode = 1;
  }
}

/** The process that is killed. */
async function serve([folder = "", mode = "", baseUrl = "", known = ""]: readonly string[]): Promise<void> {
  const server = await createServer({
    openStore: () => createSqliteStore({ path: join(folder, "sessions.db") }),
    port: 0,
    gateway: {
      upstreams: {
        anthropic: { api: "anthropic", baseUrl, credentials: "server", apiKey: "k", mode: mode as GatewayMode },
      },
      spoolFolder: join(folder, "spool"),
    },
  });
  const rights = { namespace: "", agents: "*", scopes: ["read", "gateway:anthropic"], expiresAtMs: null } as const;
  const text = known === "" ? (await server.tokens.create(rights, null)).text : known;
  process.send?.({ url: server.url, token: text });
}

async function killInStreams(mode: GatewayMode, rounds: number, seed: number): Promise<KillsResult> {
  const random = seededNumbers(seed);
  const folder = mkdtempSync(join(tmpdir(), "throughline-gateway-kills-"));
  let answers = 0;
  const simulator = createProviderSimulator({
    fallback: () => ({ kind: "answer", content: `Answer ${++answers}. ${"And so on. ".repeat(12)}`, eventDelayMs }),
  });
  await simulator.start();
  let child: ChildProcess | null = null;
  let token = "";
  let url = "";
  const start = async (): Promise<void> => {
    child = fork(import.meta.filename, [serving, folder, mode, simulator.url, token], {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    const [said] = (await once(child, "message")) as [{ readonly url: string; readonly token: string }];
    ({ url, token } = said);
  };
  const kill = async (): Promise<void> => {
    const gone = child === null ? null : once(child, "exit");
    child?.kill("SIGKILL");
    await gone;
  };
  await start();
  const history: { readonly role: "user" | "assistant"; readonly content: string }[] = [];
  let [kills, cut, early] = [0, 0, 0];
  const moments = { before: 0, within: 0, behind: 0 };
  for (let round = 0; round < rounds; round++) {
    const question = { role: "user" as const, content: `Question ${round}. ${"Please. ".repeat(10)}` };
    history.push(question);
    const messages = mode === "stateful" ? [question] : history;
    // In guard mode a request is refused now and then, and sent again rebuilt.
    if (mode === "guard" && random() < 1 / 3)
      simulator.enqueue({ kind: "error", status: 400, message: "prompt is too long: 9000 tokens > 4000 maximum" });
    const most = random() < 1 / 5 ? 2 : 1;
    for (let tries = 0; ; tries++) {
      const point = tries < most ? killPoint(random) : null;
      const heard = await ask(url, token, messages, tries, point === null ? null : { point, kill });
      if (heard.text !== null) history.push({ role: "assistant", content: heard.text });
      if (point !== null) {
        kills += 1;
        cut += heard.text === null ? 1 : 0;
        moments[heard.moment] += 1;
        const isLate = mode === "stateful" && heard.text !== null && !(await hasAnswer(folder, heard.text));
        await start();
        if (heard.text !== null && (isLate || !(await hasAnswerSoon(folder, heard.text)))) early += 1;
      }
      if (heard.text !== null) break;
      if (tries > 100) throw new Error(`Question ${round} is not answered.`);
      await systemClock.sleep(50);
    }
    if (round % 20 === 19) process.stderr.write(`${mode}: ${round + 1} of ${rounds}, ${cut} cut\n`);
  }
  // The last call of a client brings what was not stored before.
  if (mode !== "stateful") {
    await ask(url, token, [...history, { role: "user", content: "The end." }], 0, null);
    await systemClock.sleep(3000);
  }
  await kill();
  const said = await branchTexts(folder);
  await simulator.close();
  rmSync(folder, { recursive: true, force: true });
  return { mode, rounds, seed, kills, cut, moments, early, ...compared(history, said) };
}

/** One time in six before the head of the answer, in three right behind its last event, else anywhere between them. */
function killPoint(random: () => number): KillPoint {
  const kind = random();
  if (kind < 1 / 6) return { event: 0, delayMs: random() * openingMs };
  if (kind < 1 / 2) return { event: eventCount, delayMs: 0 };
  return { event: 1 + Math.floor(random() * eventCount), delayMs: random() * eventDelayMs * 2 };
}

/** The answer's text, null where its end was not heard, and when the kill came. */
async function ask(
  url: string,
  token: string,
  messages: readonly Anthropic.MessageParam[],
  tries: number,
  killing: { readonly point: KillPoint; readonly kill: () => Promise<void> } | null,
): Promise<{ readonly text: string | null; readonly moment: KillMoment }> {
  let text = "";
  let events = 0;
  let isEnded = false;
  let killed: Promise<void> | null = null;
  const killNow = (): void => void (killed ??= killing?.kill() ?? null);
  const killSoon = (): void => {
    const { delayMs = 0 } = killing?.point ?? {};
    if (delayMs === 0) killNow();
    else setTimeout(killNow, delayMs);
  };
  const client = new Anthropic({ apiKey: token, baseURL: `${url}/anthropic`, maxRetries: 0 });
  try {
    if (killing?.point.event === 0) killSoon();
    const stream = client.messages.stream(
      { model: "claude-opus-5", max_tokens: 500, messages: [...messages] },
      { headers: { "throughline-session": "home", "x-stainless-retry-count": String(tries) } },
    );
    for await (const event of stream) {
      events += 1;
      if (event.type === "content_block_delta" && event.delta.type === "text_delta") text += event.delta.text;
      isEnded ||= event.type === "message_stop";
      if (killing !== null && killing.point.event > 0 && (isEnded || events === killing.point.event)) killSoon();
    }
  } catch {
    // The connection broke with the process, or nothing answers yet.
  }
  if (killing !== null) {
    killNow();
    await killed;
  }
  if (isEnded) return { text, moment: "behind" };
  return { text: null, moment: events === 0 ? "before" : "within" };
}

async function records(folder: string): Promise<readonly StoredRecord[]> {
  await using store = await createSqliteStore({ path: join(folder, "sessions.db") });
  const found: StoredRecord[] = [];
  const [session] = (await store.list({ namespace: "" })).sessions;
  const ref: SessionRef | null = session?.ref ?? null;
  if (ref !== null) for await (const page of store.read(ref)) found.push(...page.records);
  return found;
}

async function hasAnswer(folder: string, text: string): Promise<boolean> {
  return (await records(folder)).some((stored) => textOf(stored)?.text === text);
}

/** Whether the restarted server stores an answer within a few seconds, from what it finds. */
async function hasAnswerSoon(folder: string, text: string): Promise<boolean> {
  for (let waitedMs = 0; waitedMs < 10_000; waitedMs += 100) {
    if (await hasAnswer(folder, text)) return true;
    await systemClock.sleep(100);
  }
  return false;
}

async function branchTexts(folder: string): Promise<readonly { readonly role: string; readonly text: string }[]> {
  const all = await records(folder);
  const head = all.findLast(({ side }) => !side)?.id ?? null;
  return walkBranch(all, head).path.flatMap((stored) => textOf(stored) ?? []);
}

function textOf({ record }: StoredRecord): { readonly role: string; readonly text: string } | null {
  if (record.type !== "message") return null;
  const { role, content } = record["message"] as { readonly role: string; readonly content: unknown };
  const blocks = typeof content === "string" ? [{ text: content }] : (content as readonly { readonly text?: string }[]);
  return { role, text: blocks.map(({ text = "" }) => text).join("") };
}

function compared(
  history: readonly { readonly role: string; readonly content: string }[],
  said: readonly { readonly role: string; readonly text: string }[],
): { readonly lost: number; readonly doubled: number } {
  let [lost, doubled, from] = [0, 0, 0];
  for (const { role, content } of history) {
    const at = said.findIndex((one, index) => index >= from && one.role === role && one.text.trim() === content.trim());
    if (at === -1) lost += 1;
    else from = at + 1;
    if (role === "user") doubled += said.filter((one) => one.role === role && one.text === content).length > 1 ? 1 : 0;
  }
  return { lost, doubled };
}
