import type { SessionState } from "@throughline/core";
import type { HandOffTarget } from "@throughline/transfer/internal";

/** The answer of the picker: a session to open here or elsewhere, or how the person left it. */
export type Picked =
  | { readonly kind: "new" }
  | { readonly kind: "back" }
  | { readonly kind: "leave"; readonly code: number }
  | { readonly kind: "continue"; readonly state: SessionState }
  /** `line` continues the session in its own program. */
  | { readonly kind: "resume"; readonly line: string }
  | { readonly kind: "handoff"; readonly state: SessionState; readonly to: HandOffTarget };
