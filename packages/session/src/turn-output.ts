import {
  type AgentTool,
  type AgentToolResult,
  type AssistantMessage,
  type Message,
  type RecordDraft,
  ThroughlineError,
  type ToolCallBlock,
} from "@throughline/core";
import { type CheckedSchema, issueText, type OutputFormat, type SchemaIssue } from "@throughline/core/internal";
import { lastReply, messageDraft, toolCallsOf } from "./message-parts.ts";
import { outputTool, type RecordedOutput } from "./output-schema.ts";
import type { SessionModel } from "./session-options.ts";
import type { Turn } from "./turn.ts";
import { textOfContent } from "./window-facts.ts";

type Checked = Awaited<ReturnType<CheckedSchema["check"]>>;

/** A second request repeats what the first one said; a model that fails twice needs another schema. */
const maxAttempts = 2;
const outputName = "answer";

interface TurnOutputOptions {
  readonly schema: CheckedSchema;
  readonly model: SessionModel;
  /** Lists the tools that the model may call. */
  readonly tools: readonly AgentTool[];
}

/** Takes the structured answer of one turn: asks for it, checks it, and has it corrected once. */
export class TurnOutput {
  readonly recorded: RecordedOutput;
  /** Is null when the provider's JSON mode asks. */
  readonly tool: AgentTool | null;
  readonly #schema: CheckedSchema;
  readonly #judged = new Map<string, Checked>();
  #attempts = 0;
  #last: Checked | null = null;

  constructor({ schema, model, tools }: TurnOutputOptions) {
    const names = new Set(tools.map(({ definition }) => definition.name));
    let name = outputName;
    for (let count = 2; names.has(name); count++) name = `${outputName}_${count}`;
    const output: OutputFormat = { name, schema: schema.jsonSchema };
    const { chat, modelId } = model;
    const asked = {
      modelId,
      output,
      ...(tools.length === 0 ? {} : { tools: tools.map(({ definition }) => definition) }),
    };
    const as = chat.acceptsOutput?.(asked) === true ? "json" : "tool";
    this.#schema = schema;
    this.recorded = { as, ...output };
    const run: AgentTool["run"] = async (args, { callId }) => answerTo(await this.#judge(callId, args));
    this.tool = as === "json" ? null : { definition: outputTool(output), run };
  }

  /** Is true when the answer was accepted, or cannot be corrected any more. */
  get isSettled(): boolean {
    return this.#last !== null && ("value" in this.#last || this.#attempts >= maxAttempts);
  }

  /** Judges a reply whose calls have run. A reply that gives no answer does not count. */
  async takeCalls(calls: readonly ToolCallBlock[]): Promise<void> {
    const answers = calls.filter(({ name }) => this.tool !== null && name === this.recorded.name);
    if (answers.length === 0 || this.isSettled) return;
    const judged = await Promise.all(answers.map(({ id, arguments: args }) => this.#judge(id, args)));
    this.#take(judged.find((one) => "value" in one) ?? judged[0] ?? null);
  }

  /** Judges a reply without calls. Returns the message that asks for a correction; null when none is asked for. */
  async takeReply(reply: AssistantMessage, canAskAgain: boolean): Promise<RecordDraft | null> {
    if (this.isSettled) return null;
    this.#take(await this.#checkReply(reply));
    return this.isSettled || !canAskAgain
      ? null
      : correctionDraft(this.#last, this.tool === null ? null : this.recorded.name);
  }

  /**
   * Adds the answer to a turn that is done.
   * @throws {ThroughlineError} OUTPUT_INVALID
   */
  async resultOf(turn: Turn): Promise<Turn> {
    if (turn.outcome !== "done") return turn;
    const checked = this.#last ?? (await this.#checkMessages(turn.messages));
    if ("value" in checked) return { ...turn, output: checked.value };
    const { issues } = checked;
    const reply = lastReply(turn.messages);
    const message = `The model's answer does not fit the schema of \`output\`: ${issueText("answer", issues[0])}.`;
    throw new ThroughlineError("OUTPUT_INVALID", message, {
      details: { ...turn.ref, turnId: turn.turnId, issues, text: textOfContent(reply?.content).slice(0, 10_000) },
    });
  }

  /** A turn that an earlier call ran has its answer in its messages. */
  async #checkMessages(messages: readonly Message[]): Promise<Checked> {
    const reply = lastReply(messages);
    if (reply === undefined) return noAnswer;
    const call = toolCallsOf(reply).findLast(({ name }) => name === this.recorded.name);
    return call === undefined ? this.#checkReply(reply) : this.#schema.check(call.arguments);
  }

  async #checkReply({ content, stopReason }: AssistantMessage): Promise<Checked> {
    if (stopReason === "error" || stopReason === "aborted") return noAnswer;
    const parsed = parseAnswer(textOfContent(content));
    return parsed === null ? notJson : this.#schema.check(parsed.value);
  }

  /** A schema may ask other systems, so each call is checked once. */
  async #judge(callId: string, args: unknown): Promise<Checked> {
    const checked = this.#judged.get(callId) ?? (await this.#schema.check(args));
    this.#judged.set(callId, checked);
    return checked;
  }

  #take(checked: Checked | null): void {
    this.#last = checked;
    this.#attempts += 1;
  }
}

const noAnswer: Checked = { issues: [{ path: "", message: "the reply ended before an answer was given" }] };
const notJson: Checked = { issues: [{ path: "", message: "the reply is not JSON" }] };

/** Models without a JSON mode put their JSON into a fence of Markdown. */
function parseAnswer(text: string): { readonly value: unknown } | null {
  const trimmed = text.trim();
  const isFenced = trimmed.startsWith("```") && trimmed.endsWith("```");
  const inner = isFenced ? trimmed.slice(trimmed.indexOf("\n") + 1, -3) : trimmed;
  try {
    return { value: JSON.parse(inner) as unknown };
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

function listOf(issues: readonly SchemaIssue[]): string {
  return issues.map((issue) => `- ${issueText("answer", issue)}`).join("\n");
}

function answerTo(checked: Checked): string | AgentToolResult {
  if ("value" in checked) return "The answer was accepted.";
  return { content: `The answer was not accepted:\n${listOf(checked.issues)}`, isError: true };
}

/** The message is an ordinary one, so that every provider accepts the history and people see why the model answered again. */
function correctionDraft(checked: Checked | null, toolName: string | null): RecordDraft {
  const issues = checked !== null && "issues" in checked ? checked.issues : [];
  const how =
    toolName === null ? "Answer again with the corrected JSON only." : `Call the tool ${toolName} with the answer.`;
  const content = `Your answer does not have the form that was asked for:\n${listOf(issues)}\n\n${how}`;
  return messageDraft({ role: "user", content, source: "correction" });
}
