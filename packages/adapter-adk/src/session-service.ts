import { hasErrorCode, openSession, type SessionRef, type SessionState } from "@throughline/core";
import {
  assertArgument,
  assertKnownOptions,
  type Fields,
  isFields,
  isSameJson,
  optionKinds,
  type OptionTable,
  patchEntry,
  type SourcedRecord,
  updateEntry,
} from "@throughline/core/internal";
import {
  adapterOptions,
  type AdapterOptions,
  type SettledAdapterOptions,
  adapterOptionTable,
  adkEvents,
  adkRecordId,
  assertMaySend,
  beforeRun,
  createFrameworkLog,
  type FrameworkLog,
  frameworkSessionKey,
  type LiveItemsOptions,
  type LogView,
  type RunPolicyOptions,
  runPolicyTable,
  storeAdkEvent,
} from "@throughline/foreign-formats/internal";
import { exists, missing, plain, stale } from "./adk-errors.ts";
import type {
  AdkBase,
  AdkSession,
  AdkSessionKey,
  AppendRequest,
  CreateRequest,
  GetRequest,
  ListRequest,
  ListResponse,
} from "./adk-types.ts";
import {
  changeState,
  deltaOf,
  joinedState,
  mergedState,
  pendingIn,
  pendingOf,
  splitState,
  stateOf,
  type PendingState,
} from "./state.ts";

/**
 * Configures `createAdkSessionService`. Policies are checked when a user message is appended, before a model is asked.
 */
export interface AdkSessionServiceOptions extends AdapterOptions, RunPolicyOptions {
  /**
   * Returns the session behind a key, for sessions that other programs created; null for the usual session.
   * @default the usual session
   */
  readonly refOf?: ((key: AdkSessionKey) => SessionRef | null) | undefined;
  /** Names the author of replies that another program wrote. @default the name of the app */
  readonly agentName?: string | undefined;
  /** Is called for content of another program that an event cannot hold. @default none */
  readonly onLoss?: LiveItemsOptions["onLoss"] | undefined;
  /** Erases the session permanently on `deleteSession`. @default false: the session is archived */
  readonly purge?: boolean | undefined;
}

/** Lists the methods that the service has in addition to the ADK's methods. */
export interface AdkSessionExtras {
  /** Returns the session behind a key. @throws {ThroughlineError} INPUT_INVALID for a key that lacks a field */
  sessionOf(key: AdkSessionKey): SessionRef;
}

const { callback, filledText, flag, integer, object, required, text } = optionKinds;
const table: OptionTable<AdkSessionServiceOptions> = {
  ...adapterOptionTable,
  ...runPolicyTable,
  refOf: callback,
  agentName: filledText,
  onLoss: callback,
  purge: flag,
};

/**
 * Creates a session service for the ADK's `Runner`.
 * @param base the ADK's own `BaseSessionService`
 * @throws {ThroughlineError} INPUT_INVALID for an option that is unknown or of another type, and a base that is no class
 * @example new Runner({ appName, agent, sessionService: createAdkSessionService(BaseSessionService, { store }) })
 */
export function createAdkSessionService<Base extends abstract new () => object>(
  base: Base,
  options: AdkSessionServiceOptions,
): InstanceType<Base> & AdkSessionExtras {
  assertKnownOptions<AdkSessionServiceOptions>("createAdkSessionService", options, table);
  assertArgument("createAdkSessionService", "base", base, callback);
  const sessions = new Sessions(options);
  // The base is abstract only for TypeScript. This subclass implements every method that the base leaves abstract.
  const Class = class extends (base as unknown as AdkBase) {
    createSession = (request: CreateRequest): Promise<AdkSession> => sessions.create(request);
    getSession = (request: GetRequest): Promise<AdkSession | undefined> => sessions.get(request);
    listSessions = (request: ListRequest): Promise<ListResponse> => sessions.list(request);
    deleteSession = (request: AdkSessionKey): Promise<void> => sessions.delete(request);
    sessionOf = (key: AdkSessionKey): SessionRef => sessions.refOf(key);
    override async appendEvent(request: AppendRequest): Promise<Fields> {
      if (request.event["partial"] === true) return request.event;
      await sessions.append(request);
      // The ADK's method updates the session object of the run.
      const event = await super.appendEvent(request);
      sessions.touch(request.session);
      return event;
    }
  };
  // TypeScript cannot infer the methods of a base class that is passed in, so the cast states them.
  return new Class() as unknown as InstanceType<Base> & AdkSessionExtras;
}

interface OpenLog {
  readonly log: FrameworkLog;
  /** Maps ids to records, for the first `count` records of the log. */
  readonly events: Map<string, SourcedRecord>;
  count: number;
}

class Sessions {
  readonly #options: AdkSessionServiceOptions;
  readonly #shared: SettledAdapterOptions;
  readonly #logs = new Map<string, OpenLog>();
  /** Maps a session object of a run to the last record at the time it was read. */
  readonly #seen = new WeakMap<AdkSession, string>();

  constructor(options: AdkSessionServiceOptions) {
    this.#options = options;
    this.#shared = adapterOptions(options);
  }

  refOf(key: AdkSessionKey): SessionRef {
    const table: OptionTable<AdkSessionKey> = {
      appName: required(text),
      userId: required(text),
      sessionId: required(text),
    };
    const { appName, userId, sessionId } = key;
    assertKnownOptions<AdkSessionKey>("sessionOf", { appName, userId, sessionId }, table, "key");
    return this.#options.refOf?.({ appName, userId, sessionId }) ?? this.#ref("adk", [appName, userId, sessionId]);
  }

  async create({ appName, userId, state = {}, sessionId }: CreateRequest): Promise<AdkSession> {
    assertArgument("createSession", "state", state, object);
    const id = sessionId === undefined || sessionId === "" ? this.#shared.random.uuid() : sessionId;
    const ref = this.refOf({ appName, userId, sessionId: id });
    const split = splitState(plain(state));
    const pending = pendingOf(split, null, this.#shared.clock.nowMs());
    const entry = {
      adkSession: { appName, userId, sessionId: id },
      adkState: split.session,
      ...(pending === null ? {} : { adkPending: pending }),
    };
    const { isNew, state: made } = await openSession(this.#shared.store, ref, { random: this.#shared.random, entry });
    if (!isNew) throw exists(id, ref);
    const told = pending === null ? made : await this.#share({ appName, userId }, ref, pending);
    return this.#session({ appName, userId, sessionId: id }, told, []);
  }

  async get({ config = {}, ...key }: GetRequest): Promise<AdkSession | undefined> {
    const { log } = this.#open(key);
    const view = await log.view();
    if (view.state === null) return undefined;
    // A killed process may have left state that the sessions of the app and the user still lack.
    const pending = pendingIn(view.state.entry);
    const state = pending === null ? view.state : await this.#share(key, log.ref, pending);
    const { agentName = key.appName, onLoss } = this.#options;
    const items = adkEvents(agentName).items(view, onLoss === undefined ? {} : { onLoss });
    const { numRecentEvents = 0, afterTimestamp = 0 } = config;
    const events = items.map(({ value }) => value).slice(numRecentEvents > 0 ? -numRecentEvents : 0);
    const after = afterTimestamp > 0 ? events.filter(({ timestamp }) => Number(timestamp) >= afterTimestamp) : events;
    const session = await this.#session(key, state, after);
    this.#seen.set(session, lastOf(view));
    return session;
  }

  async list({ appName, userId, limit, offset = 0, page, order }: ListRequest): Promise<ListResponse> {
    for (const [name, value, min] of [
      ["limit", limit, 0],
      ["offset", offset, 0],
      ["page", page, 1],
    ] as const)
      if (value !== undefined) assertArgument("listSessions", name, value, integer({ min }));
    const all = (await this.#listed(appName, userId)).map((state) => {
      const { userId: owner, sessionId } = keyOf(state);
      return { id: sessionId, appName, userId: owner, state: {}, events: [], lastUpdateTime: state.updatedAtMs };
    });
    const sign = order === "desc" ? -1 : 1;
    if (order !== undefined) all.sort((a, b) => sign * (a.lastUpdateTime - b.lastUpdateTime) || (a.id < b.id ? -1 : 1));
    const totalItems = all.length;
    if (limit === undefined)
      return {
        sessions: all.slice(offset),
        page: 1,
        limit: totalItems,
        totalItems,
        totalPages: totalItems === 0 ? 0 : 1,
      };
    const from = page === undefined ? offset : (page - 1) * limit;
    const number = page ?? (limit === 0 ? 1 : Math.floor(from / limit) + 1);
    const totalPages = limit === 0 ? 0 : Math.ceil(totalItems / limit);
    return { sessions: all.slice(from, from + limit), page: number, limit, totalItems, totalPages };
  }

  async delete(key: AdkSessionKey): Promise<void> {
    const ref = this.refOf(key);
    try {
      await this.#shared.store.remove(ref, { purge: this.#options.purge === true });
    } catch (error) {
      // The session no longer exists, so the request is fulfilled.
      if (!hasErrorCode(error, "SESSION_NOT_FOUND")) throw error;
    }
  }

  async append({ session, event }: AppendRequest): Promise<void> {
    const key = { appName: session.appName, userId: session.userId, sessionId: session.id };
    const open = this.#open(key);
    const { log } = open;
    const delta = deltaOf(event);
    const value = plain({
      ...event,
      ...(isFields(event["actions"]) ? { actions: { ...event["actions"], stateDelta: delta } } : {}),
    });
    const split = splitState(plain(delta));
    let pending: PendingState | null = null;
    const mayReset = (this.#options.reset ?? null) !== null && value["author"] === "user" && !isAnswer(value);
    if (mayReset) await this.#resetIfDue(session, log);
    const view = await log.append((now) => {
      pending = null;
      if (now.state === null) throw missing(session.id, log.ref);
      if (!this.#isCurrent(session, now)) throw stale(log.ref);
      // The runner stores a user message before it asks a model, so the policy is checked here.
      if (value["author"] === "user") assertMaySend(log.ref, now.state.entry, this.#options.sendPolicy ?? null);
      const { drafts } = storeAdkEvent(now, value, eventOf(open, now, value["id"]), log.place(now));
      if (drafts.length === 0) return null;
      pending = pendingOf(split, pendingIn(now.state.entry), this.#shared.clock.nowMs());
      const entry = {
        adkSession: key,
        ...(Object.keys(split.session).length === 0
          ? {}
          : { adkState: joinedState(stateOf(now.state.entry), split.session) }),
        ...(pending === null ? {} : { adkPending: pending }),
      };
      return { drafts, entry };
    });
    this.#seen.set(session, lastOf(view));
    if (pending !== null) await this.#share(key, log.ref, pending);
  }

  /**
   * Empties the session object of the run after a reset, because the ADK asks the model with the events in that object.
   */
  async #resetIfDue(session: AdkSession, log: FrameworkLog): Promise<void> {
    const view = await log.view();
    // The append rejects both cases with an error, so no reset may come first.
    if (view.state === null || !this.#isCurrent(session, view)) return;
    const { store, clock, random } = this.#shared;
    const place = { store, ref: log.ref, clock, random, isNew: true, keeps: ["adkSession", "adkPending"] };
    if (!(await beforeRun(place, this.#options))) return;
    const { appName, userId, id: sessionId } = session;
    const { state } = await log.view();
    if (state === null) return;
    const fresh = await this.#session({ appName, userId, sessionId }, state, []);
    session.events.length = 0;
    for (const name of Object.keys(session.state)) delete session.state[name];
    Object.assign(session.state, fresh.state);
    this.#seen.set(session, "");
  }

  touch(session: AdkSession): void {
    session.lastUpdateTime = Math.max(session.lastUpdateTime, this.#shared.clock.nowMs());
  }

  /**
   * Checks that no other program wrote since the session object was read. The time decides for an object that the
   * program built itself.
   */
  #isCurrent(session: AdkSession, view: LogView): boolean {
    const seen = this.#seen.get(session);
    return seen === undefined ? (view.state?.updatedAtMs ?? 0) <= session.lastUpdateTime : seen === lastOf(view);
  }

  #open(key: AdkSessionKey): OpenLog {
    const ref = this.refOf(key);
    const name = JSON.stringify(ref);
    const { store, clock, random } = this.#shared;
    const open = this.#logs.get(name) ?? {
      log: createFrameworkLog({ store, ref, clock, random }),
      events: new Map(),
      count: 0,
    };
    this.#logs.delete(name);
    this.#logs.set(name, open);
    const [oldest] = this.#logs.keys();
    // A run keeps its own reference, so a log that is dropped here stays usable.
    if (this.#logs.size > mostOpen && oldest !== undefined) this.#logs.delete(oldest);
    return open;
  }

  async #session(key: AdkSessionKey, { entry, updatedAtMs }: SessionState, events: Fields[]): Promise<AdkSession> {
    const { appName, userId, sessionId } = key;
    const [app, user] = await Promise.all(
      [this.#ref("adk-state", [appName]), this.#ref("adk-state", [appName, userId])].map(async (ref) =>
        stateOf((await this.#shared.store.load(ref))?.entry),
      ),
    );
    const state = mergedState({ session: stateOf(entry), app: app ?? {}, user: user ?? {} });
    const session = { id: sessionId, appName, userId, state, events, lastUpdateTime: updatedAtMs };
    this.#seen.set(session, "");
    return session;
  }

  /**
   * Writes state of the app and the user to their own sessions. The entry keeps it as pending until then, so that a
   * crash loses none.
   */
  async #share(
    { appName, userId }: Pick<AdkSessionKey, "appName" | "userId">,
    ref: SessionRef,
    pending: PendingState,
  ): Promise<SessionState> {
    const { store, random } = this.#shared;
    const { app, user, atMs } = pending;
    await changeState(store, this.#ref("adk-state", [appName]), { delta: app, atMs }, random);
    await changeState(store, this.#ref("adk-state", [appName, userId]), { delta: user, atMs }, random);
    // Another process may have added pending state meanwhile, so only an unchanged value is removed.
    return await updateEntry(store, ref, (entry) =>
      isSameJson(pendingIn(entry), pending) ? patchEntry(entry, { adkPending: undefined }) : entry,
    );
  }

  #ref(framework: string, id: readonly string[]): SessionRef {
    const { agentId, namespace } = this.#shared;
    return frameworkSessionKey({ agentId, namespace, framework, id });
  }

  async #listed(appName: string, userId: string | undefined): Promise<readonly SessionState[]> {
    const { agentId, namespace } = this.#shared;
    const own = this.#ref("adk", userId === undefined ? [appName] : [appName, userId]).key;
    const keys = this.#options.refOf === undefined ? { keyPrefix: `${own}:` } : {};
    const states: SessionState[] = [];
    let cursor: string | null = null;
    do {
      const next = cursor === null ? {} : { cursor };
      const page = await this.#shared.store.list({ agentId, namespace, sort: "key", limit: 1000, ...keys, ...next });
      states.push(
        ...page.sessions.filter((state) => {
          const key = keyOf(state);
          return key.appName === appName && (userId === undefined || key.userId === userId);
        }),
      );
      cursor = page.nextCursor;
    } while (cursor !== null);
    return states;
  }
}

/** Limits the logs in memory; a dropped log is read again on use. */
const mostOpen = 500;

function keyOf({ entry }: SessionState): AdkSessionKey {
  const { appName, userId, sessionId } = isFields(entry["adkSession"]) ? entry["adkSession"] : ({} as Fields);
  const texts = [appName, userId, sessionId].map((one) => (typeof one === "string" ? one : "\0"));
  const [app = "", user = "", id = ""] = texts;
  return { appName: app, userId: user, sessionId: id };
}

/** Notes of other programs do not outdate a run, so only records of the conversation and of the ADK count. */
function lastOf({ records }: LogView): string {
  return records.findLast(({ side, record }) => !side || record["sourceFormat"] === "adk")?.id ?? "";
}

/** Recognizes an answer to a waiting call, such as a confirmation. Its run started earlier, so no reset is due. */
function isAnswer({ content }: Fields): boolean {
  const parts = isFields(content) && Array.isArray(content["parts"]) ? (content["parts"] as readonly unknown[]) : [];
  return parts.some((part) => isFields(part) && part["functionResponse"] !== undefined);
}

function eventOf(open: OpenLog, { records }: LogView, eventId: unknown): SourcedRecord | undefined {
  if (records.length < open.count) open.events.clear();
  const from = records.length < open.count ? 0 : open.count;
  for (const stored of records.slice(from)) open.events.set(stored.id, stored);
  open.count = records.length;
  return open.events.get(adkRecordId(eventId));
}
