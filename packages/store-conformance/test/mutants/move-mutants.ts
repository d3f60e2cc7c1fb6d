import { ThroughlineError } from "@throughline/core";
import type { SessionRef } from "@throughline/core";
import { isFields } from "@throughline/core/internal";
import { noted, readThrough, type Mutant } from "./mutant.ts";

export const moveMutants: readonly Mutant[] = [
  {
    name: "move loses records",
    foundBy: "move/rename",
    handle: (inner) => ({
      move: async (ref, action) => {
        if (action.kind !== "rename" || (await inner.load({ ...ref, key: action.key })) !== null)
          return inner.move(ref, action);
        const state = await inner.load(ref);
        const moved = await inner.move(ref, action);
        if (state === null || state.head.lastSeq === 0) return moved;
        return inner.save(
          moved.ref,
          { ...moved.entry, sessionId: `${moved.sessionId}-2` },
          { ifRevision: moved.revision },
        );
      },
    }),
  },
  {
    name: "rename copies",
    foundBy: "move/rename",
    handle: (inner, world) => {
      const old = noted(world, "old", () => new Map<string, SessionRef>());
      return {
        move: async (ref, action) => {
          const state = await inner.move(ref, action);
          if (action.kind === "rename") old.set(ref.key, state.ref);
          return state;
        },
        load: (ref, options) => inner.load(old.get(ref.key) ?? ref, options),
      };
    },
  },
  {
    name: "rename forgets idempotency",
    foundBy: "move/rename-keeps-keys",
    handle: (inner) => ({
      append: (ref, drafts, options) =>
        inner.append(
          ref,
          drafts,
          options?.idempotencyKey === undefined || options.idempotencyKey === ""
            ? options
            : { ...options, idempotencyKey: `${options.idempotencyKey}${ref.key.slice(-1)}`.slice(0, 257) },
        ),
    }),
  },
  {
    name: "rename overwrites",
    foundBy: "move/rename-onto-another",
    handle: (inner) => ({
      move: async (ref, action) => {
        if (action.kind === "rename")
          await inner.remove({ ...ref, key: action.key }, { purge: true }).catch(() => undefined);
        return inner.move(ref, action);
      },
    }),
  },
  {
    name: "rename into another agent",
    foundBy: "move/rename-to-another-agent",
    handle: (inner) => ({
      move: (ref, action) =>
        inner.move(
          ref,
          action.kind === "rename"
            ? { ...action, key: action.key.replace("agent:other:", `agent:${ref.agentId}:`) }
            : action,
        ),
    }),
  },
  {
    name: "an archived session takes writes",
    foundBy: "move/archive",
    handle: (inner) => ({
      append: async (ref, drafts, options) => {
        if (ref.archiveId === undefined) return inner.append(ref, drafts, options);
        const { ref: restored } = await inner.move(ref, { kind: "restore" });
        const result = await inner.append(restored, drafts, options);
        await inner.move(restored, { kind: "archive" });
        return result;
      },
    }),
  },
  {
    name: "an archived session keeps its key",
    foundBy: "move/archive",
    handle: (inner, world) => {
      const archived = noted(world, "archived", () => new Map<string, SessionRef>());
      return {
        move: async (ref, action) => {
          const state = await inner.move(ref, action);
          if (action.kind === "archive") archived.set(ref.key, state.ref);
          return state;
        },
        load: async (ref, options) =>
          (await inner.load(ref, options)) ?? (archived.has(ref.key) ? inner.load(archived.get(ref.key) ?? ref) : null),
      };
    },
  },
  {
    name: "one archive a key",
    foundBy: "move/archives-of-one-key",
    handle: (inner) => ({
      move: async (ref, action) => {
        if (action.kind === "archive") {
          const { sessions } = await inner.list({ namespace: ref.namespace, state: "archived", keyPrefix: ref.key });
          for (const each of sessions) if (each.ref.key === ref.key) await inner.remove(each.ref, { purge: true });
        }
        return inner.move(ref, action);
      },
    }),
  },
  {
    name: "restore begins empty",
    foundBy: "move/restore",
    handle: (inner) => ({
      move: async (ref, action) => {
        const state = await inner.move(ref, action);
        if (action.kind !== "restore" || ref.archiveId === undefined) return state;
        await inner.remove(state.ref, { purge: true });
        return inner.save(state.ref, state.entry, { ifRevision: null });
      },
    }),
  },
  {
    name: "restore pushes out who holds the key",
    foundBy: "move/restore-onto-another",
    handle: (inner) => ({
      move: async (ref, action) => {
        if (action.kind === "restore" && ref.archiveId !== undefined) {
          const { archiveId: _archiveId, ...active } = ref;
          await inner.move(active, { kind: "archive" }).catch(() => undefined);
        }
        return inner.move(ref, action);
      },
    }),
  },
  {
    name: "remove purges",
    foundBy: "remove/archives",
    handle: (inner) => ({ remove: (ref) => inner.remove(ref, { purge: true }) }),
  },
  {
    name: "purge archives",
    foundBy: "remove/purge",
    handle: (inner) => ({ remove: (ref) => inner.remove(ref) }),
  },
  {
    name: "purge leaves archived",
    foundBy: "remove/purge-archived",
    handle: (inner) => ({
      remove: async (ref, options) => {
        if (ref.archiveId === undefined) await inner.remove(ref, options);
      },
    }),
  },
  {
    name: "purge takes the archives of the key with it",
    foundBy: "remove/purges-one",
    handle: (inner) => ({
      remove: async (ref, options) => {
        await inner.remove(ref, options);
        if (options?.purge !== true) return;
        const { sessions } = await inner.list({ namespace: ref.namespace, state: "archived", keyPrefix: ref.key });
        for (const each of sessions) await inner.remove(each.ref, options);
      },
    }),
  },
  {
    name: "purge and redaction leave the text in a file",
    foundBy: "remove/files",
    under: ({ files }) => {
      // Stands for a write-ahead log that nobody empties: what once lay in a file goes on lying there.
      return { files: async () => [...((await files?.()) ?? []), Buffer.from("record-secret")] };
    },
  },
];

export const redactMutants: readonly Mutant[] = [
  {
    name: "redact leaves text",
    foundBy: "redact/tombstone",
    handle: (inner, world) => {
      const before = noted(world, "before", () => new Map<string, object>());
      return {
        redact: async (ref, ids, options) => {
          for await (const { records } of inner.read(ref, { payload: "source" })) {
            for (const { id, source } of records) if (ids.includes(id) && !before.has(id)) before.set(id, { source });
          }
          return inner.redact(ref, ids, options);
        },
        read: readThrough(inner, (page, _ref, { payload }) => ({
          ...page,
          records:
            payload === "source"
              ? page.records.map((record) => ({ ...record, ...before.get(record.id) }))
              : page.records,
        })),
      };
    },
  },
  {
    name: "counts redacted messages",
    foundBy: "redact/message-count",
    handle: (inner, world) => {
      const gone = noted(world, "redacted", () => new Set<string>());
      return {
        redact: async (ref, ids, options) => {
          const result = await inner.redact(ref, ids, options);
          ids.forEach((id) => gone.add(id));
          return result;
        },
        load: async (ref, options) => {
          const state = await inner.load(ref, options);
          return state === null ? null : { ...state, messageCount: state.messageCount + gone.size };
        },
      };
    },
  },
  {
    name: "redact removes the record",
    foundBy: "redact/tombstone",
    handle: (inner, world) => {
      const gone = noted(world, "gone", () => new Set<string>());
      return {
        redact: async (ref, ids, options) => {
          const result = await inner.redact(ref, ids, options);
          ids.forEach((id) => gone.add(id));
          return result;
        },
        read: readThrough(inner, (page) => ({ ...page, records: page.records.filter(({ id }) => !gone.has(id)) })),
      };
    },
  },
  {
    name: "redact does what it can",
    foundBy: "redact/unknown-id",
    handle: (inner) => ({
      redact: async (ref, ids, options) => {
        const seqs: number[] = [];
        let failure: unknown = null;
        for (const id of ids) {
          try {
            seqs.push(...(await inner.redact(ref, [id], options)).seqs);
          } catch (error) {
            failure = error;
          }
        }
        if (failure !== null) throw failure;
        return { seqs };
      },
    }),
  },
  {
    name: "redact moves the head",
    foundBy: "redact/head-stays",
    handle: (inner) => ({
      redact: async (ref, ids, options) => {
        const result = await inner.redact(ref, ids, options);
        if (ref.archiveId === undefined) await inner.append(ref, [], { rewindTo: null });
        return result;
      },
    }),
  },
  {
    name: "redacts a tombstone again",
    foundBy: "redact/again",
    handle: (inner, world) => {
      const reasons = noted(world, "reasons", () => new Map<string, string>());
      return {
        redact: async (ref, ids, options) => {
          ids.forEach((id) => reasons.set(id, options.reason));
          return inner.redact(ref, ids, options);
        },
        read: readThrough(inner, (page) => ({
          ...page,
          records: page.records.map((record) =>
            reasons.has(record.id) ? { ...record, reason: reasons.get(record.id) } : record,
          ),
        })),
      };
    },
  },
  {
    name: "redact believes a record that calls itself redacted",
    foundBy: "redact/look-alike",
    handle: (inner) => ({
      redact: async (ref, ids, options) => {
        const alike: string[] = [];
        for await (const { records } of inner.read(ref))
          for (const { id, record } of records) if (isFields(record["data"]) && record["v"] === 1) alike.push(id);
        return inner.redact(
          ref,
          ids.filter((id) => !alike.includes(id)),
          options,
        );
      },
    }),
  },
  {
    name: "redact refuses archived sessions",
    foundBy: "redact/archived",
    handle: (inner) => ({
      redact: async (ref, ids, options) => {
        if (ref.archiveId !== undefined)
          throw new ThroughlineError("SESSION_ARCHIVED", "The session is archived.", { outcome: "not-applied" });
        return inner.redact(ref, ids, options);
      },
    }),
  },
  {
    name: "a redacted id is free again",
    foundBy: "redact/id-stays-taken",
    handle: (inner, world) => {
      const free = noted(world, "free", () => new Set<string>());
      return {
        redact: async (ref, ids, options) => {
          const result = await inner.redact(ref, ids, options);
          ids.forEach((id) => free.add(id));
          return result;
        },
        append: (ref, drafts, options) =>
          inner.append(
            ref,
            drafts.map((draft) =>
              "id" in draft && free.has(String(draft.id)) ? { ...draft, id: `${draft.id}-again` } : draft,
            ) as typeof drafts,
            options,
          ),
      };
    },
  },
];
