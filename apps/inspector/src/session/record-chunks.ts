import { isFields, runSteps } from "@throughline/core/internal";
import { promptText } from "@throughline/history/internal";
import { callPlace, SubAgentPlaces, TranscriptRows, type TranscriptRow } from "@throughline/transcript-view/internal";
import { ApiError, getJson, isAbort } from "../api.ts";
import type { RecordJson, RecordsJson, SessionJson } from "../json.ts";
import type { SessionPlace } from "../router.ts";
import { placeQuery, sessionPath } from "./session-outline.ts";

/** Holds the rows of a record, and the blocks of which the server sent only the start. */
export interface RecordView {
  readonly id: string;
  readonly rows: readonly TranscriptRow[];
  readonly cut: readonly CutPart[];
  /** Lists the sub-agents that a call of the record started, by the id of the call. */
  readonly agents: ReadonlyMap<string, readonly SessionJson[]>;
}

/** Is a part of a record of which the server sent only the start. */
export interface CutPart {
  /** Is the place of the block in the message; null for the texts beside it. */
  readonly block: number | null;
  readonly totalBytes: number;
  readonly isImage: boolean;
}

/** Records of a chunk. A call and its result are one row, so a chunk is read with some neighbors on both sides. */
const chunkRecords = 200;
const neighbors = 20;
const mostChunks = 10;

interface Chunk {
  readonly views: ReadonlyMap<number, RecordView>;
  /** Is the newest record that the server had. */
  readonly lastSeq: number;
  /** Is true once the session has more records of this chunk. The views stay until the new ones arrive. */
  isOld: boolean;
}

/** Loads the contents of records in chunks, and keeps the chunks that were used last. */
export class RecordChunks {
  readonly #place: SessionPlace;
  readonly #folder: string | null;
  readonly #onChange: () => void;
  readonly #chunks = new Map<number, Chunk>();
  readonly #loading = new Map<number, AbortController>();
  #agents: readonly SessionJson[] = [];
  #failed: ApiError | null = null;

  constructor(place: SessionPlace, folder: string | null, onChange: () => void) {
    this.#place = place;
    this.#folder = folder;
    this.#onChange = onChange;
  }

  get failed(): ApiError | null {
    return this.#failed;
  }

  /** Returns what a record shows; undefined until it is loaded. A record that shows nothing has no rows. */
  view(seq: number): RecordView | undefined {
    const chunk = this.#chunks.get(chunkOf(seq));
    return chunk?.views.get(seq) ?? (chunk === undefined || seq > chunk.lastSeq ? undefined : nothing);
  }

  /** Returns the view of the record that holds the result of a call, which may lie in the chunk behind. */
  resultView(callSeq: number, resultSeq: number): RecordView {
    return this.#chunks.get(chunkOf(callSeq))?.views.get(resultSeq) ?? nothing;
  }

  /** Loads the chunks between two records, and ends the loading of others. */
  want(fromSeq: number, toSeq: number): void {
    const wanted = new Set<number>();
    for (let chunk = chunkOf(fromSeq); chunk <= chunkOf(toSeq); chunk++) wanted.add(chunk);
    for (const [chunk, stop] of this.#loading) if (!wanted.has(chunk)) stop.abort();
    for (const chunk of wanted) {
      const known = this.#chunks.get(chunk);
      if (known === undefined || known.isOld) void this.#load(chunk);
      if (known !== undefined) {
        // The order of a map is the order of use.
        this.#chunks.delete(chunk);
        this.#chunks.set(chunk, known);
      }
    }
  }

  /** Loads the chunks again that records up to this one belong to. */
  refresh(lastSeq: number): void {
    for (const [chunk, known] of this.#chunks) {
      const end = (chunk + 1) * chunkRecords + neighbors;
      if (known.lastSeq < Math.min(end, lastSeq)) known.isOld = true;
    }
  }

  /** Takes the sub-agents of the session, which arrive after the first rows. */
  takeAgents(agents: readonly SessionJson[]): void {
    if (agents.length === 0 && this.#agents.length === 0) return;
    this.#agents = agents;
    for (const chunk of this.#chunks.values()) chunk.isOld = true;
    this.#onChange();
  }

  retry(): void {
    this.#failed = null;
    this.#onChange();
  }

  stop(): void {
    for (const stop of this.#loading.values()) stop.abort();
  }

  async #load(chunk: number): Promise<void> {
    if (this.#loading.has(chunk) || this.#failed !== null) return;
    const stop = new AbortController();
    this.#loading.set(chunk, stop);
    try {
      const from = chunk * chunkRecords + 1;
      const { records, lastSeq } = await this.#read(from - neighbors, from + chunkRecords - 1 + neighbors, stop.signal);
      const views = viewsOf(records, from, {
        folder: this.#folder,
        agents: this.#agents,
        lastSeq,
        known: this.#chunks.get(chunk)?.views,
      });
      this.#chunks.set(chunk, { views, lastSeq, isOld: false });
      for (const oldest of this.#chunks.keys()) {
        if (this.#chunks.size <= mostChunks) break;
        this.#chunks.delete(oldest);
      }
    } catch (error) {
      if (isAbort(error)) return;
      this.#failed = error instanceof ApiError ? error : new ApiError(0, { message: String(error) });
    } finally {
      if (this.#loading.get(chunk) === stop) this.#loading.delete(chunk);
    }
    this.#onChange();
  }

  async #read(fromSeq: number, toSeq: number, signal: AbortSignal): Promise<RecordsOfChunk> {
    const records: RecordJson[] = [];
    let after: number | null = Math.max(0, fromSeq - 1);
    let newest = Infinity;
    while (after !== null) {
      const query = { ...placeQuery(this.#place), after, before: toSeq + 1, limit: 500, payload: "preview" };
      const page: RecordsJson = await getJson(sessionPath(this.#place, "/records"), query, signal);
      records.push(...page.items);
      newest = Math.min(newest, page.lastSeq);
      // A page ends at 2 MiB as well.
      after = page.nextSeq;
    }
    return { records, lastSeq: newest };
  }
}

interface RecordsOfChunk {
  readonly records: readonly RecordJson[];
  readonly lastSeq: number;
}

const noAgents: RecordView["agents"] = new Map();
const nothing: RecordView = { id: "", rows: [], cut: [], agents: noAgents };

function chunkOf(seq: number): number {
  return Math.max(0, Math.floor((seq - 1) / chunkRecords));
}

interface ChunkFacts {
  readonly folder: string | null;
  readonly agents: readonly SessionJson[];
  /** Is the newest record of the session. */
  readonly lastSeq: number;
  readonly known: Chunk["views"] | undefined;
}

/** Makes the rows of a chunk. Neighbors only complete calls and take results; their own rows belong to other chunks. */
function viewsOf(
  records: readonly RecordJson[],
  from: number,
  { folder, agents, lastSeq, known = new Map() }: ChunkFacts,
): Chunk["views"] {
  const views = new Map<number, RecordView & { rows: TranscriptRow[]; agents: RecordView["agents"] }>();
  const sizes = sizesOf(records);
  const resultBytes = (message: unknown): number | null => sizes.get(message) ?? null;
  // The data of an image is base64.
  const imageBytes = (block: unknown): number | null => Math.floor(((sizes.get(block) ?? 0) * 3) / 4) || null;
  const maker = new TranscriptRows({ level: "full", hasImages: false, folder, promptText, resultBytes, imageBytes });
  const take = (rows: readonly TranscriptRow[]): void => {
    for (const row of rows) if (row.seq >= from && row.seq < from + chunkRecords) views.get(row.seq)?.rows.push(row);
  };
  // Results behind the end of the chunk are kept too: the rest of one is loaded from its own record.
  for (const record of records)
    views.set(record.seq, { id: record.id, rows: [], cut: cutsOf(record), agents: noAgents });
  const places = placesOf(records, agents, lastSeq);
  for (const record of records) take(runSteps(maker.take(record)));
  take(runSteps(maker.finish()));
  for (const view of agents.length === 0 ? [] : views.values()) view.agents = agentsOf(view.rows, places);
  return new Map(Array.from(views, ([seq, view]) => [seq, sameView(known.get(seq), view)]));
}

function placesOf(
  records: readonly RecordJson[],
  agents: readonly SessionJson[],
  lastSeq: number,
): ReadonlyMap<string, readonly SessionJson[]> {
  const finder = new SubAgentPlaces(agents);
  for (const record of records) finder.take(record);
  const last = records.at(-1);
  return finder.places(last === undefined || last.seq >= lastSeq ? Infinity : (last.tsMs ?? last.storedAtMs ?? 0));
}

function agentsOf(rows: readonly TranscriptRow[], places: ReturnType<typeof placesOf>): RecordView["agents"] {
  const agents = rows.flatMap(({ seq, callId }): [string, readonly SessionJson[]][] => {
    const found = callId === null ? undefined : places.get(callPlace(seq, callId));
    return found === undefined || callId === null ? [] : [[callId, found]];
  });
  return agents.length === 0 ? noAgents : new Map(agents);
}

function blockAt({ record }: RecordJson, block: number | null): unknown {
  const content = isFields(record["message"]) ? record["message"]["content"] : null;
  return Array.isArray(content) && block !== null ? content[block] : null;
}

function cutsOf(record: RecordJson): readonly CutPart[] {
  return (record.cut ?? []).map(({ block, totalBytes }) => {
    const value = blockAt(record, block);
    return { block, totalBytes, isImage: isFields(value) && value["type"] === "image" };
  });
}

/** Returns the whole sizes of messages and blocks of which the server sent only the start. */
function sizesOf(records: readonly RecordJson[]): ReadonlyMap<unknown, number> {
  const sizes = new Map<unknown, number>();
  for (const stored of records) {
    const { record, cut = [] } = stored;
    const whole = cut.reduce((sum, { totalBytes }) => sum + totalBytes, 0);
    if (whole > 0) sizes.set(record["message"], whole);
    for (const { block, totalBytes } of cut) if (block !== null) sizes.set(blockAt(stored, block), totalBytes);
  }
  return sizes;
}

/** Returns the known view of a record whose rows did not change, so that its elements are not compared again. */
function sameView(known: RecordView | undefined, view: RecordView): RecordView {
  const isSameRecord = known?.id === view.id && known.rows.length === view.rows.length;
  if (known === undefined || !isSameRecord || known.agents !== view.agents) return view;
  // A call gets its result later, and a record may be redacted. Everything else of a record stays as it is.
  const isSame = known.rows.every(({ kind, resultSeq }, at) => {
    const row = view.rows[at];
    return row?.kind === kind && row.resultSeq === resultSeq;
  });
  return isSame ? known : view;
}
