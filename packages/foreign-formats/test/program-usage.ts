import type { ForeignFormatName } from "../src/names.ts";
import type { ReadSession } from "./read-units.ts";

type Fields = Readonly<Record<string, unknown>>;

const objectsIn = (text: string): readonly Fields[] =>
  text.split("\n").flatMap((line) => {
    try {
      const value: unknown = JSON.parse(line);
      return typeof value === "object" && value !== null ? [value as Fields] : [];
    } catch {
      // Broken on purpose in some example files.
      return [];
    }
  });
const at = (value: unknown, ...names: readonly string[]): unknown =>
  names.reduce<unknown>((inner, name) => (inner as Fields | null | undefined)?.[name], value);
const sum = (values: readonly unknown[]): number =>
  values.reduce<number>((all, value) => all + (typeof value === "number" ? value : 0), 0);

/** What each program counts in all of a file's text: tokens in and out, cached ones included. */
const totals: Partial<Record<ForeignFormatName, (text: string) => number>> = {
  // The lines of a reply repeat its usage.
  "claude-code": (text) => {
    const replies = new Map<unknown, unknown>();
    for (const line of objectsIn(text)) {
      const usage = at(line, "message", "usage");
      if (line["type"] === "assistant" && usage !== undefined) replies.set(at(line, "message", "id") ?? line, usage);
    }
    const names = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"];
    return sum([...replies.values()].flatMap((usage) => names.map((name) => at(usage, name))));
  },
  codex: (text) => {
    const infos = objectsIn(text).map((line) => at(line, "payload", "info", "total_token_usage"));
    const last = infos.findLast((info) => info !== undefined);
    return sum([at(last, "input_tokens"), at(last, "output_tokens")]);
  },
  gemini: (text) => {
    const whole = text.startsWith("{\n") || !text.includes("\n{") ? (JSON.parse(text) as Fields)["messages"] : null;
    const copies = new Map(
      ((whole ?? objectsIn(text)) as readonly Fields[]).map((line) => [line["id"], line["tokens"]]),
    );
    const names = ["input", "output", "thoughts", "tool"];
    return sum([...copies.values()].flatMap((tokens) => names.map((name) => at(tokens, name))));
  },
  // A reply states its own call, and the program's events all of them.
  "qwen-code": (text) => {
    const events = objectsIn(text).map((line) => at(line, "systemPayload", "uiEvent"));
    const calls = events.filter((event) => at(event, "event.name") === "qwen-code.api_response");
    return sum(calls.map((event) => at(event, "total_token_count")));
  },
  "kimi-cli": (text) => {
    const counts = objectsIn(text).map((line) => at(line, "message", "payload", "token_usage"));
    const names = ["input_other", "output", "input_cache_read", "input_cache_creation"];
    return sum(counts.flatMap((count) => names.map((name) => at(count, name))));
  },
  amp: (text) => {
    const { messages } = JSON.parse(text) as { readonly messages: readonly Fields[] };
    const names = ["inputTokens", "cacheCreationInputTokens", "cacheReadInputTokens", "outputTokens"];
    return sum(messages.flatMap((message) => names.map((name) => at(message, "usage", name))));
  },
  opencode: (text) => {
    const { messages } = JSON.parse(text) as { readonly messages: readonly Fields[] };
    const tokens = messages.map(({ info }) => at(info, "tokens"));
    return sum(
      tokens.flatMap((count) => [
        ...["input", "output", "reasoning"].map((name) => at(count, name)),
        ...["read", "write"].map((name) => at(count, "cache", name)),
      ]),
    );
  },
  "copilot-cli": (text) => {
    const last = objectsIn(text).findLast(({ type }) => type === "session.shutdown");
    const models = Object.values((at(last, "data", "modelMetrics") ?? {}) as Fields);
    return sum(models.flatMap((facts) => ["inputTokens", "outputTokens"].map((name) => at(facts, "usage", name))));
  },
};

/** What the program counts in a file; null where its files state no usage. */
export function programTotal(name: ForeignFormatName, text: string): number | null {
  return totals[name]?.(text) ?? null;
}

/** The same of what was read. */
export function readTotal({ records }: Pick<ReadSession, "records">): number {
  return sum(
    records.map(({ record }) => at(record, "message", "usage", "totalTokens") ?? at(record, "usage", "totalTokens")),
  );
}
