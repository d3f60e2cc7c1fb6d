import { assertKnownOptions, optionKinds, providerLimits, runSteps, type Steps } from "@throughline/core/internal";
import { ViolationList, type Violation } from "./violation.ts";
import { hasLoneSurrogate, isWireFields, surrogateText, wireList, wireRole, wireText } from "./wire-values.ts";
import type { WireFields } from "./wire-values.ts";

const limits = providerLimits.gemini;

/** Configures `validateGemini`. */
export interface ValidateGeminiOptions {
  /** Names the model, because Gemini 3 and later require signed calls. @default a model that wants no signatures */
  readonly model?: string | undefined;
}

const dataFields = [
  "text",
  "inlineData",
  "fileData",
  "functionCall",
  "functionResponse",
  "executableCode",
  "codeExecutionResult",
];

/** Checks the contents of a generateContent request as strictly as Gemini does. Returns all violations. */
export function validateGemini(
  contents: readonly unknown[],
  options: ValidateGeminiOptions = {},
): readonly Violation[] {
  return runSteps(geminiSteps(contents, options));
}

/** Checks like `validateGemini`, one content per step, so that a long list does not block the process. */
export function* geminiSteps(
  contents: readonly unknown[],
  options: ValidateGeminiOptions = {},
): Steps<readonly Violation[]> {
  assertKnownOptions<ValidateGeminiOptions>("validateGemini", options, { model: optionKinds.text });
  const check = new GeminiCheck(contents);
  if (contents.length === 0) {
    check.fail("at-least-one", "contents", "* GenerateContentRequest.contents: contents is not specified");
    return check.found;
  }
  for (const index of contents.keys()) {
    check.content(index);
    yield;
  }
  if (wireRole(contents[0]) !== "user")
    check.fail("first-is-user", "contents[0]", "Please ensure that the first content has the role user.");
  if (wireRole(contents.at(-1)) !== "user") {
    const text = "Please ensure that single turn requests end with a user role or the role field is empty.";
    check.fail("last-is-user", `contents[${contents.length - 1}]`, text);
  }
  if (Number(/gemini-(\d+)/.exec(options.model ?? "")?.[1] ?? 0) >= 3) check.signatures();
  return check.found;
}

class GeminiCheck extends ViolationList {
  private readonly contents: readonly unknown[];

  constructor(contents: readonly unknown[]) {
    super();
    this.contents = contents;
  }

  content(index: number): void {
    const content = this.contents[index];
    const path = `contents[${index}]`;
    const role = wireRole(content);
    if (!isWireFields(content) || (role !== "user" && role !== "model")) {
      this.fail("role", path, "Please use a valid role: user, model.");
      return;
    }
    if (hasLoneSurrogate(content)) this.fail("json", path, surrogateText);
    const parts = wireList(content["parts"]);
    if (parts.length === 0)
      this.fail("content", path, `* GenerateContentRequest.${path}.parts: contents.parts must not be empty.`);
    for (const [place, part] of parts.entries()) this.part(part, role, `${path}.parts[${place}]`);
    this.pairs(content, index, path);
  }

  private part(part: unknown, role: string, path: string): void {
    const fields = isWireFields(part) ? part : {};
    const set = dataFields.filter((field) => fields[field] !== undefined);
    if (set.length !== 1) {
      const text = `* GenerateContentRequest.${path}.data: required oneof field 'data' must have one initialized field`;
      this.fail("part", path, text);
      return;
    }
    const [field = ""] = set;
    const value = fields[field];
    if (field === "text" && typeof value !== "string") this.fail("part", path, `Invalid value at '${path}.text'`);
    if (field === "functionCall") this.named(value, "args", role === "model", path);
    if (field === "functionResponse") this.named(value, "response", role === "user", path);
    if (
      field === "inlineData" &&
      (!isWireFields(value) || wireText(value["mimeType"]) === "" || wireText(value["data"]) === "")
    )
      this.fail("part", path, `Invalid value at '${path}.inline_data'`);
    const signature = fields["thoughtSignature"];
    if (signature !== undefined && (typeof signature !== "string" || signature === ""))
      this.fail("part", path, `Invalid value at '${path}.thought_signature'`);
  }

  private named(value: unknown, field: string, isPlace: boolean, path: string): void {
    const name = isWireFields(value) ? wireText(value["name"]) : "";
    if (!limits.toolName.allowed.test(name)) {
      const text = `* GenerateContentRequest.${path}.name: [FIELD_INVALID] Invalid function name. Must start with a letter or an underscore.`;
      this.fail("name-pattern", path, text);
    }
    if (!isWireFields(value) || !isWireFields(value[field]))
      this.fail("input", path, `Invalid value at '${path}.${field}'`);
    if (!isPlace)
      this.fail("part-role", path, "Please ensure that calls come from the model and responses from the user.");
  }

  private pairs(content: WireFields, index: number, path: string): void {
    const calls = namesOf(content, "functionCall");
    const before = this.contents[index - 1];
    if (calls.length > 0 && (index === 0 || wireRole(before) === "model")) {
      const text =
        "Please ensure that function call turn comes immediately after a user turn or after a function response turn.";
      this.fail("call-order", path, text);
    }
    const responses = namesOf(content, "functionResponse");
    const called = namesOf(before, "functionCall");
    if (responses.length > 0 && called.length === 0) {
      const text = "Please ensure that function response turn comes immediately after a function call turn.";
      this.fail("result-asked-for", path, text);
    }
    if (calls.length > 0 && calls.length !== namesOf(this.contents[index + 1], "functionResponse").length) {
      const text =
        "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.";
      this.fail("call-answered", path, text);
    } else if (responses.length === called.length && responses.join("\n") !== called.join("\n")) {
      const text = "Please ensure that the function response names match the names of the function call turn.";
      this.fail("result-names", path, text);
    }
  }

  /** The first call of every step in the current turn must be signed. */
  signatures(): void {
    const turn = this.contents.findLastIndex(
      (content) => wireRole(content) === "user" && namesOf(content, "functionResponse").length === 0,
    );
    for (const [index, content] of this.contents.entries()) {
      const first = wireList(isWireFields(content) ? content["parts"] : null).find(
        (part) => isWireFields(part) && part["functionCall"] !== undefined,
      );
      if (index < turn || !isWireFields(first) || wireText(first["thoughtSignature"]) !== "") continue;
      const text =
        "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly.";
      this.fail("call-signature", `contents[${index}]`, text);
    }
  }
}

function namesOf(content: unknown, field: string): readonly string[] {
  return wireList(isWireFields(content) ? content["parts"] : null).flatMap((part) => {
    const named = isWireFields(part) ? part[field] : undefined;
    return isWireFields(named) ? [wireText(named["name"])] : [];
  });
}
