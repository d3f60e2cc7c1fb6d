import { mkdirSync, readFileSync, readdirSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { readWindow, sessionRef } from "@throughline/core";
import type { Finding, SessionStore, StoredRecord } from "@throughline/core";
import { buildContext } from "@throughline/history";
import { renderAnthropic, validateAnthropic } from "@throughline/history/anthropic";
import { importPaths } from "@throughline/transfer";
import type { Host } from "../host.ts";
import { openStore } from "../open-store.ts";
import { listSessions } from "@throughline/core/internal";
import { explainCalls, rebuildCall } from "@throughline/session";
import { createWorkspaceTools } from "@throughline/tools";
import { foreignStateDirectory, searchedPhrase } from "./demo-conversation.ts";
import { demoSystem, demoWindowTokens, talk, writeWorkspace } from "./demo-talk.ts";
import type { DemoTalkResult } from "./demo-talk.ts";
import { runAndKill } from "./killed-process.ts";
import { runSelf } from "./run-self.ts";

export interface DemoStep {
  readonly name: string;
  readonly ok: boolean;
  readonly summary: string;
  readonly figures: Readonly<Record<string, number>>;
}

export interface DemoStage {
  readonly host: Host;
  readonly directory: string;
  readonly storeUrl: string;
  readonly workspace: string;
  /** Holds the requests as the model received them, in order. The second process fills the list. */
  readonly requests: string[];
  /** Removes a record from the file before the last step, which must detect the loss. */
  readonly isSabotaged: boolean;
  readonly signal: AbortSignal;
}

const demoKey = "agent:main:cli:direct:demo";
const killAfter = 30;
const wantedMessages = 60;
const cutBytes = 20;
const ref = sessionRef({ key: demoKey });
/** A store reports these findings for a torn line, acknowledged or not. */
const tailFindings: ReadonlySet<string> = new Set([
  "TAIL_TORN",
  "BATCH_INCOMPLETE",
  "RECORD_MISSING",
  "LINE_MALFORMED",
]);

type Step = (stage: DemoStage) => Promise<DemoStep>;

/** The order is the one in which the steps are printed. */
export const demoSteps: readonly Step[] = [
  killedTalk,
  restart,
  explained,
  tornTail,
  foreignTranscripts,
  validContext,
  phraseSearch,
  secondProcess,
];

async function killedTalk({ host, storeUrl, workspace, signal }: DemoStage): Promise<DemoStep> {
  writeWorkspace(workspace);
  const args = ["__demo-talk", demoKey, workspace, "--store", storeUrl];
  const { acknowledged, signal: endedBy } = await runAndKill(host, { args, killAfter, signal });
  const { records, state } = await withStore(storeUrl, host, async (store) => {
    return { records: await readAll(store), state: await store.load(ref) };
  });
  const found = acknowledged.filter(({ seq, id }) => records[seq - 1]?.id === id);
  const isUnique = new Set(records.map(({ id }) => id)).size === records.length;
  const isOpen = state?.head.turn != null;
  return {
    name: "kill -9",
    ok:
      endedBy === "SIGKILL" &&
      acknowledged.length >= killAfter &&
      found.length === acknowledged.length &&
      isUnique &&
      isOpen,
    summary:
      `A process talked with an agent that reads and writes files, and was killed in the middle of an answer. Of ${acknowledged.length} ` +
      `acknowledged records ${found.length} are there, in order and once; the turn it had begun is marked as open.`,
    figures: { acknowledged: acknowledged.length, found: found.length, lost: acknowledged.length - found.length },
  };
}

async function restart({ host, storeUrl, workspace, requests, signal }: DemoStage): Promise<DemoStep> {
  const args = ["__demo-talk", demoKey, workspace, "--until", String(wantedMessages), "--store", storeUrl];
  const printed = await runSelf(host, args, signal);
  const sent = printed.flatMap(({ kind, messages }) => (kind === "request" ? [messages as readonly unknown[]] : []));
  requests.push(...sent.map((messages) => JSON.stringify(messages)));
  const violations = sent.reduce((sum, messages) => sum + validateAnthropic(messages).length, 0);
  const result = printed.find(({ kind }) => kind === "talk") as DemoTalkResult | undefined;
  const messages = await withStore(storeUrl, host, async (store) => (await store.load(ref))?.messageCount ?? 0);
  const { interrupted = null, restoredMessages = 0, turns = 0 } = result ?? {};
  return {
    name: "restart",
    ok: interrupted !== null && restoredMessages > 0 && messages >= wantedMessages && violations === 0,
    summary:
      `A second process found ${restoredMessages} messages and that a turn had been interrupted ("${interrupted?.text ?? "-"}"), and went on to ${messages} ` +
      `messages in ${turns} turns. Its ${requests.length} requests broke ${violations} of the provider's rules.`,
    figures: { restoredMessages, messages, turns, requests: requests.length, violations },
  };
}

async function explained({ host, storeUrl, requests, workspace }: DemoStage): Promise<DemoStep> {
  const tools = createWorkspaceTools({ root: workspace }).map(({ definition }) => definition);
  const records = await withStore(storeUrl, host, (store) => readAll(store));
  const calls = explainCalls(records).slice(-requests.length);
  const rebuilt = calls.map(({ facts }) =>
    JSON.stringify(rebuildCall(records, facts, { system: demoSystem, tools }).messages),
  );
  const equal = rebuilt.filter((text, index) => text === requests[index]).length;
  const shortened = calls.filter(({ facts }) => facts.changes.length > 0 || facts.splice !== null).length;
  const largest = Math.max(...calls.map(({ estimatedTokens }) => estimatedTokens));
  const all = records.reduce((sum, { bytes }) => sum + bytes, 0);
  return {
    name: "window",
    ok: equal === requests.length && shortened > 0 && largest <= demoWindowTokens,
    summary:
      `The window has ${demoWindowTokens} tokens and the log ${all} bytes: ${shortened} of ${requests.length} requests were made smaller to fit, the largest was ` +
      `of ~${largest} tokens. The log says how: ${equal} requests made again from it alone are equal byte by byte.`,
    figures: {
      requests: requests.length,
      shortened,
      equal,
      largestTokens: largest,
      windowTokens: demoWindowTokens,
      logBytes: all,
    },
  };
}

async function tornTail({ host, directory, storeUrl, workspace, signal }: DemoStage): Promise<DemoStep> {
  const before = await withStore(storeUrl, host, (store) => readAll(store));
  const path = largestTranscript(directory);
  // This simulates damage outside the store's control: the last line is cut short.
  truncateSync(path, statSync(path).size - cutBytes);
  const findings: Finding[] = [];
  const work = async (store: SessionStore): Promise<readonly (readonly StoredRecord[])[]> => {
    const read = await readAll(store);
    await talk({ store, ref, workspace, until: { turns: 1 }, signal });
    return [read, await readAll(store)];
  };
  const [read = [], after = []] = await withStore(storeUrl, host, work, findings);
  const reported = findings.filter(({ code }) => tailFindings.has(code)).length;
  const kept = read.filter(({ seq, id, record }) => {
    const written = before[seq - 1];
    return written?.id === id && isDeepStrictEqual(written.record, record);
  }).length;
  const isSame = read.every(({ id, seq }, index) => after[index]?.id === id && after[index].seq === seq);
  const isAscending = after.every(({ seq }, index) => index === 0 || seq > (after[index - 1]?.seq ?? 0));
  const nextSeq = after[read.length]?.seq ?? 0;
  const isDamageSeen = reported > 0 && kept > 0 && kept < before.length;
  return {
    name: "torn tail",
    ok: isDamageSeen && isSame && isAscending && after.length > read.length,
    summary:
      `${cutBytes} bytes were cut off the end of the transcript. After that ${kept} of ${before.length} records are read as they were ` +
      `written, the damage is reported, and the rest of the torn line is kept. The next turn starts at record ${nextSeq}.`,
    figures: { before: before.length, kept, setAside: before.length - kept, reported, after: after.length },
  };
}

async function foreignTranscripts({ host, directory, storeUrl, signal }: DemoStage): Promise<DemoStep> {
  const source = join(directory, "openclaw");
  const files = foreignStateDirectory();
  for (const [name, text] of files) {
    mkdirSync(dirname(join(source, name)), { recursive: true });
    writeFileSync(join(source, name), text);
  }
  const runs = await withStore(storeUrl, host, async (store) => {
    const states: string[][] = [];
    let records = 0;
    let reported = 0;
    for (let run = 0; run < 2; run++) {
      const seen: string[] = [];
      for await (const imported of importPaths(store, [source], { signal })) {
        seen.push(imported.state);
        if (run === 0) records += imported.records;
        if (run === 0) reported += imported.findings.filter(({ code }) => code === "LINE_MALFORMED").length;
      }
      states.push(seen);
    }
    return { states, records, reported };
  });
  const [first = [], second = []] = runs.states;
  const sessions = first.filter((state) => state === "imported").length;
  const ok = sessions === 2 && second.every((state) => state === "unchanged") && runs.reported === 1;
  return {
    name: "import",
    ok,
    summary:
      `${sessions} sessions of another program were imported, ${runs.records} records; ${runs.reported} line that is no JSON is kept ` +
      `in its place and reported. A second import added nothing.`,
    figures: { sessions, records: runs.records, reported: runs.reported },
  };
}

async function validContext({ host, storeUrl }: DemoStage): Promise<DemoStep> {
  const counts = { sessions: 0, messages: 0, repairs: 0, violations: 0 };
  await withStore(storeUrl, host, async (store) => {
    for await (const state of listSessions(store, {})) {
      const { records } = await readWindow(store, state.ref);
      const { messages, repairs } = renderAnthropic(buildContext(records, { headId: state.head.headId }));
      counts.sessions += 1;
      counts.messages += messages.length;
      counts.repairs += repairs.length;
      counts.violations += validateAnthropic(messages).length;
    }
  });
  return {
    name: "context",
    ok: counts.violations === 0 && counts.sessions === 3,
    summary:
      `What a model would be sent for the ${counts.sessions} sessions is ${counts.messages} messages that break ${counts.violations} of ` +
      `Anthropic's rules; ${counts.repairs} repairs made them so, in memory only.`,
    figures: counts,
  };
}

async function phraseSearch({ host, storeUrl, signal }: DemoStage): Promise<DemoStep> {
  const found = await runSelf(host, ["search", searchedPhrase, "--store", storeUrl], signal);
  const hits = found.filter(({ kind }) => kind === "hit");
  const [hit] = hits;
  return {
    name: "search",
    ok: hits.length === 1 && hit?.["key"] === "agent:main:discord:direct:keeper",
    summary: `A second process searched every record for "${searchedPhrase}" and found it in ${String(hit?.["key"])}: ${String(hit?.["snippet"])}`,
    figures: { hits: hits.length },
  };
}

async function secondProcess({ host, directory, storeUrl, isSabotaged, signal }: DemoStage): Promise<DemoStep> {
  const here = await withStore(storeUrl, host, async (store) => {
    const sessions: { readonly key: string; readonly records: readonly unknown[] }[] = [];
    for await (const { ref: each } of listSessions(store, {})) {
      const records: unknown[] = [];
      for await (const page of store.read(each))
        records.push(...page.records.map(({ seq, record }) => ({ seq, record })));
      sessions.push({ key: each.key, records });
    }
    return sessions;
  });
  if (isSabotaged) dropRecord(largestTranscript(directory));
  let compared = 0;
  let different = 0;
  for (const { key, records } of here) {
    const printed = await runSelf(host, ["show", key, "--all-branches", "--store", storeUrl], signal);
    const there = printed.filter(({ kind }) => kind === "record").map(({ seq, record }) => ({ seq, record }));
    compared += records.length;
    different += Math.abs(records.length - there.length);
    different += records.filter((record, index) => !isDeepStrictEqual(record, there[index])).length;
  }
  return {
    name: "compare",
    ok: different === 0 && compared > 0,
    summary: `A second process read ${compared} records of ${here.length} sessions: ${different} differ.`,
    figures: { sessions: here.length, compared, different },
  };
}

/** Removes a line in the middle of a transcript, which every reader must detect. */
function dropRecord(path: string): void {
  const lines = readFileSync(path, "utf8").split("\n");
  writeFileSync(path, lines.toSpliced(Math.floor(lines.length / 2), 1).join("\n"));
}

/** Opens and closes the store for each step, so that a step sees only the data on disk. */
async function withStore<Result>(
  storeUrl: string,
  host: Host,
  work: (store: SessionStore) => Promise<Result>,
  findings: Finding[] = [],
): Promise<Result> {
  await using store = await openStore(storeUrl, {
    workingDirectory: host.workingDirectory,
    create: false,
    onEvent: (event) => {
      if (event.name === "finding") findings.push(event.finding);
    },
  });
  return await work(store);
}

async function readAll(store: SessionStore, afterSeq = 0): Promise<readonly StoredRecord[]> {
  const records: StoredRecord[] = [];
  for await (const page of store.read(ref, { afterSeq })) records.push(...page.records);
  return records;
}

/** Only one transcript exists at that point, wherever the store keeps it. */
function largestTranscript(directory: string): string {
  const paths = readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".jsonl"))
    .map((entry) => join(entry.parentPath, entry.name));
  const [largest] = paths.toSorted((a, b) => statSync(b).size - statSync(a).size);
  if (largest === undefined) throw new Error(`no transcript below ${directory}`);
  return largest;
}
