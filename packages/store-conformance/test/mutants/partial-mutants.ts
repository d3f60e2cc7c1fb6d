import { ThroughlineError } from "@throughline/core";
import type { PartialReply, PartialsFacet, SessionRef, SessionStore } from "@throughline/core";
import { noted, type Mutant, type MutantWorld } from "./mutant.ts";

type BrokenHandle = NonNullable<Mutant["handle"]>;

/** The facet with some of its members wrong. */
function broken(
  change: (facet: PartialsFacet, inner: SessionStore, world: MutantWorld) => Partial<PartialsFacet>,
): BrokenHandle {
  return (inner, world) => {
    const facet = inner.partials as PartialsFacet;
    return { partials: { ...facet, ...change(facet, inner, world) } };
  };
}

/** What was written last, by the id of its session: a store that knows no turns. */
function bookOf(world: MutantWorld): Map<string, PartialReply> {
  return noted(world, "partials", () => new Map<string, PartialReply>());
}

/** Notes what is written; `read` decides when it is given all the same. */
function remembering(
  read: (found: PartialReply | undefined, now: PartialReply | null, inner: SessionStore, ref: SessionRef) => unknown,
): BrokenHandle {
  return broken((facet, inner, world) => ({
    write: async (ref, partial) => {
      await facet.write(ref, partial);
      bookOf(world).set(partial.sessionId, { ...partial });
    },
    read: async (ref) => {
      const now = await facet.read(ref);
      const { sessionId = "" } = (await inner.load(ref)) ?? {};
      return (await read(bookOf(world).get(sessionId), now, inner, ref)) as PartialReply | null;
    },
    remove: async (ref, fence) => {
      await facet.remove(ref, fence);
      const { sessionId = "" } = (await inner.load(ref)) ?? {};
      if ((bookOf(world).get(sessionId)?.fence ?? Infinity) <= fence) bookOf(world).delete(sessionId);
    },
  }));
}

async function fenceOf(inner: SessionStore, ref: SessionRef): Promise<number> {
  return (await inner.load(ref))?.head.fence ?? 0;
}

async function isOpen(inner: SessionStore, ref: SessionRef): Promise<boolean> {
  return (await inner.load(ref))?.head.turn != null;
}

/** What was written before an operation is there after it again. */
function bringingBack(
  operation: "redact" | "remove" | "save" | "move",
  readRef: (ref: SessionRef) => SessionRef = (ref) => ref,
): BrokenHandle {
  return (inner, world) => {
    const facet = inner.partials as PartialsFacet;
    const kept = noted(world, `kept ${operation}`, () => new Map<string, PartialReply>());
    const own = inner[operation].bind(inner) as (ref: SessionRef, ...rest: unknown[]) => Promise<unknown>;
    return {
      [operation]: async (ref: SessionRef, ...rest: unknown[]) => {
        const before = await facet.read(ref);
        const sharers = (await inner.list({ namespace: ref.namespace })).sessions.filter(
          (each) => each.ref.key !== ref.key,
        );
        const theirs = await Promise.all(sharers.map((each) => facet.read(each.ref)));
        const result = await own(ref, ...rest);
        if (before !== null) kept.set(before.sessionId, before);
        for (const each of theirs) if (each !== null) kept.set(each.sessionId, each);
        return result;
      },
      partials: {
        ...facet,
        read: async (ref: SessionRef) => {
          const now = await facet.read(ref);
          const { sessionId = "" } = (await inner.load(readRef(ref))) ?? {};
          return now ?? kept.get(sessionId) ?? null;
        },
      },
    };
  };
}

export const partialMutants: readonly Mutant[] = [
  {
    name: "a redaction removes the partial before it looks for the records",
    foundBy: "partials/redact-refused",
    handle: (inner) => ({
      redact: async (ref, ids, options) => {
        await inner.partials?.remove(ref, await fenceOf(inner, ref));
        return inner.redact(ref, ids, options);
      },
    }),
  },
  {
    name: "trims a partial",
    foundBy: "partials/round-trip",
    handle: broken((facet) => ({
      write: (ref, partial) => facet.write(ref, { ...partial, text: partial.text.replaceAll("\0", "") }),
    })),
  },
  {
    name: "a partial only grows",
    foundBy: "partials/replaces",
    handle: remembering((found, now) =>
      now !== null && found !== undefined && now.text.length < secretLength ? { ...now, text: `${now.text}.` } : now,
    ),
  },
  {
    name: "keeps partials in the log",
    foundBy: "partials/no-record",
    handle: broken((facet, inner) => ({
      write: async (ref, partial) => {
        await facet.write(ref, partial);
        await inner.append(ref, [{ type: "acme.partial", appendMode: "side" }]);
      },
    })),
  },
  {
    name: "one partial for all sessions",
    foundBy: "partials/per-session",
    handle: broken((facet, _inner, world) => ({
      write: async (ref, partial) => {
        await facet.write(ref, partial);
        world.notes.set("last partial", partial);
      },
      read: async (ref) =>
        (await facet.read(ref)) === null ? null : (world.notes.get("last partial") as PartialReply),
    })),
  },
  {
    name: "gives the partial of a turn that was taken over",
    foundBy: "partials/old-fence",
    handle: remembering(async (found, now, inner, ref) =>
      found !== undefined && now === null && (await fenceOf(inner, ref)) > found.fence ? found : now,
    ),
  },
  {
    name: "gives the partial of a closed turn",
    foundBy: "partials/closed-turn",
    handle: remembering(async (found, now, inner, ref) =>
      found !== undefined && now === null && !(await isOpen(inner, ref)) ? found : now,
    ),
  },
  {
    name: "a partial needs no turn but a fence",
    foundBy: "partials/no-turn",
    handle: broken((facet, inner) => ({
      write: async (ref, partial) => {
        const { turn = null } = (await inner.load(ref))?.head ?? {};
        await facet.write(ref, turn === null ? partial : { ...partial, turnId: turn.turnId });
      },
    })),
  },
  {
    name: "partials of each handle",
    foundBy: "partials/other-handle",
    handle: broken((facet) => {
      const own = new Map<string, PartialReply>();
      return {
        write: async (ref, partial) => {
          await facet.write(ref, partial);
          own.set(partial.sessionId, partial);
        },
        read: async (ref) => {
          const now = await facet.read(ref);
          return now === null ? null : (own.get(now.sessionId) ?? null);
        },
      };
    }),
  },
  {
    name: "forgets partials when it is opened again",
    foundBy: "partials/reopen",
    handle: (inner, world) => {
      const facet = inner.partials as PartialsFacet;
      const number = world.handles;
      return {
        close: async () => {
          world.notes.set("closed", number);
          await inner.close();
        },
        partials: {
          ...facet,
          read: async (ref) => (number > Number(world.notes.get("closed") ?? Infinity) ? null : facet.read(ref)),
        },
      };
    },
  },
  {
    name: "removes a partial whatever the fence",
    foundBy: "partials/remove",
    handle: broken((facet) => ({ remove: (ref) => facet.remove(ref, Number.MAX_SAFE_INTEGER) })),
  },
  {
    name: "never removes a partial",
    foundBy: "partials/remove",
    handle: broken(() => ({ remove: async () => undefined })),
  },
  {
    name: "fails to remove what is not there",
    foundBy: "partials/remove-nothing",
    handle: broken((facet) => ({
      remove: async (ref, fence) => {
        if ((await facet.read(ref)) !== null) return facet.remove(ref, fence);
        throw new ThroughlineError("RECORD_NOT_FOUND", "There is no partial.", { outcome: "not-applied" });
      },
    })),
  },
  { name: "a redaction leaves the partial", foundBy: "partials/redact", handle: bringingBack("redact") },
  {
    name: "a redaction leaves the partials of forks",
    foundBy: "partials/redact-shared",
    handle: bringingBack("redact"),
  },
  {
    name: "a purged session has a partial",
    foundBy: "partials/purge",
    handle: broken((facet, inner) => ({
      read: async (ref) => ((await inner.load(ref)) === null ? null : facet.read(ref)),
    })),
  },
  { name: "a reset leaves the partial", foundBy: "partials/reset", handle: bringingBack("save") },
  { name: "archiving leaves the partial", foundBy: "partials/archive", handle: bringingBack("move") },
  { name: "removing leaves the partial", foundBy: "partials/archived-by-remove", handle: bringingBack("remove") },
  {
    name: "a partial is lost with its key",
    foundBy: "partials/rename",
    handle: (inner) => ({
      move: async (ref, action) => {
        if (action.kind === "rename") await inner.partials?.remove(ref, Number.MAX_SAFE_INTEGER);
        return inner.move(ref, action);
      },
    }),
  },
  {
    name: "a fork has the partial of its origin",
    foundBy: "partials/fork",
    handle: broken((facet, inner) => ({
      read: async (ref) => {
        const forkedFrom = (await inner.load(ref))?.entry["forkedFrom"] as { readonly key?: string } | undefined;
        return facet.read(forkedFrom?.key === undefined ? ref : { ...ref, key: forkedFrom.key });
      },
    })),
  },
  {
    name: "a partial may be as large as it likes",
    foundBy: "partials/too-large",
    handle: broken((facet) => ({
      write: (ref, partial) => facet.write(ref, { ...partial, text: partial.text.slice(0, 1000) }),
    })),
  },
  {
    name: "keeps of a partial what nobody knows",
    foundBy: "partials/not-one",
    handle: broken((facet, _inner, world) => ({
      write: async (ref, partial) => {
        await facet.write(ref, partial);
        bookOf(world).set(partial.sessionId, { ...partial });
      },
      read: async (ref) => {
        const now = await facet.read(ref);
        return now === null ? null : (bookOf(world).get(now.sessionId) ?? now);
      },
    })),
  },
  {
    name: "no session has no partial",
    foundBy: "partials/missing-session",
    handle: broken((facet, inner) => ({
      read: async (ref) => ((await inner.load(ref)) === null ? null : facet.read(ref)),
    })),
  },
  {
    name: "a partial is the caller's own object",
    foundBy: "partials/own",
    handle: broken((facet, _inner, world) => ({
      write: async (ref, partial) => {
        await facet.write(ref, partial);
        bookOf(world).set(partial.sessionId, partial);
      },
      read: async (ref) => {
        const now = await facet.read(ref);
        return now === null ? null : (bookOf(world).get(now.sessionId) ?? now);
      },
    })),
  },
  {
    name: "gives partials after it was closed",
    foundBy: "partials/closed",
    handle: broken((facet, _inner, world) => ({
      read: async (ref) => {
        const read = await facet.read(ref).catch(() => (world.notes.get("closed partial") as PartialReply) ?? null);
        world.notes.set("closed partial", read);
        return read;
      },
    })),
  },
  {
    name: "a partial in plain beside the codec",
    foundBy: "partials/codec",
    under: ({ files, store }) => {
      const plain: Uint8Array[] = [];
      const facet = store.partials as PartialsFacet;
      const write: PartialsFacet["write"] = (ref, partial) => {
        plain.push(Buffer.from(partial.text));
        return facet.write(ref, partial);
      };
      return {
        store: Object.assign(Object.create(store) as SessionStore, { partials: { ...facet, write } }),
        files: async () => [...((await files?.()) ?? []), ...plain],
      };
    },
  },
  {
    name: "a partial makes room before it is coded",
    foundBy: "partials/codec-fails",
    handle: broken((facet) => ({
      write: async (ref, partial) => {
        await facet.remove(ref, partial.fence);
        await facet.write(ref, partial);
      },
    })),
  },
];

/** Of the text that most cases write. */
const secretLength = "partial-secret".length;
