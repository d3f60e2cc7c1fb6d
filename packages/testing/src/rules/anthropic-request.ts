import type { JsonObject } from "../json-value.ts";
import type { SimulatedModel } from "../model-table.ts";
import type { ThinkingSeals } from "../thinking-seal.ts";

/** A Messages request with what the rules have to know besides it. */
export interface AnthropicRequest {
  readonly body: JsonObject;
  /** The values of `anthropic-beta`. */
  readonly betas: readonly string[];
  readonly model: SimulatedModel;
  readonly seals: ThinkingSeals;
  /** True for `count_tokens`, which needs no `max_tokens`. */
  readonly countOnly: boolean;
}
