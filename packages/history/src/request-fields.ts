import { ThroughlineError } from "@throughline/core";
import {
  assertArgument,
  assertKnownOptions,
  choiceName,
  isFields,
  optionKinds,
  type OptionTable,
  outputFields,
  type OutputFormat,
  type ToolChoice,
  toolChoiceFields,
  toolChoiceKind,
  wireToolChoices,
} from "@throughline/core/internal";
import { targetNames, type TargetName } from "./provider-mappings.ts";

/** Sets what a request asks of the model. */
interface RequestFieldsOptions {
  /** States which tools the model is to call. @default "auto" */
  readonly toolChoice?: ToolChoice | undefined;
  /** Asks for an answer in JSON of a schema. @default an answer in text */
  readonly output?: OutputFormat | undefined;
}

const table: OptionTable<RequestFieldsOptions> = {
  toolChoice: toolChoiceKind,
  output: {
    expected: "an object with `name` and `schema`",
    accepts: (value) => isFields(value) && optionKinds.filledText.accepts(value["name"]) && isFields(value["schema"]),
  },
};

/**
 * Returns the fields of a provider's request that carry the tool choice and the schema of the answer, for a program with
 * its own loop or an own `ChatModel`. Spread them into the request: for Gemini into `config`, for Bedrock `toolChoice` into
 * `toolConfig`.
 *
 * @param target the provider, as for `createHistory`
 * @throws {ThroughlineError} CAPABILITY_UNSUPPORTED if the provider has no such choice, or its JSON mode cannot take the
 *   schema; INPUT_INVALID
 * @example
 * const fields = requestFields("mistral", { toolChoice: { tool: "weather" } });
 * await client.chat.complete({ model, messages, tools, ...fields });
 */
export function requestFields(target: TargetName, options: RequestFieldsOptions): Readonly<Record<string, unknown>> {
  assertKnownOptions<RequestFieldsOptions>("requestFields", options, table);
  assertArgument("requestFields", "target", target, optionKinds.oneOf(targetNames));
  const { toolChoice, output } = options;
  return {
    ...(toolChoice === undefined ? {} : choiceFields(target, toolChoice)),
    ...(output === undefined ? {} : formatFields(target, output)),
  };
}

function choiceFields(target: TargetName, choice: ToolChoice): Readonly<Record<string, unknown>> {
  const name = choiceName(choice);
  if (name === null || wireToolChoices[target].includes(name)) return toolChoiceFields(target, choice);
  throw unsupported(
    target,
    "toolChoice",
    `no \`toolChoice\` ${JSON.stringify(choice)}`,
    "Pass only the tools that it may call.",
  );
}

function formatFields(target: TargetName, output: OutputFormat): Readonly<Record<string, unknown>> {
  const fields = outputFields(target, output);
  if (fields !== null) return fields;
  const remedy = "Name the fields of every object in the schema, or let a tool take the answer.";
  throw unsupported(target, "output", "no JSON mode for this schema", remedy);
}

function unsupported(target: TargetName, argument: string, what: string, remedy: string): ThroughlineError {
  return new ThroughlineError("CAPABILITY_UNSUPPORTED", `requestFields(): ${target} has ${what}.`, {
    outcome: "not-applied",
    details: { argument, target },
    remedy,
  });
}
