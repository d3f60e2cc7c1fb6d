import { isFields } from "./json-object.ts";
import { optionKinds, type OptionKind, type OptionTable } from "./option-checks.ts";
import type { SessionModel } from "./ports.ts";
import { thinkingLevels } from "./thinking-levels.ts";

const { filledText, integer, objectOf, objectWith, oneOf, orNull, required } = optionKinds;

/** A port is recognized by the methods that Throughline calls. */
export const portKinds: {
  readonly store: OptionKind;
  readonly clock: OptionKind;
  readonly ids: OptionKind;
  readonly random: OptionKind;
  readonly summarizer: OptionKind;
  readonly chat: OptionKind;
} = {
  store: objectWith("append", "read", "load", "save", "list"),
  clock: objectWith("nowMs", "sleep"),
  ids: objectWith("next"),
  random: objectWith("uint32", "uuid"),
  summarizer: objectWith("summarize"),
  chat: objectWith("chat"),
};

const tokens = orNull(integer({ min: 0 }));

export const modelTable: OptionTable<SessionModel> = {
  chat: required(portKinds.chat),
  modelId: required(filledText),
  windowTokens: tokens,
  assumedWindowTokens: tokens,
  maxOutputTokens: tokens,
  thinkingLevel: oneOf(thinkingLevels),
};

export const modelKind: OptionKind = objectOf(modelTable);

export const toolChoiceKind: OptionKind = {
  expected: '"auto", "none", "required" or { tool }',
  accepts: (value) =>
    oneOf(["auto", "none", "required"]).accepts(value) || (isFields(value) && filledText.accepts(value["tool"])),
};
