import { ThroughlineError } from "@throughline/core";
import { type EmbedOptions, optionKinds, type OptionTable } from "@throughline/core/internal";

/** States what must be known of a model before its first answer. */
export interface ModelFacts {
  readonly dimensions: number;
  readonly maxTokens: number;
  /** Stands before each question. */
  readonly queryPrefix: string;
  /** Stands before each text in which answers are looked for. */
  readonly passagePrefix: string;
  /** States whether the server shortens vectors when `dimensions` is sent. */
  readonly isShortened: boolean;
}

interface KnownModel extends Partial<ModelFacts> {
  /** The names of the model begin like this, without the publisher. */
  readonly name: string;
  readonly dimensions: number;
  readonly maxTokens: number;
}

/** The length of the vectors and the prefixes are those of the publishers' model cards. The first row that fits counts. */
const knownModels: readonly KnownModel[] = [
  { name: "text-embedding-3-small", dimensions: 1536, maxTokens: 8191, isShortened: true },
  { name: "text-embedding-3-large", dimensions: 3072, maxTokens: 8191, isShortened: true },
  { name: "text-embedding-ada-002", dimensions: 1536, maxTokens: 8191 },
  {
    name: "nomic-embed-text",
    dimensions: 768,
    maxTokens: 2048,
    queryPrefix: "search_query: ",
    passagePrefix: "search_document: ",
  },
  {
    name: "mxbai-embed-large",
    dimensions: 1024,
    maxTokens: 512,
    queryPrefix: "Represent this sentence for searching relevant passages: ",
  },
  { name: "bge-m3", dimensions: 1024, maxTokens: 8192 },
  { name: "all-minilm-l6", dimensions: 384, maxTokens: 256 },
  { name: "all-minilm", dimensions: 384, maxTokens: 256 },
  {
    name: "multilingual-e5-small",
    dimensions: 384,
    maxTokens: 512,
    queryPrefix: "query: ",
    passagePrefix: "passage: ",
  },
  { name: "multilingual-e5-base", dimensions: 768, maxTokens: 512, queryPrefix: "query: ", passagePrefix: "passage: " },
  {
    name: "multilingual-e5-large",
    dimensions: 1024,
    maxTokens: 512,
    queryPrefix: "query: ",
    passagePrefix: "passage: ",
  },
  { name: "snowflake-arctic-embed2", dimensions: 1024, maxTokens: 8192, queryPrefix: "query: " },
  {
    name: "embeddinggemma",
    dimensions: 768,
    maxTokens: 2048,
    queryPrefix: "task: search result | query: ",
    passagePrefix: "title: none | text: ",
  },
];

/** An unknown model gets this limit, because hardly any embedding model takes less. */
const usualMaxTokens = 512;

/** Holds what a caller states of a model. It goes before what is known. */
export interface StatedFacts {
  readonly model: string;
  readonly dimensions?: number | undefined;
  readonly maxTokens?: number | undefined;
  readonly queryPrefix?: string | undefined;
  readonly passagePrefix?: string | undefined;
}

const { integer, text } = optionKinds;

/** Lists the kinds of what a caller states of a model, for the options of each embedder. */
export const statedKinds: OptionTable<Omit<StatedFacts, "model">> = {
  dimensions: integer({ min: 1, max: 100_000 }),
  maxTokens: integer({ min: 1 }),
  queryPrefix: text,
  passagePrefix: text,
};

/**
 * Returns what is known of a model. The length of its vectors is never taken from an answer: another model behind the same
 * name would then fill an index with vectors that cannot be compared.
 * @throws {ThroughlineError} CONFIG_INVALID for an unknown model without `dimensions`
 */
export function factsOf(stated: StatedFacts): ModelFacts {
  const name = stated.model.slice(stated.model.lastIndexOf("/") + 1).toLowerCase();
  const known = knownModels.find((row) => name.startsWith(row.name));
  const dimensions = stated.dimensions ?? known?.dimensions;
  if (dimensions === undefined)
    throw new ThroughlineError(
      "CONFIG_INVALID",
      `The length of the vectors of ${JSON.stringify(stated.model)} is not known.`,
      {
        details: { model: stated.model },
        remedy: "Set `dimensions` to the number that the description of the model states.",
      },
    );
  return {
    dimensions,
    maxTokens: stated.maxTokens ?? known?.maxTokens ?? usualMaxTokens,
    queryPrefix: stated.queryPrefix ?? known?.queryPrefix ?? "",
    passagePrefix: stated.passagePrefix ?? known?.passagePrefix ?? "",
    isShortened: known?.isShortened === true && dimensions < known.dimensions,
  };
}

/** Puts the prefix of the kind before each text. */
export function prefixed(
  texts: readonly string[],
  { kind }: EmbedOptions,
  { queryPrefix, passagePrefix }: ModelFacts,
): readonly string[] {
  const prefix = kind === "query" ? queryPrefix : passagePrefix;
  return prefix === "" ? texts : texts.map((text) => prefix + text);
}
