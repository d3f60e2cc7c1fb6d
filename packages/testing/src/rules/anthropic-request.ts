import type { JsonObject } from "../json-value.ts";
import type { SimulatedModel } from "../model-table.ts";
import type { ThinkingSeals } from "../thinking-seal.ts";

export interface AnthropicRequest {
  readonly body: JsonObject;
  /** Holds the values of the header `anthropic-beta`. */
  readonly betas: readonly string[];
  readonly model: SimulatedModel;
  readonly seals: ThinkingSeals;
  /** Is true for `count_tokens`, which needs no `max_tokens`. */
  readonly countOnly: boolean;
}
