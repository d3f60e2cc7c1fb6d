import type { FilesFacet, SessionStore } from "@throughline/core";
import type { Mutant, MutantWorld } from "./mutant.ts";

export type BrokenHandle = NonNullable<Mutant["handle"]>;

/** The facet with some of its members wrong. */
export function broken(
  change: (facet: FilesFacet, inner: SessionStore, world: MutantWorld) => Partial<FilesFacet>,
): BrokenHandle {
  return (inner, world) => {
    const facet = inner.files as FilesFacet;
    return { files: { ...facet, ...change(facet, inner, world) } };
  };
}

const chunkBytes = 256 * 1024;

async function* changed(
  pieces: AsyncIterable<Uint8Array>,
  change: (piece: Uint8Array, at: number) => Uint8Array,
): AsyncGenerator<Uint8Array> {
  let at = 0;
  for await (const piece of pieces) {
    yield change(piece, at);
    at += piece.byteLength;
  }
}

/** Yields the bytes in one piece. */
export async function* only(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

export const fileMutants: readonly Mutant[] = [
  {
    name: "loses the last byte of a full chunk",
    foundBy: "files/round-trip",
    handle: broken((facet) => ({
      get: (scope, id, options) =>
        changed(facet.get(scope, id, options), (piece) =>
          piece.byteLength === chunkBytes ? piece.subarray(0, -1) : piece,
        ),
    })),
  },
  {
    name: "an empty file is none",
    foundBy: "files/round-trip",
    handle: broken((facet) => ({
      stat: async (scope, id) => {
        const found = await facet.stat(scope, id);
        return found?.bytes === 0 ? null : found;
      },
    })),
  },
  {
    name: "a second put of the same bytes takes the file away",
    foundBy: "files/once",
    handle: broken((facet) => {
      const known = new Set<string>();
      return {
        put: async (scope, content, options) => {
          const put = await facet.put(scope, content, options);
          if (known.has(put.id)) await facet.delete(scope, put.id);
          known.add(put.id);
          return put;
        },
      };
    }),
  },
  {
    name: "a range ends one byte too late",
    foundBy: "files/range",
    handle: broken((facet) => ({
      get: (scope, id, options = {}) =>
        facet.get(scope, id, options.to === undefined ? options : { ...options, to: options.to + 1 }),
    })),
  },
  {
    name: "a file that is not there is empty",
    foundBy: "files/not-found",
    handle: broken((facet) => ({
      get: async function* (scope, id, options) {
        if ((await facet.stat(scope, id)) !== null) yield* facet.get(scope, id, options);
      },
    })),
  },
  {
    name: "an id in capitals finds the file",
    foundBy: "files/not-found",
    handle: broken((facet) => ({ stat: (scope, id) => facet.stat(scope, id.toLowerCase()) })),
  },
  {
    name: "files of a namespace are files of all",
    foundBy: "files/scope",
    handle: broken((facet) => ({
      get: (scope, id, options) => facet.get({ ...scope, namespace: "" }, id, options),
    })),
  },
  {
    name: "files of an agent are files of all",
    foundBy: "files/scope",
    handle: broken((facet) => ({ stat: (scope, id) => facet.stat({ ...scope, agentId: "main" }, id) })),
  },
  {
    name: "a put tells that another scope has the file",
    foundBy: "files/scope",
    handle: broken((facet) => ({
      put: async (scope, content, options) => {
        const put = await facet.put(scope, content, options);
        const theirs = await facet.stat({ namespace: "", agentId: "main" }, put.id);
        return scope.namespace === "" || theirs === null ? put : { ...put, bytes: 0 };
      },
    })),
  },
  {
    name: "the scope of a file is any text",
    foundBy: "files/scope-invalid",
    handle: broken((facet) => ({
      put: (scope, content, options) =>
        facet.put({ namespace: scope.namespace.replace("/", "-"), agentId: "main" }, content, options),
    })),
  },
  {
    name: "what arrived of a broken upload is a file",
    foundBy: "files/unfinished",
    handle: broken((facet) => ({
      put: async (scope, content, options) => {
        const arrived: Uint8Array[] = [];
        const copying = changed(content, (piece) => (arrived.push(piece), piece));
        return facet.put(scope, copying, options).catch(async (error: unknown) => {
          await facet.put(scope, only(Buffer.concat(arrived)));
          throw error;
        });
      },
    })),
  },
  {
    name: "a file is seen while it arrives",
    foundBy: "files/unfinished",
    handle: broken((facet) => ({
      put: async (scope, content, options) => {
        const seen: string[] = [];
        const arriving = async function* (): AsyncGenerator<Uint8Array> {
          for await (const piece of content) {
            seen.push((await facet.put(scope, only(piece))).id);
            yield piece;
          }
        };
        return facet.put(scope, arriving(), options).finally(async () => {
          for (const id of seen) await facet.delete(scope, id);
        });
      },
    })),
  },
  {
    name: "the bound of a file is checked at its end",
    foundBy: "files/too-large",
    handle: broken((facet) => ({
      put: async (scope, content, options) => {
        const all = Buffer.concat(await Array.fromAsync(content));
        return facet.put(scope, only(all), options);
      },
    })),
  },
  {
    name: "a put does not listen to its signal",
    foundBy: "files/aborted",
    handle: broken((facet) => ({
      put: (scope, content, { signal: _signal, ...options } = {}) => facet.put(scope, content, options),
    })),
  },
  {
    name: "texts are files",
    foundBy: "files/not-bytes",
    handle: broken((facet) => ({
      put: (scope, content, options) =>
        facet.put(
          scope,
          changed(content, (piece) => Buffer.from(piece)),
          options,
        ),
    })),
  },
  {
    name: "keeps the buffer of the sender",
    foundBy: "files/own",
    handle: broken((facet) => ({
      put: async (scope, content, options) => {
        const held: Uint8Array[] = [];
        for await (const piece of content) held.push(piece);
        const all = async function* (): AsyncGenerator<Uint8Array> {
          yield* held;
        };
        return facet.put(scope, all(), options);
      },
    })),
  },
  {
    name: "a deletion waits for whoever reads",
    foundBy: "files/delete",
    handle: broken((facet) => ({
      get: async function* (scope, id, options) {
        yield* await Array.fromAsync(facet.get(scope, id, options));
      },
    })),
  },
  {
    name: "a file is a record",
    foundBy: "files/no-record",
    handle: broken((facet, inner) => ({
      put: async (scope, content, options) => {
        const put = await facet.put(scope, content, options);
        const { sessions } = await inner.list();
        for (const { ref } of sessions) await inner.append(ref, [{ type: "acme.file", appendMode: "side" }]);
        return put;
      },
    })),
  },
  {
    name: "a list of files ends with its first page",
    foundBy: "files/pages",
    handle: broken((facet) => ({
      list: async function* (scope, options) {
        for await (const page of facet.list(scope, options)) return yield page;
      },
    })),
  },
  {
    name: "files of each handle",
    foundBy: "files/other-handle",
    handle: broken((facet) => {
      const own = new Set<string>();
      return {
        put: async (scope, content, options) => {
          const put = await facet.put(scope, content, options);
          own.add(put.id);
          return put;
        },
        get: (scope, id, options) => facet.get(scope, own.has(id) ? id : "", options),
      };
    }),
  },
  {
    name: "forgets files when it is opened again",
    foundBy: "files/reopen",
    handle: (inner, world) => {
      const facet = inner.files as FilesFacet;
      const number = world.handles;
      return {
        close: async () => {
          world.notes.set("closed files", number);
          await inner.close();
        },
        files: {
          ...facet,
          get: (scope, id, options) => {
            const isAfter = number > Number(world.notes.get("closed files") ?? Infinity);
            return facet.get(scope, isAfter ? "" : id, options);
          },
        },
      };
    },
  },
  {
    name: "gives files after it was closed",
    foundBy: "files/closed",
    handle: broken((facet) => ({
      stat: async (scope, id) => facet.stat(scope, id).catch(() => null),
    })),
  },
  {
    name: "files in plain beside the codec",
    foundBy: "files/codec",
    under: ({ files, store }) => {
      const plain: Uint8Array[] = [];
      const facet = store.files as FilesFacet;
      const put: FilesFacet["put"] = (scope, content, options) =>
        facet.put(
          scope,
          changed(content, (piece) => (plain.push(Buffer.from(piece)), piece)),
          options,
        );
      return {
        store: Object.assign(Object.create(store) as SessionStore, { files: { ...facet, put } }),
        files: async () => [...((await files?.()) ?? []), Buffer.concat(plain)],
      };
    },
  },
  {
    name: "the codec is not asked for files",
    foundBy: "files/codec-fails",
    codec: (codec) => ({
      ...codec,
      encode: (plain, context) => (context.part === "file" ? plain : codec.encode(plain, context)),
      decode: (coded, context) => (context.part === "file" ? coded : codec.decode(coded, context)),
    }),
  },
];
