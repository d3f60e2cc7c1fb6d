import { getJson } from "../api.ts";
import type { SessionPlace } from "../router.ts";
import { placeQuery, sessionPath } from "./session-outline.ts";

/** Names a block of a record, of which the server sent only the start. */
export interface BlockProps {
  readonly id: string;
  readonly block: number;
  readonly totalBytes: number;
  readonly place: SessionPlace;
}

interface BlockJson {
  readonly text: string;
  readonly nextFrom: number | null;
  readonly totalBytes: number;
}

const stepBytes = 256 * 1024;

/** Reads the next 256 KiB of a block. @throws {ApiError} */
export function readBlock(
  { id, block, place }: Pick<BlockProps, "id" | "block" | "place">,
  from: number,
  signal?: AbortSignal,
): Promise<BlockJson> {
  const path = sessionPath(place, `/records/${encodeURIComponent(id)}`);
  return getJson<BlockJson>(path, { ...placeQuery(place), block, from, bytes: stepBytes }, signal);
}
