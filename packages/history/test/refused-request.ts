import type { TargetName } from "../src/provider-mappings.ts";

/** A request a provider refuses, in its words, and the smallest change that makes it valid. */
export interface RefusedRequest {
  readonly target: TargetName;
  readonly rule: string;
  readonly title: string;
  readonly bad: readonly unknown[];
  /** A part of the provider's text. */
  readonly says: string;
  readonly good: readonly unknown[];
  /** @default one that takes all that any model of the provider takes */
  readonly model?: string;
}

/** One of a provider's, before its target is named. */
export type ProviderRefusal = Omit<RefusedRequest, "target">;

/** A JSON object as a test writes it. */
export type Wire = Readonly<Record<string, unknown>>;

export const hi: Wire = { role: "user", content: "Hi" };
