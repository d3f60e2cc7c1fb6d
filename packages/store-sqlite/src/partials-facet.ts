import type { Durability, PartialsFacet } from "@throughline/core";
import {
  assertFence,
  assertPartialFits,
  damagedPartial,
  isPartialOf,
  preparePartial,
  readPartial,
} from "@throughline/store-kit/internal";
import { inOneSnapshot } from "./one-snapshot.ts";
import { placeOf } from "./rows.ts";
import { findSession, foundSession, frameOf } from "./session-rows.ts";
import type { StoreHandle } from "./store-handle.ts";

/** Keeps the whole open reply of a session in one row. */
export function createPartials(handle: StoreHandle, durability: Durability): PartialsFacet {
  const { context } = handle;
  return {
    async write(ref, given) {
      handle.life.begin();
      const { partial, text } = preparePartial(given, context.limits);
      await handle.write(
        ({ connection, rows, partials }) => {
          const row = foundSession(connection.statements, ref);
          const place = placeOf(row);
          assertPartialFits(place.ref, frameOf(row).head, partial);
          partials.write(connection, row.session, partial, rows.encodePartial(place, partial.turnId, text));
        },
        { durability },
      );
    },
    read: async (ref) =>
      handle.read((connection) =>
        inOneSnapshot(connection, () => {
          const row = foundSession(connection.statements, ref);
          const found = context.partials.find(connection, row.session);
          const { head } = frameOf(row);
          if (found === undefined) return null;
          const place = placeOf(row);
          const partial = readPartial(context.rows.decodePartial(place, found.turnId, found.partial), place.ref);
          // The row has no checksum of its own, so a damaged fence would hide the partial.
          const { fence, turnId } = found;
          if (partial.fence !== fence || partial.turnId !== turnId) throw damagedPartial(ref);
          return isPartialOf(head, partial) ? partial : null;
        }),
      ),
    async remove(ref, fence) {
      assertFence(fence);
      const isThere = await handle.read((connection) => {
        const row = findSession(connection.statements, ref);
        return row !== undefined && context.partials.find(connection, row.session) !== undefined;
      });
      if (!isThere) return;
      // A partial that a power cut brings back is stale, because its reply is in the log.
      await handle.write(
        ({ connection, partials }) => {
          const row = findSession(connection.statements, ref);
          if (row !== undefined) partials.deleteTo(connection, row.session, fence);
        },
        { durability: "process" },
      );
    },
  };
}
