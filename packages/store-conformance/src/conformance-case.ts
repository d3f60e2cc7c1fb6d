import type { PayloadCodec, SessionStore, StoreCapabilities } from "@throughline/core";
import type { ConformanceAbility, StoreUnderTest } from "./store-under-test.ts";

/** What a case works with. Stores opened through the context are closed after it. */
interface CaseContext {
  /** The store with what the setup can do to it. */
  readonly under: StoreUnderTest;
  /** The same store by itself. */
  readonly store: SessionStore;
  /** Opens another empty store under a codec; only for cases that need `codec`. */
  openWithCodec(codec: PayloadCodec): Promise<StoreUnderTest>;
}

/** One demand of the contract. */
export interface ConformanceCase {
  /** `<group>/<name>`. Stable: reports and `skip` lists refer to it. */
  readonly id: string;
  /** The demand, as a sentence. */
  readonly demand: string;
  /** Whether the case applies to a store that declares this. @default to every store */
  readonly requires?: (capabilities: StoreCapabilities) => boolean;
  /** What the setup has to offer; without it the case is skipped. @default nothing */
  readonly needs?: readonly ConformanceAbility[];
  /** True when the demand holds for payloads that are kept as they are, or says nothing of them: the run under a codec leaves it out. */
  readonly withoutCodec?: boolean;
  /** Throws when the demand is not met. */
  run(context: CaseContext): Promise<void>;
}
