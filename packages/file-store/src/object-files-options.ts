import type { Clock, FilesFacet } from "@throughline/core";
import type { HandleLife, PayloadCoder } from "@throughline/store-kit/internal";
import type { FileStore } from "./file-store.ts";

/** Holds what the files of a store in object storage need. */
export interface ObjectFilesOptions {
  readonly objects: FileStore;
  /** Holds the references, and the files that were put before there was object storage. */
  readonly inner: FilesFacet;
  readonly coder: PayloadCoder;
  readonly isCoded: boolean;
  readonly life: HandleLife;
  readonly maxBytes: number;
  readonly clock: Clock;
  readonly newId: () => string;
}
