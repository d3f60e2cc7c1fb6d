import { createProviderSimulator } from "@throughline/testing";
import { expect } from "vitest";
import { runChild } from "./harness.ts";
import type { Run } from "./harness.ts";

export type Call = readonly [tool: string, input: Readonly<Record<string, unknown>>];

export interface Answer {
  readonly call: Call;
  readonly text: string;
  readonly isError: boolean;
}

/** Where a chat runs, and with what options. */
export interface ChatPlace {
  readonly home: string;
  readonly workspace: string;
  readonly arguments: readonly string[];
}

interface Chat {
  readonly run: Run;
  readonly answers: readonly Answer[];
  /** Names of the tools the model was given. */
  readonly tools: readonly string[];
  /** Everything the provider got. */
  readonly sent: string;
}

/** One turn of `chat` in a process of its own, with a model that makes these calls. */
export async function chat({ home, workspace, arguments: given }: ChatPlace, calls: readonly Call[]): Promise<Chat> {
  const content = calls.map(([name, input]) => ({ type: "tool-call", name, input }) as const);
  await using provider = createProviderSimulator({ replies: [{ kind: "answer", content }], fallback: () => "Done." });
  await provider.start();
  const asked = ["chat", "--key", "attack", "--once", "go", "--model", "anthropic/claude-opus-5"];
  const run = await runChild(home, [...asked, ...given], {
    cwd: workspace,
    environment: { ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: provider.url },
  });
  expect(run).toMatchObject({ code: 0, stdout: "Done.\n" });
  expect(provider.refusals).toEqual([]);
  const body = provider.requests.at(-1)?.body as {
    readonly messages: readonly { readonly content: unknown }[];
    readonly tools: readonly { readonly name: string }[];
  };
  // In the order they were done, which is not the order they were asked in.
  const results = blocksOf(body.messages.at(-1)).map(({ tool_use_id, is_error, content: text }) => {
    const id = String(tool_use_id);
    return [id, { text: JSON.stringify(text ?? null), isError: is_error === true }] as const;
  });
  const byId = new Map(results);
  const ids = blocksOf(body.messages.at(-2)).flatMap(({ type, id }) => (type === "tool_use" ? [String(id)] : []));
  const answers = calls.map((call, index) => {
    const answer = byId.get(ids[index] ?? "");
    if (answer === undefined) throw new Error(`no answer to ${JSON.stringify(call).slice(0, 200)}`);
    return { call, ...answer };
  });
  return {
    run,
    answers,
    tools: body.tools.map(({ name }) => name),
    sent: provider.requests.map(({ bytes }) => Buffer.from(bytes).toString("utf8")).join("\n"),
  };
}

function blocksOf(message: { readonly content: unknown } | undefined): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(message?.content) ? message.content : [];
}
