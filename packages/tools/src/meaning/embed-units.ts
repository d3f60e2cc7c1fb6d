import { type Embedder, hasErrorCode } from "@throughline/core";
import { embedTexts, type TextVector } from "@throughline/core/internal";
import type { MeaningUnit } from "./meaning-units.ts";

/** Servers answer so when a text is too long for the model. */
const tooLong: ReadonlySet<unknown> = new Set([400, 413, 422]);
/** A text that is refused is cut this often before it is left without a vector. */
const mostCuts = 3;

/** Returns the vectors of texts. Where the embedder refuses a request, its texts are sent one by one, and those that are too long are cut. */
export async function embedUnits(
  embedder: Embedder,
  units: readonly MeaningUnit[],
  signal: AbortSignal,
): Promise<readonly TextVector[]> {
  const found: TextVector[] = [];
  for (let from = 0; from < units.length; from += embedder.maxBatch) {
    const some = units.slice(from, from + embedder.maxBatch);
    try {
      found.push(...(await embedTogether(embedder, some, signal)));
    } catch (error) {
      if (!isRefused(error)) throw error;
      found.push(...(await embedOneByOne(embedder, some, signal, error)));
    }
  }
  return found;
}

async function embedTogether(
  embedder: Embedder,
  units: readonly MeaningUnit[],
  signal: AbortSignal,
): Promise<readonly TextVector[]> {
  const texts = units.map(({ text }) => text);
  const vectors = await embedTexts(embedder, texts, { kind: "passage", signal });
  return units.map(({ firstSeq, lastSeq, part }, index) => ({
    firstSeq,
    lastSeq,
    part,
    vector: vectors[index] as Float32Array,
  }));
}

/** @throws the error of the request when each of its texts is refused, because then the request itself is wrong */
async function embedOneByOne(
  embedder: Embedder,
  units: readonly MeaningUnit[],
  signal: AbortSignal,
  error: unknown,
): Promise<readonly TextVector[]> {
  const found: TextVector[] = [];
  for (const unit of units) {
    for (let text = unit.text, cuts = 0; cuts <= mostCuts && text !== ""; cuts++) {
      const answer = await embedTogether(embedder, [{ ...unit, text }], signal).catch((reason: unknown) => {
        if (!isRefused(reason)) throw reason;
        return null;
      });
      if (answer !== null) {
        found.push(...answer);
        break;
      }
      text = text.slice(0, Math.floor(text.length / 2)).toWellFormed();
    }
  }
  if (found.length === 0) throw error;
  return found;
}

function isRefused(error: unknown): boolean {
  return hasErrorCode(error, "EMBEDDING_FAILED") && tooLong.has(error.details["status"]);
}
