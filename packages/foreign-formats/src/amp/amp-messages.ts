import { fileURLToPath } from "node:url";
import type { Usage } from "@throughline/core";
import { isFields, type Fields } from "@throughline/core/internal";
import { blockBodies, hasSignature, isClaude } from "../block-messages.ts";
import type { UnitPlace } from "../foreign-format.ts";
import type { MessageList, ReadElement, ReadFrame } from "../message-list.ts";
import { repositoryFields } from "../repository-fields.ts";
import { countOf } from "../token-count.ts";
import { fieldsWithout, type RecordBody } from "../unit-records.ts";
import { blocksOf } from "./amp-blocks.ts";

const knownFields: ReadonlySet<string> = new Set(["role", "content"]);

export function isThreadId(value: unknown): value is string {
  return typeof value === "string" && /^T-[A-Za-z0-9-]{1,100}$/.test(value);
}

/** Reads the messages of a thread. */
export class AmpMessages implements MessageList {
  readonly name = "amp";
  sessionId: string | null;
  readonly #entry = new Map<string, unknown>();

  /** @param path of the thread's file, which has the name of the thread */
  constructor(path: string | null) {
    const name = (path ?? "")
      .split(/[/\\]/)
      .at(-1)
      ?.replace(/\.json$/, "");
    this.sessionId = isThreadId(name) ? name : null;
  }

  get entry(): Readonly<Record<string, unknown>> {
    return Object.fromEntries(this.#entry);
  }

  frame({ id, title, created, env }: Fields): ReadFrame {
    if (isThreadId(id)) this.sessionId = id;
    if (typeof title === "string" && title.trim() !== "") {
      this.#entry.set("title", title.trim());
      this.#entry.set("titleBy", "import");
    }
    const initial = isFields(env) && isFields(env["initial"]) ? env["initial"] : {};
    const [tree] = Array.isArray(initial["trees"]) ? (initial["trees"] as readonly unknown[]) : [];
    if (isFields(tree)) for (const [name, value] of Object.entries(placeOf(tree))) this.#entry.set(name, value);
    return { bodies: [], time: created };
  }

  element(value: Fields, _place: UnitPlace): ReadElement {
    const { role, content, meta, usage } = value;
    const time = isFields(meta) && meta["sentAt"] !== undefined ? meta["sentAt"] : timeOf(usage);
    // The program has further roles, such as `info`. Whether a model gets their text is not known.
    if (role !== "user" && role !== "assistant") return { bodies: [], isUnreadable: false, time };
    const blocks = blocksOf(content);
    const bodies = blocks === null ? null : messageBodies(value, role, blocks);
    return { bodies: bodies ?? [], isUnreadable: bodies === null, time };
  }
}

function timeOf(usage: unknown): unknown {
  return isFields(usage) ? usage["timestamp"] : undefined;
}

function placeOf({ uri, repository }: Fields): Fields {
  const { url, ref } = isFields(repository) ? repository : {};
  const branch = typeof ref === "string" ? ref.replace(/^refs\/heads\//, "") : undefined;
  const folder = folderOf(uri);
  return { ...(folder === null ? {} : { cwd: folder }), ...repositoryFields(url, branch) };
}

function folderOf(uri: unknown): string | null {
  if (typeof uri !== "string" || !uri.startsWith("file:///")) return null;
  try {
    return fileURLToPath(uri);
  } catch {
    // An address such as `file:///%ff` names no folder.
    return null;
  }
}

function messageBodies(value: Fields, role: string, blocks: readonly Fields[]): readonly RecordBody[] | null {
  const counts = isFields(value["usage"]) ? value["usage"] : {};
  const { model } = counts;
  const isSigned = role === "assistant" && hasSignature(blocks) && isClaude(model);
  // The only tool of the message runs.
  if (role === "user" && blocks.length === 0) return [];
  const bodies = blockBodies([{ role, content: blocks.length === 0 ? "" : blocks }], { model }, isSigned);
  const usage = role === "assistant" ? usageOf(counts) : null;
  const native = fieldsWithout(value, knownFields);
  return (
    bodies?.map((body, index) => {
      if (index > 0) return body;
      const message = body["message"] as Fields;
      return { ...body, message: usage === null ? message : { ...message, usage }, native };
    }) ?? null
  );
}

/**
 * The prompt is the sum of three counts. For OpenAI's models the program states tokens without a cache as written to it,
 * and these models have no price for that.
 */
function usageOf(counts: Fields): Usage | null {
  const count = (name: string): number => countOf(counts[name]);
  const written = count("cacheCreationInputTokens");
  const isOpenAi = typeof counts["model"] === "string" && counts["model"].startsWith("gpt-");
  const input = count("inputTokens") + (isOpenAi ? written : 0);
  const cacheWrite = isOpenAi ? 0 : written;
  const [cacheRead, output] = [count("cacheReadInputTokens"), count("outputTokens")];
  const totalTokens = input + cacheRead + cacheWrite + output;
  return totalTokens === 0 ? null : { input, output, cacheRead, cacheWrite, totalTokens };
}
