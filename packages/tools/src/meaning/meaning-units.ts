import { outputRoles, type Episode } from "../search/episodes.ts";

/** Holds a text that gets one vector. */
export interface MeaningUnit {
  readonly firstSeq: number;
  readonly lastSeq: number;
  /** Numbers the texts of an exchange, from 0. */
  readonly part: number;
  readonly text: string;
}

/** A longer text says too many things for one vector. */
const mostLength = 2000;
/** Code and languages other than English have fewer characters in a token than the usual four. */
const charactersInToken = 3;
/** The beginning of an output says what was called and how it went. The rest of it would drown what people wrote. */
const outputHead = 400;

/** Splits an exchange into texts that fit the model. */
export function unitsOf({ parts }: Pick<Episode, "parts">, maxTokens: number): readonly MeaningUnit[] {
  const most = Math.max(100, Math.min(mostLength, maxTokens * charactersInToken));
  const units: MeaningUnit[] = [];
  let open: { firstSeq: number; lastSeq: number; text: string } | null = null;
  const end = (): void => {
    if (open !== null) units.push({ ...open, part: units.length });
    open = null;
  };
  for (const { seq, role, text } of parts) {
    const shown = outputRoles.has(role) ? text.slice(0, outputHead) : text;
    for (let from = 0; from < shown.length; from += most) {
      const piece = shown.slice(from, from + most).toWellFormed();
      if (open !== null && open.text.length + piece.length + 1 > most) end();
      open =
        open === null
          ? { firstSeq: seq, lastSeq: seq, text: piece }
          : { firstSeq: open.firstSeq, lastSeq: seq, text: `${open.text}\n${piece}` };
    }
  }
  end();
  return units.filter(({ text }) => text.trim() !== "");
}

/** Estimates the tokens of some texts. Providers count them exactly and bill them. */
export function estimateTokens(texts: readonly { readonly text: string }[]): number {
  return Math.ceil(texts.reduce((sum, { text }) => sum + text.length, 0) / charactersInToken);
}
