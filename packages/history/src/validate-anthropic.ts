import {
  assertKnownOptions,
  optionKinds,
  type OptionTable,
  providerLimits,
  runSteps,
  type Steps,
} from "@throughline/core/internal";
import { ViolationList, type Violation } from "./violation.ts";
import { hasLoneSurrogate, isWireFields as isFields, surrogateText } from "./wire-values.ts";
import type { WireFields as Fields } from "./wire-values.ts";

const limits = providerLimits.anthropic;

/** Configures `validateAnthropic`. */
export interface ValidateAnthropicOptions {
  /**
   * States whether the model continues an assistant message at the end; newer models reject it. @default as `model`
   * does, else true
   */
  readonly allowsPrefill?: boolean | undefined;
  /** Names the model that receives the messages. @default one that takes all that any model takes */
  readonly model?: string | undefined;
  /**
   * States whether system messages may stand in the list. Some models accept them, others only with a beta header.
   * @default false
   */
  readonly allowsSystem?: boolean | undefined;
  /** States whether the request asks for thinking of type `enabled`. @default false */
  readonly thinking?: boolean | undefined;
  /**
   * Holds the content of the latest reply exactly as received, because its thinking must come back unchanged. @default
   * not checked
   */
  readonly latestReply?: readonly unknown[] | undefined;
  /** Lists additional block types, such as types behind a beta header. @default none */
  readonly blockTypes?: ReadonlySet<string> | undefined;
}

const { flag, list, objectWith, text } = optionKinds;
const validateTable: OptionTable<ValidateAnthropicOptions> = {
  allowsPrefill: flag,
  model: text,
  allowsSystem: flag,
  thinking: flag,
  latestReply: list,
  blockTypes: { ...objectWith("has"), expected: "a Set of block types" },
};

/**
 * Checks messages as strictly as the API does, by the API's rules. It shares no code with the rendering, so that
 * neither hides the other's mistakes.
 */
export function validateAnthropic(
  messages: readonly unknown[],
  options: ValidateAnthropicOptions = {},
): readonly Violation[] {
  return runSteps(anthropicSteps(messages, options));
}

/** Checks like `validateAnthropic`, one message per step, so that a long list does not block the process. */
export function* anthropicSteps(
  messages: readonly unknown[],
  options: ValidateAnthropicOptions = {},
): Steps<readonly Violation[]> {
  assertKnownOptions<ValidateAnthropicOptions>("validateAnthropic", options, validateTable);
  const check = new Check(options);
  if (messages.length === 0) check.fail("at-least-one", "messages", "messages: at least one message is required");
  for (const [index, message] of messages.entries()) {
    check.message(message, index, messages);
    yield;
  }
  check.ending(messages.at(-1), messages.length - 1, options.allowsPrefill ?? continuesItself(options.model));
  if (options.thinking === true) check.thinkingFirst(messages);
  if (options.latestReply !== undefined) check.thinkingUnchanged(messages, options.latestReply);
  return check.found;
}

/** Claude up to 4.5 continues its own text. An unknown model is assumed not to. */
function continuesItself(model: string | undefined): boolean {
  if (model === undefined || /claude-(?:instant|[23])/.test(model)) return true;
  const [, major, minor] = /claude-[a-z]{1,20}-(\d{1,9})(?:-(\d{1,2})(?!\d))?/.exec(model) ?? [];
  return major === "4" && Number(minor ?? 0) < 6;
}

class Check extends ViolationList {
  private readonly ids = new Set<string>();
  private hasBegun = false;
  private readonly options: ValidateAnthropicOptions;

  constructor(options: ValidateAnthropicOptions) {
    super();
    this.options = options;
  }

  message(message: unknown, index: number, all: readonly unknown[]): void {
    const path = `messages.${index}`;
    const role = isFields(message) ? message["role"] : null;
    const isFirst = !this.hasBegun;
    this.hasBegun ||= role !== "system";
    if (role === "system" && this.options.allowsSystem === true) {
      this.system(message as Fields, path);
      return;
    }
    if (!isFields(message) || (role !== "user" && role !== "assistant")) {
      this.fail("role", `${path}.role`, `${path}.role: Input should be 'user' or 'assistant'`);
      return;
    }
    const isSummary = this.options.blockTypes?.has("compaction") === true && isCompaction(message);
    if (role === "assistant" && !isSummary && isFirst)
      this.fail("first-is-user", path, 'messages: first message must use the "user" role');
    if (index > 0 && roleOf(all[index - 1]) === role) {
      const text = `messages: roles must alternate between "user" and "assistant", but found multiple "${role}" roles in a row`;
      this.fail("alternation", path, text);
    }
    const blocks = blocksOf(message);
    if (blocks.length === 0) {
      const text = `${path}: all messages must have non-empty content except for the optional final assistant message`;
      this.fail("content-not-empty", path, text);
    }
    blocks.forEach((block, place) => this.block(block, `${path}.content.${place}`, role));
    if (role === "assistant") this.calls(blocks, all[index + 1], index);
    else this.results(blocks, all[index - 1], index);
    if (hasLoneSurrogate(message)) this.fail("json", path, surrogateText);
  }

  private system(message: Fields, path: string): void {
    const blocks = blocksOf(message);
    if (blocks.length === 0) this.fail("content-not-empty", path, `${path}: all messages must have non-empty content`);
    for (const [place, block] of blocks.entries()) {
      const at = `${path}.content.${place}`;
      if (isFields(block) && block["type"] === "text") this.text(block["text"], at);
      else if (!isFields(block) || !["tool_addition", "tool_removal"].includes(String(block["type"])))
        this.fail("block-type", at, `${at}: a system message holds text`);
    }
  }

  private block(block: unknown, path: string, role: "user" | "assistant"): void {
    const type = isFields(block) ? block["type"] : null;
    const isMore = this.options.blockTypes?.has(String(type)) === true;
    if (!isFields(block) || !(allowedTypes[role].has(type) || isMore)) {
      this.fail(
        "block-type",
        path,
        `${path}: Input tag '${String(type)}' found using 'type' does not match any of the expected tags`,
      );
      return;
    }
    if (type === "text") this.text(block["text"], path);
    if (type === "thinking" && (typeof block["signature"] !== "string" || block["signature"] === "")) {
      this.fail("thinking-signature", path, `${path}.thinking.signature: Field required`);
    }
    if (type === "redacted_thinking" && (typeof block["data"] !== "string" || block["data"] === "")) {
      this.fail("thinking-signature", path, `${path}.redacted_thinking.data: Field required`);
    }
    if (type === "image" && !isFields(block["source"]))
      this.fail("image", path, `${path}.image.source: Field required`);
    if (type === "document" && !isFields(block["source"]))
      this.fail("document", path, `${path}.document.source: Field required`);
    if (type === "compaction") this.compaction(block, path, role);
    if (type === "tool_use") this.toolUse(block, path);
    if (type === "tool_result") this.toolResult(block, path);
  }

  private text(text: unknown, path: string): void {
    if (typeof text !== "string") this.fail("text", path, `${path}.text.text: Input should be a valid string`);
    else if (text === "") this.fail("text-not-empty", path, "messages: text content blocks must be non-empty");
    else if (/^\s*$/.test(text))
      this.fail("text-not-blank", path, "messages: text content blocks must contain non-whitespace text");
  }

  /**
   * The service makes this summary. Its content is a text, or null after a failure; the service rejects an empty text.
   */
  private compaction({ content }: Fields, path: string, role: string): void {
    if (role !== "assistant")
      this.fail("block-type", path, `${path}: \`compaction\` blocks can only be in \`assistant\` messages`);
    if (content === "")
      this.fail("compaction", path, `${path}.compaction.content: String should have at least 1 character`);
  }

  private toolUse(block: Fields, path: string): void {
    const { id, name, input } = block;
    if (typeof id !== "string" || !limits.callId.allowed.test(id)) {
      this.fail("id-pattern", path, `${path}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'`);
    } else if (this.ids.has(id)) {
      this.fail("id-unique", path, `${path}: \`tool_use\` ids must be unique`);
    } else {
      this.ids.add(id);
    }
    if (typeof name !== "string" || !limits.calledToolName.test(name)) {
      this.fail(
        "name-pattern",
        path,
        `${path}.tool_use.name: String should match pattern '${limits.calledToolName.source}'`,
      );
    }
    if (!isFields(input)) this.fail("input", path, `${path}.tool_use.input: Input should be a valid dictionary`);
  }

  private toolResult(block: Fields, path: string): void {
    const { content } = block;
    const parts: readonly unknown[] = typeof content === "string" ? [content] : Array.isArray(content) ? content : [];
    const isError = block["is_error"] === true;
    if (isError && parts.every((part: unknown) => part === "")) {
      this.fail("error-content", path, `${path}.tool_result: content cannot be empty if \`is_error\` is true`);
    }
    for (const [place, part] of parts.entries()) {
      if (typeof part === "string") continue;
      const type = isFields(part) ? part["type"] : null;
      if (isError && type !== "text") {
        this.fail(
          "error-content",
          path,
          `${path}.tool_result: all content must be type "text" if \`is_error\` is true`,
        );
      }
      if (!resultTypes.has(type))
        this.fail("block-type", path, `${path}.content.${place}: Input should be text or image`);
      if (type === "text") this.text((part as Fields)["text"], `${path}.content.${place}`);
    }
  }

  private calls(blocks: readonly unknown[], next: unknown, index: number): void {
    const path = `messages.${index}`;
    const last = blocks.at(-1);
    const lastType = isFields(last) ? last["type"] : null;
    if (lastType === "thinking" || lastType === "redacted_thinking") {
      this.fail("last-not-thinking", path, `${path}: The final block in an assistant message cannot be \`thinking\`.`);
    }
    this.serverCalls(blocks, path);
    const asked = idsOf(blocks, "tool_use", "id");
    // Only results before any other content count as "immediately after".
    const following = roleOf(next) === "user" ? blocksOf(next) : [];
    const firstOther = following.findIndex((block) => !isFields(block) || block["type"] !== "tool_result");
    const leading = firstOther < 0 ? following : following.slice(0, firstOther);
    const answered = new Set(idsOf(leading, "tool_result", "tool_use_id"));
    const open = asked.filter((id) => !answered.has(id));
    if (open.length === 0) return;
    const text =
      `${path}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${open.join(", ")}. ` +
      "Each `tool_use` block must have a corresponding `tool_result` block in the next message.";
    this.fail("call-answered", path, text);
  }

  private results(blocks: readonly unknown[], previous: unknown, index: number): void {
    const asked = new Set<unknown>(roleOf(previous) === "assistant" ? idsOf(blocksOf(previous), "tool_use", "id") : []);
    const seen = new Set<unknown>();
    blocks.forEach((block, place) => {
      if (!isFields(block) || block["type"] !== "tool_result") return;
      const id = block["tool_use_id"];
      const path = `messages.${index}.content.${place}`;
      if (!asked.has(id)) {
        const text =
          `${path}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${String(id)}. ` +
          "Each `tool_result` block must have a corresponding `tool_use` block in the previous message.";
        this.fail("result-asked-for", path, text);
      }
      if (seen.has(id)) {
        const text = `${path}: each tool_use must have a single result. Found multiple \`tool_result\` blocks with id: ${String(id)}`;
        this.fail("single-result", path, text);
      }
      seen.add(id);
    });
  }

  /** The reply that calls a provider's own tool must also hold its result. */
  private serverCalls(blocks: readonly unknown[], path: string): void {
    const called = new Set(idsOf(blocks, "server_tool_use", "id"));
    const answered = new Set<string>();
    for (const block of blocks) {
      if (!isFields(block) || !String(block["type"]).endsWith("_tool_result")) continue;
      const id = String(block["tool_use_id"]);
      if (!called.has(id))
        this.fail(
          "server-tool",
          path,
          `${path}: unexpected \`tool_use_id\` found in \`${String(block["type"])}\` blocks: ${id}.`,
        );
      answered.add(id);
    }
    for (const id of called) {
      if (!answered.has(id))
        this.fail(
          "server-tool",
          path,
          `${path}: server tool use with id \`${id}\` was found without a corresponding result block`,
        );
    }
  }

  /** With thinking enabled, the tool loop that the request continues must start with thinking. */
  thinkingFirst(messages: readonly unknown[]): void {
    let start = -1;
    for (let index = messages.length - 1; index >= 0; index--) {
      if (roleOf(messages[index]) === "assistant") start = index;
      else if (idsOf(blocksOf(messages[index]), "tool_result", "tool_use_id").length === 0) break;
    }
    const [first] = blocksOf(messages[start]);
    const type = isFields(first) ? first["type"] : null;
    if (start < 0 || type === "thinking" || type === "redacted_thinking") return;
    const text = `messages.${start}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${String(type)}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block`;
    this.fail("thinking-first", `messages.${start}.content.0`, text);
  }

  thinkingUnchanged(messages: readonly unknown[], reply: readonly unknown[]): void {
    const index = messages.findLastIndex((message) => roleOf(message) === "assistant");
    const sent = blocksOf(messages[index]).filter(isThinking);
    const received = reply.filter(isThinking);
    if (JSON.stringify(sent) === JSON.stringify(received)) return;
    const text = `messages.${index}.content: \`thinking\` or \`redacted_thinking\` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.`;
    this.fail("thinking-unchanged", `messages.${index}`, text);
  }

  ending(last: unknown, index: number, allowsPrefill: boolean): void {
    if (roleOf(last) !== "assistant") return;
    const path = `messages.${index}`;
    if (!allowsPrefill) {
      const text =
        "This model does not support assistant message prefill. The conversation must end with a user message.";
      this.fail("prefill", path, text);
    }
    const block = blocksOf(last).at(-1);
    const text = isFields(block) ? block["text"] : null;
    if (typeof text === "string" && /\s$/.test(text)) {
      this.fail("trailing-space", path, "messages: final assistant content cannot end with trailing whitespace");
    }
  }
}

const serverTypes = [
  "server_tool_use",
  "web_search_tool_result",
  "web_fetch_tool_result",
  "code_execution_tool_result",
  "bash_code_execution_tool_result",
  "text_editor_code_execution_tool_result",
  "tool_search_tool_result",
  "container_upload",
];

const allowedTypes: Readonly<Record<"user" | "assistant", ReadonlySet<unknown>>> = {
  user: new Set(["text", "image", "document", "search_result", "container_upload", "tool_result"]),
  assistant: new Set(["text", "thinking", "redacted_thinking", "tool_use", ...serverTypes]),
};

const resultTypes: ReadonlySet<unknown> = new Set(["text", "image", "document", "search_result", "tool_reference"]);

/** The service's own summary is alone in its message, and that message comes first. */
function isCompaction(message: Fields): boolean {
  const blocks = blocksOf(message);
  return blocks.length > 0 && blocks.every((block) => isFields(block) && block["type"] === "compaction");
}

function isThinking(block: unknown): boolean {
  return isFields(block) && (block["type"] === "thinking" || block["type"] === "redacted_thinking");
}

function roleOf(message: unknown): unknown {
  return isFields(message) ? message["role"] : null;
}

function blocksOf(message: unknown): readonly unknown[] {
  const content = isFields(message) ? message["content"] : null;
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  return Array.isArray(content) ? content : [];
}

function idsOf(blocks: readonly unknown[], type: string, field: string): string[] {
  return blocks.flatMap((block) => (isFields(block) && block["type"] === type ? [String(block[field])] : []));
}
