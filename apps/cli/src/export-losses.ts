import type { ExportLosses } from "@throughline/transfer/internal";
import { counted } from "./counted.ts";

/** Writes one line for each kind of loss. */
export function* lossTexts(losses: ExportLosses): Generator<string> {
  for (const { what, kind, records } of losses.losses()) yield `${what}: ${kind} (${counted(records, "record")})`;
}
