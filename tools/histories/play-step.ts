import { rmSync } from "node:fs";
import { join } from "node:path";
import type { SessionRef, SessionState, SessionStore } from "../../packages/core/src/index.ts";
import {
  HistoryProblem,
  modelOutcome,
  show,
  storeOutcome,
  type ModelComparison,
  type Outcome,
} from "./compare-with-model.ts";
import type { HistoryPlace, HistoryStore } from "./history-store.ts";
import { historyKeys, type AppendStep, type History, type HistoryStep, type StepAddress } from "./history-steps.ts";
import type { OtherPrograms } from "./other-programs.ts";
import { draftsOf, fieldsOf, optionsOf } from "./plan-drafts.ts";
import { appendToModel } from "../../packages/store-conformance/src/model/append-to-model.ts";
import {
  findSession,
  maxAheadMs,
  type ModelSession,
  type SessionModel,
  stateOf,
} from "../../packages/store-conformance/src/model/session-model.ts";
import {
  forkInModel,
  moveInModel,
  redactInModel,
  removeInModel,
  saveInModel,
} from "../../packages/store-conformance/src/model/change-model.ts";

/** What steps are played on. */
export interface PlayContext {
  readonly kind: HistoryStore;
  readonly place: HistoryPlace;
  /** Several handles of one store; a step may close one and open it anew. */
  readonly handles: SessionStore[];
  readonly model: SessionModel;
  readonly compare: ModelComparison;
  readonly programs: OtherPrograms;
}

/** One step of a history. @throws {HistoryProblem} when the store does not do what the model says */
export async function playStep(context: PlayContext, history: History, at: number): Promise<void> {
  const { handles, model, compare, kind, place, programs } = context;
  const step = history.steps[at] as HistoryStep;
  const what = `step ${at} (${step.kind})`;
  switch (step.kind) {
    case "append":
      return playAppend(context, step, at, what);
    case "clock":
      model.nowMs = Math.max(model.nowMs + step.byMs, believedFromMs(model));
      model.isClockSetBack ||= step.byMs < 0;
      return;
    case "reopen":
      await handleOf(context, step.handle).close();
      handles[step.handle % handles.length] = kind.open(place, step.derivedDelayMs);
      return;
    case "list": {
      const { sinceMs } = step;
      const query = sinceMs === undefined ? step.query : { ...step.query, sinceMs: model.nowMs - sinceMs };
      return compare.list(what, handleOf(context, step.handle), query);
    }
    case "read":
      return compare.read(what, handleOf(context, step.handle), refOf(model, step.session), step.options);
    case "compare all":
      for (const [index, store] of handles.entries()) await compare.all(`${what}, handle ${index}`, store);
      return;
    case "verify":
      return playVerify(context, step.handle, what);
    case "backup":
      return playBackup(context, step.handle, at, what);
    case "damage": {
      const isClosed = programs.needsClosed(step.damage);
      if (isClosed) await whileClosed(context, history, () => programs.damage(step));
      else programs.damage(step);
      return;
    }
    case "transcript act":
      return playTranscriptAct(context, history, step, what);
    case "foreign line": {
      const session = findSession(model, refOf(model, step.session));
      if (session !== undefined) programs.writeLine(step, session, at);
      return;
    }
    case "edit": {
      // Other programs change entries before a handle is opened, not beside it.
      const session = findSession(model, refOf(model, step.session));
      if (session !== undefined) await whileClosed(context, history, () => programs.edit(step, session, at));
      return;
    }
    default:
      return playChange(context, step, what);
  }
}

/** Closes all handles while another program acts, and opens them again. */
async function whileClosed<Result>(
  { kind, place, handles }: PlayContext,
  history: History,
  act: () => Result,
): Promise<Result> {
  for (const store of handles) await store.close();
  const result = act();
  for (const index of handles.keys()) handles[index] = kind.open(place, history.derivedDelaysMs[index] ?? 0);
  return result;
}

/**
 * Another program cuts, moves or deletes a transcript once the entry is caught up, here by closing all handles: the entry is
 * still there. What such a session holds afterwards is the store's matter, so it is purged.
 */
async function playTranscriptAct(
  context: PlayContext,
  history: History,
  step: Extract<HistoryStep, { kind: "transcript act" }>,
  what: string,
): Promise<void> {
  const { model, handles, programs, compare } = context;
  const ref = refOf(model, step.session);
  const session = findSession(model, ref);
  if (session === undefined) return;
  const isDone = await whileClosed(context, history, () => programs.act(step, session));
  if (!isDone) return;
  const store = handles[0] as SessionStore;
  const got = await store.load(ref);
  compare.same(`${what}, ${step.act}: the entry`, got?.entry, stateOf(session).entry);
  if (!session.isTouchedByOthers) compare.same(`${what}, ${step.act}: its revision`, got?.revision, session.revision);
  await store.remove(ref, { purge: true });
  removeInModel(model, ref, true);
}

type ChangeStep = Extract<HistoryStep, { kind: "save" | "move" | "remove" | "redact" | "fork" }>;

async function playChange(context: PlayContext, step: ChangeStep, what: string): Promise<void> {
  const { model } = context;
  const store = handleOf(context, step.handle);
  const ref = refOf(model, step.session);
  const session = findSession(model, ref);
  switch (step.kind) {
    case "save": {
      // Who saves has loaded: only so the revision is known that another program's change has.
      if (session?.isTouchedByOthers === true) context.compare.adopt(await store.load(ref));
      const ifRevision =
        step.revision === "known" ? (session?.revision ?? null) : step.revision === "none" ? null : 999_999;
      const theirs = Object.entries(session?.entry ?? {}).filter(([field]) => field.startsWith("theirs"));
      const sessionId = step.sessionId ?? session?.sessionId ?? "s1";
      const entry = { ...Object.fromEntries(theirs), ...fieldsOf(step.entry, model.nowMs), sessionId };
      const { durability } = step;
      const isOffered = durability !== undefined && store.capabilities.durabilities.includes(durability);
      const options = isOffered ? { ifRevision, durability } : { ifRevision };
      const got = await storeOutcome(() => store.save(ref, entry, options));
      return sameState(context, what, got, () => saveInModel(model, ref, entry, ifRevision));
    }
    case "move": {
      const key = historyKeys[step.toKey]?.[1] ?? "";
      const action = step.action === "rename" ? { kind: step.action, key } : { kind: step.action };
      const got = await storeOutcome(() => store.move(ref, action));
      return sameState(context, what, got, () => moveInModel(model, ref, action));
    }
    case "remove": {
      const got = await storeOutcome(() => store.remove(ref, { purge: step.purge }));
      const expected = modelOutcome(() => removeInModel(model, ref, step.purge));
      context.compare.isAnswered(what, got, expected);
      return;
    }
    case "redact": {
      const records = session?.records ?? [];
      const known =
        records.length === 0 ? [] : step.records.map((index) => records[index % records.length]?.record.id ?? "");
      const ids = step.withUnknown || known.length === 0 ? [...known, "nobody"] : known;
      const got = await storeOutcome(() => store.redact(ref, ids, { reason: "why\u2028" }));
      const expected = modelOutcome(() => redactInModel(model, ref, ids, "why\u2028"));
      if (context.compare.isAnswered(what, got, expected) && "value" in expected)
        context.compare.same(what, got.value.seqs, expected.value);
      return;
    }
    case "fork": {
      const [agentId, key] = historyKeys[step.toKey] ?? ["main", "main"];
      const { fork } = store;
      if (fork === undefined || agentId !== ref.agentId) return;
      const { sessionId, atSeq } = step;
      const options = atSeq === undefined ? { sessionId } : { sessionId, atSeq };
      const target = { namespace: "", agentId, key };
      const got = await storeOutcome(() => fork.fork(ref, target, options));
      const made = "value" in got ? got.value : null;
      return sameState(context, what, got, () => forkInModel(model, ref, target, options, made));
    }
  }
}

async function playAppend(context: PlayContext, step: AppendStep, at: number, what: string): Promise<void> {
  const { model, compare } = context;
  const store = handleOf(context, step.handle);
  const ref = refOf(model, step.session);
  const session = findSession(model, ref);
  // A claim that is not believed becomes the session's own time, which only the store knows behind another program's line.
  if (session?.isTouchedByOthers === true && step.entry?.updatedAt !== undefined) compare.adopt(await store.load(ref));
  const own = { session, nowMs: model.nowMs, at };
  const options = optionsOf(step, own, store.capabilities.durabilities);
  const keys = [...(session?.keyed.keys() ?? [])];
  const repeatedKey = step.repeat === undefined ? undefined : keys[step.repeat % Math.max(1, keys.length)];
  const repeated = repeatedKey === undefined ? undefined : session?.keyed.get(repeatedKey);
  const drafts = repeated?.drafts ?? draftsOf(step, own);
  const given = repeatedKey === undefined ? options : { ...options, idempotencyKey: repeatedKey };
  const { durability: _durability, ...rest } = given;
  const got = await storeOutcome(() => store.append(ref, drafts, given));
  const madeIds = "value" in got ? got.value.records.map(({ id }) => id) : [];
  const expected = modelOutcome(() => appendToModel(model, ref, drafts, rest, madeIds));
  const which = `${what} with ${show(given)}`;
  if (compare.isAnswered(which, got, expected) && "value" in expected) {
    const { durability: _given, ...told } = got.value;
    const isTouched = session?.isTouchedByOthers === true;
    compare.same(which, isTouched ? { ...told, revision: expected.value.revision } : told, expected.value);
  }
  await compare.load(`${what}, seen by handle ${step.reader}`, handleOf(context, step.reader), ref);
}

function sameState({ compare }: PlayContext, what: string, got: Outcome<SessionState>, work: () => ModelSession): void {
  const expected = modelOutcome(work);
  if (!compare.isAnswered(what, got, expected) || "codes" in expected) return;
  compare.adopt(got.value);
  compare.same(what, got.value, stateOf(expected.value));
}

/** Of what drafts may say of records that are not there. */
const allowedFindings: ReadonlySet<string> = new Set([
  "ORPHAN_PARENT",
  "FIRST_KEPT_MISSING",
  "PARENT_MISSING",
  "UNKNOWN_TYPE",
]);

async function playVerify(context: PlayContext, handle: number, what: string): Promise<void> {
  const { maintenance } = handleOf(context, handle);
  const isTouched = context.model.sessions.some(({ isTouchedByOthers }) => isTouchedByOthers);
  for await (const { code, message } of maintenance?.verify({ full: true }) ?? [])
    if (!allowedFindings.has(code) && !isTouched) throw new HistoryProblem(`${what}: ${code}: ${message}`);
}

/**
 * A handle believes the time of another program's line while it is near its clock. Before this time a handle that reads
 * such a line would state another time than one that has read it.
 */
function believedFromMs({ sessions }: SessionModel): number {
  const theirs = sessions.flatMap(({ records }) => records.filter(({ storedAtMs }) => storedAtMs === null));
  return Math.max(-Infinity, ...theirs.map(({ record }) => Date.parse(record.timestamp) - maxAheadMs));
}

async function playBackup(context: PlayContext, handle: number, at: number, what: string): Promise<void> {
  const { kind, place, compare } = context;
  const { maintenance } = handleOf(context, handle);
  if (maintenance === undefined) return;
  const path = join(place.folder, `backup${at}`);
  await maintenance.backup(path);
  {
    await using copy = kind.openBackup(path, place);
    await compare.all(`${what}, the copy`, copy);
  }
  rmSync(path, { recursive: true, force: true });
}

function handleOf({ handles }: PlayContext, index: number): SessionStore {
  return handles[index % handles.length] as SessionStore;
}

/** The session a step is about; of an agent without archived ones, one that is not there. */
function refOf(model: SessionModel, { key: index, archived }: StepAddress): SessionRef {
  const [agentId, key] = historyKeys[index % historyKeys.length] ?? ["main", "main"];
  const ref = { namespace: "", agentId, key };
  if (archived === undefined) return ref;
  const found = model.sessions.filter(({ ref: each }) => each.archiveId !== undefined && each.agentId === agentId);
  return found.length === 0
    ? { ...ref, archiveId: "not-there" }
    : { ...(found[archived % found.length] as ModelSession).ref };
}
