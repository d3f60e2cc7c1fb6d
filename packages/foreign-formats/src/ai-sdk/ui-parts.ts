import { isFields, type Fields } from "@throughline/core/internal";
import { asText, shownText } from "../as-text.ts";

/** A step is one call of the model and the results of its tool calls, as Anthropic's blocks. */
export interface UiStep {
  readonly said: Fields[];
  readonly results: Fields[];
  /** A signature of Anthropic proves that Anthropic's model wrote the thinking. */
  isSigned: boolean;
}

/** A part of an unknown type gives no block. Nothing is lost, because it stays in the message's source. */
export function stepsOf(value: Fields): readonly UiStep[] {
  const steps: UiStep[] = [newStep()];
  for (const part of partsOf(value)) {
    if (part["type"] === "step-start") steps.push(newStep());
    else takePart(part, steps.at(-1) as UiStep);
  }
  return steps.filter(({ said, results }) => said.length + results.length > 0);
}

function newStep(): UiStep {
  return { said: [], results: [], isSigned: false };
}

/** Versions before 5 have fields in place of the parts. */
function partsOf(value: Fields): readonly Fields[] {
  const { parts, content, toolInvocations: invocations, reasoning, experimental_attachments: attached } = value;
  const files = listOf(attached).map((file) => ({ ...file, type: "file", mediaType: file["contentType"] }));
  if (Array.isArray(parts)) return [...listOf(parts), ...files];
  const calls = listOf(invocations).map((toolInvocation) => ({ type: "tool-invocation", toolInvocation }));
  return [
    ...(typeof reasoning === "string" ? [{ type: "reasoning", reasoning }] : []),
    ...(typeof content === "string" ? [{ type: "text", text: content }] : listOf(content)),
    ...calls,
    ...files,
  ];
}

function listOf(value: unknown): readonly Fields[] {
  return Array.isArray(value) ? (value as readonly unknown[]).filter(isFields) : [];
}

function takePart(part: Fields, step: UiStep): void {
  const { type, text } = part;
  if (type === "text") {
    const words = shownText(text);
    if (words !== "") step.said.push({ type: "text", text: words });
  } else if (type === "reasoning") takeReasoning(part, step);
  else if (type === "file" || type === "image") takeFile(part, step);
  else if (type === "tool-invocation") {
    if (isFields(part["toolInvocation"])) takeInvocation(part["toolInvocation"], step);
  } else if (type === "dynamic-tool") takeTool(part, part["toolName"], step);
  else if (typeof type === "string" && type.startsWith("tool-")) takeTool(part, type.slice("tool-".length), step);
}

function takeReasoning(part: Fields, step: UiStep): void {
  const { text, reasoning, providerMetadata: metadata } = part;
  const words = shownText(text ?? reasoning);
  const own = isFields(metadata) && isFields(metadata["anthropic"]) ? metadata["anthropic"] : {};
  const { signature, redactedData } = own;
  if (typeof redactedData === "string") {
    step.said.push({ type: "redacted_thinking", data: redactedData });
    step.isSigned = true;
  } else if (typeof signature === "string") {
    step.said.push({ type: "thinking", thinking: words, signature });
    step.isSigned = true;
  } else if (words !== "") step.said.push({ type: "thinking", thinking: words });
}

/**
 * The source of a file in Anthropic's blocks is a URL or the content of a data URL. Only the start is matched, because
 * a data URL may be very long.
 */
export function fileSource(address: string): Fields {
  const inside = /^data:([^,;]{1,200});base64,/.exec(address.slice(0, 250));
  return inside === null
    ? { type: "url", url: address }
    : { type: "base64", media_type: inside[1], data: address.slice(inside[0].length) };
}

function takeFile({ url, data, mediaType, mimeType, filename, name }: Fields, step: UiStep): void {
  const media = [mediaType, mimeType].find((one) => typeof one === "string") ?? "";
  const kind = asText(media).startsWith("image/") ? "image" : "document";
  const address = typeof url === "string" ? url : typeof data === "string" ? `data:${media};base64,${data}` : null;
  if (address === null) return;
  const source = fileSource(address);
  const title = [filename, name].find((one) => typeof one === "string");
  step.said.push({ type: kind, source, ...(kind === "image" || title === undefined ? {} : { title }) });
}

const invocationStates: ReadonlyMap<unknown, string> = new Map([
  ["call", "input-available"],
  ["result", "output-available"],
]);

/** Versions before 5 have calls of this form. */
function takeInvocation({ state, toolCallId, toolName, args, result }: Fields, step: UiStep): void {
  const part = { toolCallId, input: args, output: result };
  takeTool({ ...part, state: invocationStates.get(state) ?? "input-streaming" }, toolName, step);
}

/** The model reads this text when the user did not allow a call. */
const deniedText = "The user denied this call: the tool has not run.";

function takeTool(part: Fields, name: unknown, step: UiStep): void {
  const { toolCallId: id, state, input, rawInput, output, errorText, approval } = part;
  // A call whose input is still streaming must not reach a model.
  if (typeof id !== "string" || id === "" || typeof name !== "string" || name === "" || state === "input-streaming")
    return;
  const given = isFields(input) ? input : {};
  step.said.push({
    type: "tool_use",
    id,
    name,
    input: input === undefined && isFields(rawInput) ? rawInput : given,
  });
  const result = (content: unknown, isError: boolean): Fields => ({
    type: "tool_result",
    tool_use_id: id,
    content: typeof content === "string" ? content : (JSON.stringify(content) ?? ""),
    ...(isError ? { is_error: true } : {}),
  });
  if (state === "output-available") step.results.push(result(output, false));
  else if (state === "output-error") step.results.push(result(errorText, true));
  else if (state === "output-denied") {
    const reason = isFields(approval) ? approval["reason"] : undefined;
    step.results.push(result(typeof reason === "string" && reason !== "" ? reason : deniedText, true));
  }
}
