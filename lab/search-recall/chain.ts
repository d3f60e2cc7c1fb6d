import { tmpdir } from "node:os";
import {
  readWindow,
  type RecordDraft,
  sessionRef,
  type SessionRef,
  type SessionStore,
  type StoredRecord,
} from "../../packages/core/src/index.ts";
import { searchText } from "../../packages/core/src/search-text.ts";
import { createCompactor } from "../../packages/compaction/src/index.ts";
import { tokenMeasure } from "../../packages/compaction/src/compactor.ts";
import { storedRecords } from "../../packages/history/test/stored-records.ts";
import { buildContext } from "../../packages/history/src/index.ts";
import type { NeutralMessage } from "../../packages/history/src/neutral-message.ts";
import { createMemoryStore } from "../../packages/store-memory/src/index.ts";
import { createExtractiveSummarizer } from "../../packages/summarizer-providers/src/index.ts";
import { createMemorySearchTool } from "../../packages/tools/src/workspace/memory-search-tool.ts";
import { importPaths } from "../../packages/transfer/src/index.ts";
import { createTokenEstimator, emptyCalibration } from "../../packages/tokens/src/index.ts";
import { said, texts as textsOf } from "../compaction-recall.ts";
import { askOccasions, type Measuring } from "./occasions.ts";

/** Holds the main branch of a transcript, in its order. */
export interface Transcript {
  readonly name: string;
  readonly records: readonly StoredRecord[];
}

/** Reads every transcript of a folder that can be imported. */
export async function readTranscripts(folder: string): Promise<readonly Transcript[]> {
  const transcripts: Transcript[] = [];
  await using store = createMemoryStore();
  for await (const { agentId, key, path, error } of importPaths(store, [folder])) {
    if (error !== null || agentId === null || key === null) continue;
    const ref = { namespace: "", agentId, key };
    const headId = (await store.load(ref))?.head.headId ?? null;
    const records = (await Array.fromAsync(store.read(ref))).flatMap((page) => page.records);
    const onBranch = new Set(buildContext(records, { headId }).messages.map(({ recordId }) => recordId));
    const sketches = records
      .filter(({ id }) => onBranch.has(id))
      .map(({ type, record: { timestamp, message } }) => ({ type, timestamp: String(timestamp), message }));
    // The records are linked anew, because what lay between them is left out.
    transcripts.push({ name: path, records: storedRecords(sketches) });
  }
  return transcripts.toSorted((one, other) => (one.name < other.name ? -1 : 1));
}

/** A window of this share of the whole conversation is compacted about ten times. */
const windowShare = 0.17;
const leastWindow = 7000;
const wantedCompactions = 10;
const ref: SessionRef = sessionRef({ key: "agent:main:main" });

/** Holds what is before a compaction and what is in front of the assistant behind it. */
interface Cut {
  readonly number: number;
  readonly from: number;
  readonly texts: readonly string[];
  readonly inFront: string;
}

/**
 * Writes a transcript as an agent would, compacts it whenever that is due, and asks with what follows each compaction.
 * Measures into `early` until the tenth compaction and into `late` from then on. Returns the number of compactions.
 */
export async function measureChain(
  { name, records }: Transcript,
  { early, late }: { readonly early: Measuring; readonly late: Measuring },
): Promise<number> {
  await using store = createMemoryStore() as SessionStore;
  await store.save(ref, { sessionId: "s" }, { ifRevision: null });
  const tool = createMemorySearchTool({ root: tmpdir(), store });
  const { isDue, compact } = await compacting(store, records);
  let [cut, compactions] = [null as Cut | null, 0];
  const askBehind = async (last: Cut, to: number): Promise<void> => {
    const after = records.slice(last.from, to);
    const request = requestOf(records.slice(0, last.from));
    const asked = { ...last, name: `${name}, compaction ${last.number}`, ref, tool, after, request };
    await askOccasions(asked, last.number < wantedCompactions ? early : late);
  };
  for (const [index, { record }] of records.entries()) {
    const { type, timestamp, message } = record;
    await store.append(ref, [{ type, timestamp, message } as RecordDraft]);
    if (!(await isDue())) continue;
    if (cut !== null) await askBehind(cut, index + 1);
    // What follows a cut is asked once, also where the next compaction finds nothing to remove.
    cut = (await compact()) ? await cutBehind(store, ++compactions, index + 1) : null;
  }
  if (cut !== null) await askBehind(cut, records.length);
  return compactions;
}

function requestOf(records: readonly StoredRecord[]): string {
  const last = buildContext(records).messages.findLast((message) => message.role === "user" && said(message) !== "");
  return last === undefined ? "" : said(last).trim();
}

async function cutBehind(store: SessionStore, number: number, from: number): Promise<Cut> {
  const all = (await Array.fromAsync(store.read(ref))).flatMap((page) => page.records);
  const inFront = textsOf(await messagesOf(store));
  return { number, from, texts: all.map(({ record }) => searchText(record)?.text ?? ""), inFront };
}

async function messagesOf(store: SessionStore): Promise<readonly NeutralMessage[]> {
  const { records, state } = await readWindow(store, ref);
  return buildContext(records, { headId: state.head.headId }).messages;
}

interface Compacting {
  isDue(): Promise<boolean>;
  /** Resolves to false when there was nothing to compact. */
  compact(): Promise<boolean>;
}

async function compacting(store: SessionStore, records: readonly StoredRecord[]): Promise<Compacting> {
  const counter = await createTokenEstimator().counterFor({ provider: "anthropic", modelId: "claude-sonnet-4-5" });
  const measure = tokenMeasure(counter, emptyCalibration);
  // Nearly the same messages are counted behind every record.
  const counted = new Map<string, number>();
  const tokensOf = (messages: readonly NeutralMessage[]): number =>
    messages.reduce((sum, message) => {
      const tokens = counted.get(message.recordId) ?? measure.countMessage(message);
      counted.set(message.recordId, tokens);
      return sum + tokens;
    }, 0);
  const whole = tokensOf(buildContext(records).messages);
  const windowTokens = Math.max(leastWindow, Math.floor(whole * windowShare));
  const extractive = createExtractiveSummarizer({ countText: measure.countText });
  const compactor = createCompactor({ store, extractive });
  return {
    isDue: async () => {
      const messages = await messagesOf(store);
      return compactor.need({ tokens: tokensOf(messages), windowTokens, messages: messages.length }).due;
    },
    compact: async () => {
      const { kind } = await compactor.compact(ref, { counter, calibration: emptyCalibration, windowTokens });
      return kind === "compacted";
    },
  };
}
