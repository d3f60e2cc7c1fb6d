import type { PayloadCodec, SessionStore, StoreCapabilities } from "@throughline/core";
import type { ConformanceAbility, StoreUnderTest } from "./store-under-test.ts";

/** Provides a case with stores. Stores that it opens are closed after the case. */
interface CaseContext {
  /** Holds the store together with the abilities of the setup. */
  readonly under: StoreUnderTest;
  /** Holds the same store without the abilities. */
  readonly store: SessionStore;
  /** Opens another empty store under a codec. Only cases that need `codec` may call it. */
  openWithCodec(codec: PayloadCodec): Promise<StoreUnderTest>;
}

/** Describes one demand of the contract. */
export interface ConformanceCase {
  /** Identifies the case as `<group>/<name>`. It is stable, because reports and `skip` lists refer to it. */
  readonly id: string;
  /** States the demand, as a sentence. */
  readonly demand: string;
  /** Tests whether the case applies to a store with these capabilities. @default to every store */
  readonly requires?: (capabilities: StoreCapabilities) => boolean;
  /** Lists what the setup must offer; otherwise the case is skipped. @default nothing */
  readonly needs?: readonly ConformanceAbility[];
  /**
   * States that the demand applies only to payloads without a codec, or not to payloads at all. The run under a codec
   * skips such a case.
   */
  readonly withoutCodec?: boolean;
  /** Runs the case, and throws when the demand is not met. */
  run(context: CaseContext): Promise<void>;
}
