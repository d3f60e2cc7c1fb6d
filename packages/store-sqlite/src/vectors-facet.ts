import { setImmediate as pause } from "node:timers/promises";
import type { PayloadCodec, VectorsFacet } from "@throughline/core";
import { createVectorsFacet, type ShownSession, type VectorBackend } from "@throughline/store-kit/internal";
import type { StoreHandle } from "./store-handle.ts";
import {
  beginForgetting,
  createVectorTables,
  forgetSlice,
  hasVectors,
  pendingVectors,
  putVectors,
  readCodes,
  readSessionIds,
  readVectors,
  searchedSessions,
  shownSessions,
} from "./vector-rows.ts";

/** Vectors can be computed again, so they need not wait for the disk. */
const derived = { durability: "process" } as const;
/** This many sessions are read in one turn of the event loop, in about 4 ms. */
const sessionsAtOnce = 1000;

/** Keeps vectors in tables beside the records. */
export function createVectors(handle: StoreHandle, codec: PayloadCodec | undefined): VectorsFacet {
  return createVectorsFacet(backendOf(handle), handle.life, codec);
}

function backendOf(handle: StoreHandle): VectorBackend {
  return {
    put: (ref, put) => handle.write(({ connection }) => putVectors(connection, ref, put), derived),
    async pending(scope, { model, limit, signal }) {
      // Without the tables a redaction could not refuse the batch that is read next.
      if (!(await handle.read(hasVectors, signal)))
        await handle.write(({ connection }) => createVectorTables(connection), { ...derived, signal });
      return handle.read((connection) => pendingVectors(connection, scope, { model, limit }), signal);
    },
    async shown(query) {
      const sessions = await handle.read((connection) => searchedSessions(connection, query));
      const found: ShownSession[] = [];
      // A read of 10,000 sessions would hold the event loop for 40 ms.
      for (let at = 0; at < sessions.length; at += sessionsAtOnce) {
        const some = sessions.slice(at, at + sessionsAtOnce);
        found.push(...(await handle.read((connection) => shownSessions(connection, query, some))));
        await pause();
      }
      return found;
    },
    codes: (scope, model, after, limit) =>
      handle.read((connection) =>
        hasVectors(connection) ? readCodes(connection, scope, model, { after, limit }) : [],
      ),
    sessionIds: (_scope, owners) => handle.read((connection) => readSessionIds(connection, owners)),
    vectors: (scope, model, numbers) => handle.read((connection) => readVectors(connection, scope, model, numbers)),
    async forget(scope, keep) {
      let count = 0;
      let sets: readonly number[] = [];
      await handle.remove(
        ({ connection }) => void (sets = beginForgetting(connection, scope, keep)),
        derived,
        ({ connection }) => {
          const deleted = sets.length === 0 ? 0 : forgetSlice(connection, sets);
          count += deleted;
          return deleted > 0;
        },
      );
      return count;
    },
  };
}
