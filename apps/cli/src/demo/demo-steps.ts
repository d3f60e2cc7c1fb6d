import { mkdirSync, readdirSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { readWindow, sessionRef } from "@throughline/core";
import type { Finding, SessionStore, StoredRecord } from "@throughline/core";
import { buildContext, renderAnthropic, validateAnthropic } from "@throughline/history";
import { importPaths } from "@throughline/transfer";
import type { Host } from "../host.ts";
import { openStore } from "../open-store.ts";
import { listSessions } from "../resolve-session.ts";
import { agentConversation, foreignStateDirectory, searchedPhrase } from "./demo-conversation.ts";
import { killWriter } from "./killed-writer.ts";
import { runSelf } from "./run-self.ts";

/** One chapter of the demonstration. */
export interface DemoStep {
  readonly name: string;
  readonly ok: boolean;
  /** One sentence with the figures in it. */
  readonly summary: string;
  readonly figures: Readonly<Record<string, number>>;
}

/** Where the demonstration takes place. */
export interface DemoStage {
  readonly host: Host;
  readonly directory: string;
  readonly storeUrl: string;
  readonly signal: AbortSignal;
}

/** The key of the conversation that is interrupted. */
const demoKey = "agent:main:cli:direct:demo";
const killAfter = 150;
const cutBytes = 20;
const ref = sessionRef({ key: demoKey });

type Step = (stage: DemoStage) => Promise<DemoStep>;

/** In the order they are told. */
export const demoSteps: readonly Step[] = [
  killedWriter,
  tornTail,
  foreignTranscripts,
  validContext,
  phraseSearch,
  secondProcess,
];

async function killedWriter({ host, storeUrl, signal }: DemoStage): Promise<DemoStep> {
  const args = ["append", demoKey, "--store", storeUrl];
  const {
    acknowledged,
    sent,
    signal: endedBy,
  } = await killWriter(host, { args, drafts: agentConversation(), killAfter, signal });
  const records = await withStore(storeUrl, host, (store) => readAll(store));
  const found = acknowledged.filter(({ seq, id }, index) => seq === index + 1 && records[index]?.id === id);
  const asSent = records.every(({ seq, record }) => isDeepStrictEqual(record["message"], sent[seq - 1]?.["message"]));
  const isUnique = new Set(records.map(({ id }) => id)).size === records.length;
  const ok =
    endedBy === "SIGKILL" &&
    acknowledged.length >= killAfter &&
    found.length === acknowledged.length &&
    asSent &&
    isUnique;
  const further = records.length - acknowledged.length;
  return {
    name: "kill -9",
    ok,
    summary:
      `A process appended an agent's conversation and was killed while writing. Of ${acknowledged.length} acknowledged records ` +
      `${found.length} are there, in order and once; ${further} more had been written and not yet acknowledged.`,
    figures: {
      acknowledged: acknowledged.length,
      found: found.length,
      lost: acknowledged.length - found.length,
      further,
    },
  };
}

async function tornTail({ host, directory, storeUrl }: DemoStage): Promise<DemoStep> {
  const before = await withStore(storeUrl, host, (store) => readAll(store));
  const path = largestTranscript(directory);
  // As a power cut in the middle of a write leaves it: the last line ends before its end.
  truncateSync(path, statSync(path).size - cutBytes);
  const findings: Finding[] = [];
  const { after, appendedSeq } = await withStore(
    storeUrl,
    host,
    async (store) => {
      const kept = await readAll(store);
      const { records } = await store.append(ref, [
        { type: "message", message: { role: "user", content: "Where were we?" } },
      ]);
      return { after: [...kept, ...(await readAll(store, kept.length))], appendedSeq: records[0]?.seq ?? 0 };
    },
    findings,
  );
  const kept = after.filter((record, index) => record.id === before[index]?.id).length;
  const reported = findings.filter(({ code }) => code === "TAIL_TORN" || code === "BATCH_INCOMPLETE").length;
  const ok = reported > 0 && kept > 0 && kept < before.length && appendedSeq === kept + 1 && after.length === kept + 1;
  return {
    name: "torn tail",
    ok,
    summary:
      `${cutBytes} bytes were cut off the end of the file. Reopened, ${kept} of ${before.length} records are there, ` +
      `the torn end was set aside and reported, and the conversation goes on at record ${appendedSeq}.`,
    figures: { before: before.length, kept, setAside: before.length - kept, reported, appendedSeq },
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

async function secondProcess({ host, storeUrl, signal }: DemoStage): Promise<DemoStep> {
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

/** Opens the store, does something, closes it; each step sees only what is on disk. */
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

/** The only transcript there is at that point, wherever the store keeps it. */
function largestTranscript(directory: string): string {
  const paths = readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".jsonl"))
    .map((entry) => join(entry.parentPath, entry.name));
  const [largest] = paths.toSorted((a, b) => statSync(b).size - statSync(a).size);
  if (largest === undefined) throw new Error(`no transcript below ${directory}`);
  return largest;
}
