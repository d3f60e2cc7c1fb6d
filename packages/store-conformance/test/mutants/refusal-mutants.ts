import { hasErrorCode, ThroughlineError } from "@throughline/core";
import type { AppendDraft, AppendOptions, ErrorCode, SessionRef, SessionStore } from "@throughline/core";
import { readWith, without, type Mutant } from "./mutant.ts";

/** An append that looks at a refusal once more: `other` gives the reason this store names first. */
function naming(
  inner: SessionStore,
  code: ErrorCode,
  other: (ref: SessionRef, drafts: readonly AppendDraft[], options: AppendOptions) => Promise<ErrorCode | null>,
): Partial<SessionStore> {
  return {
    append: async (ref, drafts, options = {}) => {
      try {
        return await inner.append(ref, drafts, options);
      } catch (error) {
        const first = hasErrorCode(error, code) ? await other(ref, drafts, options) : null;
        if (first === null) throw error;
        throw new ThroughlineError(first, "This store looks at something else first.", { outcome: "not-applied" });
      }
    },
  };
}

/** An append that takes odd text out of what it was given when it is refused for it. */
function cleaning(
  inner: SessionStore,
  code: ErrorCode,
  clean: (draft: AppendDraft, options: AppendOptions | undefined) => readonly [AppendDraft, AppendOptions | undefined],
): Partial<SessionStore> {
  return {
    append: async (ref, drafts, options) => {
      try {
        return await inner.append(ref, drafts, options);
      } catch (error) {
        const [draft] = drafts;
        if (!hasErrorCode(error, code) || drafts.length !== 1 || draft === undefined) throw error;
        const [cleaned, changed] = clean(draft, options);
        return inner.append(ref, [cleaned], changed);
      }
    },
  };
}

function plain(text: unknown): string {
  return String(text).replace(/\p{Cc}|\p{Cs}/gu, "");
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}

async function heldIds(store: SessionStore, ref: SessionRef): Promise<ReadonlySet<string>> {
  const ids = new Set<string>();
  for await (const { records } of store.read(ref, { payload: "head" })) for (const { id } of records) ids.add(id);
  return ids;
}

async function hasOtherHead(store: SessionStore, ref: SessionRef, { expect }: AppendOptions): Promise<boolean> {
  return expect !== undefined && (await store.load(ref))?.head.headId !== expect.head;
}

/** Options without those of a value that the store does not know. */
function known<Options extends object>(
  options: Options,
  values: Readonly<Partial<Record<keyof Options, readonly unknown[]>>>,
): Options {
  const isKnown = ([name, value]: [string, unknown]): boolean => values[name as keyof Options]?.includes(value) ?? true;
  return Object.fromEntries(Object.entries(options).filter(isKnown)) as Options;
}

export const refusalMutants: readonly Mutant[] = [
  {
    name: "any other order is ascending",
    foundBy: "refusals/odd-reads",
    handle: (inner) => ({ read: readWith(inner, (options) => known(options, { order: ["ascending", "descending"] })) }),
  },
  {
    name: "any other payload is the record",
    foundBy: "refusals/odd-reads",
    handle: (inner) => ({
      read: readWith(inner, (options) => known(options, { payload: ["record", "source", "head"] })),
    }),
  },
  {
    name: "any other sort is by activity",
    foundBy: "refusals/odd-lists",
    handle: (inner) => ({ list: (query = {}) => inner.list(known(query, { sort: ["updated", "key"] })) }),
  },
  {
    name: "any other state is active",
    foundBy: "refusals/odd-lists",
    handle: (inner) => ({ list: (query = {}) => inner.list(known(query, { state: ["active", "archived", "any"] })) }),
  },
  {
    name: "any other move is a restore",
    foundBy: "refusals/odd-moves",
    handle: (inner) => ({
      move: (ref, action) =>
        inner.move(ref, ["rename", "archive", "restore"].includes(action.kind) ? action : { kind: "restore" }),
    }),
  },
  {
    name: "makes a text of a key that is none",
    foundBy: "refusals/odd-refs",
    handle: (inner) => ({
      save: (ref, entry, options) =>
        inner.save(isObject(ref) && isObject(ref.key) ? { ...ref, key: String(ref.key) } : ref, entry, options),
    }),
  },
  {
    name: "says that there is no session at a ref that is none",
    foundBy: "refusals/odd-refs",
    handle: (inner) => ({
      load: async (ref, options) => {
        const isRef = isObject(ref) && [ref.namespace, ref.agentId, ref.key].every((part) => typeof part === "string");
        return isRef ? inner.load(ref, options) : null;
      },
    }),
  },
  {
    name: "takes for no signal what is none",
    foundBy: "refusals/odd-arguments",
    handle: (inner) => ({
      load: (ref, options) =>
        inner.load(ref, options?.signal instanceof AbortSignal ? options : without(options, "signal")),
    }),
  },
  {
    name: "takes for no drafts what are none",
    foundBy: "refusals/odd-arguments",
    handle: (inner) => ({
      append: (ref, drafts, options) => inner.append(ref, Array.isArray(drafts) ? drafts : [], options),
    }),
  },
  {
    name: "takes for no ids what are none",
    foundBy: "refusals/odd-arguments",
    handle: (inner) => ({
      redact: (ref, ids, options) => inner.redact(ref, Array.isArray(ids) ? ids : [], options),
    }),
  },
  {
    name: "looks for the session before the drafts",
    foundBy: "refusals/order",
    handle: (inner) =>
      naming(inner, "RECORD_INVALID", async (ref) => ((await inner.load(ref)) === null ? "SESSION_NOT_FOUND" : null)),
  },
  {
    name: "looks at the archive before the drafts",
    foundBy: "refusals/order",
    handle: (inner) =>
      naming(inner, "RECORD_INVALID", async (ref) => (ref.archiveId === undefined ? null : "SESSION_ARCHIVED")),
  },
  {
    name: "looks at the turn before the key",
    foundBy: "refusals/order",
    handle: (inner) =>
      naming(inner, "IDEMPOTENCY_MISMATCH", async (ref) =>
        (await inner.load(ref))?.head.turn == null ? null : "SESSION_BUSY",
      ),
  },
  {
    name: "looks at the head before the turn",
    foundBy: "refusals/order",
    handle: (inner) =>
      naming(inner, "SESSION_BUSY", async (ref, _drafts, options) =>
        (await hasOtherHead(inner, ref, options)) ? "APPEND_CONFLICT" : null,
      ),
  },
  {
    name: "looks at the head before the fence",
    foundBy: "refusals/order",
    handle: (inner) =>
      naming(inner, "TURN_FENCED", async (ref, _drafts, options) =>
        (await hasOtherHead(inner, ref, options)) ? "APPEND_CONFLICT" : null,
      ),
  },
  {
    name: "looks for taken ids before the head",
    foundBy: "refusals/order",
    handle: (inner) =>
      naming(inner, "APPEND_CONFLICT", async (ref, drafts) => {
        const ids = await heldIds(inner, ref);
        return drafts.some((draft) => "id" in draft && ids.has(String(draft["id"]))) ? "RECORD_ID_TAKEN" : null;
      }),
  },
  {
    name: "takes odd characters out of ids",
    foundBy: "refusals/odd-ids",
    handle: (inner) =>
      cleaning(inner, "RECORD_INVALID", (draft, options) => [
        "id" in draft ? { ...draft, id: plain(draft["id"]) } : draft,
        options,
      ]),
  },
  {
    name: "takes odd characters out of the ids of imported lines",
    foundBy: "refusals/odd-ids",
    handle: (inner) =>
      cleaning(inner, "RECORD_INVALID", (draft, options) => [
        "record" in draft && typeof draft.record === "object" && draft.record !== null
          ? ({ ...draft, record: { ...draft.record, id: plain(Reflect.get(draft.record, "id")) } } as AppendDraft)
          : draft,
        options,
      ]),
  },
  {
    name: "takes odd characters out of turns",
    foundBy: "refusals/odd-turns",
    handle: (inner) =>
      cleaning(inner, "INPUT_INVALID", (draft, options) => {
        const turn = options?.turn;
        if (turn?.action !== "open") return [draft, options];
        return [draft, { ...options, turn: { ...turn, turnId: plain(turn.turnId), owner: plain(turn.owner) } }];
      }),
  },
  {
    name: "takes odd characters out of keys",
    foundBy: "refusals/odd-keys",
    handle: (inner) =>
      cleaning(inner, "INPUT_INVALID", (draft, options) => {
        const idempotencyKey = plain(options?.idempotencyKey ?? "");
        return [draft, { ...without(options, "idempotencyKey"), idempotencyKey }];
      }),
  },
];
