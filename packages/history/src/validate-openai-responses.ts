import { assertKnownOptions, optionKinds, providerLimits, runSteps, type Steps } from "@throughline/core/internal";
import { ViolationList, type Violation } from "./violation.ts";
import { hasLoneSurrogate, isJson, isWireFields, surrogateText, wireList, wireText } from "./wire-values.ts";
import type { WireFields } from "./wire-values.ts";

const limits = providerLimits["openai-responses"];

/** Configures `validateOpenAiResponses`. */
export interface ValidateOpenAiResponsesOptions {
  /**
   * States whether the service stores items. If it does not, reasoning must include its encrypted content. @default
   * false
   */
  readonly store?: boolean | undefined;
}

/** Checks the input items of a Responses request as strictly as OpenAI does. Returns all violations. */
export function validateOpenAiResponses(
  items: readonly unknown[],
  options: ValidateOpenAiResponsesOptions = {},
): readonly Violation[] {
  return runSteps(openAiResponsesSteps(items, options));
}

/** Checks like `validateOpenAiResponses`, one item per step, so that a long list does not block the process. */
export function* openAiResponsesSteps(
  items: readonly unknown[],
  options: ValidateOpenAiResponsesOptions = {},
): Steps<readonly Violation[]> {
  assertKnownOptions<ValidateOpenAiResponsesOptions>("validateOpenAiResponses", options, { store: optionKinds.flag });
  const check = new ItemCheck(options.store ?? false);
  if (items.length === 0)
    check.fail("at-least-one", "input", 'One of "input" or "previous_response_id" must be provided.');
  for (const [index, item] of items.entries()) {
    check.item(item, items[index + 1], `input[${index}]`);
    yield;
  }
  check.end();
  return check.found;
}

class ItemCheck extends ViolationList {
  private readonly isStored: boolean;
  private readonly itemIds = new Set<string>();
  private readonly called = new Set<string>();
  private readonly answered = new Set<string>();

  constructor(isStored: boolean) {
    super();
    this.isStored = isStored;
  }

  item(item: unknown, next: unknown, path: string): void {
    if (!isWireFields(item)) {
      this.fail("item", path, `Invalid type for '${path}': expected an object.`);
      return;
    }
    if (hasLoneSurrogate(item)) this.fail("json", path, surrogateText);
    this.itemId(item["id"], path);
    switch (item["type"] ?? "message") {
      case "message":
        this.message(item, path);
        return;
      case "function_call":
        this.call(item, path);
        return;
      case "function_call_output":
        this.output(item, path);
        return;
      case "reasoning":
        this.reasoning(item, next, path);
        return;
      case "compaction":
        if (typeof item["encrypted_content"] !== "string")
          this.fail("item", path, `Missing required parameter: '${path}.encrypted_content'.`);
        return;
      default:
        this.fail("item", path, `Invalid value: '${String(item["type"])}'.`);
    }
  }

  end(): void {
    for (const id of this.called) {
      if (!this.answered.has(id)) this.fail("call-answered", "input", `No tool output found for function call ${id}.`);
    }
  }

  private itemId(id: unknown, path: string): void {
    if (typeof id !== "string") return;
    if (this.itemIds.has(id)) {
      const text = `Duplicate item found with id ${id}. Remove duplicate items from your input and try again.`;
      this.fail("item-unique", path, text);
    }
    this.itemIds.add(id);
  }

  private message(item: WireFields, path: string): void {
    const { role, content } = item;
    if (!["user", "assistant", "system", "developer"].includes(wireText(role))) {
      const text = `Invalid value: '${wireText(role)}'. Supported values are: 'assistant', 'system', 'developer', and 'user'.`;
      this.fail("role", `${path}.role`, text);
    }
    if (typeof content === "string") return;
    if (!Array.isArray(content) || content.length === 0) {
      this.fail("content", `${path}.content`, `Missing required parameter: '${path}.content'.`);
      return;
    }
    for (const [place, part] of content.entries()) this.part(part, role === "assistant", `${path}.content[${place}]`);
  }

  private part(part: unknown, isOutput: boolean, path: string): void {
    const type = isWireFields(part) ? wireText(part["type"]) : "";
    const taken = isOutput ? ["output_text", "refusal"] : ["input_text", "input_image", "input_file"];
    if (!isWireFields(part) || !taken.includes(type)) {
      const list = taken.map((one) => `'${one}'`).join(", ");
      this.fail("block-type", path, `Invalid value: '${type}'. Supported values are: ${list}.`);
    } else if ((type === "input_text" || type === "output_text") && typeof part["text"] !== "string") {
      this.fail("text", path, `Missing required parameter: '${path}.text'.`);
    } else if (type === "input_image" && typeof part["image_url"] !== "string" && typeof part["file_id"] !== "string") {
      this.fail("image", path, `Missing required parameter: '${path}.image_url'.`);
    }
  }

  private callId(item: WireFields, path: string): string {
    const id = wireText(item["call_id"]);
    if (id === "" || id.length > limits.callId.maxLength) {
      const text = `Invalid '${path}.call_id': string too long. Expected a string with maximum length ${limits.callId.maxLength}, but got a string with length ${id.length} instead.`;
      this.fail("id-pattern", `${path}.call_id`, text);
    }
    return id;
  }

  private call(item: WireFields, path: string): void {
    const id = this.callId(item, path);
    if (this.called.has(id)) this.fail("id-unique", path, `Duplicate item found with call_id ${id}.`);
    this.called.add(id);
    if (!limits.toolName.allowed.test(wireText(item["name"]))) {
      this.fail("name-pattern", `${path}.name`, `Invalid '${path}.name': string does not match pattern.`);
    }
    if (typeof item["arguments"] !== "string" || !isJson(item["arguments"])) {
      this.fail("input", `${path}.arguments`, `Invalid type for '${path}.arguments': expected a string of JSON.`);
    }
  }

  private output(item: WireFields, path: string): void {
    const id = this.callId(item, path);
    if (!this.called.has(id)) {
      this.fail("result-asked-for", path, `No tool call found for function call output with call_id ${id}.`);
    } else if (this.answered.has(id)) {
      this.fail("single-result", path, `Duplicate item found with call_id ${id}.`);
    }
    this.answered.add(id);
    const { output } = item;
    if (typeof output === "string") return;
    if (!Array.isArray(output) || output.length === 0)
      this.fail("content", `${path}.output`, `Missing required parameter: '${path}.output'.`);
    for (const [place, part] of wireList(output).entries()) this.part(part, false, `${path}.output[${place}]`);
  }

  private reasoning(item: WireFields, next: unknown, path: string): void {
    const id = wireText(item["id"]);
    if (!id.startsWith("rs"))
      this.fail("item", path, `Invalid '${path}.id': '${id}'. Expected an ID that begins with 'rs'.`);
    if (!Array.isArray(item["summary"])) this.fail("item", path, `Missing required parameter: '${path}.summary'.`);
    const type = isWireFields(next) ? (next["type"] ?? "message") : null;
    const isMessage = isWireFields(next) && type === "message" && next["role"] === "assistant";
    if (!isMessage && type !== "function_call" && type !== "reasoning") {
      const text = `Item '${id}' of type 'reasoning' was provided without its required following item.`;
      this.fail("reasoning-followed", path, text);
    }
    if (!this.isStored && (typeof item["encrypted_content"] !== "string" || item["encrypted_content"] === "")) {
      const text = `Item with id '${id}' not found. Items are not persisted when \`store\` is set to false.`;
      this.fail("reasoning-stored", path, text);
    }
  }
}
